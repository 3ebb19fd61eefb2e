/*
 * admit_static_batch.c - a batch is filled, then shut: nobody starts while one that runs has a token,
 * and each has its blocks to the end set aside; see reserve.h.
 *
 * So a batch takes in newcomers until its first token is out and then runs down to its last one.
 * One that was preempted comes back with the tokens it had, and shuts the batch from then on.
 *
 * After STATIC_BATCH of TensorRT-LLM's capacity scheduler, which starts nobody while one decodes.
 */
#include "policy/reserve.h"

struct pass {
    struct reserve_pass reserve;
    bool is_shut;
};

static void begin(const void *state, const struct pkv_sched_view *view, void *scratch)
{
    (void)state;
    struct pass *pass = scratch;
    reserve_begin(&pass->reserve, view);
    pass->is_shut = false;
    for (size_t i = 0; i < pkv_view_num_in(view) && !pass->is_shut; i++)
        pass->is_shut = pkv_view_in(view, i)->num_emitted > 0;
}

/* A shut batch is a gate, whatever blocks there are. */
static enum pkv_admit_verdict consider(const void *state, const struct pkv_sched_view *view,
                                       void *scratch, const struct pkv_candidate *c,
                                       uint64_t *need_blocks)
{
    (void)state;
    const struct pass *pass = scratch;
    enum pkv_admit_verdict verdict = reserve_consider(&pass->reserve, view, c, need_blocks);
    return pass->is_shut ? PKV_ADMIT_GATE : verdict;
}

static void took(const void *state, const struct pkv_sched_view *view, void *scratch,
                 const struct pkv_candidate *c)
{
    (void)state;
    struct pass *pass = scratch;
    reserve_took(&pass->reserve, view, c);
    pass->is_shut = c->request->num_emitted > 0;
}

const struct pkv_admit_ops pkv_admit_static_batch = {
    .info = {.name = "static_batch",
             .summary = "as reserve_max, and nobody starts while one that runs has a token",
             .source = "TensorRT-LLM, STATIC_BATCH: its rule of admission, in blocks of this pool; "
                       "not the whole engine"},
    .pass_size = sizeof(struct pass),
    .begin = begin,
    .consider = consider,
    .took = took,
    .positions_wanted = reserve_positions_wanted,
};
