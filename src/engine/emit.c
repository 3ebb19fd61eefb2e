/*
 * emit.c - rows and events to the sinks, in the order in which the sinks were given.
 */
#include "engine/engine_private.h"

#include "base/alloc.h"

int emit_event(struct pkv_engine *e, const struct pkv_event *event, struct pkv_err *err)
{
    for (size_t i = 0; e->wants_events && i < e->config.num_sinks; i++) {
        const struct pkv_sink *sink = &e->config.sinks[i];
        if (sink->event && sink->event(sink->ctx, event, err) < 0)
            return -1;
    }
    return 0;
}

int emit_request(struct pkv_engine *e, struct pkv_request *r, const char *reason, int64_t finish_ns,
                 struct pkv_err *err)
{
    const struct pkv_request_row row = {
        .request = r, .status = r->status, .reason = reason, .finish_ns = finish_ns};
    for (size_t i = 0; i < e->config.num_sinks; i++) {
        const struct pkv_sink *sink = &e->config.sinks[i];
        if (sink->request && sink->request(sink->ctx, &row, err) < 0)
            return -1;
    }
    return 0;
}

static int emit_scheduled(struct pkv_engine *e, struct pkv_err *err)
{
    for (size_t i = 0; i < e->config.num_sinks; i++) {
        const struct pkv_sink *sink = &e->config.sinks[i];
        if (sink->scheduled && sink->scheduled(sink->ctx, e->sched, err) < 0)
            return -1;
    }
    return 0;
}

/* Sinks see every scheduled request, the steady ones as well. */
static int emit_whole(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err)
{
    struct pkv_plan whole = *plan;
    size_t num = pkv_plan_num_scheduled(plan);
    if (pkv_grow(&e->entries, &e->entries_capacity, num, sizeof(*e->entries), err) < 0)
        return -1;
    pkv_sched_list_entries(e->sched, plan, e->entries);
    whole.entries = e->entries;
    whole.num_entries = num;
    whole.num_steady = 0;
    for (size_t i = 0; i < e->config.num_sinks; i++) {
        const struct pkv_sink *sink = &e->config.sinks[i];
        if (sink->planned && sink->planned(sink->ctx, e->sched, &whole, err) < 0)
            return -1;
    }
    return 0;
}

int emit_planned(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err)
{
    if (e->wants_plans && emit_whole(e, plan, err) < 0)
        return -1;
    return emit_scheduled(e, err);
}

int emit_step(struct pkv_engine *e, struct pkv_err *err)
{
    for (size_t i = 0; i < e->config.num_sinks; i++) {
        const struct pkv_sink *sink = &e->config.sinks[i];
        if (sink->step && sink->step(sink->ctx, e->sched, &e->row, err) < 0)
            return -1;
    }
    return 0;
}

void emit_gap(struct pkv_engine *e, int64_t gap_ns)
{
    for (size_t i = 0; i < e->config.num_sinks; i++)
        if (e->config.sinks[i].gap)
            e->config.sinks[i].gap(e->config.sinks[i].ctx, gap_ns);
}

struct pkv_event event_of(const struct pkv_engine *e, enum pkv_event_kind kind, int64_t time_ns,
                          const struct pkv_request *r)
{
    return (struct pkv_event){
        .kind = kind, .time_ns = time_ns, .step = e->figures.num_steps, .request = r};
}

/* --- events of a plan ------------------------------------------------------------------------ */

static bool holds_more(const struct pkv_holder *a, const struct pkv_holder *b)
{
    if (a->num_blocks != b->num_blocks)
        return a->num_blocks > b->num_blocks;
    return a->request->row < b->request->row;
}

