/*
 * cache_private.h - the records of the cache room, for its own files and for tests that break them.
 */
#ifndef PKV_CACHE_PRIVATE_H
#define PKV_CACHE_PRIVATE_H

#include "base/mix.h"
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

/* What a group needs to look up its blocks of one text. */
struct group_look {
    const struct prefix_index *index;
    const uint64_t *keys;               /* of the text, one a unit */
    const struct pkv_group_config *config;
    uint32_t group, units_per_block;
    uint32_t align_blocks;              /* a hit ends at a multiple of so many */
};
/* The oldest block that holds this block of the text, or PKV_BLOCK_NULL. */
pkv_block_id group_look_up(const struct group_look *look, uint32_t index);

/* What a kind of KV group decides. */
struct pkv_group_ops {
    const char *name, *size_name;   /* what its size is called; NULL = it has none */
    bool stores_positions;          /* its blocks hold tokens; else a state */
    bool has_second_key;            /* a prompt that ends inside a block gives it another identity */
    bool keeps_chunk_end;           /* see pkv_cache_config */
    /* The longest hit of at most num_blocks blocks, in blocks, those that are not needed included;
     * ids go to out, PKV_BLOCK_NULL for those. May end off a multiple of align_blocks: then it is
     * asked again for what fits. */
    uint32_t (*find)(const struct group_look *look, uint32_t num_blocks, pkv_block_id *out);
    /* Length of the table for so many positions. */
    uint64_t (*table_blocks)(const struct pkv_group_config *group, uint64_t num_positions);
    /* Leading blocks that no position from num_computed on looks at; NULL = none. */
    uint32_t (*num_out)(const struct pkv_group_config *group, uint32_t num_computed);
    /* One that decodes lets go of a block, if of any, when its length is so many tokens more than a
     * multiple of the block size. UINT32_MAX = at other lengths. NULL = when it takes one. */
    uint32_t (*out_phase)(const struct pkv_group_config *group);
    /* The most blocks it holds at once in steps of so many tokens; NULL = no bound but the table. */
    uint64_t (*most_blocks)(const struct pkv_group_config *group, uint64_t num_step_tokens);
    /* Can a hit use this block of a text? NULL = all. */
    bool (*is_hashed)(const struct pkv_group_config *group, uint32_t index, uint32_t align_blocks);
};

struct group_sizes {
    uint64_t unit, align, largest;   /* gcd and lcm of the block sizes; the largest of them */
};
struct group_sizes group_sizes(const struct pkv_group_config *groups, uint32_t num_groups);

static inline uint64_t group_ceil(uint64_t num, uint32_t size)
{
    return num / size + (num % size != 0);
}

/* Copying under way, and the blocks that it alone still holds: those of a sequence that went out, or of
 * one that was to come in and is gone. The table's places are the sequence's; PKV_BLOCK_NULL = not held. */
struct transfer {
    struct pkv_table held;
    uint32_t num_positions;         /* computed in them */
};

struct pkv_cache {
    struct pkv_pool *pool;          /* owned */
    struct pkv_group_config groups[PKV_MAX_GROUPS];
    uint32_t num_groups;
    uint32_t unit;                  /* tokens: what is hashed */
    uint32_t align;                 /* tokens: hits and hashed blocks end at multiples */
    uint32_t block_size;            /* of the largest block */
    uint32_t num_storing;           /* groups whose blocks hold tokens */
    bool is_plain;                  /* one group of full attention: ways that are shorter */
    bool prefix_cache, keeps_chunk_end;
    enum pkv_pool_end unhashed_free;
    enum pkv_publish publish;
    uint32_t max_ahead_tokens;
    bool drops_last_hit;
    struct prefix_index index;
    struct prefix_index second;     /* second identities, where groups can have them; else empty */
    struct pkv_slab slab;           /* tables, keys, spans not in use */
    pkv_block_id *hit_blocks;       /* owned scratch of look-ups */
    size_t hit_capacity;
    pkv_block_id *freed;            /* owned scratch: room for the longest table */
    struct pkv_evict_hint *hints;   /* owned scratch, the same; unused without needs_hint */
    size_t freed_capacity, hints_capacity;
    bool needs_hint;                /* of the evict policy */
    bool takes_runs;                /* the layout takes blocks in one piece and may say no */
    bool has_forked;                /* a block may have been published by another of its holders */
    uint64_t num_former_runs;       /* whose content it began with; 0 = it began empty */
    uint32_t num_cached;            /* free blocks with a key */
    uint64_t num_stored;            /* positions in held blocks */
    uint64_t num_evicted, num_copied;
    uint64_t version, watched_key;
    bool is_watching;               /* no watched block has changed yet */
    uint32_t watch;                 /* number of the present watch */
    bool log_evicted, evicted_lost; /* lost: there was no memory for one of them */
    pkv_block_id *evicted;          /* [num_evicted_logged], owned */
    size_t num_evicted_logged, evicted_capacity;
    uint32_t num_host_blocks, num_host_used;
    bool keeps_copies;
    struct transfer *transfers;     /* [num_transfers], owned, the oldest first */
    size_t num_transfers, transfers_capacity;
};

