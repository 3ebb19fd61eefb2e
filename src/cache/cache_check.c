/*
 * cache_check.c - recount the cache from the sequences that hold its blocks: C1 to C10 of cache.h.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "cache/cache_private.h"

/* What the sequences say about each block. */
struct recount {
    uint32_t *holders;   /* [num_blocks] */
    uint32_t *fill;      /* [num_blocks]: positions in it, seen by the holder with the most */
};

/* The identity that block i of a table has to have. */
static uint64_t identity(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                         uint32_t i)
{
    const struct pkv_group_config *config = &cache->groups[group];
    uint32_t align = cache->align / config->block_size;
    if (i >= seq->tables[group].num_published)
        return PKV_NO_KEY;
    if (config->ops->is_hashed && !config->ops->is_hashed(config, i, align))
        return PKV_NO_KEY;
    return cache_key_at(seq, group, (i + 1) * (config->block_size / cache->unit));
}

static int check_published(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                           struct pkv_err *err)
{
    const struct pkv_table *table = &seq->tables[group];
    uint32_t size = cache->groups[group].block_size;
    bool counts = cache->prefix_cache && !cache->has_forked;
    for (uint32_t i = table->num_null; counts && i < table->num; i++) {
        bool published = i < table->num_published;
        uint64_t key = cache->index.records[table->ids[i]].key;
        uint64_t want = identity(cache, seq, group, i);
        bool full = (uint64_t)(i + 1) * size <= seq->num_computed_tokens;
        if (key != want || (published && !full))
            return pkv_fail(err, PKV_ERR_AUDIT, "C7: block %u of a table of %u, %u published, has "
                            "the key %016" PRIx64 ", not %016" PRIx64, i, table->num,
                            table->num_published, key, want);
    }
    return 0;
}

static int check_null(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                      struct pkv_err *err)
{
    const struct pkv_table *table = &seq->tables[group];
    const struct pkv_group_config *config = &cache->groups[group];
    uint32_t num_out = 0, num_null = 0, num_leading = 0;
    if (config->ops->num_out)
        num_out = config->ops->num_out(config, seq->num_computed_tokens - seq->num_flying_tokens);
    for (uint32_t i = 0; i < table->num; i++) {
        num_leading += table->ids[i] == PKV_BLOCK_NULL && i == num_null;
        num_null += table->ids[i] == PKV_BLOCK_NULL;
    }
    if (num_null == table->num_null && num_leading == num_null && num_null <= num_out)
        return 0;
    return pkv_fail(err, PKV_ERR_AUDIT, "C8: %u null blocks in a table, %u of them at its beginning, "
                    "%u counted, %u are out of the window", num_null, num_leading, table->num_null,
                    num_out);
}

static int count_table(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                       struct recount *r, struct pkv_err *err)
{
    const struct pkv_table *table = &seq->tables[group];
    const struct pkv_group_config *config = &cache->groups[group];
    uint64_t want = config->ops->table_blocks(config, seq->num_computed_tokens);
    uint64_t most = config->ops->table_blocks(
        config, (uint64_t)seq->num_computed_tokens + cache->max_ahead_tokens);
    if (table->num < want || (table->num > most && !cache->takes_runs))
        return pkv_fail(err, PKV_ERR_AUDIT, "C6: a table of %u blocks for %u computed positions",
                        table->num, seq->num_computed_tokens);
    if (check_null(cache, seq, group, err) < 0)
        return -1;
    for (uint32_t i = table->num_null; i < table->num; i++) {
        pkv_block_id id = table->ids[i];
        if (id >= pkv_pool_num_blocks(cache->pool))
            return pkv_fail(err, PKV_ERR_AUDIT, "C1: block %u in a table, the pool has %u", id,
                            pkv_pool_num_blocks(cache->pool));
        uint32_t fill = cache_fill(cache, seq, group, i);
        r->holders[id]++;
        r->fill[id] = fill > r->fill[id] ? fill : r->fill[id];
    }
    return check_published(cache, seq, group, err);
}

static int check_copies(const struct pkv_cache *cache, const struct pkv_seq *const *seqs,
                        size_t num_seqs, struct pkv_err *err)
{
    uint64_t num = 0;
    for (size_t i = 0; i < num_seqs; i++) {
        const struct pkv_table *copies = &seqs[i]->copies;
        num += copies->num;
        for (uint32_t k = 0; k < copies->num; k++)
            if ((k > 0 && copies->ids[k - 1] >= copies->ids[k]) ||
                (uint64_t)copies->ids[k] * cache->block_size >= seqs[i]->num_copied_tokens)
                return pkv_fail(err, PKV_ERR_AUDIT, "C10: copy %u is of block %u of a sequence of %u "
                                "positions", k, copies->ids[k], seqs[i]->num_copied_tokens);
    }
    if (num != cache->num_host_used || num > cache->num_host_blocks)
        return pkv_fail(err, PKV_ERR_AUDIT, "C10: %" PRIu64 " copies on the host, %u counted, room for "
                        "%u", num, cache->num_host_used, cache->num_host_blocks);
    return 0;
}

