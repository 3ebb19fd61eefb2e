/*
 * diff_csv.c - two step logs or two request logs, row by row.
 *
 * Fields are compared as text: both files come from the same writer, so equal numbers are equal
 * text. Reading goes on behind the first difference, for the totals. Steps that only one log has
 * are no difference where the other shows that it was thinned out.
 */
#include "base/units.h"
#include "report/diff_private.h"

#include <string.h>

/* What is summed below a difference: a column, or rows whose column is a word. */
struct total {
    const char *name, *column, *word;
};
static const struct total of_steps[] = {
    {"preemptions", "preempted", NULL},       {"scheduled tokens", "sched_tokens", NULL},
    {"recomputed tokens", "recomputed_tokens", NULL}, {"hit tokens", "hit_tokens", NULL},
    {"evicted blocks", "evicted_blocks", NULL}, {"time in steps, ns", "dur_ns", NULL},
};
static const struct total of_requests[] = {
    {"completed", "status", "completed"},     {"rejected", "status", "rejected"},
    {"aborted", "status", "aborted"},         {"unfinished", "status", "unfinished"},
    {"output tokens", "output_tokens", NULL}, {"hit tokens", "hit_tokens", NULL},
    {"recomputed tokens", "recomputed_tokens", NULL}, {"preemptions", "preemptions", NULL},
    {"queued, ns", "queue_ns", NULL},
};
#define MAX_TOTALS 16u

struct table {
    struct side *side;
    struct row header, row;
    const struct total *totals;
    size_t num_totals;
    size_t columns[MAX_TOTALS];          /* of each total; SIZE_MAX = not there */
    int64_t sums[MAX_TOTALS], num_rows;
    /* Of step logs. */
    size_t count_columns[NUM_STEP_COUNTS];   /* SIZE_MAX = not there */
    int64_t num_alone;                   /* rows that only this one has */
    struct thinned thinned;
};

void add_total(struct pkv_text *t, const char *name, int64_t a, int64_t b)
{
    pkv_text_fmt(t, "  %-18s A %16lld   B %16lld", name, (long long)a, (long long)b);
    if (a != b)
        pkv_text_fmt(t, "   %+lld", (long long)((__int128)b - a));
    pkv_text_add(t, "\n");
}

static bool field_is(const struct row *row, size_t i, const char *word)
{
    return row->lengths[i] == strlen(word) && memcmp(row->fields[i], word, row->lengths[i]) == 0;
}

static bool same_field(const struct row *a, const struct row *b, size_t i)
{
    return a->lengths[i] == b->lengths[i] &&
           memcmp(a->fields[i], b->fields[i], a->lengths[i]) == 0;
}

static size_t find_column(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->header.num; i++)
        if (field_is(&t->header, i, name))
            return i;
    return SIZE_MAX;
}

static int begin_table(struct table *t, struct side *s, bool is_steps, struct pkv_err *err)
{
    t->side = s;
    t->totals = is_steps ? of_steps : of_requests;
    t->num_totals = is_steps ? sizeof of_steps / sizeof of_steps[0]
                             : sizeof of_requests / sizeof of_requests[0];
    if (side_split(s, &t->header, err) < 0)
        return -1;
    for (size_t k = 0; k < t->num_totals; k++)
        t->columns[k] = find_column(t, t->totals[k].column);
#define FIND(name) t->count_columns[COUNT_##name] = find_column(t, #name);
    STEP_COUNTS(FIND)
#undef FIND
    return 0;
}

/* The number in a field, which is called name in an error. */
static int read_number(const struct table *t, size_t i, const char *name, int64_t *out,
                       struct pkv_err *err)
{
    const char *why;
    if (pkv_parse_i64(t->row.fields[i], t->row.lengths[i], out, &why) == 0)
        return 0;
    return pkv_fail_at(err, t->side->path, t->side->lines.number,
                       (uint32_t)(t->row.fields[i] - t->side->text) + 1, "%s '%.*s' %s", name,
                       (int)t->row.lengths[i], t->row.fields[i], why);
}

static int add_up(struct table *t, struct pkv_err *err)
{
    t->num_rows++;
    for (size_t k = 0; k < t->num_totals; k++) {
        size_t i = t->columns[k];
        int64_t n = 0;
        if (i == SIZE_MAX || t->row.lengths[i] == 0)
            continue;
        if (t->totals[k].word)
            n = field_is(&t->row, i, t->totals[k].word);
        else if (read_number(t, i, t->totals[k].column, &n, err) < 0)
            return -1;
        t->sums[k] = (int64_t)((uint64_t)t->sums[k] + (uint64_t)n);
    }
    return 0;
}

