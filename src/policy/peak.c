/*
 * peak.c - see peak.h.
 *
 * In blocks the i-th sum lies between its positions / block size and that + i blocks, so only few of
 * the sums have to be made one by one.
 */
#include "policy/peak.h"

#include <stdlib.h>

#include "policy/true_length.h"

/* Equal ones may come in any order: the peak is at the last of them. */
static int by_remaining(const void *a, const void *b)
{
    const struct peak_item *x = a, *y = b;
    return (x->remaining < y->remaining) - (x->remaining > y->remaining);
}

void peak_sort(struct peak_item *items, size_t num)
{
    qsort(items, num, sizeof(*items), by_remaining);
}

void peak_insert(struct peak_item *items, size_t num, struct peak_item item)
{
    size_t i = num;
    for (; i > 0 && items[i - 1].remaining < item.remaining; i--)
        items[i] = items[i - 1];
    items[i] = item;
}

/* A walk over the list and the one more, in order. */
struct walk {
    const struct peak_item *items, *more;
    size_t num, next;
    uint64_t sum, count;   /* of held; of items passed */
};

static struct walk walk_begin(const struct peak_item *items, size_t num,
                              const struct peak_item *more)
{
    return (struct walk){.items = items, .more = more, .num = num};
}

static const struct peak_item *walk_next(struct walk *w)
{
    const struct peak_item *item = w->more;
    if (w->next < w->num && (!item || w->items[w->next].remaining >= item->remaining))
        item = &w->items[w->next++];
    else
        w->more = NULL;
    if (item) {
        w->sum += item->held;
        w->count++;
    }
    return item;
}

uint64_t peak_positions(const struct peak_item *items, size_t num, const struct peak_item *more)
{
    struct walk w = walk_begin(items, num, more);
    const struct peak_item *item;
    uint64_t peak = 0;
    while ((item = walk_next(&w))) {
        uint64_t positions = item->remaining * w.count + w.sum;
        peak = positions > peak ? positions : peak;
    }
    return peak;
}

static uint64_t blocks_at_end(struct walk w, uint64_t count, uint64_t remaining, uint32_t block_size)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += (walk_next(&w)->held + remaining + block_size - 1) / block_size;
    return sum;
}

uint64_t peak_blocks(const struct peak_item *items, size_t num, const struct peak_item *more,
                     uint32_t block_size)
{
    struct walk w = walk_begin(items, num, more), start = w;
    const struct peak_item *item;
    uint64_t peak = (peak_positions(items, num, more) + block_size - 1) / block_size;
    while ((item = walk_next(&w))) {
        uint64_t positions = item->remaining * w.count + w.sum;
        if ((positions + w.count * (block_size - 1)) / block_size <= peak)
            continue;
        uint64_t blocks = blocks_at_end(start, w.count, item->remaining, block_size);
        peak = blocks > peak ? blocks : peak;
    }
    return peak;
}

/* Windows stop growing, so no sum of positions bounds the blocks: every sum is made. O(num^2) */
static uint64_t peak_group_blocks(const struct peak_pass *pass, const struct peak_item *more,
                                  const struct pkv_cache *cache)
{
    struct walk w = walk_begin(pass->items, pass->num, more), start = w;
    const struct peak_item *item;
    uint64_t peak = 0;
    while ((item = walk_next(&w))) {
        struct walk again = start;
        uint64_t blocks = 0;
        for (uint64_t i = 0; i < w.count; i++)
            blocks += pkv_cache_blocks_for(cache, walk_next(&again)->held + item->remaining, 1);
        peak = blocks > peak ? blocks : peak;
    }
    return peak;
}

/* --- a pass ---------------------------------------------------------------------------------- */

static struct peak_item item_of(const struct pkv_sched_view *view, const struct pkv_request *r,
                                bool counts_last)
{
    uint32_t held = r->seq.num_known_tokens - (counts_last ? 0 : 1);
    return (struct peak_item){held, true_remaining(view, r)};
}

void peak_pass_begin(struct peak_pass *pass, const struct pkv_sched_view *view, bool counts_last)
{
    for (pass->num = 0; pass->num < view->num_running; pass->num++)
        pass->items[pass->num] = item_of(view, view->running[pass->num], counts_last);
    peak_sort(pass->items, pass->num);
}

void peak_pass_took(struct peak_pass *pass, const struct pkv_sched_view *view,
                    const struct pkv_request *r, bool counts_last)
{
    peak_insert(pass->items, pass->num++, item_of(view, r, counts_last));
}

uint64_t peak_pass_with(const struct peak_pass *pass, const struct pkv_sched_view *view,
                        const struct pkv_request *r, bool counts_last)
{
    struct peak_item item = item_of(view, r, counts_last);
    if (!pkv_cache_is_plain(view->cache))
        return peak_group_blocks(pass, &item, view->cache);
    return peak_blocks(pass->items, pass->num, &item, pkv_cache_block_size(view->cache));
}