size_t engine_holders(const struct pkv_engine *e, struct pkv_holder *out)
{
    size_t num = 0;
    size_t num_running = pkv_sched_num_running(e->sched);
    for (size_t i = 0; i < num_running + pkv_sched_num_resuming(e->sched); i++) {
        const struct pkv_request *r = i < num_running
                                          ? pkv_sched_running(e->sched, i)
                                          : pkv_sched_resuming(e->sched, i - num_running);
        struct pkv_holder holder = {r, pkv_seq_num_blocks(&r->seq)};
        size_t place = num < PKV_MAX_HOLDERS ? num++ : PKV_MAX_HOLDERS;
        while (place > 0 && holds_more(&holder, &out[place - 1])) {
            if (place < PKV_MAX_HOLDERS)
                out[place] = out[place - 1];
            place--;
        }
        if (place < PKV_MAX_HOLDERS)
            out[place] = holder;
    }
    return num;
}

/* Of one that was given up or let in, the transfer it is for. */
static int emit_transfer(struct pkv_engine *e, const struct pkv_plan *plan,
                         const struct pkv_request *r, struct pkv_err *err)
{
    size_t num;
    const struct pkv_transfer *t = pkv_sched_transfers(e->sched, &num);
    size_t i = num - plan->num_transfers;
    while (i < num && t[i].ref.request != r)
        i++;
    if (i == num)
        return 0;
    enum pkv_event_kind kind = t[i].is_out ? PKV_EVENT_SWAP_OUT : PKV_EVENT_SWAP_IN;
    struct pkv_event event = event_of(e, kind, e->now_ns, r);
    event.num_blocks = t[i].num_blocks;
    event.num_bytes = t[i].num_blocks * pkv_swap_block_bytes(pkv_sched_config(e->sched));
    event.done_ns = t[i].done_ns;
    return emit_event(e, &event, err);
}

static int emit_preemptions(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err)
{
    for (size_t i = 0; i < plan->num_preemptions; i++) {
        const struct pkv_plan_preemption *p = &plan->preemptions[i];
        struct pkv_event event = event_of(e, PKV_EVENT_PREEMPT, e->now_ns, p->ref.request);
        event.grower = p->grower.request;
        event.freed_blocks = p->freed_blocks;
        event.lost_tokens = p->lost_tokens;
        if (emit_event(e, &event, err) < 0 || emit_transfer(e, plan, p->ref.request, err) < 0)
            return -1;
    }
    return 0;
}

static int emit_admissions(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err)
{
    for (size_t i = 0; i < plan->num_admissions; i++) {
        const struct pkv_plan_admission *a = &plan->admissions[i];
        a->ref.request->told_limits = 0;
        enum pkv_event_kind kind = a->resumed ? PKV_EVENT_RESUME : PKV_EVENT_ADMIT;
        struct pkv_event event = event_of(e, kind, e->now_ns, a->ref.request);
        event.need_blocks = a->need_blocks;
        event.free_blocks = a->free_blocks;
        event.hit_tokens = a->num_hit_tokens;
        event.sched_tokens = a->num_tokens;
        if (emit_event(e, &event, err) < 0 || emit_transfer(e, plan, a->ref.request, err) < 0)
            return -1;
    }
    return 0;
}

/* Once for each cause while a request waits. */
static int emit_blocked(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err)
{
    struct pkv_request *head = pkv_request_get(plan->head);
    uint32_t cause = UINT32_C(1) << plan->limit;
    if (!head || (head->told_limits & cause))
        return 0;
    head->told_limits |= cause;
    struct pkv_event event = event_of(e, PKV_EVENT_BLOCKED, e->now_ns, head);
    event.limit = plan->limit;
    event.need_blocks = plan->head_need_blocks;
    event.free_blocks = plan->head_free_blocks;
    if (event.need_blocks == 0)   /* it was not asked for: what all its tokens would take */
        event.need_blocks = pkv_sched_blocks_for(e->sched, head->seq.num_known_tokens);
    event.num_holders = engine_holders(e, event.holders);
    if (plan->is_latched) {
        event.is_latched = true;
        event.refused = pkv_request_get(plan->refused);
        event.refused_step = event.step - (plan->number - plan->refused_number);
    }
    return emit_event(e, &event, err);
}

int emit_plan_events(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err)
{
    if (!e->wants_events)
        return 0;
    if (emit_preemptions(e, plan, err) < 0 || emit_admissions(e, plan, err) < 0)
        return -1;
    return emit_blocked(e, plan, err);
}
