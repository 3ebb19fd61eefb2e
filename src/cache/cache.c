/*
 * cache.c - blocks for sequences: looking up, taking, publishing, giving back.
 *
 * A look-up changes nothing; a taker first asks what it needs, so that a refusal leaves no trace. A
 * free block keeps its identity until it is taken: there is no other eviction. Blocks are hashed as
 * soon as their tokens are scheduled (publish: alloc), so a twin in the same step hits them.
 *
 * Source: vllm/v1/core/kv_cache_manager.py and block_pool.py.
 */
#include "base/alloc.h"
#include "base/mix.h"
#include "cache/cache_private.h"

static int check_config(const struct pkv_cache_config *config, struct pkv_err *err)
{
    if (config->num_groups != 1)
        return pkv_fail(err, PKV_ERR_INPUT, "%u KV groups; this version has models of one",
                        config->num_groups);
    if (config->prefix_cache && config->pool.layout->create)
        return pkv_fail(err, PKV_ERR_INPUT, "layout %s gives blocks in one piece and cannot share "
                        "them: the prefix cache must be off", config->pool.layout->info.name);
    uint32_t size = config->groups[0].block_size;
    if (size == 0 || size > PKV_MAX_BLOCK_SIZE)
        return pkv_fail(err, PKV_ERR_INPUT, "a block has 1 to %u tokens, not %u",
                        PKV_MAX_BLOCK_SIZE, size);
    if (config->prefix_cache && config->pool.layout->create)
        return pkv_fail(err, PKV_ERR_INPUT, "layout %s keeps nothing to share: it goes without a "
                        "prefix cache", config->pool.layout->info.name);
    return 0;
}

struct pkv_cache *pkv_cache_create(const struct pkv_cache_config *config, struct pkv_err *err)
{
    if (check_config(config, err) < 0)
        return NULL;
    struct pkv_cache *cache = pkv_alloc(1, sizeof(*cache), err);
    if (!cache)
        return NULL;
    for (uint32_t g = 0; g < config->num_groups; g++)
        cache->groups[g] = config->groups[g];
    cache->num_groups = config->num_groups;
    cache->block_size = config->groups[0].block_size;
    cache->prefix_cache = config->prefix_cache;
    cache->unhashed_free = config->unhashed_free;
    cache->publish = config->publish;
    cache->takes_runs = config->pool.layout->create != NULL;
    cache->needs_hint = config->pool.evict->needs_hint && !cache->takes_runs;
    cache->pool = pkv_pool_create(&config->pool, err);
    bool made = cache->pool != NULL;
    if (made && cache->prefix_cache)
        made = prefix_index_init(&cache->index, config->pool.num_blocks, err) == 0;
    if (!made) {
        pkv_cache_destroy(cache);
        return NULL;
    }
    return cache;
}

void pkv_cache_destroy(struct pkv_cache *cache)
{
    if (!cache)
        return;
    prefix_index_finish(&cache->index);
    pkv_pool_destroy(cache->pool);
    pkv_free(cache->freed);
    pkv_free(cache->hints);
    pkv_slab_free(&cache->slab);
    pkv_free(cache->hit_blocks);
    pkv_free(cache->evicted);
    pkv_free(cache);
}

uint64_t cache_group_key(uint64_t key, uint32_t group)
{
    if (group == 0)
        return key;
    uint64_t mixed = pkv_mix(key, group);
    return mixed != PKV_NO_KEY ? mixed : 1;
}

/* --- looking up ------------------------------------------------------------------------------ */

void pkv_cache_find_prefix(struct pkv_cache *cache, const struct pkv_seq *seq,
                           struct pkv_hit *out_hit)
{
    *out_hit = (struct pkv_hit){0};
    if (!cache->prefix_cache)
        return;
    uint32_t num = (seq->num_known_tokens - 1) / cache->block_size;
    PKV_ASSERT(num <= seq->num_keys && cache->num_groups == 1);
    const struct pkv_group_config *group = &cache->groups[0];
    num = group->ops->find(&cache->index, seq->keys, num, cache->hit_blocks);
    out_hit->num_blocks[0] = num;
    out_hit->blocks[0] = cache->hit_blocks;
    out_hit->num_tokens = num * cache->block_size;
    for (uint32_t i = 0; i < num; i++)
        out_hit->num_free_blocks += pkv_pool_ref_cnt(cache->pool, cache->hit_blocks[i]) == 0;
}

