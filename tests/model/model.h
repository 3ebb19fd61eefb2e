/*
 * model.h - the whole simulator once more, slow and obvious, to hold the fast one against.
 *
 * Every token is spelled out as (origin, position). A block's identity is the list of all tokens up
 * to its end, in an index of its group, and two are equal when the lists are. Queues are linked lists
 * that are walked; what can be counted is counted again each time. Nothing is remembered from one
 * look to the next. From the product come two plain values, the request's specification and the
 * configuration, and no code: policies and kinds of KV are known by their names.
 *
 * Source of the rules: vllm/v1/core/sched/scheduler.py and vllm/v1/core/block_pool.py.
 */
#ifndef TESTS_MODEL_H
#define TESTS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/model.h"
#include "pagedkv/request.h"
#include "pagedkv/sched.h"

/* Words of the policies, as a scenario spells them. */
enum model_order {
    MODEL_ORDER_FCFS, MODEL_ORDER_PRIORITY, MODEL_ORDER_SJF, MODEL_ORDER_SJF_TRUE,
    MODEL_ORDER_LJF, MODEL_ORDER_LOF, MODEL_ORDER_EDF, MODEL_ORDER_RANDOM,
    MODEL_ORDER_LPM, MODEL_ORDER_DFS_WEIGHT, MODEL_ORDER_VTC
};
enum model_admit {
    MODEL_ADMIT_WHOLE_PROMPT, MODEL_ADMIT_FIRST_CHUNK, MODEL_ADMIT_RESERVE_MAX,
    MODEL_ADMIT_FUTURE_PEAK, MODEL_ADMIT_MC_SF, MODEL_ADMIT_STATIC_BATCH,
    MODEL_ADMIT_RATIO
};
enum model_preempt {
    MODEL_PREEMPT_NEWEST, MODEL_PREEMPT_PRIORITY, MODEL_PREEMPT_OLDEST,
    MODEL_PREEMPT_FEWEST_OUTPUTS, MODEL_PREEMPT_LEAST_LOST, MODEL_PREEMPT_MOST_BLOCKS,
    MODEL_PREEMPT_LARGEST_REMAINING, MODEL_PREEMPT_LEAST_PREEMPTED, MODEL_PREEMPT_FIT,
    MODEL_PREEMPT_RANDOM, MODEL_PREEMPT_NEVER
};
enum model_mix {
    MODEL_MIX_MIXED, MODEL_MIX_PREFILL_FIRST, MODEL_MIX_DECODE_FIRST, MODEL_MIX_SEPARATE
};
enum model_publish {
    MODEL_PUBLISH_ALLOC, MODEL_PUBLISH_COMPUTED, MODEL_PUBLISH_CHUNK_END, MODEL_PUBLISH_FINISH
};
enum model_on_preempt { MODEL_ON_PREEMPT_RECOMPUTE, MODEL_ON_PREEMPT_SWAP, MODEL_ON_PREEMPT_AUTO };
enum model_requeue { MODEL_REQUEUE_FRONT, MODEL_REQUEUE_BY_ORDER, MODEL_REQUEUE_TAIL };

enum model_group_kind {
    MODEL_GROUP_FULL, MODEL_GROUP_SLIDING, MODEL_GROUP_CHUNKED, MODEL_GROUP_STATE
};
struct model_group {
    enum model_group_kind kind;
    uint32_t block_size, size;       /* size: window, chunk, blocks of a state */
};

/* max_... and ..._threshold: UINT32_MAX = without limit. */
struct model_config {
    enum model_order order;
    enum model_admit admit;
    enum model_preempt preempt;
    enum model_requeue requeue;
    enum model_on_preempt on_preempt;
    uint64_t num_host_blocks, bytes_per_token, link_bytes_per_s;
    int64_t link_latency_ns;
    /* admit: ratio */
    double ratio_init, ratio_min, ratio_step;
    int64_t retract_steps, clip_tokens;
    bool skip_blocked;               /* on_blocked: skip */
    bool latch;                      /* on_blocked: latch */
    int64_t max_overtakes;           /* with skip_blocked; 0 = any number */
    bool whole_batch;                /* grow: whole_batch */
    enum model_mix mix;
    int64_t max_consecutive_prefills;    /* with mix: separate_with_limit */
    enum model_publish publish;
    int64_t aging_tokens, lpm_max_waiting, in_batch_tokens;   /* of lpm; 0 = none */
    int64_t prompt_weight, output_weight;   /* of vtc, in thousandths */
    bool skip_blocked_prefill;       /* chunking off: put aside what exceeds the budget */
    bool chunked_prefill;
    bool prefix_cache;
    bool unhashed_to_head;
    bool drop_cancelled;             /* priority_victim: safe */
    bool reject_oversized;
    bool async;                      /* a step's tokens come out when the next one is scheduled */
    uint32_t num_drafts, lookahead;  /* drafts a step, positions asked for beyond it; 0 = none */
    bool lookahead_at_admission;     /* and padding */
    bool drops_last_hit;             /* eagle */
    double acceptance_rate;
    uint32_t accepted[PKV_MAX_ACCEPTED], num_accepted;   /* a pattern; stands above the rate */
    bool fork;
    uint32_t beam_drop;              /* thousandths */
    uint64_t seed;
    struct model_group groups[PKV_MAX_GROUPS];
    uint32_t num_groups;
    uint32_t unit, align;            /* see model_groups_finish_config() */
    bool keeps_chunk_end;            /* chunk_end: keep */
    uint32_t num_blocks, num_watermark_blocks;
    uint32_t first_block_id;         /* as printed: 1 where a null block comes before */
    uint32_t max_num_seqs, max_num_batched_tokens, long_prefill_token_threshold, max_model_len;
    struct pkv_step_time step_time;
    bool every_step;
    int64_t row_ns;                  /* every row is so long; 0 = as long as what runs in it */
    uint32_t stuck_steps;
    uint64_t max_steps;              /* 0 = no limit */
    int64_t log_step_ns;             /* step number of a log line = time / this */
    bool log_blocks;                 /* log queues, block ids and evictions too */
};

