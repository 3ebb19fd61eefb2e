/*
 * admit.c - one pass over the waiting queue: look up, ask the admit policy, take the blocks.
 *
 * What a refused head's look-up found is remembered with the cache's version, so a blocked queue is
 * not looked up again in every step.
 *
 * Source: vllm/v1/core/sched/scheduler.py, schedule(), second loop.
 */
#include "base/alloc.h"
#include "sched/sched_private.h"

enum considered { ADMITTED, REFUSED, DEFERRED, STOPPED, NO_MEMORY };

/* The request at the head of the queue when the pass began, or the first that was refused, decides
 * the limit of the step. */
static void note_limit(struct pkv_plan *plan, struct pkv_request *r, enum pkv_limit limit,
                       uint64_t need, uint32_t num_free)
{
    if (plan->head.request)
        return;
    plan->head = pkv_request_ref(r);
    plan->limit = limit;
    plan->head_need_blocks = need;
    plan->head_free_blocks = num_free;
}

static void look_up(struct pkv_sched *s, struct pkv_request *r, struct pkv_hit *out_hit)
{
    const struct remembered *old = &s->remembered;
    if (pkv_request_get(old->ref) == r && old->version == pkv_cache_version(s->cache))
        *out_hit = old->hit;
    else
        pkv_cache_find_prefix(s->cache, &r->seq, out_hit);
}

static bool has_lost_ids(const struct pkv_hit *hit)
{
    return hit->num_tokens + hit->num_dropped_blocks > 0 && !hit->blocks[0];
}

/* The first one refused in a step is the one that will be looked up in the next. */
static void remember(struct pkv_sched *s, const struct pkv_plan *plan, struct pkv_request *r,
                     const struct pkv_hit *hit)
{
    if (pkv_request_get(plan->head) != r || has_lost_ids(hit))
        return;
    pkv_cache_watch(s->cache, &r->seq, hit);
    s->remembered = (struct remembered){plan->head, pkv_cache_version(s->cache), *hit};
    for (uint32_t g = 0; g < PKV_MAX_GROUPS; g++)
        s->remembered.hit.blocks[g] = NULL;
}

/* --- one candidate --------------------------------------------------------------------------- */

static enum pkv_limit limit_of(enum pkv_admit_verdict verdict)
{
    switch (verdict) {
    case PKV_ADMIT_BLOCKS:
        return PKV_LIMIT_BLOCKS;
    case PKV_ADMIT_GATE:
        return PKV_LIMIT_GATE;
    case PKV_ADMIT:
        break;
    }
    PKV_UNREACHABLE("a refusal");
}

static void count_overtakes(struct pkv_sched *s)
{
    /* With many waiting it costs. */
    for (size_t i = 0; sched_counts_overtakes(s) && i < s->num_aside; i++)
        s->aside[i]->num_overtakes++;
}

/* Who runs, or will without being asked for again. */
static size_t num_in(const struct pkv_sched *s)
{
    return s->num_running + s->swap.num_resuming;
}

static int reserve_admission(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
                             uint32_t num_positions, struct pkv_err *err)
{
    uint32_t positions = sched_table_positions(s, r, num_positions);
    size_t num = num_in(s) + gang_num_seats(r);
    if (pkv_cache_prepare(s->cache, &r->seq, positions, err) < 0 ||
        pkv_grow(&s->running, &s->running_capacity, num, sizeof(*s->running), err) < 0 ||
        steady_reserve(s, num, err) < 0 || sched_reserve_pass(s, num, err) < 0 ||
        swap_reserve(s, err) < 0 || gang_prepare(s, r, err) < 0)
        return -1;
    return plan_reserve(s, plan, num, err);
}

