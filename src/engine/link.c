/*
 * link.c - the link between pool and host: one queue for both ways, first come first served, beside the
 * compute.
 *
 * Nothing is ever taken out of the queue: what nobody waits for any more is copied all the same.
 */
#include <inttypes.h>

#include "engine/engine_private.h"

static void count(struct pkv_engine *e, const struct pkv_transfer *t, int64_t ns)
{
    struct pkv_engine_figures *f = &e->figures;
    f->link_busy_ns += ns;
    if (t->is_out) {
        e->row.swapped_out_blocks += t->num_blocks;
        f->swapped_out_blocks += t->num_blocks;
    } else {
        e->row.swapped_in_blocks += t->num_blocks;
        f->swapped_in_blocks += t->num_blocks;
    }
}

int link_begin(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err)
{
    const struct pkv_sched_config *config = pkv_sched_config(e->sched);
    size_t num;
    struct pkv_transfer *transfers = pkv_sched_transfers(e->sched, &num);
    for (size_t i = num - plan->num_transfers; i < num; i++) {
        int64_t ns = pkv_link_time_ns(&config->swap.link, transfers[i].num_blocks,
                                      pkv_swap_block_bytes(config));
        int64_t begin = e->link_free_ns > e->now_ns ? e->link_free_ns : e->now_ns;
        if (ns >= PKV_LONGEST_STEP_NS || begin > INT64_MAX - ns)
            return pkv_fail(err, PKV_ERR_INPUT, "a transfer of %" PRIu32 " blocks that begins at %" PRId64
                            " ns would end beyond the range of virtual time",
                            transfers[i].num_blocks, begin);
        transfers[i].done_ns = e->link_free_ns = begin + ns;
        count(e, &transfers[i], ns);
    }
    for (size_t i = 0; i < plan->num_preemptions; i++) {
        e->figures.swaps += plan->preemptions[i].num_swapped_blocks > 0;
        e->figures.swap_fallbacks += plan->preemptions[i].host_was_full;
    }
    uint32_t used = pkv_cache_figures(pkv_sched_cache(e->sched)).num_host_used;
    if (used > e->figures.peak_host_blocks)
        e->figures.peak_host_blocks = used;
    return 0;
}

void link_done(struct pkv_engine *e)
{
    for (;;) {
        int64_t next = link_next_ns(e);
        if (next == PKV_NO_TIME || next > e->now_ns)
            return;
        pkv_sched_transfer_done(e->sched);
    }
}

int64_t link_wait_ns(const struct pkv_engine *e)
{
    return e->link_free_ns > e->now_ns ? e->link_free_ns - e->now_ns : 0;
}

int64_t link_next_ns(const struct pkv_engine *e)
{
    size_t num;
    const struct pkv_transfer *transfers = pkv_sched_transfers(e->sched, &num);
    return num > 0 ? transfers[0].done_ns : PKV_NO_TIME;
}