/* Once the groups are known: the largest unit that divides their block sizes, and the first length
 * that all of them divide. */
void model_groups_finish_config(struct model_config *config);

/* Take over a scheduler's configuration, policies by name. What goes on in time is left alone. */
void model_config_read(struct model_config *out, const struct pkv_sched_config *sched);

/* One step as steps.csv has it; columns named as there. */
struct model_row {
    int64_t step, time_ns, dur_ns, waiting, running, free_blocks, used_blocks, cached_blocks,
            free_blocks_end, admitted, resumed, preempted, finished, rejected, aborted,
            preemptions_total, sched_tokens, prefill_tokens, decode_tokens, recomputed_tokens,
            hit_tokens, evicted_blocks, stored_tokens, context_tokens, swapped_out_blocks,
            swapped_in_blocks, max_gap_ns, limit;
};

enum model_status {
    MODEL_WAITING, MODEL_RUNNING, MODEL_PREEMPTED, MODEL_SWAPPED, MODEL_RESUMING, MODEL_COMPLETED,
    MODEL_ABORTED, MODEL_REJECTED, MODEL_UNFINISHED
};
const char *model_status_name(enum model_status status);

/* origin and position; the first item of a text stands for its salt and adapter. */
struct model_token { uint64_t origin, position; };

struct model_block;

struct model_request {
    char *id;                        /* owned */
    uint64_t row;
    int64_t place;                   /* among all that arrive */
    int64_t arrival_ns, abort_ns, deadline_ns, priority;
    int64_t admitted_ns, first_token_ns, last_token_ns, finish_ns, max_gap_ns;
    uint32_t num_prompt, num_output, max_tokens, num_emitted;
    bool emits_nothing;
    uint64_t output_origin;
    uint32_t output_first;
    enum model_status status;
    bool was_preempted;
    bool fronted, tailed;            /* put at an end of the queue, past its order */
    int64_t rank;                    /* among the waiting, where they are ranked all together */
    int64_t num_missed;              /* passes over the queue that left it waiting */
    struct model_tenant *tenant;     /* borrowed */
    struct model_token *text;        /* [1 + num_known], owned */
    uint32_t num_known, num_computed, num_highest;
    struct model_block **table[PKV_MAX_GROUPS];   /* [num_table], owned; borrowed blocks or NULL */
    uint32_t num_table[PKV_MAX_GROUPS];
    uint32_t num_hashed[PKV_MAX_GROUPS];     /* leading blocks that were looked at for hashing */
    uint32_t num_drafts;             /* proposed for its next step */
    bool is_decoding;                /* a token has come out since it was admitted */
    bool *on_host;                   /* [num_blocks], owned: has this block of the table a copy there? */
    uint32_t num_copied;             /* positions it had then */
    uint32_t num_hit, num_preemptions, peak_blocks;
    uint64_t num_recomputed;
    int64_t num_overtakes;
    /* Of those that were asked for together; num_samples is 1 without fork. */
    struct model_request *samples;   /* [num_samples], borrowed: all of them, itself included */
    uint32_t num_samples;
    bool is_beam, waits_for_fork;
    bool prompt_only;                /* only its prompt is ever cached */
    uint32_t num_drawn;              /* generated tokens when beams were drawn last */
    bool gone;                       /* ended and told */
    struct model_request *prev, *next;       /* place in waiting or running */
};

/* Those without a name are one tenant. */
struct model_tenant {
    const char *name;                /* borrowed; NULL = none */
    int64_t counter;
};

struct model_totals {
    uint64_t num_steps, arrived, completed, rejected, aborted, unfinished;
    uint64_t prompt_tokens, output_tokens, scheduled_tokens, recomputed_tokens;
    uint64_t queried_tokens, hit_tokens, resumed_queried_tokens, resumed_hit_tokens;
    uint64_t preemptions, allocated, released, evicted, copied, dropped_beams;
    uint64_t num_verifications, drafted, accepted, verified;
    uint64_t swaps, swap_fallbacks, swapped_out_blocks, swapped_in_blocks, peak_host_blocks;
    int64_t link_busy_ns;
    int64_t first_arrival_ns, end_ns;        /* PKV_NO_TIME when there is none */
    bool stuck;
};

struct model;

/* Rows in the order in which they arrive; specs and what they point to outlive the model.
 * Memory that runs out aborts, here as everywhere in the model. */
struct model *model_create(const struct model_config *config, const struct pkv_request_spec *specs,
                           size_t num_specs);
void model_destroy(struct model *m);

/* Run until the next step that has a row. False at the end of the run. */
bool model_next(struct model *m);
/* Of the step that model_next() stopped at. The line ends without a newline. */
const struct model_row *model_row(const struct model *m);
const char *model_line(const struct model *m);

/* End the run here: whoever is live is unfinished. */
void model_stop(struct model *m);
/* Requests that have ended so far, in that order; those of one step as they were scheduled. */
size_t model_num_ended(const struct model *m);
const struct model_request *model_ended(const struct model *m, size_t i);
struct model_totals model_totals(const struct model *m);
size_t model_num_waiting(const struct model *m);
/* Requests that so many rows ask for. */
size_t model_count_samples(const struct pkv_request_spec *rows, size_t num_rows);
size_t model_num_running(const struct model *m);

#endif
