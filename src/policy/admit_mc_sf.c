/*
 * admit_mc_sf.c - hindsight: start one if memory suffices at every future end of a request.
 *
 * With true output lengths, one token a step each, and whole prompts at once this admits as much as
 * can run without a preemption; prompts computed in pieces fall behind what is reckoned here, and
 * blocks shared by a prefix count for each. A last token is never stored. With drafts, or ends that are
 * seen a step late, the reckoning would be of another future, so neither is taken.
 *
 * After MC-SF (Jaillet et al., arXiv 2502.07115), whose other half is the order sjf_true.
 */
#include "policy/peak.h"

static void begin(const void *state, const struct pkv_sched_view *view, void *pass)
{
    (void)state;
    peak_pass_begin(pass, view, false);
}

static enum pkv_admit_verdict consider(const void *state, const struct pkv_sched_view *view,
                                       void *pass, const struct pkv_candidate *c,
                                       uint64_t *need_blocks)
{
    (void)state;
    if (c->need_blocks > view->num_free_blocks)
        return PKV_ADMIT_BLOCKS;
    uint64_t peak = peak_pass_with(pass, view, c->request, false);
    *need_blocks = peak > c->need_blocks ? peak : c->need_blocks;
    return peak <= view->num_blocks ? PKV_ADMIT : PKV_ADMIT_GATE;
}

static void took(const void *state, const struct pkv_sched_view *view, void *pass,
                 const struct pkv_candidate *c)
{
    (void)state;
    peak_pass_took(pass, view, c->request, false);
}

const struct pkv_admit_ops pkv_admit_mc_sf = {
    .info = {.name = "mc_sf",
             .summary = "memory must suffice at every future end of a request (true lengths)",
             .source = "MC-SF, arXiv 2502.07115"},
    .pass_size = sizeof(struct peak_pass),
    .pass_size_each = sizeof(struct peak_item),
    .begin = begin,
    .consider = consider,
    .took = took,
    .needs_token_steps = true,
};
