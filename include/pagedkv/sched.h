/*
 * sched.h - one scheduler step: grow the running, preempt, admit; all in one, or as the mix has it.
 *
 * plan decides and takes the blocks; its result is a plain value. The model then runs, outside.
 * commit brings the tokens out and finishes requests. Between the two, positions have grown and
 * tokens have not. The scheduler does not know what time it is.
 *
 *   pkv_sched_add ... pkv_sched_abort ... pkv_sched_plan ... pkv_sched_commit ... pkv_sched_forget
 *
 * Under on_preempt: swap and auto a request that is given up may wait SWAPPED, with copies of its blocks
 * on the host. Its blocks are free when the link has copied them; who was short of them gets no token
 * until then, and nobody else is given up for as many, nor is anybody admitted. SWAPPED ones wait in the
 * one queue, where requeue puts them, and are asked for by the admit policy with room for all their
 * tokens. They take no budget: RESUMING, they hold their blocks and count for max_num_seqs, but not as
 * running, until they are copied in; then they run behind the last one admitted. Admit policies reckon
 * with them as with those who run; preempt policies cannot pick them.
 *
 * Invariants, recounted by pkv_sched_check() with those of cache and pool:
 *   S1  a live request is waiting (or preempted, or swapped) and in the queue, or running and in running,
 *       or resuming and in that list, once
 *   S2  a waiting request holds no block and has nothing computed
 *   S3  computed <= known for every running request outside a step, and never beyond what is known,
 *       in flight and proposed
 *   S4  running + resuming <= max_num_seqs
 *   S5  scheduled tokens of a plan <= the token budget
 *   S6  the steady requests' phases, sums and number are those of the requests themselves, their
 *       number in every plan that is out as well
 *   S7  the queue is shut (on_blocked: latch) only while those run who ran when it was shut, or were
 *       on their way back then
 *   S8  a request's tokens in flight are the plans not committed that one will come out of, and a
 *       running one's positions in flight those that these plans are to compute
 *   S9  drafts are proposed for running requests alone, and as many as are asked for
 *   S10 whoever is swapped or resuming has copies on the host and nobody else has; those resuming have a
 *       transfer in each, in their order; cache and scheduler have as many transfers
 *   S11 the live samples of one request run all together, side by side, or all wait; of those that wait
 *       for the fork only the first holds blocks or stands in the queue
 * Source of the default behaviour: vllm/v1/core/sched/scheduler.py.
 */
#ifndef PAGEDKV_SCHED_H
#define PAGEDKV_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"
#include "pagedkv/model.h"
#include "pagedkv/policy.h"
#include "pagedkv/request.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct pkv_sched;

enum pkv_blocked_prefill { PKV_BLOCKED_PREFILL_STOP, PKV_BLOCKED_PREFILL_SKIP };
enum pkv_priority_victim { PKV_PRIORITY_VICTIM_VLLM, PKV_PRIORITY_VICTIM_SAFE };
enum pkv_chunk_end { PKV_CHUNK_END_FREE, PKV_CHUNK_END_KEEP };
enum pkv_oversized { PKV_OVERSIZED_REJECT, PKV_OVERSIZED_WAIT };

/* Who proposes drafts. The method decides how many positions are asked for beyond a step's own: as
 * many as there are drafts where a model on the GPU writes them, none where they are looked up in
 * the text. EAGLE also computes the last block of a hit anew. */
#define PKV_SPECULATION_METHODS(X)                                             \
    X(PKV_SPECULATION_NONE, "none")                                            \
    X(PKV_SPECULATION_DRAFT_MODEL, "draft_model")                              \
    X(PKV_SPECULATION_EAGLE, "eagle")                                          \
    X(PKV_SPECULATION_NGRAM, "ngram")

enum pkv_speculation_method {
#define PKV_ENUM(sym, word) sym,
    PKV_SPECULATION_METHODS(PKV_ENUM)
#undef PKV_ENUM
    PKV_SPECULATION_METHOD_COUNT
};

const char *pkv_speculation_method_name(enum pkv_speculation_method method);

#define PKV_MAX_DRAFTS 64u
#define PKV_MAX_ACCEPTED 64u

struct pkv_speculation {
    enum pkv_speculation_method method;
    uint32_t num_tokens;                   /* drafts a step, 1 .. PKV_MAX_DRAFTS */
    /* Draft j of a request with o tokens out is right with this chance, drawn once for (seed, row,
     * o + j); the drafts before the first wrong one are accepted. */
    double acceptance_rate;
    /* Or, when there is a pattern: accepted[(row + o) mod num_accepted] of them, at most. */
    uint32_t accepted[PKV_MAX_ACCEPTED];
    uint32_t num_accepted;
};

/* The host that blocks may be swapped to, for on_preempt: swap and auto. They are refused with
 * speculation and with async_scheduling. */
struct pkv_swap_config {
    uint64_t num_host_blocks;                /* 0 = no room for any */
    uint64_t bytes_per_token;
    struct pkv_link link;
    struct pkv_step_time step_time;          /* what auto compares with; filled in by the engine */
};

