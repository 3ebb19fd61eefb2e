/*
 * compare_pairs.c - the same request in two configurations: was it better or worse off?
 *
 * Requests are told by their row in the traffic, which is the same in both. What differences add up
 * to is kept in histograms, so the order in which runs end does not show.
 */
#include "report/compare_private.h"

#include "base/alloc.h"

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct run_times *t = ctx;
    const struct pkv_request *r = row->request;
    if (row->status != PKV_REQUEST_COMPLETED || r->first_token_ns == PKV_NO_TIME)
        return 0;
    if (pkv_grow(&t->e2e_ns, &t->capacity, (size_t)r->row + 1, sizeof *t->e2e_ns, err) < 0)
        return -1;
    while (t->num <= r->row)
        t->e2e_ns[t->num++] = PKV_NO_TIME;
    t->e2e_ns[r->row] = row->finish_ns - r->arrival_ns;
    return 0;
}

struct pkv_sink run_times_sink(struct run_times *times)
{
    return (struct pkv_sink){.request = on_request, .ctx = times};
}

void run_times_finish(struct run_times *times)
{
    pkv_free(times->e2e_ns);
    *times = (struct run_times){.e2e_ns = NULL};
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
    return row < t->num ? t->e2e_ns[row] : PKV_NO_TIME;
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
