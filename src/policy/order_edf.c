/*
 * order_edf.c - the earliest deadline first; those without one come last, equal ones by arrival.
 */
#include "pagedkv/policy.h"

#define LAST (INT64_MAX - 1)   /* before the tail of the queue, which is INT64_MAX */

static int64_t key(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *r)
{
    (void)state, (void)view;
    return r->deadline_ns == PKV_NO_TIME || r->deadline_ns > LAST ? LAST : r->deadline_ns;
}

const struct pkv_order_ops pkv_order_edf = {
    .info = {.name = "edf",
             .summary = "the earliest deadline first, those without one last",
             .source = "textbook: earliest deadline first"},
    .key = key,
};
