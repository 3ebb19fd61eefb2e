/*
 * preempt_least_preempted.c - give up the one that was given up least often, the latest admitted
 * among equals, so that the burden goes round.
 */
#include "pagedkv/policy.h"

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    size_t best = 0;
    (void)state, (void)grower;
    for (size_t i = 1; i < view->num_running; i++)
        if (view->running[i]->num_preemptions <= view->running[best]->num_preemptions)
            best = i;
    return best;
}

const struct pkv_preempt_ops pkv_preempt_least_preempted = {
    .info = {.name = "least_preempted",
             .summary = "the one given up least often so far, the latest among equals",
             .source = "ours"},
    .counts_preemptions = true,
    .pick = pick,
};
