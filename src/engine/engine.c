/*
 * engine.c - the run loop: jump to the next arrival when nobody is live, else take one step.
 *
 * Time is written here and in step.c only. The run ends by itself: with all requests done, or with
 * a diagnosis when nothing can change any more.
 */
#include <inttypes.h>

#include "engine/engine_private.h"

#include "base/alloc.h"

const char *pkv_event_kind_name(enum pkv_event_kind kind)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = {PKV_EVENT_KINDS(PKV_NAME)};
#undef PKV_NAME
    PKV_ASSERT((unsigned)kind < PKV_EVENT_KIND_COUNT);
    return names[kind];
}

const char *pkv_outcome_name(enum pkv_outcome outcome)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = {PKV_OUTCOMES(PKV_NAME)};
#undef PKV_NAME
    PKV_ASSERT((unsigned)outcome < PKV_OUTCOME_COUNT);
    return names[outcome];
}

struct pkv_engine *pkv_engine_create(const struct pkv_engine_config *config, struct pkv_err *err)
{
    PKV_ASSERT(config->num_sinks <= PKV_MAX_SINKS && config->stuck_steps > 0);
    PKV_ASSERT(pkv_step_time_ns(&config->step_time, &(struct pkv_step_work){0}) > 0);
    struct pkv_engine *e = pkv_alloc(1, sizeof(*e), err);
    if (!e)
        return NULL;
    e->config = *config;
    e->config.sched.swap.step_time = config->step_time;
    if (config->sched.swap.num_host_blocks > 0)
        e->figures.swap_block_bytes = pkv_swap_block_bytes(&config->sched);
    e->figures.first_arrival_ns = e->figures.end_ns = e->stopped_ns = PKV_NO_TIME;
    const struct pkv_policies *p = &config->sched.policies;
    /* What admission and mix have learnt is in the state that is compared. */
    e->learns = p->order->needs_every_step || (p->order->observe && !p->order->fingerprint) ||
                p->preempt->observe;
    e->steps_matter = config->every_step || e->learns ||
                      (p->admit->observe && !p->admit->ignores_idle_steps) ||
                      (p->mix->observe && !p->mix->ignores_idle_steps);
    for (size_t i = 0; i < config->num_sinks; i++) {
        e->wants_events |= config->sinks[i].event != NULL;
        e->wants_plans |= config->sinks[i].planned != NULL;
    }
    e->sched = pkv_sched_create(&e->config.sched, err);
    if (!e->sched ||
        (config->warm && pkv_cache_restore(pkv_sched_cache(e->sched), config->warm, err) < 0)) {
        pkv_engine_destroy(e);
        return NULL;
    }
    if (config->warm) {
        e->figures.is_warm = true;
        e->figures.warm_blocks = pkv_cache_figures(pkv_sched_cache(e->sched)).num_cached;
        e->figures.warm_blocks_left_out = config->warm->num_kept - e->figures.warm_blocks;
    }
    e->config.warm = NULL;   /* the caller's */
    pkv_cache_log_evicted(pkv_sched_cache(e->sched), config->log_evicted);
    return e;
}

void pkv_engine_destroy(struct pkv_engine *e)
{
    if (!e)
        return;
    pkv_heap_free(&e->aborts);
    sessions_finish(&e->sessions);
    pkv_free(e->longest.steps);
    pkv_fingerprint_free(&e->watch.kept);
    pkv_fingerprint_free(&e->watch.present);
    pkv_free(e->entries);
    pkv_free(e->sample_id);
    pkv_sched_destroy(e->sched);
    pkv_free(e);
}

size_t engine_num_live(const struct pkv_engine *e)
{
    return pkv_sched_num_running(e->sched) + pkv_sched_num_resuming(e->sched) +
           pkv_sched_num_waiting(e->sched);
}

/* Whoever follows one that is aborted now, without a delay, comes in the same step. */
static int come_and_go(struct pkv_engine *e, struct pkv_err *err)
{
    int64_t next_ns;
    do {
        if (engine_arrivals(e, err) < 0 || engine_aborts(e, err) < 0)
            return -1;
        next_ns = engine_next_arrival_ns(e);
    } while (next_ns != PKV_NO_TIME && next_ns <= e->now_ns);
    return 0;
}

/* Begin the next step that has to exist. returns 1 when there is one, 0 at the end, -1. */
static int begin_step(struct pkv_engine *e, struct pkv_err *err)
{
    for (;;) {
        if (engine_num_live(e) == 0) {
            int64_t next_ns = engine_next_arrival_ns(e);
            if (next_ns == PKV_NO_TIME)
                return engine_check_left(e, err);
            if (e->now_ns < next_ns)
                e->now_ns = next_ns;
        }
        if (e->config.horizon_ns > 0 && e->now_ns >= e->config.horizon_ns) {
            e->figures.outcome = PKV_OUTCOME_HORIZON;
            return 0;
        }
        e->row = (struct pkv_step_row){
            .step = (int64_t)e->figures.num_steps,
            .time_ns = e->now_ns,
            .counted = &e->figures,
        };
        link_done(e);
        if (come_and_go(e, err) < 0)
            return -1;
        if (engine_num_live(e) > 0 || e->row.aborted > 0)
            return 1;
    }
}

