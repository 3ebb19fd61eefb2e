/*
 * steady.c - requests that decode undisturbed, at a cost per block and not per token.
 *
 * A running request that has one token to compute gets one in every step, as long as budget and
 * blocks last; nothing about it changes but its length. So all such requests share one clock:
 *
 *     computed positions = base + clock        known tokens = computed + 1 (outside a step)
 *
 * and a step moves the clock. Only two kinds of them are touched in a step: those whose last block
 * is full (due: they take a block) and those whose block becomes full with this token (it gets its
 * identity). Both are known from the phase, (0 - base) modulo the block size, which never changes;
 * so there is a list for each phase. When a request will end is known as well, so ends are a heap.
 *
 * With several KV groups, or a window, blocks are taken and left at more than one phase; these are
 * listed once. What a group does has to come again after a period: the least common multiple of the
 * block sizes. Otherwise nobody is steady.
 *
 * This holds while every steady request comes before every other one in the order of running, the
 * budget covers all of them, and the blocks that are due are free. Otherwise all of them are taken
 * out and the step is walked request by request, which is the meaning of it all (grow.c). So they are
 * when a mix lets them stand still in a step.
 *
 * Under async_scheduling tokens lag behind positions by the plans that are out:
 *
 *     known tokens = computed + 1 - lag
 *
 * A plan counts its steady requests and lists the others; one that becomes steady while a plan is out is
 * listed there, which `since` tells. When the last token of one is in flight it stays in running for a
 * step without getting anything, and ends when that plan is committed.
 *
 * Whoever reads a steady request's counts refreshes them first. S6 recounts.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "sched/sched_private.h"

/* Those at which a block is taken, leaves a window, or is filled; one too many when they are more than
 * there is room for. */
static void find_due_phases(struct pkv_sched *s)
{
    struct steady *t = &s->steady;
    uint32_t num_flying = s->config.async_scheduling;
    for (uint32_t rest = 0; rest < t->block_size && t->num_due_phases <= MAX_DUE_PHASES; rest++) {
        struct steady_phase phase = {.rest = rest};
        bool is_due = pkv_cache_moves_blocks(s->cache, rest, num_flying, &phase.num_taken);
        if (!is_due && !(t->visits_filled && rest + 1 == t->block_size))
            continue;
        if (t->num_due_phases < MAX_DUE_PHASES)
            t->due_phases[t->num_due_phases] = phase;
        t->num_due_phases++;
    }
}

int steady_init(struct pkv_sched *s, struct pkv_err *err)
{
    struct steady *t = &s->steady;
    t->is_plain = pkv_cache_is_plain(s->cache);
    t->block_size = pkv_cache_period(s->cache);
    t->visits_filled = s->config.prefix_cache && !s->config.async_scheduling &&
                       s->config.policies.publish->when == PKV_PUBLISH_ALLOC && t->block_size > 1;
    if (!t->is_plain)
        find_due_phases(s);
    t->is_off = t->block_size == 0 || t->num_due_phases > MAX_DUE_PHASES;
    if (t->is_off) {
        t->block_size = 1;
        t->num_due_phases = 0;
    }
    t->buckets = pkv_alloc(t->block_size, sizeof(*t->buckets), err);
    return t->buckets ? 0 : -1;
}

void steady_free(struct pkv_sched *s)
{
    pkv_heap_free(&s->steady.ends);
    pkv_free(s->steady.buckets);
    pkv_free(s->steady.due);
    pkv_free(s->steady.lasts);
}

int steady_reserve(struct pkv_sched *s, size_t num, struct pkv_err *err)
{
    struct steady *t = &s->steady;
    if (pkv_heap_reserve(&t->ends, num, err) < 0 ||
        pkv_grow(&t->lasts, &t->lasts_capacity, num, sizeof(struct pkv_request *), err) < 0)
        return -1;
    return pkv_grow(&t->due, &t->due_capacity, num, sizeof(struct pkv_request *), err);
}

/* --- one request ----------------------------------------------------------------------------- */

