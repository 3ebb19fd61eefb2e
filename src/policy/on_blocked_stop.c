/*
 * on_blocked_stop.c - strict order: nobody overtakes a refused request.
 */
#include "pagedkv/policy.h"

static bool goes_on(const struct pkv_request *refused, const int64_t *params)
{
    (void)refused, (void)params;
    return false;
}

const struct pkv_on_blocked_ops pkv_on_blocked_stop = {
    .info = {.name = "stop",
             .summary = "nobody overtakes: the queue waits behind the refused one",
             .source = "vLLM V1, vllm/v1/core/sched/scheduler.py"},
    .goes_on = goes_on,
};
