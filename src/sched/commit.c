/*
 * commit.c - a step's tokens come out, in the order of the plan.
 *
 * When a request's computed positions reach its known tokens, one token is sampled, and drafts that
 * were right come out before it. The last one is never stored: a request of P prompt and O output
 * tokens computes P + O - 1 positions. A finished request's blocks are free at once, so the next plan
 * can use them.
 *
 * Source: vllm/v1/core/sched/scheduler.py, update_from_output().
 */
#include "sched/sched_private.h"

static bool is_done(const struct pkv_sched *s, const struct pkv_request *r)
{
    return r->emits_nothing || r->num_emitted >= r->num_output_tokens ||
           r->seq.num_known_tokens >= s->max_model_len;
}

/* Did it work on a prompt? Before the token comes out. */
static bool is_chunk(const struct pkv_plan_entry *entry, const struct pkv_request *r)
{
    return entry->kind != PKV_ENTRY_RUNNING || r->num_emitted == 0 || r->sample.waits_for_fork ||
           r->seq.num_known_tokens - entry->first_position > 1;
}

/* The sampled token, and the drafts that were right before it, until the request has all of its. */
static void emit(struct pkv_sched *s, struct pkv_request *r, struct pkv_plan_entry *entry)
{
    if (entry->num_drafts > 0)
        entry->num_accepted = drafts_accepted(s, r, entry->num_drafts);
    while (!r->emits_nothing && entry->num_sampled <= entry->num_accepted &&
           (entry->num_sampled == 0 || !is_done(s, r))) {
        r->seq.num_known_tokens++;
        r->num_emitted++;
        entry->num_sampled++;
    }
    if (entry->num_drafts > entry->num_accepted)
        pkv_cache_rewind(s->cache, &r->seq, entry->num_drafts - entry->num_accepted);
}

static void publish_below(struct pkv_sched *s, struct pkv_request *r, uint32_t num_computed)
{
    uint32_t known = r->seq.num_known_tokens;
    pkv_cache_publish_known(s->cache, &r->seq, num_computed < known ? num_computed : known);
}

/* Blocks that are full of computed, known tokens now. Under publish: alloc the next plan would see
 * to that, were it not that a token in flight was not known when its place was planned. */
static void publish_step(struct pkv_sched *s, struct pkv_request *r, uint32_t num_computed,
                         bool was_chunk)
{
    if (r->status != PKV_REQUEST_RUNNING)
        return;   /* it has lost its blocks since */
    switch (s->config.policies.publish->when) {
    case PKV_PUBLISH_ALLOC:
        if (s->config.async_scheduling)
            publish_below(s, r, r->seq.num_computed_tokens - r->num_in_flight);
        return;
    case PKV_PUBLISH_CHUNK_END:
        if (!was_chunk)
            return;
        /* fall through */
    case PKV_PUBLISH_COMPUTED:
        publish_below(s, r, num_computed);
        return;
    case PKV_PUBLISH_FINISH:
        return;
    }
}

void sched_publish_end(struct pkv_sched *s, struct pkv_request *r, uint32_t num_computed)
{
    if (r->status != PKV_REQUEST_RUNNING)
        return;
    switch (s->config.policies.publish->when) {
    case PKV_PUBLISH_CHUNK_END:
    case PKV_PUBLISH_FINISH:
        publish_below(s, r, num_computed);
        return;
    case PKV_PUBLISH_ALLOC:
    case PKV_PUBLISH_COMPUTED:
        return;
    }
}

/* Its last token is out; so many of its positions are computed, one in flight is not. */
static void leave(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
                  uint32_t num_computed)
{
    if (r->status == PKV_REQUEST_PREEMPTED) {
        pkv_waiting_remove(s->waiting, r);
        sched_left(s, r);
    }
    gang_leave(s, r);
    sched_publish_end(s, r, num_computed);
    pkv_cache_release(s->cache, &r->seq);
    pkv_request_set_status(r, PKV_REQUEST_COMPLETED);
    plan->finished[plan->num_finished++] = r;
}

