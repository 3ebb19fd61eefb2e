/*
 * cache.c - blocks for sequences: what is needed, and taking it.
 *
 * A taker first asks what it needs, so that a refusal leaves no trace but in a window, which gives
 * back what it has left all the same. A free block keeps its identity until it is taken: there is no
 * other eviction. Looking up is in lookup.c, publishing in publish.c, giving back in release.c.
 *
 * Source: vllm/v1/core/kv_cache_manager.py and block_pool.py.
 */
#include "base/alloc.h"
#include "cache/cache_private.h"

static bool is_plain(const struct pkv_cache_config *config)
{
    return config->num_groups == 1 && config->groups[0].ops == &pkv_group_full;
}

static int check_config(const struct pkv_cache_config *config, struct pkv_err *err)
{
    const char *layout = config->pool.layout->info.name;
    if (pkv_groups_check(config->groups, config->num_groups, err) < 0)
        return -1;
    if (config->prefix_cache && config->pool.layout->create)
        return pkv_fail(err, PKV_ERR_INPUT, "layout %s gives blocks in one piece and cannot share "
                        "them: the prefix cache must be off", layout);
    if (!is_plain(config) && config->pool.layout->create)
        return pkv_fail(err, PKV_ERR_INPUT, "layout %s gives blocks in one piece: it serves one "
                        "group of full attention", layout);
    return 0;
}

static int create_indexes(struct pkv_cache *cache, uint32_t num_blocks, struct pkv_err *err)
{
    if (!cache->prefix_cache)
        return 0;
    if (pkv_groups_have_second_keys(cache->groups, cache->num_groups) &&
        prefix_index_init(&cache->second, num_blocks, err) < 0)
        return -1;
    return prefix_index_init(&cache->index, num_blocks, err);
}

static void set_groups(struct pkv_cache *cache, const struct pkv_cache_config *config)
{
    struct group_sizes sizes = group_sizes(config->groups, config->num_groups);
    for (uint32_t g = 0; g < config->num_groups; g++)
        cache->groups[g] = config->groups[g];
    cache->num_groups = config->num_groups;
    cache->unit = (uint32_t)sizes.unit;
    cache->align = (uint32_t)sizes.align;
    cache->block_size = (uint32_t)sizes.largest;
    cache->is_plain = is_plain(config);
    for (uint32_t g = 0; g < config->num_groups; g++)
        cache->num_storing += config->groups[g].ops->stores_positions;
}

struct pkv_cache *pkv_cache_create(const struct pkv_cache_config *config, struct pkv_err *err)
{
    if (check_config(config, err) < 0)
        return NULL;
    struct pkv_cache *cache = pkv_alloc(1, sizeof(*cache), err);
    if (!cache)
        return NULL;
    set_groups(cache, config);
    cache->prefix_cache = config->prefix_cache;
    cache->keeps_chunk_end = config->keeps_chunk_end && config->prefix_cache;
    cache->unhashed_free = config->unhashed_free;
    cache->publish = config->publish;
    cache->max_ahead_tokens = config->max_ahead_tokens;
    cache->drops_last_hit = config->drops_last_hit;
    cache->num_host_blocks = config->num_host_blocks;
    cache->keeps_copies = config->keeps_copies;
    cache->takes_runs = config->pool.layout->create != NULL;
    cache->needs_hint = config->pool.evict->needs_hint && !cache->takes_runs;
    cache->pool = pkv_pool_create(&config->pool, err);
    if (!cache->pool || create_indexes(cache, config->pool.num_blocks, err) < 0) {
        pkv_cache_destroy(cache);
        return NULL;
    }
    return cache;
}

void pkv_cache_destroy(struct pkv_cache *cache)
{
    if (!cache)
        return;
    cache_free_transfers(cache);
    prefix_index_finish(&cache->index);
    prefix_index_finish(&cache->second);
    pkv_pool_destroy(cache->pool);
    pkv_free(cache->freed);
    pkv_free(cache->hints);
    pkv_slab_free(&cache->slab);
    pkv_free(cache->hit_blocks);
    pkv_free(cache->evicted);
    pkv_free(cache);
}

/* The most blocks of one group on the way to so many positions. */
static uint64_t group_most(const struct pkv_group_config *group, uint64_t num_positions,
                           uint64_t num_step_tokens)
{
    uint64_t whole = group->ops->table_blocks(group, num_positions);
    if (num_step_tokens == UINT64_MAX || !group->ops->most_blocks)
        return whole;
    uint64_t most = group->ops->most_blocks(group, num_step_tokens);
    return whole < most ? whole : most;
}

/* --- taking ---------------------------------------------------------------------------------- */

/* What it takes to come to hold the blocks of so many positions, or as many of them at once as steps
 * of so many tokens ever ask for. */
