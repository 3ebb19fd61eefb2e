/*
 * prefix_index.c - identity to block, in memory fixed at create.
 *
 * Chains of u32 through the block records, at most half as many blocks as buckets. Several blocks
 * may have one identity: the oldest answers, and evicting one leaves the others (vLLM V1,
 * vllm/v1/core/block_pool.py, BlockHashToBlockMap).
 */
#include "base/alloc.h"
#include "cache/cache_private.h"

int prefix_index_init(struct prefix_index *index, uint32_t num_blocks, struct pkv_err *err)
{
    size_t num_heads = 8;
    while (num_heads / 2 < num_blocks)
        num_heads *= 2;
    index->records = pkv_alloc(num_blocks, sizeof(*index->records), err);
    index->heads = pkv_alloc(num_heads, sizeof(*index->heads), err);
    if (!index->records || !index->heads)
        return -1;
    index->num_blocks = num_blocks;
    index->mask = (uint32_t)(num_heads - 1);
    for (size_t i = 0; i < num_heads; i++)
        index->heads[i] = PKV_BLOCK_NULL;
    return 0;
}

void prefix_index_finish(struct prefix_index *index)
{
    pkv_free(index->records);
    pkv_free(index->heads);
}

pkv_block_id prefix_index_find(const struct prefix_index *index, uint64_t key)
{
    pkv_block_id id = index->heads[key & index->mask];
    while (id != PKV_BLOCK_NULL && index->records[id].key != key)
        id = index->records[id].next;
    return id;
}

void prefix_index_insert(struct prefix_index *index, pkv_block_id id, uint64_t key)
{
    struct index_record *record = &index->records[id];
    PKV_ASSERT(record->key == PKV_NO_KEY && key != PKV_NO_KEY);
    record->key = key;
    uint32_t *slot = &index->heads[key & index->mask];
    pkv_block_id oldest = *slot;
    while (oldest != PKV_BLOCK_NULL && index->records[oldest].key != key)
        oldest = index->records[oldest].next;
    if (oldest == PKV_BLOCK_NULL) {
        record->older = record->younger = id;
        record->next = *slot;
        *slot = id;
        index->num_keys++;
        index->num_changes++;
        return;
    }
    uint32_t youngest = index->records[oldest].older;   /* before the oldest in the ring */
    record->older = youngest;
    record->younger = oldest;
    index->records[youngest].younger = id;
    index->records[oldest].older = id;
}

/* The place that points at id in its bucket's chain; NULL when it is a younger duplicate. */
static uint32_t *chain_slot(struct prefix_index *index, pkv_block_id id)
{
    uint32_t *slot = &index->heads[index->records[id].key & index->mask];
    while (*slot != id) {
        if (*slot == PKV_BLOCK_NULL)
            return NULL;
        slot = &index->records[*slot].next;
    }
    return slot;
}

void prefix_index_remove(struct prefix_index *index, pkv_block_id id)
{
    struct index_record *record = &index->records[id];
    PKV_ASSERT(record->key != PKV_NO_KEY);
    uint32_t *slot = chain_slot(index, id);
    record->key = PKV_NO_KEY;
    if (record->younger == id) {   /* the only one with its key, so it is in the chain */
        *slot = record->next;
        index->num_keys--;
        index->num_changes++;
        return;
    }
    if (slot) {
        *slot = record->younger;
        index->records[record->younger].next = record->next;
    }
    index->records[record->older].younger = record->younger;
    index->records[record->younger].older = record->older;
}
