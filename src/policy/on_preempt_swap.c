/*
 * on_preempt_swap.c - the blocks go to the host and come back; nothing of them is computed again.
 */
#include "pagedkv/policy.h"

static bool swaps(const struct pkv_swap_case *c)
{
    (void)c;
    return true;
}

const struct pkv_on_preempt_ops pkv_on_preempt_swap = {
    .info = {.name = "swap",
             .summary = "blocks nobody else holds are copied to the host and back (kv.host_blocks)",
             .source = "Kwon et al., SOSP 2023, section 4.5; vLLM V0"},
    .swaps = swaps,
};
