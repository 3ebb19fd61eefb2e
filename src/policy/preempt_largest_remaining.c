/*
 * preempt_largest_remaining.c - give up the one that may still generate most, the latest admitted
 * among equals.
 *
 * Known is only max_tokens; a request that outlives it has less than nothing left.
 */
#include "pagedkv/policy.h"

static int64_t remaining(const struct pkv_request *r)
{
    return (int64_t)r->max_tokens - r->num_emitted;
}

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    size_t best = 0;
    (void)state, (void)grower;
    for (size_t i = 1; i < view->num_running; i++)
        if (remaining(view->running[i]) >= remaining(view->running[best]))
            best = i;
    return best;
}

const struct pkv_preempt_ops pkv_preempt_largest_remaining = {
    .info = {.name = "largest_remaining",
             .summary = "the most of its max_tokens to come, the latest among equals",
             .source = "ours"},
    .pick = pick,
};
