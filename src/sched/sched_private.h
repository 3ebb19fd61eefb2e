/*
 * sched_private.h - the scheduler's record, for its own files and for tests that break it.
 */
#ifndef PKV_SCHED_PRIVATE_H
#define PKV_SCHED_PRIVATE_H

#include "base/heap.h"
#include "pagedkv/sched.h"

/* What policies are told of a step when it is committed, beside what its plan says. The survivors are
 * those who ran after its last preemption, before its tokens. */
struct lesson {
    unsigned parts;                       /* of the turn that scheduled something */
    size_t num_survivors;
    uint64_t sum_emitted, sum_max_tokens; /* of the survivors */
};

/* A plan and the room of its arrays. */
struct plan_slot {
    struct pkv_plan plan;
    struct lesson lesson;
    size_t entries_capacity, admissions_capacity, preemptions_capacity, finished_capacity;
    size_t forks_capacity;
};

/* Requests in one phase, by admission. */
struct bucket {
    struct pkv_request *first, *last;
    size_t num;
};

/* Requests whose length is so many tokens more than a multiple of the block size are due. */
struct steady_phase { uint32_t rest, num_taken; };
#define MAX_DUE_PHASES 32u

/* The requests that decode undisturbed; see steady.c. */
struct steady {
    struct bucket *buckets;               /* [block_size], owned */
    uint32_t block_size;                  /* or the least common multiple of the groups' */
    bool is_off;                          /* blocks move at phases that do not come again */
    bool is_plain;                        /* one group: due at phase 0, filled one before */
    struct steady_phase due_phases[MAX_DUE_PHASES];   /* [num_due_phases], of others */
    uint32_t num_due_phases;
    bool visits_filled;                   /* a block gets its identity with its last token */
    uint64_t clock;                       /* steps that all of them have taken together */
    bool in_step;                         /* positions have grown, and the plan is not made yet */
    uint32_t hold_off;                    /* steps before anybody may enter again */
    uint64_t num;
    uint64_t num_positions;               /* computed, all of them together */
    struct pkv_heap ends;                 /* by (clock of the last token, admission) */
    struct pkv_request **due;             /* owned scratch: [num] of one step, by admission */
    size_t due_capacity;
    struct pkv_request **lasts;           /* owned: [num_lasts], by admission; is_last of each is set */
    size_t num_lasts, lasts_capacity;
};

/* What the look-up of the request refused last had found; stands while the cache's version does. */
struct remembered {
    struct pkv_request_ref ref;
    uint64_t version;
    struct pkv_hit hit;                   /* its counts; the block ids are gone */
};

/* The queue shut after a refusal (on_blocked: latch). Whoever leaves running opens it, and nobody comes
 * in meanwhile, so those who ran when it was shut run still. */
struct latch {
    bool is_shut;
    struct pkv_request_ref refused;
    uint64_t need_blocks;                 /* it was refused with */
    uint64_t number;                      /* of that plan */
    size_t num_running;                   /* when it was shut */
    uint64_t num_admissions;
};

/* Between pool and host; see swap.c. */
struct swap {
    bool is_on;
    struct pkv_transfer *transfers;       /* [num_transfers], owned; as those of the cache */
    size_t num_transfers, transfers_capacity;
    struct pkv_request **resuming;        /* [num_resuming], owned array, in their transfers' order */
    size_t num_resuming, resuming_capacity;
    uint32_t num_awaited;                 /* blocks on their way that were promised in this step */
    bool was_awaited;                     /* somebody waited for such in the step before */
    int64_t wait_ns;                      /* until the link has done what is queued */
};

