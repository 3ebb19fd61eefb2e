/*
 * buddy.c - a buddy allocator over the blocks of a pool.
 *
 * The tree of all aligned runs, kept in one array: node 1 is the whole, the children of node n are 2n
 * and 2n + 1, a leaf is a block. A node says of which orders there are free runs below it, a bit for
 * each order; one whose blocks are all free says its own order and nothing else. Leaves beyond the
 * pool are never free, so a pool of 10 blocks is a run of 8 and one of 2 without further care.
 *
 * Taken is the shortest run that is long enough, of equal ones the one at the lowest block: which
 * one depends on nothing but what is held. A run is never moved; that is what the waste outside of
 * runs comes from.
 *
 * Buddy system after Knowlton, CACM 1965, and Knuth, TAOCP 1, 2.5; the paper on paging assumes it of
 * the systems it is compared with (Kwon et al., SOSP 2023, 6.1).
 */
#include "pool/buddy_private.h"

#include "base/alloc.h"

struct buddy {
    uint32_t *orders;       /* [2 * num_leaves], owned: bit k = a free run of 2^k blocks below */
    uint64_t num_leaves;    /* num_blocks rounded up to a power of two */
    uint32_t num_blocks;
    uint32_t height;        /* order of the root */
};

/* The smallest k with 2^k >= n; n > 0. */
static uint32_t order_of(uint64_t n)
{
    uint32_t order = 0;
    while ((UINT64_C(1) << order) < n)
        order++;
    return order;
}

static uint32_t joined(uint32_t left, uint32_t right, uint32_t order)
{
    uint32_t half = UINT32_C(1) << (order - 1);
    return left == half && right == half ? UINT32_C(1) << order : left | right;
}

void *buddy_create(uint32_t num_blocks, struct pkv_err *err)
{
    struct buddy *b = pkv_alloc(1, sizeof(*b), err);
    if (!b)
        return NULL;
    b->num_blocks = num_blocks;
    b->height = order_of(num_blocks);
    b->num_leaves = UINT64_C(1) << b->height;
    b->orders = pkv_alloc(2 * b->num_leaves, sizeof(*b->orders), err);
    if (!b->orders) {
        buddy_destroy(b);
        return NULL;
    }
    for (uint32_t id = 0; id < num_blocks; id++)
        b->orders[b->num_leaves + id] = 1;
    for (uint32_t order = 1; order <= b->height; order++)
        for (uint64_t n = b->num_leaves >> order; n < (b->num_leaves >> order) * 2; n++)
            b->orders[n] = joined(b->orders[2 * n], b->orders[2 * n + 1], order);
    return b;
}

void buddy_destroy(void *state)
{
    struct buddy *b = state;
    pkv_free(b->orders);
    pkv_free(b);
}

/* Bring the nodes above up to date; where one stays as it was, so do all above it. */
static void tell_parents(struct buddy *b, uint64_t n, uint32_t order)
{
    for (n /= 2, order++; n > 0; n /= 2, order++) {
        uint32_t orders = joined(b->orders[2 * n], b->orders[2 * n + 1], order);
        if (b->orders[n] == orders)
            return;
        b->orders[n] = orders;
    }
}

/* The node of the leftmost free run of the order. */
static uint64_t find_run(const struct buddy *b, uint32_t order)
{
    uint32_t bit = UINT32_C(1) << order;
    uint64_t n = 1;
    for (uint32_t at = b->height; at > order; at--)
        n = b->orders[2 * n] & bit ? 2 * n : 2 * n + 1;
    PKV_ASSERT(b->orders[n] == bit);
    return n;
}

/* Nothing of the 2^order blocks below node n is free any more. */
static void clear_run(struct buddy *b, uint64_t n, uint32_t order)
{
    for (uint64_t width = 1; width <= (UINT64_C(1) << order); width *= 2, n *= 2)
        for (uint64_t i = 0; i < width; i++)
            b->orders[n + i] = 0;
}

bool buddy_take(void *state, uint32_t num, pkv_block_id *out)
{
    struct buddy *b = state;
    if (num == 0)
        return true;
    uint32_t order = order_of(num);
    uint32_t enough = order < 32 ? b->orders[1] >> order << order : 0;
    if (enough == 0)
        return false;
    uint32_t shortest = order;
    while (!(enough & UINT32_C(1) << shortest))
        shortest++;
    uint64_t n = find_run(b, shortest) << (shortest - order);   /* split, the front part taken */
    pkv_block_id first = (pkv_block_id)((n << order) - b->num_leaves);
    clear_run(b, n, order);
    tell_parents(b, n, order);
    for (uint32_t i = 0; i < num; i++)
        out[i] = first + i;
    for (uint32_t i = num; i < UINT32_C(1) << order; i++) {   /* what is over stays free */
        pkv_block_id id = first + i;
        buddy_give(b, &id, 1);
    }
    return true;
}

void buddy_give(void *state, const pkv_block_id *ids, uint32_t num)
{
    struct buddy *b = state;
    for (uint32_t i = 0; i < num; i++) {
        uint64_t leaf = b->num_leaves + ids[i];
        PKV_ASSERT(ids[i] < b->num_blocks && b->orders[leaf] == 0);
        b->orders[leaf] = 1;
        tell_parents(b, leaf, 0);
    }
}

uint32_t buddy_list_free(const void *state, pkv_block_id *out)
{
    const struct buddy *b = state;
    uint32_t num = 0;
    for (uint32_t id = 0; id < b->num_blocks; id++)
        if (b->orders[b->num_leaves + id])
            out[num++] = id;
    return num;
}

uint32_t buddy_run_blocks(uint64_t num_positions, uint32_t block_size)
{
    uint64_t blocks = num_positions / block_size + (num_positions % block_size > 0);
    uint64_t run = UINT64_C(1) << order_of(blocks > 0 ? blocks : 1);
    return run < UINT64_C(1) << 31 ? (uint32_t)run : UINT32_C(1) << 31;
}
