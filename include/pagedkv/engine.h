/*
 * engine.h - virtual time: arrivals, aborts, steps; and the interfaces of source and sink.
 *
 * Invariants, recounted with those of the scheduler when check is on:
 *   E1  every request that arrived is completed, rejected, aborted or unfinished in the end
 *   E2  no block is held in the end
 *   E3  stored positions <= used blocks x block size in every row
 *   E4  under a layout of runs they are all of stored, reserved and internal, none below 0
 *
 * At a step: transfers done, arrivals due, aborts due, schedule, step row, the model runs (time passes),
 * tokens, finishes, releases. A row has every count of one step. A step is skipped when nobody is live and
 * nothing was aborted in it.
 *
 * Under async_scheduling a step's tokens come out at the end of the next one: the model runs while
 * that one is scheduled. Its row has the counts of its own schedule and, with finished,
 * free_blocks_end and max_gap_ns, those of the tokens that came out in it. A step that finds nothing
 * running has no duration; what still runs when nobody is live any more is let go.
 *
 * Swapping (see sched.h): one link beside the compute, for both ways. A plan's transfers are queued behind
 * those before them as the step begins, each of one request's blocks, one block after another (model.h);
 * they are done at the first step that begins then or later. running counts those that are on their way
 * back. What is still under way when nobody is live is done without a step.
 */
#ifndef PAGEDKV_ENGINE_H
#define PAGEDKV_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"
#include "pagedkv/model.h"
#include "pagedkv/request.h"
#include "pagedkv/sched.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Where requests come from. */
struct pkv_source {
    /* 1 and a row, 0 at the end, -1 with an error. Rows come in time order, numbered from 0; what
     * the spec points to lives until the next call. Rows that follow others are read ahead, and kept
     * until these have ended in whatever way; then PKV_ORIGIN_PREV in their prompts is replaced by
     * what these said, prompt and answer as far as it came. See engine/sessions.h. */
    int (*next)(void *ctx, struct pkv_request_spec *out, struct pkv_err *err);
    void *ctx;
    bool has_followers;   /* some row may follow another; false = sessions are but names */
};

/* The columns of steps.csv, in their order. Counts are taken right after scheduling, but for
 * free_blocks_end and finished. */
#define PKV_STEP_COLUMNS(X)                                                                   \
    X(step) X(time_ns) X(dur_ns) X(waiting) X(running) X(free_blocks) X(used_blocks)          \
    X(cached_blocks) X(free_blocks_end) X(admitted) X(resumed) X(preempted) X(finished)       \
    X(rejected) X(aborted) X(preemptions_total) X(sched_tokens) X(prefill_tokens)             \
    X(decode_tokens) X(recomputed_tokens) X(hit_tokens) X(evicted_blocks) X(stored_tokens)    \
    X(context_tokens) X(swapped_out_blocks) X(swapped_in_blocks) X(max_gap_ns) X(limit)

struct pkv_engine_figures;
struct pkv_step_row {
#define PKV_FIELD(name) int64_t name;
    PKV_STEP_COLUMNS(PKV_FIELD)
#undef PKV_FIELD
    /* Not printed: for the figures. Gaps of exactly `gap_ns` closed in this tick by regular_gaps
     * requests; others come through on_gap. */
    int64_t regular_gap_ns, regular_gaps;
    int64_t output_tokens;          /* tokens that came out */
    int64_t updated_ns;             /* time_ns of the step whose tokens these were; PKV_NO_TIME = none */
    /* Those admitted for the first time in it: their prompts, looked up, found. Then of the resumed. */
    int64_t prompt_tokens, queried_tokens, first_hit_tokens;
    int64_t resumed_queried_tokens, resumed_hit_tokens;
    /* Not printed either: what of the pool lies waste under a layout of runs, in positions; else 0.
     * reserved: held, and a later token of its request will be stored there; internal: held, and
     * nothing ever will, as it is the rest of a last block, of a guess or of a power of two;
     * external: free, while the first in line found no run long enough. */
    int64_t reserved_slots, internal_slots, external_slots;
    int64_t table_blocks;           /* lengths of all tables: what used_blocks would be unshared */
    const struct pkv_engine_figures *counted;   /* borrowed: all that was counted up to its end, while
                                                 * the sinks see it */
};

/* One request at its end. Times are PKV_NO_TIME where the thing never happened. */
struct pkv_request_row {
    const struct pkv_request *request;   /* its fields as they stand; gone after the call */
    enum pkv_request_status status;
    const char *reason;                  /* "" unless rejected or unfinished */
    int64_t finish_ns;                   /* end or abort; PKV_NO_TIME for rejected and unfinished */
};

