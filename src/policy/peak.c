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

/* A walk over two lists, in order. */
struct walk {
    const struct peak_item *items, *more;
    size_t num, num_more, next, next_more;
    uint64_t sum, count;   /* of held; of items passed */
};

static const struct peak_item *walk_next(struct walk *w)
{
    const struct peak_item *item = NULL;
    bool has_item = w->next < w->num, has_more = w->next_more < w->num_more;
    if (has_item && (!has_more || w->items[w->next].remaining >= w->more[w->next_more].remaining))
        item = &w->items[w->next++];
    else if (has_more)
        item = &w->more[w->next_more++];
    if (item) {
        w->sum += item->held;
        w->count++;
    }
    return item;
}

static uint64_t walk_positions(struct walk w)
{
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

static uint64_t walk_blocks(struct walk w, uint32_t block_size)
{
    struct walk start = w;
    const struct peak_item *item;
    uint64_t peak = (walk_positions(w) + block_size - 1) / block_size;
    while ((item = walk_next(&w))) {
        uint64_t positions = item->remaining * w.count + w.sum;
        if ((positions + w.count * (block_size - 1)) / block_size <= peak)
            continue;
        uint64_t blocks = blocks_at_end(start, w.count, item->remaining, block_size);
        peak = blocks > peak ? blocks : peak;
    }
    return peak;
}

static struct walk walk_begin(const struct peak_item *items, size_t num,
                              const struct peak_item *more)
{
    return (struct walk){.items = items, .more = more, .num = num, .num_more = more ? 1 : 0};
}

uint64_t peak_positions(const struct peak_item *items, size_t num, const struct peak_item *more)
{
    return walk_positions(walk_begin(items, num, more));
}

uint64_t peak_blocks(const struct peak_item *items, size_t num, const struct peak_item *more,
                     uint32_t block_size)
{
    return walk_blocks(walk_begin(items, num, more), block_size);
}

/* Windows stop growing, so no sum of positions bounds the blocks: every sum is made. O(num^2) */
static uint64_t walk_group_blocks(struct walk w, const struct pkv_cache *cache)
{
    struct walk start = w;
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

/* Of the samples of one request the one that lasts longest, the first of equals, is reckoned with the
 * full blocks of the prompt that all of them share; the others without. */
static bool holds_shared(const struct pkv_sched_view *view, const struct pkv_request *r)
{
    uint64_t remaining = true_remaining(view, r);
    const struct pkv_request *other = r->sample.next;
    for (; r->sample.num > 1 && other != r; other = other->sample.next) {
        uint64_t rest = true_remaining(view, other);
        if (rest > remaining || (rest == remaining && other->sample.index < r->sample.index))
            return false;
    }
    return true;
}

/* Less than nothing, modulo 2^64, where all of its positions are shared and its last one is to come. */
static struct peak_item item_of(const struct pkv_sched_view *view, const struct pkv_request *r,
                                bool counts_last)
{
    uint64_t held = (uint64_t)r->seq.num_known_tokens - (counts_last ? 0 : 1);
    uint32_t prompt = r->seq.num_prompt_tokens;
    /* With windows each is reckoned with all that it holds: what they share leaves them. */
    if (pkv_cache_is_plain(view->cache) && !holds_shared(view, r))
        held -= prompt - prompt % pkv_cache_block_size(view->cache);
    return (struct peak_item){held, true_remaining(view, r)};
}

void peak_pass_begin(struct peak_pass *pass, const struct pkv_sched_view *view, bool counts_last)
{
    for (pass->num = 0; pass->num < pkv_view_num_in(view); pass->num++)
        pass->items[pass->num] = item_of(view, pkv_view_in(view, pass->num), counts_last);
    peak_sort(pass->items, pass->num);
}

/* r and those that are admitted with it, behind the list. returns how many */
static size_t add_candidates(struct peak_pass *pass, const struct pkv_sched_view *view,
                             const struct pkv_request *r, bool counts_last)
{
    const struct pkv_request *each = r;
    size_t num = 0;
    do {
        pass->items[pass->num + num++] = item_of(view, each, counts_last);
        each = each->sample.next;
    } while (r->sample.waits_for_fork && each != r);
    peak_sort(pass->items + pass->num, num);
    return num;
}

void peak_pass_took(struct peak_pass *pass, const struct pkv_sched_view *view,
                    const struct pkv_request *r, bool counts_last)
{
    size_t num = add_candidates(pass, view, r, counts_last);
    while (num-- > 0) {
        struct peak_item item = pass->items[pass->num];
        peak_insert(pass->items, pass->num++, item);
    }
}

uint64_t peak_pass_with(struct peak_pass *pass, const struct pkv_sched_view *view,
                        const struct pkv_request *r, bool counts_last)
{
    size_t num = add_candidates(pass, view, r, counts_last);
    struct walk w = {.items = pass->items, .more = pass->items + pass->num, .num = pass->num,
                     .num_more = num};
    if (!pkv_cache_is_plain(view->cache))
        return walk_group_blocks(w, view->cache);
    return walk_blocks(w, pkv_cache_block_size(view->cache));
}
