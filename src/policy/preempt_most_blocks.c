/*
 * preempt_most_blocks.c - give up the one with the longest tables, the latest admitted among equals.
 *
 * Blocks it shares with others count like its own, although they do not become free: `fit` looks at
 * what does.
 */
#include "pagedkv/policy.h"

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    size_t best = 0;
    (void)state, (void)grower;
    for (size_t i = 1; i < view->num_running; i++)
        if (pkv_seq_num_blocks(&view->running[i]->seq) >=
            pkv_seq_num_blocks(&view->running[best]->seq))
            best = i;
    return best;
}

const struct pkv_preempt_ops pkv_preempt_most_blocks = {
    .info = {.name = "most_blocks",
             .summary = "the most blocks, shared ones included, the latest among equals",
             .source = "ours"},
    .pick = pick,
};