void pkv_cache_watch(struct pkv_cache *cache, const struct pkv_seq *seq, const struct pkv_hit *hit)
{
    uint32_t next = hit->num_blocks[0];
    bool may_grow = cache->prefix_cache && next < seq->num_keys;
    cache->watched_key = may_grow ? seq->keys[next] : PKV_NO_KEY;
    if (!cache->prefix_cache)
        return;
    cache->is_watching = true;
    cache->watch++;
    for (uint32_t i = 0; i < next; i++)
        cache->index.records[hit->blocks[0][i]].watch = cache->watch;
}

/* Something that a look-up would see has happened to these blocks. The first change of one that is
 * watched is told; then nobody watches any more. */
static void note_changes(struct pkv_cache *cache, const pkv_block_id *ids, uint32_t num)
{
    for (uint32_t i = 0; cache->is_watching && i < num; i++) {
        if (cache->index.records[ids[i]].watch != cache->watch)
            continue;
        cache->version++;
        cache->is_watching = false;
    }
}

static bool has_key(const struct pkv_cache *cache, pkv_block_id id)
{
    return cache->prefix_cache && cache->index.records[id].key != PKV_NO_KEY;
}

/* --- taking ---------------------------------------------------------------------------------- */

uint32_t pkv_cache_need(const struct pkv_cache *cache, const struct pkv_seq *seq,
                        const struct pkv_hit *hit, uint32_t num_positions)
{
    uint64_t need = hit ? hit->num_free_blocks : 0;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        const struct pkv_group_config *group = &cache->groups[g];
        uint64_t want = group->ops->table_blocks(num_positions, group->block_size);
        uint64_t have = seq->tables[g].num + (hit ? hit->num_blocks[g] : 0);
        need += want > have ? want - have : 0;
        need += cache_must_copy(cache, seq, g, num_positions);
    }
    return need < UINT32_MAX ? (uint32_t)need : UINT32_MAX;
}

static void log_evicted(struct pkv_cache *cache, pkv_block_id id)
{
    if (pkv_grow(&cache->evicted, &cache->evicted_capacity, cache->num_evicted_logged + 1,
                 sizeof(*cache->evicted), NULL) < 0)
        cache->evicted_lost = true;
    else
        cache->evicted[cache->num_evicted_logged++] = id;
}

enum pkv_alloc cache_take(struct pkv_cache *cache, uint32_t num, pkv_block_id *out)
{
    enum pkv_alloc taken = pkv_pool_take(cache->pool, num, out);
    PKV_ASSERT(taken == PKV_ALLOC_OK || cache->takes_runs);
    if (taken == PKV_ALLOC_SHORT || cache->num_cached == 0)
        return taken;
    uint32_t num_evicted = 0;
    for (uint32_t i = 0; i < num; i++) {
        if (cache->index.records[out[i]].key == PKV_NO_KEY)
            continue;
        prefix_index_remove(&cache->index, out[i]);
        num_evicted++;
        if (cache->log_evicted)
            log_evicted(cache, out[i]);
    }
    cache->num_cached -= num_evicted;
    cache->num_evicted += num_evicted;
    note_changes(cache, out, num);
    return PKV_ALLOC_OK;
}

static void take_hit(struct pkv_cache *cache, struct pkv_seq *seq, const struct pkv_hit *hit)
{
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        PKV_ASSERT(table->num == 0 && hit->num_blocks[g] <= table->capacity);
        for (uint32_t i = 0; i < hit->num_blocks[g]; i++) {
            pkv_block_id id = hit->blocks[g][i];
            table->ids[i] = id;
            if (pkv_pool_ref(cache->pool, id)) {
                note_changes(cache, &id, 1);
                cache->num_cached--;
                cache->num_stored += cache->block_size;
            }
        }
        table->num = table->num_published = hit->num_blocks[g];
    }
    seq->num_computed_tokens = hit->num_tokens;
}

static void publish_up_to(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_tokens)
{
    uint32_t num = num_tokens / cache->block_size;
    if (num <= seq->tables[0].num_published)
        return;
    int hashed = seq_hash(cache, seq, num, NULL);
    PKV_ASSERT(hashed == 0);   /* prepare made room */
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        for (uint32_t i = table->num_published; i < num; i++) {
            uint64_t key = cache_group_key(seq->keys[i], g);
            if (cache->index.records[table->ids[i]].key != PKV_NO_KEY)
                continue;   /* a fork entered it */
            prefix_index_insert(&cache->index, table->ids[i], key);
            if (key == cache->watched_key)
                cache->version++;
        }
        table->num_published = num;
    }
}

