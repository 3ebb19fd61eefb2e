/*
 * preempt_never.c - nobody is given up: who lacks a block waits until one comes free.
 *
 * When all that run lack one, the run is stuck, and says so. Right beside an admission that looks to
 * the end, such as reserve_max.
 */
#include "pagedkv/policy.h"

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    (void)state, (void)view, (void)grower;
    return SIZE_MAX;
}

const struct pkv_preempt_ops pkv_preempt_never = {
    .info = {.name = "never",
             .summary = "nobody: who lacks a block waits for it",
             .source = "TensorRT-LLM, GUARANTEED_NO_EVICT: the absence of a victim alone"},
    .pick = pick,
};
