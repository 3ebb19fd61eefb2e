/*
 * layout_paged.c - any free block will do, in the order of the evict policy. So there is nothing to
 * decide, and the pool takes from its free queue directly.
 */
#include "pagedkv/pool.h"

const struct pkv_layout_ops pkv_layout_paged = {
    .info = {.name = "paged",
             .summary = "any free block, one at a time as the request grows",
             .source = "Kwon et al., SOSP 2023"},
};
