/*
 * request.h - a request: what was asked, where it stands, and what it met on the way.
 *
 * A spec is a plain value made by a source (trace.h). A request is the engine's record of a live
 * one. Its status has one writer, pkv_request_set_status(), which knows the allowed ways.
 */
#ifndef PAGEDKV_REQUEST_H
#define PAGEDKV_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/cache.h"
#include "pagedkv/err.h"
#include "pagedkv/heap_node.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define PKV_NO_TIME INT64_MIN

/* One row of traffic. Pointers are borrowed until the source gives its next row. */
struct pkv_request_spec {
    uint64_t row;                   /* from 0, in the order of the source. Ties are broken by the
                                     * order of arrival, in which rows of one time stand by this */
    const char *id;                 /* NULL = the row number */
    const char *tenant;             /* NULL = none */
    const char *session;            /* NULL = none; rows of one session are turns of one talk */
    uint32_t turn;                  /* from 1; 0 = not told */
    bool follows;                   /* closed loop: comes delay_ns after the former row of its
                                     * session finished, and not at arrival_ns, which then is its
                                     * place among the rows */
    const char *loop;               /* NULL = none; needs a session. One whose first row follows comes
                                     * delay_ns after the last row of a session of the same loop */
    int64_t delay_ns;               /* >= 0 */
    bool is_last;                   /* no later row is of its session: what is kept of it may go */
    int64_t arrival_ns;             /* never falls from row to row */
    int64_t abort_ns;               /* >= arrival_ns, or PKV_NO_TIME; of one that follows: ns after it
                                     * came */
    int64_t deadline_ns;            /* or PKV_NO_TIME; the same */
    int64_t priority;               /* smaller = sooner */
    uint32_t num_prompt_tokens;     /* > 0; the sum of the prompt spans */
    uint32_t num_output_tokens;     /* what it will really produce; 0 = none */
    uint32_t max_tokens;            /* what the scheduler is told */
    struct pkv_content content;
    /* Several answers to one prompt: parallel samples, or the beams of a search. The engine makes a
     * request of each, with `sample` from 0. */
    uint32_t num_samples;           /* 0 and 1 = one answer */
    bool is_beam_search;            /* the samples are its beams */
    uint32_t sample;
    const uint32_t *sample_output_tokens;   /* [num_samples], or NULL = num_output_tokens each */
};

/* Output tokens of one of its samples. */
static inline uint32_t pkv_spec_outputs(const struct pkv_request_spec *spec, uint32_t sample)
{
    return spec->sample_output_tokens ? spec->sample_output_tokens[sample] : spec->num_output_tokens;
}

#define PKV_REQUEST_STATUSES(X)                                             \
    X(PKV_REQUEST_WAITING, "waiting")      /* never admitted, holds no block */  \
    X(PKV_REQUEST_RUNNING, "running")      /* holds blocks, gets tokens */       \
    X(PKV_REQUEST_PREEMPTED, "preempted")  /* lost its blocks, waits again */    \
    X(PKV_REQUEST_SWAPPED, "swapped")      /* waits again, with copies on the host */ \
    X(PKV_REQUEST_RESUMING, "resuming")    /* holds blocks that are being copied in */ \
    X(PKV_REQUEST_COMPLETED, "completed")                                       \
    X(PKV_REQUEST_ABORTED, "aborted")                                           \
    X(PKV_REQUEST_REJECTED, "rejected")    /* can never run; refused on arrival */ \
    X(PKV_REQUEST_UNFINISHED, "unfinished") /* still live when the run ended */

enum pkv_request_status {
#define PKV_ENUM(sym, word) sym,
    PKV_REQUEST_STATUSES(PKV_ENUM)
#undef PKV_ENUM
    PKV_REQUEST_STATUS_COUNT
};
const char *pkv_request_status_name(enum pkv_request_status status);

/* A request that decodes one token a step, while it does so undisturbed (see sched/steady.c). */
struct pkv_steady {
    bool is_in;
    uint32_t phase;                /* its bucket: the clock, modulo the block size, at which it is due */
    uint32_t base;                 /* computed positions = base + clock, modulo 2^32 */
    uint64_t admission;            /* its place in the order of running */
    uint64_t since;                /* number of the first plan that does not list it */
    bool is_last;                  /* async: its last token is in flight, it gets no more */
    struct pkv_request *prev, *next;   /* neighbours in the bucket, by admission */
};

/* Its place among the samples of what was asked. With fork on, those still live are a gang: they hang
 * together in a ring, and stand side by side in the queue or in running. Until their prompt is
 * computed they wait for the fork: the first of them computes it, the others hold no block. */
struct pkv_sample {
    uint32_t index, num;           /* of num; num 1 = its own only */
    bool is_beam;
    bool waits_for_fork;
    uint32_t num_drawn;            /* generated tokens when its beams were drawn last */
    struct pkv_request *next, *prev;   /* in the ring, by index; itself when alone */
};

