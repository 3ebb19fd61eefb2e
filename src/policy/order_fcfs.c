/*
 * order_fcfs.c - first come, first served.
 */
#include "pagedkv/policy.h"

static int64_t key(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *r)
{
    (void)state, (void)view, (void)r;
    return 0;   /* equal keys go by arrival */
}

const struct pkv_order_ops pkv_order_fcfs = {
    .info = {.name = "fcfs",
             .summary = "first come, first served",
             .source = "vLLM V1, vllm/v1/core/sched/request_queue.py"},
    .by_arrival = true,
    .key = key,
};
