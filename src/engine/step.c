/*
 * step.c - one step: schedule, row, the model runs, tokens, finishes, releases.
 */
#include <inttypes.h>

#include "engine/engine_private.h"

static void fill_planned(struct pkv_engine *e, const struct pkv_plan *plan, uint64_t evicted_before)
{
    struct pkv_step_row *row = &e->row;
    struct pkv_cache_figures cache = pkv_cache_figures(pkv_sched_cache(e->sched));
    row->waiting = (int64_t)pkv_sched_num_waiting(e->sched);
    row->running = (int64_t)pkv_sched_num_running(e->sched);
    row->free_blocks = cache.num_free;
    row->used_blocks = (int64_t)cache.num_blocks - cache.num_free;
    row->cached_blocks = cache.num_cached;
    row->stored_tokens = (int64_t)cache.num_stored;
    row->evicted_blocks = (int64_t)(cache.num_evicted - evicted_before);
    row->preempted = (int64_t)plan->num_preemptions;
    row->preemptions_total = (int64_t)pkv_sched_num_preemptions(e->sched);
    row->sched_tokens = (int64_t)plan->num_tokens;
    row->prefill_tokens = (int64_t)plan->num_prefill_tokens;
    row->decode_tokens = (int64_t)plan->num_decodes;
    row->recomputed_tokens = (int64_t)plan->num_recomputed_tokens;
    row->hit_tokens = (int64_t)plan->num_hit_tokens;
    row->context_tokens = (int64_t)plan->num_context_tokens;
    row->limit = (int64_t)plan->limit;
}

static void fill_waste(struct pkv_engine *e, const struct pkv_plan *plan)
{
    struct pkv_step_row *row = &e->row;
    int64_t block_size = pkv_sched_config(e->sched)->groups[0].block_size;
    if (!pkv_cache_takes_runs(pkv_sched_cache(e->sched)))
        return;
    int64_t promised = (int64_t)pkv_sched_promised_positions(e->sched);
    row->reserved_slots = promised - row->stored_tokens;
    row->internal_slots = row->used_blocks * block_size - promised;
    row->external_slots = plan->limit == PKV_LIMIT_BLOCKS ? row->free_blocks * block_size : 0;
}

static void count_plan(struct pkv_engine *e, const struct pkv_plan *plan)
{
    struct pkv_engine_figures *f = &e->figures;
    f->scheduled_tokens += plan->num_tokens;
    f->recomputed_tokens += plan->num_recomputed_tokens;
    for (size_t i = 0; i < plan->num_admissions; i++) {
        const struct pkv_plan_admission *a = &plan->admissions[i];
        struct pkv_request *r = a->ref.request;
        if (a->resumed) {
            e->row.resumed++;
            e->row.resumed_queried_tokens += a->num_queried_tokens;
            e->row.resumed_hit_tokens += a->num_hit_tokens;
            continue;
        }
        e->row.admitted++;
        r->admitted_ns = e->now_ns;
        e->row.prompt_tokens += r->seq.num_prompt_tokens;
        e->row.queried_tokens += a->num_queried_tokens;
        e->row.first_hit_tokens += a->num_hit_tokens;
    }
    f->resumed_queried_tokens += (uint64_t)e->row.resumed_queried_tokens;
    f->resumed_hit_tokens += (uint64_t)e->row.resumed_hit_tokens;
    f->prompt_tokens += (uint64_t)e->row.prompt_tokens;
    f->queried_tokens += (uint64_t)e->row.queried_tokens;
    f->hit_tokens += (uint64_t)e->row.first_hit_tokens;
}

/* When the next thing from outside happens; PKV_NO_TIME = never. */
static int64_t next_event_ns(const struct pkv_engine *e)
{
    const struct pkv_heap_node *abort = pkv_heap_first(&e->aborts);
    int64_t next = engine_next_arrival_ns(e);
    if (abort && (next == PKV_NO_TIME || abort->key[0] < next))
        next = abort->key[0];
    return next;
}

/* One in which nothing changed stands for all that would begin before the next event. */
static int64_t stretch(struct pkv_engine *e, const struct pkv_plan *plan, int64_t dur,
                       int64_t until_next)
{
    if (until_next <= dur)
        return dur;
    pkv_sched_repeat(e->sched, plan, (uint64_t)((until_next - 1) / dur));
    return until_next;
}

