/*
 * admit_reserve_max.c - blocks for prompt + max_tokens - 1 positions are set aside to the end; see
 * reserve.h.
 */
#include "policy/reserve.h"

static void begin(const void *state, const struct pkv_sched_view *view, void *pass)
{
    (void)state;
    reserve_begin(pass, view);
}

static enum pkv_admit_verdict consider(const void *state, const struct pkv_sched_view *view,
                                       void *pass, const struct pkv_candidate *c,
                                       uint64_t *need_blocks)
{
    (void)state;
    return reserve_consider(pass, view, c, need_blocks);
}

static void took(const void *state, const struct pkv_sched_view *view, void *pass,
                 const struct pkv_candidate *c)
{
    (void)state;
    reserve_took(pass, view, c);
}

const struct pkv_admit_ops pkv_admit_reserve_max = {
    .info = {.name = "reserve_max",
             .summary = "blocks for prompt + max_tokens - 1 positions are set aside to the end",
             .source = "contiguous reservation; TensorRT-LLM GUARANTEED_NO_EVICT is its kin"},
    .pass_size = sizeof(struct reserve_pass),
    .begin = begin,
    .consider = consider,
    .took = took,
    .positions_wanted = reserve_positions_wanted,
};
