/*
 * histogram.c - counts of integers in log-linear buckets.
 *
 * Below 2^11 every value has a bucket of its own. Above, each power of two is cut into 2^10 equal
 * buckets, so a bucket's upper edge is less than 2^-10 of the value above any value in it. The
 * array grows to the largest bucket met, so small values take little memory.
 *
 *   sum and max are exact whatever the buckets; a percentile is never above max
 *
 * After HdrHistogram (Gil Tene), without its configurable precision.
 */
#include "pagedkv/metrics.h"

#include "base/alloc.h"

#include <string.h>

#define SUB_BITS 10
#define NUM_SUB ((size_t)1 << SUB_BITS)
#define NUM_EXACT (2 * NUM_SUB)

struct pkv_histogram {
    uint64_t *counts;    /* [num], owned */
    size_t num, capacity;
    uint64_t count;
    __int128 sum;
    int64_t max;
};

struct pkv_histogram *pkv_histogram_create(struct pkv_err *err)
{
    return pkv_alloc(1, sizeof(struct pkv_histogram), err);
}

void pkv_histogram_destroy(struct pkv_histogram *h)
{
    if (h)
        pkv_free(h->counts);
    pkv_free(h);
}

static size_t bucket_of(uint64_t value)
{
    if (value < NUM_EXACT)
        return (size_t)value;
    unsigned shift = (unsigned)(63 - __builtin_clzll(value)) - SUB_BITS;   /* from 1 on */
    return shift * NUM_SUB + (size_t)(value >> shift);
}

static int64_t upper_edge(size_t bucket)
{
    if (bucket < NUM_EXACT)
        return (int64_t)bucket;
    unsigned shift = (unsigned)(bucket / NUM_SUB) - 1;
    uint64_t leading = NUM_SUB + bucket % NUM_SUB;
    return (int64_t)(((leading + 1) << shift) - 1);
}

int pkv_histogram_add(struct pkv_histogram *h, int64_t value, uint64_t count, struct pkv_err *err)
{
    PKV_ASSERT(value >= 0);
    if (count == 0)
        return 0;
    size_t bucket = bucket_of((uint64_t)value);
    if (bucket >= h->num) {
        if (pkv_grow(&h->counts, &h->capacity, bucket + 1, sizeof *h->counts, err) < 0)
            return -1;
        memset(h->counts + h->num, 0, (h->capacity - h->num) * sizeof *h->counts);
        h->num = h->capacity;
    }
    h->counts[bucket] += count;
    h->count += count;
    h->sum += (__int128)value * count;
    if (value > h->max)
        h->max = value;
    return 0;
}

/* ceil(percent / 100 * count), without overflow. */
static uint64_t nearest_rank(uint64_t count, unsigned percent)
{
    return count / 100 * percent + (count % 100 * percent + 99) / 100;
}

void pkv_histogram_read(const struct pkv_histogram *h, struct pkv_distribution *out)
{
    static const unsigned percents[] = {50, 90, 95, 99};
    int64_t values[4] = {0, 0, 0, 0};
    uint64_t seen = 0;
    size_t next = 0;
    for (size_t b = 0; b < h->num && next < 4; b++) {
        seen += h->counts[b];
        for (; next < 4 && h->count > 0 && seen >= nearest_rank(h->count, percents[next]); next++)
            values[next] = upper_edge(b) < h->max ? upper_edge(b) : h->max;
    }
    *out = (struct pkv_distribution){
        .count = h->count, .sum = h->sum, .max = h->max,
        .p50 = values[0], .p90 = values[1], .p95 = values[2], .p99 = values[3],
    };
}

bool pkv_histogram_next(const struct pkv_histogram *h, size_t *place, int64_t *out_upper,
                        uint64_t *out_count)
{
    while (*place < h->num && h->counts[*place] == 0)
        ++*place;
    if (*place >= h->num)
        return false;
    *out_upper = upper_edge(*place) < h->max ? upper_edge(*place) : h->max;
    *out_count = h->counts[(*place)++];
    return true;
}
