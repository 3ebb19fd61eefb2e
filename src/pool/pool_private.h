/*
 * pool_private.h - the pool's record, for the pool's own files and for tests that break it.
 */
#ifndef PKV_POOL_PRIVATE_H
#define PKV_POOL_PRIVATE_H

#include "pagedkv/pool.h"

struct pkv_pool {
    uint32_t *ref_cnts;                    /* [num_blocks], owned; written here alone */
    uint32_t num_blocks, num_free;
    uint64_t num_holds;                    /* sum of ref_cnts */
    struct pkv_pool_counts counts;
    const struct pkv_evict_ops *evict;     /* borrowed */
    void *free_blocks;                     /* owned: the evict policy's state; NULL under a layout */
    const struct pkv_layout_ops *layout;   /* borrowed */
    void *layout_state;                    /* owned; NULL when any free block will do */
};

#endif
