/*
 * host.c - copies of blocks on the host, and the transfers that hold blocks while they are copied.
 *
 * What a sequence has on the host is a list of places in its table; where a copy lies there does not
 * matter, so the host pool is a number. A copy may be dropped while it is still being written: the next
 * one into its place goes over the link later.
 *
 * The swap of the vLLM paper (Kwon et al., SOSP 2023, sections 4.5 and 5.2), with blocks kept in the
 * prefix cache meanwhile.
 */
#include <string.h>

#include "base/alloc.h"
#include "cache/cache_private.h"

int pkv_cache_reserve_transfers(struct pkv_cache *cache, size_t num, struct pkv_err *err)
{
    return pkv_grow(&cache->transfers, &cache->transfers_capacity, cache->num_transfers + num,
                    sizeof(*cache->transfers), err);
}

void cache_free_transfers(struct pkv_cache *cache)
{
    for (size_t i = 0; i < cache->num_transfers; i++)
        pkv_slab_give(&cache->slab, cache->transfers[i].held.ids, cache->transfers[i].held.capacity,
                      sizeof(pkv_block_id));
    pkv_free(cache->transfers);
}

static uint32_t table_blocks(const struct pkv_cache *cache, uint32_t num_positions)
{
    const struct pkv_group_config *group = &cache->groups[0];
    return (uint32_t)group->ops->table_blocks(group, num_positions);
}

/* --- giving back ----------------------------------------------------------------------------- */

static uint32_t give_one(struct pkv_cache *cache, const struct pkv_table *table, uint32_t i,
                         uint32_t num_positions)
{
    pkv_block_id id = table->ids[i];
    uint32_t fill = positions_in_block(num_positions, i, cache->block_size);
    return cache_unref(cache, &id, 1, pkv_cache_has_identity(cache, id), i, 1, fill);
}

/* Blocks from `begin` on, in the order in which a release gives them back. */
static uint32_t give_back(struct pkv_cache *cache, const struct pkv_table *table, uint32_t begin,
                          uint32_t num_positions)
{
    bool to_head = cache->prefix_cache && cache->unhashed_free == PKV_END_HEAD;
    const pkv_block_id *ids = table->ids;
    uint32_t num_freed = 0;
    for (uint32_t i = table->num; i-- > begin;)
        if (ids[i] != PKV_BLOCK_NULL && (!to_head || pkv_cache_has_identity(cache, ids[i])))
            num_freed += give_one(cache, table, i, num_positions);
    for (uint32_t i = begin; to_head && i < table->num; i++)
        if (ids[i] != PKV_BLOCK_NULL && !pkv_cache_has_identity(cache, ids[i]))
            num_freed += give_one(cache, table, i, num_positions);
    return num_freed;
}

static struct transfer *begin_transfer(struct pkv_cache *cache)
{
    PKV_ASSERT(cache->num_transfers < cache->transfers_capacity);
    struct transfer *t = &cache->transfers[cache->num_transfers++];
    *t = (struct transfer){0};
    return t;
}

/* The table becomes the transfer's. */
static void hand_over(struct transfer *t, struct pkv_seq *seq)
{
    t->held = seq->tables[0];
    t->num_positions = seq->num_computed_tokens;
    seq->tables[0] = (struct pkv_table){0};
    seq->num_computed_tokens = 0;
}

uint32_t pkv_cache_transfer_done(struct pkv_cache *cache)
{
    PKV_ASSERT(cache->num_transfers > 0);
    struct transfer t = cache->transfers[0];
    cache->num_transfers--;
    memmove(cache->transfers, cache->transfers + 1, cache->num_transfers * sizeof(t));
    uint32_t num_freed = give_back(cache, &t.held, 0, t.num_positions);
    pkv_slab_give(&cache->slab, t.held.ids, t.held.capacity, sizeof(*t.held.ids));
    return num_freed;
}

size_t pkv_cache_num_transfers(const struct pkv_cache *cache)
{
    return cache->num_transfers;
}

uint32_t pkv_cache_num_coming(const struct pkv_cache *cache)
{
    uint32_t num = 0;
    for (size_t t = 0; t < cache->num_transfers; t++) {
        const struct pkv_table *held = &cache->transfers[t].held;
        for (uint32_t i = 0; i < held->num; i++)
            num += held->ids[i] != PKV_BLOCK_NULL &&
                   pkv_pool_ref_cnt(cache->pool, held->ids[i]) == 1;
    }
    return num;
}

