/*
 * gaps.c - when tokens came out, at no cost per token.
 *
 * A request that decodes undisturbed gets a token in every step, so its gaps are the durations of
 * the steps, and only their number and their maximum matter. Its times are brought up to date when
 * it is next touched: the maximum over the steps in between comes from a stack of steps of falling
 * duration. All other tokens are written one by one.
 */
#include "base/alloc.h"
#include "engine/engine_private.h"

int gaps_reserve_step(struct pkv_engine *e, struct pkv_err *err)
{
    struct longest_since *l = &e->longest;
    return pkv_grow(&l->steps, &l->capacity, l->num + 1, sizeof(*l->steps), err);
}

void gaps_note_step(struct pkv_engine *e)
{
    struct longest_since *l = &e->longest;
    while (l->num > 0 && l->steps[l->num - 1].dur_ns <= e->row.dur_ns)
        l->num--;
    l->steps[l->num].step = e->row.step;
    l->steps[l->num++].dur_ns = e->row.dur_ns;
}

/* The longest of the steps from `step` on; the last one noted is among them. */
static int64_t longest_from(const struct longest_since *l, int64_t step)
{
    size_t low = 0, high = l->num - 1;
    PKV_ASSERT(l->num > 0 && l->steps[high].step >= step);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->steps[middle].step >= step)
            high = middle;
        else
            low = middle + 1;
    }
    return l->steps[low].dur_ns;
}

void gaps_settle(struct pkv_engine *e, struct pkv_request *r, int64_t now_ns)
{
    uint32_t missing = r->num_emitted - r->timed_tokens;
    if (missing == 0)
        return;
    int64_t longest = longest_from(&e->longest, r->timed_step + 1);
    if (longest > r->max_gap_ns)
        r->max_gap_ns = longest;
    r->timed_tokens = r->num_emitted;
    r->timed_step += missing;
    PKV_ASSERT(r->timed_step == e->longest.steps[e->longest.num - 1].step);
    r->last_token_ns = now_ns;
}

void gaps_tokens(struct pkv_engine *e, struct pkv_request *r, uint32_t num, int64_t end_ns)
{
    bool is_first = r->first_token_ns == PKV_NO_TIME;
    int64_t gap = is_first ? 0 : end_ns - r->last_token_ns;
    r->timed_tokens += num;
    r->timed_step = e->row.step;
    r->last_token_ns = end_ns;
    PKV_ASSERT(r->timed_tokens == r->num_emitted);
    for (uint32_t i = 1; i < num; i++)
        emit_gap(e, 0);   /* they come out together */
    if (is_first) {
        r->first_token_ns = end_ns;
        return;
    }
    if (gap > r->max_gap_ns)
        r->max_gap_ns = gap;
    if (gap > e->row.max_gap_ns)
        e->row.max_gap_ns = gap;
    if (gap == e->row.dur_ns)
        e->row.regular_gaps++;
    else
        emit_gap(e, gap);
}