/* Tokens that have been planned and are not out. */
static uint32_t lag(const struct pkv_sched *s)
{
    return s->num_out + s->steady.in_step;
}

static void refresh(const struct pkv_sched *s, struct pkv_request *r)
{
    uint32_t computed = r->steady.base + (uint32_t)s->steady.clock, committed = computed - lag(s);
    pkv_seq_catch_up(&r->seq, computed);
    r->seq.num_known_tokens = committed + 1;
    r->num_emitted = r->seq.num_known_tokens - r->seq.num_prompt_tokens;
    r->num_in_flight = s->config.async_scheduling ? s->num_out : 0;
    r->seq.num_flying_tokens = r->num_in_flight;
    if (committed > r->num_highest_tokens)
        r->num_highest_tokens = committed;
}

void steady_refresh_one(const struct pkv_sched *s, struct pkv_request *r)
{
    refresh(s, r);
}

static void link_in(struct bucket *bucket, struct pkv_request *r)
{
    struct pkv_request *after = bucket->last;
    while (after && after->steady.admission > r->steady.admission)
        after = after->steady.prev;
    r->steady.prev = after;
    r->steady.next = after ? after->steady.next : bucket->first;
    *(r->steady.prev ? &r->steady.prev->steady.next : &bucket->first) = r;
    *(r->steady.next ? &r->steady.next->steady.prev : &bucket->last) = r;
    bucket->num++;
}

static void link_out(struct bucket *bucket, struct pkv_request *r)
{
    *(r->steady.prev ? &r->steady.prev->steady.next : &bucket->first) = r->steady.next;
    *(r->steady.next ? &r->steady.next->steady.prev : &bucket->last) = r->steady.prev;
    bucket->num--;
}

/* The clock after the step that is to bring its last token. */
static int64_t end_clock(const struct pkv_sched *s, const struct pkv_request *r)
{
    uint32_t rest = r->num_output_tokens - r->num_emitted;
    uint32_t room = s->max_model_len - r->seq.num_known_tokens;
    return (int64_t)(s->steady.clock + (rest < room ? rest : room)) - lag(s);
}

/* Under async it goes on in the plan that is out, and its end is the one that the scheduler is told. */
static bool may_enter(const struct pkv_sched *s, const struct pkv_request *r)
{
    if (s->steady.is_off || s->steady.hold_off > 0 || s->num_drafts > 0)
        return false;
    if (!s->config.async_scheduling)
        return true;
    return s->num_out == 1 && r->num_in_flight == 1 && r->status == PKV_REQUEST_RUNNING &&
           r->max_tokens == r->num_output_tokens && !flight_is_last(s, r);
}

/* Steps in which nobody enters after all had to leave, as what disturbed them may last. */
enum { HOLD_OFF = 8 };

void steady_enter(struct pkv_sched *s, struct pkv_request *r)
{
    struct steady *t = &s->steady;
    uint32_t computed = r->seq.num_computed_tokens;
    if (!may_enter(s, r))
        return;
    if (pkv_cache_has_left_blocks(s->cache, &r->seq)) {
        t->hold_off = 1;   /* nor may those behind it, who would then come first */
        return;
    }
    PKV_ASSERT(!r->steady.is_in && !t->in_step &&
               computed + 1 == r->seq.num_known_tokens + lag(s));
    r->steady.is_in = true;
    r->steady.since = s->num_plans;
    r->steady.base = computed - (uint32_t)t->clock;
    /* Due when computed is a multiple of the block size. */
    uint32_t until = (t->block_size - computed % t->block_size) % t->block_size;
    r->steady.phase = (uint32_t)((t->clock + until) % t->block_size);
    link_in(&t->buckets[r->steady.phase], r);
    t->num++;
    t->num_positions += computed;
    r->waiting_node.key[0] = end_clock(s, r);
    r->waiting_node.key[1] = (int64_t)r->steady.admission;
    pkv_heap_push(&t->ends, &r->waiting_node);
}

