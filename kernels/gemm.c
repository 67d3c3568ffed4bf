/* C = A · Bᵀ with ordinary arithmetic: A is m×k, B n×k, C m×n, row-major and dense, any size. For devices
 * without a vendor library; it reads low, and whoever uses it says so.
 *
 * One group makes one 64×64 tile of C, each of its 256 items a 4×4 part of it. Both inputs are staged
 * through shared memory, 16 steps of k at a time, as zero beyond their edges. Items own every 16th row
 * and column, so that neighbours touch neighbouring words. */
#ifndef HOST_DIALECT

#define TILE 64
#define DEPTH 16
#define PART 4 /* TILE² = GROUP_SIZE · PART² */

/* LOAD(p, row, column) reads a staged element, MULTIPLY_ADD(acc, a, b) is the arithmetic, STORE(p, i, x)
 * writes C; `depth` is k in staged elements. */
#define GEMM_BODY(STAGED, ACC, LOAD, MULTIPLY_ADD, STORE)                                               \
    SHARED STAGED a_tile[DEPTH][TILE + 1];                                                              \
    SHARED STAGED b_tile[DEPTH][TILE + 1];                                                              \
    u32 tiles_across = (n + TILE - 1) / TILE;                                                           \
    u32 row0 = GROUP / tiles_across * TILE, column0 = GROUP % tiles_across * TILE;                      \
    u32 x = LOCAL_ITEM % 16, y = LOCAL_ITEM / 16;                                                       \
    ACC acc[PART][PART];                                                                                \
    UNROLL for (u32 i = 0; i < PART; ++i)                                                               \
        UNROLL for (u32 j = 0; j < PART; ++j)                                                           \
            acc[i][j] = 0;                                                                              \
    for (u32 step = 0; step < depth; step += DEPTH) {                                                   \
        for (u32 e = LOCAL_ITEM; e < TILE * DEPTH; e += GROUP_SIZE) {                                   \
            u32 line = e / DEPTH, d = e % DEPTH;                                                        \
            int inside = step + d < depth;                                                              \
            a_tile[d][line] = inside && row0 + line < m ? LOAD(a, row0 + line, step + d) : 0;           \
            b_tile[d][line] = inside && column0 + line < n ? LOAD(b, column0 + line, step + d) : 0;     \
        }                                                                                               \
        BARRIER();                                                                                      \
        for (u32 d = 0; d < DEPTH; ++d) {                                                               \
            STAGED a_part[PART], b_part[PART];                                                          \
            UNROLL for (u32 i = 0; i < PART; ++i)                                                       \
                a_part[i] = a_tile[d][y + 16 * i];                                                      \
            UNROLL for (u32 j = 0; j < PART; ++j)                                                       \
                b_part[j] = b_tile[d][x + 16 * j];                                                      \
            UNROLL for (u32 i = 0; i < PART; ++i)                                                       \
                UNROLL for (u32 j = 0; j < PART; ++j)                                                   \
                    acc[i][j] = MULTIPLY_ADD(acc[i][j], a_part[i], b_part[j]);                          \
        }                                                                                               \
        BARRIER();                                                                                      \
    }                                                                                                   \
    UNROLL for (u32 i = 0; i < PART; ++i)                                                               \
        UNROLL for (u32 j = 0; j < PART; ++j) {                                                         \
            u32 row = row0 + y + 16 * i, column = column0 + x + 16 * j;                                 \
            if (row < m && column < n)                                                                  \
                STORE(c, (u64)row * n + column, acc[i][j]);                                             \
        }

#define LOAD_PLAIN(p, row, column) (p)[(u64)(row) * k + (column)]
#define LOAD_FP16(p, row, column) LOAD_HALF(p, (u64)(row) * k + (column))
#define STORE_PLAIN(p, i, x) ((p)[i] = (x))
#define MULTIPLY_ADD_FP32(acc, x, y) FMA32(x, y, acc)
#define MULTIPLY_ADD_FP64(acc, x, y) FMA64(x, y, acc)
#define MULTIPLY_ADD_INT8(acc, x, y) DOT4(x, y, acc)

KERNEL_OF_GROUPS(gemm_fp32)(GLOBAL const float *RESTRICT a, GLOBAL const float *RESTRICT b, GLOBAL float *RESTRICT c,
                            u32 m, u32 n, u32 k)
{
    u32 depth = k;
    GEMM_BODY(float, float, LOAD_PLAIN, MULTIPLY_ADD_FP32, STORE_PLAIN)
}

#ifdef HAS_FP64
KERNEL_OF_GROUPS(gemm_fp64)(GLOBAL const double *RESTRICT a, GLOBAL const double *RESTRICT b,
                            GLOBAL double *RESTRICT c, u32 m, u32 n, u32 k)
{
    u32 depth = k;
    GEMM_BODY(double, double, LOAD_PLAIN, MULTIPLY_ADD_FP64, STORE_PLAIN)
}
#endif

/* Inputs and output are halves, arithmetic is fp32. */
KERNEL_OF_GROUPS(gemm_fp16)(HALF_IN a, HALF_IN b, HALF_OUT c, u32 m, u32 n, u32 k)
{
    u32 depth = k;
    GEMM_BODY(float, float, LOAD_FP16, MULTIPLY_ADD_FP32, STORE_HALF)
}

/* Four bytes along k travel as one word. Rows start on a word only where k is a multiple of four. */
DEVICE int load_bytes(GLOBAL const signed char *row, u32 word, u32 k)
{
    u32 first = 4 * word;
    if (k % 4 == 0)
        return ((GLOBAL const int *)row)[word];
    u32 bytes = 0;
    for (u32 i = 0; i < 4 && first + i < k; ++i)
        bytes |= (u32)(unsigned char)row[first + i] << (8 * i);
    return (int)bytes;
}
#define LOAD_INT8(p, row, word) load_bytes((p) + (u64)(row) * k, (word), k)

KERNEL_OF_GROUPS(gemm_int8)(GLOBAL const signed char *RESTRICT a, GLOBAL const signed char *RESTRICT b,
                            GLOBAL int *RESTRICT c, u32 m, u32 n, u32 k)
{
    u32 depth = (k + 3) / 4;
    GEMM_BODY(int, int, LOAD_INT8, MULTIPLY_ADD_INT8, STORE_PLAIN)
}

#endif
