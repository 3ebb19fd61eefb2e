/*
 * policy.h - the choices a scheduler is made of, each an ops struct, and the presets that bundle
 * them.
 *
 * A policy is one file in src/policy and one word in the list of src/meson.build. It sees a
 * read-only view and returns a choice; it never moves a block or a request. A program may hand in
 * ops of its own: the scheduler takes pointers, the registry only maps words to them.
 *
 * Choices are pure: const state and the view. State that learns has one door, observe(), called after
 * each step is committed (an order two more, for who comes and goes), so under async_scheduling when the
 * next one is planned already; it is state_size bytes owned by the
 * scheduler, zeroed, then handed to init() with the values of the policy's parameters in their order.
 */
#ifndef PAGEDKV_POLICY_H
#define PAGEDKV_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/cache.h"
#include "pagedkv/model.h"
#include "pagedkv/request.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define PKV_CHOICES(X)                                                                  \
    X(PKV_CHOICE_ORDER, "order", "whom to look at first among the waiting")             \
    X(PKV_CHOICE_ADMIT, "admit", "may this one start now")                              \
    X(PKV_CHOICE_ON_BLOCKED, "on_blocked", "what a refused one does to those behind it") \
    X(PKV_CHOICE_PREEMPT, "preempt", "whom to give up when running requests need blocks") \
    X(PKV_CHOICE_ON_PREEMPT, "on_preempt", "what becomes of the blocks of the one given up") \
    X(PKV_CHOICE_REQUEUE, "requeue", "where the one given up waits again")              \
    X(PKV_CHOICE_GROW, "grow", "how a shortage is walked through")                      \
    X(PKV_CHOICE_PUBLISH, "publish", "when a full block answers look-ups")              \
    X(PKV_CHOICE_MIX, "mix", "which of growth and admission a step runs")               \
    X(PKV_CHOICE_EVICT, "evict", "which free block is taken")                           \
    X(PKV_CHOICE_CACHE, "cache", "how identities are kept")                             \
    X(PKV_CHOICE_LAYOUT, "layout", "how blocks lie in memory")

enum pkv_choice {
#define PKV_ENUM(sym, word, summary) sym,
    PKV_CHOICES(PKV_ENUM)
#undef PKV_ENUM
    PKV_CHOICE_COUNT
};
const char *pkv_choice_name(enum pkv_choice choice);
const char *pkv_choice_summary(enum pkv_choice choice);

/* What a policy sees. All borrowed, all const. In begin (admit) and pick (preempt) the token counts
 * of running requests are current; elsewhere only their tables are. */
struct pkv_sched_view {
    const struct pkv_cache *cache;
    struct pkv_request *const *running;    /* [num_running], in admission order */
    size_t num_running;
    struct pkv_request *const *resuming;   /* [num_resuming], on their way back from the host */
    size_t num_resuming;
    size_t num_waiting;
    uint32_t num_free_blocks;
    uint32_t num_blocks;
    uint32_t num_short_blocks;             /* in pick: what the grower lacks, at least 1 */
    uint32_t num_watermark_blocks;         /* must stay free after an admission while others run */
    uint32_t num_drafts;                   /* that a step computes at most; 0 without speculation */
    uint32_t num_lookahead_tokens;         /* positions asked for beyond a step's own */
    uint32_t max_model_len;                /* UINT32_MAX = none */
    /* Of the steps that may run at once, one or under async_scheduling two; UINT64_MAX = any number. */
    uint64_t max_step_tokens;              /* their token budgets */
    uint64_t max_chunk_tokens;             /* most that one request gets of them, and its lookahead */
    bool takes_runs;                       /* a request gets all its blocks at once, at admission */
    bool prefix_cache;
    uint64_t num_passes;                   /* over a queue neither empty nor shut, so far */
    uint64_t step;
    uint64_t seed;
};

/* Whom an admit policy reckons with: those who run, then those on their way back, who hold their blocks
 * and will run. Only the first can be given up. */
static inline size_t pkv_view_num_in(const struct pkv_sched_view *view)
{
    return view->num_running + view->num_resuming;
}

static inline const struct pkv_request *pkv_view_in(const struct pkv_sched_view *view, size_t i)
{
    return i < view->num_running ? view->running[i] : view->resuming[i - view->num_running];
}

/* Parts of a step. A running request decodes when it has a token out and one known token to compute,
 * drafts not counted and one in flight taken as out; else it is still in its prompt, or again in it. */
enum pkv_mix_part {
    PKV_MIX_DECODES = 1,
    PKV_MIX_PROMPTS = 2,
    PKV_MIX_NEWCOMERS = 4,
    PKV_MIX_RUNNING = PKV_MIX_DECODES | PKV_MIX_PROMPTS,
    PKV_MIX_ALL = PKV_MIX_RUNNING | PKV_MIX_NEWCOMERS
};

/* What one tenant got in a step. */
struct pkv_tenant_tokens {
    uint64_t num_prompt;        /* prompts of those admitted for the first time */
    uint64_t num_generated;
};

