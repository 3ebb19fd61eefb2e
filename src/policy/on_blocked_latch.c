/*
 * on_blocked_latch.c - after a refusal the queue is not looked at any more until a running request
 * leaves: it finished, was given up, or was aborted.
 *
 * A refusal for the token budget or for want of a place shuts nothing. With nobody running there is
 * nobody who could leave, so nothing is shut then either. A pass is saved in every step; its price is
 * that what changes while nobody leaves, such as an estimate that falls, is not noticed. As there is no
 * pass, nobody misses one (order: lpm with aging_tokens).
 *
 * After batch_is_full of SGLang's scheduler, which has further causes to set and to clear it.
 */
#include "pagedkv/policy.h"

static bool goes_on(const struct pkv_request *refused, const int64_t *params)
{
    (void)refused, (void)params;
    return false;
}

const struct pkv_on_blocked_ops pkv_on_blocked_latch = {
    .info = {.name = "latch",
             .summary = "nobody is looked at until a running request leaves",
             .source = "after source of SGLang 0.5.18 (2026-08-21), batch_is_full; the rule for a "
                       "refusal, not the whole engine"},
    .latches = true,
    .goes_on = goes_on,
};
