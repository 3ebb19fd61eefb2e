/*
 * order_lof.c - longest output first: the most max_tokens, equal ones by arrival.
 *
 * Unlike ljf it does not look at the prompt.
 */
#include "pagedkv/policy.h"

static int64_t key(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *r)
{
    (void)state, (void)view;
    return -(int64_t)r->max_tokens;
}

const struct pkv_order_ops pkv_order_lof = {
    .info = {.name = "lof",
             .summary = "the most max_tokens first, equal ones by arrival",
             .source = "SGLang, schedule_policy lof"},
    .key = key,
};