#define PKV_EVENT_KINDS(X)                                                      \
    X(PKV_EVENT_ARRIVE, "arrive") X(PKV_EVENT_REJECT, "reject")                 \
    X(PKV_EVENT_ADMIT, "admit") X(PKV_EVENT_RESUME, "resume")                   \
    X(PKV_EVENT_BLOCKED, "blocked") X(PKV_EVENT_PREEMPT, "preempt")             \
    X(PKV_EVENT_FIRST_TOKEN, "first_token") X(PKV_EVENT_FINISH, "finish")       \
    X(PKV_EVENT_ABORT, "abort")                                                 \
    X(PKV_EVENT_SWAP_OUT, "swap_out") X(PKV_EVENT_SWAP_IN, "swap_in")           \
    X(PKV_EVENT_FORK, "fork")

enum pkv_event_kind {
#define PKV_ENUM(sym, word) sym,
    PKV_EVENT_KINDS(PKV_ENUM)
#undef PKV_ENUM
    PKV_EVENT_KIND_COUNT
};
const char *pkv_event_kind_name(enum pkv_event_kind kind);

#define PKV_MAX_HOLDERS 5u
struct pkv_holder { const struct pkv_request *request; uint32_t num_blocks; };

/* One thing that happened to one request. Fields beyond the first four by kind, else 0. */
struct pkv_event {
    enum pkv_event_kind kind;
    int64_t time_ns;
    uint64_t step;                        /* the step it belongs to */
    const struct pkv_request *request;
    const char *reason;                   /* reject */
    enum pkv_limit limit;                 /* blocked */
    uint64_t need_blocks;                 /* admit, resume, blocked */
    uint32_t free_blocks;                 /* the same */
    uint32_t hit_tokens, sched_tokens;    /* admit, resume */
    bool follows;                         /* arrive: it came after another of its session, and of its */
    uint32_t former_tokens;               /* prompt so many are what came before in that session, */
    uint32_t retained_tokens;             /* so many of which the cache has now */
    struct pkv_holder holders[PKV_MAX_HOLDERS];   /* blocked: most blocks first, ties by row */
    size_t num_holders;
    /* blocked, while the queue is shut (on_blocked: latch): by whose refusal, NULL = it is gone by now, and
     * in which step that was. */
    bool is_latched;
    const struct pkv_request *refused;
    uint64_t refused_step;
    const struct pkv_request *grower;     /* preempt: for whom */
    uint32_t freed_blocks, lost_tokens;   /* preempt, abort; fork: freed */
    const struct pkv_request *parent;     /* fork: whose blocks it shares */
    uint32_t shared_blocks, shared_tokens;   /* fork: how many, with how many positions */
    enum pkv_request_status was;          /* abort */
    uint32_t num_blocks;                  /* swap_out, swap_in: on their way */
    uint64_t num_bytes;                   /* the same */
    int64_t done_ns;                      /* the same: when the link will have moved them */
};

/* Where results go. Any call may be NULL. A call that returns -1 ends the run. Order within a step:
 * what arrivals and aborts bring (event, request), the plan's events, planned, scheduled, what tokens and
 * finishes bring (gap, event, request), step. */
struct pkv_sink {
    int (*event)(void *ctx, const struct pkv_event *event, struct pkv_err *err);
    /* The plan has all its entries spelled out. */
    int (*planned)(void *ctx, struct pkv_sched *sched, const struct pkv_plan *plan,
                   struct pkv_err *err);
    /* The same moment for who looks at the state alone, and not in every step: no entry is spelled out,
     * so that the call costs nothing by itself. The pool is as the row's counts have it. */
    int (*scheduled)(void *ctx, struct pkv_sched *sched, struct pkv_err *err);
    int (*request)(void *ctx, const struct pkv_request_row *row, struct pkv_err *err);
    void (*gap)(void *ctx, int64_t gap_ns);      /* a gap between two tokens, not the regular one */
    int (*step)(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                struct pkv_err *err);
    void *ctx;
};
#define PKV_MAX_SINKS 8u

/* How a run ended. */
#define PKV_OUTCOMES(X)                                                                   \
    X(PKV_OUTCOME_DONE, "done")                 /* all requests ended */                  \
    X(PKV_OUTCOME_STUCK, "stuck")               /* nothing can change any more */         \
    X(PKV_OUTCOME_LIVELOCK, "livelock")         /* the same goes on for ever */           \
    X(PKV_OUTCOME_INTERRUPTED, "interrupted")   /* should_stop said so */                 \
    X(PKV_OUTCOME_MAX_STEPS, "max_steps")                                                 \
    X(PKV_OUTCOME_HORIZON, "horizon")           /* it went as far as it was to go */      \
    X(PKV_OUTCOME_FAILED, "failed")             /* pkv_engine_run() returned an error */

