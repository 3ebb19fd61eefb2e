/*
 * explain_private.h - the directory of a former run, read from front to back, and the lives of a few
 * of its requests.
 *
 * Nothing is kept of a file but what the asked requests need: a run of any length is explained in
 * memory that does not grow with it, but for 8 bytes a request under --worst (for the median).
 */
#ifndef PKV_REPORT_EXPLAIN_PRIVATE_H
#define PKV_REPORT_EXPLAIN_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/diff_private.h"
#include "report/report_private.h"

/* ---- run_dir.c: what the run was ---- */

struct run_counts {
    uint64_t arrived, completed, rejected, aborted, unfinished, preemptions, makespan_ns;
};
struct run_dir {
    char *requests, *events, *steps, *summary, *scenario_file;    /* owned; paths */
    struct pkv_scenario *scenario;    /* owned */
    struct run_counts counts;         /* of summary.json */
    int64_t step_ns;                  /* > 0: every step takes so long, times are told in steps */
};
/* What the asker reads: the files without which it cannot tell anything, and who it is. */
struct run_dir_needs {
    const char *asker;
    bool events;                      /* events.jsonl; requests, summary and scenario always */
};
/* PKV_ERR_INPUT with the place: no such file, a damaged one, a scenario of another run. */
int run_dir_open(struct run_dir *run, const char *dir, const struct run_dir_needs *needs,
                 struct pkv_err *err);
/* The whole of a small file, behind what is in `out`. */
int run_dir_read(const char *path, struct pkv_text *out, struct pkv_err *err);
void run_dir_close(struct run_dir *run);
/* A file does not fit to the others. */
int run_dir_mixed(const char *path, const char *what, uint64_t here, uint64_t in_summary,
                  struct pkv_err *err);

/* ---- run_rows.c: requests.csv ---- */

struct run_row {
    struct pkv_text id, reason, tenant;                      /* owned, used again */
    int64_t arrival_ns, admitted_ns, first_token_ns, finish_ns, max_gap_ns, queue_ns;
    uint64_t prompt_tokens, output_tokens, hit_tokens, recomputed_tokens, preemptions, peak_blocks;
    int64_t priority;
    enum pkv_request_status status;
};
void run_row_free(struct run_row *row);
int run_row_copy(struct run_row *to, const struct run_row *from, struct pkv_err *err);

struct run_rows {
    const struct run_dir *run;    /* borrowed */
    struct side side;
    struct row fields;
    struct run_row row;           /* the current one */
    uint64_t num;                 /* so far */
};
int run_rows_open(struct run_rows *rows, const struct run_dir *run, struct pkv_err *err);
/* 1 = the next is in rows->row; 0 = the end, with as many rows as the summary says; -1 */
int run_rows_next(struct run_rows *rows, struct pkv_err *err);
void run_rows_close(struct run_rows *rows);

/* ---- run_events.c: events.jsonl ---- */

#define EVENT_NUMBERS(X)                                                                    \
    X(step) X(limit) X(need_blocks) X(free_blocks) X(hit_tokens) X(sched_tokens)            \
    X(prompt_tokens) X(output_tokens) X(freed_blocks) X(lost_tokens) X(refused_step)        \
    X(blocks) X(bytes) X(done_ns) X(shared_blocks) X(shared_tokens)

struct held { size_t name; uint64_t num_blocks; };    /* name: where it begins in the names */

struct run_event {
    enum pkv_event_kind kind;
    int64_t time_ns;
#define PKV_FIELD(name) uint64_t name;
    EVENT_NUMBERS(PKV_FIELD)
#undef PKV_FIELD
    struct pkv_text id, who, names;      /* owned; who: of "for", "reason", "was", "refused", "from" */
    bool is_latched;                                  /* it has a refused_step */
    struct held holders[PKV_MAX_HOLDERS];             /* of blocked, the most first */
    size_t num_holders;
};
struct run_events {
    const struct run_dir *run;    /* borrowed */
    struct side side;
    struct run_event event;       /* the current one */
    struct pkv_text scratch;
    bool started;                 /* the first line has been given out */
    uint64_t num[PKV_EVENT_KIND_COUNT];
    int64_t first_arrival_ns;
};
int run_events_open(struct run_events *events, const struct run_dir *run, struct pkv_err *err);
/* 1, 0 at the end, when the events of each kind are as many as the summary says; -1 */
int run_events_next(struct run_events *events, struct pkv_err *err);
void run_events_close(struct run_events *events);

/* ---- causes.c: who is first in line and why it is not let in; who left last ---- */

struct cause {
    int64_t time_ns;
    uint64_t step, need_blocks, free_blocks;
    enum pkv_limit limit;
    struct pkv_text names;        /* owned; begins with who it is that waits */
    struct held holders[PKV_MAX_HOLDERS];
    size_t num_holders;
    /* Behind a queue that was shut: by whose refusal, and for how many steps from the one after it until
     * it was opened for the first time. It may have been shut again. */
    bool is_latched;
    uint64_t refused_step, num_latched_steps;    /* 0 = it was not opened so far */
    size_t refused;               /* where it begins in the names; an empty one = it had left */
};
/* Somebody leaves running: what was shut is opened. */
void cause_opened(struct cause *c, const struct run_event *leaves);
void cause_free(struct cause *c);
int cause_copy(struct cause *to, const struct cause *from, struct pkv_err *err);

/* Refused heads that still wait, the latest last. When more than fit wait, the oldest are dropped:
 * they are far behind. */
