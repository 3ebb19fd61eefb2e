/*
 * release.c - giving blocks back, and in which order they will be lost.
 *
 * All go to the tail of the free queue, last block first; but blocks without identity may go to the
 * head, and then first block first, so that the last one ends foremost. Groups go one after another,
 * so the last group's blocks without identity end up foremost of all. What leaves a window goes back
 * in the same order, before the next blocks are taken.
 *
 * Source: vllm/v1/core/block_pool.py, free_blocks.
 */
#include "cache/cache_private.h"

uint32_t cache_unref(struct pkv_cache *cache, const pkv_block_id *ids, uint32_t num, bool keyed,
                     uint32_t depth, int step, uint32_t fill)
{
    enum pkv_pool_end end = keyed || !cache->prefix_cache ? PKV_END_TAIL : cache->unhashed_free;
    struct pkv_evict_hint *hints = NULL;
    if (cache->needs_hint) {
        hints = cache->hints;
        for (uint32_t i = 0; i < num; i++, depth += (uint32_t)step)
            hints[i] = (struct pkv_evict_hint){.depth = depth, .next_use = UINT64_MAX};
    }
    uint32_t num_freed = pkv_pool_unref(cache->pool, ids, num, end, hints, cache->freed);
    cache_note_changes(cache, cache->freed, num_freed);
    if (keyed)
        cache->num_cached += num_freed;
    cache->num_stored -= (uint64_t)num_freed * fill;
    return num_freed;
}

uint32_t cache_fill(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                    uint32_t index)
{
    const struct pkv_group_config *config = &cache->groups[group];
    if (!config->ops->stores_positions)
        return 0;
    return positions_in_block(seq->num_computed_tokens, index, config->block_size);
}

/* Blocks begin .. end - 1 of a table, all with an identity or all without, all with `fill` positions;
 * in their order or last one first. */
static uint32_t release_range(struct pkv_cache *cache, struct pkv_table *table, uint32_t begin,
                              uint32_t end, bool keyed, bool backwards, uint32_t fill)
{
    uint32_t num = end - begin;
    pkv_block_id *ids = table->ids + begin;
    for (uint32_t i = 0; backwards && i < num / 2; i++) {
        pkv_block_id id = ids[i];
        ids[i] = ids[num - 1 - i];
        ids[num - 1 - i] = id;
    }
    if (num == 0)
        return 0;
    return backwards ? cache_unref(cache, ids, num, keyed, end - 1, -1, fill)
                     : cache_unref(cache, ids, num, keyed, begin, 1, fill);
}

static uint32_t release_one(struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t g,
                            uint32_t i)
{
    const pkv_block_id *id = &seq->tables[g].ids[i];
    return cache_unref(cache, id, 1, cache_has_key(cache, *id), i, 1, cache_fill(cache, seq, g, i));
}

static bool goes_to_head(const struct pkv_cache *cache)
{
    return cache->prefix_cache && cache->unhashed_free == PKV_END_HEAD;
}

/* Blocks begin .. end - 1 of a table that does not say which of them have an identity: after a fork,
 * or in a window that hashes only some. None is null. */
static uint32_t release_each(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t g,
                             uint32_t begin, uint32_t end)
{
    const pkv_block_id *ids = seq->tables[g].ids;
    bool to_head = goes_to_head(cache);
    uint32_t num_freed = 0, keyed = begin;   /* most often all of those that are full come first */
    while (keyed < end && cache_has_key(cache, ids[keyed]))
        keyed++;
    for (uint32_t i = end; i-- > keyed;)
        if (!to_head || cache_has_key(cache, ids[i]))
            num_freed += release_one(cache, seq, g, i);
    num_freed += release_range(cache, &seq->tables[g], begin, keyed, true, true,
                               cache->groups[g].block_size);
    for (uint32_t i = keyed; to_head && i < end; i++)
        if (!cache_has_key(cache, ids[i]))
            num_freed += release_one(cache, seq, g, i);
    return num_freed;
}

/* One group of full attention: published blocks come first in a table, then full ones without
 * identity, then those that are not full. */
static uint32_t release_plain(struct pkv_cache *cache, const struct pkv_seq *seq,
                              struct pkv_table *table)
{
    uint32_t num_freed = 0, full = seq->num_computed_tokens / cache->block_size;
    uint32_t published = table->num_published, size = cache->block_size;
    bool to_head = goes_to_head(cache);
    PKV_ASSERT(published <= full && full <= table->num);
    for (uint32_t i = table->num; !to_head && i-- > full;)
        num_freed += release_one(cache, seq, 0, i);
    if (!to_head)
        num_freed += release_range(cache, table, published, full, false, true, size);
    num_freed += release_range(cache, table, 0, published, true, true, size);
    if (to_head)
        num_freed += release_range(cache, table, published, full, false, false, size);
    for (uint32_t i = full; to_head && i < table->num; i++)
        num_freed += release_one(cache, seq, 0, i);
    return num_freed;
}

uint32_t pkv_cache_release(struct pkv_cache *cache, struct pkv_seq *seq)
{
    uint32_t num_freed = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        if (cache->is_plain && !cache->has_forked)
            num_freed += release_plain(cache, seq, table);
        else
            num_freed += release_each(cache, seq, g, table->num_null, table->num);
        pkv_slab_give(&cache->slab, table->ids, table->capacity, sizeof(*table->ids));
        *table = (struct pkv_table){0};
    }
    seq->num_computed_tokens = seq->num_flying_tokens = 0;
    pkv_cache_drop_copies(cache, seq);
    return num_freed;
}

static uint32_t num_out(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t g)
{
    const struct pkv_group_config *group = &cache->groups[g];
    const struct pkv_table *table = &seq->tables[g];
    if (!group->ops->num_out)
        return 0;
    uint32_t num = group->ops->num_out(group, seq->num_computed_tokens - seq->num_flying_tokens);
    if (cache->keeps_chunk_end && group->ops->keeps_chunk_end && table->num_published > 0 &&
        num >= table->num_published)
        num = table->num_published - 1;
    return num < table->num ? num : table->num;
}

bool pkv_cache_has_left_blocks(const struct pkv_cache *cache, const struct pkv_seq *seq)
{
    bool has_left = false;
    for (uint32_t g = 0; !cache->is_plain && g < cache->num_groups; g++)
        has_left |= num_out(cache, seq, g) > seq->tables[g].num_null;
    return has_left;
}

void cache_trim(struct pkv_cache *cache, struct pkv_seq *seq)
{
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        uint32_t end = num_out(cache, seq, g);
        if (end <= table->num_null)
            continue;
        release_each(cache, seq, g, table->num_null, end);
        for (; table->num_null < end; table->num_null++)
            table->ids[table->num_null] = PKV_BLOCK_NULL;
    }
}
