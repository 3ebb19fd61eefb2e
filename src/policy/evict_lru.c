/*
 * evict_lru.c - the free block that became free first is taken first.
 *
 * A circular doubly linked list in two side arrays, with a sentinel at index num_blocks, so that a
 * block hit by a later prompt leaves the middle in O(1) and no step ever allocates. A block that is
 * not in the list has itself as its next.
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

/* A chain of blocks goes in between two neighbours. */
static void push(void *state, const pkv_block_id *ids, uint32_t num, enum pkv_pool_end end,
                 const struct pkv_evict_hint *hints)
{
    struct lru *lru = state;
    struct link *links = lru->links;
    uint32_t sentinel = lru->num_blocks;
    (void)hints;
    if (end == PKV_END_HEAD) {
        for (uint32_t i = 0; i < num; i++) {
            uint32_t id = ids[i], next = links[sentinel].next;
            PKV_ASSERT(links[id].next == id);
            links[id] = (struct link){sentinel, next};
            links[next].prev = id;
            links[sentinel].next = id;
        }
        return;
    }
    uint32_t last = links[sentinel].prev;
    for (uint32_t i = 0; i < num; i++) {
        uint32_t id = ids[i];
        PKV_ASSERT(links[id].next == id);
        links[last].next = id;
        links[id].prev = last;
        last = id;
    }
    links[last].next = sentinel;
    links[sentinel].prev = last;
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

static void pop(void *state, uint32_t num, pkv_block_id *out)
{
    struct lru *lru = state;
    struct link *links = lru->links;
    uint32_t id = links[lru->num_blocks].next;
    for (uint32_t i = 0; i < num; i++) {
        PKV_ASSERT(id != lru->num_blocks);
        uint32_t next = links[id].next;
        links[id].next = id;
        out[i] = id;
        id = next;
    }
    links[lru->num_blocks].next = id;
    links[id].prev = lru->num_blocks;
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
