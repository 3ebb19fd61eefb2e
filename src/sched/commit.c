/*
 * commit.c - a step's tokens come out, in the order of the plan.
 *
 * When a request's computed positions reach its known tokens, one token is sampled. The last one is
 * never stored: a request of P prompt and O output tokens computes P + O - 1 positions. A finished
 * request's blocks are free at once, so the next step can use them.
 *
 * Source: vllm/v1/core/sched/scheduler.py, update_from_output().
 */
#include "sched/sched_private.h"

static bool is_done(const struct pkv_sched *s, const struct pkv_request *r)
{
    return r->emits_nothing || r->num_emitted >= r->num_output_tokens ||
           r->seq.num_known_tokens >= s->max_model_len;
}

static bool is_chunk(const struct pkv_plan_entry *entry, const struct pkv_request *r)
{
    return entry->kind != PKV_ENTRY_RUNNING || r->num_emitted == 0 ||
           r->seq.num_known_tokens - entry->first_position > 1;
}

/* Before the token comes out. */
static void publish_step(struct pkv_sched *s, const struct pkv_plan_entry *entry,
                         struct pkv_request *r)
{
    switch (s->config.policies.publish->when) {
    case PKV_PUBLISH_CHUNK_END:
        if (!is_chunk(entry, r))
            return;
        /* fall through */
    case PKV_PUBLISH_COMPUTED:
        pkv_cache_publish(s->cache, &r->seq);
        return;
    case PKV_PUBLISH_ALLOC:
    case PKV_PUBLISH_FINISH:
        return;
    }
}

void sched_publish_end(struct pkv_sched *s, struct pkv_seq *seq)
{
    switch (s->config.policies.publish->when) {
    case PKV_PUBLISH_CHUNK_END:
    case PKV_PUBLISH_FINISH:
        pkv_cache_publish(s->cache, seq);
        return;
    case PKV_PUBLISH_ALLOC:
    case PKV_PUBLISH_COMPUTED:
        return;
    }
}

static void commit_entry(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_plan_entry *entry)
{
    struct pkv_request *r = pkv_request_get(entry->ref);
    PKV_ASSERT(r && r->status == PKV_REQUEST_RUNNING);
    struct pkv_seq *seq = &r->seq;
    if (seq->num_computed_tokens > r->num_highest_tokens)
        r->num_highest_tokens = seq->num_computed_tokens;
    r->num_recomputed_tokens += entry->num_recomputed;
    publish_step(s, entry, r);
    if (!entry->samples)
        return;
    if (!r->emits_nothing) {
        seq->num_known_tokens++;
        r->num_emitted++;
        entry->sampled = true;
    }
    entry->finished = is_done(s, r);
    if (!entry->finished) {
        steady_enter(s, r);
        return;
    }
    sched_publish_end(s, seq);
    pkv_cache_release(s->cache, seq);
    pkv_request_set_status(r, PKV_REQUEST_COMPLETED);
    plan->finished[plan->num_finished++] = r;
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
    PKV_ASSERT(s->in_flight);
    s->in_flight = false;
    tenants_count(s, plan);
    steady_commit(s, plan);
    for (size_t i = 0; i < plan->num_entries; i++)
        commit_entry(s, plan, &plan->entries[i]);
    if (plan->num_finished > 0)
        drop_finished(s);
    sched_observe(s, plan);
}