/* Before its status says where it goes. */
static void record_admission(struct pkv_sched *s, struct pkv_plan *plan,
                             const struct pkv_candidate *c, struct pkv_request *r,
                             uint32_t num_free, bool comes_back)
{
    bool resumed = r->status != PKV_REQUEST_WAITING;
    uint32_t hit = c->hit->num_tokens;
    plan->admissions[plan->num_admissions++] = (struct pkv_plan_admission){
        .ref = pkv_request_ref(r),
        .resumed = resumed,
        .num_hit_tokens = hit,
        .num_queried_tokens = s->config.prefix_cache ? r->seq.num_known_tokens : 0,
        .num_tokens = comes_back ? 0 : c->num_tokens,
        .need_blocks = comes_back ? num_free - pkv_cache_num_free(s->cache) : c->need_blocks,
        .free_blocks = num_free,
    };
    plan->num_hit_tokens += hit;
    if (!resumed)
        r->num_hit_tokens = hit;
    if (hit > r->num_highest_tokens)
        r->num_highest_tokens = hit;
    sched_note_peak(r);
    if (comes_back)
        return;
    plan_add_entry(s, plan, (struct pkv_plan_entry){
        .ref = pkv_request_ref(r),
        .num_tokens = c->num_tokens,
        .first_position = hit,
        .kind = resumed ? PKV_ENTRY_RESUMED : PKV_ENTRY_NEW,
    });
}

/* It has its blocks: out of the queue. */
static void leave_queue(struct pkv_sched *s, struct pkv_request *r)
{
    if (s->remembered.ref.request == r)
        s->remembered.ref.request = NULL;
    pkv_waiting_remove(s->waiting, r);
    sched_left(s, r);
    r->num_overtakes = 0;
    count_overtakes(s);
    sched_update_view(s);
}

static void tell_took(const struct pkv_sched *s, const struct pkv_candidate *c)
{
    if (s->config.policies.admit->took)
        s->config.policies.admit->took(s->admit_state, &s->view, s->pass, c);
}

/* It has copies on the host, and computes nothing until they are there. */
static enum considered take_back(struct pkv_sched *s, struct pkv_plan *plan,
                                 const struct pkv_candidate *c, struct pkv_request *r,
                                 struct pkv_restore restore, struct pkv_err *err)
{
    uint32_t num_free = s->view.num_free_blocks;
    if (reserve_admission(s, plan, r, c->num_positions, err) < 0)
        return NO_MEMORY;
    if (c->need_blocks > num_free) {   /* whatever the policy says */
        note_limit(plan, r, PKV_LIMIT_BLOCKS, c->need_blocks, num_free);
        return REFUSED;
    }
    swap_in(s, plan, r, c->hit, restore);
    record_admission(s, plan, c, r, num_free, true);
    leave_queue(s, r);
    struct pkv_candidate back = *c;
    back.num_tokens = 0;
    back.num_positions = r->seq.num_computed_tokens;
    back.need_blocks = num_free - s->view.num_free_blocks;
    tell_took(s, &back);
    return ADMITTED;
}

static enum considered take(struct pkv_sched *s, struct pkv_plan *plan,
                            const struct pkv_candidate *c, struct pkv_request *r,
                            struct pkv_err *err)
{
    if (reserve_admission(s, plan, r, c->num_positions, err) < 0)
        return NO_MEMORY;
    uint32_t num_free = s->view.num_free_blocks;
    if (pkv_cache_grow(s->cache, &r->seq, c->hit, c->num_tokens, c->num_positions) ==
        PKV_ALLOC_SHORT) {   /* enough are free, but not in one piece */
        note_limit(plan, r, PKV_LIMIT_BLOCKS, c->need_blocks, num_free);
        return REFUSED;
    }
    record_admission(s, plan, c, r, num_free, false);
    r->num_drafts = plan->entries[plan->num_entries - 1].num_drafts;
    pkv_cache_drop_copies(s->cache, &r->seq);   /* of no use if it has any */
    pkv_request_set_status(r, PKV_REQUEST_RUNNING);
    r->steady.admission = s->num_admissions++;
    s->running[s->num_running++] = r;
    gang_admit(s, plan, r);
    leave_queue(s, r);
    tell_took(s, c);
    return ADMITTED;
}

/* A layout may give a request its blocks in one piece. */
static uint32_t positions_at_once(const struct pkv_sched *s, const struct pkv_request *r,
                                  uint32_t num_positions)
{
    uint64_t reserved = (uint64_t)sched_run_blocks(s, r) * s->config.groups[0].block_size;
    if (reserved <= num_positions)
        return num_positions;
    return reserved < UINT32_MAX ? (uint32_t)reserved : UINT32_MAX;
}

static uint32_t admitted_positions(const struct pkv_sched *s, uint32_t num_positions)
{
    return s->config.lookahead_at_admission ? drafts_positions(s, num_positions) : num_positions;
}