#define MAX_HEADS 64u
struct heads {
    struct cause items[MAX_HEADS];
    size_t num;
};
int heads_note(struct heads *h, const struct run_event *blocked, struct pkv_err *err);
void heads_opened(struct heads *h, const struct run_event *leaves);
void heads_leave(struct heads *h, const char *id);
const struct cause *heads_first(const struct heads *h);    /* NULL = none is known */
void heads_free(struct heads *h);

/* Who gave blocks back at the latest time that somebody did. */
#define MAX_LEAVERS 3u
struct leavers {
    int64_t time_ns;              /* PKV_NO_TIME = none so far */
    uint64_t step, num;           /* num: of all; the first MAX_LEAVERS are named */
    enum pkv_event_kind kinds[MAX_LEAVERS];
    struct pkv_text names[MAX_LEAVERS];    /* owned */
};
int leavers_note(struct leavers *l, const struct run_event *e, struct pkv_err *err);
/* All but the one of that id. */
int leavers_copy(struct leavers *to, const struct leavers *from, const char *except,
                 struct pkv_err *err);
void leavers_free(struct leavers *l);

/* ---- life.c: what happened to one request ---- */

/* One wait, from an arrival or a preemption to an admission or the end. */
struct wait {
    int64_t begin_ns, end_ns;
    uint64_t begin_step, end_step;
    bool after_preemption;
    struct cause *own;            /* [num_own] owned; while it was first in line itself */
    size_t num_own, capacity;
    /* While others were first in line: how many in turn, how long, and the longest of them. */
    uint64_t num_ahead;
    int64_t ahead_ns, longest_ns;
    struct cause longest;
    struct cause now;             /* the one at the moment */
    bool has_looked, is_behind;
    bool has_ended;               /* by an admission; else the request or the run ended */
    int64_t behind_since_ns;
    struct leavers leavers;       /* what ended it; none when its time is PKV_NO_TIME */
    struct pkv_text let_in;       /* the one ahead that was admitted in the same step, "" = none */
};

/* "wait" has the wait; "admit", "resume": numbers of the event; "preempt": who = for whom. */
struct life_entry {
    int64_t time_ns;
    uint64_t step;
    enum pkv_event_kind kind;     /* blocked = a wait */
    uint64_t need_blocks, free_blocks, hit_tokens, sched_tokens, freed_blocks, lost_tokens;
    uint64_t shared_blocks, shared_tokens;   /* fork; who = from whom */
    uint64_t again_tokens;        /* resume: scheduled positions that had been computed before */
    uint64_t known_tokens;        /* admit, resume: prompt and what was emitted */
    int64_t back_ns;              /* preempt: when it was resumed; PKV_NO_TIME = never */
    /* preempt, resume: what went to the host or came back; 0 = nothing. Until when it was under way. */
    uint64_t swapped_blocks, swapped_bytes;
    int64_t swap_done_ns;
    struct pkv_text who;          /* owned */
    struct wait *wait;            /* owned */
};

struct life {
    struct run_row row;           /* its row of requests.csv */
    struct life_entry *entries;   /* [num] owned */
    size_t num, capacity;
    struct wait *waiting;         /* of the last entry, while it lasts */
    uint64_t known_tokens, lost_most;
    bool has_first_token, has_ended;
    int64_t end_ns;               /* of what is told: its end, or the run's */
    /* Where the time went. */
    int64_t waiting_ns, prefill_ns, decoding_ns, preempted_ns;
};
void life_free(struct life *life);
/* A wait that took no time and had no cause. */
bool life_is_no_wait(const struct life_entry *entry);

struct watch {
    struct heads heads;
    struct leavers leavers;
    struct life *lives;           /* [num] borrowed */
    size_t num;
};
/* Read all events and write the lives, whose rows stand. */
int watch_run(struct watch *w, const struct run_dir *run, struct pkv_err *err);
void watch_free(struct watch *w);    /* not the lives */

/* ---- gap.c: what the largest gap between two tokens was ---- */

#define GAP_CAUSES(X)                                                                         \
    X(GAP_NONE, "none")              /* fewer than two tokens */                                  \
    X(GAP_PREEMPTION, "preemption") X(GAP_STEP, "step")                                       \
    X(GAP_UNKNOWN, "unknown")        /* left out of steps, or steps.csv is not there whole */
enum gap_cause {
#define PKV_ENUM(sym, word) sym,
    GAP_CAUSES(PKV_ENUM)
#undef PKV_ENUM
    GAP_CAUSE_COUNT
};
const char *gap_cause_name(enum gap_cause cause);
struct gap {
    enum gap_cause cause;
    int64_t ns;
    const struct life_entry *preemption;    /* borrowed */
    uint64_t step, prefill_tokens, decode_tokens;
    int64_t time_ns;
};
int gap_find(const struct run_dir *run, const struct life *life, struct gap *out,
             struct pkv_err *err);

/* ---- tell.c, tell_life.c, life_json.c, worst.c ---- */

/* "5 steps" or "12.3 ms". */
void tell_span(struct pkv_text *t, const struct run_dir *run, int64_t ns);
/* "step 5" or "1.234 s". */
void tell_moment(struct pkv_text *t, const struct run_dir *run, int64_t time_ns, uint64_t step);
void tell_name(struct pkv_text *t, const char *id);
/* "blocks: its next chunk did not fit (8 blocks needed, 5 free; A held 5)". */
void tell_cause(struct pkv_text *t, const struct run_dir *run, const struct cause *c);
const char *tell_name_of(const struct cause *c, size_t name);

void tell_life(struct page *p, const struct run_dir *run, const struct life *life,
               const struct gap *gap);
void life_json(struct pkv_text *t, const struct life *life, const struct gap *gap);

/* The requests most worth asking about, at most num of each kind. */
int worst_find(struct page *p, const struct run_dir *run, uint64_t num, bool json,
               struct pkv_err *err);

#endif
