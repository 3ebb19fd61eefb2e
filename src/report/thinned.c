/*
 * thinned.c - may a step log have left out a row that the other log has?
 *
 * A log may be thinned out in two ways, and shows by its own rows in which:
 *
 *   every N     its steps are the multiples of N: one off that stride may be missing
 *   on change   no row has the counts of the row before: one that repeats them may be missing
 *
 * Both are known only when the whole log has been read, so absences are kept until then, the first
 * of each sort; a sort is the greatest divisor that a step and the stride have in common, which is
 * all that matters when the stride turns out to be smaller. An absence that nothing explains is a
 * difference.
 */
#include "report/diff_private.h"

#include "base/alloc.h"

#include <string.h>

/* Steps that are multiples of a number without being all of them: --every and --on-change at once,
 * or chance. So many rows are no chance (one in 2^15). */
#define ROWS_BEYOND_CHANCE 16

/* Greatest common divisor; of 0 and n it is n. */
static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static bool same_counts(const struct step_counts *a, const struct step_counts *b)
{
    return memcmp(a->values, b->values, sizeof a->values) == 0;
}

void thinned_add_row(struct thinned *t, int64_t step, const struct step_counts *counts)
{
    if (t->num_rows == 0)
        t->is_uneven = step != 0;
    else if (t->num_rows == 1)
        t->first_gap = step - t->step;
    t->has_gaps |= t->num_rows > 0 && step - t->step > 1;
    t->is_uneven |= t->num_rows > 0 && step - t->step != t->first_gap;
    t->repeats |= t->num_rows > 0 && same_counts(counts, &t->counts);
    t->stride = common_divisor(t->stride, step);
    t->former = t->counts;
    t->counts = *counts;
    t->step = step;
    t->num_rows++;
}

int thinned_add_absence(struct thinned *t, const struct absence *absence,
                        const struct step_counts *counts, struct pkv_err *err)
{
    struct absence a = *absence;
    /* The row at hand is behind it, unless the log has ended. */
    bool has_kept = t->num_rows > (a.is_behind_end ? 0 : 1);
    a.is_repeat = has_kept && same_counts(counts, a.is_behind_end ? &t->counts : &t->former);
    a.sort = common_divisor(a.step, t->stride);
    for (size_t i = 0; i < t->num_absences; i++)
        if (t->absences[i].sort == a.sort && t->absences[i].is_repeat == a.is_repeat)
            return 0;
    if (pkv_grow(&t->absences, &t->capacity, t->num_absences + 1, sizeof a, err) < 0)
        return -1;
    t->absences[t->num_absences++] = a;
    return 0;
}

static bool is_explained(const struct thinned *t, const struct absence *a)
{
    bool has_stride = !t->is_uneven || t->num_rows >= ROWS_BEYOND_CHANCE;
    if (has_stride && t->stride > 0 && a->sort % t->stride != 0)
        return true;
    return a->is_repeat && t->has_gaps && !t->repeats;
}

const struct absence *thinned_unexplained(const struct thinned *t)
{
    const struct absence *first = NULL;
    for (size_t i = 0; i < t->num_absences; i++) {
        const struct absence *a = &t->absences[i];
        if (!is_explained(t, a) && (!first || a->step < first->step))
            first = a;
    }
    return first;
}

void thinned_finish(struct thinned *t)
{
    pkv_free(t->absences);
}
