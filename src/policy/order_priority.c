/*
 * order_priority.c - the smaller priority number first, equal ones by arrival.
 */
#include "pagedkv/policy.h"

static int64_t key(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *r)
{
    (void)state, (void)view;
    return r->priority;
}

const struct pkv_order_ops pkv_order_priority = {
    .info = {.name = "priority",
             .summary = "the smaller priority number first, equal ones by arrival",
             .source = "vLLM V1, vllm/v1/core/sched/request_queue.py"},
    .key = key,
};
