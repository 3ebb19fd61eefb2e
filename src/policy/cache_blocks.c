/*
 * cache_blocks.c - identities of whole blocks, chained from the first token.
 */
#include "pagedkv/policy.h"

const struct pkv_cache_kind_ops pkv_cache_blocks = {
    .info = {.name = "blocks",
             .summary = "hash-chained whole blocks",
             .source = "vLLM V1, vllm/v1/core/block_pool.py"},
    .kind = PKV_CACHE_BLOCKS,
};
