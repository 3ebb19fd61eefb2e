/*
 * preempt_newest.c - give up the one admitted last.
 *
 * As growth walks from the earliest admitted, the victim has never been scheduled in this step.
 */
#include "pagedkv/policy.h"

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    (void)state, (void)grower;
    return view->num_running - 1;
}

const struct pkv_preempt_ops pkv_preempt_newest = {
    .info = {.name = "newest",
             .summary = "the running request that was admitted last",
             .source = "vLLM V1, policy fcfs"},
    .pick = pick,
};