/* Sizes: 0 = unlimited where it says so. */
struct pkv_sched_config {
    struct pkv_policies policies;
    struct pkv_swap_config swap;
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
    enum pkv_chunk_end chunk_end;   /* of a chunked group, cache on: keep its last hashed block */
    enum pkv_oversized oversized;
    /* A step is planned while the one before it runs; see pkv_sched_plan(). */
    bool async_scheduling;
    /* An admission asks for the positions beyond its own as growth does, and one with a single token
     * left beside pure decodes is padded to as many tokens as those have. */
    bool lookahead_at_admission;
    struct pkv_speculation speculation;
    /* Samples share blocks; else each is admitted by itself. Without speculation and async_scheduling,
     * as then a token a step comes out of each, and it is known when the next step is planned; and
     * without swapping, which moves blocks of one request. */
    bool fork;
    uint32_t beam_drop;                      /* beams that give way at each token, in thousandths */
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
    X(PKV_LIMIT_PREEMPTED, "preempted") /* a preemption in this step, or its blocks are on their way */

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
    uint32_t num_tokens;            /* drafts included */
    uint32_t num_drafts;            /* of these, guesses beyond the known tokens */
    uint32_t first_position;        /* computed before this step's tokens */
    uint32_t num_recomputed;
    uint32_t num_blocks_before[PKV_MAX_GROUPS];  /* its tables' lengths; 0 for an admitted one */
    enum pkv_entry_kind kind;
    bool samples;                   /* its computed tokens reach the known ones: a token comes out */
    /* written by commit */
    uint32_t num_sampled;           /* tokens that came out (none of a request for 0 tokens) */
    uint32_t num_accepted;          /* drafts that were right, those cut off at its end included */
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
    uint32_t freed_blocks, lost_tokens;  /* lost: computed positions, cancelled ones not counted; 0 when
                                            swapped */
    uint32_t num_swapped_blocks;         /* on their way to the host; 0 = to be computed again */
    bool host_was_full;                  /* they would have gone there */
};

/* Blocks under way between pool and host. */
struct pkv_transfer {
    bool is_out;
    uint32_t num_blocks;
    struct pkv_request_ref ref;          /* may be gone */
    int64_t done_ns;                     /* the engine's */
};

/* A sample took over all blocks of another: at the end of their prompt, or when beams were drawn. */
struct pkv_plan_fork {
    struct pkv_request_ref ref, parent;
    uint32_t num_shared_blocks, num_tokens;   /* taken over: what the parent had */
    uint32_t freed_blocks;                    /* of those it held before: what nobody else held */
    bool is_again;                            /* it has forked before: it was given up since */
    bool sampled;                             /* its first token came out with the parent's */
};

/* Requests that decode undisturbed are not listed one by one: num_steady of them, all of them before
 * the first entry in scheduling order, get one token each. pkv_sched_list_entries() spells them out. */
