/*
 * admit_future_peak.c - Past-Future: start one if the most memory that all will ever hold together
 * stays below the pool. One step is one token there: drafts, and the positions asked for beyond them,
 * are not reckoned with.
 *
 * The output lengths are the true ones (hindsight); the published rule draws them from the outputs
 * of the past, and LightLLM adds the tokens that its prompt cache pins. A request holds all its
 * tokens, the last one included, rounded up to blocks; blocks shared by a prefix count for each. The
 * bound is strict, as published, but for one that finds nobody running, which starts if its blocks
 * are there.
 */
#include "policy/peak.h"

static void begin(const void *state, const struct pkv_sched_view *view, void *pass)
{
    (void)state;
    peak_pass_begin(pass, view, true);
}

static enum pkv_admit_verdict consider(const void *state, const struct pkv_sched_view *view,
                                       void *pass, const struct pkv_candidate *c,
                                       uint64_t *need_blocks)
{
    (void)state;
    if (c->need_blocks > view->num_free_blocks)
        return PKV_ADMIT_BLOCKS;
    if (pkv_view_num_in(view) == 0)
        return PKV_ADMIT;
    uint64_t peak = peak_pass_with(pass, view, c->request, true);
    *need_blocks = peak > c->need_blocks ? peak : c->need_blocks;
    return peak < view->num_blocks ? PKV_ADMIT : PKV_ADMIT_GATE;
}

static void took(const void *state, const struct pkv_sched_view *view, void *pass,
                 const struct pkv_candidate *c)
{
    (void)state;
    peak_pass_took(pass, view, c->request, true);
}

const struct pkv_admit_ops pkv_admit_future_peak = {
    .info = {.name = "future_peak",
             .summary = "the future peak of all that run must stay below the pool (true lengths)",
             .source = "Past-Future (LightLLM, req_queue/continues_batch/impl.py), read, not run"},
    .pass_size = sizeof(struct peak_pass),
    .pass_size_each = sizeof(struct peak_item),
    .begin = begin,
    .consider = consider,
    .took = took,
};
