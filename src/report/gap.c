/*
 * gap.c - what the largest gap between two tokens of a request was: a preemption, or a long step.
 *
 * requests.csv tells how long it was, steps.csv when steps began and ended. A token comes out at the
 * end of the step that computes the last known position; a preempted request lost its place when the
 * step of its preemption began, right behind its last token. Under async_scheduling both are one row
 * later: the token of a step comes out with the next one. Gaps of several chunks of recomputing
 * cannot be seen to their end in these files; one is named only when nothing else fits.
 */
#include "report/explain_private.h"

#include <string.h>

#include "base/units.h"

const char *gap_cause_name(enum gap_cause cause)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = { GAP_CAUSES(PKV_NAME) };
#undef PKV_NAME
    PKV_ASSERT((unsigned)cause < GAP_CAUSE_COUNT);
    return names[cause];
}

#define STEP_FIELDS(X) X(step) X(time_ns) X(dur_ns) X(prefill_tokens) X(decode_tokens)
struct step {
#define PKV_FIELD(name) int64_t name;
    STEP_FIELDS(PKV_FIELD)
#undef PKV_FIELD
};
struct columns {
#define PKV_FIELD(name) size_t name;
    STEP_FIELDS(PKV_FIELD)
#undef PKV_FIELD
};

static int find_column(const struct side *s, const struct row *header, const char *name,
                       size_t *out, struct pkv_err *err)
{
    for (*out = 0; *out < header->num; ++*out)
        if (header->lengths[*out] == strlen(name) &&
            memcmp(header->fields[*out], name, strlen(name)) == 0)
            return 0;
    return pkv_fail_at(err, s->path, 1, 0, "has no column %s", name);
}

