/*
 * layout_contiguous_pow2.c - every request gets room for its prompt and a guess of its output that
 * is too large by less than two: the next power of two. Nobody gets more than max_model_len.
 *
 * num_positions is prompt + output - 1, as the last token is never stored.
 */
#include "pool/buddy_private.h"

static uint32_t reserve_blocks(const void *state, uint32_t num_prompt_tokens,
                               uint32_t num_positions, uint32_t max_model_len, uint32_t block_size)
{
    (void)state;
    uint64_t output = (uint64_t)num_positions - num_prompt_tokens + 1, guess = 1;
    while (guess < output)
        guess *= 2;
    uint64_t positions = num_prompt_tokens + guess;
    return buddy_run_blocks(positions < max_model_len ? positions : max_model_len, block_size);
}

const struct pkv_layout_ops pkv_layout_contiguous_pow2 = {
    .info = {.name = "contiguous_pow2",
             .summary = "a run for the prompt and the next power of two of its output, rounded up likewise",
             .source = "Orca (Pow2) of Kwon et al., SOSP 2023, 6.1"},
    BUDDY_CALLS,
    .reserve_blocks = reserve_blocks,
};