struct pkv_sched {
    struct pkv_sched_config config;
    struct pkv_cache *cache;              /* owned */
    struct pkv_request_store *store;      /* owned */
    struct pkv_waiting *waiting;          /* owned */
    struct pkv_request **running;         /* [num_running], owned array, in admission order */
    size_t num_running, running_capacity;
    struct pkv_request **aside;           /* [num_aside], owned array: refused in this pass */
    size_t num_aside, aside_capacity;
    struct pkv_request **deferred;        /* [num_deferred], owned: over the budget in this pass */
    size_t num_deferred, deferred_capacity;
    struct plan_slot slots[2];
    char *pass;                           /* owned scratch of the admit policy */
    size_t pass_capacity;                 /* bytes */
    char *order_state;                    /* owned, the policies' */
    size_t order_state_capacity;          /* bytes */
    void *admit_state, *preempt_state, *mix_state;
    char *ranking;                        /* owned scratch of an order that ranks the queue */
    int64_t *rank_keys;                   /* owned, beside it */
    size_t ranking_capacity, rank_keys_capacity;
    struct pkv_tenant_tokens *tenant_tokens;   /* [num_tenants], owned: of this step */
    size_t num_tenants, tenants_capacity; /* 0 unless the order asks for tenants */
    struct pkv_request_ref newest_first;  /* first of the samples that came last */
    size_t num_followers;                 /* waiting, and not in the queue: behind their first */
    uint32_t num_out;                     /* plans made and not committed */
    uint32_t num_drafts, lookahead;       /* of speculation; see drafts.c */
    struct remembered remembered;
    struct latch latch;
    uint64_t num_passes_before;           /* when the plan at hand was begun */
    uint32_t num_free_before;             /* the same, of blocks */
    struct pkv_sched_view view;
    uint64_t budget;                      /* tokens left in this step */
    uint64_t num_plans, num_preemptions, num_admissions;
    struct steady steady;
    struct swap swap;
    /* The configuration with "unlimited" made a number. */
    uint64_t max_budget, max_seqs;        /* UINT64_MAX = unlimited */
    uint32_t max_model_len;
};

/* plan.c */
int plan_reserve(struct pkv_sched *s, struct pkv_plan *plan, size_t num, struct pkv_err *err);
/* Recomputed tokens and the marks in the request are filled in here. */
void plan_add_entry(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_plan_entry entry);
bool plan_has(const struct pkv_plan *plan, const struct pkv_request *r);
/* Take a request out of the plan; its tokens go back to the budget. returns its tokens. */
uint32_t plan_cancel(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r);

/* steady.c */
int steady_init(struct pkv_sched *s, struct pkv_err *err);
void steady_free(struct pkv_sched *s);
/* Room for one more; before it is admitted. */
int steady_reserve(struct pkv_sched *s, size_t num, struct pkv_err *err);
/* A running request from whom a token has just come out. */
void steady_enter(struct pkv_sched *s, struct pkv_request *r);
/* Take one out, its counts current. Fine for one that is not in. */
void steady_leave(struct pkv_sched *s, struct pkv_request *r);
void steady_leave_all(struct pkv_sched *s, struct pkv_plan *plan);
void steady_refresh(struct pkv_sched *s);
/* The same for one that is in. */
void steady_refresh_one(const struct pkv_sched *s, struct pkv_request *r);
/* Do all of them come before every other one in running? */
bool steady_come_first(const struct pkv_sched *s);
/* Can all of them grow by one token, but for a shortage? *out_num_blocks is what that takes. */
bool steady_goes_on(const struct pkv_sched *s, uint64_t *out_num_blocks);
/* Is it one of the steady ones that this plan counts? */
bool steady_is_counted(const struct pkv_request *r, const struct pkv_plan *plan);
/* One that is aborted: the plan that is out does not bring its token. */
void steady_abort(struct pkv_sched *s, struct pkv_request *r);
/* How many of the running come first and need no look in this step. */
size_t steady_num_first(const struct pkv_sched *s);
/* Before they grow: those whose last token is in flight do not. */
void steady_part_with_lasts(struct pkv_sched *s, const struct pkv_plan *plan);
/* The plan is made. */
void steady_settle(struct pkv_sched *s);
/* Grow all of them by one token, if that goes without a shortage; else take them all out and
 * change nothing. */
void steady_grow(struct pkv_sched *s, struct pkv_plan *plan);
/* Take them all out in the middle of a plan: their entries go before those it has. */
void steady_spell_out(struct pkv_sched *s, struct pkv_plan *plan);
void steady_commit(struct pkv_sched *s, struct pkv_plan *plan);
int steady_check(const struct pkv_sched *s, struct pkv_err *err);

