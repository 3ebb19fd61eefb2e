/*
 * preempt_least_lost.c - give up the request whose recompute costs least.
 *
 * Counted as computed are the positions in its blocks, those of this step included.
 */
#include "pagedkv/policy.h"

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    size_t best = 0;
    (void)state, (void)grower;
    for (size_t i = 1; i < view->num_running; i++)   /* ties: the earlier admitted */
        if (view->running[i]->seq.num_computed_tokens <
            view->running[best]->seq.num_computed_tokens)
            best = i;
    return best;
}

const struct pkv_preempt_ops pkv_preempt_least_lost = {
    .info = {.name = "least_lost",
             .summary = "the fewest computed tokens, the first admitted among equals",
             .source = "ours"},
    .pick = pick,
};
