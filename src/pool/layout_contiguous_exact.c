/*
 * layout_contiguous_exact.c - every request gets room for what it will really store: the hindsight
 * bound of all that reserve in one piece.
 */
#include "pool/buddy_private.h"

static uint32_t reserve_blocks(const void *state, uint32_t num_prompt_tokens,
                               uint32_t num_positions, uint32_t max_model_len, uint32_t block_size)
{
    (void)state, (void)num_prompt_tokens, (void)max_model_len;
    return buddy_run_blocks(num_positions, block_size);
}

const struct pkv_layout_ops pkv_layout_contiguous_exact = {
    .info = {.name = "contiguous_exact",
             .summary = "a run for prompt + output - 1 positions, known beforehand, rounded up likewise",
             .source = "Orca (Oracle) of Kwon et al., SOSP 2023, 6.1"},
    BUDDY_CALLS,
    .reserve_blocks = reserve_blocks,
};
