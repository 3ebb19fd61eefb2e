/*
 * fingerprint.c - what a cache's later answers depend on, as one number.
 *
 * The blocks are numbered as they are met: table after table of those who hold some, then the free
 * ones in the order in which they will be taken. Of each the number tells who shares it, its
 * identity what a look-up finds, and its elder among those with the same identity which of them
 * answers. Block ids do not matter.
 */
#include "base/alloc.h"
#include "base/mix.h"
#include "cache/cache_private.h"

struct numbering {
    pkv_block_id *ids;     /* [num], owned: in the order in which they were met */
    uint32_t *numbers;     /* [blocks], in the same memory: 1 + place in ids; 0 = not met */
    uint32_t num;
};

static uint32_t meet(struct numbering *n, pkv_block_id id)
{
    if (n->numbers[id] == 0) {
        n->ids[n->num++] = id;
        n->numbers[id] = n->num;
    }
    return n->numbers[id];
}

static uint64_t mix_tables(const struct pkv_cache *cache, struct numbering *n, uint64_t hash,
                           const struct pkv_seq *seq)
{
    hash = pkv_mix(pkv_mix(hash, seq->num_known_tokens), seq->num_computed_tokens);
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        const struct pkv_table *table = &seq->tables[g];
        hash = pkv_mix(pkv_mix(hash, table->num), table->num_published);
        for (uint32_t i = 0; i < table->num; i++)
            hash = pkv_mix(hash, i < table->num_null ? 0 : meet(n, table->ids[i]));
    }
    return hash;
}

/* Who waits with copies has no blocks, but comes back to them. */
static uint64_t mix_copies(uint64_t hash, const struct pkv_seq *seq)
{
    hash = pkv_mix(pkv_mix(hash, seq->copies.num), seq->num_copied_tokens);
    for (uint32_t i = 0; i < seq->copies.num; i++)
        hash = pkv_mix(hash, seq->copies.ids[i]);
    return hash;
}

static uint64_t mix_transfers(const struct pkv_cache *cache, struct numbering *n, uint64_t hash)
{
    for (size_t t = 0; t < cache->num_transfers; t++) {
        const struct pkv_table *held = &cache->transfers[t].held;
        hash = pkv_mix(pkv_mix(hash, held->num), cache->transfers[t].num_positions);
        for (uint32_t i = 0; i < held->num; i++)
            hash = pkv_mix(hash, held->ids[i] == PKV_BLOCK_NULL ? 0 : meet(n, held->ids[i]));
    }
    return hash;
}

static uint64_t mix_identities(const struct pkv_cache *cache, const struct numbering *n,
                               uint64_t hash)
{
    for (uint32_t i = 0; cache->prefix_cache && i < n->num; i++) {
        const struct index_record *record = &cache->index.records[n->ids[i]];
        hash = pkv_mix(hash, record->key);
        if (record->key == PKV_NO_KEY)
            continue;
        hash = pkv_mix(hash, n->numbers[record->older]);
        hash = pkv_mix(hash, prefix_index_find(&cache->index, record->key) == n->ids[i]);
    }
    return hash;
}

int pkv_cache_fingerprint(const struct pkv_cache *cache, const struct pkv_seq *const *seqs,
                          size_t num_seqs, uint64_t *out, struct pkv_err *err)
{
    uint32_t num_blocks = pkv_pool_num_blocks(cache->pool);
    struct numbering n = {.ids = pkv_alloc(num_blocks, 2 * sizeof(uint32_t), err)};
    if (!n.ids)
        return -1;
    n.numbers = n.ids + num_blocks;
    uint64_t hash = num_seqs;
    for (size_t i = 0; i < num_seqs; i++)
        hash = mix_copies(mix_tables(cache, &n, hash, seqs[i]), seqs[i]);
    hash = mix_transfers(cache, &n, hash);
    uint32_t num_free = pkv_pool_list_free(cache->pool, n.ids + n.num);
    for (uint32_t i = 0; i < num_free; i++, n.num++)
        n.numbers[n.ids[n.num]] = n.num + 1;
    hash = mix_identities(cache, &n, pkv_mix(hash, num_free));
    pkv_free(n.ids);
    *out = hash;
    return 0;
}
