/*
 * grow.c - the running requests, from the first admitted on: each gets its tokens, and whoever
 * lacks a block gives others up until it has one.
 *
 * The victim may have been scheduled earlier in this step; then its tokens go back to the budget,
 * its entry leaves the plan and the walk steps back by one place. One that was walked past without
 * tokens moves the others up all the same, so the one behind the grower is passed over in this
 * step, as in the engine. One that is not of this turn's parts does not.
 *
 * Under grow: whole_batch room is made for all of them before the walk, which then lacks nothing.
 *
 * Source: vllm/v1/core/sched/scheduler.py, schedule(), first loop.
 */
#include "sched/sched_private.h"

static uint32_t tokens_wanted(const struct pkv_sched *s, const struct pkv_request *r,
                              uint64_t budget)
{
    /* The engine also cuts at max_model_len - 1. Where that bites without drafts, its front door has
     * turned the prompt away; here (oversized: wait) it is computed and ends with its first token. */
    if (flight_is_last(s, r))
        return 0;
    uint32_t drafts = drafts_that_fit(s, r, sched_known_tokens(r));
    uint32_t n = sched_first_chunk(&s->config, gang_num_due(r) + drafts);
    return n < budget ? n : (uint32_t)budget;
}

/* Is it of the parts that are walked in this turn? Before its growth. A token in flight is as good as
 * one that is out. */
static bool takes_part(const struct pkv_request *r, unsigned parts)
{
    if (r->steady.is_in || pkv_sample_follows(r))
        return false;
    bool decodes = r->num_emitted + r->num_in_flight > 0 && !r->sample.waits_for_fork &&
                   sched_known_tokens(r) - r->seq.num_computed_tokens == 1;
    return parts & (decodes ? PKV_MIX_DECODES : PKV_MIX_PROMPTS);
}

static void requeue(struct pkv_sched *s, struct pkv_request *r)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    sched_joined(s, r);
    switch (s->config.policies.requeue->place) {
    case PKV_PLACE_FRONT:
        pkv_waiting_put_front(s->waiting, r);
        break;
    case PKV_PLACE_TAIL:
        pkv_waiting_put_tail(s->waiting, r, order->by_arrival ? 0 : INT64_MAX);
        break;
    case PKV_PLACE_BY_ORDER:
        pkv_waiting_put_again(s->waiting, r, sched_order_key(s, r));
        break;
    }
}

/* A victim that was scheduled in this step: as if it had not been. */
static void take_back(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r)
{
    uint32_t n = plan_cancel(s, plan, r);
    uint32_t computed = r->seq.num_computed_tokens - n;
    if (s->config.priority_victim == PKV_PRIORITY_VICTIM_SAFE)
        pkv_cache_unpublish(s->cache, &r->seq, computed);
}

static void give_up(struct pkv_sched *s, struct pkv_plan *plan, size_t index,
                    struct pkv_request *grower)
{
    struct pkv_request *victim = s->running[index];
    uint32_t lost = victim->seq.num_computed_tokens;
    if (plan_has(plan, victim)) {
        lost -= plan->entries[victim->sched_entry].num_tokens;
        take_back(s, plan, victim);
    }
    sched_remove_running(s, index);
    struct pkv_plan_preemption *p = &plan->preemptions[plan->num_preemptions++];
    *p = (struct pkv_plan_preemption){
        .ref = pkv_request_ref(victim),
        .grower = pkv_request_ref(grower),
    };
    if (!swap_out(s, plan, victim, lost, p)) {
        p->freed_blocks = pkv_cache_release(s->cache, &victim->seq);
        p->lost_tokens = lost;
        pkv_request_set_status(victim, PKV_REQUEST_PREEMPTED);
    }
    victim->num_drafts = 0;
    victim->num_preemptions++;
    s->num_preemptions++;
}

/* Give it up with all its samples, which stand side by side, the last one first. returns by how many
 * places the walk, at `place`, steps back: for each that was scheduled or is not of this turn. */
static size_t preempt(struct pkv_sched *s, struct pkv_plan *plan, size_t index,
                      struct pkv_request *grower, unsigned parts, size_t place)
{
    struct pkv_request *victim = s->running[index], *first = pkv_sample_first(victim);
    size_t num = pkv_sample_count(victim), num_before = 0;
    while (s->running[index] != first)
        index--;
    for (size_t i = index + num; i-- > index;) {
        const struct pkv_request *r = s->running[i];
        PKV_ASSERT(pkv_sample_first(r) == first);
        num_before += plan_has(plan, r) || (i < place && !takes_part(r, parts));
        give_up(s, plan, i, grower);
    }
    sched_update_view(s);
    requeue(s, gang_gather(s, victim));
    return num_before;
}

/* With a layout of runs enough may be free and yet not in one piece. */
static uint32_t blocks_short(const struct pkv_sched *s, const struct pkv_request *r,
                             uint32_t num_positions)
{
    uint32_t need = pkv_cache_need(s->cache, &r->seq, NULL, num_positions);
    return need > s->view.num_free_blocks ? need - s->view.num_free_blocks : 1;
}

enum grown { GROWN, NOT_GROWN, GAVE_ITSELF_UP };

