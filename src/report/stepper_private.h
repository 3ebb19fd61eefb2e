/*
 * stepper_private.h - one step kept as a plain value, so that it can be shown again and again, about
 * all requests or about one.
 *
 * Ids and sentences stand in one text, each ended by NUL, and are named by their offsets. The tables
 * and counts are those right after scheduling; what is told of the step's end came later.
 */
#ifndef PKV_STEPPER_PRIVATE_H
#define PKV_STEPPER_PRIVATE_H

#include "report/report_private.h"

/* What is told in a step, in the order of a page. */
#define TOLD(X)                                                                             \
    X(TOLD_ARRIVED, "arrived") X(TOLD_REJECTED, "rejected") X(TOLD_ABORTED, "aborted")      \
    X(TOLD_PREEMPTED, "preempted") X(TOLD_ADMITTED, "admitted") X(TOLD_RESUMED, "resumed")  \
    X(TOLD_SWAPPED_OUT, "swapped out") X(TOLD_SWAPPED_IN, "swapped in")                     \
    X(TOLD_WAITS, "waits") X(TOLD_FORKED, "forked") X(TOLD_FIRST, "first token")            \
    X(TOLD_FINISHED, "finished")
enum told {
#define PKV_ENUM(sym, word) sym,
    TOLD(PKV_ENUM)
#undef PKV_ENUM
    TOLD_COUNT
};

#define NOBODY SIZE_MAX
struct told_item {
    enum told what;
    size_t text, who, other;    /* in words; other: somebody else it is about, or NOBODY */
    uint64_t row;               /* of who */
};

struct tick_table {
    size_t first;               /* in places */
    uint32_t num, num_before;   /* null ones included; before: when the step began */
};

struct tick_running {
    size_t id;                  /* in words */
    uint64_t row;
    char letter;
    uint32_t num_tokens;        /* scheduled in this step */
    uint32_t num_computed, num_known;
    uint64_t end_positions;     /* that it will have stored in the end */
    bool is_resuming;           /* its blocks are being copied in */
    struct tick_table tables[PKV_MAX_GROUPS];   /* [num_groups], one behind the other */
    uint32_t num_places;        /* of all of them */
    uint32_t num_held;          /* of these not null */
};

struct tick_waiting {
    size_t id;
    uint32_t num_tokens, num_preemptions;
    uint32_t num_copies;        /* blocks of it on the host */
    uint64_t num_blocks;        /* for all its tokens, as its admission counts; or its run */
};

struct tick {
    struct pkv_step_row row;
    struct pkv_text words;              /* owned, as all below */
    struct told_item *told;
    struct tick_running *running;       /* in the order of admission; then those resuming */
    struct tick_waiting *waiting;       /* in the order of the queue */
    pkv_block_id *places;               /* of the tables of the running, one behind the other */
    pkv_block_id *free;                 /* in the order of taking */
    pkv_block_id *evicted;
    uint32_t *ref_cnts;                 /* [num_blocks] */
    bool *cached;                       /* [num_blocks]: has an identity */
    size_t num_told, num_running, num_waiting, num_places, num_evicted;
    uint32_t num_blocks, num_free, num_groups;
    struct pkv_group_config groups[PKV_MAX_GROUPS];
    bool takes_runs;
    size_t told_capacity, running_capacity, waiting_capacity, places_capacity, free_capacity,
        evicted_capacity, ref_cnts_capacity, cached_capacity, queue_capacity;
    struct pkv_request **queue;         /* scratch */
};

/* A request keeps its letter from its first admission to its end. */
#define NUM_LETTERS 52u
#define NO_LETTER '?'          /* more of them than letters */
struct letters {
    struct { bool is_taken; uint64_t row; } owners[NUM_LETTERS];
    unsigned next;
};

/* Since the last pause. */
struct passed {
    uint64_t first_step, num_steps;
    uint64_t counts[TOLD_COUNT];
};

struct pkv_stepper {
    struct pkv_stepper_config config;
    enum pkv_pause pause;
    uint64_t pause_step, num_steps;
    bool is_blocked;               /* a head was refused in this step for a cause not told before */
    bool has_tick;                 /* the state of this step is kept */
    struct letters letters;
    struct passed passed;
    struct tick tick;
};

/* ---- stepper_tick.c ---- */

int tick_take(struct tick *tick, struct pkv_sched *sched, const struct pkv_plan *plan,
              const struct letters *letters, struct pkv_err *err);
void tick_clear(struct tick *tick);      /* nothing is told any more */
void tick_free(struct tick *tick);
size_t tick_add_id(struct tick *tick, const struct pkv_request *r);
const char *tick_word(const struct tick *tick, size_t word);

char letters_find(const struct letters *letters, uint64_t row);   /* NO_LETTER = has none */
void letters_give(struct letters *letters, const struct pkv_request *r);
void letters_take_back(struct letters *letters, uint64_t row);

/* ---- stepper_tell.c ---- */

/* The event in a sentence. */
int tell_event(struct tick *tick, const struct pkv_scenario *scenario,
               const struct pkv_event *event, struct pkv_err *err);
enum told told_of(enum pkv_event_kind kind);   /* TOLD_COUNT = nothing */
/* Why the first in line was not admitted; after tick_take(). */
int tell_head(struct tick *tick, const struct pkv_scenario *scenario, struct pkv_sched *sched,
              const struct pkv_plan *plan, struct pkv_err *err);

/* ---- stepper_map.c ---- */

struct cell {
    char letter;    /* of the holder; ANOTHER on a page about one request; CACHED, EMPTY */
    char mark;      /* ' ', SHARED, RESERVED, UNUSED */
    uint64_t holders;   /* a sum over its holders: equal where they are the same */
};
#define ANOTHER '+'
#define CACHED ':'
#define EMPTY '.'
#define LEAVING '>'         /* held by a transfer alone */
#define SHARED '*'
#define RESERVED '-'
#define UNUSED 'x'

struct step_page {
    struct page page;
    const struct tick *tick;
    const struct pkv_stepper *stepper;
    const char *only;          /* an id, or NULL */
    struct cell *cells;        /* owned, [num_blocks] */
};

bool is_shown(const struct step_page *p, size_t id);   /* all are, unless the page is about one */
void fill_cells(struct step_page *p);
void page_letter(struct step_page *p, char letter);    /* in its colour */
void page_map(struct step_page *p);
/* Blocks of a table that hold something, null ones included. */
uint32_t num_filled_blocks(const struct tick *tick, const struct tick_running *r, uint32_t group);
/* "3 null 0 1 4..9*": at most max_pieces of them, and how many blocks more. */
void add_blocks(struct pkv_text *t, const struct step_page *p, const pkv_block_id *ids, size_t num,
                size_t max_pieces);

/* ---- stepper_tables.c ---- */

void page_running(struct step_page *p);
void page_waiting(struct step_page *p);
void page_free(struct step_page *p);
void page_shared(struct step_page *p);

#endif
