/*
 * sched_private.h - the scheduler's record, for its own files and for tests that break it.
 */
#ifndef PKV_SCHED_PRIVATE_H
#define PKV_SCHED_PRIVATE_H

#include "base/heap.h"
#include "pagedkv/sched.h"

/* A plan and the room of its arrays. */
struct plan_slot {
    struct pkv_plan plan;
    size_t entries_capacity, admissions_capacity, preemptions_capacity, finished_capacity;
};

/* Requests in one phase, by admission. */
struct bucket {
    struct pkv_request *first, *last;
    size_t num;
};

/* The requests that decode undisturbed; see steady.c. */
struct steady {
    struct bucket *buckets;               /* [block_size], owned */
    uint32_t block_size;
    bool visits_filled;                   /* a block gets its identity with its last token */
    uint64_t clock;                       /* steps that all of them have taken together */
    bool in_step;                         /* positions have grown, tokens not yet */
    uint32_t hold_off;                    /* steps before anybody may enter again */
    uint64_t num;
    uint64_t num_positions;               /* computed, all of them together */
    struct pkv_heap ends;                 /* by (clock of the last token, admission) */
    struct pkv_request **due;             /* owned scratch: [num] of one step, by admission */
    size_t due_capacity;
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

/* Those who ran after the last preemption of a step, before their tokens. */
struct survivors {
    size_t num;
    uint64_t sum_emitted, sum_max_tokens;
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
    bool in_flight;                       /* a plan is made and not committed */
    struct remembered remembered;
    struct latch latch;
    struct survivors survivors;
    uint64_t num_passes_before;           /* when the plan at hand was begun */
    unsigned parts;                       /* of the turn that scheduled something in this step */
    struct pkv_sched_view view;
    uint64_t budget;                      /* tokens left in this step */
    uint64_t num_plans, num_preemptions, num_admissions;
    struct steady steady;
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
/* Do all of them come before every other one in running? */
bool steady_come_first(const struct pkv_sched *s);
/* Can all of them grow by one token, but for a shortage? *out_num_blocks is what that takes. */
bool steady_goes_on(const struct pkv_sched *s, uint64_t *out_num_blocks);
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
/* What each tenant gets in this step; before it is committed. */
void tenants_count(struct pkv_sched *s, const struct pkv_plan *plan);

/* grow.c, admit.c */
void sched_grow_running(struct pkv_sched *s, struct pkv_plan *plan, unsigned parts);
int sched_admit_waiting(struct pkv_sched *s, struct pkv_plan *plan, struct pkv_err *err);
/* Nobody is looked at in this step. */
void sched_pass_by(struct pkv_sched *s, struct pkv_plan *plan);
void sched_update_view(struct pkv_sched *s);
void sched_remove_running(struct pkv_sched *s, size_t index);
/* Room for a pass over so many running requests. */
int sched_reserve_pass(struct pkv_sched *s, size_t num, struct pkv_err *err);
/* Let the policies learn. */
void sched_observe(struct pkv_sched *s, const struct pkv_plan *plan);
/* Tokens of the first chunk of a request with so many to compute. */
uint32_t sched_first_chunk(const struct pkv_sched_config *config, uint32_t num_tokens);
bool sched_counts_overtakes(const struct pkv_sched *s);
int64_t sched_order_key(const struct pkv_sched *s, const struct pkv_request *r);
/* It ends, and its tables are still there: what is published at the end is published now. */
void sched_publish_end(struct pkv_sched *s, struct pkv_seq *seq);
void sched_note_peak(struct pkv_request *r);
/* Positions a request has when it ends by itself; what its tables are made for. */
uint64_t sched_end_positions(const struct pkv_sched *s, const struct pkv_request *r);
/* Blocks that the layout gives it at its admission; 0 = as it grows. */
uint32_t sched_run_blocks(const struct pkv_sched *s, const struct pkv_request *r);

#endif