/* Give r its n tokens. *place is r's place in running and follows when others leave before it. */
static enum grown grow_one(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
                           uint32_t n, unsigned parts, size_t *place)
{
    uint32_t positions = drafts_positions(s, r->seq.num_computed_tokens + n);
    while (pkv_cache_grow(s->cache, &r->seq, NULL, n, positions) == PKV_ALLOC_SHORT) {
        steady_spell_out(s, plan);
        steady_leave_all(s, plan);   /* who is not of this turn */
        sched_update_view(s);
        uint32_t num_short = blocks_short(s, r, positions);
        s->view.num_short_blocks = swap_lacks(s, num_short);
        if (s->view.num_short_blocks == 0) {
            swap_await(s, plan, num_short);
            return NOT_GROWN;
        }
        size_t index = s->config.policies.preempt->pick(s->preempt_state, &s->view, r);
        if (index == SIZE_MAX)
            return NOT_GROWN;
        PKV_ASSERT(index < s->num_running);
        *place -= preempt(s, plan, index, r, parts, *place);
        if (r->status != PKV_REQUEST_RUNNING)
            return GAVE_ITSELF_UP;
    }
    return GROWN;
}

static void add_grown(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r, uint32_t n,
                      const uint32_t *blocks_before)
{
    struct pkv_plan_entry entry = {
        .ref = pkv_request_ref(r),
        .num_tokens = n,
        .first_position = r->seq.num_computed_tokens - n,
        .kind = PKV_ENTRY_RUNNING,
    };
    for (uint32_t g = 0; g < s->config.num_groups; g++)
        entry.num_blocks_before[g] = blocks_before[g];
    sched_note_peak(r);
    plan_add_entry(s, plan, entry);
}

static void grow_one_by_one(struct pkv_sched *s, struct pkv_plan *plan, unsigned parts)
{
    if (parts & PKV_MIX_DECODES)
        steady_grow(s, plan);
    for (size_t i = steady_num_first(s); i < s->num_running && s->budget > 0; i++) {
        struct pkv_request *r = s->running[i];
        if (!takes_part(r, parts))
            continue;
        uint32_t n = tokens_wanted(s, r, s->budget);
        if (n == 0)
            continue;
        uint32_t blocks_before[PKV_MAX_GROUPS];
        for (uint32_t g = 0; g < s->config.num_groups; g++)
            blocks_before[g] = r->seq.tables[g].num;
        switch (grow_one(s, plan, r, n, parts, &i)) {
        case GROWN:
            add_grown(s, plan, r, n, blocks_before);
            break;
        case NOT_GROWN:
            break;
        case GAVE_ITSELF_UP:
            return;   /* those behind it get nothing in this step */
        }
    }
}

/* --- all at once ----------------------------------------------------------------------------- */

/* Blocks that all of this turn need together; *out_grower is the first that would lack one, as far as
 * those who are not steady go. */
static uint64_t blocks_wanted(const struct pkv_sched *s, unsigned parts, uint64_t num_free,
                              struct pkv_request **out_grower)
{
    uint64_t sum = 0, budget = s->budget;
    if (parts & PKV_MIX_DECODES) {
        steady_goes_on(s, &sum);
        budget -= s->steady.num;
    }
    *out_grower = NULL;
    for (size_t i = steady_num_first(s); i < s->num_running && budget > 0; i++) {
        struct pkv_request *r = s->running[i];
        if (!takes_part(r, parts))
            continue;
        uint32_t n = tokens_wanted(s, r, budget);
        if (n == 0)
            continue;
        uint32_t positions = drafts_positions(s, r->seq.num_computed_tokens + n);
        sum += pkv_cache_need(s->cache, &r->seq, NULL, positions);
        budget -= n;
        if (sum > num_free && !*out_grower)
            *out_grower = r;
    }
    return sum;
}

/* Give up whoever is too much, but for the last one (or its samples). A copy is reckoned with for each
 * that shares the block it writes into, though the last of them will need none. If the policy names
 * nobody, the walk that follows gives blocks to those who come first. */
static void make_room(struct pkv_sched *s, struct pkv_plan *plan, unsigned parts)
{
    uint64_t num_due;
    if ((parts & PKV_MIX_DECODES) && !steady_goes_on(s, &num_due))
        steady_leave_all(s, plan);
    while (s->num_running > 0 && s->num_running > pkv_sample_count(s->running[0])) {
        struct pkv_request *grower;
        uint32_t num_free = pkv_cache_num_free(s->cache);
        uint64_t need = blocks_wanted(s, parts, num_free, &grower);
        uint32_t num_lacking = need > num_free ? swap_lacks(s, need - num_free) : 0;
        if (num_lacking == 0)
            return;
        if (s->steady.num + s->steady.num_lasts > 0) {
            steady_leave_all(s, plan);
            continue;
        }
        sched_update_view(s);
        s->view.num_short_blocks = num_lacking;
        size_t index = s->config.policies.preempt->pick(s->preempt_state, &s->view, grower);
        if (index == SIZE_MAX)
            return;
        PKV_ASSERT(index < s->num_running);
        preempt(s, plan, index, grower, parts, 0);
    }
}

void sched_grow_running(struct pkv_sched *s, struct pkv_plan *plan, unsigned parts)
{
    if (parts & PKV_MIX_DECODES)
        steady_part_with_lasts(s, plan);
    switch (s->config.policies.grow->shape) {
    case PKV_GROW_ONE_BY_ONE:
        break;
    case PKV_GROW_WHOLE_BATCH:
        make_room(s, plan, parts);
        break;
    }
    grow_one_by_one(s, plan, parts);
}