static uint32_t count_need(const struct pkv_cache *cache, const struct pkv_seq *seq,
                           const struct pkv_hit *hit, uint32_t num_positions,
                           uint64_t num_step_tokens, bool counts_null)
{
    uint64_t need = hit ? hit->num_free_blocks : 0;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        const struct pkv_table *table = &seq->tables[g];
        uint64_t want = group_most(&cache->groups[g], num_positions, num_step_tokens);
        uint64_t have = table->num + (hit ? hit->num_blocks[g] : 0);
        if (!counts_null)
            have -= table->num_null + (hit ? hit->num_null[g] : 0);
        need += want > have ? want - have : 0;
        need += cache_num_copies(cache, seq, g, num_positions);
    }
    return need < UINT32_MAX ? (uint32_t)need : UINT32_MAX;
}

uint32_t pkv_cache_need(const struct pkv_cache *cache, const struct pkv_seq *seq,
                        const struct pkv_hit *hit, uint32_t num_positions)
{
    return count_need(cache, seq, hit, num_positions, UINT64_MAX, true);
}

uint32_t pkv_cache_need_gate(const struct pkv_cache *cache, const struct pkv_seq *seq,
                             const struct pkv_hit *hit, uint32_t num_positions,
                             uint64_t num_step_tokens)
{
    return count_need(cache, seq, hit, num_positions, num_step_tokens, true);
}

uint32_t pkv_cache_need_to_end(const struct pkv_cache *cache, const struct pkv_seq *seq,
                               const struct pkv_hit *hit, uint32_t num_positions,
                               uint64_t num_step_tokens)
{
    return count_need(cache, seq, hit, num_positions, num_step_tokens, false);
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
        if (cache->is_plain)
            prefix_index_remove(&cache->index, out[i]);
        else
            cache_forget_keys(cache, out[i]);
        num_evicted++;
        if (cache->log_evicted)
            log_evicted(cache, out[i]);
    }
    cache->num_cached -= num_evicted;
    cache->num_evicted += num_evicted;
    cache_note_changes(cache, out, num);
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
            if (i < hit->num_null[g])
                continue;
            if (pkv_pool_ref(cache->pool, id)) {
                cache_note_changes(cache, &id, 1);
                cache->num_cached--;
                cache->num_stored += cache->groups[g].block_size;
            }
        }
        table->num = table->num_published = hit->num_blocks[g];
        table->num_null = hit->num_null[g];
    }
    seq->num_computed_tokens = hit->num_tokens;
}

enum pkv_alloc cache_grow(struct pkv_cache *cache, struct pkv_seq *seq, const struct pkv_hit *hit,
                          uint32_t num_tokens, uint32_t num_positions)
{
    if (!cache->is_plain)
        cache_trim(cache, seq);
    uint32_t need = pkv_cache_need(cache, seq, hit, num_positions);
    if (need > pkv_pool_num_free(cache->pool))
        return PKV_ALLOC_SHORT;
    PKV_ASSERT(!cache->takes_runs || !hit || hit->num_tokens == 0);   /* so a no has nothing to undo */
    if (hit)
        take_hit(cache, seq, hit);
    for (uint32_t g = 0; need && g < cache->num_groups; g++) {
        struct pkv_table *table = &seq->tables[g];
        const struct pkv_group_config *group = &cache->groups[g];
        if (cache_num_copies(cache, seq, g, num_positions) > 0)
            cache_copy_on_write(cache, seq, g);
        uint64_t want = group->ops->table_blocks(group, num_positions);
        if (want <= table->num)
            continue;
        PKV_ASSERT(want <= table->capacity);
        uint32_t num = (uint32_t)want - table->num;
        if (cache_take(cache, num, table->ids + table->num) == PKV_ALLOC_SHORT)
            return PKV_ALLOC_SHORT;
        table->num = (uint32_t)want;
    }
    seq->num_computed_tokens += num_tokens;
    cache->num_stored += (uint64_t)num_tokens * cache->num_storing;
    return PKV_ALLOC_OK;
}

enum pkv_alloc pkv_cache_grow(struct pkv_cache *cache, struct pkv_seq *seq,
                              const struct pkv_hit *hit, uint32_t num_tokens,
                              uint32_t num_positions)
{
    enum pkv_alloc taken = cache_grow(cache, seq, hit, num_tokens, num_positions);
    if (taken == PKV_ALLOC_OK && cache->prefix_cache && cache->publish == PKV_PUBLISH_ALLOC)
        pkv_cache_publish(cache, seq);
    return taken;
}

uint32_t pkv_cache_period(const struct pkv_cache *cache)
{
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        const struct pkv_group_config *group = &cache->groups[g];
        if (group->ops->out_phase && group->ops->out_phase(group) == UINT32_MAX)
            return 0;
    }
    return cache->align;
}

bool pkv_cache_takes_block(const struct pkv_cache *cache, uint32_t group, uint32_t position)
{
    const struct pkv_group_config *config = &cache->groups[group];
    if (!config->ops->stores_positions)
        return position == 0;
    return position % config->block_size == 0;
}

