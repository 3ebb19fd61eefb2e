/*
 * pool.h - a fixed number of KV blocks with reference counts and a free queue.
 *
 * A block is held by any number of sequences (its reference count) or it is free. Free does not
 * mean empty: a free block keeps what is in it, and may be revived, until it is taken. Which free
 * block is taken next is the evict policy's business; where a run of blocks lies is the layout's.
 *
 * Invariants, recounted by pkv_pool_check():
 *   P1  a block is in the free queue if and only if its reference count is 0, and once
 *   P2  num_free is the length of the free queue
 *   P3  allocated + revived = released + blocks that are held now
 *   P4  num_holds is the sum of the reference counts
 */
#ifndef PAGEDKV_POOL_H
#define PAGEDKV_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pagedkv/err.h"
#include "pagedkv/info.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef uint32_t pkv_block_id;          /* 0 .. num_blocks - 1 */
#define PKV_BLOCK_NULL UINT32_MAX       /* "no block": a position outside a window */

enum pkv_pool_end { PKV_END_HEAD, PKV_END_TAIL };   /* head = taken first */

/* Facts about a block's content, filled in by the cache for policies that ask for them. This version
 * knows the depth; the others are 0, next_use UINT64_MAX. */
struct pkv_evict_hint {
    uint32_t depth;                     /* blocks before this one in its chain */
    int32_t priority;
    uint32_t cached_children;           /* cached blocks that continue this one */
    uint64_t next_use;                  /* step of the next look-up that wants it; UINT64_MAX = never */
    uint64_t step;
};

/* Which free block is taken. The policy holds all free blocks, keyed or not, in side arrays of its
 * own. push of a block that is in, remove or pop of one that is not: the program is wrong. */
struct pkv_evict_ops {
    struct pkv_policy_info info;
    bool needs_hint;                    /* else push gets NULL for hints */
    void *(*create)(uint32_t num_blocks, uint64_t seed, struct pkv_err *err);
    void (*destroy)(void *state);
    /* num blocks, one after another at the same end: at the head the last of them ends foremost. */
    void (*push)(void *state, const pkv_block_id *ids, uint32_t num, enum pkv_pool_end end,
                 const struct pkv_evict_hint *hints);
    void (*remove)(void *state, pkv_block_id id);
    void (*pop)(void *state, uint32_t num, pkv_block_id *out);   /* there are as many */
    /* All blocks in the order in which pop would give them; out has room for num_blocks. */
    uint32_t (*list)(const void *state, pkv_block_id *out);
};

/* How blocks lie in memory. paged takes any free block and has no calls at all; a contiguous layout
 * takes runs, and then all of its calls are there. */
struct pkv_layout_ops {
    struct pkv_policy_info info;
    bool needs_max_model_len;           /* reserves by it, so there has to be one */
    void *(*create)(uint32_t num_blocks, struct pkv_err *err);
    void (*destroy)(void *state);
    /* Blocks that a request must be given at its admission at least, in one piece: 0 when it may
     * grow block by block. Positions include the last one that will be stored. */
    uint32_t (*reserve_blocks)(const void *state, uint32_t num_prompt_tokens,
                               uint32_t num_positions, uint32_t max_model_len, uint32_t block_size);
    bool (*take)(void *state, uint32_t num, pkv_block_id *out);   /* all or nothing */
    void (*give)(void *state, const pkv_block_id *ids, uint32_t num);
    uint32_t (*list_free)(const void *state, pkv_block_id *out);
};

extern const struct pkv_layout_ops pkv_layout_paged;

enum pkv_alloc {
    PKV_ALLOC_OK,
    PKV_ALLOC_SHORT   /* not enough free blocks; nothing was changed */
};

struct pkv_pool;

struct pkv_pool_config {
    uint32_t num_blocks;                    /* usable blocks, 1 .. 2^31 - 1 */
    const struct pkv_evict_ops *evict;      /* borrowed */
    const struct pkv_layout_ops *layout;    /* borrowed */
    uint64_t seed;                          /* for policies that draw */
};

/* Counts since create. released counts blocks whose last holder left; a free block revived by a
 * hit counts in revived, not in allocated. */
struct pkv_pool_counts {
    uint64_t allocated, revived, released;
};

/* All blocks are free at first and will be taken in the order of their ids.
 *   cost   O(num_blocks)
 *   errors PKV_ERR_MEMORY; PKV_ERR_INPUT for a size out of range */
struct pkv_pool *pkv_pool_create(const struct pkv_pool_config *config, struct pkv_err *err);
void pkv_pool_destroy(struct pkv_pool *pool);

/* Take num blocks, each with one hold, or none at all.
 *   out   [num], in the order in which they were taken
 *   cost  O(num) with the lru order */
enum pkv_alloc pkv_pool_take(struct pkv_pool *pool, uint32_t num, pkv_block_id *out);

/* One hold more. A free block leaves the queue from wherever it is.
 *   returns  true when the block was free */
bool pkv_pool_ref(struct pkv_pool *pool, pkv_block_id id);

/* Give back one hold of each of num blocks, in the order of ids. Those with no holder left join the
 * free queue at the end given, content kept, and may be revived until taken. Give a sequence's
 * blocks back last block first, so that the tail is lost first.
 *   ids      each with at least one hold (else the program is wrong: abort)
 *   hints    [num]; NULL unless the evict policy needs them
 *   out      [num], may be ids itself: those that became free, in the same order
 *   returns  how many became free
 *   source   vllm/v1/core/block_pool.py, free_blocks */
uint32_t pkv_pool_unref(struct pkv_pool *pool, const pkv_block_id *ids, uint32_t num,
                        enum pkv_pool_end end, const struct pkv_evict_hint *hints,
                        pkv_block_id *out);

uint32_t pkv_pool_ref_cnt(const struct pkv_pool *pool, pkv_block_id id);
uint32_t pkv_pool_num_free(const struct pkv_pool *pool);
/* Reference counts of all blocks together: more than the blocks held by as many as are shared. */
uint64_t pkv_pool_num_holds(const struct pkv_pool *pool);
uint32_t pkv_pool_num_blocks(const struct pkv_pool *pool);
struct pkv_pool_counts pkv_pool_counts(const struct pkv_pool *pool);

/* Blocks that a request must get at its admission at least (see pkv_layout_ops). */
uint32_t pkv_pool_reserve_blocks(const struct pkv_pool *pool, uint32_t num_prompt_tokens,
                                 uint32_t num_positions, uint32_t max_model_len,
                                 uint32_t block_size);

/* The free blocks in the order in which they would be taken. out has room for num_blocks ids. */
uint32_t pkv_pool_list_free(const struct pkv_pool *pool, pkv_block_id *out);

/* Recount everything from nothing. 0, or -1 with PKV_ERR_AUDIT and the first invariant broken. */
int pkv_pool_check(const struct pkv_pool *pool, struct pkv_err *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