void steady_leave(struct pkv_sched *s, struct pkv_request *r)
{
    struct steady *t = &s->steady;
    if (!r->steady.is_in)
        return;
    refresh(s, r);
    r->steady.is_in = false;
    link_out(&t->buckets[r->steady.phase], r);
    t->num--;
    t->num_positions -= r->seq.num_computed_tokens;
    pkv_heap_remove(&t->ends, &r->waiting_node);
}

static struct pkv_request *owner(struct pkv_heap_node *node)
{
    return (struct pkv_request *)((char *)node - offsetof(struct pkv_request, waiting_node));
}

/* --- all of them ----------------------------------------------------------------------------- */

void steady_refresh(struct pkv_sched *s)
{
    for (size_t i = 0; s->steady.num && i < s->num_running; i++)
        if (s->running[i]->steady.is_in)
            refresh(s, s->running[i]);
}

bool steady_is_counted(const struct pkv_request *r, const struct pkv_plan *plan)
{
    return (r->steady.is_in || r->steady.is_last) && r->steady.since <= plan->number;
}

/* List whom the plan before this one counts, as they will be treated one by one. */
static void spell_out_older(struct pkv_sched *s, const struct pkv_plan *plan)
{
    struct steady *t = &s->steady;
    struct pkv_plan *older = &s->slots[(plan->number - 1) & 1].plan;
    if (!s->config.async_scheduling || s->num_out == 0 || older->num_steady == 0)
        return;
    size_t num = 0, num_steady = older->num_steady;
    for (size_t i = older->num_entries; i-- > 0;)
        older->entries[num_steady + i] = older->entries[i];
    for (size_t i = 0; i < s->num_running; i++) {
        struct pkv_request *r = s->running[i];
        if (!steady_is_counted(r, older))
            continue;
        bool has_grown = r->steady.is_in && t->in_step;
        if (r->steady.is_in)
            refresh(s, r);
        older->entries[num++] = (struct pkv_plan_entry){
            .ref = pkv_request_ref(r), .num_tokens = 1, .kind = PKV_ENTRY_RUNNING, .samples = true,
            .first_position = r->seq.num_computed_tokens - 1 - has_grown,
        };
        r->steady.is_last = false;
    }
    PKV_ASSERT(num == num_steady);
    older->num_entries += num;
    older->num_steady = t->num_lasts = 0;
}

void steady_leave_all(struct pkv_sched *s, struct pkv_plan *plan)
{
    if (s->steady.num == 0 && s->steady.num_lasts == 0)
        return;
    spell_out_older(s, plan);
    plan->left_steady = true;
    s->steady.hold_off = HOLD_OFF;
    for (size_t i = 0; i < s->num_running; i++)
        steady_leave(s, s->running[i]);
}

bool steady_come_first(const struct pkv_sched *s)
{
    size_t num_others = s->num_running - s->steady.num - s->steady.num_lasts;
    for (size_t i = s->num_running; num_others > 0; num_others -= !s->running[i]->steady.is_last)
        if (s->running[--i]->steady.is_in)
            return false;
    return true;
}

static const struct bucket *bucket_at(const struct steady *t, uint32_t rest)
{
    return &t->buckets[(t->clock + t->block_size - rest) % t->block_size];
}

/* Blocks that are taken in this step; those given back before are not counted on. */
static uint64_t num_blocks_due(const struct pkv_sched *s)
{
    const struct steady *t = &s->steady;
    uint64_t num = 0;
    if (t->is_plain)
        return t->buckets[t->clock % t->block_size].num;
    for (uint32_t i = 0; i < t->num_due_phases; i++)
        num += t->due_phases[i].num_taken *
               bucket_at(t, t->due_phases[i].rest)->num;
    return num;
}

bool steady_goes_on(const struct pkv_sched *s, uint64_t *out_num_blocks)
{
    const struct steady *t = &s->steady;
    *out_num_blocks = num_blocks_due(s);
    return t->num <= s->budget && steady_come_first(s);
}

