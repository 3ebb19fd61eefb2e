/*
 * group_chunked.c - chunked-local attention: a token looks at those of its own chunk up to itself.
 *
 * The text is cut into chunks of `size` tokens, counted from its beginning. With c positions computed
 * the next token looks back to the last multiple of size at or below c, so whole blocks below that
 * are out. A hit needs the blocks between that multiple and its end; one that ends at a multiple
 * needs none at all.
 *
 * Source: vllm/v1/core/single_type_kv_cache_manager.py, ChunkedLocalAttentionManager.
 */
#include "cache/cache_private.h"

static uint32_t num_out(const struct pkv_group_config *group, uint32_t num_computed)
{
    return num_computed / group->size * group->size / group->block_size;
}

static uint32_t find(const struct group_look *look, uint32_t num_blocks, pkv_block_id *out)
{
    uint32_t first = num_out(look->config, num_blocks * look->config->block_size), num;
    for (num = 0; num < first; num++)
        out[num] = PKV_BLOCK_NULL;
    for (; num < num_blocks; num++) {
        out[num] = group_look_up(look, num);
        if (out[num] == PKV_BLOCK_NULL)
            break;
    }
    return num;
}

static uint64_t table_blocks(const struct pkv_group_config *group, uint64_t num_positions)
{
    return group_ceil(num_positions, group->block_size);
}

static uint32_t out_phase(const struct pkv_group_config *group)
{
    return group->size % group->block_size == 0 ? 0 : UINT32_MAX;
}

static uint64_t most_blocks(const struct pkv_group_config *group, uint64_t num_step_tokens)
{
    if (num_step_tokens > UINT32_MAX)
        return UINT64_MAX;
    bool straddles = group->size % group->block_size != 0;   /* a chunk may begin inside a block */
    return group_ceil(group->size + num_step_tokens, group->block_size) + straddles;
}

const struct pkv_group_ops pkv_group_chunked = {
    .name = "chunked",
    .size_name = "chunk",
    .stores_positions = true,
    .keeps_chunk_end = true,
    .find = find,
    .table_blocks = table_blocks,
    .num_out = num_out,
    .out_phase = out_phase,
    .most_blocks = most_blocks,
};
