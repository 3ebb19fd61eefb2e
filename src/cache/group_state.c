/*
 * group_state.c - a recurrent state (Mamba and its kin): so many blocks from the first token to the
 * last, each token written over the former.
 *
 * What the state was at an earlier position is gone, so it can answer no look-up: beside a group of
 * this kind nothing is hit at all. That is the careful end: an engine may keep copies of the state at
 * some positions and hit those. No recording tells. The blocks hold no positions.
 */
#include "cache/cache_private.h"

static uint32_t find(const struct group_look *look, uint32_t num_blocks, pkv_block_id *out)
{
    (void)look, (void)num_blocks, (void)out;
    return 0;
}

static uint64_t table_blocks(const struct pkv_group_config *group, uint64_t num_positions)
{
    return num_positions > 0 ? group->size : 0;
}

const struct pkv_group_ops pkv_group_state = {
    .name = "state",
    .size_name = "blocks",
    .find = find,
    .table_blocks = table_blocks,
};
