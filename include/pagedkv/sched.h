/*
 * sched.h - one scheduler step: grow the running, preempt, admit; all in one, or as the mix has it.
 *
 * plan decides and takes the blocks; its result is a plain value. The model then runs, outside.
 * commit brings the tokens out and finishes requests. Between the two, positions have grown and
 * tokens have not. The scheduler does not know what time it is.
 *
 *   pkv_sched_add ... pkv_sched_abort ... pkv_sched_plan ... pkv_sched_commit ... pkv_sched_forget
 *
 * Invariants, recounted by pkv_sched_check() with those of cache and pool:
 *   S1  a live request is waiting (or preempted) and in the queue, or running and in running, once
 *   S2  a waiting request holds no block and has nothing computed
 *   S3  computed <= known for every running request outside a step
 *   S4  running <= max_num_seqs
 *   S5  scheduled tokens of a plan <= the token budget
 *   S6  the steady requests' phases, sums and number are those of the requests themselves
 *   S7  the queue is shut (on_blocked: latch) only while those run who ran when it was shut
 * Source of the default behaviour: vllm/v1/core/sched/scheduler.py.
 */
#ifndef PAGEDKV_SCHED_H
#define PAGEDKV_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"
#include "pagedkv/policy.h"
#include "pagedkv/request.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pkv_sched;

enum pkv_blocked_prefill { PKV_BLOCKED_PREFILL_STOP, PKV_BLOCKED_PREFILL_SKIP };
enum pkv_priority_victim { PKV_PRIORITY_VICTIM_VLLM, PKV_PRIORITY_VICTIM_SAFE };
enum pkv_oversized { PKV_OVERSIZED_REJECT, PKV_OVERSIZED_WAIT };

/* Sizes: 0 = unlimited where it says so. */
struct pkv_sched_config {
    struct pkv_policies policies;
    uint32_t num_blocks;                     /* usable */
    struct pkv_group_config groups[PKV_MAX_GROUPS];
    uint32_t num_groups;
    bool prefix_cache;
    bool has_null_block;                     /* the engine's own block count is one more */
    uint32_t max_num_seqs;                   /* 0 = unlimited */
    uint32_t max_num_batched_tokens;         /* 0 = unlimited */
    uint32_t long_prefill_token_threshold;   /* 0 = none */
    uint32_t max_model_len;                  /* 0 = none */
    bool enable_chunked_prefill;
    double watermark;                        /* 0 .. 1, of num_blocks (+ the null block), truncated */
    enum pkv_pool_end unhashed_free;
    enum pkv_blocked_prefill blocked_prefill;  /* chunking off: a prompt over what is left of the budget */
    enum pkv_priority_victim priority_victim;  /* keep or drop identities of cancelled tokens */
    enum pkv_oversized oversized;
    uint64_t seed;
};

/* Why the head of the queue was not admitted in a step. */
#define PKV_LIMITS(X)                                                              \
    X(PKV_LIMIT_EMPTY, "idle")         /* the queue was empty */                       \
    X(PKV_LIMIT_NOTHING, "nothing")    /* all that came were admitted */               \
    X(PKV_LIMIT_BLOCKS, "blocks")      /* not even this step's chunk fits */           \
    X(PKV_LIMIT_BUDGET, "token budget")                                            \
    X(PKV_LIMIT_SEQS, "sequences")                                                 \
    X(PKV_LIMIT_GATE, "gate")          /* gate, watermark or reserve; the chunk would fit */ \
    X(PKV_LIMIT_LATCH, "latch")        /* nobody was looked at: latch or mix */         \
    X(PKV_LIMIT_PREEMPTED, "preempted") /* a preemption in this step */

enum pkv_limit {
#define PKV_ENUM(sym, word) sym,
    PKV_LIMITS(PKV_ENUM)
#undef PKV_ENUM
    PKV_LIMIT_COUNT
};
const char *pkv_limit_name(enum pkv_limit limit);

enum pkv_entry_kind { PKV_ENTRY_RUNNING, PKV_ENTRY_NEW, PKV_ENTRY_RESUMED };

