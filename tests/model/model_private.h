/*
 * model_private.h - the model's insides, for its own files.
 */
#ifndef TESTS_MODEL_PRIVATE_H
#define TESTS_MODEL_PRIVATE_H

#include "model.h"

/* uthash and utlist are written for wider int habits than our warnings allow. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wconversion"
#include <uthash.h>
#include <utlist.h>
#pragma GCC diagnostic pop

/* All tokens up to the end of a block of a group, and the blocks that hold just that, oldest first;
 * or up to the end of a prompt, and how many blocks have that as their second identity. */
struct model_key {
    uint32_t group;
    size_t num_second;
    struct model_token *tokens;      /* [num_tokens], owned */
    size_t num_tokens;
    struct model_block *blocks;      /* list through same_prev, same_next */
    UT_hash_handle hh;
};

struct model_block {
    uint32_t id;
    uint32_t num_holders;
    struct model_key *key, *second;  /* NULL = no identity */
    struct model_block *prev, *next;             /* in the free queue */
    struct model_block *same_prev, *same_next;   /* in key->blocks */
};

#define MODEL_MAX_SAMPLES 64

/* One scheduled request. */
struct model_entry {
    struct model_request *request;
    uint32_t num_tokens, first;
    uint32_t num_blocks_before[PKV_MAX_GROUPS], num_blocks_after[PKV_MAX_GROUPS];
    uint32_t num_drafts;             /* of num_tokens */
    bool samples;                    /* a token will come out */
    bool admitted, resumed;
    uint32_t num_hit;
    struct model_request *followers[MODEL_MAX_SAMPLES];   /* admitted with it, behind it in running */
    uint32_t num_followers;
    uint32_t *ids[PKV_MAX_GROUPS];   /* owned: its tables when the step was planned, as printed */
};

/* What is known of a step when it is scheduled and learnt from it when its tokens are out. */
struct model_lesson {
    bool decoded;                    /* in a turn in which decodes take part */
    bool decodes_alone;
    double ratio;                    /* if somebody was given up and somebody was left; else -1 */
};

/* What the model that is simulated computes in one go. */
struct model_batch {
    struct model_entry *entries;     /* [num_entries], owned */
    struct model_lesson lesson;
    size_t num_entries;
    int64_t time_ns, dur_ns;         /* when it was scheduled, how long it takes */
    bool exists;
};

/* Blocks on the link. It holds those that nobody else does any more. */
struct model_transfer {
    struct model_request *request;   /* NULL = of one that is gone */
    bool is_out;
    struct model_block **held;       /* [num_held], owned; NULL = not held */
    uint32_t num_held, num_positions;
    int64_t done_ns;
    struct model_transfer *prev, *next;
};

/* Let in to be copied back, when so many others had been scheduled. */
struct model_back {
    struct model_request *request;
    uint32_t num_hit;
    size_t num_before;
};

struct model {
    struct model_config config;
    struct pkv_request_spec *specs;  /* [num_specs], owned: one a sample */
    size_t num_specs, num_arrived;
    struct model_block *blocks;      /* [num_blocks], owned */
    struct model_block *free;        /* head is taken first */
    struct model_key *index[PKV_MAX_GROUPS];
    struct model_request *requests;  /* [num_specs], owned; index = place in specs */
    struct model_request *waiting, *running;     /* lists, first to last */
    struct model_request *resuming;  /* list */
    struct model_transfer *transfers;            /* list, the oldest first */
    int64_t link_free_ns;
    struct model_tenant *tenants;    /* [num_tenants], owned; room for num_specs */
    size_t num_tenants;
    struct model_tenant *last_left;  /* whose request left the queue last */

    int64_t now;
    size_t num_left;                 /* how often somebody left running, in whatever way */
    size_t num_left_at_refusal;      /* as it was when the walk met a refusal; SIZE_MAX = not met */
    int64_t num_prefill_steps;       /* in a row that scheduled prompts only */
    double ratio;                    /* admit: ratio */
    uint32_t num_idle;               /* rows in a row that changed nothing, with nothing to come */
    bool ended;

