/*
 * engine_private.h - the engine's record, for its own files.
 */
#ifndef PKV_ENGINE_PRIVATE_H
#define PKV_ENGINE_PRIVATE_H

#include "base/heap.h"
#include "engine/sessions.h"
#include "pagedkv/engine.h"

/* Durations of steps of which no later one is longer, so that the longest since any step is found by
 * bisection. */
struct longest_since {
    struct { int64_t step, dur_ns; } *steps;   /* [num], owned; dur_ns falls */
    size_t num, capacity;
};

/* The last time a request gave itself up with nobody else live. */
struct lone_preemption {
    bool happened;
    uint64_t row, output_tokens;
    uint32_t num_hit_tokens;             /* when it had been admitted */
};

/* The search for a state that comes again (Brent 1980): one earlier state is kept, and replaced by
 * the present one at growing distances. */
struct livelock_watch {
    uint64_t progress;                   /* tokens out and requests done when the search began */
    struct pkv_fingerprint kept, present;
    uint64_t distance, limit;            /* states since; at the limit the kept one is replaced */
};

/* A step that the model runs while the next one is scheduled. */
struct running_step {
    struct pkv_plan *plan;               /* NULL = none; the scheduler's */
    int64_t dur_ns, scheduled_ns;
};

struct pkv_engine {
    struct pkv_engine_config config;
    struct pkv_sched *sched;             /* owned */
    struct pkv_heap aborts;              /* live requests that will be aborted, by (time, row) */
    struct pkv_request_spec asked;       /* the source's row at hand */
    struct pkv_request_spec next;        /* the next request: the row, or one of its samples */
    bool has_next;
    struct sessions sessions;            /* rows that were read before their time */
    int64_t stopped_ns;                  /* the last step with a row that could not be read on from */
    uint64_t num_rows_more;              /* requests beyond the rows, before this one */
    char *sample_id;                     /* owned */
    size_t sample_id_capacity;
    bool is_too_long;                    /* the step at hand does not fit virtual time */
    bool learns;                         /* a policy may decide otherwise in a state that looks the same */
    bool steps_matter;                   /* ... or once more idle steps have gone by */
    bool wants_events;                   /* some sink has event */
    bool wants_plans;                    /* some sink has planned */
    struct pkv_plan_entry *entries;      /* owned scratch: a plan spelled out */
    size_t entries_capacity;
    int64_t now_ns;                      /* written here alone: virtual time */
    int64_t link_free_ns;                /* when the link will have done what is queued */
    struct pkv_step_row row;             /* of the step at hand */
    struct pkv_engine_figures figures;
    uint32_t num_idle_steps;             /* in a row, with nothing to come */
    struct lone_preemption lone;
    uint32_t last_hit_tokens;            /* of the admission made last */
    struct livelock_watch watch;
    const char *unfinished_reason;
    struct running_step runs;            /* async_scheduling only */
    bool failed;                         /* in the middle of a step: times are not whole */
    struct longest_since longest;        /* of the steps that are over */
    struct pkv_err *drain_err;
    int drain_result;
};

/* arrivals.c */
int engine_fetch(struct pkv_engine *e, struct pkv_err *err);
/* When the next request comes, as far as it is decided; PKV_NO_TIME = none. */
int64_t engine_next_arrival_ns(const struct pkv_engine *e);
int engine_check_left(const struct pkv_engine *e, struct pkv_err *err);
int engine_arrivals(struct pkv_engine *e, struct pkv_err *err);
int engine_aborts(struct pkv_engine *e, struct pkv_err *err);
size_t engine_num_live(const struct pkv_engine *e);

/* link.c */
/* Queue what the plan began. */
int link_begin(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err);
/* Those that are done now; and how long the link is busy yet. */
void link_done(struct pkv_engine *e);
int64_t link_wait_ns(const struct pkv_engine *e);
/* When the oldest one will be done; PKV_NO_TIME = none is under way. */
int64_t link_next_ns(const struct pkv_engine *e);

/* samples.c */
/* The next of the requests that rows stand for: 1, 0 at the end, -1. */
int samples_next(struct pkv_engine *e, struct pkv_err *err);

/* step.c */
int engine_step(struct pkv_engine *e, struct pkv_err *err);

/* gaps.c */
/* Room for one step more; before the step. */
int gaps_reserve_step(struct pkv_engine *e, struct pkv_err *err);
void gaps_note_step(struct pkv_engine *e);
/* Bring a request's token times up to the moment `now_ns`, the end of the last step noted. */
void gaps_settle(struct pkv_engine *e, struct pkv_request *r, int64_t now_ns);
/* Tokens at end_ns, in the step at hand; at least one. */
void gaps_tokens(struct pkv_engine *e, struct pkv_request *r, uint32_t num, int64_t end_ns);

/* emit.c: to all sinks, in the order in which they were given */
int emit_event(struct pkv_engine *e, const struct pkv_event *event, struct pkv_err *err);
int emit_request(struct pkv_engine *e, struct pkv_request *r, const char *reason, int64_t finish_ns,
                 struct pkv_err *err);
int emit_planned(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err);
int emit_step(struct pkv_engine *e, struct pkv_err *err);
void emit_gap(struct pkv_engine *e, int64_t gap_ns);
/* The events of a plan: preemptions, admissions, a blocked head. */
int emit_plan_events(struct pkv_engine *e, const struct pkv_plan *plan, struct pkv_err *err);
struct pkv_event event_of(const struct pkv_engine *e, enum pkv_event_kind kind, int64_t time_ns,
                          const struct pkv_request *r);
size_t engine_holders(const struct pkv_engine *e, struct pkv_holder *out);

/* diagnose.c */
void engine_diagnose_stuck(struct pkv_engine *e, const struct pkv_plan *plan);
void engine_diagnose_livelock(struct pkv_engine *e, const struct pkv_plan_preemption *last);

#endif