static bool must_stop(struct pkv_engine *e)
{
    if (e->figures.outcome != PKV_OUTCOME_DONE)
        return true;
    if (engine_num_live(e) == 0 && engine_next_arrival_ns(e) == PKV_NO_TIME)
        return false;   /* nothing is left to be stopped */
    if (e->config.should_stop && e->config.should_stop(e->config.stop_ctx)) {
        e->figures.outcome = PKV_OUTCOME_INTERRUPTED;
        return true;
    }
    if (e->config.max_steps && e->figures.num_steps >= e->config.max_steps) {
        e->figures.outcome = PKV_OUTCOME_MAX_STEPS;
        return true;
    }
    return false;
}

static int run_steps(struct pkv_engine *e, struct pkv_err *err)
{
    e->figures.outcome = PKV_OUTCOME_DONE;
    if (engine_fetch(e, err) < 0)
        return -1;
    for (;;) {
        int begun = begin_step(e, err);
        if (begun <= 0)
            return begun;
        if (engine_step(e, err) < 0)
            return -1;
        if (must_stop(e))
            return 0;
    }
}

static void give_unfinished(void *ctx, struct pkv_request *r)
{
    struct pkv_engine *e = ctx;
    e->figures.unfinished++;
    if (!e->failed)
        gaps_settle(e, r, e->now_ns);
    if (e->drain_result == 0)
        e->drain_result = emit_request(e, r, e->unfinished_reason, PKV_NO_TIME, e->drain_err);
}

static const char *reason_of(enum pkv_outcome outcome)
{
    switch (outcome) {
    case PKV_OUTCOME_FAILED:
        return "the run failed";
    case PKV_OUTCOME_STUCK:
        return "nothing can change any more";
    case PKV_OUTCOME_LIVELOCK:
        return "it would preempt itself for ever";
    case PKV_OUTCOME_INTERRUPTED:
        return "the run was interrupted";
    case PKV_OUTCOME_MAX_STEPS:
        return "the run reached its last step";
    case PKV_OUTCOME_HORIZON:
        return "the run reached its horizon";
    case PKV_OUTCOME_DONE:
    case PKV_OUTCOME_COUNT:
        break;
    }
    PKV_UNREACHABLE("an outcome");
}

/* Also after a failure: what was done so far stands, and err keeps its first error. */
static int drain(struct pkv_engine *e, struct pkv_err *err)
{
    bool is_done = e->figures.outcome == PKV_OUTCOME_DONE;   /* nobody is left */
    e->unfinished_reason = is_done ? "" : reason_of(e->figures.outcome);
    e->drain_err = err;
    e->drain_result = 0;
    pkv_sched_drain(e->sched, give_unfinished, e);
    return e->drain_result;
}

/* Every request that came has ended in one of four ways, and no block is held any more. */
static int check_account(const struct pkv_engine *e, struct pkv_err *err)
{
    const struct pkv_engine_figures *f = &e->figures;
    uint64_t ended = f->completed + f->rejected + f->aborted + f->unfinished;
    if (f->arrived != ended)
        return pkv_fail(err, PKV_ERR_AUDIT, "E1: %" PRIu64 " requests arrived, %" PRIu64 " ended",
                        f->arrived, ended);
    if (f->cache.num_free != f->cache.num_blocks)
        return pkv_fail(err, PKV_ERR_AUDIT, "E2: %u blocks of %u are free in the end",
                        f->cache.num_free, f->cache.num_blocks);
    return 0;
}

int pkv_engine_run(struct pkv_engine *e, struct pkv_err *err)
{
    int result = run_steps(e, err);
    struct pkv_err later;
    if (result < 0)
        e->figures.outcome = PKV_OUTCOME_FAILED;
    int drained = drain(e, result == 0 ? err : &later);
    e->figures.preemptions = pkv_sched_num_preemptions(e->sched);
    e->figures.cache = pkv_cache_figures(pkv_sched_cache(e->sched));
    if (result == 0 && drained == 0 && e->config.check)
        return check_account(e, err);
    return result < 0 ? result : drained;
}

const struct pkv_cache *pkv_engine_cache(const struct pkv_engine *e)
{
    return pkv_sched_cache(e->sched);
}

const struct pkv_engine_figures *pkv_engine_figures(const struct pkv_engine *e)
{
    return &e->figures;
}
