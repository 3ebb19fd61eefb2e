/*
 * publish.c - full blocks get the identities under which look-ups find them, and lose them again.
 *
 * Blocks are hashed as soon as their tokens are scheduled (publish: alloc), so a twin in the same
 * step hits them, or when they are computed. With blocks of several sizes each group hashes only what
 * lies below the last multiple of their least common multiple, and a window only what a hit can use.
 *
 * A block of full attention that is larger than the unit of hashing has a second identity when the
 * prompt ends inside it: that of the prompt's last whole unit. No hit ends there; it is counted among
 * the keys, as the engine counts it, and goes with the block.
 *
 * Source: vllm/v1/core/single_type_kv_cache_manager.py, cache_blocks, and block_pool.py.
 */
#include "cache/cache_private.h"

static void enter_second(struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                         uint32_t index)
{
    const struct pkv_group_config *config = &cache->groups[group];
    uint64_t begin = (uint64_t)index * config->block_size, prompt = seq->num_prompt_tokens;
    uint64_t unit = prompt / cache->unit, end = begin + config->block_size;
    pkv_block_id id = seq->tables[group].ids[index];
    if (!config->ops->has_second_key || prompt >= end || unit * cache->unit <= begin)
        return;
    prefix_index_insert(&cache->second, id, cache_key_at(seq, group, (uint32_t)unit));
}

static void publish_table(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t g, uint32_t num)
{
    const struct pkv_group_config *group = &cache->groups[g];
    struct pkv_table *table = &seq->tables[g];
    uint32_t per_block = group->block_size / cache->unit, align = cache->align / group->block_size;
    uint32_t i = table->num_published > table->num_null ? table->num_published : table->num_null;
    for (; i < num; i++) {
        pkv_block_id id = table->ids[i];
        if (group->ops->is_hashed && !group->ops->is_hashed(group, i, align))
            continue;
        if (cache->index.records[id].key != PKV_NO_KEY)
            continue;   /* a fork entered it */
        uint64_t key = cache_key_at(seq, g, (i + 1) * per_block);
        prefix_index_insert(&cache->index, id, key);
        if (per_block > 1)
            enter_second(cache, seq, g, i);
        cache_note_changes(cache, &id, 1);
    }
    if (num > table->num_published)
        table->num_published = num;
}

/* The same for one group of full attention, where a unit is a block and every one counts. */
static void publish_plain(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num)
{
    struct pkv_table *table = &seq->tables[0];
    for (uint32_t i = table->num_published; i < num; i++) {
        uint64_t key = seq->keys[i];
        if (cache->index.records[table->ids[i]].key != PKV_NO_KEY)
            continue;   /* a fork entered it */
        prefix_index_insert(&cache->index, table->ids[i], key);
        if (key == cache->watched_key)
            cache->version++;
    }
    table->num_published = num;
}

void pkv_cache_publish_known(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_tokens)
{
    PKV_ASSERT(num_tokens <= seq->num_known_tokens && num_tokens <= seq->num_computed_tokens);
    if (!cache->prefix_cache)
        return;
    num_tokens = seq_identified(seq, num_tokens);
    num_tokens -= num_tokens % cache->align;
    if (cache->is_plain && num_tokens / cache->align <= seq->tables[0].num_published)
        return;
    if (num_tokens / cache->unit > seq->num_keys) {
        int hashed = seq_hash(cache, seq, num_tokens / cache->unit, NULL);
        PKV_ASSERT(hashed == 0);   /* prepare made room */
    }
    if (cache->is_plain) {
        publish_plain(cache, seq, num_tokens / cache->align);
        return;
    }
    for (uint32_t g = 0; g < cache->num_groups; g++)
        if (cache->groups[g].ops->stores_positions &&
            num_tokens / cache->groups[g].block_size > seq->tables[g].num_published)
            publish_table(cache, seq, g, num_tokens / cache->groups[g].block_size);
}

void pkv_cache_publish(struct pkv_cache *cache, struct pkv_seq *seq)
{
    uint32_t known = seq->num_known_tokens, computed = seq->num_computed_tokens;
    pkv_cache_publish_known(cache, seq, computed < known ? computed : known);
}

void pkv_cache_unpublish(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_tokens)
{
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        uint32_t keep = num_tokens / cache->groups[g].block_size;
        while (table->num_published > keep) {
            pkv_block_id id = table->ids[--table->num_published];
            if (id == PKV_BLOCK_NULL || !cache_has_key(cache, id))
                continue;   /* it had none, or another holder has taken it back */
            cache_forget_keys(cache, id);
            cache_note_changes(cache, &id, 1);
        }
    }
}