/* What transfers hold, seen as a sequence's table is. */
static int count_transfers(const struct pkv_cache *cache, struct recount *r, struct pkv_err *err)
{
    for (size_t t = 0; t < cache->num_transfers; t++) {
        const struct transfer *transfer = &cache->transfers[t];
        for (uint32_t i = 0; i < transfer->held.num; i++) {
            pkv_block_id id = transfer->held.ids[i];
            uint32_t fill = positions_in_block(transfer->num_positions, i, cache->block_size);
            if (id == PKV_BLOCK_NULL)
                continue;
            if (id >= pkv_pool_num_blocks(cache->pool))
                return pkv_fail(err, PKV_ERR_AUDIT, "C1: block %u in a transfer, the pool has %u", id,
                                pkv_pool_num_blocks(cache->pool));
            r->holders[id]++;
            r->fill[id] = fill > r->fill[id] ? fill : r->fill[id];
        }
    }
    return 0;
}

static int check_holders(const struct pkv_cache *cache, const struct recount *r,
                         struct pkv_err *err)
{
    uint64_t num_stored = 0;
    uint32_t num_cached = 0;
    for (uint32_t id = 0; id < pkv_pool_num_blocks(cache->pool); id++) {
        uint32_t ref_cnt = pkv_pool_ref_cnt(cache->pool, id);
        if (ref_cnt != r->holders[id])
            return pkv_fail(err, PKV_ERR_AUDIT,
                            "C1: block %u has reference count %u and stands in %u tables", id,
                            ref_cnt, r->holders[id]);
        num_stored += r->fill[id];
        num_cached += ref_cnt == 0 && cache->prefix_cache &&
                      cache->index.records[id].key != PKV_NO_KEY;
    }
    if (num_cached != cache->num_cached)
        return pkv_fail(err, PKV_ERR_AUDIT, "C4: %u free blocks have a key, %u counted", num_cached,
                        cache->num_cached);
    if (num_stored != cache->num_stored)
        return pkv_fail(err, PKV_ERR_AUDIT, "C5: %" PRIu64 " positions stored, %" PRIu64 " counted",
                        num_stored, cache->num_stored);
    return 0;
}

static int check_index(const struct prefix_index *index, struct pkv_err *err)
{
    uint32_t num_keyed = 0, num_found = 0, num_keys = 0;
    for (uint32_t id = 0; id < index->num_blocks; id++)
        num_keyed += index->records[id].key != PKV_NO_KEY;
    for (uint64_t head = 0; index->heads && head <= index->mask; head++) {
        for (pkv_block_id id = index->heads[head]; id != PKV_BLOCK_NULL;
             id = index->records[id].next) {
            const struct index_record *record = &index->records[id];
            if ((record->key & index->mask) != head || record->key == PKV_NO_KEY ||
                prefix_index_find(index, record->key) != id || num_keys++ > index->num_blocks)
                return pkv_fail(err, PKV_ERR_AUDIT, "C2: block %u stands in bucket %" PRIu64 ", its key "
                                "is %016" PRIx64, id, head, record->key);
            pkv_block_id other = id;
            do {
                num_found++;
                const struct index_record *hung = &index->records[other];
                if (hung->key != record->key || num_found > num_keyed ||
                    index->records[hung->younger].older != other)
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

static int check_indexes(const struct pkv_cache *cache, struct pkv_err *err)
{
    const struct prefix_index *second = &cache->second;
    if (check_index(&cache->index, err) < 0 || check_index(second, err) < 0)
        return -1;
    for (uint32_t id = 0; id < second->num_blocks; id++)
        if (second->records[id].key != PKV_NO_KEY && !cache_has_key(cache, id))
            return pkv_fail(err, PKV_ERR_AUDIT, "C9: block %u has the second key %016" PRIx64
                            " and no first one", id, second->records[id].key);
    return 0;
}

int pkv_cache_check(const struct pkv_cache *cache, const struct pkv_seq *const *seqs,
                    size_t num_seqs, struct pkv_err *err)
{
    int result = -1;
    struct recount r = {
        .holders = pkv_alloc(pkv_pool_num_blocks(cache->pool), sizeof(*r.holders), err),
        .fill = pkv_alloc(pkv_pool_num_blocks(cache->pool), sizeof(*r.fill), err),
    };
    if (!r.holders || !r.fill || check_indexes(cache, err) < 0)
        goto out;
    for (size_t i = 0; i < num_seqs; i++)
        for (uint32_t g = 0; g < cache->num_groups; g++)
            if (count_table(cache, seqs[i], g, &r, err) < 0)
                goto out;
    if (count_transfers(cache, &r, err) < 0 || check_holders(cache, &r, err) < 0 ||
        check_copies(cache, seqs, num_seqs, err) < 0)
        goto out;
    result = pkv_pool_check(cache->pool, err);
out:
    pkv_free(r.holders);
    pkv_free(r.fill);
    return result;
}