struct pkv_request {
    struct pkv_seq seq;
    uint32_t num_emitted;          /* generated tokens */
    uint32_t num_drafts;           /* proposed for its next step; the scheduler's, as the next one */
    uint32_t num_in_flight;        /* tokens that plans which are out will bring, async only */
    uint32_t num_output_tokens;    /* the truth; at least 1 even for one that emits none */
    uint32_t num_highest_tokens;   /* most positions ever computed, those of a hit included */
    uint32_t generation;           /* odd while live; raised at begin and end of a use */
    enum pkv_request_status status;
    bool emits_nothing;            /* asked for 0 tokens */
    uint32_t max_tokens;
    uint32_t num_hit_tokens;       /* at first admission */
    uint32_t num_preemptions;
    uint32_t peak_blocks;          /* longest tables, shared blocks included */
    uint64_t num_recomputed_tokens;
    uint64_t row;
    int64_t priority;
    int64_t arrival_order;         /* its place among all that came; written by the queue */
    /* Times belong to the engine; PKV_NO_TIME = has not happened. */
    int64_t arrival_ns, abort_ns, deadline_ns;
    int64_t admitted_ns, first_token_ns, last_token_ns, max_gap_ns;
    struct pkv_heap_node waiting_node, abort_node;
    uint64_t sched_mark;           /* number of the last plan it is in; the scheduler's */
    uint32_t sched_entry;          /* its place in that plan */
    uint32_t timed_tokens;         /* tokens whose times the engine has written */
    int64_t timed_step;            /* the step of the last of them */
    struct pkv_steady steady;      /* the scheduler's */
    struct pkv_sample sample;      /* the scheduler's */
    uint32_t num_overtakes;        /* later ones admitted while it was refused */
    /* While it waits; the scheduler's. */
    uint64_t waits_since_pass;     /* admission passes there had been when it came into the queue */
    uint64_t looked_up_at;         /* the cache's version of the look-up below; UINT64_MAX = none */
    uint32_t num_waiting_hit;      /* cached tokens of it, for orders that ask */
    uint32_t tenant_number;        /* see pkv_request_number_tenant() */
    struct pkv_session *session;   /* while another may follow it; the engine's */
    uint32_t told_limits;          /* bits of the causes of its present wait already told; engine's */
    const char *id, *tenant;       /* in the buffers below; NULL = none */
    char *id_buffer, *tenant_buffer;   /* owned, kept when the record is reused */
    size_t id_capacity, tenant_capacity;
    struct pkv_request *next_unused;
};

/* A request held across calls: valid while the generation is the record's. */
struct pkv_request_ref {
    struct pkv_request *request;
    uint32_t generation;
};
struct pkv_request_ref pkv_request_ref(struct pkv_request *request);
struct pkv_request *pkv_request_get(struct pkv_request_ref ref);   /* NULL = gone */

/* Write the id, or the row number where there is none. returns the length, as snprintf does. */
size_t pkv_request_id(const struct pkv_request *request, char *out, size_t size);

void pkv_request_set_status(struct pkv_request *request, enum pkv_request_status status);

/* The ring of a gang: in at its end, out of it, its first, how many are in it. */
void pkv_sample_join(struct pkv_request *first, struct pkv_request *newcomer);
void pkv_sample_leave(struct pkv_request *request);
struct pkv_request *pkv_sample_first(const struct pkv_request *request);
uint32_t pkv_sample_count(const struct pkv_request *request);
/* Does another one compute its prompt? */
bool pkv_sample_follows(const struct pkv_request *request);

/* Records are reused, so memory follows the number of live requests. */
struct pkv_request_store;
struct pkv_request_store *pkv_request_store_create(struct pkv_err *err);
void pkv_request_store_destroy(struct pkv_request_store *store, struct pkv_cache *cache);
struct pkv_request *pkv_request_open(struct pkv_request_store *store, struct pkv_cache *cache,
                                     const struct pkv_request_spec *spec, struct pkv_err *err);
void pkv_request_close(struct pkv_request_store *store, struct pkv_cache *cache,
                       struct pkv_request *request);
size_t pkv_request_store_num_live(const struct pkv_request_store *store);

/* Write the number of its tenant: 0 without one, else from 1 in the order in which the names first
 * appear here. Names are kept, so it is called only where somebody asks for tenants.
 *   returns  0, or -1 with PKV_ERR_MEMORY */
int pkv_request_number_tenant(struct pkv_request_store *store, struct pkv_request *request,
                              struct pkv_err *err);

/* The waiting queue: ordered by a number the order policy gives (smaller first), then by arrival.
 * A front and a tail lie before and behind. Room for every live request is reserved when it
 * arrives, so that putting one back never allocates. */
struct pkv_waiting;

struct pkv_waiting *pkv_waiting_create(struct pkv_err *err);
void pkv_waiting_destroy(struct pkv_waiting *queue);
int pkv_waiting_reserve(struct pkv_waiting *queue, size_t num, struct pkv_err *err);
void pkv_waiting_put_new(struct pkv_waiting *queue, struct pkv_request *r, int64_t key);
void pkv_waiting_put_again(struct pkv_waiting *queue, struct pkv_request *r, int64_t key);
void pkv_waiting_put_front(struct pkv_waiting *queue, struct pkv_request *r);
void pkv_waiting_put_tail(struct pkv_waiting *queue, struct pkv_request *r, int64_t key);
void pkv_waiting_put_back(struct pkv_waiting *queue, struct pkv_request *r); /* where it was */
/* Was it last put to the front, or to a tail behind all keys? */
bool pkv_waiting_has_place(const struct pkv_request *r);
struct pkv_request *pkv_waiting_head(const struct pkv_waiting *queue);   /* NULL = empty */
void pkv_waiting_remove(struct pkv_waiting *queue, struct pkv_request *r);
size_t pkv_waiting_num(const struct pkv_waiting *queue);
struct pkv_request *pkv_waiting_any(const struct pkv_waiting *queue, size_t i);  /* no order */
/* New keys for all of them, numbered as pkv_waiting_any() gives them; those put to the front or behind all
 * keys stay there. O(num). */
void pkv_waiting_set_keys(struct pkv_waiting *queue, const int64_t *keys);
/* Who would be the head with those keys. O(num). */
struct pkv_request *pkv_waiting_head_by(const struct pkv_waiting *queue, const int64_t *keys);
/* All in the order in which they would be popped; out has room for num. O(n log n). */
void pkv_waiting_list(const struct pkv_waiting *queue, struct pkv_request **out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