/* What a step came to. */
struct pkv_step_facts {
    uint64_t num_tokens;        /* scheduled */
    uint64_t num_prefill_tokens, num_decodes;
    size_t num_admitted, num_preempted, num_finished;
    bool is_idle;               /* nobody runs and nobody waits after it */
    unsigned parts;             /* of the turn that scheduled something; 0 = nothing was scheduled */
    /* Of those who still ran after the last preemption, before their tokens; 0 without one. */
    size_t num_survivors;
    uint64_t sum_emitted, sum_max_tokens;
    const struct pkv_tenant_tokens *tenants;   /* [num_tenants], by number; 0 without needs_tenant_tokens */
    size_t num_tenants;
};

/* One waiting request under consideration. */
struct pkv_candidate {
    const struct pkv_request *request;
    const struct pkv_hit *hit;
    uint32_t num_tokens;                   /* it would be scheduled in this step */
    uint32_t num_positions;                /* it would hold after this step, lookahead included */
    uint32_t need_blocks;                  /* free blocks that takes */
};

enum pkv_admit_verdict {
    PKV_ADMIT,        /* as proposed */
    PKV_ADMIT_BLOCKS, /* no: not even this step's blocks are there */
    PKV_ADMIT_GATE    /* no: gate, watermark or reserve, where this step's blocks would be there; or a
                         batch that is shut, whatever is there */
};

/* The key of a waiting request: smaller first, equal ones by arrival. An order that needs the whole
 * queue has rank() instead of key(): all keys at once, before every pass; who comes between two passes
 * stands behind those ranked. Both are also asked who would be first, where nobody is put anywhere. */
struct pkv_order_ops {
    struct pkv_policy_info info;
    bool needs_every_step;   /* keys change while waiting: asked anew before every pass */
    bool by_arrival;         /* the order of arrival itself; the key is 0 for all */
    int64_t (*key)(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *r);
    /* waiting is the queue in no particular order: where one stands now is in its waiting_node. Those put
     * to the front or behind the end are in it, and stay where they are whatever their key. scratch has
     * rank_size_each bytes for each; keys lie between the ends of their range, which are reserved. */
    void (*rank)(const void *state, const struct pkv_sched_view *view,
                 struct pkv_request *const *waiting, size_t num, void *scratch, int64_t *out_keys);
    size_t rank_size_each;
    /* Is num_waiting_hit of those waiting to be current in rank()? NULL = never. */
    bool (*needs_hits)(const void *state, const struct pkv_sched_view *view);
    /* Passes by which one may have missed more than another before it no longer matters how many, if
     * nobody finds more than so many tokens; 0 = they never matter. NULL = never. */
    uint64_t (*far_behind)(const int64_t *params, uint32_t most_tokens);
    size_t state_size;
    size_t state_size_each;     /* more of it, zeroed, for each tenant, behind the rest */
    bool needs_tenant_tokens;   /* observe() is told them; tenants are numbered */
    void (*init)(void *state, const int64_t *params);
    void (*observe)(void *state, const struct pkv_step_facts *facts);
    /* Two more doors, for an order that learns who waits; NULL = it does not. One that was given up
     * joins again; one leaves when it is admitted or cancelled. */
    void (*joined)(void *state, const struct pkv_request *r);
    void (*left)(void *state, const struct pkv_request *r);
    /* What the state decides by, as one number, the same wherever its choices are. NULL = nothing that
     * changes while no token comes out. */
    uint64_t (*fingerprint)(const void *state, const struct pkv_sched_view *view);
};

/* A pass over the waiting queue. pass is scratch of pass_size bytes owned by the scheduler. */
struct pkv_admit_ops {
    struct pkv_policy_info info;
    size_t pass_size;
    size_t pass_size_each;   /* more of it for each one in, those taken in the pass included */
    void (*begin)(const void *state, const struct pkv_sched_view *view, void *pass);
    /* *need_blocks is c->need_blocks at first; a policy that asks for more raises it to what it
     * asked for, all counted, so that a wait can be explained. */
    enum pkv_admit_verdict (*consider)(const void *state, const struct pkv_sched_view *view,
                                       void *pass, const struct pkv_candidate *c,
                                       uint64_t *need_blocks);
    /* It is in: RUNNING, or RESUMING, which has all its blocks by now and num_tokens 0. */
    void (*took)(const void *state, const struct pkv_sched_view *view, void *pass,
                 const struct pkv_candidate *c);
    void (*end)(const void *state, const struct pkv_sched_view *view, void *pass);
    bool ignores_idle_steps;   /* observe() learns nothing from a step in which nothing ran */
    /* What it promises holds only where a running request gets one token a step and is gone with its last
     * one: refused with speculation and with async_scheduling. */
    bool needs_token_steps;
    size_t state_size;
    void (*init)(void *state, const int64_t *params);
    void (*observe)(void *state, const struct pkv_step_facts *facts);
    bool counts_budget;      /* takes a whole budget of tokens in flight for what one may get */
    bool counts_tokens;      /* reckons in tokens of one table that grows: one group of full attention */
    /* Positions it must be able to hold one day to be admitted at all, drafts and lookahead not counted;
     * NULL = the truth. */
    uint64_t (*positions_wanted)(const struct pkv_request *r);
};