/* Identities of the groups differ, as one content lies in different blocks. */
static inline uint64_t cache_group_key(uint64_t key, uint32_t group)
{
    if (group == 0)
        return key;
    uint64_t mixed = pkv_mix(key, group);
    return mixed != PKV_NO_KEY ? mixed : 1;
}

/* Take num new blocks that no longer have an identity. As many are free; only a layout of runs may
 * say no all the same. */
enum pkv_alloc cache_take(struct pkv_cache *cache, uint32_t num, pkv_block_id *out);
/* Something that a look-up would see has happened to these blocks. */
void cache_tell_changes(struct pkv_cache *cache, const pkv_block_id *ids, uint32_t num);
static inline void cache_note_changes(struct pkv_cache *cache, const pkv_block_id *ids,
                                      uint32_t num)
{
    if (cache->is_watching && num > 0)
        cache_tell_changes(cache, ids, num);
}

static inline bool cache_has_key(const struct pkv_cache *cache, pkv_block_id id)
{
    return cache->prefix_cache && cache->index.records[id].key != PKV_NO_KEY;
}

/* Take a block's identities away. */
void cache_forget_keys(struct pkv_cache *cache, pkv_block_id id);
/* The identity of a block that ends with unit number `unit`, from 1, of a text. */
static inline uint64_t cache_key_at(const struct pkv_seq *seq, uint32_t group, uint32_t unit)
{
    return cache_group_key(seq->keys[unit - 1], group);
}
/* The longest hit that is one for every group. */
void cache_find_common(struct pkv_cache *cache, const struct pkv_seq *seq, struct pkv_hit *out_hit);
/* Give back the blocks that no position still to be computed looks at. */
void cache_trim(struct pkv_cache *cache, struct pkv_seq *seq);
/* Positions in a block of a table. */
uint32_t cache_fill(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                    uint32_t index);
/* Give back one hold of each of num blocks with `fill` positions in them, all with an identity or all
 * without. depth is that of the first; it changes by step. returns how many became free. */
uint32_t cache_unref(struct pkv_cache *cache, const pkv_block_id *ids, uint32_t num, bool keyed,
                     uint32_t depth, int step, uint32_t fill);
/* Take the hit and blocks as pkv_cache_grow() does, but enter nothing in the index. */
enum pkv_alloc cache_grow(struct pkv_cache *cache, struct pkv_seq *seq, const struct pkv_hit *hit,
                          uint32_t num_tokens, uint32_t num_positions);
/* host.c */
void cache_free_transfers(struct pkv_cache *cache);
/* Shared blocks that the next token is written into, so that they have to be copied first. */
uint32_t cache_num_copies(const struct pkv_cache *cache, const struct pkv_seq *seq, uint32_t group,
                          uint32_t num_positions);
void cache_copy_on_write(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t group);
/* Identities of the first num units, which the known tokens fill. */
int seq_hash(struct pkv_cache *cache, struct pkv_seq *seq, uint32_t num, struct pkv_err *err);

/* Of its first num_tokens, those that may get an identity. */
static inline uint32_t seq_identified(const struct pkv_seq *seq, uint32_t num_tokens)
{
    bool is_beyond = seq->prompt_only && num_tokens > seq->num_prompt_tokens;
    return is_beyond ? seq->num_prompt_tokens : num_tokens;
}

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
