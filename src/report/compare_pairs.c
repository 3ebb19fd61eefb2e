/*
 * compare_pairs.c - the same request in two configurations: was it better or worse off?
 *
 * Requests are told by their row in the traffic, which is the same in both. What differences add up
 * to is kept in histograms, so the order in which runs end does not show.
 *
 * A trace is one sample of traffic. What it says about another day is guessed from its parts: means
 * over equal stretches of time (the method of batch means; Law, Simulation Modeling and Analysis).
 */
#include "report/compare_private.h"

#include "base/alloc.h"

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct run_times *t = ctx;
    const struct pkv_request *r = row->request;
    if (pkv_grow(&t->rows, &t->capacity, (size_t)r->row + 1, sizeof *t->rows, err) < 0)
        return -1;
    while (t->num <= r->row)
        t->rows[t->num++] = (struct request_times){
            PKV_NO_TIME, {PKV_NO_TIME, PKV_NO_TIME, PKV_NO_TIME}};
    struct request_times *out = &t->rows[r->row];
    out->arrival_ns = r->arrival_ns;
    if (r->first_token_ns == PKV_NO_TIME || !is_in_window(&t->window, r->arrival_ns))
        return 0;
    out->ns[TIME_TTFT] = r->first_token_ns - r->arrival_ns;
    if (row->status != PKV_REQUEST_COMPLETED)
        return 0;
    out->ns[TIME_E2E] = row->finish_ns - r->arrival_ns;
    if (r->num_emitted > 1)
        out->ns[TIME_TPOT] = (row->finish_ns - r->first_token_ns) / (r->num_emitted - 1);
    return 0;
}

struct pkv_sink run_times_sink(struct run_times *times)
{
    return (struct pkv_sink){.request = on_request, .ctx = times};
}

void run_times_finish(struct run_times *times)
{
    pkv_free(times->rows);
    *times = (struct run_times){.rows = NULL};
}

int pairs_init(struct pairs *pairs, struct pkv_err *err)
{
    pairs->by_better = pkv_histogram_create(err);
    pairs->by_worse = pairs->by_better ? pkv_histogram_create(err) : NULL;
    return pairs->by_worse ? 0 : -1;
}

void pairs_finish(struct pairs *pairs)
{
    pkv_histogram_destroy(pairs->by_better);
    pkv_histogram_destroy(pairs->by_worse);
}

static int64_t time_at(const struct run_times *t, size_t row)
{
    return row < t->num ? t->rows[row].ns[TIME_E2E] : PKV_NO_TIME;
}

/* One request that completed in both. */
static int add_pair(struct pairs *p, int64_t first_ns, int64_t ns, struct pkv_err *err)
{
    if (ns < first_ns) {
        p->better++;
        return pkv_histogram_add(p->by_better, first_ns - ns, 1, err);
    }
    if (ns > first_ns) {
        p->worse++;
        return pkv_histogram_add(p->by_worse, ns - first_ns, 1, err);
    }
    p->same++;
    return 0;
}

int pairs_add(struct pairs *p, const struct run_times *first, const struct run_times *times,
              struct pkv_err *err)
{
    size_t num = first->num > times->num ? first->num : times->num;
    for (size_t row = 0; row < num; row++) {
        int64_t first_ns = time_at(first, row), ns = time_at(times, row);
        if (first_ns == PKV_NO_TIME || ns == PKV_NO_TIME) {
            p->lost += first_ns != PKV_NO_TIME;
            p->gained += ns != PKV_NO_TIME;
        } else if (add_pair(p, first_ns, ns, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Do both have the same arrivals? Those of a run that could not go on may be fewer. */
static bool same_arrivals(const struct run_times *a, const struct run_times *b)
{
    if (a->num != b->num)
        return false;
    for (size_t row = 0; row < a->num; row++)
        if (a->rows[row].arrival_ns != b->rows[row].arrival_ns)
            return false;
    return true;
}

/* Arrivals in the window: the first, and the time up to behind the last; 0 = there are none. Rows that
 * follow others need not come in their order. */
static int64_t span_of(const struct run_times *t, int64_t *out_begin)
{
    int64_t begin = INT64_MAX, last = INT64_MIN;
    for (size_t row = 0; row < t->num; row++) {
        int64_t ns = t->rows[row].arrival_ns;
        if (ns == PKV_NO_TIME || !is_in_window(&t->window, ns))
            continue;
        begin = ns < begin ? ns : begin;
        last = ns > last ? ns : last;
    }
    *out_begin = begin;
    return last >= begin ? last - begin + 1 : 0;
}

/* One kind of time: its sums over the stretches, then their means. */
static void read_time(struct batch *out, uint32_t num, const struct run_times *t,
                      enum batch_time kind)
{
    __int128 sums[PKV_COMPARE_MAX_BATCHES] = {0};
    uint64_t counts[PKV_COMPARE_MAX_BATCHES] = {0};
    int64_t begin, span = span_of(t, &begin);
    for (size_t row = 0; row < t->num; row++) {
        const struct request_times *r = &t->rows[row];
        if (r->ns[kind] == PKV_NO_TIME)
            continue;
        size_t i = (size_t)((__int128)(r->arrival_ns - begin) * num / span);
        sums[i] += r->ns[kind];
        counts[i]++;
    }
    for (size_t i = 0; i < num; i++) {
        out[i].has[kind] = counts[i] > 0;
        out[i].means[kind] = counts[i] > 0 ? (double)sums[i] / (double)counts[i] : 0;
    }
}

void batches_read(struct batch *out, uint32_t num, const struct run_times *first,
                  const struct run_times *times)
{
    PKV_ASSERT(num <= PKV_COMPARE_MAX_BATCHES);
    if (times->num == 0 || !same_arrivals(first, times))
        return;
    for (int kind = 0; kind < TIME_COUNT; kind++)
        read_time(out, num, times, (enum batch_time)kind);
}
