/*
 * admit_first_chunk.c - this step's chunk must fit, however long the rest of the prompt is.
 */
#include "pagedkv/policy.h"

static enum pkv_admit_verdict consider(const void *state, const struct pkv_sched_view *view,
                                       void *pass, const struct pkv_candidate *c,
                                       uint64_t *need_blocks)
{
    (void)state, (void)pass;
    uint64_t watermark = pkv_view_num_in(view) ? view->num_watermark_blocks : 0;
    if (c->need_blocks > view->num_free_blocks)
        return PKV_ADMIT_BLOCKS;
    *need_blocks = c->need_blocks + watermark;
    return *need_blocks > view->num_free_blocks ? PKV_ADMIT_GATE : PKV_ADMIT;
}

const struct pkv_admit_ops pkv_admit_first_chunk = {
    .info = {.name = "first_chunk",
             .summary = "the tokens of this step must fit; the rest of the prompt is not looked at",
             .source = "vLLM V1 before 2026-03, allocate_slots"},
    .consider = consider,
};