static enum considered consider(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
                                struct pkv_err *err)
{
    if (pkv_cache_prepare(s->cache, &r->seq, 0, err) < 0 ||
        sched_reserve_pass(s, num_in(s) + gang_num_seats(r), err) < 0)
        return NO_MEMORY;
    struct pkv_hit hit;
    look_up(s, r, &hit);
    struct pkv_restore restore = swap_find(s, r, &hit);
    bool comes_back = restore.num_blocks > 0;
    uint32_t left = r->seq.num_known_tokens - hit.num_tokens;
    uint32_t n = comes_back ? left : sched_first_chunk(&s->config, left);
    bool pads = !comes_back && left == 1 && drafts_pad(s, plan);
    if (pads)
        n += s->num_drafts;
    bool is_too_long = pads && (n > s->budget || (uint64_t)hit.num_tokens + n > s->max_model_len);
    if (!comes_back && (s->budget == 0 || is_too_long)) {
        note_limit(plan, r, PKV_LIMIT_BUDGET, 0, s->view.num_free_blocks);
        return STOPPED;
    }
    if (!comes_back && !s->config.enable_chunked_prefill && n > s->budget) {
        note_limit(plan, r, PKV_LIMIT_BUDGET, 0, s->view.num_free_blocks);
        return DEFERRED;
    }
    if (!comes_back)
        n = n < s->budget ? n : (uint32_t)s->budget;
    struct pkv_candidate c = {
        .request = r,
        .hit = &hit,
        .num_tokens = n,
        .num_positions = positions_at_once(s, r, admitted_positions(s, hit.num_tokens + n)),
    };
    c.need_blocks = pkv_cache_need(s->cache, &r->seq, &hit, c.num_positions);
    uint64_t need = c.need_blocks;
    enum pkv_admit_verdict verdict =
        s->config.policies.admit->consider(s->admit_state, &s->view, s->pass, &c, &need);
    if (verdict == PKV_ADMIT) {
        if (has_lost_ids(&hit))
            pkv_cache_find_prefix(s->cache, &r->seq, &hit);
        return comes_back ? take_back(s, plan, &c, r, restore, err) : take(s, plan, &c, r, err);
    }
    note_limit(plan, r, limit_of(verdict), need, s->view.num_free_blocks);
    remember(s, plan, r, &hit);
    return REFUSED;
}

/* --- the pass -------------------------------------------------------------------------------- */

static int put_aside(struct pkv_request ***list, size_t *num, size_t *capacity,
                     struct pkv_sched *s, struct pkv_request *r, struct pkv_err *err)
{
    if (pkv_grow(list, capacity, *num + 1, sizeof(**list), err) < 0)
        return -1;
    pkv_waiting_remove(s->waiting, r);
    (*list)[(*num)++] = r;
    return 0;
}

/* Refused ones go back to where they were. Deferred ones go to the front, the last looked at first,
 * so that every such step turns them round (vLLM of 2025-09); under another order, to their place. */
static void put_back(struct pkv_sched *s)
{
    const struct pkv_order_ops *order = s->config.policies.order;
    for (size_t i = 0; i < s->num_aside; i++)
        pkv_waiting_put_back(s->waiting, s->aside[i]);
    for (size_t i = 0; i < s->num_deferred; i++) {
        if (order->by_arrival)
            pkv_waiting_put_front(s->waiting, s->deferred[i]);
        else
            pkv_waiting_put_back(s->waiting, s->deferred[i]);
    }
    s->num_aside = s->num_deferred = 0;
}

static bool goes_on(const struct pkv_sched *s, const struct pkv_request *refused)
{
    const struct pkv_policies *p = &s->config.policies;
    return p->on_blocked->goes_on(refused, p->params[PKV_CHOICE_ON_BLOCKED]);
}

static bool may_go_on(const struct pkv_sched *s)
{
    if (!sched_counts_overtakes(s))
        return true;
    for (size_t i = 0; i < s->num_aside; i++)
        if (!goes_on(s, s->aside[i]))
            return false;
    return true;
}