size_t steady_num_first(const struct pkv_sched *s)
{
    return s->steady.num > 0 && steady_come_first(s) ? s->steady.num + s->steady.num_lasts : 0;
}

void steady_settle(struct pkv_sched *s)
{
    s->steady.in_step = false;
}

void steady_abort(struct pkv_sched *s, struct pkv_request *r)
{
    struct pkv_plan *out = &s->slots[(s->num_plans - 1) & 1].plan;
    if (s->num_out > 0 && r->steady.is_in && steady_is_counted(r, out))
        out->num_steady--;
    steady_leave(s, r);
}

/* They get nothing in this step, nor ever again. Only under async. */
void steady_part_with_lasts(struct pkv_sched *s, const struct pkv_plan *plan)
{
    struct steady *t = &s->steady;
    struct pkv_heap_node *node;
    while (s->config.async_scheduling && (node = pkv_heap_first(&t->ends)) &&
           node->key[0] <= (int64_t)t->clock) {
        struct pkv_request *r = owner(node);
        PKV_ASSERT(r->steady.since < plan->number);   /* or it would not have entered */
        steady_leave(s, r);
        r->steady.is_last = true;
        t->lasts[t->num_lasts++] = r;
    }
}

/* The steady requests that take a block or fill one in this step, by admission. */
static size_t list_due(struct steady *t)
{
    struct pkv_request *a = t->buckets[t->clock % t->block_size].first;
    struct pkv_request *b = NULL;
    size_t num = 0;
    if (t->visits_filled)
        b = t->buckets[(t->clock + 1) % t->block_size].first;
    while (a || b) {
        bool take_a = a && (!b || a->steady.admission < b->steady.admission);
        struct pkv_request **next = take_a ? &a : &b;
        t->due[num++] = *next;
        *next = (*next)->steady.next;
    }
    return num;
}

static int by_admission(const void *a, const void *b)
{
    const struct pkv_request *const *x = a, *const *y = b;
    return ((*x)->steady.admission > (*y)->steady.admission) -
           ((*x)->steady.admission < (*y)->steady.admission);
}

/* The same where groups have phases of their own. */
static size_t list_due_phases(struct steady *t)
{
    size_t num = 0, num_lists = 0;
    for (uint32_t i = 0; i < t->num_due_phases; i++) {
        struct pkv_request *r = bucket_at(t, t->due_phases[i].rest)->first;
        num_lists += r != NULL;
        for (; r; r = r->steady.next)
            t->due[num++] = r;
    }
    if (num_lists > 1)
        qsort(t->due, num, sizeof(struct pkv_request *), by_admission);
    return num;
}

static void grow_due(struct pkv_sched *s, struct pkv_request *r)
{
    refresh(s, r);
    pkv_cache_extend(s->cache, &r->seq);
    if (s->config.async_scheduling && s->config.policies.publish->when == PKV_PUBLISH_ALLOC)
        pkv_cache_publish(s->cache, &r->seq);   /* of its former block all tokens are known by now */
    sched_note_peak(r);
}

void steady_grow(struct pkv_sched *s, struct pkv_plan *plan)
{
    struct steady *t = &s->steady;
    t->hold_off -= t->hold_off > 0;
    if (t->num == 0)
        return;
    uint64_t num_wanted;
    if (!steady_goes_on(s, &num_wanted) || num_wanted > pkv_cache_num_free(s->cache)) {
        steady_leave_all(s, plan);
        return;
    }
    size_t num_due = t->is_plain ? list_due(t) : list_due_phases(t);
    for (size_t i = 0; i < num_due; i++)
        grow_due(s, t->due[i]);
    pkv_cache_advance(s->cache, t->num - num_due);
    t->clock++;
    t->in_step = true;
    t->num_positions += t->num;
    plan->num_steady = t->num;
    plan->num_tokens += t->num;
    plan->num_decodes += t->num;
    plan->num_context_tokens += t->num_positions;
    s->budget -= t->num;
}

