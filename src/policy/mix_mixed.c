/*
 * mix_mixed.c - decodes, chunks of prompts and newcomers share a step.
 */
#include "pagedkv/policy.h"

static struct pkv_mix choose(const void *state, const struct pkv_sched_view *view)
{
    (void)state, (void)view;
    return (struct pkv_mix){.first = PKV_MIX_ALL};
}

const struct pkv_mix_ops pkv_mix_mixed = {
    .info = {.name = "mixed",
             .summary = "running requests first, newcomers with what is left of the budget",
             .source = "vLLM V1"},
    .choose = choose,
};