struct pkv_plan {
    uint64_t number;                 /* from 0 */
    uint64_t num_steady;
    struct pkv_plan_entry *entries;  /* in scheduling order */
    size_t num_entries;
    size_t num_grown;                /* of these, running ones; they come first */
    struct pkv_plan_admission *admissions;
    size_t num_admissions;
    struct pkv_plan_preemption *preemptions;
    size_t num_preemptions;
    uint64_t num_tokens, num_prefill_tokens, num_decodes, num_context_tokens;
    uint64_t num_recomputed_tokens, num_hit_tokens, num_drafts;
    enum pkv_limit limit;
    struct pkv_request_ref head;     /* refused, or not looked at; request NULL when none is known */
    uint64_t head_need_blocks;       /* what the admit policy asked for, all counted; 0 = not asked */
    uint32_t head_free_blocks;
    bool is_latched;                 /* limit latch: the queue was shut (on_blocked: latch), since then: */
    struct pkv_request_ref refused;  /* who was refused; it may be gone by now */
    uint64_t refused_number;         /* in the plan of that number */
    uint64_t refused_need_blocks;
    size_t num_transfers;            /* begun: the last ones of pkv_sched_transfers() */
    size_t num_stalled;              /* running ones that wait for blocks that are being copied out */
    bool changed_nothing;            /* nothing scheduled, preempted or given back, nobody on the way back */
    bool left_steady;                /* those who were steady are spelled out from this step on */
    /* written by commit: whose last token this was, in scheduling order */
    struct pkv_request **finished;
    size_t num_finished;
    struct pkv_plan_fork *forks;
    size_t num_forks;
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

/* Cancel a live request in any state, between steps; its blocks are free at once, but for those under way
 * to or from the host, which are when that is done. The caller forgets it.
 *   returns  blocks that became free */
uint32_t pkv_sched_abort(struct pkv_sched *sched, struct pkv_request *request);

/* Decide one step. The plan belongs to the scheduler and lives until the plan after the next. It is
 * committed before the next one is made; under async_scheduling one plan may be out when the next is
 * made, and they are committed in their order. The token which that one will bring counts as known
 * then, but for identities of blocks; a request whose tokens in flight are its last gets nothing.
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

/* Let go of a plan that is not committed, when none of its requests is live any more. */
void pkv_sched_drop(struct pkv_sched *sched, struct pkv_plan *plan);

/* Drafts proposed in a step, positions asked for beyond a step's own; 0 without speculation. */
uint32_t pkv_speculation_num_drafts(const struct pkv_speculation *speculation);
uint32_t pkv_speculation_lookahead(const struct pkv_speculation *speculation);

/* All scheduled requests of a plan that is not committed yet, in scheduling order, steady ones
 * included. out has room for pkv_plan_num_scheduled(plan). */
size_t pkv_plan_num_scheduled(const struct pkv_plan *plan);
void pkv_sched_list_entries(struct pkv_sched *sched, const struct pkv_plan *plan,
                            struct pkv_plan_entry *out);

/* Transfers under way, the oldest first; out: how many. The engine writes when they are done, says so one
 * after another between steps, and how long the link has work before a plan is made. Room as long as
 * until the next call that is not for reading. */
struct pkv_transfer *pkv_sched_transfers(struct pkv_sched *sched, size_t *out_num);
void pkv_sched_transfer_done(struct pkv_sched *sched);
void pkv_sched_set_link_wait(struct pkv_sched *sched, int64_t wait_ns);
/* A block of the pool in bytes, as it goes over the link. */
uint64_t pkv_swap_block_bytes(const struct pkv_sched_config *config);

/* Let go of a finished, aborted or refused request's record. */
void pkv_sched_forget(struct pkv_sched *sched, struct pkv_request *request);

/* Every live request becomes UNFINISHED and gives back its blocks, and transfers under way are done; for
 * the end of a run that cannot go on. Calls each(ctx, request) in row order, then forgets it. */
void pkv_sched_drain(struct pkv_sched *sched,
                     void (*each)(void *ctx, struct pkv_request *request), void *ctx);

/* Reading. The counts of tokens in a running request are current after pkv_sched_refresh(); its
 * tables always are. */
void pkv_sched_refresh(struct pkv_sched *sched);
const struct pkv_sched_config *pkv_sched_config(const struct pkv_sched *sched);
struct pkv_cache *pkv_sched_cache(struct pkv_sched *sched);
size_t pkv_sched_num_running(const struct pkv_sched *sched);
struct pkv_request *pkv_sched_running(const struct pkv_sched *sched, size_t i);
size_t pkv_sched_num_resuming(const struct pkv_sched *sched);   /* on their way back from the host */
struct pkv_request *pkv_sched_resuming(const struct pkv_sched *sched, size_t i);
size_t pkv_sched_num_waiting(const struct pkv_sched *sched);
struct pkv_request *pkv_sched_head(const struct pkv_sched *sched);   /* by the last pass; NULL = none */
void pkv_sched_list_waiting(const struct pkv_sched *sched, struct pkv_request **out);
uint64_t pkv_sched_num_preemptions(const struct pkv_sched *sched);

/* The most blocks a request comes to hold on its way to so many positions, counted as its admission
 * counts: a group with a window gives blocks back between steps, and the gate takes a whole budget of
 * tokens for what one request may get in a step. */
uint64_t pkv_sched_blocks_for(const struct pkv_sched *sched, uint64_t num_positions);

/* The most blocks it would hold if it ran alone to its end; under a layout of runs, those of its run. */
uint64_t pkv_sched_peak_blocks(const struct pkv_sched *sched, const struct pkv_request *request);

/* Positions that a request will have stored at its end; and those of all running requests together,
 * what of their blocks will ever be used. The latter is O(running). */
uint64_t pkv_sched_end_positions(const struct pkv_sched *sched, const struct pkv_request *request);
uint64_t pkv_sched_promised_positions(const struct pkv_sched *sched);

/* How often a live request was given up. */
struct pkv_standing { uint64_t count, row; };

/* A state that may come again. Zeroed at first; may be filled any number of times. */
struct pkv_fingerprint {
    uint64_t number;                  /* all that decides what follows, but for the counts */
    struct pkv_standing *standings;   /* [num_standings] owned; by count, then by row; where the preempt
                                       * policy compares counts, else none */
    size_t num_standings, capacity;
};

/* The state after a plan is made, or between steps.
 *   cost     O(num_blocks + live log live)
 *   errors   PKV_ERR_MEMORY */
int pkv_sched_fingerprint(struct pkv_sched *sched, struct pkv_fingerprint *out, struct pkv_err *err);
/* Two states with nobody come or gone and no token out in between: does the same go on for ever from
 * the later one as did from the earlier one? O(live) */
bool pkv_fingerprint_is_again(const struct pkv_fingerprint *before,
                              const struct pkv_fingerprint *now);
void pkv_fingerprint_free(struct pkv_fingerprint *fingerprint);

/* Recount everything, cache and pool included. 0, or -1 with PKV_ERR_AUDIT. O(everything). */
int pkv_sched_check(struct pkv_sched *sched, struct pkv_err *err);
/* The plan's sums against its entries, and S5. */
int pkv_plan_check(const struct pkv_sched *sched, const struct pkv_plan *plan, struct pkv_err *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
