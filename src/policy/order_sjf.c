/*
 * order_sjf.c - shortest job first: the fewest max_tokens, equal ones by arrival.
 */
#include "pagedkv/policy.h"

static int64_t key(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *r)
{
    (void)state, (void)view;
    return r->max_tokens;
}

const struct pkv_order_ops pkv_order_sjf = {
    .info = {.name = "sjf",
             .summary = "the fewest max_tokens first, equal ones by arrival",
             .source = "textbook: shortest job first"},
    .key = key,
};
