/*
 * pool.c - reference counts, and who holds a block when the last holder has left.
 *
 * The pool knows counts only: which free block is taken next is the layout's and the evict policy's
 * business. Taking is all or nothing, so a taker that fails has nothing to undo.
 */
#include "pool/pool_private.h"

#include "base/alloc.h"

static int create_free_blocks(struct pkv_pool *pool, uint64_t seed, struct pkv_err *err)
{
    uint32_t num = pool->num_blocks;
    if (pool->layout->create) {
        pool->layout_state = pool->layout->create(num, err);
        return pool->layout_state ? 0 : -1;
    }
    pool->free_blocks = pool->evict->create(num, seed, err);
    if (!pool->free_blocks)
        return -1;
    const struct pkv_evict_hint nothing = {.next_use = UINT64_MAX};
    for (pkv_block_id id = 0; id < num; id++)
        pool->evict->push(pool->free_blocks, &id, 1, PKV_END_TAIL,
                          pool->evict->needs_hint ? &nothing : NULL);
    return 0;
}

struct pkv_pool *pkv_pool_create(const struct pkv_pool_config *config, struct pkv_err *err)
{
    if (config->num_blocks == 0 || config->num_blocks > INT32_MAX) {
        pkv_fail(err, PKV_ERR_INPUT, "a pool has 1 to %d blocks, not %u", INT32_MAX,
                 config->num_blocks);
        return NULL;
    }
    struct pkv_pool *pool = pkv_alloc(1, sizeof(*pool), err);
    if (!pool)
        return NULL;
    pool->num_blocks = config->num_blocks;
    pool->num_free = config->num_blocks;
    pool->layout = config->layout;
    pool->evict = config->evict;
    pool->ref_cnts = pkv_alloc(config->num_blocks, sizeof(*pool->ref_cnts), err);
    if (!pool->ref_cnts || create_free_blocks(pool, config->seed, err) < 0) {
        pkv_pool_destroy(pool);
        return NULL;
    }
    return pool;
}

void pkv_pool_destroy(struct pkv_pool *pool)
{
    if (!pool)
        return;
    if (pool->layout_state)
        pool->layout->destroy(pool->layout_state);
    if (pool->free_blocks)
        pool->evict->destroy(pool->free_blocks);
    pkv_free(pool->ref_cnts);
    pkv_free(pool);
}

enum pkv_alloc pkv_pool_take(struct pkv_pool *pool, uint32_t num, pkv_block_id *out)
{
    if (num > pool->num_free)
        return PKV_ALLOC_SHORT;
    if (pool->free_blocks)
        pool->evict->pop(pool->free_blocks, num, out);
    else if (!pool->layout->take(pool->layout_state, num, out))
        return PKV_ALLOC_SHORT;
    for (uint32_t i = 0; i < num; i++)
        pool->ref_cnts[out[i]] = 1;
    pool->num_free -= num;
    pool->num_holds += num;
    pool->counts.allocated += num;
    return PKV_ALLOC_OK;
}

bool pkv_pool_ref(struct pkv_pool *pool, pkv_block_id id)
{
    PKV_ASSERT(id < pool->num_blocks && pool->ref_cnts[id] < UINT32_MAX);
    pool->num_holds++;
    if (pool->ref_cnts[id]++ > 0)
        return false;
    PKV_ASSERT(pool->free_blocks);   /* a free block of a run has no content to come back to */
    pool->evict->remove(pool->free_blocks, id);
    pool->num_free--;
    pool->counts.revived++;
    return true;
}

uint32_t pkv_pool_unref(struct pkv_pool *pool, const pkv_block_id *ids, uint32_t num,
                        enum pkv_pool_end end, const struct pkv_evict_hint *hints,
                        pkv_block_id *out)
{
    uint32_t num_freed = 0;
    for (uint32_t i = 0; i < num; i++) {
        pkv_block_id id = ids[i];
        PKV_ASSERT(id < pool->num_blocks && pool->ref_cnts[id] > 0);
        if (--pool->ref_cnts[id] > 0)
            continue;
        if (hints)   /* each by itself, next to its hint */
            pool->evict->push(pool->free_blocks, &id, 1, end, &hints[i]);
        out[num_freed++] = id;
    }
    if (pool->layout_state)
        pool->layout->give(pool->layout_state, out, num_freed);
    else if (!hints)
        pool->evict->push(pool->free_blocks, out, num_freed, end, NULL);
    pool->num_holds -= num;
    pool->num_free += num_freed;
    pool->counts.released += num_freed;
    return num_freed;
}

uint32_t pkv_pool_ref_cnt(const struct pkv_pool *pool, pkv_block_id id)
{
    PKV_ASSERT(id < pool->num_blocks);
    return pool->ref_cnts[id];
}

uint32_t pkv_pool_num_free(const struct pkv_pool *pool)
{
    return pool->num_free;
}

uint64_t pkv_pool_num_holds(const struct pkv_pool *pool)
{
    return pool->num_holds;
}

uint32_t pkv_pool_num_blocks(const struct pkv_pool *pool)
{
    return pool->num_blocks;
}

struct pkv_pool_counts pkv_pool_counts(const struct pkv_pool *pool)
{
    return pool->counts;
}

uint32_t pkv_pool_reserve_blocks(const struct pkv_pool *pool, uint32_t num_prompt_tokens,
                                 uint32_t num_positions, uint32_t max_model_len,
                                 uint32_t block_size)
{
    if (!pool->layout_state)
        return 0;
    return pool->layout->reserve_blocks(pool->layout_state, num_prompt_tokens, num_positions,
                                        max_model_len, block_size);
}

uint32_t pkv_pool_list_free(const struct pkv_pool *pool, pkv_block_id *out)
{
    if (!pool->layout_state)
        return pool->evict->list(pool->free_blocks, out);
    return pool->layout->list_free(pool->layout_state, out);
}
