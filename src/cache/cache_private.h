/*
 * cache_private.h - the records of the cache room, for its own files and for tests that break them.
 */
#ifndef PKV_CACHE_PRIVATE_H
#define PKV_CACHE_PRIVATE_H

#include "base/slab.h"
#include "pagedkv/cache.h"

#define PKV_NO_KEY UINT64_C(0)

/* Identity of one block. Of blocks with one key the oldest stands in its bucket's chain; the others
 * hang on it in a ring, oldest first, so that a duplicate costs no look-up anything. */
struct index_record {
    uint64_t key;                   /* PKV_NO_KEY = no identity */
    uint32_t next;                  /* in the bucket's chain; PKV_BLOCK_NULL = last */
    uint32_t older, younger;        /* ring of equal keys; itself when alone */
    uint32_t watch;                 /* the watch whose hit it is in; see pkv_cache_watch() */
};

struct prefix_index {
    struct index_record *records;   /* [num_blocks], owned */
    uint32_t *heads;                /* [mask + 1], owned */
    uint32_t num_blocks, mask;
    uint32_t num_keys;              /* different keys */
    uint64_t num_changes;           /* of the set of keys */
};

int prefix_index_init(struct prefix_index *index, uint32_t num_blocks, struct pkv_err *err);
void prefix_index_finish(struct prefix_index *index);
/* The oldest block with this key, or PKV_BLOCK_NULL. */
pkv_block_id prefix_index_find(const struct prefix_index *index, uint64_t key);
void prefix_index_insert(struct prefix_index *index, pkv_block_id id, uint64_t key);
void prefix_index_remove(struct prefix_index *index, pkv_block_id id);

/* What a kind of KV group decides. */
struct pkv_group_ops {
    const char *name;
    /* Leading blocks of `keys` that a hit may use; their ids go to out. */
    uint32_t (*find)(const struct prefix_index *index, const uint64_t *keys, uint32_t num_keys,
                     pkv_block_id *out);
    /* Length of the table for so many positions. */
    uint64_t (*table_blocks)(uint64_t num_positions, uint32_t block_size);
};

struct pkv_cache {
    struct pkv_pool *pool;          /* owned */
    struct pkv_group_config groups[PKV_MAX_GROUPS];
    uint32_t num_groups;
    uint32_t block_size;            /* of every group */
    bool prefix_cache;
    enum pkv_pool_end unhashed_free;
    enum pkv_publish publish;
    struct prefix_index index;
    struct pkv_slab slab;           /* tables, keys, spans not in use */
    pkv_block_id *hit_blocks;       /* owned scratch of look-ups */
    size_t hit_capacity;
    pkv_block_id *freed;            /* owned scratch: room for the longest table */
    struct pkv_evict_hint *hints;   /* owned scratch, the same; unused without needs_hint */
    size_t freed_capacity, hints_capacity;
    bool needs_hint;                /* of the evict policy */
    bool takes_runs;                /* the layout takes blocks in one piece and may say no */
    bool has_forked;                /* a block may have been published by another of its holders */
    uint32_t num_cached;            /* free blocks with a key */
    uint64_t num_stored;            /* positions in held blocks */
    uint64_t num_evicted, num_copied;
    uint64_t version, watched_key;
    bool is_watching;               /* no watched block has changed yet */
    uint32_t watch;                 /* number of the present watch */
    bool log_evicted, evicted_lost; /* lost: there was no memory for one of them */
    pkv_block_id *evicted;          /* [num_evicted_logged], owned */
    size_t num_evicted_logged, evicted_capacity;
};

/* Identities of the groups differ, as one content lies in different blocks. */
uint64_t cache_group_key(uint64_t key, uint32_t group);
/* Take num new blocks that no longer have an identity. As many are free; only a layout of runs may
 * say no all the same. */
enum pkv_alloc cache_take(struct pkv_cache *cache, uint32_t num, pkv_block_id *out);
/* Give back one hold of each of num blocks with `fill` positions in them, all with an identity or all
 * without. depth is that of the first; it changes by step. returns how many became free. */
uint32_t cache_unref(struct pkv_cache *cache, const pkv_block_id *ids, uint32_t num, bool keyed,
                     uint32_t depth, int step, uint32_t fill);
/* The block that the next token goes into is shared and has to be copied first. */
bool cache_must_copy(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                     uint32_t num_positions);
void cache_copy_on_write(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t group);
/* Identities of the first num blocks, which the known tokens fill. */
int seq_hash(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num, struct pkv_err *err);

static inline uint32_t positions_in_block(uint32_t num_positions, uint32_t index,
                                          uint32_t block_size)
{
    uint64_t begin = (uint64_t)index * block_size;
    if (num_positions <= begin)
        return 0;
    uint64_t rest = num_positions - begin;
    return rest < block_size ? (uint32_t)rest : block_size;
}

#endif
