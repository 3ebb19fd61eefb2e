/*
 * plan.c - one step's decisions as a plain value: entries come in and are taken out again, and the
 * sums go with them.
 */
#include "base/alloc.h"
#include "sched/sched_private.h"

int plan_reserve(struct pkv_sched *s, struct pkv_plan *plan, size_t num, struct pkv_err *err)
{
    struct plan_slot *slot = &s->slots[plan->number & 1];
    PKV_ASSERT(plan == &slot->plan);
    if (pkv_grow(&plan->entries, &slot->entries_capacity, num, sizeof(*plan->entries), err) < 0 ||
        pkv_grow(&plan->admissions, &slot->admissions_capacity, num, sizeof(*plan->admissions),
                 err) < 0 ||
        pkv_grow(&plan->preemptions, &slot->preemptions_capacity, num, sizeof(*plan->preemptions),
                 err) < 0 ||
        pkv_grow(&plan->finished, &slot->finished_capacity, num, sizeof(struct pkv_request *),
                 err) < 0 ||
        pkv_grow(&plan->forks, &slot->forks_capacity, num, sizeof(*plan->forks), err) < 0)
        return -1;
    return 0;
}

/* A scheduled request with more than one token, drafts not counted, is prefilled, one with a single
 * token decodes. */
static void count(struct pkv_plan *plan, const struct pkv_plan_entry *entry, uint64_t sign)
{
    uint64_t n = entry->num_tokens, own = n - entry->num_drafts;
    plan->num_tokens += sign * n;
    plan->num_drafts += sign * entry->num_drafts;
    plan->num_context_tokens += sign * (entry->first_position + n);
    plan->num_recomputed_tokens += sign * entry->num_recomputed;
    if (own > 1)
        plan->num_prefill_tokens += sign * own;
    else
        plan->num_decodes += sign;
}

void plan_add_entry(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_plan_entry entry)
{
    struct pkv_request *r = entry.ref.request;
    uint32_t highest = r->num_highest_tokens;
    uint32_t below = highest > entry.first_position ? highest - entry.first_position : 0;
    entry.num_recomputed = below < entry.num_tokens ? below : entry.num_tokens;
    uint32_t end = entry.first_position + entry.num_tokens, known = sched_known_tokens(r);
    /* One that is computed again up to its fork has its next token in the outputs that come after. */
    entry.samples = end >= known && !(r->sample.waits_for_fork && r->num_emitted > 0);
    entry.num_drafts = end > known ? end - known : 0;
    r->sched_mark = plan->number;
    r->sched_entry = (uint32_t)plan->num_entries;
    plan->entries[plan->num_entries++] = entry;
    count(plan, &entry, 1);
    s->budget -= entry.num_tokens;
}

bool plan_has(const struct pkv_plan *plan, const struct pkv_request *r)
{
    return r->sched_mark == plan->number;
}

uint32_t plan_cancel(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r)
{
    PKV_ASSERT(plan_has(plan, r));
    struct pkv_plan_entry gone = plan->entries[r->sched_entry];
    plan->num_entries--;
    for (size_t i = r->sched_entry; i < plan->num_entries; i++) {
        plan->entries[i] = plan->entries[i + 1];
        plan->entries[i].ref.request->sched_entry = (uint32_t)i;
    }
    r->sched_mark = UINT64_MAX;
    count(plan, &gone, UINT64_MAX);   /* minus, modulo 2^64 */
    s->budget += gone.num_tokens;
    return gone.num_tokens;
}
