/*
 * fingerprint.c - what the free blocks hold, in the order in which they will be taken, as one number.
 *
 * With no block held, this is all that a cache's later answers depend on: the identities in free
 * order, and of equal ones which answers look-ups. Block ids do not matter.
 */
#include "base/alloc.h"
#include "base/mix.h"
#include "cache/cache_private.h"

int pkv_cache_fingerprint(const struct pkv_cache *cache, uint64_t *out, struct pkv_err *err)
{
    pkv_block_id *ids = pkv_alloc(pkv_pool_num_blocks(cache->pool), sizeof(*ids), err);
    if (!ids)
        return -1;
    uint32_t num = pkv_pool_list_free(cache->pool, ids);
    uint64_t hash = num;
    for (uint32_t i = 0; i < num; i++) {
        uint64_t key = cache->prefix_cache ? cache->index.records[ids[i]].key : PKV_NO_KEY;
        bool answers = key != PKV_NO_KEY && prefix_index_find(&cache->index, key) == ids[i];
        hash = pkv_mix(pkv_mix(hash, key), answers);
    }
    pkv_free(ids);
    *out = hash;
    return 0;
}