/* rank.c */
/* Ask an order that asks anew for all keys, and put everybody where they say. */
int sched_rank_waiting(struct pkv_sched *s, struct pkv_err *err);
/* Do keys change while waiting, so that the order is asked before each pass? */
bool sched_asks_anew(const struct pkv_sched *s);
/* Somebody came into the queue, or left it for good. */
void sched_joined(struct pkv_sched *s, struct pkv_request *r);
void sched_left(struct pkv_sched *s, const struct pkv_request *r);

/* tenants.c */
/* Give a newcomer its tenant's number, if the order asks for tenants, and make room for one more. */
int tenants_add(struct pkv_sched *s, struct pkv_request *r, struct pkv_err *err);
/* What each tenant gets in this step: begun before it is committed, done when its tokens are out. */
void tenants_begin_count(struct pkv_sched *s, const struct pkv_plan *plan);
void tenants_count_sampled(struct pkv_sched *s, const struct pkv_plan *plan);

/* drafts.c */
int drafts_check_config(const struct pkv_sched_config *config, struct pkv_err *err);
/* Of the drafts proposed, those that stay below max_model_len. */
uint32_t drafts_that_fit(const struct pkv_sched *s, const struct pkv_request *r,
                         uint32_t num_known_tokens);
/* Positions to have blocks for when so many are to be computed. */
uint32_t drafts_positions(const struct pkv_sched *s, uint32_t num_positions);
/* The most drafts that a step computes for one request. */
uint32_t drafts_in_step(const struct pkv_sched *s);
/* The most that one step ever asks for of a request that ends with num_positions. */
uint64_t drafts_peak_positions(const struct pkv_sched *s, uint32_t num_output_tokens,
                               uint64_t num_positions);
/* Is an admission with a single token left padded to the length of those who decode? */
bool drafts_pad(const struct pkv_sched *s, const struct pkv_plan *plan);
/* Of num_drafts computed in this step, those before the first wrong one. */
uint32_t drafts_accepted(const struct pkv_sched *s, const struct pkv_request *r,
                         uint32_t num_drafts);

/* flight.c */
/* Will the tokens in flight be its last, as far as the scheduler is told? */
bool flight_is_last(const struct pkv_sched *s, const struct pkv_request *r);
/* Positions computed for nothing when it ends before max_tokens, as that is seen too late. */
uint64_t flight_overrun(const struct pkv_sched *s, const struct pkv_request *r);
/* Computed positions of a running request, those less that the plan which is out is to compute. */
uint32_t flight_landed_positions(const struct pkv_sched *s, struct pkv_request *r);
void flight_take_off(struct pkv_sched *s, const struct pkv_plan *plan);
/* The entry's request, if it is still live. */
struct pkv_request *flight_passenger(const struct pkv_plan_entry *entry);
int flight_check(const struct pkv_sched *s, struct pkv_err *err);

/* commit.c: the last token of one whose is_last was set. */
void commit_last(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r);

/* swap.c */
int swap_check_config(const struct pkv_sched_config *config, struct pkv_err *err);
void swap_free(struct pkv_sched *s);
/* Room for whoever may be given up in this step and for one that comes back. */
int swap_reserve(struct pkv_sched *s, struct pkv_err *err);
/* One that is given up with so many positions computed: copy its blocks out, if the policy says so and
 * there is room; else change nothing but to say that there was none.
 *   returns  true when it is SWAPPED */
bool swap_out(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
              uint32_t num_positions, struct pkv_plan_preemption *out);
/* What a waiting request would have again from the host. */
struct pkv_restore swap_find(const struct pkv_sched *s, const struct pkv_request *r,
                             const struct pkv_hit *hit);
/* It has left the queue: on its way back. */
void swap_in(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r,
             const struct pkv_hit *hit, struct pkv_restore restore);
/* Blocks still lacking once all that are on their way and not promised are there. */
uint32_t swap_lacks(const struct pkv_sched *s, uint64_t num_short);
/* r lacks no more than is on its way: promise them to it, and let it wait. */
void swap_await(struct pkv_sched *s, struct pkv_plan *plan, uint32_t num_short);
/* A resuming one is cancelled. */
void swap_abort(struct pkv_sched *s, struct pkv_request *r);
void swap_finish_all(struct pkv_sched *s);
int swap_check(const struct pkv_sched *s, struct pkv_err *err);