static int read_step(struct table *t, struct pkv_err *err)
{
    static const char *const names[] = {
#define NAME(name) #name,
        STEP_COUNTS(NAME)
#undef NAME
    };
    struct step_counts counts = {0};
    int64_t step;
    if (read_number(t, 0, "step", &step, err) < 0)
        return -1;
    if (step < 0 || (t->thinned.num_rows > 0 && step <= t->thinned.step))
        return pkv_fail_at(err, t->side->path, t->side->lines.number, 1, "step %lld, but steps "
                           "rise from 0", (long long)step);
    for (size_t k = 0; k < NUM_STEP_COUNTS; k++)
        if (t->count_columns[k] != SIZE_MAX &&
            read_number(t, t->count_columns[k], names[k], &counts.values[k], err) < 0)
            return -1;
    thinned_add_row(&t->thinned, step, &counts);
    return 0;
}

/* The next row of a table, if there is one. */
static int take(struct table *t, struct pkv_err *err)
{
    if (t->side->text && side_next_row(t->side, err) < 0)
        return -1;
    if (!t->side->text)
        return 0;
    if (side_split(t->side, &t->row, err) < 0)
        return -1;
    if (t->row.num != t->header.num)
        return pkv_fail_at(err, t->side->path, t->side->lines.number, 0,
                           "a row of %zu fields under a header of %zu", t->row.num, t->header.num);
    if (t->totals == of_steps && read_step(t, err) < 0)
        return -1;
    return add_up(t, err);
}

/* The row at hand is one that the other has not. */
static int note_alone(struct table *t, struct table *other, struct pkv_err *err)
{
    struct absence absence = {.step = t->thinned.step, .row = t->num_rows,
                              .is_behind_end = !other->side->text};
    t->num_alone++;
    return thinned_add_absence(&other->thinned, &absence, &t->thinned.counts, err);
}

/* Go on to the next step that both have. */
static int align(struct table *a, struct table *b, struct pkv_err *err)
{
    while (a->side->text && b->side->text && a->thinned.step != b->thinned.step) {
        bool a_is_behind = a->thinned.step < b->thinned.step;
        struct table *behind = a_is_behind ? a : b;
        if (note_alone(behind, a_is_behind ? b : a, err) < 0 || take(behind, err) < 0)
            return -1;
    }
    return 0;
}

static void add_field(struct pkv_text *text, const struct row *row, size_t i)
{
    pkv_text_visible(text, row->fields[i], row->lengths[i]);
}

/* "step 7", "id r1". */
static void add_row_name(struct pkv_text *text, const struct table *t)
{
    add_field(text, &t->header, 0);
    pkv_text_add(text, " ");
    add_field(text, &t->row, 0);
}

static void tell_field(struct pkv_text *text, const struct table *a, const struct table *b,
                       size_t i)
{
    pkv_text_fmt(text, "row %lld differs (", (long long)a->num_rows);
    add_row_name(text, a);
    pkv_text_add(text, "): column ");
    add_field(text, &a->header, i);
    pkv_text_add(text, "\n  A  ");
    add_field(text, &a->row, i);
    pkv_text_add(text, "\n  B  ");
    add_field(text, &b->row, i);
    pkv_text_add(text, "\n");
}

static void tell_end(struct pkv_text *text, const struct table *goes_on, const char *ended,
                     const char *other)
{
    pkv_text_fmt(text, "row %lld differs: %s ends before it, %s goes on with ",
                 (long long)goes_on->num_rows, ended, other);
    add_row_name(text, goes_on);
    pkv_text_add(text, "\n");
}

static bool compare(const struct table *a, const struct table *b, struct pkv_text *text)
{
    if (!a->side->text || !b->side->text) {
        if (a->side->text)
            tell_end(text, a, "B", "A");
        else
            tell_end(text, b, "A", "B");
        return false;
    }
    for (size_t i = 0; i < a->row.num; i++)
        if (!same_field(&a->row, &b->row, i)) {
            tell_field(text, a, b, i);
            return false;
        }
    return true;
}

/* Slices of the header have to outlive its line. */
static void keep_header(struct row *header, const char *from, const char *copy)
{
    for (size_t i = 0; i < header->num; i++)
        header->fields[i] = copy + (header->fields[i] - from);
}

/* Compare the rows at hand, unless a difference is known: behind it only totals matter. */
static void compare_once(const struct table *a, const struct table *b,
                         struct pkv_diff_result *out, int64_t *step, struct pkv_text *text)
{
    if (!out->same)
        return;
    out->same = compare(a, b, text);
    *step = a->thinned.step;
}

