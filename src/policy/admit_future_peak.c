/*
 * admit_future_peak.c - Past-Future: start one if the most memory that all will ever hold together
 * stays below the pool.
 *
 * The output lengths are the true ones (hindsight); the published rule draws them from the outputs
 * of the past, and LightLLM adds the tokens that its prompt cache pins. A request holds all its
 * tokens, the last one included, rounded up to blocks; blocks shared by a prefix count for each. The
 * bound is strict, as published, but for one that finds nobody running, which starts if its blocks
 * are there.
 */
#include "policy/peak.h"
#include "policy/true_length.h"

struct pass {
    size_t num;
    struct peak_item items[];   /* [num], sorted */
};

static struct peak_item item_of(const struct pkv_sched_view *view, const struct pkv_request *r)
{
    return (struct peak_item){r->seq.num_known_tokens, true_remaining(view, r)};
}

static void begin(const void *state, const struct pkv_sched_view *view, void *scratch)
{
    struct pass *pass = scratch;
    (void)state;
    for (pass->num = 0; pass->num < view->num_running; pass->num++)
        pass->items[pass->num] = item_of(view, view->running[pass->num]);
    peak_sort(pass->items, pass->num);
}

static enum pkv_admit_verdict consider(const void *state, const struct pkv_sched_view *view,
                                       void *scratch, const struct pkv_candidate *c,
                                       uint64_t *need_blocks)
{
    const struct pass *pass = scratch;
    struct peak_item item = item_of(view, c->request);
    (void)state;
    if (c->need_blocks > view->num_free_blocks)
        return PKV_ADMIT_BLOCKS;
    if (view->num_running == 0)
        return PKV_ADMIT;
    uint64_t peak = peak_blocks(pass->items, pass->num, &item, pkv_cache_block_size(view->cache));
    *need_blocks = peak > c->need_blocks ? peak : c->need_blocks;
    return peak < view->num_blocks ? PKV_ADMIT : PKV_ADMIT_GATE;
}

static void took(const void *state, const struct pkv_sched_view *view, void *scratch,
                 const struct pkv_candidate *c)
{
    struct pass *pass = scratch;
    (void)state;
    peak_insert(pass->items, pass->num++, item_of(view, c->request));
}

const struct pkv_admit_ops pkv_admit_future_peak = {
    .info = {.name = "future_peak",
             .summary = "the future peak of all that run must stay below the pool (true lengths)",
             .source = "Past-Future (LightLLM, req_queue/continues_batch/impl.py), read, not run"},
    .pass_size = sizeof(struct pass),
    .pass_size_each = sizeof(struct peak_item),
    .begin = begin,
    .consider = consider,
    .took = took,
};
