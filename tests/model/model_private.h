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

/* All tokens up to the end of a block, and the blocks that hold just that, oldest first. */
struct model_key {
    struct model_token *tokens;      /* [num_tokens], owned */
    size_t num_tokens;
    struct model_block *blocks;      /* list through same_prev, same_next */
    UT_hash_handle hh;
};

struct model_block {
    uint32_t id;
    uint32_t num_holders;
    struct model_key *key;           /* NULL = no identity */
    struct model_block *prev, *next;             /* in the free queue */
    struct model_block *same_prev, *same_next;   /* in key->blocks */
};

/* One scheduled request. */
struct model_entry {
    struct model_request *request;
    uint32_t num_tokens, first, num_blocks_before;
    bool admitted, resumed;
    uint32_t num_hit;
};

struct model {
    struct model_config config;
    const struct pkv_request_spec *specs;    /* [num_specs], borrowed */
    size_t num_specs, num_arrived;
    struct model_block *blocks;      /* [num_blocks], owned */
    struct model_block *free;        /* head is taken first */
    struct model_key *index;
    struct model_request *requests;  /* [num_specs], owned; index = place in specs */
    struct model_request *waiting, *running;     /* lists, first to last */
    struct model_tenant *tenants;    /* [num_tenants], owned; room for num_specs */
    size_t num_tenants;
    struct model_tenant *last_left;  /* whose request left the queue last */

    int64_t now;
    size_t num_left;                 /* how often somebody left running, in whatever way */
    size_t num_left_at_refusal;      /* as it was when the walk met a refusal; SIZE_MAX = not met */
    int64_t num_prefill_steps;       /* in a row that scheduled prompts only */
    bool decoded;                    /* in this step, a turn in which decodes take part */
    double ratio;                    /* admit: ratio */
    uint32_t num_idle;               /* rows in a row that changed nothing, with nothing to come */
    bool ended;

    /* this step */
    struct model_entry *entries;     /* [num_entries], owned */
    size_t num_entries;
    struct model_request **preempted, **aborted, **finished;   /* [num_...], owned */
    size_t num_preempted, num_aborted, num_finished, num_rejected;
    uint32_t *evicted;               /* [num_evicted], owned */
    size_t num_evicted;
    uint32_t free_sched;
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
/* The longest run of blocks that hold the beginning of r's known tokens but the last one. */
uint32_t model_find_prefix(const struct model *m, const struct model_request *r,
                           struct model_block **out);
uint32_t model_count_unheld(struct model_block *const *blocks, uint32_t num);
void model_hold(struct model *m, struct model_request *r, struct model_block *block);
void model_take_new(struct model *m, struct model_request *r);
/* Enter all full blocks below num_tokens. */
void model_publish(struct model *m, struct model_request *r, uint32_t num_tokens);
/* Forget the identity of blocks that are not wholly below num_tokens. */
void model_unpublish(struct model *m, struct model_request *r, uint32_t num_tokens);
uint32_t model_release(struct model *m, struct model_request *r);
uint64_t model_count_stored(const struct model *m);

/* model_step.c */
uint32_t model_blocks_for(const struct model *m, uint64_t num_positions);
void model_schedule(struct model *m);
void model_join(struct model *m, struct model_request *r);
void model_put_front(struct model *m, struct model_request *r);
void model_commit(struct model *m, int64_t end_ns);

/* model_choose.c */
/* Who waits with a smaller key comes first; equal ones by arrival. */
int64_t model_order_key(const struct model *m, const struct model_request *r);
/* The one to give up, so that grower gets num_short blocks more than are free; NULL = nobody. */
struct model_request *model_pick_victim(const struct model *m, const struct model_request *grower,
                                        uint32_t num_short);
/* Blocks held at the worst moment to come by those running and one more. */
uint64_t model_future_peak(const struct model *m, const struct model_request *more);

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
