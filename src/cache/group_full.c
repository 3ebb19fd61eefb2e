/*
 * group_full.c - full attention: every block of the prefix is needed, for ever.
 */
#include "cache/cache_private.h"

static uint32_t find(const struct group_look *look, uint32_t num_blocks, pkv_block_id *out)
{
    const uint64_t *key = look->keys + look->units_per_block - 1;
    uint32_t num = 0;
    for (; num < num_blocks; num++, key += look->units_per_block) {
        out[num] = prefix_index_find(look->index, cache_group_key(*key, look->group));
        if (out[num] == PKV_BLOCK_NULL)
            break;
    }
    return num;
}

static uint64_t table_blocks(const struct pkv_group_config *group, uint64_t num_positions)
{
    return group_ceil(num_positions, group->block_size);
}

const struct pkv_group_ops pkv_group_full = {
    .name = "full",
    .stores_positions = true,
    .has_second_key = true,
    .find = find,
    .table_blocks = table_blocks,
};