static struct pkv_plan_entry entry_of(const struct pkv_sched *s, struct pkv_request *r)
{
    const struct pkv_seq *seq = &r->seq;
    struct pkv_plan_entry entry = {
        .ref = pkv_request_ref(r),
        .num_tokens = 1,
        .first_position = seq->num_computed_tokens - 1,
        .kind = PKV_ENTRY_RUNNING,
        .samples = true,
    };
    bool in_pieces = s->config.policies.layout->create == NULL;
    for (uint32_t g = 0; g < s->config.num_groups; g++) {
        bool took_block = in_pieces && pkv_cache_takes_block(s->cache, g, entry.first_position);
        entry.num_blocks_before[g] = seq->tables[g].num - took_block;
    }
    return entry;
}

size_t pkv_plan_num_scheduled(const struct pkv_plan *plan)
{
    return plan->num_steady + plan->num_entries;
}

void pkv_sched_list_entries(struct pkv_sched *s, const struct pkv_plan *plan,
                            struct pkv_plan_entry *out)
{
    size_t num = 0;
    steady_refresh(s);
    for (size_t i = 0; plan->num_steady && i < s->num_running; i++)
        if (s->running[i]->steady.is_in)
            out[num++] = entry_of(s, s->running[i]);
    PKV_ASSERT(num == plan->num_steady);
    for (size_t i = 0; i < plan->num_entries; i++)
        out[num++] = plan->entries[i];
}

void steady_spell_out(struct pkv_sched *s, struct pkv_plan *plan)
{
    size_t num_steady = plan->num_steady, num_all = num_steady + plan->num_entries;
    if (num_steady == 0 && s->steady.num_lasts == 0)
        return;
    spell_out_older(s, plan);
    for (size_t i = plan->num_entries; i-- > 0;)
        plan->entries[num_steady + i] = plan->entries[i];
    size_t num = 0;
    for (size_t i = 0; i < s->num_running; i++) {
        struct pkv_request *r = s->running[i];
        if (!r->steady.is_in)
            continue;
        steady_leave(s, r);
        r->sched_mark = plan->number;
        plan->entries[num++] = entry_of(s, r);
    }
    PKV_ASSERT(num == num_steady && s->steady.num == 0);
    for (size_t i = 0; i < num_all; i++)
        plan->entries[i].ref.request->sched_entry = (uint32_t)i;
    plan->num_entries = num_all;
    plan->num_steady = 0;
    plan->left_steady = true;
    s->steady.hold_off = HOLD_OFF;
}

/* Under publish: computed, blocks that this plan has filled. */
static void publish_filled(struct pkv_sched *s)
{
    struct steady *t = &s->steady;
    uint64_t filled = (t->clock + 2 * (uint64_t)t->block_size - lag(s)) % t->block_size;
    for (struct pkv_request *r = t->buckets[filled].first; r; r = r->steady.next) {
        refresh(s, r);
        pkv_cache_publish_known(s->cache, &r->seq, r->seq.num_computed_tokens - lag(s));
    }
}

void steady_commit(struct pkv_sched *s, struct pkv_plan *plan)
{
    struct steady *t = &s->steady;
    struct pkv_heap_node *node;
    if (t->num > 0 && s->config.policies.publish->when == PKV_PUBLISH_COMPUTED)
        publish_filled(s);
    for (size_t i = 0; i < t->num_lasts; i++) {
        t->lasts[i]->steady.is_last = false;
        commit_last(s, plan, t->lasts[i]);
    }
    t->num_lasts = 0;
    while (!s->config.async_scheduling && (node = pkv_heap_first(&t->ends)) &&
           node->key[0] <= (int64_t)t->clock) {
        struct pkv_request *r = owner(node);
        steady_leave(s, r);
        gang_leave(s, r);
        sched_publish_end(s, r, r->seq.num_computed_tokens);
        pkv_cache_release(s->cache, &r->seq);
        pkv_request_set_status(r, PKV_REQUEST_COMPLETED);
        plan->finished[plan->num_finished++] = r;
    }
}

/* --- recount --------------------------------------------------------------------------------- */

