/*
 * phases.h - what each request is in the middle of, from its arrival to its end.
 *
 * Fed with the calls of an engine's sink, it tells a listener when a request comes, what it goes over
 * to, and when it ends. Its phases follow one another without a gap:
 *
 *   waiting     from its arrival to its first admission: queue_ns of requests.csv
 *   prefill     admitted, and no token has come out yet
 *   decode      from its first token on
 *   preempted   it lost its blocks, and waits again
 *   swapped     the same, with copies of its blocks on the host
 *   swap in     admitted again, while its blocks are copied back: until the first step that begins when
 *               that is done
 *   recompute   admitted again, until all that had been computed is so again, or a token comes out
 *
 * One that had all it lost in cached blocks goes on without recompute. A sample that waits for another
 * one to compute their prompt is in the same phase as that one. One that is rejected comes and ends in
 * no time and has no phase.
 *
 * Only live requests are held: memory follows the most there are at once.
 */
#ifndef PKV_REPORT_PHASES_H
#define PKV_REPORT_PHASES_H

#include <stddef.h>
#include <stdint.h>

#include "pagedkv/engine.h"

#define PHASES(X)                                                              \
    X(PHASE_WAITING, "waiting") X(PHASE_PREFILL, "prefill")                    \
    X(PHASE_DECODE, "decode") X(PHASE_PREEMPTED, "preempted")                  \
    X(PHASE_RECOMPUTE, "recompute") X(PHASE_SWAPPED, "swapped")                \
    X(PHASE_SWAP_IN, "swap in")

enum phase {
#define PKV_ENUM(sym, word) sym,
    PHASES(PKV_ENUM)
#undef PKV_ENUM
    PHASE_COUNT
};
const char *phase_name(enum phase phase);

/* A call that returns -1 ends the run. slot: a number below the most requests live at once, its own
 * while it lives. Times of one request never fall. */
struct phases_listener {
    int (*came)(void *ctx, size_t slot, const struct pkv_request *r, struct pkv_err *err);
    /* cause: the event that brought it; NULL = the end of a step did. */
    int (*entered)(void *ctx, size_t slot, const struct pkv_request *r, enum phase phase, int64_t time_ns,
                   const struct pkv_event *cause, struct pkv_err *err);
    /* time_ns: its end; of an unfinished one that of the run, of a rejected one its arrival. */
    int (*ended)(void *ctx, size_t slot, const struct pkv_request_row *row, int64_t time_ns,
                 struct pkv_err *err);
    void *ctx;
};

struct phases;
struct phases *phases_create(const struct phases_listener *listener, struct pkv_err *err);
void phases_destroy(struct phases *p);

/* The calls of a sink. cost: O(1); a step O(1 + those in recompute or swap in) */
int phases_event(struct phases *p, const struct pkv_event *event, struct pkv_err *err);
int phases_request(struct phases *p, const struct pkv_request_row *row, struct pkv_err *err);
int phases_step(struct phases *p, const struct pkv_step_row *row, struct pkv_err *err);

/* The slot of a live request. */
size_t phases_slot(struct phases *p, const struct pkv_request *r);

#endif
