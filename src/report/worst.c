/*
 * worst.c - the requests of a run most worth asking about: late ones, often preempted ones, and those
 * that never got to their end; each with where its time went and why.
 *
 * Late is measured against the run itself: the median over completed requests of the time from
 * arrival to the end, per output token, times the request's own tokens. Ties stand in the order of
 * requests.csv.
 */
#include "report/explain_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define LATE_TITLE                                                                            \
    "Late: time from arrival to end, waiting included, divided by the output tokens and "     \
    "held against the run's median of that, "
#define WHYS(X)                                                                               \
    X(WHY_LATE, "late", LATE_TITLE)                                                           \
    X(WHY_PREEMPTED, "preempted", "Most preempted")                                           \
    X(WHY_UNFINISHED, "unfinished", "Not finished")                                           \
    X(WHY_REJECTED, "rejected", "Rejected")
enum why {
#define PKV_ENUM(sym, name, title) sym,
    WHYS(PKV_ENUM)
#undef PKV_ENUM
    WHY_COUNT
};
static const struct { const char *name, *title; } whys[] = {
#define ROW(sym, name, title) [sym] = {name, title},
    WHYS(ROW)
#undef ROW
};

struct pick {
    struct run_row row;
    int64_t rank;              /* larger is worse */
};
struct picks {
    struct pick *items;        /* [room] owned; the worst first */
    size_t num, room;
    uint64_t num_all;          /* that might have been picked */
};
struct worst {
    const struct run_dir *run;
    struct picks picks[WHY_COUNT];
    int64_t *per_token;        /* [num_ended] owned */
    size_t num_ended, capacity;
    int64_t median_ns;
    struct life *lives;        /* [num_lives] owned */
    size_t num_lives;
    size_t first[WHY_COUNT + 1];    /* where the lives of each begin */
    int64_t *ranks;            /* [num_lives] owned */
};

/* ---- choosing ---- */

static bool is_measured(const struct run_row *row)
{
    return row->status == PKV_REQUEST_COMPLETED && row->output_tokens > 0;
}

