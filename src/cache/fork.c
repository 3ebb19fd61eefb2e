/*
 * fork.c - sequences that share blocks, and copying the one that is written into.
 *
 * A fork takes one hold more on each of the parent's blocks. Full ones stay shared for good. The
 * last one, when it is not full, is copied by whichever of its holders writes into it first; the
 * last holder writes in place. A state is written into by every token, so all of its blocks are like
 * the last one (vLLM paper, Kwon et al., SOSP 2023, section 4.4).
 */
#include <string.h>

#include "cache/cache_private.h"

/* The blocks of its table that the next token is written into: the last one that is not full, or all
 * of a state. */
static void find_written(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                         uint32_t *out_begin, uint32_t *out_end)
{
    const struct pkv_group_config *config = &cache->groups[group];
    uint32_t computed = seq->num_computed_tokens;
    *out_begin = config->ops->stores_positions ? computed / config->block_size : 0;
    *out_end = *out_begin;
    if (!config->ops->stores_positions)
        *out_end = seq->tables[group].num;
    else if (computed % config->block_size != 0)
        *out_end = *out_begin + 1;
}

uint32_t cache_num_copies(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                          uint32_t num_positions)
{
    uint32_t begin, end, num = 0;
    if (!cache->has_forked || num_positions <= seq->num_computed_tokens)
        return 0;
    find_written(cache, seq, group, &begin, &end);
    for (; begin < end; begin++)
        num += pkv_pool_ref_cnt(cache->pool, seq->tables[group].ids[begin]) > 1;
    return num;
}

void cache_copy_on_write(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t group)
{
    uint32_t index, end;
    for (find_written(cache, seq, group, &index, &end); index < end; index++) {
        pkv_block_id *id = &seq->tables[group].ids[index], shared = *id;
        uint32_t fill = cache_fill(cache, seq, group, index);
        if (pkv_pool_ref_cnt(cache->pool, shared) == 1)
            continue;
        enum pkv_alloc taken = cache_take(cache, 1, id);
        PKV_ASSERT(taken == PKV_ALLOC_OK);
        uint32_t num_freed = cache_unref(cache, &shared, 1, false, index, 1, fill);
        PKV_ASSERT(num_freed == 0);
        cache->num_stored += fill;
        cache->num_copied++;
    }
}

bool pkv_cache_writes_shared(const struct pkv_cache *cache, const struct pkv_seq *seq)
{
    bool writes = false;
    for (uint32_t g = 0; cache->has_forked && g < cache->num_groups; g++)
        writes |= cache_num_copies(cache, seq, g, seq->num_computed_tokens + 1) > 0;
    return writes;
}

uint64_t pkv_cache_full_blocks(const struct pkv_cache *cache, uint64_t num_positions)
{
    uint64_t num = 0;
    for (uint32_t g = 0; g < cache->num_groups; g++)
        if (cache->groups[g].ops == &pkv_group_full)   /* others let go of them, or write them again */
            num += num_positions / cache->groups[g].block_size;
    return num;
}

int pkv_cache_fork(struct pkv_cache *cache, const struct pkv_seq *parent, struct pkv_seq *child,
                   struct pkv_err *err)
{
    PKV_ASSERT(child->num_computed_tokens == 0 &&
               child->num_prompt_tokens == parent->num_prompt_tokens &&
               parent->num_computed_tokens <= child->num_known_tokens);
    if (pkv_cache_prepare(cache, child, parent->num_known_tokens, err) < 0)
        return -1;
    for (uint32_t g = 0; g < cache->num_groups; g++) {
        const struct pkv_table *from = &parent->tables[g];
        struct pkv_table *to = &child->tables[g];
        PKV_ASSERT(to->num == 0 && from->num <= to->capacity);
        for (uint32_t i = from->num_null; i < from->num; i++)
            pkv_pool_ref(cache->pool, from->ids[i]);
        if (from->num)
            memcpy(to->ids, from->ids, from->num * sizeof(*to->ids));
        to->num = from->num;
        to->num_published = from->num_published;
        to->num_null = from->num_null;
    }
    child->num_computed_tokens = parent->num_computed_tokens;
    cache->has_forked = true;
    return 0;
}
