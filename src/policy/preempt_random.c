/*
 * preempt_random.c - give up anybody: each running request draws a number with every token that
 * comes out of it, and the largest is given up.
 *
 * The number is a hash of seed, row and generated tokens, so there is no state to keep, several
 * victims of one step are drawn without replacement, and skipping steps in which nothing happens
 * changes no draw. While no token comes out the numbers stand: a state that comes again goes on as
 * it did before, which is what tells a livelock from bad luck.
 */
#include "base/mix.h"
#include "pagedkv/policy.h"

static uint64_t draw(uint64_t seed, const struct pkv_request *r)
{
    return pkv_scramble(pkv_mix(pkv_mix(pkv_scramble(seed), r->row), r->num_emitted));
}

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    size_t best = 0;
    (void)state, (void)grower;
    for (size_t i = 1; i < view->num_running; i++)   /* ties: the earlier admitted */
        if (draw(view->seed, view->running[i]) > draw(view->seed, view->running[best]))
            best = i;
    return best;
}

const struct pkv_preempt_ops pkv_preempt_random = {
    .info = {.name = "random",
             .summary = "anybody, drawn from seed, row and generated tokens",
             .source = "ours"},
    .pick = pick,
};
