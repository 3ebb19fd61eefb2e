/*
 * preempt_priority.c - give up the one with the largest priority number, the latest among equals.
 *
 * It may have been scheduled earlier in this step; its tokens are then taken back.
 */
#include "pagedkv/policy.h"

static bool is_worse(const struct pkv_request *a, const struct pkv_request *b)
{
    return a->priority != b->priority ? a->priority > b->priority
                                      : a->arrival_order > b->arrival_order;
}

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    size_t worst = 0;
    (void)state, (void)grower;
    for (size_t i = 1; i < view->num_running; i++)
        if (is_worse(view->running[i], view->running[worst]))
            worst = i;
    return worst;
}

const struct pkv_preempt_ops pkv_preempt_priority = {
    .info = {.name = "priority",
             .summary = "the largest priority number, the latest to arrive among equals",
             .source = "vLLM V1, policy priority"},
    .pick = pick,
};