/* gang.c */
/* A newcomer that is one of several samples finds its gang. returns is it in the queue's stead? */
bool gang_add(struct pkv_sched *s, struct pkv_request *r, const struct pkv_request_spec *spec);
/* The most blocks that all samples of a spec hold together when they run alone. */
uint64_t gang_peak_blocks(const struct pkv_sched *s, const struct pkv_request *r,
                          const struct pkv_request_spec *spec);
/* Places in running that admitting r takes. */
size_t gang_num_seats(const struct pkv_request *r);
int gang_prepare(struct pkv_sched *s, struct pkv_request *r, struct pkv_err *err);
/* r has just been admitted: so are those that follow it. */
void gang_admit(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r);
/* All of them have been given up: they will be one again. returns the one to queue. */
struct pkv_request *gang_gather(struct pkv_sched *s, struct pkv_request *r);
/* r ends. returns the one that takes its place in the queue, or NULL. */
struct pkv_request *gang_leave(struct pkv_sched *s, struct pkv_request *r);
/* Its prompt is computed: the others share it. */
void gang_fork(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *first);
/* Once all beams have their token, some give way to others. */
void gang_draw_beams(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_request *r);
/* Tokens it may compute now: beams wait for one another. */
uint32_t gang_num_due(const struct pkv_request *r);
/* May it decode without being looked at? */
bool gang_is_steady(const struct pkv_sched *s, const struct pkv_request *r);
/* Speculation and async scheduling bring not one token a step, a layout of runs shares none. */
int gang_check_config(const struct pkv_sched_config *config, struct pkv_err *err);
int gang_check(const struct pkv_sched *s, struct pkv_err *err);

/* grow.c, admit.c */
void sched_grow_running(struct pkv_sched *s, struct pkv_plan *plan, unsigned parts);
int sched_admit_waiting(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_err *err);
/* Nobody is looked at in this step. */
void sched_pass_by(struct pkv_sched *s, struct pkv_plan *plan);
void sched_update_view(struct pkv_sched *s);
void sched_remove_running(struct pkv_sched *s, size_t index);
/* Room for a pass over so many running requests. */
int sched_reserve_pass(struct pkv_sched *s, size_t num, struct pkv_err *err);
/* The sequences that hold blocks; out has room for those running and resuming. returns how many. */
size_t sched_list_held(const struct pkv_sched *s, const struct pkv_seq **out);
/* Let the policies learn. */
void sched_observe(struct pkv_sched *s, const struct pkv_plan *plan);
/* Tokens of the first chunk of a request with so many to compute. */
uint32_t sched_first_chunk(const struct pkv_sched_config *config, uint32_t num_tokens);
bool sched_counts_overtakes(const struct pkv_sched *s);
int64_t sched_order_key(const struct pkv_sched *s, const struct pkv_request *r);
/* It ends, and its tables are still there: what is published at the end is published now, of so many
 * computed positions. */
void sched_publish_end(struct pkv_sched *s, struct pkv_request *r, uint32_t num_computed);
struct lesson *sched_lesson(struct pkv_sched *s, const struct pkv_plan *plan);
void sched_note_peak(struct pkv_request *r);
/* Known tokens, those in flight among them. */
uint32_t sched_known_tokens(const struct pkv_request *r);
/* Positions a request has when it ends by itself. */
uint64_t sched_end_positions(const struct pkv_sched *s, const struct pkv_request *r);
/* What its tables are made for: that, and no less than num_positions; no more than the pool has. */
uint32_t sched_table_positions(const struct pkv_sched *s, const struct pkv_request *r,
                               uint64_t num_positions);
/* Positions it must be able to hold one day, with so many outputs. */
uint64_t sched_positions_wanted(const struct pkv_sched *s, const struct pkv_request *r,
                                uint32_t num_output_tokens);
/* Blocks that the layout gives it at its admission; 0 = as it grows. */
uint32_t sched_run_blocks(const struct pkv_sched *s, const struct pkv_request *r);

#endif