/* --- out ------------------------------------------------------------------------------------- */

uint32_t pkv_cache_num_movable(const struct pkv_cache *cache, const struct pkv_seq *seq,
                               uint32_t num_positions, uint64_t *out_num_positions)
{
    uint32_t num = 0, num_blocks = table_blocks(cache, num_positions);
    *out_num_positions = 0;
    for (uint32_t i = 0; i < num_blocks; i++) {
        if (pkv_pool_ref_cnt(cache->pool, seq->tables[0].ids[i]) != 1)
            continue;
        num++;
        *out_num_positions += positions_in_block(num_positions, i, cache->block_size);
    }
    return num;
}

/* Positions that were never computed, and the blocks that have no others. */
static uint32_t cut(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_positions)
{
    struct pkv_table *table = &seq->tables[0];
    uint32_t computed = seq->num_computed_tokens, num = table_blocks(cache, num_positions);
    uint32_t num_freed = give_back(cache, table, num, computed);
    uint64_t kept = (uint64_t)num * cache->block_size;
    cache->num_stored -= (computed < kept ? computed : kept) - num_positions;
    table->num = num;
    seq->num_computed_tokens = num_positions;
    return num_freed;
}

uint32_t pkv_cache_swap_out(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num_positions)
{
    struct pkv_table *table = &seq->tables[0], *copies = &seq->copies;
    uint32_t num_freed = cut(cache, seq, num_positions);
    PKV_ASSERT(cache->num_groups == 1 && table->num <= copies->capacity && copies->num == 0);
    for (uint32_t i = 0; i < table->num; i++) {
        if (pkv_pool_ref_cnt(cache->pool, table->ids[i]) == 1) {
            copies->ids[copies->num++] = i;
            continue;
        }
        give_one(cache, table, i, num_positions);
        table->ids[i] = PKV_BLOCK_NULL;
    }
    seq->num_copied_tokens = num_positions;
    cache->num_host_used += copies->num;
    PKV_ASSERT(copies->num > 0 && cache->num_host_used <= cache->num_host_blocks);
    hand_over(begin_transfer(cache), seq);
    return num_freed;
}

void pkv_cache_drop_copies(struct pkv_cache *cache, struct pkv_seq *seq)
{
    cache->num_host_used -= seq->copies.num;
    seq->copies.num = 0;
    seq->num_copied_tokens = 0;
}

/* --- in -------------------------------------------------------------------------------------- */

struct pkv_restore pkv_cache_find_copies(const struct pkv_cache *cache, const struct pkv_seq *seq,
                                         const struct pkv_hit *hit)
{
    const struct pkv_table *copies = &seq->copies;
    uint32_t num = table_blocks(cache, seq->num_copied_tokens), next = hit->num_blocks[0];
    struct pkv_restore restore = {0};
    for (uint32_t i = 0; i < copies->num; i++) {
        if (copies->ids[i] != next)
            continue;   /* the pool has it, or there is a gap before it */
        next++;
        restore.num_blocks++;
    }
    if (restore.num_blocks > 0)
        restore.num_positions = next == num ? seq->num_copied_tokens : next * cache->block_size;
    return restore;
}

void pkv_cache_swap_in(struct pkv_cache *cache, struct pkv_seq *seq, const struct pkv_hit *hit,
                       struct pkv_restore restore)
{
    begin_transfer(cache);
    enum pkv_alloc taken = cache_grow(cache, seq, hit, restore.num_positions - hit->num_tokens,
                                      restore.num_positions);
    PKV_ASSERT(taken == PKV_ALLOC_OK);
}

/* Coming back is as a chunk: what is published at the end of a request is not published yet. */
void pkv_cache_arrived(struct pkv_cache *cache, struct pkv_seq *seq)
{
    pkv_cache_drop_copies(cache, seq);
    switch (cache->publish) {
    case PKV_PUBLISH_ALLOC:
    case PKV_PUBLISH_COMPUTED:
    case PKV_PUBLISH_CHUNK_END:
        pkv_cache_publish(cache, seq);
        return;
    case PKV_PUBLISH_FINISH:
        return;
    }
}

void pkv_cache_abandon(struct pkv_cache *cache, struct pkv_seq *seq, size_t transfer)
{
    PKV_ASSERT(transfer < cache->num_transfers && !cache->transfers[transfer].held.ids);
    hand_over(&cache->transfers[transfer], seq);
    pkv_cache_drop_copies(cache, seq);
}
