/*
 * preempt_oldest.c - give up the one admitted first.
 *
 * The opposite of newest: whoever is nearest to its end loses most, so it shows what a victim costs.
 * The grower may be the victim itself; then it waits and the others go on in the next step.
 */
#include "pagedkv/policy.h"

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    (void)state, (void)view, (void)grower;
    return 0;
}

const struct pkv_preempt_ops pkv_preempt_oldest = {
    .info = {.name = "oldest",
             .summary = "the running request that was admitted first",
             .source = "ours"},
    .pick = pick,
};
