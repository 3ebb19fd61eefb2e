/*
 * preempt_fit.c - give up the cheapest of those that alone make enough room.
 *
 * What one frees are the blocks that nobody else holds. Cheapest is who has the fewest computed
 * tokens. If nobody alone covers the shortage, the one that frees most goes first and the question
 * is asked again. The grower is the last resort: it would make room for nobody. Equal ones: the
 * latest admitted.
 */
#include "pagedkv/policy.h"

struct offer {
    size_t index;
    uint32_t frees;
    bool covers;
};

static bool is_better(const struct pkv_sched_view *view, const struct offer *a,
                      const struct offer *b)
{
    uint32_t lost_a = view->running[a->index]->seq.num_computed_tokens;
    uint32_t lost_b = view->running[b->index]->seq.num_computed_tokens;
    if (a->covers != b->covers)
        return a->covers;
    return a->covers ? lost_a <= lost_b : a->frees >= b->frees;
}

static size_t pick(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower)
{
    struct offer best = {.index = SIZE_MAX};
    size_t itself = SIZE_MAX;
    (void)state;
    for (size_t i = 0; i < view->num_running; i++) {
        if (view->running[i] == grower) {
            itself = i;
            continue;
        }
        struct offer offer = {
            .index = i,
            .frees = pkv_cache_num_freed(view->cache, &view->running[i]->seq),
        };
        offer.covers = offer.frees >= view->num_short_blocks;
        if (best.index == SIZE_MAX || is_better(view, &offer, &best))
            best = offer;
    }
    return best.index != SIZE_MAX ? best.index : itself;
}

const struct pkv_preempt_ops pkv_preempt_fit = {
    .info = {.name = "fit",
             .summary = "the fewest computed tokens of those that alone cover the shortage",
             .source = "ours"},
    .pick = pick,
};
