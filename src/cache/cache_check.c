/*
 * cache_check.c - recount the cache from the sequences that hold its blocks: C1 to C6 of cache.h.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "cache/cache_private.h"

/* What the sequences say about each block. */
struct recount {
    uint32_t *holders;   /* [num_blocks] */
    uint32_t *fill;      /* [num_blocks]: positions in it, seen by the holder with the most */
};

static int count_table(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                       struct recount *r, struct pkv_err *err)
{
    const struct pkv_table *table = &seq->tables[group];
    if ((uint64_t)table->num * cache->block_size < seq->num_computed_tokens)
        return pkv_fail(err, PKV_ERR_AUDIT, "C6: a table of %u blocks for %u computed positions",
                        table->num, seq->num_computed_tokens);
    for (uint32_t i = 0; i < table->num; i++) {
        pkv_block_id id = table->ids[i];
        if (id >= cache->index.num_blocks)
            return pkv_fail(err, PKV_ERR_AUDIT, "C1: block %u in a table, the pool has %u", id,
                            cache->index.num_blocks);
        uint32_t fill = positions_in_block(seq->num_computed_tokens, i, cache->block_size);
        r->holders[id]++;
        r->fill[id] = fill > r->fill[id] ? fill : r->fill[id];
    }
    return 0;
}

static int check_holders(const struct pkv_cache *cache, const struct recount *r,
                         struct pkv_err *err)
{
    uint64_t num_stored = 0;
    uint32_t num_cached = 0;
    for (uint32_t id = 0; id < cache->index.num_blocks; id++) {
        uint32_t ref_cnt = pkv_pool_ref_cnt(cache->pool, id);
        if (ref_cnt != r->holders[id])
            return pkv_fail(err, PKV_ERR_AUDIT,
                            "C1: block %u has reference count %u and stands in %u tables", id,
                            ref_cnt, r->holders[id]);
        num_stored += r->fill[id];
        num_cached += ref_cnt == 0 && cache->index.records[id].key != PKV_NO_KEY;
    }
    if (num_cached != cache->num_cached)
        return pkv_fail(err, PKV_ERR_AUDIT, "C4: %u free blocks have a key, %u counted", num_cached,
                        cache->num_cached);
    if (num_stored != cache->num_stored)
        return pkv_fail(err, PKV_ERR_AUDIT, "C5: %" PRIu64 " positions stored, %" PRIu64 " counted",
                        num_stored, cache->num_stored);
    return 0;
}

static int check_index(const struct pkv_cache *cache, struct pkv_err *err)
{
    const struct prefix_index *index = &cache->index;
    uint32_t num_keyed = 0, num_found = 0, num_keys = 0;
    for (uint32_t id = 0; id < index->num_blocks; id++)
        num_keyed += index->records[id].key != PKV_NO_KEY;
    for (uint32_t head = 0; head <= index->mask; head++) {
        for (pkv_block_id id = index->heads[head]; id != PKV_BLOCK_NULL;
             id = index->records[id].next) {
            const struct index_record *record = &index->records[id];
            if ((record->key & index->mask) != head || record->key == PKV_NO_KEY ||
                prefix_index_find(index, record->key) != id || num_keys++ > index->num_blocks)
                return pkv_fail(err, PKV_ERR_AUDIT, "C2: block %u stands in bucket %u, its key is "
                                "%016" PRIx64, id, head, record->key);
            pkv_block_id other = id;
            do {
                num_found++;
                if (index->records[other].key != record->key || num_found > num_keyed)
                    return pkv_fail(err, PKV_ERR_AUDIT, "C2: block %u hangs on block %u, whose key "
                                    "is another", other, id);
                other = index->records[other].younger;
            } while (other != id);
        }
    }
    if (num_found != num_keyed)
        return pkv_fail(err, PKV_ERR_AUDIT, "C2: %u blocks have a key, %u are found", num_keyed,
                        num_found);
    if (num_keys != index->num_keys)
        return pkv_fail(err, PKV_ERR_AUDIT, "C3: %u different keys, %u counted", num_keys,
                        index->num_keys);
    return 0;
}

int pkv_cache_check(const struct pkv_cache *cache, const struct pkv_seq *const *seqs,
                    size_t num_seqs, struct pkv_err *err)
{
    int result = -1;
    struct recount r = {
        .holders = pkv_alloc(cache->index.num_blocks, sizeof(*r.holders), err),
        .fill = pkv_alloc(cache->index.num_blocks, sizeof(*r.fill), err),
    };
    if (!r.holders || !r.fill)
        goto out;
    for (size_t i = 0; i < num_seqs; i++)
        for (uint32_t g = 0; g < cache->num_groups; g++)
            if (count_table(cache, seqs[i], g, &r, err) < 0)
                goto out;
    if (check_holders(cache, &r, err) < 0 || check_index(cache, err) < 0)
        goto out;
    result = pkv_pool_check(cache->pool, err);
out:
    pkv_free(r.holders);
    pkv_free(r.fill);
    return result;
}
