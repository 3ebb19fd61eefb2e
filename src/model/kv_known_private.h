/*
 * kv_known_private.h - a row of the table of known models.
 */
#ifndef PKV_MODEL_KV_KNOWN_PRIVATE_H
#define PKV_MODEL_KV_KNOWN_PRIVATE_H

#include "pagedkv/sizing.h"

struct kv_row {
    struct pkv_kv_model_info info;
    uint32_t layers, heads, kv_heads, dim;   /* dim: of a head */
    uint32_t max_len;
    uint32_t window, pattern;    /* layer i, from 0, has it when (i + 1) % pattern is not 0; pattern 0 =
                                    every layer has */
    bool chunked;                /* the window is a chunk */
    uint32_t global_kv_heads, global_dim;    /* of layers without a window; 0 = as the others */
    uint32_t latent, rope;
    uint32_t index_dim;          /* of a sparse indexer; in the first index_first layers, and of those
                                    behind in every index_every-th, counted from the last of the first */
    uint32_t index_first, index_every;
    uint32_t period, offset;     /* layer i attends when i % period == offset, others have a state */
    const char *plan;            /* or layer by layer: * attention, M state, - nothing */
    struct pkv_kv_state state;
    bool fp32_state;
    uint32_t shared;             /* the last so many layers use what others stored */
    uint32_t mtp;
    enum pkv_kv_dtype dtype;
    uint64_t params;
    const char *note;            /* what to know of its sizes, or NULL */
};
extern const struct kv_row kv_rows[];
extern const size_t kv_num_rows;

#endif
