/*
 * state.c - what lies free in a cache, taken out of one and put into another.
 *
 * The free queue of a new pool is its blocks in the order of their ids, and which block holds a content
 * decides nothing: so a queue is restored by giving its identities to the blocks one after the other.
 * Of several blocks with one identity the oldest is hit, wherever it stands; they enter by age.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/cache_private.h"

static uint32_t count_older(const struct prefix_index *index, pkv_block_id id)
{
    uint32_t num = 0;
    pkv_block_id oldest = prefix_index_find(index, index->records[id].key);
    for (pkv_block_id at = oldest; at != id; at = index->records[at].younger)
        num++;
    return num;
}

int pkv_cache_save(const struct pkv_cache *cache, struct pkv_cache_state *out, struct pkv_err *err)
{
    uint32_t num = pkv_pool_num_free(cache->pool);
    pkv_block_id *ids = pkv_alloc(num, sizeof(*ids), err);
    *out = (struct pkv_cache_state){
        .blocks = ids ? pkv_alloc(num, sizeof(*out->blocks), err) : NULL,
        .num = num,
        .num_runs = cache->num_former_runs + 1,
    };
    PKV_ASSERT(cache->prefix_cache && num == pkv_pool_num_blocks(cache->pool));
    pkv_groups_label(cache->groups, cache->num_groups, out->groups);
    if (out->blocks)
        pkv_pool_list_free(cache->pool, ids);
    for (uint32_t i = 0; out->blocks && i < num; i++) {
        uint64_t key = cache->index.records[ids[i]].key;
        if (key == PKV_NO_KEY)
            continue;
        out->blocks[out->num_kept++] = (struct pkv_kept_block){
            .key = key,
            .second_key = cache->second.records ? cache->second.records[ids[i]].key : PKV_NO_KEY,
            .twin = count_older(&cache->index, ids[i]),
            .place = i,
        };
    }
    pkv_free(ids);
    return out->blocks ? 0 : -1;
}

void pkv_cache_state_free(struct pkv_cache_state *state)
{
    pkv_free(state->blocks);
    *state = (struct pkv_cache_state){0};
}

static int by_age(const void *a, const void *b)
{
    const struct pkv_kept_block *x = *(const struct pkv_kept_block *const *)a;
    const struct pkv_kept_block *y = *(const struct pkv_kept_block *const *)b;
    if (x->twin != y->twin)
        return x->twin < y->twin ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

int pkv_cache_restore(struct pkv_cache *cache, const struct pkv_cache_state *state,
                      struct pkv_err *err)
{
    uint32_t room = pkv_pool_num_blocks(cache->pool), num = 0, first = 0;
    uint32_t left_out = state->num > room ? state->num - room : 0;
    uint32_t empty = state->num < room ? room - state->num : 0;
    PKV_ASSERT(cache->prefix_cache && cache->index.num_keys == 0 &&
               pkv_pool_num_free(cache->pool) == room);
    while (first < state->num_kept && state->blocks[first].place < left_out)
        first++;
    const struct pkv_kept_block **entries =
        pkv_alloc(state->num_kept - first + 1, sizeof(*entries), err);
    if (!entries)
        return -1;
    for (uint32_t i = first; i < state->num_kept; i++)
        entries[num++] = &state->blocks[i];
    qsort(entries, num, sizeof(*entries), by_age);
    for (uint32_t i = 0; i < num; i++) {
        const struct pkv_kept_block *block = entries[i];
        pkv_block_id id = block->place - left_out + empty;
        prefix_index_insert(&cache->index, id, block->key);
        if (cache->second.records && block->second_key != PKV_NO_KEY)
            prefix_index_insert(&cache->second, id, block->second_key);
    }
    cache->num_cached = num;
    cache->num_former_runs = state->num_runs;
    pkv_free(entries);
    return 0;
}

void pkv_groups_label(const struct pkv_group_config *groups, uint32_t num_groups,
                      char out[PKV_GROUPS_LABEL_SIZE])
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t g = 0; g < num_groups; g++) {
        used += (size_t)snprintf(out + used, PKV_GROUPS_LABEL_SIZE - used, "%s%s:%" PRIu32,
                                 g ? " " : "", groups[g].ops->name, groups[g].block_size);
        if (groups[g].ops->size_name)
            used += (size_t)snprintf(out + used, PKV_GROUPS_LABEL_SIZE - used, ":%" PRIu32,
                                     groups[g].size);
    }
    PKV_ASSERT(used < PKV_GROUPS_LABEL_SIZE);
}
