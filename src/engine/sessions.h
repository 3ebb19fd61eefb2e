/*
 * sessions.h - rows that come after others: who waits for whose end, and with what text before it.
 *
 * A session is known while one of its rows is live or may still be followed. A row that follows takes
 * the end of a row of its session, the earliest that no other row has taken; in a session whose rows
 * all follow one another that is the end of the former row. A session that several rows begin is a
 * closed loop of as many: whoever ends is followed by the next row. In a loop of sessions the same holds
 * for whole sessions: when one is over, after the row marked as its last, the next one begins.
 *
 * Memory follows the live sessions: of each at most PKV_MOST_ROWS_AHEAD rows are read ahead, and it
 * is forgotten after its last row, where that is marked.
 */
#ifndef PKV_ENGINE_SESSIONS_H
#define PKV_ENGINE_SESSIONS_H

#include "base/heap.h"
#include "pagedkv/engine.h"

#define PKV_MOST_ROWS_AHEAD 4096u

/* A row that was read before its time. Its texts and spans stand behind it in one piece. */
struct held_row {
    struct pkv_heap_node node;           /* among those whose time is known */
    struct held_row *next;               /* among those who wait for an end */
    struct pkv_session *session;
    struct pkv_session *loop;            /* of a session's first row: it waits for an end in it */
    struct pkv_request_spec spec;        /* abort_ns and deadline_ns count from the arrival */
    uint32_t former_tokens;              /* of its prompt, up to the end of what the former row said */
};

struct sessions {
    struct pkv_session **slots;          /* [num_slots] owned, each owned; open table by hash of the name */
    size_t num, num_slots;               /* num_slots: a power of two, at least twice num */
    struct pkv_heap coming;              /* held rows whose time is known, by (time, row) */
    struct pkv_span *text;               /* owned scratch: what the row that ended said */
    size_t text_capacity;
};

void sessions_finish(struct sessions *sessions);

/* Are so many rows of its session read ahead that this one has to stay where it is? */
bool sessions_is_full(const struct sessions *sessions, const struct pkv_request_spec *spec);
/* A row that follows another was read: it waits for an end (PKV_NO_TIME), or its time is known. */
int sessions_take(struct sessions *sessions, const struct pkv_request_spec *spec,
                  int64_t *out_arrival_ns, struct pkv_err *err);
/* The first of those whose time is known; NULL = none. */
struct held_row *sessions_first(const struct sessions *sessions);
/* It is about to come: the caller frees it with sessions_drop(). */
void sessions_remove_first(struct sessions *sessions);
void sessions_drop(struct held_row *held);
/* The row has become a request. held NULL = it came at a time of its own. */
int sessions_arrived(struct sessions *sessions, const struct pkv_request_spec *spec,
                     const struct held_row *held, struct pkv_request *r, struct pkv_err *err);
/* The request has ended, whatever way: whoever follows it now knows its time. Before it is forgotten. */
int sessions_over(struct sessions *sessions, struct pkv_request *r, int64_t time_ns,
                  struct pkv_err *err);
/* Nobody is live or coming and the source has no more: an error names who still waits, and for whom. */
int sessions_check_left(const struct sessions *sessions, struct pkv_err *err);

#endif