    /* this step */
    struct model_entry *entries;     /* [num_entries], owned */
    size_t num_entries, num_walked;  /* walked: of these, running ones */
    struct model_lesson lesson;
    struct model_batch flying;       /* async: the batch before, still without its tokens */
    struct model_batch landing;      /* whose tokens come out in this step */
    struct model_request **preempted, **aborted, **finished;   /* [num_...], owned */
    size_t num_preempted, num_aborted, num_finished, num_rejected;
    struct model_back *back;         /* [num_back], owned */
    size_t num_back;
    uint64_t num_promised;           /* blocks on the link that somebody waits for */
    bool stalled, was_stalled;       /* somebody does, or did in the step before */
    uint32_t *evicted;               /* [num_evicted], owned */
    size_t num_evicted;
    uint32_t free_before, free_sched;    /* when the step began, when it was scheduled */
    uint64_t num_generated;
    int64_t num_passes;              /* over a queue that was not shut */
    enum pkv_limit limit;
    struct model_row row;
    char *line;                      /* owned */
    size_t line_length, line_size;

    struct model_request **order;    /* [num_order], owned: those that ended */
    size_t num_order;
    struct model_totals totals;
};

/* model_blocks.c */
void *model_alloc(size_t num, size_t size);
void model_blocks_init(struct model *m);
void model_blocks_finish(struct model *m);
uint32_t model_count_free(const struct model *m);
uint32_t model_count_cached_free(const struct model *m);
/* The longest beginning of r's known tokens but the last one for which every group finds what it
 * needs: its length in tokens. Blocks go to out, NULL for those not needed, and their number. */
struct model_hit {
    uint32_t num_tokens, num_unheld;
    uint32_t num[PKV_MAX_GROUPS], num_null[PKV_MAX_GROUPS];
    struct model_block **blocks[PKV_MAX_GROUPS];   /* [num], owned */
};
void model_find_prefix(const struct model *m, const struct model_request *r,
                       struct model_hit *out);
void model_hit_finish(struct model_hit *hit);
/* Give back what no later token looks at. */
void model_trim(struct model *m, struct model_request *r);
/* block NULL = not needed. */
void model_hold(struct model *m, struct model_request *r, uint32_t g, struct model_block *block);
void model_take_new(struct model *m, struct model_request *r, uint32_t g);
/* Bring every table to its length for so many positions, one group after another. */
void model_take_all(struct model *m, struct model_request *r, uint64_t num_positions);
size_t model_count_keys(const struct model *m);
/* Put a new block in the place of one that others hold, too. */
void model_copy(struct model *m, struct model_request *r, uint32_t g, uint32_t index);
/* Enter all full blocks below num_tokens. */
void model_publish(struct model *m, struct model_request *r, uint32_t num_tokens);
/* Forget the identity of blocks that are not wholly below num_tokens. */
void model_unpublish(struct model *m, struct model_request *r, uint32_t num_tokens);
uint32_t model_release(struct model *m, struct model_request *r);
/* Blocks from `begin` on; NULL = none. */
uint32_t model_give_back(struct model *m, struct model_block *const *blocks, uint32_t begin,
                         uint32_t end);
uint64_t model_count_stored(const struct model *m);

/* model_groups.c */
uint32_t model_num_out(const struct model *m, const struct model_request *r, uint32_t g);
uint32_t model_first_needed(const struct model_group *group, uint64_t end);
bool model_is_useful(const struct model *m, uint32_t g, uint32_t index);
uint32_t model_table_length(const struct model *m, uint32_t g, uint64_t num_positions);
/* The most blocks at once on the way to so many positions; step_tokens UINT32_MAX = any number. */
uint64_t model_most_blocks(const struct model *m, uint32_t g, uint64_t num_positions,
                           uint64_t step_tokens);
uint64_t model_most_blocks_of_all(const struct model *m, uint64_t num_positions,
                                  uint64_t step_tokens);
uint32_t model_num_held(const struct model_request *r);

/* model_samples.c */
void model_expand(struct model *m, const struct pkv_request_spec *rows, size_t num_rows);
void model_forget_specs(struct model *m);
struct model_request *model_sample(const struct model_request *r, uint32_t index);   /* NULL = gone */
uint32_t model_gang_size(const struct model_request *r);
struct model_request *model_first(const struct model_request *r);
bool model_follows(const struct model_request *r);
uint32_t model_num_admitted(const struct model_request *r);   /* together with it */
uint32_t model_num_due(const struct model *m, const struct model_request *r);
void model_gather(struct model_request *r);
void model_part(struct model_request *r);
void model_fork(struct model *m, struct model_request *first);
void model_draw_beams(struct model *m, struct model_request *r);
bool model_are_oversized(const struct model *m, const struct model_request *r,
                         const struct pkv_request_spec *spec, uint64_t step_tokens);