static int find_columns(const struct side *s, struct columns *out, struct pkv_err *err)
{
    struct row header;
    if (!s->text)
        return pkv_fail_at(err, s->path, 0, 0, "is empty");
    if (side_split(s, &header, err) < 0)
        return -1;
#define FIND(name)                                                 \
    if (find_column(s, &header, #name, &out->name, err) < 0)       \
        return -1;
    STEP_FIELDS(FIND)
#undef FIND
    return 0;
}

static int take_number(const struct side *s, const struct row *row, size_t column, const char *name,
                       int64_t *out, struct pkv_err *err)
{
    const char *why;
    if (column >= row->num)
        return pkv_fail_at(err, s->path, s->lines.number, 0, "a row without %s", name);
    if (pkv_parse_i64(row->fields[column], row->lengths[column], out, &why) == 0)
        return 0;
    return pkv_fail_at(err, s->path, s->lines.number, (uint32_t)(row->fields[column] - s->text) + 1,
                       "%s '%.*s' %s", name, row->lengths[column] < 60 ? (int)row->lengths[column] : 60,
                       row->fields[column], why);
}

static int take_step(const struct side *s, const struct columns *c, struct step *out,
                     struct pkv_err *err)
{
    struct row row;
    if (side_split(s, &row, err) < 0)
        return -1;
#define TAKE(name)                                                           \
    if (take_number(s, &row, c->name, #name, &out->name, err) < 0)           \
        return -1;
    STEP_FIELDS(TAKE)
#undef TAKE
    return 0;
}

/* ---- looking for it ---- */

struct search {
    const struct life *life;
    size_t next;                         /* entry not yet passed */
    const struct life_entry *away;       /* the preemption behind its last token; NULL = not away */
    const struct life_entry *resumed;    /* and when it came back last */
    const struct life_entry *maybe;      /* the longest of those whose end cannot be seen */
    int64_t since_ns;                    /* its last token, when it is away */
    int64_t end_ns;                      /* of the row at hand */
    bool has_token, is_async;
    struct gap *gap;
};

/* Its first token may come out at the end of the row in which it is given up. */
static bool has_token(const struct search *s)
{
    return s->has_token || (s->is_async && s->life->row.first_token_ns == s->end_ns);
}

/* Pass over what happened up to the beginning of a step; one that took no time begins with the next. */
static void advance(struct search *s, const struct step *step)
{
    for (; s->next < s->life->num; s->next++) {
        const struct life_entry *e = &s->life->entries[s->next];
        if (e->time_ns > step->time_ns || e->step > (uint64_t)step->step)
            return;
        if (e->kind == PKV_EVENT_FIRST_TOKEN) {
            s->has_token = true;
        } else if (e->kind == PKV_EVENT_RESUME) {
            s->resumed = e;
        } else if (e->kind == PKV_EVENT_PREEMPT && has_token(s)) {
            bool no_token = s->away && s->resumed && e->lost_tokens < s->resumed->known_tokens;
            s->since_ns = no_token ? s->since_ns : e->time_ns;
            s->away = no_token ? s->away : e;
            s->resumed = NULL;
        }
    }
}

/* Its blocks are still being copied in as the step begins. */
static bool is_under_way(const struct search *s, const struct step *step)
{
    return s->resumed->swapped_blocks > 0 && step->time_ns < s->resumed->swap_done_ns;
}

/* A token came out again, or one of several chunks. true: found for sure. */
static bool come_back(struct search *s, int64_t end_ns)
{
    struct gap *gap = s->gap;
    const struct life_entry *away = s->away;
    bool is_swapped = s->resumed->swapped_blocks > 0;
    bool is_whole = s->resumed->hit_tokens + s->resumed->sched_tokens >= s->resumed->known_tokens;
    s->away = NULL;
    if ((is_whole || is_swapped) && end_ns - s->since_ns == gap->ns) {
        gap->cause = GAP_PREEMPTION;
        gap->preemption = away;
        return true;
    }
    if (!is_whole && end_ns - s->since_ns <= gap->ns)
        s->maybe = away;
    return false;
}

/* true: found for sure. */
static bool look_at(struct search *s, const struct step *step)
{
    int64_t end_ns = step->time_ns + step->dur_ns;
    struct gap *gap = s->gap;
    const struct life_entry *before = s->away;
    if (s->is_async && s->away && s->resumed && come_back(s, end_ns))
        return true;
    s->end_ns = end_ns;
    advance(s, step);
    bool leaves_now = s->is_async && s->away && s->away != before;
    if (leaves_now)
        s->since_ns = end_ns;   /* what ran until now still brought it a token */
    if (s->away && !leaves_now)
        return !s->is_async && s->resumed && !is_under_way(s, step) && come_back(s, end_ns);
    if (s->has_token && step->dur_ns == gap->ns && gap->cause == GAP_UNKNOWN) {
        gap->cause = GAP_STEP;
        gap->step = (uint64_t)step->step;
        gap->time_ns = step->time_ns;
        gap->prefill_tokens = (uint64_t)step->prefill_tokens;
        gap->decode_tokens = (uint64_t)step->decode_tokens;
    }
    return false;
}

static int look_through(struct side *side, struct search *s, struct pkv_err *err)
{
    struct columns columns = {0};
    struct step step;
    if (find_columns(side, &columns, err) < 0)
        return -1;
    for (;;) {
        if (side_next(side, err) < 0)
            return -1;
        if (!side->text)
            return 0;
        if (take_step(side, &columns, &step, err) < 0)
            return -1;
        if (step.time_ns >= s->life->end_ns || look_at(s, &step))
            return 0;
    }
}

int gap_find(const struct run_dir *run, const struct life *life, struct gap *out,
             struct pkv_err *err)
{
    struct side side = {0};
    struct search search = {.life = life, .gap = out,
                            .is_async = run->scenario->sched.async_scheduling};
    *out = (struct gap){.cause = GAP_NONE, .ns = life->row.max_gap_ns};
    if (life->row.max_gap_ns == PKV_NO_TIME)
        return 0;
    out->cause = GAP_UNKNOWN;
    int status = side_open(&side, run->steps, err);
    if (status < 0 && err->code == PKV_ERR_INPUT) {    /* it may have been left out */
        *err = (struct pkv_err){0};
        return 0;
    }
    if (status == 0)
        status = look_through(&side, &search, err);
    side_close(&side);
    if (out->cause == GAP_UNKNOWN && search.maybe) {
        out->cause = GAP_PREEMPTION;
        out->preemption = search.maybe;
    }
    return status;
}
