/*
 * series.c - a run in at most 512 stretches of time, each with its extremes, for pictures.
 *
 * A stretch begins as long as the first step and doubles whenever the run outgrows 512 of them:
 * neighbours merge, so memory is fixed and no extreme is lost.
 *
 *   every moment between begin_ns and end_ns lies in a row or in a pause, so all stretches before
 *   the last have been written to
 */
#include "metrics/metrics_private.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void merge(struct pkv_series_point *into, const struct pkv_series_point *p)
{
    into->begin_ns = smaller(into->begin_ns, p->begin_ns);
    into->end_ns = larger(into->end_ns, p->end_ns);
    into->min_free = smaller(into->min_free, p->min_free);
    into->max_free = larger(into->max_free, p->max_free);
    into->min_waiting = smaller(into->min_waiting, p->min_waiting);
    into->max_waiting = larger(into->max_waiting, p->max_waiting);
    into->min_running = smaller(into->min_running, p->min_running);
    into->max_running = larger(into->max_running, p->max_running);
    into->preemptions += p->preemptions;
}

static void double_width(struct series *s)
{
    size_t half = 0;
    for (size_t i = 0; i < s->num; i += 2, half++) {
        s->points[half] = s->points[i];
        if (i + 1 < s->num)
            merge(&s->points[half], &s->points[i + 1]);
    }
    s->num = half;
    s->width_ns = s->width_ns > INT64_MAX / 2 ? INT64_MAX : s->width_ns * 2;
}

/* Spread a value that holds from value->begin_ns to value->end_ns over its stretches. */
static void add(struct series *s, struct pkv_series_point value)
{
    while ((value.end_ns - 1 - s->begin_ns) / s->width_ns >= PKV_SERIES_POINTS)
        double_width(s);
    size_t first = (size_t)((value.begin_ns - s->begin_ns) / s->width_ns);
    size_t last = (size_t)((value.end_ns - 1 - s->begin_ns) / s->width_ns);
    struct pkv_series_point part = value;
    for (size_t i = first; i <= last; i++) {
        int64_t edge = i < last ? s->begin_ns + (int64_t)(i + 1) * s->width_ns : value.end_ns;
        part.end_ns = edge;
        if (i < s->num)
            merge(&s->points[i], &part);
        else
            s->points[s->num++] = part;
        part.begin_ns = edge;
        part.preemptions = 0;    /* they happened at the beginning */
    }
    s->end_ns = value.end_ns;
    __int128 stretch_end = s->begin_ns + (__int128)s->width_ns * (int64_t)s->num;
    s->stretch_end_ns = stretch_end < INT64_MAX ? (int64_t)stretch_end : s->end_ns;
}

/* A row that lies wholly in the last stretch, as nearly all do. */
static void merge_row(struct pkv_series_point *into, const struct pkv_step_row *row)
{
    into->end_ns += row->dur_ns;
    into->min_free = smaller(into->min_free, row->free_blocks);
    into->max_free = larger(into->max_free, row->free_blocks);
    into->min_waiting = smaller(into->min_waiting, row->waiting);
    into->max_waiting = larger(into->max_waiting, row->waiting);
    into->min_running = smaller(into->min_running, row->running);
    into->max_running = larger(into->max_running, row->running);
    into->preemptions += row->preempted;
}

void series_add(struct series *s, const struct pkv_step_row *row)
{
    if (row->dur_ns <= 0)
        return;
    if (s->width_ns == 0) {
        s->begin_ns = s->end_ns = row->time_ns;
        s->width_ns = row->dur_ns;
    }
    if (s->num > 0 && row->time_ns == s->end_ns && row->time_ns + row->dur_ns <= s->stretch_end_ns) {
        merge_row(&s->points[s->num - 1], row);
        s->end_ns += row->dur_ns;
        return;
    }
    if (row->time_ns > s->end_ns) {    /* a pause: nobody there, every block free */
        int64_t all = row->free_blocks + row->used_blocks;
        add(s, (struct pkv_series_point){.begin_ns = s->end_ns, .end_ns = row->time_ns,
                                         .min_free = all, .max_free = all});
    }
    add(s, (struct pkv_series_point){
        .begin_ns = row->time_ns, .end_ns = row->time_ns + row->dur_ns,
        .min_free = row->free_blocks, .max_free = row->free_blocks,
        .min_waiting = row->waiting, .max_waiting = row->waiting,
        .min_running = row->running, .max_running = row->running,
        .preemptions = row->preempted});
}
