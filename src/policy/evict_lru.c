/*
 * evict_lru.c - the free block that became free first is taken first.
 *
 * A circular doubly linked list in two side arrays, with a sentinel at index num_blocks, so that a
 * block hit by a later prompt leaves the middle in O(1) and no step ever allocates. A block that is
 * not in the list links to itself.
 *
 * Order after the free queue of vLLM V1 (vllm/v1/core/kv_cache_utils.py, FreeKVCacheBlockQueue).
 */
#include "base/alloc.h"
#include "pagedkv/policy.h"

struct link { uint32_t prev, next; };

struct lru {
    uint32_t num_blocks;
    struct link links[];   /* [num_blocks + 1] */
};

static void *create(uint32_t num_blocks, uint64_t seed, struct pkv_err *err)
{
    (void)seed;
    size_t size = sizeof(struct lru) + ((size_t)num_blocks + 1) * sizeof(struct link);
    struct lru *lru = pkv_alloc(1, size, err);
    if (!lru)
        return NULL;
    lru->num_blocks = num_blocks;
    for (uint32_t i = 0; i <= num_blocks; i++)
        lru->links[i] = (struct link){i, i};
    return lru;
}

static void insert_after(struct lru *lru, uint32_t place, uint32_t id)
{
    PKV_ASSERT(lru->links[id].next == id);
    uint32_t next = lru->links[place].next;
    lru->links[id] = (struct link){place, next};
    lru->links[place].next = id;
    lru->links[next].prev = id;
}

static void push(void *state, pkv_block_id id, enum pkv_pool_end end,
                 const struct pkv_evict_hint *hint)
{
    struct lru *lru = state;
    (void)hint;
    uint32_t sentinel = lru->num_blocks;
    insert_after(lru, end == PKV_END_HEAD ? sentinel : lru->links[sentinel].prev, id);
}

static void remove_block(void *state, pkv_block_id id)
{
    struct lru *lru = state;
    struct link link = lru->links[id];
    PKV_ASSERT(link.next != id);
    lru->links[link.prev].next = link.next;
    lru->links[link.next].prev = link.prev;
    lru->links[id] = (struct link){id, id};
}

static pkv_block_id pop(void *state)
{
    struct lru *lru = state;
    uint32_t id = lru->links[lru->num_blocks].next;
    if (id == lru->num_blocks)
        return PKV_BLOCK_NULL;
    remove_block(lru, id);
    return id;
}

static uint32_t list(const void *state, pkv_block_id *out)
{
    const struct lru *lru = state;
    uint32_t num = 0, id = lru->links[lru->num_blocks].next;
    /* The bound keeps a broken list from running on; the caller's recount then finds it. */
    for (; id != lru->num_blocks && num < lru->num_blocks; id = lru->links[id].next)
        out[num++] = id;
    return num;
}

const struct pkv_evict_ops pkv_evict_lru = {
    .info = {.name = "lru",
             .summary = "the block that became free first; within a request the tail first",
             .source = "vLLM V1, FreeKVCacheBlockQueue"},
    .create = create,
    .destroy = pkv_free,
    .push = push,
    .remove = remove_block,
    .pop = pop,
    .list = list,
};
