/*
 * order_ljf.c - longest job first: the most prompt tokens and max_tokens together, equal ones by
 * arrival.
 *
 * The whole job counts, as every position of it will be held; lof looks at the output alone.
 */
#include "pagedkv/policy.h"

static int64_t key(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *r)
{
    (void)state, (void)view;
    return -((int64_t)r->seq.num_prompt_tokens + r->max_tokens);
}

const struct pkv_order_ops pkv_order_ljf = {
    .info = {.name = "ljf",
             .summary = "the most prompt tokens + max_tokens first, equal ones by arrival",
             .source = "textbook: longest job first"},
    .key = key,
};
