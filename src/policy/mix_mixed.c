/*
 * mix_mixed.c - decodes, chunks of prompts and newcomers share a step.
 */
#include "pagedkv/policy.h"

static struct pkv_mix choose(const struct pkv_sched_view *view)
{
    (void)view;
    return (struct pkv_mix){.grow = true, .admit = true};
}

const struct pkv_mix_ops pkv_mix_mixed = {
    .info = {.name = "mixed",
             .summary = "running requests first, newcomers with what is left of the budget",
             .source = "vLLM V1"},
    .choose = choose,
};
