/*
 * admit_mc_sf.c - hindsight: start one if memory suffices at every future end of a request.
 *
 * With true output lengths, one token a step each, and whole prompts at once this admits as much as
 * can run without a preemption; prompts computed in pieces fall behind what is reckoned here, and
 * blocks shared by a prefix count for each. A last token is never stored.
 *
 * After MC-SF (Jaillet et al., arXiv 2502.07115), whose other half is the order sjf_true.
 */
#include "policy/peak.h"
#include "policy/true_length.h"

struct pass {
    size_t num;
    struct peak_item items[];   /* [num], sorted */
};

static struct peak_item item_of(const struct pkv_sched_view *view, const struct pkv_request *r)
{
    return (struct peak_item){r->seq.num_known_tokens - 1, true_remaining(view, r)};
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
    uint64_t peak = peak_blocks(pass->items, pass->num, &item, pkv_cache_block_size(view->cache));
    *need_blocks = peak > c->need_blocks ? peak : c->need_blocks;
    return peak <= view->num_blocks ? PKV_ADMIT : PKV_ADMIT_GATE;
}

static void took(const void *state, const struct pkv_sched_view *view, void *scratch,
                 const struct pkv_candidate *c)
{
    struct pass *pass = scratch;
    (void)state;
    peak_insert(pass->items, pass->num++, item_of(view, c->request));
}

const struct pkv_admit_ops pkv_admit_mc_sf = {
    .info = {.name = "mc_sf",
             .summary = "memory must suffice at every future end of a request (true lengths)",
             .source = "MC-SF, arXiv 2502.07115"},
    .pass_size = sizeof(struct pass),
    .pass_size_each = sizeof(struct peak_item),
    .begin = begin,
    .consider = consider,
    .took = took,
};
