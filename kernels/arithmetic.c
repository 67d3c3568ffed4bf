/* Arithmetic at full rate: every lane is one chain of dependent operations; each item runs CHAINS of them
 * side by side, so that latency is hidden even where few items fit. Chains beyond the last lane are
 * computed and not stored. */

#define START(lane) (1.0f + (float)((lane) % 64) / 64.0f)

#define FMA_KERNEL(NAME, T, FMA)                                                                \
    KERNEL(NAME)(GLOBAL T *RESTRICT out, T m, T k, u32 iterations, u64 lanes)                   \
    {                                                                                           \
        FOR_SHARE(block, ITEM, ITEMS, (lanes + CHAINS - 1) / CHAINS)                            \
        {                                                                                       \
            T x[CHAINS];                                                                        \
            for (u32 j = 0; j < CHAINS; ++j)                                                    \
                x[j] = (T)START(block * CHAINS + j);                                            \
            for (u32 i = 0; i < iterations; ++i)                                                \
                UNROLL for (u32 j = 0; j < CHAINS; ++j)                                         \
                    x[j] = FMA(x[j], m, k);                                                     \
            for (u32 j = 0; j < CHAINS; ++j)                                                    \
                if (block * CHAINS + j < lanes)                                                 \
                    out[block * CHAINS + j] = x[j];                                             \
        }                                                                                       \
    }

FMA_KERNEL(fma_fp32, float, FMA32)
#ifdef HAS_FP64
FMA_KERNEL(fma_fp64, double, FMA64)
#endif

#ifdef HAS_FP16
/* Two lanes per operation: full rate needs packed halves on most devices. */
KERNEL(fma_fp16)(HALF_OUT out, float m, float k, u32 iterations, u64 lanes)
{
    half2_t m2 = HALF2(m, m), k2 = HALF2(k, k);
    FOR_SHARE(block, ITEM, ITEMS, (lanes + 2 * CHAINS - 1) / (2 * CHAINS))
    {
        u64 first = block * (2 * CHAINS);
        half2_t x[CHAINS];
        for (u32 j = 0; j < CHAINS; ++j)
            x[j] = HALF2(START(first + 2 * j), START(first + 2 * j + 1));
        for (u32 i = 0; i < iterations; ++i)
            UNROLL for (u32 j = 0; j < CHAINS; ++j)
                x[j] = HALF2_FMA(x[j], m2, k2);
        for (u32 j = 0; j < CHAINS; ++j) {
            if (first + 2 * j < lanes)
                HALF2_STORE_LOW(out, first + 2 * j, x[j]);
            if (first + 2 * j + 1 < lanes)
                HALF2_STORE_HIGH(out, first + 2 * j + 1, x[j]);
        }
    }
}
#endif

/* The dot product is the same in every iteration. `i >> 31` is always 0 (callers keep iterations below
 * 2^31) but no compiler can know: without it the loop would be replaced by one multiplication. */
KERNEL(dot_int8)(GLOBAL int *RESTRICT out, int a, u32 iterations, u64 lanes)
{
    FOR_SHARE(block, ITEM, ITEMS, (lanes + CHAINS - 1) / CHAINS)
    {
        int x[CHAINS], b[CHAINS];
        for (u32 j = 0; j < CHAINS; ++j) {
            x[j] = (int)(u32)(block * CHAINS + j);
            b[j] = (int)((u32)x[j] * 0x01010101u);
        }
        for (u32 i = 0; i < iterations; ++i) {
            int opaque = a ^ (int)(i >> 31);
            UNROLL for (u32 j = 0; j < CHAINS; ++j)
                x[j] = DOT4(opaque, b[j], x[j]);
        }
        for (u32 j = 0; j < CHAINS; ++j)
            if (block * CHAINS + j < lanes)
                out[block * CHAINS + j] = x[j];
    }
}
