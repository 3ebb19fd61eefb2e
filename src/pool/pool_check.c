/*
 * pool_check.c - recount the pool from nothing: P1, P2, P3 of pool.h.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "pool/pool_private.h"

static int check_queue(const struct pkv_pool *pool, const pkv_block_id *queue, uint32_t length,
                       unsigned char *seen, struct pkv_err *err)
{
    for (uint32_t i = 0; i < length; i++) {
        pkv_block_id id = queue[i];
        if (id >= pool->num_blocks)
            return pkv_fail(err, PKV_ERR_AUDIT, "P1: block %u in the free queue of a pool of %u",
                            id, pool->num_blocks);
        if (pool->ref_cnts[id] > 0)
            return pkv_fail(err, PKV_ERR_AUDIT, "P1: block %u is in the free queue with %u holders",
                            id, pool->ref_cnts[id]);
        if (seen[id])
            return pkv_fail(err, PKV_ERR_AUDIT, "P1: block %u is twice in the free queue", id);
        seen[id] = 1;
    }
    return 0;
}

static int check_counts(const struct pkv_pool *pool, uint32_t length, const unsigned char *seen,
                        struct pkv_err *err)
{
    uint64_t num_held = 0, num_holds = 0;
    for (uint32_t id = 0; id < pool->num_blocks; id++) {
        if (pool->ref_cnts[id] == 0 && !seen[id])
            return pkv_fail(err, PKV_ERR_AUDIT,
                            "P1: block %u has no holder and is not in the free queue", id);
        num_held += pool->ref_cnts[id] > 0;
        num_holds += pool->ref_cnts[id];
    }
    if (length != pool->num_free)
        return pkv_fail(err, PKV_ERR_AUDIT, "P2: %u blocks in the free queue, %u counted", length,
                        pool->num_free);
    if (num_holds != pool->num_holds)
        return pkv_fail(err, PKV_ERR_AUDIT, "P4: %" PRIu64 " holds in all blocks, %" PRIu64 " counted",
                        num_holds, pool->num_holds);
    const struct pkv_pool_counts *c = &pool->counts;
    if (c->allocated + c->revived != c->released + num_held)
        return pkv_fail(err, PKV_ERR_AUDIT,
                        "P3: %" PRIu64 " allocated and %" PRIu64 " revived, but %" PRIu64
                        " released and %" PRIu64 " held",
                        c->allocated, c->revived, c->released, num_held);
    return 0;
}

int pkv_pool_check(const struct pkv_pool *pool, struct pkv_err *err)
{
    int result = -1;
    pkv_block_id *queue = pkv_alloc(pool->num_blocks, sizeof(*queue), err);
    unsigned char *seen = pkv_alloc(pool->num_blocks, 1, err);
    if (!queue || !seen)
        goto out;
    uint32_t length = pkv_pool_list_free(pool, queue);
    result = check_queue(pool, queue, length, seen, err);
    if (result == 0)
        result = check_counts(pool, length, seen, err);
out:
    pkv_free(seen);
    pkv_free(queue);
    return result;
}