/* model_step.c */
uint32_t model_computed(const struct model *m, const struct model_request *r);   /* this step's too */
/* Is this block written into on the way to so many positions, and do others hold it, too? */
bool model_must_copy(const struct model *m, const struct model_request *r, uint32_t g,
                     uint32_t index, uint64_t num_positions);
uint32_t model_num_copies(const struct model *m, const struct model_request *r,
                          uint64_t num_positions);
/* Blocks of its prompt that are never written again, nor given back before its end. */
uint32_t model_num_shared(const struct model *m, const struct model_request *r);
void model_forget_tables(struct model_entry *e);
void model_schedule(struct model *m);
size_t model_num_resuming(const struct model *m);
/* Those who run, then those on their way back: the one behind r, or the first; NULL = no more. */
const struct model_request *model_next_in(const struct model *m, const struct model_request *r);
void model_join(struct model *m, struct model_request *r);
void model_put_front(struct model *m, struct model_request *r);
void model_commit(struct model *m, int64_t end_ns);
/* Positions to have blocks for when so many are to be computed. */
uint32_t model_positions_ahead(const struct model *m, uint32_t num_positions);
void model_add_entry(struct model *m, struct model_entry entry);
/* Known tokens and the one that is on its way; tokens being computed by the batch before. */
uint32_t model_num_expected(const struct model *m, const struct model_request *r);
uint32_t model_num_flying(const struct model *m, const struct model_request *r);

/* model_run.c */
/* Positions beyond its end that one who says so many tokens may need blocks for. */
uint64_t model_most_ahead(const struct model *m, uint32_t num_output);
/* Tokens of all batches that run at once, and what one request may reach beyond what is through. */
uint64_t model_batches_at_once(const struct model *m);
uint64_t model_longest_reach(const struct model *m);

/* model_choose.c */
uint64_t model_lot(const struct model *m, uint64_t row, uint64_t num);
/* Who waits with a smaller key comes first; equal ones by arrival. */
int64_t model_order_key(const struct model *m, const struct model_request *r);
/* The one to give up, so that grower gets num_short blocks more than are free; NULL = nobody. */
struct model_request *model_pick_victim(const struct model *m, const struct model_request *grower,
                                        uint32_t num_short);
/* Is this token of its answer guessed rightly? */
bool model_is_guessed(const struct model *m, const struct model_request *r, uint32_t token);
/* Blocks held at the worst moment to come by those running and one more. */
uint64_t model_future_peak(const struct model *m, const struct model_request *more);

/* model_swap.c */
/* One that is given up goes to the host. returns  false when it does not, and nothing was changed */
bool model_swap_out(struct model *m, struct model_request *r);
/* Blocks with a copy behind the first num_hit ones, without a gap, and positions that are there then. */
uint32_t model_find_copies(const struct model *m, const struct model_request *r, uint32_t num_hit,
                           uint32_t *out_positions);
void model_swap_in(struct model *m, struct model_request *r, uint32_t num_blocks,
                   uint32_t num_positions);
void model_forget_copies(const struct model *m, struct model_request *r);
void model_transfers_due(struct model *m, int64_t now);
void model_abort_resuming(struct model *m, struct model_request *r);
/* Blocks that are free when all transfers are done. */
uint64_t model_count_coming(const struct model *m);

size_t model_num_queued(const struct model *m);   /* without those behind their first */

/* model_admit.c */
void model_admit(struct model *m, uint32_t *budget);

/* model_rank.c */
bool model_ranks(const struct model *m);
/* Put the queue in the order of one that looks at all of it, before a pass. */
void model_rank(struct model *m);
struct model_tenant *model_tenant(struct model *m, const char *name);
/* r is about to come into the queue. */
void model_comes(struct model *m, struct model_request *r);
/* So many passes leave all who wait waiting. */
void model_miss(struct model *m, int64_t num_passes);

/* model_log.c */
void model_write_line(struct model *m);

#endif
