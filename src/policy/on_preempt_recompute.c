/*
 * on_preempt_recompute.c - the blocks go back; prompt and generated tokens are computed again.
 */
#include "pagedkv/policy.h"

const struct pkv_on_preempt_ops pkv_on_preempt_recompute = {
    .info = {.name = "recompute",
             .summary = "blocks go back at once; prompt and output are computed again",
             .source = "vLLM V1"},
};