/* One scheduled request. */
struct pkv_plan_entry {
    struct pkv_request_ref ref;
    uint32_t num_tokens;
    uint32_t first_position;        /* computed before this step's tokens */
    uint32_t num_recomputed;
    uint32_t num_blocks_before[PKV_MAX_GROUPS];  /* its tables' lengths; 0 for an admitted one */
    enum pkv_entry_kind kind;
    bool samples;                   /* its computed tokens reach the known ones: a token comes out */
    /* written by commit */
    bool sampled;                   /* a token came out (none does of a request for 0 tokens) */
    bool finished;
};

struct pkv_plan_admission {
    struct pkv_request_ref ref;
    bool resumed;
    uint32_t num_hit_tokens, num_queried_tokens, num_tokens;
    uint32_t need_blocks, free_blocks;   /* what it took, what there was */
};

struct pkv_plan_preemption {
    struct pkv_request_ref ref, grower;  /* given up, and for whom; the same when it gives up itself */
    uint32_t freed_blocks, lost_tokens;  /* lost: computed positions, cancelled ones not counted */
};

/* Requests that decode undisturbed are not listed one by one: num_steady of them, all of them before
 * the first entry in scheduling order, get one token each. pkv_sched_list_entries() spells them out. */
struct pkv_plan {
    uint64_t number;                 /* from 0 */
    uint64_t num_steady;
    struct pkv_plan_entry *entries;  /* in scheduling order */
    size_t num_entries;
    struct pkv_plan_admission *admissions;
    size_t num_admissions;
    struct pkv_plan_preemption *preemptions;
    size_t num_preemptions;
    uint64_t num_tokens, num_prefill_tokens, num_decodes, num_context_tokens;
    uint64_t num_recomputed_tokens, num_hit_tokens;
    enum pkv_limit limit;
    struct pkv_request_ref head;     /* refused, or not looked at; request NULL when none is known */
    uint64_t head_need_blocks;       /* what the admit policy asked for, all counted; 0 = not asked */
    uint32_t head_free_blocks;
    bool is_latched;                 /* the queue was shut (on_blocked: latch), and is since then: */
    struct pkv_request_ref refused;  /* who was refused; it may be gone by now */
    uint64_t refused_number;         /* in the plan of that number */
    uint64_t refused_need_blocks;
    bool changed_nothing;            /* nothing scheduled, nothing preempted */
    bool left_steady;                /* those who were steady are spelled out from this step on */
    /* written by commit: whose last token this was, in scheduling order */
    struct pkv_request **finished;
    size_t num_finished;
};

struct pkv_sched *pkv_sched_create(const struct pkv_sched_config *config, struct pkv_err *err);
void pkv_sched_destroy(struct pkv_sched *sched);

/* A newcomer joins the queue, or is refused because it could never run.
 *   out      the request; when refused its status is REJECTED, it is in no queue, and the caller
 *            forgets it
 *   reason   [reason_size] why, with both numbers, when refused
 *   returns  0, or -1 with PKV_ERR_MEMORY */
int pkv_sched_add(struct pkv_sched *sched, const struct pkv_request_spec *spec,
                  struct pkv_request **out, char *reason, size_t reason_size,
                  struct pkv_err *err);

/* Cancel a live request in any state, between steps; its blocks are free at once. The caller forgets
 * it.
 *   returns  blocks that became free */
uint32_t pkv_sched_abort(struct pkv_sched *sched, struct pkv_request *request);

/* Decide one step. The plan belongs to the scheduler and lives until the plan after the next; this
 * version commits a plan before the next one is made.
 *   cost     O(blocks taken + admitted + those who prefill), O(running) when somebody is given up;
 *            with on_blocked: skip, and with an order that ranks the queue, also O(waiting log waiting)
 *   returns  0, or -1 with PKV_ERR_MEMORY */
int pkv_sched_plan(struct pkv_sched *sched, struct pkv_plan **out, struct pkv_err *err);

