/* Memory latency: one item follows `hops` links, each load needs the one before. */
KERNEL(chase)(GLOBAL const u32 *RESTRICT next, GLOBAL u32 *RESTRICT out, u32 start, u32 hops, u64 lanes)
{
    if (ITEM == 0) {
        u32 at = start;
        for (u32 hop = 0; hop < hops; ++hop)
            at = next[at];
        out[0] = at;
    }
}
