/* Kernels that move memory. Arrays are whole buffers, which every allocator aligns to at least 16 bytes:
 * they are walked in 16-byte vectors, and item 0 finishes the last n mod 4 elements. */

/* out[lane] = sum of that lane's share of src, for every lane; the sum of all of them is the sum of src. */
KERNEL(read_f32)(GLOBAL const float *RESTRICT src, GLOBAL float *RESTRICT out, u64 n, u64 lanes)
{
    GLOBAL const f32x4 *RESTRICT src4 = (GLOBAL const f32x4 *)src;
    FOR_SHARE(lane, ITEM, ITEMS, lanes)
    {
        float rest = 0.0f;
        if (lane == 0)
            for (u64 i = n / 4 * 4; i < n; ++i)
                rest += src[i];
        f32x4 sum;
        sum.x = rest;
        sum.y = 0.0f;
        sum.z = 0.0f;
        sum.w = 0.0f;
        FOR_SHARE(i, lane, lanes, n / 4)
            sum = sum + src4[i];
        out[lane] = (sum.x + sum.y) + (sum.z + sum.w);
    }
}

/* dst[i] = value */
KERNEL(write_f32)(GLOBAL float *RESTRICT dst, float value, u64 n, u64 lanes)
{
    GLOBAL f32x4 *RESTRICT dst4 = (GLOBAL f32x4 *)dst;
    f32x4 v;
    v.x = value;
    v.y = value;
    v.z = value;
    v.w = value;
    FOR_SHARE(i, ITEM, ITEMS, n / 4)
        dst4[i] = v;
    if (ITEM == 0)
        for (u64 i = n / 4 * 4; i < n; ++i)
            dst[i] = value;
}

/* c[i] = a[i] */
KERNEL(copy_f32)(GLOBAL const float *RESTRICT a, GLOBAL float *RESTRICT c, u64 n, u64 lanes)
{
    GLOBAL const f32x4 *RESTRICT a4 = (GLOBAL const f32x4 *)a;
    GLOBAL f32x4 *RESTRICT c4 = (GLOBAL f32x4 *)c;
    FOR_SHARE(i, ITEM, ITEMS, n / 4)
        c4[i] = a4[i];
    if (ITEM == 0)
        for (u64 i = n / 4 * 4; i < n; ++i)
            c[i] = a[i];
}

/* c[i] = s * a[i] */
KERNEL(scale_f32)(GLOBAL const float *RESTRICT a, GLOBAL float *RESTRICT c, float s, u64 n, u64 lanes)
{
    GLOBAL const f32x4 *RESTRICT a4 = (GLOBAL const f32x4 *)a;
    GLOBAL f32x4 *RESTRICT c4 = (GLOBAL f32x4 *)c;
    FOR_SHARE(i, ITEM, ITEMS, n / 4)
        c4[i] = s * a4[i];
    if (ITEM == 0)
        for (u64 i = n / 4 * 4; i < n; ++i)
            c[i] = s * a[i];
}

/* c[i] = a[i] + b[i] */
KERNEL(add_f32)(GLOBAL const float *RESTRICT a, GLOBAL const float *RESTRICT b, GLOBAL float *RESTRICT c, u64 n,
                u64 lanes)
{
    GLOBAL const f32x4 *RESTRICT a4 = (GLOBAL const f32x4 *)a;
    GLOBAL const f32x4 *RESTRICT b4 = (GLOBAL const f32x4 *)b;
    GLOBAL f32x4 *RESTRICT c4 = (GLOBAL f32x4 *)c;
    FOR_SHARE(i, ITEM, ITEMS, n / 4)
        c4[i] = a4[i] + b4[i];
    if (ITEM == 0)
        for (u64 i = n / 4 * 4; i < n; ++i)
            c[i] = a[i] + b[i];
}

/* c[i] = a[i] + s * b[i] */
KERNEL(triad_f32)(GLOBAL const float *RESTRICT a, GLOBAL const float *RESTRICT b, GLOBAL float *RESTRICT c, float s,
                  u64 n, u64 lanes)
{
    GLOBAL const f32x4 *RESTRICT a4 = (GLOBAL const f32x4 *)a;
    GLOBAL const f32x4 *RESTRICT b4 = (GLOBAL const f32x4 *)b;
    GLOBAL f32x4 *RESTRICT c4 = (GLOBAL f32x4 *)c;
    FOR_SHARE(i, ITEM, ITEMS, n / 4)
        c4[i] = a4[i] + s * b4[i];
    if (ITEM == 0)
        for (u64 i = n / 4 * 4; i < n; ++i)
            c[i] = a[i] + s * b[i];
}
