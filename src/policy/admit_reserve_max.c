/*
 * admit_reserve_max.c - blocks for prompt + max_tokens - 1 positions are set aside to the end.
 *
 * What the running ones may still come to need is summed up when a pass begins; a newcomer is
 * admitted if its own blocks to the end fit beside that. So nobody is ever preempted, as long as no
 * request produces more than its max_tokens.
 *
 * Under a layout of runs the run is the reservation, whatever max_tokens says: it is taken whole at
 * the admission, so nothing is outstanding, and what this step takes is all there is to ask for.
 */
#include "pagedkv/policy.h"

struct pass {
    uint64_t outstanding;   /* blocks that those admitted may still take */
};

static uint64_t positions_wanted(const struct pkv_request *r)
{
    return (uint64_t)r->seq.num_prompt_tokens + r->max_tokens - 1;
}

static uint32_t positions_to_end(const struct pkv_sched_view *view, const struct pkv_request *r)
{
    uint64_t wanted = positions_wanted(r);
    uint32_t last = view->max_model_len - 1;   /* the token that reaches it is never stored */
    uint32_t end = wanted < last ? (uint32_t)wanted : last;
    return end > r->seq.num_known_tokens ? end : r->seq.num_known_tokens;
}

static void begin(const void *state, const struct pkv_sched_view *view, void *scratch)
{
    (void)state;
    struct pass *pass = scratch;
    pass->outstanding = 0;
    for (size_t i = 0; !view->takes_runs && i < view->num_running; i++) {
        const struct pkv_request *r = view->running[i];
        pass->outstanding += pkv_cache_need(view->cache, &r->seq, NULL, positions_to_end(view, r));
    }
}

static enum pkv_admit_verdict consider(const void *state, const struct pkv_sched_view *view,
                                       void *scratch, const struct pkv_candidate *c,
                                       uint64_t *need_blocks)
{
    (void)state;
    const struct pass *pass = scratch;
    uint32_t end = positions_to_end(view, c->request);
    uint64_t need = view->takes_runs
                        ? c->need_blocks
                        : pkv_cache_need(view->cache, &c->request->seq, c->hit, end);
    if (c->need_blocks > view->num_free_blocks)
        return PKV_ADMIT_BLOCKS;
    *need_blocks = need + pass->outstanding;
    return *need_blocks > view->num_free_blocks ? PKV_ADMIT_GATE : PKV_ADMIT;
}

static void took(const void *state, const struct pkv_sched_view *view, void *scratch,
                 const struct pkv_candidate *c)
{
    (void)state;
    struct pass *pass = scratch;
    if (view->takes_runs)
        return;
    uint32_t end = positions_to_end(view, c->request);
    pass->outstanding += pkv_cache_need(view->cache, &c->request->seq, NULL, end);
}

const struct pkv_admit_ops pkv_admit_reserve_max = {
    .info = {.name = "reserve_max",
             .summary = "blocks for prompt + max_tokens - 1 positions are set aside to the end",
             .source = "contiguous reservation; TensorRT-LLM GUARANTEED_NO_EVICT is its kin"},
    .pass_size = sizeof(struct pass),
    .begin = begin,
    .consider = consider,
    .took = took,
    .positions_wanted = positions_wanted,
};
