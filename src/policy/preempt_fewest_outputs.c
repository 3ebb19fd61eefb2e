/*
 * preempt_fewest_outputs.c - give up the one that has generated least: the longest prompt among
 * equals, the latest admitted among those.
 *
 * After retract_decode in SGLang (python/sglang/srt/managers/schedule_batch.py), which sorts by
 * (generated tokens, -prompt length) descending and retracts from the end.
 */
#include "pagedkv/policy.h"

static bool is_before(const struct pkv_request *a, const struct pkv_request *b)
{
    if (a->num_emitted != b->num_emitted)
        return a->num_emitted < b->num_emitted;
    return a->seq.num_prompt_tokens > b->seq.num_prompt_tokens;
}

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    size_t best = 0;
    (void)state, (void)grower;
    for (size_t i = 1; i < view->num_running; i++)
        if (!is_before(view->running[best], view->running[i]))
            best = i;
    return best;
}

const struct pkv_preempt_ops pkv_preempt_fewest_outputs = {
    .info = {.name = "fewest_outputs",
             .summary = "the fewest generated tokens, then the longest prompt, then the latest",
             .source = "SGLang, retract_decode; the rule alone, one victim at a time"},
    .pick = pick,
};
