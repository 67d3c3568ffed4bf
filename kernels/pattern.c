/* Address-derived pattern: a word that is lost, repeated or lands elsewhere does not match. */
DEVICE u32 pattern(u64 i, u32 seed)
{
    u32 x = (u32)(i ^ (i >> 32)) * 2654435761u ^ seed;
    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ (x >> 13);
}

KERNEL(pattern_write)(GLOBAL u32 *RESTRICT buffer, u32 seed, u32 invert, u64 n, u64 lanes)
{
    FOR_SHARE(i, ITEM, ITEMS, n)
        buffer[i] = pattern(i, seed) ^ invert;
}

/* Adds the number of wrong words to errors[0]. */
KERNEL(pattern_verify)(GLOBAL const u32 *RESTRICT buffer, GLOBAL u32 *RESTRICT errors, u32 seed, u32 invert, u64 n,
                       u64 lanes)
{
    u32 wrong = 0;
    FOR_SHARE(i, ITEM, ITEMS, n)
        wrong += buffer[i] != (pattern(i, seed) ^ invert);
    if (wrong != 0)
        ATOMIC_ADD(errors, wrong);
}
