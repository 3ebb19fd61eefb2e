/*
 * layout_contiguous_max.c - every request gets room for the longest one that may come.
 *
 * What it will really need is not known, so it gets max_model_len positions in one run, however short
 * it turns out to be.
 */
#include "pool/buddy_private.h"

static uint32_t reserve_blocks(const void *state, uint32_t num_prompt_tokens,
                               uint32_t num_positions, uint32_t max_model_len, uint32_t block_size)
{
    (void)state, (void)num_prompt_tokens, (void)num_positions;
    return buddy_run_blocks(max_model_len, block_size);
}

const struct pkv_layout_ops pkv_layout_contiguous_max = {
    .info = {.name = "contiguous_max",
             .summary = "a run of max_model_len positions, rounded up to a power of two of blocks",
             .source = "Orca (Max) of Kwon et al., SOSP 2023, 6.1"},
    .needs_max_model_len = true,
    BUDDY_CALLS,
    .reserve_blocks = reserve_blocks,
};