static int diff_requests(struct table *a, struct table *b, struct pkv_diff_result *out,
                         struct pkv_text *text, struct pkv_err *err)
{
    int64_t step;
    for (;;) {
        if (take(a, err) < 0 || take(b, err) < 0)
            return -1;
        if (!a->side->text && !b->side->text)
            return 0;
        compare_once(a, b, out, &step, text);
    }
}

/* A step that only one log has, named before any later difference. */
static void tell_alone(struct pkv_text *text, const struct absence *absence, const char *has,
                       const char *has_not)
{
    pkv_text_clear(text);
    if (absence->is_behind_end)
        pkv_text_fmt(text, "row %lld differs: %s ends before it, %s goes on with step %lld\n",
                     (long long)absence->row, has_not, has, (long long)absence->step);
    else
        pkv_text_fmt(text, "row %lld differs: %s has step %lld, %s has not, and neither --every nor "
                     "--on-change would leave it out\n", (long long)absence->row, has,
                     (long long)absence->step, has_not);
}

static void judge_absences(const struct table *a, const struct table *b,
                           struct pkv_diff_result *out, int64_t step, struct pkv_text *text)
{
    const struct absence *from_a = thinned_unexplained(&a->thinned);
    const struct absence *from_b = thinned_unexplained(&b->thinned);
    bool tell_a = from_a && (!from_b || from_a->step < from_b->step);
    const struct absence *first = tell_a ? from_a : from_b;
    if (first && (out->same || first->step < step))
        tell_alone(text, first, tell_a ? "B" : "A", tell_a ? "A" : "B");
    out->same &= !first;
}

static int diff_steps(struct table *a, struct table *b, struct pkv_diff_result *out,
                      struct pkv_text *text, struct pkv_err *err)
{
    int64_t step = 0;
    for (;;) {
        if (take(a, err) < 0 || take(b, err) < 0 || align(a, b, err) < 0)
            return -1;
        if (!a->side->text && !b->side->text)
            break;
        if (a->side->text && b->side->text)
            compare_once(a, b, out, &step, text);
        else if (note_alone(a->side->text ? a : b, a->side->text ? b : a, err) < 0)
            return -1;
    }
    if (a->num_rows > 0 && b->num_rows > 0 && a->num_rows == a->num_alone)
        return pkv_fail_at(err, b->side->path, 0, 0, "has no step in common with %s",
                           a->side->path);
    judge_absences(a, b, out, step, text);
    return 0;
}

static int diff_rows(struct table *a, struct table *b, struct pkv_diff_result *out,
                     struct pkv_text *text, struct pkv_err *err)
{
    bool is_steps = a->totals == of_steps;
    out->same = true;
    if ((is_steps ? diff_steps : diff_requests)(a, b, out, text, err) < 0)
        return -1;
    if (out->same)
        pkv_text_fmt(text, "the same: %lld rows\n", (long long)(a->num_rows - a->num_alone));
    if (a->num_alone + b->num_alone > 0)
        pkv_text_fmt(text, "%sonly A has %lld of the steps, only B %lld; these are not compared, "
                     "and the totals are of the rows that are there\n",
                     out->same ? "thinned out: " : "", (long long)a->num_alone,
                     (long long)b->num_alone);
    add_total(text, "rows", a->num_rows, b->num_rows);
    for (size_t k = 0; k < a->num_totals; k++)
        add_total(text, a->totals[k].name, a->sums[k], b->sums[k]);
    return 0;
}

int diff_csv(struct side *a, struct side *b, bool is_steps, struct pkv_diff_result *out,
             struct pkv_text *text, struct pkv_err *err)
{
    struct table x = {0}, y = {0};
    struct pkv_text header = {0};
    int status = -1;
    if (begin_table(&x, a, is_steps, err) < 0 || begin_table(&y, b, is_steps, err) < 0)
        goto out;
    if (a->length != b->length || memcmp(a->text, b->text, a->length) != 0) {
        pkv_fail_at(err, b->path, 1, 0, "its columns are not those of %s", a->path);
        goto out;
    }
    pkv_text_bytes(&header, a->text, a->length);
    if (header.failed) {
        pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the header of %s", a->path);
        goto out;
    }
    keep_header(&x.header, a->text, header.text);
    keep_header(&y.header, b->text, header.text);
    status = diff_rows(&x, &y, out, text, err);
out:
    pkv_text_free(&header);
    thinned_finish(&x.thinned);
    thinned_finish(&y.thinned);
    return status;
}
