/*
 * order_random.c - a lot drawn once a request, from seed and row.
 */
#include "base/mix.h"
#include "pagedkv/policy.h"

static int64_t key(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *r)
{
    (void)state;
    uint64_t lot = pkv_scramble(pkv_mix(pkv_scramble(view->seed), r->row));
    return (int64_t)(lot >> 2);   /* the ends of the range are reserved */
}

const struct pkv_order_ops pkv_order_random = {
    .info = {.name = "random",
             .summary = "a lot drawn once a request, from seed and row",
             .source = "ours"},
    .key = key,
};
