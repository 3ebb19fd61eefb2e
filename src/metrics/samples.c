/*
 * samples.c - times of whole requests that ask for several answers: the first token is that of any
 * sample, the end is that of the last.
 *
 * A request is known by the number of its first sample. Those of which some samples have ended and some
 * have not are kept in the order of that number.
 */
#include <string.h>

#include "base/alloc.h"
#include "metrics/metrics_private.h"

void open_requests_free(struct open_requests *o)
{
    pkv_free(o->items);
    *o = (struct open_requests){0};
}

static size_t find(const struct open_requests *o, uint64_t first_row)
{
    size_t low = 0, high = o->num;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->items[middle].first_row < first_row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int add(struct open_requests *o, size_t place, const struct open_request *item,
               struct pkv_err *err)
{
    if (pkv_grow(&o->items, &o->capacity, o->num + 1, sizeof *o->items, err) < 0)
        return -1;
    memmove(&o->items[place + 1], &o->items[place], (o->num - place) * sizeof *o->items);
    o->items[place] = *item;
    o->num++;
    return 0;
}

int open_requests_end(struct open_requests *o, const struct pkv_request_row *row,
                      struct request_times *out, struct pkv_err *err)
{
    const struct pkv_sample *sample = &row->request->sample;
    const struct open_request begun = {row->request->row - sample->index, sample->num, PKV_NO_TIME,
                                       PKV_NO_TIME, true};
    int64_t first_ns = row->request->first_token_ns, arrival_ns = row->request->arrival_ns;
    size_t place = find(o, begun.first_row);
    *out = (struct request_times){PKV_NO_TIME, PKV_NO_TIME};
    if ((place == o->num || o->items[place].first_row != begun.first_row) &&
        add(o, place, &begun, err) < 0)
        return -1;
    struct open_request *item = &o->items[place];
    item->is_whole &= row->status == PKV_REQUEST_COMPLETED;
    if (first_ns != PKV_NO_TIME && (item->first_ns == PKV_NO_TIME || first_ns < item->first_ns))
        item->first_ns = first_ns;
    if (row->finish_ns > item->last_ns)
        item->last_ns = row->finish_ns;
    if (--item->num_left > 0)
        return 0;
    if (item->first_ns != PKV_NO_TIME)
        out->ttft_ns = item->first_ns - arrival_ns;
    if (item->is_whole)
        out->e2e_ns = item->last_ns - arrival_ns;
    memmove(item, item + 1, (--o->num - place) * sizeof *item);
    return 0;
}
