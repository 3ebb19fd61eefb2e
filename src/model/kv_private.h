/*
 * kv_private.h - what one layer stores, shared by the files of sizing.
 */
#ifndef PKV_MODEL_KV_PRIVATE_H
#define PKV_MODEL_KV_PRIVATE_H

#include "pagedkv/sizing.h"

/* Bytes of a vector of values. -1 with PKV_ERR_INPUT when the type does not pack so many. */
int kv_vector_bytes(enum pkv_kv_dtype dtype, uint64_t num_values, uint64_t *out,
                    struct pkv_err *err);

/* Of one layer on one TP rank: bytes a position (0 for state), bytes of state a sequence. */
int kv_type_bytes(const struct pkv_kv_type *type, const struct pkv_kv_config *config,
                  const struct pkv_kv_model *model, uint64_t *out_position, uint64_t *out_state,
                  struct pkv_err *err);
/* Would the engine cut the heads so? */
int kv_check_tp(const struct pkv_kv_model *model, const struct pkv_kv_config *config,
                struct pkv_err *err);

/* The type that each layer has, draft layers behind the model's own. */
uint32_t kv_num_layers(const struct pkv_kv_model *model, const struct pkv_kv_config *config);
uint32_t kv_layer_type(const struct pkv_kv_model *model, uint32_t layer);

static inline bool kv_grows(enum pkv_kv_kind kind)
{
    return kind == PKV_KV_FULL || kind == PKV_KV_LATENT;
}

static inline uint64_t kv_ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

#endif