/* How long the step takes. */
static int64_t duration(struct pkv_engine *e, const struct pkv_plan *plan)
{
    const struct pkv_step_work work = {
        .num_prefill_tokens = plan->num_prefill_tokens,
        .num_decodes = plan->num_decodes,
        .num_context_tokens = plan->num_context_tokens,
    };
    int64_t dur = pkv_step_time_ns(&e->config.step_time, &work);
    e->is_too_long = dur >= PKV_LONGEST_STEP_NS;
    int64_t next = next_event_ns(e);
    bool is_idle = plan->changed_nothing && engine_num_live(e) > 0;
    e->num_idle_steps = is_idle && next == PKV_NO_TIME ? e->num_idle_steps + 1 : 0;
    if (e->num_idle_steps >= e->config.stuck_steps)
        e->figures.outcome = PKV_OUTCOME_STUCK;
    if (!is_idle || next == PKV_NO_TIME || e->steps_matter)
        return dur;
    return stretch(e, plan, dur, next - e->now_ns);
}

static void livelock(struct pkv_engine *e, const struct pkv_plan_preemption *last)
{
    e->figures.outcome = PKV_OUTCOME_LIVELOCK;
    engine_diagnose_livelock(e, last);
}

/* Nobody else is live, and it has given itself up again without a token in between. */
static void watch_lone(struct pkv_engine *e, const struct pkv_plan_preemption *last)
{
    struct lone_preemption *lone = &e->lone;
    const struct pkv_request *r = last->ref.request;
    if (lone->happened && lone->row == r->row && lone->output_tokens == e->figures.output_tokens)
        livelock(e, last);
    *lone = (struct lone_preemption){true, r->row, e->figures.output_tokens};
}

/* With nothing more to come, what follows a step is decided by the state it leaves. When the state
 * after a preemption comes again without a token in between, it will come for ever. While tokens
 * come out between preemptions, nothing is looked at unless the last running one has just given
 * itself up. */
static int watch_states(struct pkv_engine *e, const struct pkv_plan_preemption *last,
                        struct pkv_err *err)
{
    struct livelock_watch *watch = &e->watch;
    uint64_t progress = e->figures.output_tokens + e->figures.completed, state;
    bool is_new = watch->progress != progress;
    if (is_new)
        *watch = (struct livelock_watch){.progress = progress};
    if (is_new && pkv_sched_num_running(e->sched) > 0)
        return 0;
    if (pkv_sched_fingerprint(e->sched, &state, err) < 0)
        return -1;
    if (watch->limit > 0 && state == watch->kept)
        livelock(e, last);
    if (watch->distance++ == watch->limit) {
        watch->kept = state;
        watch->distance = 0;
        watch->limit = 2 * watch->limit + 1;
    }
    return 0;
}

static int watch_livelock(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err)
{
    if (e->config.every_step || plan->num_preemptions == 0)
        return 0;
    const struct pkv_plan_preemption *last = &plan->preemptions[plan->num_preemptions - 1];
    bool alone = pkv_sched_num_running(e->sched) == 0 && engine_num_live(e) == 1;
    if (alone && last->ref.request->abort_ns == PKV_NO_TIME)
        watch_lone(e, last);
    if (e->figures.outcome == PKV_OUTCOME_DONE && next_event_ns(e) == PKV_NO_TIME &&
        !e->learns)
        return watch_states(e, last, err);
    return 0;
}

/* --- after the model has run ----------------------------------------------------------------- */

/* Those who were steady until now, and may not be in the plan: their times up to this step. */
static void settle_left(struct pkv_engine *e, const struct pkv_plan *plan)
{
    if (!plan->left_steady)
        return;
    for (size_t i = 0; i < pkv_sched_num_running(e->sched); i++)
        gaps_settle(e, pkv_sched_running(e->sched, i), e->now_ns);
    for (size_t i = 0; i < plan->num_preemptions; i++)
        gaps_settle(e, plan->preemptions[i].ref.request, e->now_ns);
}

static int token_out(struct pkv_engine *e, struct pkv_request *r, int64_t end_ns,
                     struct pkv_err *err)
{
    bool is_first = r->first_token_ns == PKV_NO_TIME;
    gaps_token(e, r, end_ns);
    if (!is_first || !e->wants_events)
        return 0;
    struct pkv_event event = event_of(e, PKV_EVENT_FIRST_TOKEN, end_ns, r);
    return emit_event(e, &event, err);
}

static int finish(struct pkv_engine *e, struct pkv_request *r, int64_t end_ns, struct pkv_err *err)
{
    gaps_settle(e, r, end_ns);
    if (r->abort_node.index != PKV_HEAP_NOWHERE)
        pkv_heap_remove(&e->aborts, &r->abort_node);
    struct pkv_event event = event_of(e, PKV_EVENT_FINISH, end_ns, r);
    if (emit_event(e, &event, err) < 0 || emit_request(e, r, "", end_ns, err) < 0 ||
        sessions_over(&e->sessions, r, end_ns, err) < 0)
        return -1;
    pkv_sched_forget(e->sched, r);
    return 0;
}