static int note_per_token(struct worst *w, const struct run_row *row, struct pkv_err *err)
{
    if (!is_measured(row))
        return 0;
    if (pkv_grow(&w->per_token, &w->capacity, w->num_ended + 1, sizeof *w->per_token, err) < 0)
        return -1;
    w->per_token[w->num_ended++] =
        (row->finish_ns - row->arrival_ns) / (int64_t)row->output_tokens;
    return 0;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Nearest rank, as everywhere: of an even number the lower of the two in the middle. */
static void find_median(struct worst *w)
{
    if (w->num_ended == 0)
        return;
    qsort(w->per_token, w->num_ended, sizeof *w->per_token, compare);
    w->median_ns = w->per_token[(w->num_ended - 1) / 2];
}

/* Insert into its place; the last one falls out when there is no room. */
static int pick(struct picks *p, const struct run_row *row, int64_t rank, struct pkv_err *err)
{
    size_t at = p->num;
    p->num_all++;
    while (at > 0 && p->items[at - 1].rank < rank)
        at--;
    if (at == p->room)
        return 0;
    if (p->num < p->room)
        p->num++;
    struct pick last = p->items[p->num - 1];
    memmove(&p->items[at + 1], &p->items[at], (p->num - 1 - at) * sizeof *p->items);
    p->items[at] = last;
    p->items[at].rank = rank;
    return run_row_copy(&p->items[at].row, row, err);
}

static int pick_row(struct worst *w, const struct run_row *row, struct pkv_err *err)
{
    if (row->preemptions > 0 && row->status != PKV_REQUEST_UNFINISHED &&
        pick(&w->picks[WHY_PREEMPTED], row, (int64_t)row->preemptions, err) < 0)
        return -1;
    if (row->status == PKV_REQUEST_UNFINISHED)
        return pick(&w->picks[WHY_UNFINISHED], row, -row->arrival_ns, err);
    if (row->status == PKV_REQUEST_REJECTED)
        return pick(&w->picks[WHY_REJECTED], row, (int64_t)row->prompt_tokens, err);
    if (!is_measured(row))
        return 0;
    __int128 usual = (__int128)w->median_ns * (int64_t)row->output_tokens;
    __int128 late = row->finish_ns - row->arrival_ns - usual;
    return late > 0 ? pick(&w->picks[WHY_LATE], row, (int64_t)late, err) : 0;
}

static int each_row(struct worst *w, int (*take)(struct worst *, const struct run_row *,
                                                 struct pkv_err *), struct pkv_err *err)
{
    struct run_rows rows;
    int more = run_rows_open(&rows, w->run, err);
    while (more == 0 && (more = run_rows_next(&rows, err)) > 0)
        more = take(w, &rows.row, err);
    run_rows_close(&rows);
    return more;
}

/* ---- their lives ---- */

static bool has_life(const struct worst *w, const char *id)
{
    for (size_t i = 0; i < w->num_lives; i++)
        if (strcmp(w->lives[i].row.id.text, id) == 0)
            return true;
    return false;
}

/* One of each request, under the first of its reasons. */
static int begin_lives(struct worst *w, struct pkv_err *err)
{
    size_t num = 0;
    for (int why = 0; why < WHY_COUNT; why++)
        num += w->picks[why].num;
    w->lives = pkv_alloc(num, sizeof *w->lives, err);
    w->ranks = w->lives ? pkv_alloc(num, sizeof *w->ranks, err) : NULL;
    if (!w->ranks)
        return -1;
    for (int why = 0; why < WHY_COUNT; why++) {
        const struct picks *p = &w->picks[why];
        w->first[why] = w->num_lives;
        for (size_t i = 0; i < p->num; i++) {
            if (has_life(w, p->items[i].row.id.text))
                continue;
            w->ranks[w->num_lives] = p->items[i].rank;
            if (run_row_copy(&w->lives[w->num_lives++].row, &p->items[i].row, err) < 0)
                return -1;
        }
    }
    w->first[WHY_COUNT] = w->num_lives;
    return 0;
}

/* ---- telling ---- */

static const struct wait *longest_wait(const struct life *life, bool after_preemption)
{
    const struct wait *longest = NULL;
    for (size_t i = 0; i < life->num; i++) {
        const struct wait *w = life->entries[i].wait;
        if (w && w->after_preemption == after_preemption &&
            (!longest || w->end_ns - w->begin_ns > longest->end_ns - longest->begin_ns))
            longest = w;
    }
    return longest;
}

/* What a wait was for: of the one ahead for most of it, or its own. */
static const struct cause *main_cause(const struct wait *w, bool *out_is_ahead)
{
    *out_is_ahead = w->num_ahead > 0 &&
                    (w->num_own == 0 || 2 * w->longest_ns >= w->end_ns - w->begin_ns);
    if (*out_is_ahead)
        return &w->longest;
    return w->num_own > 0 ? &w->own[w->num_own - 1] : NULL;
}

static void tell_wait_cause(struct pkv_text *t, const struct run_dir *run, const struct wait *w)
{
    bool is_ahead = false;
    const struct cause *c = w ? main_cause(w, &is_ahead) : NULL;
    if (!c)
        return;
    if (is_ahead) {
        pkv_text_add(t, ", ");
        tell_span(t, run, w->longest_ns);
        pkv_text_add(t, " of it behind ");
        tell_name(t, c->names.text);
    }
    pkv_text_fmt(t, " (%s: ", pkv_limit_name(c->limit));
    add_counted(t, c->need_blocks, "block");
    pkv_text_add(t, " needed, ");
    add_grouped(t, c->free_blocks);
    pkv_text_add(t, " free)");
}

/* For whom it lost its blocks at last: for another one, or as the one to give up when it was itself short
 * of a block. */
static void tell_last_grower(struct pkv_text *t, const struct life *life)
{
    const char *id = "";
    for (size_t i = 0; i < life->num; i++)
        if (life->entries[i].kind == PKV_EVENT_PREEMPT)
            id = life->entries[i].who.text;
    if (strcmp(id, life->row.id.text) == 0) {
        pkv_text_add(t, ", last when short of a block itself");
        return;
    }
    pkv_text_add(t, ", last for ");
    tell_name(t, id);
}

static void tell_preempted(struct pkv_text *t, const struct run_dir *run, const struct life *life)
{
    pkv_text_add(t, "preempted ");
    add_counted(t, life->row.preemptions, "time");
    tell_last_grower(t, life);
    pkv_text_add(t, ", away for ");
    tell_span(t, run, life->preempted_ns);
    tell_wait_cause(t, run, longest_wait(life, true));
    pkv_text_add(t, "; ");
    add_counted(t, life->row.recomputed_tokens, "token");
    pkv_text_add(t, " computed again");
}

/* Where most of its time went. */
static void tell_short(struct pkv_text *t, const struct run_dir *run, enum why why,
                       const struct life *life)
{
    int64_t computing = life->prefill_ns + life->decoding_ns;
    bool waits = life->waiting_ns >= life->preempted_ns && life->waiting_ns >= computing;
    if (why == WHY_REJECTED) {
        tell_name(t, life->row.reason.text);
    } else if (why == WHY_PREEMPTED || (life->row.preemptions > 0 && !waits &&
                                        2 * life->preempted_ns >= computing)) {
        tell_preempted(t, run, life);
    } else if (waits) {
        pkv_text_add(t, "waited ");
        tell_span(t, run, life->waiting_ns);
        tell_wait_cause(t, run, longest_wait(life, false));
    } else {
        pkv_text_add(t, "its steps took long: prefill ");
        tell_span(t, run, life->prefill_ns);
        pkv_text_add(t, ", decoding ");
        tell_span(t, run, life->decoding_ns);
    }
}

static void tell_line(struct pkv_text *t, const struct worst *w, enum why why, size_t i)
{
    const struct life *life = &w->lives[i];
    size_t before = t->length;
    pkv_text_add(t, "  ");
    tell_name(t, life->row.id.text);
    size_t used = t->length - before;
    pkv_text_fmt(t, "%*s", used < NAME_WIDTH ? (int)(NAME_WIDTH - used) : 2, "");
    if (why == WHY_LATE) {
        pkv_text_add(t, "late by ");
        tell_span(t, w->run, w->ranks[i]);
        pkv_text_add(t, ": ");
    }
    tell_short(t, w->run, why, life);
    pkv_text_add(t, "\n");
}

static void tell_title(struct page *p, const struct worst *w, enum why why)
{
    struct pkv_text title = {0};
    pkv_text_add(&title, whys[why].title);
    if (why == WHY_LATE)
        tell_span(&title, w->run, w->median_ns);
    pkv_text_add(&title, " (");
    add_counted(&title, w->picks[why].num_all, "request");
    pkv_text_add(&title, ")");
    if (p->text.length > 0)
        pkv_text_add(&p->text, "\n");
    page_ink(p, INK_HEAD);
    page_wrap(p, 0, title.text ? title.text : "");
    page_ink(p, INK_PLAIN);
    p->text.failed |= title.failed;
    pkv_text_free(&title);
}

static void tell_all(struct page *p, const struct worst *w)
{
    for (int why = 0; why < WHY_COUNT; why++) {
        if (w->first[why] == w->first[why + 1])
            continue;
        tell_title(p, w, (enum why)why);
        for (size_t i = w->first[why]; i < w->first[why + 1]; i++)
            tell_line(&p->text, w, (enum why)why, i);
    }
    if (w->num_lives == 0)
        page_wrap(p, 0, "nothing to ask about: no request was late against the median of all, "
                        "preempted, rejected or unfinished");
}

static void json_line(struct pkv_text *t, const struct worst *w, enum why why, size_t i)
{
    const struct life *life = &w->lives[i];
    struct pkv_text cause = {0};
    tell_short(&cause, w->run, why, life);
    pkv_text_add(t, "{\"id\": ");
    pkv_text_json(t, life->row.id.text);
    pkv_text_fmt(t, ", \"why\": \"%s\", \"late_ns\": ", whys[why].name);
    if (why == WHY_LATE)
        pkv_text_i64(t, w->ranks[i]);
    else
        pkv_text_add(t, "null");
    pkv_text_fmt(t, ", \"preemptions\": %" PRIu64 ", \"time_ns\": {\"waiting\": %" PRId64
                 ", \"prefill\": %" PRId64 ", \"decoding\": %" PRId64 ", \"preempted\": %" PRId64
                 "}, \"cause\": ", life->row.preemptions, life->waiting_ns, life->prefill_ns,
                 life->decoding_ns, life->preempted_ns);
    pkv_text_json(t, cause.text ? cause.text : "");
    pkv_text_add(t, "}");
    t->failed |= cause.failed;
    pkv_text_free(&cause);
}

static void json_all(struct pkv_text *t, const struct worst *w)
{
    pkv_text_fmt(t, "{\"median_ns_per_token\": %" PRId64 ",\n  \"requests\": [", w->median_ns);
    for (int why = 0; why < WHY_COUNT; why++)
        for (size_t i = w->first[why]; i < w->first[why + 1]; i++) {
            pkv_text_add(t, i > 0 ? ",\n    " : "\n    ");
            json_line(t, w, (enum why)why, i);
        }
    pkv_text_add(t, "\n  ]}\n");
}

/* ---- all of it ---- */

static int make_room(struct worst *w, uint64_t num, struct pkv_err *err)
{
    for (int why = 0; why < WHY_COUNT; why++) {
        w->picks[why].room = (size_t)num;
        w->picks[why].items = pkv_alloc((size_t)num, sizeof *w->picks[why].items, err);
        if (!w->picks[why].items)
            return -1;
    }
    return 0;
}

static void worst_free(struct worst *w)
{
    for (int why = 0; why < WHY_COUNT; why++) {
        for (size_t i = 0; i < w->picks[why].num; i++)
            run_row_free(&w->picks[why].items[i].row);
        pkv_free(w->picks[why].items);
    }
    for (size_t i = 0; i < w->num_lives; i++)
        life_free(&w->lives[i]);
    pkv_free(w->lives);
    pkv_free(w->ranks);
    pkv_free(w->per_token);
}

int worst_find(struct page *p, const struct run_dir *run, uint64_t num, bool json,
               struct pkv_err *err)
{
    struct worst w = {.run = run};
    struct watch watch = {0};
    int status = -1;
    if (make_room(&w, num, err) == 0 && each_row(&w, note_per_token, err) == 0) {
        find_median(&w);
        if (each_row(&w, pick_row, err) == 0 && begin_lives(&w, err) == 0) {
            watch.lives = w.lives;
            watch.num = w.num_lives;
            status = watch_run(&watch, run, err);
        }
    }
    if (status == 0 && json)
        json_all(&p->text, &w);
    else if (status == 0)
        tell_all(p, &w);
    watch_free(&watch);
    worst_free(&w);
    return status;
}
