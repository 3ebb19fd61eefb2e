/*
 * order_dfs_weight.c - the cached prefixes that those waiting match, as a tree, walked from the root:
 * the child under which more of them end comes first, and a node's children before its own.
 *
 * A block's identity stands for all tokens up to its end, so the chains of two requests are equal up
 * to one place and differ from there on. Sorted by their chains, every subtree is one range, and the
 * length of what a range has in common is what its first and its last have in common. Ranges wait on
 * a stack; those of one node lie there by weight. Equal weights: the subtree whose earliest request
 * came first; a node's own requests go by arrival.
 *
 * SGLang's ties go by the place of a child in its radix tree.
 */
#include <stdlib.h>

#include "pagedkv/policy.h"

/* A waiting request and the identities that its look-up found. */
struct item {
    const struct pkv_request *request;
    uint32_t num_keys;
    size_t place;                /* in the queue */
};

/* Items begin .. end - 1 have `depth` identities in common; they get the keys from first_key on. */
struct range {
    size_t begin, end, first_key;
    uint32_t depth;
    int64_t arrival;             /* the earliest of them */
};

struct scratch_each {
    struct item item;
    struct range range;
};

struct walk {
    struct item *items;          /* [num] */
    struct range *stack;         /* room for num: ranges on it do not overlap */
    size_t num_ranges;
    int64_t *keys;
};

static uint32_t num_common(const struct item *a, const struct item *b)
{
    uint32_t low = 0, high = a->num_keys < b->num_keys ? a->num_keys : b->num_keys;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (a->request->seq.keys[middle - 1] == b->request->seq.keys[middle - 1])
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* A chain comes before those that go on from it. */
static int by_chain(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    uint32_t common = num_common(x, y);
    if (common < x->num_keys && common < y->num_keys)
        return x->request->seq.keys[common] < y->request->seq.keys[common] ? -1 : 1;
    if (x->num_keys != y->num_keys)
        return x->num_keys < y->num_keys ? -1 : 1;
    return x->request->arrival_order < y->request->arrival_order ? -1 : 1;
}

/* The heaviest first; the earliest of them decides between equals. */
static int by_weight(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    size_t num_x = x->end - x->begin, num_y = y->end - y->begin;
    if (num_x != num_y)
        return num_x > num_y ? -1 : 1;
    return x->arrival < y->arrival ? -1 : 1;
}

/* Put the children of a node, items begin .. end - 1, on the stack. */
static void push_children(struct walk *w, size_t begin, size_t end, uint32_t depth,
                          size_t first_key)
{
    struct range *children = &w->stack[w->num_ranges];
    size_t num = 0;
    for (size_t i = begin; i < end; i++) {
        const struct pkv_request *r = w->items[i].request;
        if (i == begin || num_common(&w->items[i - 1], &w->items[i]) <= depth)
            children[num++] = (struct range){i, i, 0, depth + 1, r->arrival_order};
        struct range *child = &children[num - 1];
        child->end = i + 1;
        if (r->arrival_order < child->arrival)
            child->arrival = r->arrival_order;
    }
    if (num > 1)
        qsort(children, num, sizeof(*children), by_weight);
    for (size_t i = 0; i < num; i++) {
        children[i].first_key = first_key;
        first_key += children[i].end - children[i].begin;
    }
    w->num_ranges += num;
}

/* One node: its own requests come last among those of its range. */
static void walk_range(struct walk *w, struct range range)
{
    const struct item *first = &w->items[range.begin], *last = &w->items[range.end - 1];
    uint32_t depth = first == last ? first->num_keys : num_common(first, last);
    size_t begin = range.begin;
    while (begin < range.end && w->items[begin].num_keys == depth)
        begin++;
    size_t num_below = range.end - begin;
    for (size_t i = range.begin; i < begin; i++)
        w->keys[w->items[i].place] = (int64_t)(range.first_key + num_below + (i - range.begin));
    if (num_below > 0)
        push_children(w, begin, range.end, depth, range.first_key);
}

static bool needs_hits(const void *state, const struct pkv_sched_view *view)
{
    (void)state;
    return view->prefix_cache;
}

static void rank(const void *state, const struct pkv_sched_view *view,
                 struct pkv_request *const *waiting, size_t num, void *scratch, int64_t *out_keys)
{
    (void)state;
    struct walk w = {.items = scratch, .keys = out_keys};
    w.stack = (struct range *)(w.items + num);
    for (size_t i = 0; i < num; i++) {
        uint32_t num_keys = waiting[i]->num_waiting_hit / pkv_cache_hash_block_size(view->cache);
        w.items[i] = (struct item){waiting[i], num_keys, i};
        out_keys[i] = 0;
    }
    if (!view->prefix_cache || num == 0)
        return;
    qsort(w.items, num, sizeof(*w.items), by_chain);
    w.stack[w.num_ranges++] = (struct range){.begin = 0, .end = num};
    while (w.num_ranges > 0)
        walk_range(&w, w.stack[--w.num_ranges]);
}

const struct pkv_order_ops pkv_order_dfs_weight = {
    .info = {.name = "dfs_weight",
             .summary = "a walk down the tree of cached prefixes, where more of those waiting end first",
             .source = "SGLang 0.5.18, schedule_policy.py, for its radix tree; here over hashed blocks"},
    .rank = rank,
    .rank_size_each = sizeof(struct scratch_each),
    .needs_hits = needs_hits,
};
