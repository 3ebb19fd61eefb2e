/*
 * compare_series.c - free blocks, waiting, running and preemptions over time, on one grid for all
 * configurations.
 *
 * While a run goes on its end is not known, so its bins are widened whenever they do not suffice, by
 * 2 and by 5 in turn, and each keeps its extremes: no peak is lost. All runs begin with the same
 * width, so the bins of one are whole numbers of those of another, and of the grid in the end. Time
 * is counted from the first arrival.
 *
 *   every moment between the first arrival and the end of the run lies in a row or in a pause, so
 *   all bins before the last have been written to
 */
#include "report/compare_private.h"

#include <string.h>

#include "base/alloc.h"

/* Of a run, so that a grid of 1,000 or fewer has 500 or more unless steps are fewer. */
#define SERIES_BINS 4000

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void merge(struct series_bin *into, const struct series_bin *bin)
{
    into->min_free = smaller(into->min_free, bin->min_free);
    into->max_free = larger(into->max_free, bin->max_free);
    into->min_waiting = smaller(into->min_waiting, bin->min_waiting);
    into->max_waiting = larger(into->max_waiting, bin->max_waiting);
    into->min_running = smaller(into->min_running, bin->min_running);
    into->max_running = larger(into->max_running, bin->max_running);
    into->preemptions += bin->preemptions;
}

static void put(struct run_series *s, size_t place, const struct series_bin *bin)
{
    if (place < s->num)
        merge(&s->bins[place], bin);
    else
        s->bins[s->num++] = *bin;
}

/* A full series spans 4,000 widths of what fits into 64 bits, so five widths fit as well. */
static void widen(struct run_series *s)
{
    size_t factor = s->num_widenings++ % 2 == 0 ? 2 : 5, num = s->num;
    s->num = 0;
    for (size_t i = 0; i < num; i++) {
        struct series_bin bin = s->bins[i];
        put(s, i / factor, &bin);
    }
    s->width_ns *= (int64_t)factor;
}

/* What holds from begin_ns to end_ns; its preemptions happened at the beginning. */
static int add(struct run_series *s, int64_t begin_ns, int64_t end_ns, struct series_bin bin,
               struct pkv_err *err)
{
    while ((end_ns - 1) / s->width_ns >= SERIES_BINS)
        widen(s);
    size_t first = (size_t)(begin_ns / s->width_ns), last = (size_t)((end_ns - 1) / s->width_ns);
    if (pkv_grow(&s->bins, &s->capacity, last + 1, sizeof *s->bins, err) < 0)
        return -1;
    for (size_t i = first; i <= last; i++) {
        put(s, i, &bin);
        bin.preemptions = 0;
    }
    s->end_ns = end_ns;
    return 0;
}

/* Nearly all rows lie wholly in the last bin. */
int run_series_add(struct run_series *s, int64_t first_arrival_ns, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    int64_t begin_ns = row->time_ns - first_arrival_ns, end_ns = begin_ns + row->dur_ns;
    uint32_t free = (uint32_t)row->free_blocks, all = free + (uint32_t)row->used_blocks;
    uint32_t waiting = (uint32_t)row->waiting, running = (uint32_t)row->running;
    const struct series_bin bin = {free, free, waiting, waiting, running, running,
                                   (uint64_t)row->preempted};
    const struct series_bin pause = {.min_free = all, .max_free = all};
    PKV_ASSERT(s->width_ns > 0 && begin_ns >= s->end_ns && row->dur_ns > 0);
    if (begin_ns > s->end_ns && add(s, s->end_ns, begin_ns, pause, err) < 0)
        return -1;
    if (s->num > 0 && end_ns - s->width_ns * (int64_t)(s->num - 1) <= s->width_ns) {
        put(s, s->num - 1, &bin);
        s->end_ns = end_ns;
        return 0;
    }
    return add(s, begin_ns, end_ns, bin, err);
}

void run_series_finish(struct run_series *s)
{
    pkv_free(s->bins);
    *s = (struct run_series){.bins = NULL};
}

/* ---- the grid ---- */

void overlay_grid_read(const struct pkv_compare *c, struct overlay_grid *out)
{
    int64_t num = 0;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < c->num; i++) {
        if (c->series[i].num > 0 && c->series[i].width_ns > out->width_ns)
            out->width_ns = c->series[i].width_ns;
        if (c->series[i].end_ns > out->end_ns)
            out->end_ns = c->series[i].end_ns;
    }
    if (out->width_ns == 0)
        return;
    num = (out->end_ns - 1) / out->width_ns + 1;
    out->width_ns *= (num - 1) / OVERLAY_BINS + 1;
}

size_t overlay_read(const struct run_series *s, const struct overlay_grid *grid,
                    struct pkv_series_point *out)
{
    size_t num = 0;
    int64_t ratio = s->num > 0 ? grid->width_ns / s->width_ns : 1;
    for (size_t begin = 0; begin < s->num; begin += (size_t)ratio, num++) {
        struct series_bin bin = s->bins[begin];
        int64_t begin_ns = (int64_t)num * grid->width_ns;
        for (size_t i = begin + 1; i < begin + (size_t)ratio && i < s->num; i++)
            merge(&bin, &s->bins[i]);
        PKV_ASSERT(num < OVERLAY_BINS);
        out[num] = (struct pkv_series_point){
            .begin_ns = begin_ns,
            .end_ns = s->end_ns - begin_ns < grid->width_ns ? s->end_ns : begin_ns + grid->width_ns,
            .min_free = bin.min_free, .max_free = bin.max_free,
            .min_waiting = bin.min_waiting, .max_waiting = bin.max_waiting,
            .min_running = bin.min_running, .max_running = bin.max_running,
            .preemptions = (int64_t)bin.preemptions};
    }
    return num;
}