/* Who would be first in a pass now; nobody's place is changed. NULL = nobody waits.
 *   cost     O(1), under an order whose keys change O(waiting log waiting) and the look-ups of a pass
 *   returns  0, or -1 with PKV_ERR_MEMORY */
int pkv_sched_find_first(struct pkv_sched *sched, struct pkv_request **out, struct pkv_err *err);

/* Where nobody was looked at, an order whose keys change was not asked, and the plan has no head: put the
 * one into it that would be first. Between plan and commit. */
int pkv_sched_find_head(struct pkv_sched *sched, struct pkv_plan *plan, struct pkv_err *err);

/* The plan changed nothing, and as nobody comes or goes, num_more like it would follow: whoever waits
 * misses their passes as well. Between plan and commit; without it the step stands for itself alone.
 *   cost     O(1) */
void pkv_sched_repeat(struct pkv_sched *sched, const struct pkv_plan *plan, uint64_t num_more);

/* The step's tokens come out, in the order of the plan's entries. Requests that have all of theirs
 * finish and give back their blocks; their records live until forgotten. */
void pkv_sched_commit(struct pkv_sched *sched, struct pkv_plan *plan);

/* All scheduled requests of a plan that is not committed yet, in scheduling order, steady ones
 * included. out has room for pkv_plan_num_scheduled(plan). */
size_t pkv_plan_num_scheduled(const struct pkv_plan *plan);
void pkv_sched_list_entries(struct pkv_sched *sched, const struct pkv_plan *plan,
                            struct pkv_plan_entry *out);

/* Let go of a finished, aborted or refused request's record. */
void pkv_sched_forget(struct pkv_sched *sched, struct pkv_request *request);

/* Every waiting or running request becomes UNFINISHED and gives back its blocks; for the end of a
 * run that cannot go on. Calls each(ctx, request) in row order, then forgets it. */
void pkv_sched_drain(struct pkv_sched *sched,
                     void (*each)(void *ctx, struct pkv_request *request), void *ctx);

/* Reading. The counts of tokens in a running request are current after pkv_sched_refresh(); its
 * tables always are. */
void pkv_sched_refresh(struct pkv_sched *sched);
const struct pkv_sched_config *pkv_sched_config(const struct pkv_sched *sched);
struct pkv_cache *pkv_sched_cache(struct pkv_sched *sched);
size_t pkv_sched_num_running(const struct pkv_sched *sched);
struct pkv_request *pkv_sched_running(const struct pkv_sched *sched, size_t i);
size_t pkv_sched_num_waiting(const struct pkv_sched *sched);
struct pkv_request *pkv_sched_head(const struct pkv_sched *sched);   /* by the last pass; NULL = none */
void pkv_sched_list_waiting(const struct pkv_sched *sched, struct pkv_request **out);
uint64_t pkv_sched_num_preemptions(const struct pkv_sched *sched);

/* The most blocks it would hold if it ran alone to its end; under a layout of runs, those of its run. */
uint64_t pkv_sched_peak_blocks(const struct pkv_sched *sched, const struct pkv_request *request);

/* Positions that a request will have stored at its end; and those of all running requests together,
 * what of their blocks will ever be used. The latter is O(running). */
uint64_t pkv_sched_end_positions(const struct pkv_sched *sched, const struct pkv_request *request);
uint64_t pkv_sched_promised_positions(const struct pkv_sched *sched);

/* One number for all that decides what follows, after a plan is made. The same number twice, with
 * nobody come or gone and no token out in between, means that the same goes on for ever.
 *   cost     O(num_blocks + running + waiting log waiting)
 *   errors   PKV_ERR_MEMORY */
int pkv_sched_fingerprint(struct pkv_sched *sched, uint64_t *out, struct pkv_err *err);

/* Recount everything, cache and pool included. 0, or -1 with PKV_ERR_AUDIT. O(everything). */
int pkv_sched_check(struct pkv_sched *sched, struct pkv_err *err);
/* The plan's sums against its entries, and S5. */
int pkv_plan_check(const struct pkv_sched *sched, const struct pkv_plan *plan, struct pkv_err *err);

#ifdef __cplusplus
}
#endif
#endif
