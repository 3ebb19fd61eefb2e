/*
 * admit_whole_prompt.c - the gate: all known tokens must fit now, not only this step's chunk.
 *
 * It tests, it does not reserve: two long prompts can both pass. A resumed request's known tokens
 * are its prompt and what it has generated. The watermark counts while anybody runs. A group with a
 * window is asked for no more than its window and one step's whole budget of tokens.
 */
#include "pagedkv/policy.h"

static enum pkv_admit_verdict consider(const void *state, const struct pkv_sched_view *view,
                                       void *pass, const struct pkv_candidate *c,
                                       uint64_t *need_blocks)
{
    (void)state, (void)pass;
    uint64_t watermark = pkv_view_num_in(view) ? view->num_watermark_blocks : 0;
    const struct pkv_seq *seq = &c->request->seq;
    if (c->need_blocks > view->num_free_blocks)
        return PKV_ADMIT_BLOCKS;
    uint64_t need = pkv_cache_need_gate(view->cache, seq, c->hit, seq->num_known_tokens,
                                        view->max_step_tokens);
    need = need > c->need_blocks ? need : c->need_blocks;   /* it may have to take more at once */
    *need_blocks = need + watermark;
    return *need_blocks > view->num_free_blocks ? PKV_ADMIT_GATE : PKV_ADMIT;
}

const struct pkv_admit_ops pkv_admit_whole_prompt = {
    .info = {.name = "whole_prompt",
             .summary = "all known tokens must fit now",
             .source = "vLLM V1, scheduler_reserve_full_isl"},
    .consider = consider,
    .counts_budget = true,
};
