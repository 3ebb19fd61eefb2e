/*
 * buddy_private.h - runs of blocks out of a pool, for the contiguous layouts.
 *
 * A run has a power of two of blocks and begins at a multiple of its length. A pool whose size is no
 * power of two is covered by several such runs, the largest first.
 */
#ifndef PKV_BUDDY_PRIVATE_H
#define PKV_BUDDY_PRIVATE_H

#include "pagedkv/pool.h"

/* The calls of pkv_layout_ops that do not depend on what is reserved. */
void *buddy_create(uint32_t num_blocks, struct pkv_err *err);
void buddy_destroy(void *state);
bool buddy_take(void *state, uint32_t num, pkv_block_id *out);
void buddy_give(void *state, const pkv_block_id *ids, uint32_t num);
uint32_t buddy_list_free(const void *state, pkv_block_id *out);

#define BUDDY_CALLS                                                                    \
    .create = buddy_create, .destroy = buddy_destroy, .take = buddy_take,              \
    .give = buddy_give, .list_free = buddy_list_free

/* Blocks of the run that has room for so many positions; 2^31, more than any pool has, when that is
 * beyond 32 bits. */
uint32_t buddy_run_blocks(uint64_t num_positions, uint32_t block_size);

#endif
