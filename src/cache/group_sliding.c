/*
 * group_sliding.c - sliding-window attention: a token looks at itself and the size - 1 before it.
 *
 * With c positions computed the next token looks at c - size + 1 and later ones, so blocks wholly
 * below that are out. A hit needs only what the next token looks at: as many cached blocks in a row
 * as size - 1 positions take, wherever they end; a prefix shorter than that has to be whole. The
 * blocks that no hit can need get no identity: hits end at multiples of the least common multiple of
 * the groups' block sizes, so the needed ones are the last before each.
 *
 * Source: vllm/v1/core/single_type_kv_cache_manager.py, SlidingWindowManager.
 */
#include "cache/cache_private.h"

/* Blocks in a row that a hit needs. */
static uint32_t run_blocks(const struct pkv_group_config *group)
{
    uint32_t num = (uint32_t)group_ceil(group->size - 1, group->block_size);
    return num > 0 ? num : 1;
}

/* From the right: where a run breaks, the next one ends at the latest before the break. */
static uint32_t find(const struct group_look *look, uint32_t num_blocks, pkv_block_id *out)
{
    uint32_t run = run_blocks(look->config), end = num_blocks - num_blocks % look->align_blocks;
    while (end > 0) {
        uint32_t first = end > run ? end - run : 0, i = end;
        while (i > first && (out[i - 1] = group_look_up(look, i - 1)) != PKV_BLOCK_NULL)
            i--;
        if (i == first) {
            for (i = 0; i < first; i++)
                out[i] = PKV_BLOCK_NULL;
            return end;
        }
        end = i - 1 - (i - 1) % look->align_blocks;
    }
    return 0;
}

static uint64_t table_blocks(const struct pkv_group_config *group, uint64_t num_positions)
{
    return group_ceil(num_positions, group->block_size);
}

static uint32_t num_out(const struct pkv_group_config *group, uint32_t num_computed)
{
    uint32_t window = group->size;
    return num_computed < window ? 0 : (num_computed - window + 1) / group->block_size;
}

static uint32_t out_phase(const struct pkv_group_config *group)
{
    return (group->size - 1) % group->block_size;
}

/* The window and a step's tokens need not begin with a block. */
static uint64_t most_blocks(const struct pkv_group_config *group, uint64_t num_step_tokens)
{
    if (num_step_tokens > UINT32_MAX)
        return UINT64_MAX;
    return group_ceil(group->size - 1 + num_step_tokens, group->block_size) + 1;
}

static bool is_hashed(const struct pkv_group_config *group, uint32_t index, uint32_t align_blocks)
{
    uint32_t to_end = align_blocks - 1 - index % align_blocks;
    return to_end < run_blocks(group);
}

const struct pkv_group_ops pkv_group_sliding = {
    .name = "sliding",
    .size_name = "window",
    .stores_positions = true,
    .find = find,
    .table_blocks = table_blocks,
    .num_out = num_out,
    .out_phase = out_phase,
    .most_blocks = most_blocks,
    .is_hashed = is_hashed,
};