static int check_bucket(const struct steady *t, uint32_t phase, struct pkv_err *err)
{
    const struct bucket *bucket = &t->buckets[phase];
    const struct pkv_request *prev = NULL;
    size_t num = 0;
    for (const struct pkv_request *r = bucket->first; r && num <= t->num; r = r->steady.next) {
        bool in_order = !prev || prev->steady.admission < r->steady.admission;
        if (!r->steady.is_in || r->steady.phase != phase || r->steady.prev != prev || !in_order)
            return pkv_fail(err, PKV_ERR_AUDIT, "S6: row %" PRIu64 " of phase %" PRIu32
                            " stands in bucket %" PRIu32, r->row, r->steady.phase, phase);
        prev = r;
        num++;
    }
    if (num != bucket->num || bucket->last != prev)
        return pkv_fail(err, PKV_ERR_AUDIT, "S6: %zu requests in bucket %" PRIu32 ", %zu counted",
                        num, phase, bucket->num);
    return 0;
}

static int check_steady_request(const struct pkv_sched *s, const struct pkv_request *r,
                                struct pkv_err *err)
{
    const struct steady *t = &s->steady;
    uint64_t due = r->steady.phase + (uint64_t)r->seq.num_computed_tokens;
    if (due % t->block_size != t->clock % t->block_size)
        return pkv_fail(err, PKV_ERR_AUDIT, "S6: row %" PRIu64 " with %" PRIu32 " positions is in "
                        "phase %" PRIu32 " at clock %" PRIu64, r->row, r->seq.num_computed_tokens,
                        r->steady.phase, t->clock);
    int64_t end = end_clock(s, r);
    if (r->waiting_node.key[0] != end)
        return pkv_fail(err, PKV_ERR_AUDIT, "S6: row %" PRIu64 " ends at clock %" PRId64
                        ", not %" PRId64, r->row, r->waiting_node.key[0], end);
    return 0;
}

/* Plans that are out count exactly those who were steady when they were made. */
static int check_plans(const struct pkv_sched *s, struct pkv_err *err)
{
    for (uint64_t number = s->num_plans - s->num_out; number < s->num_plans; number++) {
        const struct pkv_plan *plan = &s->slots[number & 1].plan;
        uint64_t num = 0, told = plan->num_steady;
        for (size_t i = 0; i < s->num_running; i++)
            num += steady_is_counted(s->running[i], plan) &&
                   (!s->running[i]->steady.is_last || number + 1 < s->num_plans);
        if (num != told)
            return pkv_fail(err, PKV_ERR_AUDIT, "S6: plan %" PRIu64 " has %" PRIu64 " steady requests, %"
                            PRIu64 " counted", number, told, num);
    }
    return 0;
}

int steady_check(const struct pkv_sched *s, struct pkv_err *err)
{
    const struct steady *t = &s->steady;
    uint64_t num = 0, num_listed = 0, num_positions = 0;
    for (size_t i = 0; i < s->num_running; i++) {
        if (!s->running[i]->steady.is_in)
            continue;
        num++;
        num_positions += s->running[i]->seq.num_computed_tokens;
        if (check_steady_request(s, s->running[i], err) < 0)
            return -1;
    }
    for (uint32_t phase = 0; phase < t->block_size; phase++) {
        num_listed += t->buckets[phase].num;
        if (check_bucket(t, phase, err) < 0)
            return -1;
    }
    if (num != t->num || num_listed != t->num || t->ends.num != t->num)
        return pkv_fail(err, PKV_ERR_AUDIT, "S6: %" PRIu64 " steady requests, %" PRIu64
                        " counted, %" PRIu64 " in buckets, %zu ends", num, t->num, num_listed,
                        t->ends.num);
    if (num_positions != t->num_positions)
        return pkv_fail(err, PKV_ERR_AUDIT,
                        "S6: steady requests have %" PRIu64 " positions, %" PRIu64 " counted",
                        num_positions, t->num_positions);
    return check_plans(s, err);
}