enum pkv_alloc pkv_cache_grow(struct pkv_cache *cache, struct pkv_seq *seq,
                              const struct pkv_hit *hit, uint32_t num_tokens,
                              uint32_t num_positions)
{
    uint32_t need = pkv_cache_need(cache, seq, hit, num_positions);
    if (need > pkv_pool_num_free(cache->pool))
        return PKV_ALLOC_SHORT;
    PKV_ASSERT(!cache->takes_runs || !hit || hit->num_tokens == 0);   /* so a no has nothing to undo */
    if (hit)
        take_hit(cache, seq, hit);
    for (uint32_t g = 0; need && g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        const struct pkv_group_config *group = &cache->groups[g];
        if (cache_must_copy(cache, seq, g, num_positions))
            cache_copy_on_write(cache, seq, g);
        uint64_t want = group->ops->table_blocks(num_positions, group->block_size);
        if (want <= table->num)
            continue;
        PKV_ASSERT(want <= table->capacity);
        uint32_t num = (uint32_t)want - table->num;
        if (cache_take(cache, num, table->ids + table->num) == PKV_ALLOC_SHORT)
            return PKV_ALLOC_SHORT;
        table->num = (uint32_t)want;
    }
    seq->num_computed_tokens += num_tokens;
    cache->num_stored += num_tokens;
    if (cache->prefix_cache && cache->publish == PKV_PUBLISH_ALLOC)
        pkv_cache_publish(cache, seq);
    return PKV_ALLOC_OK;
}

void pkv_cache_extend(struct pkv_cache *cache, struct pkv_seq *seq)
{
    uint32_t index = seq->num_computed_tokens / cache->block_size;
    uint32_t in_block = seq->num_computed_tokens++ % cache->block_size;
    cache->num_stored++;
    for (uint32_t g = 0; in_block == 0 && g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        if (index < table->num)
            continue;   /* it has had its blocks from the start */
        PKV_ASSERT(table->num < table->capacity);
        enum pkv_alloc taken = cache_take(cache, 1, &table->ids[table->num++]);
        PKV_ASSERT(taken == PKV_ALLOC_OK);
    }
    if (in_block + 1 == cache->block_size && cache->publish == PKV_PUBLISH_ALLOC)
        pkv_cache_publish(cache, seq);
}

void pkv_cache_advance(struct pkv_cache *cache, uint64_t num_sequences)
{
    cache->num_stored += num_sequences;
}

void pkv_seq_catch_up(struct pkv_seq *seq, uint32_t num_computed_tokens)
{
    PKV_ASSERT(num_computed_tokens >= seq->num_computed_tokens);
    seq->num_computed_tokens = num_computed_tokens;
}

void pkv_cache_publish(struct pkv_cache *cache, struct pkv_seq *seq)
{
    if (!cache->prefix_cache)
        return;
    uint32_t known = seq->num_known_tokens, computed = seq->num_computed_tokens;
    publish_up_to(cache, seq, computed < known ? computed : known);
}

void pkv_cache_unpublish(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_tokens)
{
    uint32_t keep = num_tokens / cache->block_size;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        while (table->num_published > keep) {
            pkv_block_id id = table->ids[--table->num_published];
            if (!has_key(cache, id))
                continue;   /* another holder has taken it back */
            prefix_index_remove(&cache->index, id);
            note_changes(cache, &id, 1);
        }
    }
}

/* --- giving back ----------------------------------------------------------------------------- */

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
    note_changes(cache, cache->freed, num_freed);
    if (keyed)
        cache->num_cached += num_freed;
    cache->num_stored -= (uint64_t)num_freed * fill;
    return num_freed;
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

static uint32_t release_one(struct pkv_cache *cache, const struct pkv_seq *seq,
                            struct pkv_table *table, uint32_t i)
{
    uint32_t fill = positions_in_block(seq->num_computed_tokens, i, cache->block_size);
    return release_range(cache, table, i, i + 1, has_key(cache, table->ids[i]), false, fill);
}

/* After a fork the block knows whether it has an identity; the table may not. */
static uint32_t release_each(struct pkv_cache *cache, const struct pkv_seq *seq,
                             struct pkv_table *table, bool to_head)
{
    uint32_t num_freed = 0;
    for (uint32_t i = table->num; i-- > 0;)
        if (!to_head || has_key(cache, table->ids[i]))
            num_freed += release_one(cache, seq, table, i);
    for (uint32_t i = 0; to_head && i < table->num; i++)
        if (!has_key(cache, table->ids[i]))
            num_freed += release_one(cache, seq, table, i);
    return num_freed;
}

/* All go to the tail, last block first; but blocks without identity may go to the head, and then
 * first block first, so that the last one ends foremost. Published blocks come first in a table,
 * then full ones without identity, then those that are not full. */