static int results(struct pkv_engine *e, const struct pkv_plan *plan, int64_t end_ns,
                   struct pkv_err *err)
{
    struct pkv_step_row *row = &e->row;
    row->regular_gap_ns = row->dur_ns;
    row->regular_gaps = row->output_tokens = (int64_t)plan->num_steady;
    row->max_gap_ns = plan->num_steady ? row->dur_ns : 0;
    for (size_t i = 0; i < plan->num_entries; i++)
        row->output_tokens += plan->entries[i].sampled;
    /* Counted first, so that the account holds even if a sink fails in the middle. */
    e->figures.output_tokens += (uint64_t)row->output_tokens;
    e->figures.completed += plan->num_finished;
    row->finished = (int64_t)plan->num_finished;
    for (size_t i = 0; i < plan->num_entries; i++) {
        const struct pkv_plan_entry *entry = &plan->entries[i];
        if (entry->sampled && token_out(e, entry->ref.request, end_ns, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < plan->num_finished; i++)
        if (finish(e, plan->finished[i], end_ns, err) < 0)
            return -1;
    return 0;
}

static int check_waste(const struct pkv_engine *e, int64_t room, struct pkv_err *err)
{
    const struct pkv_step_row *row = &e->row;
    int64_t sum = row->stored_tokens + row->reserved_slots + row->internal_slots;
    if (!pkv_cache_takes_runs(pkv_sched_cache(e->sched)) ||
        (sum == room && row->reserved_slots >= 0 && row->internal_slots >= 0))
        return 0;
    return pkv_fail(err, PKV_ERR_AUDIT, "E4: %" PRId64 " positions stored, %" PRId64 " reserved and %"
                    PRId64 " never used in room for %" PRId64, row->stored_tokens,
                    row->reserved_slots, row->internal_slots, room);
}

static int check(const struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err)
{
    if (!e->config.check)
        return 0;
    if (plan && pkv_plan_check(e->sched, plan, err) < 0)
        return -1;
    int64_t room = e->row.used_blocks * pkv_sched_config(e->sched)->groups[0].block_size;
    if (e->row.stored_tokens > room)
        return pkv_fail(err, PKV_ERR_AUDIT, "E3: %" PRId64 " positions stored in room for %" PRId64,
                        e->row.stored_tokens, room);
    if (check_waste(e, room, err) < 0)
        return -1;
    return pkv_sched_check(e->sched, err);
}

/* Virtual time is 64 bits of nanoseconds, 292 years. */
static int check_time(const struct pkv_engine *e, struct pkv_err *err)
{
    if (!e->is_too_long && e->now_ns <= INT64_MAX - e->row.dur_ns)
        return 0;
    return pkv_fail(err, PKV_ERR_INPUT,
                    "step %" PRId64 " at %" PRId64 " ns would end beyond the range of virtual time: "
                    "%" PRId64 " prefill tokens, %" PRId64 " decodes, %" PRId64 " context tokens",
                    e->row.step, e->now_ns, e->row.prefill_tokens, e->row.decode_tokens,
                    e->row.context_tokens);
}

int engine_step(struct pkv_engine *e, struct pkv_err *err)
{
    struct pkv_cache *cache = pkv_sched_cache(e->sched);
    uint64_t evicted_before = pkv_cache_figures(cache).num_evicted;
    struct pkv_plan *plan;
    if (gaps_reserve_step(e, err) < 0 || pkv_sched_plan(e->sched, &plan, err) < 0)
        return -1;
    settle_left(e, plan);
    fill_planned(e, plan, evicted_before);
    fill_waste(e, plan);
    count_plan(e, plan);
    e->row.dur_ns = duration(e, plan);
    bool is_stuck = e->figures.outcome == PKV_OUTCOME_STUCK;
    if ((e->wants_events || is_stuck) && pkv_sched_find_head(e->sched, plan, err) < 0)
        return -1;
    if (is_stuck)
        engine_diagnose_stuck(e, plan);
    if (watch_livelock(e, plan, err) < 0)
        return -1;
    if (emit_plan_events(e, plan, err) < 0 || emit_planned(e, plan, err) < 0 ||
        check(e, plan, err) < 0)
        return -1;
    if (check_time(e, err) < 0)
        return -1;
    e->failed = true;   /* until the step is whole */
    pkv_sched_commit(e->sched, plan);
    int64_t end_ns = e->now_ns + e->row.dur_ns;
    gaps_note_step(e);
    if (results(e, plan, end_ns, err) < 0)
        return -1;
    e->row.free_blocks_end = pkv_cache_num_free(cache);
    if (check(e, NULL, err) < 0 || emit_step(e, err) < 0)
        return -1;
    e->failed = false;
    e->figures.num_steps++;
    e->figures.end_ns = end_ns;
    e->now_ns = end_ns;
    return 0;
}