enum pkv_outcome {
#define PKV_ENUM(sym, word) sym,
    PKV_OUTCOMES(PKV_ENUM)
#undef PKV_ENUM
    PKV_OUTCOME_COUNT
};
const char *pkv_outcome_name(enum pkv_outcome outcome);

struct pkv_engine_config {
    struct pkv_sched_config sched;
    struct pkv_step_time step_time;
    struct pkv_source source;
    struct pkv_sink sinks[PKV_MAX_SINKS];
    size_t num_sinks;
    bool every_step;             /* never let one row stand for a stretch in which nothing changes */
    int64_t row_ns;              /* 0 = a row is as long as what runs in it; else every row is so long */
    uint32_t stuck_steps;        /* idle rows before a run that cannot go on ends; at least 1 */
    uint64_t max_steps;          /* 0 = no limit */
    int64_t horizon_ns;          /* no step begins at or after it, and who comes for such a step has
                                  * not come; 0 = none */
    const struct pkv_cache_state *warm;   /* what the cache begins with, of equal groups; borrowed for
                                           * the call, NULL = nothing */
    bool check;                  /* recount all invariants after every step */
    bool log_evicted;            /* keep the ids of evicted blocks of a step (for planned) */
    bool (*should_stop)(void *ctx);   /* NULL = never; asked once a step */
    void *stop_ctx;
};

/* All the numbers that only the engine knows. */
struct pkv_engine_figures {
    enum pkv_outcome outcome;
    uint64_t num_steps;
    int64_t first_arrival_ns, end_ns;     /* PKV_NO_TIME when nothing arrived / ran */
    uint64_t arrived, completed, rejected, aborted, unfinished;
    uint64_t prompt_tokens, output_tokens, scheduled_tokens, recomputed_tokens;
    uint64_t queried_tokens, hit_tokens, resumed_queried_tokens, resumed_hit_tokens;
    uint64_t preemptions;
    /* Times that drafts were computed, how many in all, how many were right (those beyond a request's
     * end included), and tokens that came out of these times, drafts or not. */
    uint64_t num_verifications, drafted_tokens, accepted_tokens, verified_tokens;
    uint64_t accepted_at[PKV_MAX_DRAFTS];   /* of accepted_tokens, those at each place of a draft */
    /* Preemptions whose blocks went to the host, and those for which it was full; blocks moved; the link's
     * time for all that was queued; the most copies there were after a plan. */
    uint64_t swaps, swap_fallbacks, swapped_out_blocks, swapped_in_blocks;
    int64_t link_busy_ns;
    uint32_t peak_host_blocks;
    uint64_t swap_block_bytes;            /* 0 = there is no host */
    /* Turns: requests that followed another of their session; of their prompts what came before in
     * it, and what of that was still cached when they came. Those rejected are not counted. */
    uint64_t turns, former_tokens, retained_tokens;
    /* Requests that asked for several answers, and those answers; forks at the end of a prompt, and
     * positions taken over by them for the first time; beams that gave way to others. */
    uint64_t sampled_requests, samples, forks, forked_tokens, dropped_beams;
    /* Blocks with content that a former run left: taken over, and left out as the pool is smaller. */
    uint32_t warm_blocks, warm_blocks_left_out;
    bool is_warm;                         /* a former run left something, if only empty blocks */
    struct pkv_cache_figures cache;
    bool is_deadlock;                     /* stuck: several run, each lacks a block, and by
                                           * preempt: never nobody is given up */
    char diagnosis[1024];                 /* one or more sentences when stuck or in a livelock */
};

struct pkv_engine;

struct pkv_engine *pkv_engine_create(const struct pkv_engine_config *config, struct pkv_err *err);
void pkv_engine_destroy(struct pkv_engine *engine);

/* Run to the end. Requests still live then are given to the sinks as unfinished.
 *   returns  0 with the outcome in the figures, or -1: the source's error, a sink's, memory, audit.
 *            The figures stand in both cases. */
int pkv_engine_run(struct pkv_engine *engine, struct pkv_err *err);
const struct pkv_engine_figures *pkv_engine_figures(const struct pkv_engine *engine);
/* After the run nobody holds a block of it: those who still did when it ended gave theirs back then, in
 * the order of their rows. */
const struct pkv_cache *pkv_engine_cache(const struct pkv_engine *engine);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
