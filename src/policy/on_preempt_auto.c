/*
 * on_preempt_auto.c - whichever is sooner done: copying the blocks out and in again, or computing what
 * is in them once more.
 *
 * Copying begins when the link has done what is queued on it. Computing is one step with nothing else in
 * it, by the step time's law. Waiting in the queue is the same either way, and what the prefix cache may
 * still have then is not known. Equal ones are computed.
 */
#include "pagedkv/policy.h"

static bool swaps(const struct pkv_swap_case *c)
{
    const struct pkv_step_work work = {
        .num_prefill_tokens = c->num_positions > 1 ? c->num_positions : 0,
        .num_decodes = c->num_positions == 1,
        .num_context_tokens = c->num_positions,
    };
    int64_t computed_ns = pkv_step_time_ns(c->step_time, &work);
    if (c->wait_ns >= computed_ns)
        return false;
    return c->transfer_ns < (computed_ns - c->wait_ns + 1) / 2;
}

const struct pkv_on_preempt_ops pkv_on_preempt_auto = {
    .info = {.name = "auto",
             .summary = "swap or recompute, whichever takes less time by link and step time",
             .source = "ours"},
    .swaps = swaps,
};