bool pkv_cache_moves_blocks(const struct pkv_cache *cache, uint32_t num_computed,
                            uint32_t num_flying, uint32_t *out_num_taken)
{
    bool gives_back = false;
    *out_num_taken = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        const struct pkv_group_config *group = &cache->groups[g];
        uint32_t size = group->block_size, phase = num_computed % size;
        uint32_t landed_phase = (phase + size - num_flying % size) % size;
        *out_num_taken += group->ops->stores_positions && phase == 0;
        gives_back |= group->ops->out_phase && landed_phase == group->ops->out_phase(group);
    }
    return gives_back || *out_num_taken > 0;
}

void pkv_cache_extend(struct pkv_cache *cache, struct pkv_seq *seq)
{
    if (!cache->is_plain) {
        uint32_t end = seq->num_computed_tokens + 1;
        enum pkv_alloc taken = pkv_cache_grow(cache, seq, NULL, 1, end);
        PKV_ASSERT(taken == PKV_ALLOC_OK);
        return;
    }
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
    cache->num_stored += num_sequences * cache->num_storing;
}

void pkv_seq_catch_up(struct pkv_seq *seq, uint32_t num_computed_tokens)
{
    PKV_ASSERT(num_computed_tokens >= seq->num_computed_tokens);
    seq->num_computed_tokens = num_computed_tokens;
}

void pkv_cache_rewind(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_tokens)
{
    PKV_ASSERT(num_tokens <= seq->num_computed_tokens);
    seq->num_computed_tokens -= num_tokens;
    cache->num_stored -= (uint64_t)num_tokens * cache->num_storing;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        const struct pkv_table *table = &seq->tables[g];
        uint64_t size = cache->groups[g].block_size, computed = seq->num_computed_tokens;
        PKV_ASSERT(table->num_published * size <= computed && table->num_null * size <= computed);
    }
}

/* --- reading --------------------------------------------------------------------------------- */

struct pkv_cache_figures pkv_cache_figures(const struct pkv_cache *cache)
{
    return (struct pkv_cache_figures){
        .num_blocks = pkv_pool_num_blocks(cache->pool),
        .num_free = pkv_pool_num_free(cache->pool),
        .num_cached = cache->num_cached,
        .num_keys = cache->index.num_keys + cache->second.num_keys,
        .num_stored = cache->num_stored,
        .num_evicted = cache->num_evicted,
        .num_copied = cache->num_copied,
        .num_host_blocks = cache->num_host_blocks,
        .num_host_used = cache->num_host_used,
        .num_holds = pkv_pool_num_holds(cache->pool),
        .pool = pkv_pool_counts(cache->pool),
    };
}

uint32_t pkv_cache_num_free(const struct pkv_cache *cache)
{
    return pkv_pool_num_free(cache->pool);
}

bool pkv_cache_is_plain(const struct pkv_cache *cache)
{
    return cache->is_plain;
}

uint32_t pkv_cache_block_size(const struct pkv_cache *cache)
{
    return cache->block_size;
}

uint32_t pkv_cache_hash_block_size(const struct pkv_cache *cache)
{
    return cache->unit;
}

uint32_t pkv_cache_num_freed(const struct pkv_cache *cache, const struct pkv_seq *seq)
{
    uint32_t num = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++)
        for (uint32_t i = seq->tables[g].num_null; i < seq->tables[g].num; i++)
            num += pkv_pool_ref_cnt(cache->pool, seq->tables[g].ids[i]) == 1;
    return num;
}

uint32_t pkv_cache_num_groups(const struct pkv_cache *cache)
{
    return cache->num_groups;
}

uint64_t pkv_cache_num_key_changes(const struct pkv_cache *cache)
{
    return cache->index.num_changes;
}

uint64_t pkv_cache_blocks_for(const struct pkv_cache *cache, uint64_t num_positions,
                              uint64_t num_step_tokens)
{
    uint64_t num = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++)
        num += group_most(&cache->groups[g], num_positions, num_step_tokens);
    return num;
}

uint32_t pkv_cache_room(const struct pkv_cache *cache)
{
    uint64_t room = UINT32_MAX;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        const struct pkv_group_config *group = &cache->groups[g];
        uint64_t here = (uint64_t)pkv_pool_num_blocks(cache->pool) * group->block_size;
        if (group->ops == &pkv_group_full && here < room)
            room = here;
    }
    return (uint32_t)room;
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
    return cache_has_key(cache, id);
}

void pkv_cache_identity_bits(const struct pkv_cache *cache, uint32_t *words)
{
    uint32_t num = pkv_pool_num_blocks(cache->pool);
    for (uint32_t first = 0; first < num; first += 32) {
        const struct index_record *records = &cache->index.records[first];
        uint32_t word = 0;
        for (uint32_t i = num - first < 32 ? num - first : 32; cache->prefix_cache && i-- > 0;)
            word = word * 2 + (records[i].key != PKV_NO_KEY);
        words[first / 32] = word;
    }
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