static uint32_t release_table(struct pkv_cache *cache, const struct pkv_seq *seq,
                              struct pkv_table *table)
{
    uint32_t num_freed = 0, size = cache->block_size;
    uint32_t full = seq->num_computed_tokens / size, published = table->num_published;
    PKV_ASSERT(published <= full && full <= table->num);
    bool to_head = cache->prefix_cache && cache->unhashed_free == PKV_END_HEAD;
    if (cache->has_forked)
        return release_each(cache, seq, table, to_head);
    for (uint32_t i = table->num; !to_head && i-- > full;)
        num_freed += release_one(cache, seq, table, i);
    if (!to_head)
        num_freed += release_range(cache, table, published, full, false, true, size);
    num_freed += release_range(cache, table, 0, published, true, true, size);
    if (to_head)
        num_freed += release_range(cache, table, published, full, false, false, size);
    for (uint32_t i = full; to_head && i < table->num; i++)
        num_freed += release_one(cache, seq, table, i);
    return num_freed;
}

uint32_t pkv_cache_release(struct pkv_cache *cache, struct pkv_seq *seq)
{
    uint32_t num_freed = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        num_freed += release_table(cache, seq, table);
        pkv_slab_give(&cache->slab, table->ids, table->capacity, sizeof(*table->ids));
        *table = (struct pkv_table){0};
    }
    seq->num_computed_tokens = 0;
    return num_freed;
}

/* --- reading --------------------------------------------------------------------------------- */

struct pkv_cache_figures pkv_cache_figures(const struct pkv_cache *cache)
{
    return (struct pkv_cache_figures){
        .num_blocks = pkv_pool_num_blocks(cache->pool),
        .num_free = pkv_pool_num_free(cache->pool),
        .num_cached = cache->num_cached,
        .num_keys = cache->index.num_keys,
        .num_stored = cache->num_stored,
        .num_evicted = cache->num_evicted,
        .num_copied = cache->num_copied,
        .pool = pkv_pool_counts(cache->pool),
    };
}

uint32_t pkv_cache_num_free(const struct pkv_cache *cache)
{
    return pkv_pool_num_free(cache->pool);
}

uint32_t pkv_cache_block_size(const struct pkv_cache *cache)
{
    return cache->block_size;
}

uint32_t pkv_cache_num_freed(const struct pkv_cache *cache, const struct pkv_seq *seq)
{
    uint32_t num = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++)
        for (uint32_t i = 0; i < seq->tables[g].num; i++)
            num += pkv_pool_ref_cnt(cache->pool, seq->tables[g].ids[i]) == 1;
    return num;
}

uint32_t pkv_cache_num_groups(const struct pkv_cache *cache)
{
    return cache->num_groups;
}

uint64_t pkv_cache_version(const struct pkv_cache *cache)
{
    return cache->version;
}

uint64_t pkv_cache_num_key_changes(const struct pkv_cache *cache)
{
    return cache->index.num_changes;
}

uint64_t pkv_cache_blocks_for(const struct pkv_cache *cache, uint64_t num_positions)
{
    uint64_t num = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++)
        num += cache->groups[g].ops->table_blocks(num_positions, cache->groups[g].block_size);
    return num;
}

uint32_t pkv_cache_reserve_blocks(const struct pkv_cache *cache, uint32_t num_prompt_tokens,
                                  uint32_t num_positions, uint32_t max_model_len)
{
    return pkv_pool_reserve_blocks(cache->pool, num_prompt_tokens, num_positions, max_model_len,
                                   cache->block_size);
}

bool pkv_cache_takes_runs(const struct pkv_cache *cache)
{
    return cache->takes_runs;
}

uint32_t pkv_cache_ref_cnt(const struct pkv_cache *cache, pkv_block_id id)
{
    return pkv_pool_ref_cnt(cache->pool, id);
}

bool pkv_cache_has_identity(const struct pkv_cache *cache, pkv_block_id id)
{
    return has_key(cache, id);
}

uint32_t pkv_cache_list_free(const struct pkv_cache *cache, pkv_block_id *out)
{
    return pkv_pool_list_free(cache->pool, out);
}

void pkv_cache_log_evicted(struct pkv_cache *cache, bool on)
{
    cache->log_evicted = on;
}

void pkv_cache_clear_evicted(struct pkv_cache *cache)
{
    cache->num_evicted_logged = 0;
}

int pkv_cache_evicted(const struct pkv_cache *cache, const pkv_block_id **out, size_t *out_num,
                      struct pkv_err *err)
{
    if (cache->evicted_lost)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the evicted blocks' ids");
    *out = cache->evicted;
    *out_num = cache->num_evicted_logged;
    return 0;
}
