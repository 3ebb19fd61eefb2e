/*
 * step.c - one step: schedule, row, the model runs, tokens, finishes, releases.
 */
#include <inttypes.h>

#include "base/mix.h"
#include "engine/engine_private.h"

static void fill_planned(struct pkv_engine *e, const struct pkv_plan *plan, uint64_t evicted_before)
{
    struct pkv_step_row *row = &e->row;
    struct pkv_cache_figures cache = pkv_cache_figures(pkv_sched_cache(e->sched));
    row->waiting = (int64_t)pkv_sched_num_waiting(e->sched);
    row->running = (int64_t)(pkv_sched_num_running(e->sched) + pkv_sched_num_resuming(e->sched));
    row->free_blocks = cache.num_free;
    row->used_blocks = (int64_t)cache.num_blocks - cache.num_free;
    row->cached_blocks = cache.num_cached;
    row->stored_tokens = (int64_t)cache.num_stored;
    row->table_blocks = (int64_t)cache.num_holds;
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
        e->last_hit_tokens = a->num_hit_tokens;
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
static int64_t next_outside_ns(const struct pkv_engine *e)
{
    const struct pkv_heap_node *abort = pkv_heap_first(&e->aborts);
    int64_t next = engine_next_arrival_ns(e);
    if (abort && (next == PKV_NO_TIME || abort->key[0] < next))
        next = abort->key[0];
    return next;
}

/* ... or a transfer is done. */
static int64_t next_event_ns(const struct pkv_engine *e)
{
    int64_t next = next_outside_ns(e), done = link_next_ns(e);
    return next == PKV_NO_TIME || (done != PKV_NO_TIME && done < next) ? done : next;
}

/* One in which nothing changed stands for all that would begin before the next event. */
static int64_t stretch(struct pkv_engine *e, const struct pkv_plan *plan, int64_t dur,
                       int64_t until_next)
{
    if (dur == 0 || until_next <= dur)
        return dur;
    pkv_sched_repeat(e->sched, plan, (uint64_t)((until_next - 1) / dur));
    return until_next;
}

/* How long the model takes for a plan. */
static int64_t work_ns(struct pkv_engine *e, const struct pkv_plan *plan)
{
    const struct pkv_step_work work = {
        .num_prefill_tokens = plan->num_prefill_tokens,
        .num_decodes = plan->num_decodes,
        .num_context_tokens = plan->num_context_tokens,
    };
    int64_t dur = pkv_step_time_ns(&e->config.step_time, &work);
    e->is_too_long = dur >= PKV_LONGEST_STEP_NS;
    return dur;
}

/* What runs beside this step's schedule: its own work, or under async_scheduling that of the step
 * before, if any. */
static struct running_step take_turn(struct pkv_engine *e, struct pkv_plan *plan)
{
    struct running_step own = {plan, work_ns(e, plan), e->now_ns};
    if (!pkv_sched_config(e->sched)->async_scheduling)
        return own;
    struct running_step runs = e->runs;
    e->runs = own;
    return runs;
}

/* How long the row is: as what runs in it. One in which nothing changes stands for all up to the next
 * event. */
static int64_t duration(struct pkv_engine *e, const struct pkv_plan *plan,
                        const struct running_step *runs)
{
    int64_t dur = e->config.row_ns ? e->config.row_ns : runs->dur_ns;
    int64_t next = next_event_ns(e);
    bool brings_something = runs->plan && runs->plan->num_tokens > 0;
    bool is_idle = plan->changed_nothing && !brings_something && engine_num_live(e) > 0;
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

/* Nobody else is live, and it has given itself up again without a token in between. Where drafts are
 * looked ahead for, its growth may ask for more than its admission did, and each time it may have got
 * further into its prompt and find more of it. */
static void watch_lone(struct pkv_engine *e, const struct pkv_plan_preemption *last)
{
    struct lone_preemption *lone = &e->lone;
    const struct pkv_request *r = last->ref.request;
    bool again = lone->happened && lone->row == r->row &&
                 lone->output_tokens == e->figures.output_tokens;
    bool looks_ahead = pkv_speculation_lookahead(&pkv_sched_config(e->sched)->speculation) > 0;
    if (again && !(looks_ahead && e->last_hit_tokens > lone->num_hit_tokens))
        livelock(e, last);
    *lone = (struct lone_preemption){true, r->row, e->figures.output_tokens, e->last_hit_tokens};
}

/* With nothing more to come, what follows a step is decided by the state it leaves. When the state
 * after a preemption comes again without a token in between, it will come for ever. While tokens
 * come out between preemptions, nothing is looked at unless the last running one has just given
 * itself up. */
static int watch_states(struct pkv_engine *e, const struct pkv_plan_preemption *last,
                        struct pkv_err *err)
{
    struct livelock_watch *watch = &e->watch;
    uint64_t progress = e->figures.output_tokens + e->figures.completed;
    bool is_new = watch->progress != progress;
    if (is_new) {
        watch->progress = progress;
        watch->distance = watch->limit = 0;
    }
    if (is_new && pkv_sched_num_running(e->sched) > 0)
        return 0;
    if (pkv_sched_fingerprint(e->sched, &watch->present, err) < 0)
        return -1;
    watch->present.number = pkv_mix(watch->present.number, (uint64_t)link_wait_ns(e));
    if (watch->limit > 0 && pkv_fingerprint_is_again(&watch->kept, &watch->present))
        livelock(e, last);
    if (watch->distance++ == watch->limit) {
        struct pkv_fingerprint kept = watch->kept;
        watch->kept = watch->present;
        watch->present = kept;
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
    bool alone = pkv_sched_num_running(e->sched) == 0 && engine_num_live(e) == 1 &&
                 last->ref.request->abort_ns == PKV_NO_TIME &&
                 last->num_swapped_blocks == 0;   /* else it has lost nothing */
    /* Beside windows it may get further each time, on what it has left behind in the cache. */
    bool gets_further = !pkv_cache_is_plain(pkv_sched_cache(e->sched));
    if (alone && !gets_further)
        watch_lone(e, last);
    if (e->figures.outcome != PKV_OUTCOME_DONE)
        return 0;
    /* A policy that learns may decide otherwise in a state that looks the same. */
    bool is_closed = next_outside_ns(e) == PKV_NO_TIME && !e->learns;
    return is_closed || (alone && gets_further) ? watch_states(e, last, err) : 0;
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

static int tokens_out(struct pkv_engine *e, struct pkv_request *r, uint32_t num, int64_t end_ns,
                      struct pkv_err *err)
{
    bool is_first = r->first_token_ns == PKV_NO_TIME;
    gaps_tokens(e, r, num, end_ns);
    if (!is_first || !e->wants_events)
        return 0;
    struct pkv_event event = event_of(e, PKV_EVENT_FIRST_TOKEN, end_ns, r);
    return emit_event(e, &event, err);
}

/* A fork that was drawn among beams is one that gave way; all others are at the end of a prompt. */
static void count_forks(struct pkv_engine *e, const struct pkv_plan *plan)
{
    for (size_t i = 0; i < plan->num_forks; i++) {
        const struct pkv_plan_fork *f = &plan->forks[i];
        bool is_drawn = f->num_tokens > f->ref.request->seq.num_prompt_tokens;
        e->figures.dropped_beams += is_drawn;
        e->figures.forks += !is_drawn;
        e->figures.forked_tokens += is_drawn || f->is_again ? 0 : f->num_tokens;
        e->row.output_tokens += f->sampled;
    }
}

/* Those who share another one's blocks from here on; a first token comes out with the parent's. */
static int tell_forks(struct pkv_engine *e, const struct pkv_plan *plan, int64_t end_ns,
                      struct pkv_err *err)
{
    for (size_t i = 0; i < plan->num_forks; i++) {
        const struct pkv_plan_fork *f = &plan->forks[i];
        struct pkv_event event = event_of(e, PKV_EVENT_FORK, end_ns, f->ref.request);
        event.parent = f->parent.request;
        event.shared_blocks = f->num_shared_blocks;
        event.shared_tokens = f->num_tokens;
        event.freed_blocks = f->freed_blocks;
        if (emit_event(e, &event, err) < 0)
            return -1;
        if (f->sampled && tokens_out(e, f->ref.request, 1, end_ns, err) < 0)
            return -1;
    }
    return 0;
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

static void count_entry(struct pkv_engine *e, const struct pkv_plan_entry *entry)
{
    struct pkv_engine_figures *f = &e->figures;
    e->row.output_tokens += entry->num_sampled;
    if (entry->num_drafts == 0)
        return;
    f->num_verifications++;
    f->drafted_tokens += entry->num_drafts;
    f->accepted_tokens += entry->num_accepted;
    f->verified_tokens += entry->num_sampled;
    for (uint32_t i = 0; i < entry->num_accepted; i++)
        f->accepted_at[i]++;
}

static int results(struct pkv_engine *e, const struct pkv_plan *plan, int64_t end_ns,
                   struct pkv_err *err)
{
    struct pkv_step_row *row = &e->row;
    row->regular_gap_ns = row->dur_ns;
    row->regular_gaps = row->output_tokens = (int64_t)plan->num_steady;
    row->max_gap_ns = plan->num_steady ? row->dur_ns : 0;
    for (size_t i = 0; i < plan->num_entries; i++)
        count_entry(e, &plan->entries[i]);
    count_forks(e, plan);
    /* Counted first, so that the account holds even if a sink fails in the middle. */
    e->figures.output_tokens += (uint64_t)row->output_tokens;
    e->figures.completed += plan->num_finished;
    row->finished = (int64_t)plan->num_finished;
    for (size_t i = 0; i < plan->num_entries; i++) {
        const struct pkv_plan_entry *entry = &plan->entries[i];
        uint32_t num = entry->num_sampled;
        if (num > 0 && tokens_out(e, entry->ref.request, num, end_ns, err) < 0)
            return -1;
    }
    if (tell_forks(e, plan, end_ns, err) < 0)
        return -1;
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
    int64_t room = e->row.used_blocks * pkv_cache_block_size(pkv_sched_cache(e->sched));
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

/* When nobody is live any more, what still runs is for nobody. */
static void let_go(struct pkv_engine *e)
{
    if (e->runs.plan && engine_num_live(e) == 0) {
        pkv_sched_drop(e->sched, e->runs.plan);
        e->runs = (struct running_step){0};
    }
}

/* The model is through with a plan: its tokens come out. */
static int complete(struct pkv_engine *e, const struct running_step *runs, int64_t end_ns,
                    struct pkv_err *err)
{
    e->failed = true;   /* until the step is whole */
    e->row.updated_ns = runs->plan ? runs->scheduled_ns : PKV_NO_TIME;
    gaps_note_step(e);
    if (runs->plan) {
        pkv_sched_commit(e->sched, runs->plan);
        if (results(e, runs->plan, end_ns, err) < 0)
            return -1;
    }
    e->row.free_blocks_end = pkv_cache_num_free(pkv_sched_cache(e->sched));
    if (check(e, NULL, err) < 0 || emit_step(e, err) < 0)
        return -1;
    let_go(e);
    e->failed = false;
    return 0;
}

int engine_step(struct pkv_engine *e, struct pkv_err *err)
{
    uint64_t evicted_before = pkv_cache_figures(pkv_sched_cache(e->sched)).num_evicted;
    struct pkv_plan *plan;
    pkv_sched_set_link_wait(e->sched, link_wait_ns(e));
    if (gaps_reserve_step(e, err) < 0 || pkv_sched_plan(e->sched, &plan, err) < 0)
        return -1;
    if (link_begin(e, plan, err) < 0)
        return -1;
    settle_left(e, plan);
    fill_planned(e, plan, evicted_before);
    fill_waste(e, plan);
    count_plan(e, plan);
    struct running_step runs = take_turn(e, plan);
    e->row.dur_ns = duration(e, plan, &runs);
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
    int64_t end_ns = e->now_ns + e->row.dur_ns;
    if (complete(e, &runs, end_ns, err) < 0)
        return -1;
    e->figures.num_steps++;
    e->figures.end_ns = end_ns;
    e->now_ns = end_ns;
    return 0;
}
