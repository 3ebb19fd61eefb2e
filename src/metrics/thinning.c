/*
 * thinning.c - which rows of the step log are kept: every nth, or those in which a count changed.
 */
#include "metrics/metrics_private.h"

/* Does a count of requests or blocks, or the limit, differ? Times and tokens always do. */
static bool has_changed(const struct pkv_step_row *a, const struct pkv_step_row *b)
{
    return a->waiting != b->waiting || a->running != b->running ||
           a->free_blocks != b->free_blocks || a->cached_blocks != b->cached_blocks ||
           a->free_blocks_end != b->free_blocks_end || a->admitted != b->admitted ||
           a->resumed != b->resumed || a->preempted != b->preempted ||
           a->finished != b->finished || a->rejected != b->rejected ||
           a->aborted != b->aborted || a->evicted_blocks != b->evicted_blocks ||
           a->swapped_out_blocks != b->swapped_out_blocks ||
           a->swapped_in_blocks != b->swapped_in_blocks || a->limit != b->limit;
}

bool thinning_keeps(struct thinning *t, const struct pkv_step_row *row)
{
    if (t->every > 1 && (uint64_t)row->step % t->every != 0)
        return false;
    if (!t->on_change)
        return true;
    if (t->has_last_kept && !has_changed(row, &t->last_kept))
        return false;
    t->last_kept = *row;
    t->has_last_kept = true;
    return true;
}
