/*
 * order_sjf_true.c - shortest job first by the output it will really produce: hindsight, a bound and
 * not a rule that a server could follow.
 */
#include "pagedkv/policy.h"

static int64_t key(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *r)
{
    (void)state, (void)view;
    return r->num_output_tokens;
}

const struct pkv_order_ops pkv_order_sjf_true = {
    .info = {.name = "sjf_true",
             .summary = "the shortest true output first (hindsight), equal ones by arrival",
             .source = "MC-SF, arXiv 2502.07115: order of the waiting"},
    .key = key,
};