void commit_last(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r)
{
    uint32_t computed = r->seq.num_computed_tokens;
    r->num_in_flight = 0;
    r->num_emitted++;
    r->seq.num_known_tokens++;
    if (computed > r->num_highest_tokens)
        r->num_highest_tokens = computed;
    publish_step(s, r, computed, false);
    leave(s, plan, r, computed);
}

/* With its step's tokens out, does it end? */
static void end_or_go_on(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
                         uint32_t num_computed)
{
    if (is_done(s, r))
        leave(s, plan, r, num_computed);
    else if (gang_is_steady(s, r))
        steady_enter(s, r);
}

/* The others share what first has computed, identities and all. */
static void fork_from(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *first)
{
    publish_step(s, first, first->seq.num_computed_tokens, true);
    gang_fork(s, plan, first);
}

/* Their first tokens come from the same last position of the prompt. */
static void bring_first_tokens(struct pkv_sched *s, struct pkv_plan *plan, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        struct pkv_request *r = plan->forks[i].ref.request;
        plan->forks[i].sampled = !r->emits_nothing;
        r->seq.num_known_tokens += !r->emits_nothing;
        r->num_emitted += !r->emits_nothing;
        end_or_go_on(s, plan, r, r->seq.num_computed_tokens);
    }
}

static void commit_live(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_plan_entry *entry,
                        struct pkv_request *r)
{
    bool was_chunk = is_chunk(entry, r);
    size_t num_forks = plan->num_forks;
    if (r->sample.waits_for_fork && r->seq.num_computed_tokens == r->seq.num_known_tokens)
        fork_from(s, plan, r);
    size_t end = plan->num_forks;
    if (entry->samples)
        emit(s, r, entry);
    uint32_t computed = entry->first_position + entry->num_tokens -
                        (entry->num_drafts - entry->num_accepted);
    if (computed > r->num_highest_tokens)
        r->num_highest_tokens = computed;
    publish_step(s, r, computed, was_chunk);
    if (r->status == PKV_REQUEST_RUNNING)
        r->num_drafts = entry->samples ? s->num_drafts : 0;
    if (entry->samples) {
        entry->finished = is_done(s, r);
        end_or_go_on(s, plan, r, computed);
        bring_first_tokens(s, plan, num_forks, end);
    }
    if (r->status == PKV_REQUEST_RUNNING)
        gang_draw_beams(s, plan, r);
}

static void commit_entry(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_plan_entry *entry)
{
    struct pkv_request *r = flight_passenger(entry);
    PKV_ASSERT(r || s->config.async_scheduling);
    if (!r)
        return;
    if (r->steady.is_in) {   /* since after this plan was made */
        steady_refresh_one(s, r);
        entry->num_sampled = 1;
        return;
    }
    if (s->config.async_scheduling)
        r->num_in_flight -= entry->samples;
    if (s->config.async_scheduling && r->status == PKV_REQUEST_RUNNING)
        r->seq.num_flying_tokens -= entry->num_tokens;
    commit_live(s, plan, entry, r);
}

static void drop_finished(struct pkv_sched *s)
{
    size_t kept = 0;
    s->latch.is_shut = false;
    for (size_t i = 0; i < s->num_running; i++)
        if (s->running[i]->status == PKV_REQUEST_RUNNING)
            s->running[kept++] = s->running[i];
    s->num_running = kept;
}

void pkv_sched_commit(struct pkv_sched *s, struct pkv_plan *plan)
{
    PKV_ASSERT(s->num_out > 0 && plan->number == s->num_plans - s->num_out);
    s->num_out--;
    tenants_begin_count(s, plan);
    steady_commit(s, plan);
    for (size_t i = 0; i < plan->num_entries; i++)
        commit_entry(s, plan, &plan->entries[i]);
    if (plan->num_finished > 0)
        drop_finished(s);
    tenants_count_sampled(s, plan);
    sched_observe(s, plan);
}