/* For want of blocks or by the gate: a budget or a place is there again without anybody leaving. */
static void shut(struct pkv_sched *s, const struct pkv_plan *plan, struct pkv_request *refused)
{
    if (!s->config.policies.on_blocked->latches || s->num_running == 0)
        return;
    s->latch = (struct latch){
        .is_shut = true,
        .refused = pkv_request_ref(refused),
        .need_blocks = plan->head.request == refused ? plan->head_need_blocks : 0,
        .number = plan->number,
        .num_running = s->num_running,
        .num_admissions = s->num_admissions,
    };
}

/* returns 1 to go on with the next, 0 to stop, -1 without memory */
static int step_pass(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
                     struct pkv_err *err)
{
    switch (consider(s, plan, r, err)) {
    case ADMITTED:
        return may_go_on(s);
    case REFUSED:
        shut(s, plan, r);
        if (!goes_on(s, r))
            return 0;
        if (put_aside(&s->aside, &s->num_aside, &s->aside_capacity, s, r, err) < 0)
            return -1;
        return 1;
    case DEFERRED:
        if (s->config.blocked_prefill == PKV_BLOCKED_PREFILL_STOP)
            return 0;
        if (put_aside(&s->deferred, &s->num_deferred, &s->deferred_capacity, s, r, err) < 0)
            return -1;
        return 1;
    case STOPPED:
        return 0;
    case NO_MEMORY:
        break;
    }
    return -1;
}

/* One that has copies on the host needs no budget. */
static bool is_over_budget(const struct pkv_sched *s, const struct pkv_request *r)
{
    return s->budget == 0 && r->status != PKV_REQUEST_SWAPPED;
}

static int run_pass(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_err *err)
{
    struct pkv_request *r;
    int go_on = 1;
    while (go_on > 0 && (r = pkv_waiting_head(s->waiting))) {
        bool over_budget = is_over_budget(s, r);
        if (over_budget || num_in(s) + gang_num_seats(r) > s->max_seqs) {
            enum pkv_limit limit = over_budget ? PKV_LIMIT_BUDGET : PKV_LIMIT_SEQS;
            note_limit(plan, r, limit, 0, s->view.num_free_blocks);
            break;
        }
        go_on = step_pass(s, plan, r, err);
    }
    return go_on < 0 ? -1 : 0;
}

/* The first in line waits as it was refused, or behind one that was, or as the mix has it. */
static void set_head(const struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *head)
{
    plan->head = pkv_request_ref(head);
    plan->head_need_blocks =
        pkv_request_get(plan->refused) == head ? plan->refused_need_blocks : 0;
    plan->head_free_blocks = pkv_cache_num_free(s->cache);
}

void sched_pass_by(struct pkv_sched *s, struct pkv_plan *plan)
{
    plan->limit = PKV_LIMIT_LATCH;
    if (s->latch.is_shut) {
        plan->is_latched = true;
        plan->refused = s->latch.refused;
        plan->refused_number = s->latch.number;
        plan->refused_need_blocks = s->latch.need_blocks;
    }
    if (!sched_asks_anew(s))
        set_head(s, plan, pkv_waiting_head(s->waiting));
}

int pkv_sched_find_head(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_err *err)
{
    struct pkv_request *head;
    PKV_ASSERT(s->num_out > 0);
    if (plan->limit != PKV_LIMIT_LATCH || plan->head.request)
        return 0;
    if (pkv_sched_find_first(s, &head, err) < 0)
        return -1;
    set_head(s, plan, head);
    return 0;
}

int sched_admit_waiting(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_err *err)
{
    sched_update_view(s);
    struct pkv_request *head = pkv_waiting_head(s->waiting);
    plan->limit = head ? PKV_LIMIT_NOTHING : PKV_LIMIT_EMPTY;
    if (!head)
        return 0;
    if (s->latch.is_shut) {
        sched_pass_by(s, plan);
        return 0;
    }
    /* Those who were put to the front or to the tail stay there. */
    if (sched_asks_anew(s) && sched_rank_waiting(s, err) < 0)
        return -1;
    if (sched_reserve_pass(s, num_in(s), err) < 0)
        return -1;
    if (s->config.policies.admit->begin) {
        steady_refresh(s);
        s->config.policies.admit->begin(s->admit_state, &s->view, s->pass);
    }
    int result = run_pass(s, plan, err);
    if (s->config.policies.admit->end)
        s->config.policies.admit->end(s->admit_state, &s->view, s->pass);
    put_back(s);
    s->view.num_passes++;
    return result;
}
