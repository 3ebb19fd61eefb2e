/*
 * lookup.c - which cached blocks begin a text, and whether that could have changed.
 *
 * A look-up changes nothing. With several groups a hit has to be one for each: every group is asked
 * for its longest one, each may shorten what the next is asked for, and it goes round until nobody
 * does. What a group can hit does not depend on the others, so the order of asking does not matter.
 *
 * Source: vllm/v1/core/kv_cache_manager.py and kv_cache_coordinator.py.
 */
#include "cache/cache_private.h"

pkv_block_id group_look_up(const struct group_look *look, uint32_t index)
{
    uint64_t key = look->keys[(index + 1) * look->units_per_block - 1];
    return prefix_index_find(look->index, cache_group_key(key, look->group));
}

void cache_forget_keys(struct pkv_cache *cache, pkv_block_id id)
{
    prefix_index_remove(&cache->index, id);
    if (cache->second.records && cache->second.records[id].key != PKV_NO_KEY)
        prefix_index_remove(&cache->second, id);
}

/* --- finding --------------------------------------------------------------------------------- */

/* The longest hit of one group that ends where blocks of all groups do, of at most *tokens. */
static void find_of_group(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t g,
                          pkv_block_id *out, uint32_t *tokens)
{
    const struct pkv_group_config *group = &cache->groups[g];
    const struct group_look look = {
        .index = &cache->index,
        .keys = seq->keys,
        .config = group,
        .group = g,
        .units_per_block = group->block_size / cache->unit,
        .align_blocks = cache->align / group->block_size,
    };
    uint32_t num = group->ops->find(&look, *tokens / group->block_size, out);
    uint32_t found = num * group->block_size;
    *tokens = found - found % cache->align;
}

/* Every group's blocks lie behind one another in the scratch, each with room for the whole text. */
static uint32_t find_tokens(const struct pkv_cache *cache, const struct pkv_seq *seq,
                            pkv_block_id *const *outs)
{
    uint32_t tokens = seq_identified(seq, seq->num_known_tokens - 1), asked;
    tokens -= tokens % cache->align;
    bool has_full[PKV_MAX_GROUPS] = {false};
    do {
        asked = tokens;
        for (uint32_t g = 0; g < cache->num_groups; g++) {
            if (!has_full[g])
                find_of_group(cache, seq, g, outs[g], &tokens);
            has_full[g] = cache->groups[g].ops == &pkv_group_full;   /* shorter ones are in it */
        }
    } while (tokens < asked);
    return tokens;
}

void cache_find_common(struct pkv_cache *cache, const struct pkv_seq *seq, struct pkv_hit *out_hit)
{
    pkv_block_id *outs[PKV_MAX_GROUPS];
    size_t begin = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        outs[g] = cache->hit_blocks + begin;
        begin += (seq->num_known_tokens - 1) / cache->groups[g].block_size;
    }
    PKV_ASSERT(begin <= cache->hit_capacity);
    uint32_t found = find_tokens(cache, seq, outs);
    out_hit->num_dropped_blocks = cache->drops_last_hit && found > 0;
    out_hit->num_tokens = found - out_hit->num_dropped_blocks * cache->align;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        uint32_t num = out_hit->num_tokens / cache->groups[g].block_size, num_null = 0;
        while (num_null < num && outs[g][num_null] == PKV_BLOCK_NULL)
            num_null++;
        out_hit->blocks[g] = outs[g];
        out_hit->num_blocks[g] = num;
        out_hit->num_null[g] = num_null;
        for (uint32_t i = num_null; i < num; i++)
            out_hit->num_free_blocks += pkv_pool_ref_cnt(cache->pool, outs[g][i]) == 0;
    }
}

void pkv_cache_find_prefix(struct pkv_cache *cache, const struct pkv_seq *seq,
                           struct pkv_hit *out_hit)
{
    *out_hit = (struct pkv_hit){0};
    if (!cache->prefix_cache)
        return;
    PKV_ASSERT(seq_identified(seq, seq->num_known_tokens - 1) / cache->unit <= seq->num_keys);
    cache_find_common(cache, seq, out_hit);
}

/* --- watching -------------------------------------------------------------------------------- */

void pkv_cache_watch(struct pkv_cache *cache, const struct pkv_seq *seq, const struct pkv_hit *hit)
{
    uint32_t next = hit->num_blocks[0] + hit->num_dropped_blocks;
    bool may_grow = cache->prefix_cache && next < seq->num_keys;
    if (!cache->is_plain) {   /* a window can find another run anywhere */
        cache->is_watching = cache->prefix_cache;
        return;
    }
    cache->watched_key = may_grow ? seq->keys[next] : PKV_NO_KEY;
    if (!cache->prefix_cache)
        return;
    cache->is_watching = true;
    cache->watch++;
    for (uint32_t i = 0; i < next; i++)
        cache->index.records[hit->blocks[0][i]].watch = cache->watch;
}

/* The first change of a block that is watched is told; then nobody watches any more. */
void cache_tell_changes(struct pkv_cache *cache, const pkv_block_id *ids, uint32_t num)
{
    const struct index_record *records = cache->index.records;
    uint32_t i = 0;
    while (cache->is_plain && i < num && records[ids[i]].watch != cache->watch)
        i++;
    if (i == num)
        return;
    cache->version++;
    cache->is_watching = false;
}

uint64_t pkv_cache_version(const struct pkv_cache *cache)
{
    return cache->version;
}