struct pkv_on_blocked_ops {
    struct pkv_policy_info info;
    bool latches;   /* a refusal shuts the queue until a running request leaves */
    /* Does it look at num_overtakes? Without a bound nobody asks. NULL = never. */
    bool (*counts_overtakes)(const int64_t *params);
    /* May those behind a refused one be looked at? */
    bool (*goes_on)(const struct pkv_request *refused, const int64_t *params);
};

struct pkv_preempt_ops {
    struct pkv_policy_info info;
    /* Compares num_preemptions of those who run, one with another and with nothing else: how they
     * compare is part of a state that may come again. */
    bool counts_preemptions;
    /* Index in view->running of the one to give up, so that `grower` can grow; SIZE_MAX = nobody. */
    size_t (*pick)(const void *state, const struct pkv_sched_view *view,
                   const struct pkv_request *grower);
    size_t state_size;
    void (*init)(void *state, const int64_t *params);
    void (*observe)(void *state, const struct pkv_step_facts *facts);
};

enum pkv_place { PKV_PLACE_FRONT, PKV_PLACE_TAIL, PKV_PLACE_BY_ORDER };
struct pkv_requeue_ops { struct pkv_policy_info info; enum pkv_place place; };

/* One that is given up and has blocks of its own that may go to the host. */
struct pkv_swap_case {
    uint32_t num_blocks;                 /* nobody else holds: they would go out, and come back */
    uint64_t num_positions;              /* computed in them */
    int64_t wait_ns;                     /* until the link has done what is queued */
    int64_t transfer_ns;                 /* all of them, one way */
    const struct pkv_step_time *step_time;
};
struct pkv_on_preempt_ops {
    struct pkv_policy_info info;
    /* Do they go there, if there is room? NULL = never. */
    bool (*swaps)(const struct pkv_swap_case *c);
};

enum pkv_grow { PKV_GROW_ONE_BY_ONE, PKV_GROW_WHOLE_BATCH };
struct pkv_grow_ops { struct pkv_policy_info info; enum pkv_grow shape; };

struct pkv_publish_ops { struct pkv_policy_info info; enum pkv_publish when; };

/* What a step runs: the parts of the first turn, and if that schedules nothing, those of the other
 * one (0 = none). In a turn the running ones come before the newcomers. */
struct pkv_mix { unsigned first, otherwise; };
struct pkv_mix_ops {
    struct pkv_policy_info info;
    bool ignores_idle_steps;   /* observe() learns nothing from a step in which nothing ran */
    struct pkv_mix (*choose)(const void *state, const struct pkv_sched_view *view);
    size_t state_size;
    void (*init)(void *state, const int64_t *params);
    void (*observe)(void *state, const struct pkv_step_facts *facts);
};

enum pkv_cache_kind { PKV_CACHE_BLOCKS };
struct pkv_cache_kind_ops { struct pkv_policy_info info; enum pkv_cache_kind kind; };

/* One value of each choice, and the value of its parameters. */
struct pkv_policies {
    const struct pkv_order_ops *order;
    const struct pkv_admit_ops *admit;
    const struct pkv_on_blocked_ops *on_blocked;
    const struct pkv_preempt_ops *preempt;
    const struct pkv_on_preempt_ops *on_preempt;
    const struct pkv_requeue_ops *requeue;
    const struct pkv_grow_ops *grow;
    const struct pkv_publish_ops *publish;
    const struct pkv_mix_ops *mix;
    const struct pkv_evict_ops *evict;
    const struct pkv_cache_kind_ops *cache;
    const struct pkv_layout_ops *layout;
    int64_t params[PKV_CHOICE_COUNT][PKV_MAX_POLICY_PARAMS];
};

/* The registry. list gives all policies of a choice in the order of src/meson.build, the first
 * being what preset vllm uses. The returned info is the first member of that choice's ops. */
const struct pkv_policy_info *const *pkv_policy_list(enum pkv_choice choice, size_t *out_num);
const struct pkv_policy_info *pkv_policy_find(enum pkv_choice choice, const char *name);
/* Put a policy of the registry in its place, its parameters at their presets. */
void pkv_policies_set(struct pkv_policies *policies, enum pkv_choice choice,
                      const struct pkv_policy_info *info);
const struct pkv_policy_info *pkv_policies_get(const struct pkv_policies *policies,
                                               enum pkv_choice choice);

/* The value of a parameter as people write it: a number with as many decimals as it needs. 32 bytes of
 * out are enough. */
void pkv_policy_param_write(const struct pkv_policy_param *param, int64_t value, char *out,
                            size_t size);

/* Presets are data: keys of the scheduler section of a scenario and their values; a key with a dot
 * is one of another section, written whole. */
struct pkv_preset_setting { const char *key, *value; };
struct pkv_preset {
    const char *name, *summary, *source;   /* source names commit and date */
    const struct pkv_preset_setting *settings;
    size_t num_settings;
    const char *priority_note;             /* known to differ under order: priority; NULL = nothing */
};
const struct pkv_preset *const *pkv_preset_list(size_t *out_num);
const struct pkv_preset *pkv_preset_find(const char *name);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
