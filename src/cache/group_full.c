/*
 * group_full.c - full attention: every block of the prefix is needed, for ever.
 */
#include "cache/cache_private.h"

static uint32_t find(const struct prefix_index *index, const uint64_t *keys, uint32_t num_keys,
                     pkv_block_id *out)
{
    uint32_t num = 0;
    for (; num < num_keys; num++) {
        out[num] = prefix_index_find(index, keys[num]);
        if (out[num] == PKV_BLOCK_NULL)
            break;
    }
    return num;
}

static uint64_t table_blocks(uint64_t num_positions, uint32_t block_size)
{
    return num_positions / block_size + (num_positions % block_size != 0);
}

const struct pkv_group_ops pkv_group_full = {
    .name = "full",
    .find = find,
    .table_blocks = table_blocks,
};
