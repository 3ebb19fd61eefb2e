/*
 * kv_dtype.c - the words of the sizing tables, and how many bytes a vector of values takes.
 */
#include "pagedkv/sizing.h"

#include <string.h>
#include <strings.h>

#include "model/kv_private.h"

#define PKV_NAME(sym, word) [sym] = word,
static const char *const dtype_names[] = { PKV_KV_DTYPES(PKV_NAME) };
static const char *const kind_names[] = { PKV_KV_KINDS(PKV_NAME) };
static const char *const mode_names[] = { PKV_KV_STATE_MODES(PKV_NAME) };
static const char *const split_names[] = { PKV_KV_SPLITS(PKV_NAME) };
#undef PKV_NAME

const char *pkv_kv_dtype_name(enum pkv_kv_dtype dtype)
{
    PKV_ASSERT((unsigned)dtype < PKV_KV_DTYPE_COUNT);
    return dtype_names[dtype];
}

const char *pkv_kv_kind_name(enum pkv_kv_kind kind)
{
    PKV_ASSERT((unsigned)kind < PKV_KV_KIND_COUNT);
    return kind_names[kind];
}

const char *pkv_kv_state_mode_name(enum pkv_kv_state_mode mode)
{
    PKV_ASSERT((unsigned)mode < PKV_KV_STATE_MODE_COUNT);
    return mode_names[mode];
}

const char *pkv_kv_split_name(enum pkv_kv_split split)
{
    PKV_ASSERT((unsigned)split < PKV_KV_SPLIT_COUNT);
    return split_names[split];
}

bool pkv_kv_dtype_find(const char *word, enum pkv_kv_dtype *out)
{
    static const struct { const char *word; enum pkv_kv_dtype dtype; } others[] = {
        { "bfloat16", PKV_KV_BF16 }, { "float16", PKV_KV_FP16 }, { "half", PKV_KV_FP16 },
        { "f16", PKV_KV_FP16 }, { "float32", PKV_KV_FP32 }, { "float", PKV_KV_FP32 },
        { "f32", PKV_KV_FP32 }, { "fp8_e4m3", PKV_KV_FP8 }, { "fp8_e5m2", PKV_KV_FP8 },
        { "fp8_per_token_head", PKV_KV_FP8_TOKEN_HEAD },
        { "int8_per_token_head", PKV_KV_INT8_TOKEN_HEAD }, { "fp4", PKV_KV_NVFP4 },
    };

    if (strncmp(word, "torch.", 6) == 0)
        word += 6;
    for (int i = 0; i < PKV_KV_DTYPE_COUNT; i++)
        if (strcasecmp(word, dtype_names[i]) == 0) {
            *out = (enum pkv_kv_dtype)i;
            return true;
        }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (strcasecmp(word, others[i].word) == 0) {
            *out = others[i].dtype;
            return true;
        }
    return false;
}

const char *pkv_kv_dtype_words(void)
{
#define PKV_LIST(sym, word) ", " word
    static const char words[] = PKV_KV_DTYPES(PKV_LIST);
#undef PKV_LIST
    return words + 2;
}

static int need_multiple(enum pkv_kv_dtype dtype, uint64_t num, uint32_t of, struct pkv_err *err)
{
    if (num % of == 0)
        return 0;
    return pkv_fail(err, PKV_ERR_INPUT, "%s packs %u values at a time, and a head has %llu",
                    dtype_names[dtype], of, (unsigned long long)num);
}

int kv_vector_bytes(enum pkv_kv_dtype dtype, uint64_t num_values, uint64_t *out,
                    struct pkv_err *err)
{
    switch (dtype) {
    case PKV_KV_BF16:
    case PKV_KV_FP16:
        *out = 2 * num_values;
        return 0;
    case PKV_KV_FP32:
        *out = 4 * num_values;
        return 0;
    case PKV_KV_FP8:
    case PKV_KV_INT8:
        *out = num_values;
        return 0;
    case PKV_KV_NVFP4:
        *out = num_values / 2 + num_values / 16;
        return need_multiple(dtype, num_values, 16, err);
    case PKV_KV_Q8_0:
        *out = num_values / 32 * 34;
        return need_multiple(dtype, num_values, 32, err);
    case PKV_KV_Q4_0:
        *out = num_values / 32 * 18;
        return need_multiple(dtype, num_values, 32, err);
    case PKV_KV_FP8_TOKEN_HEAD:
    case PKV_KV_INT8_TOKEN_HEAD:
        *out = num_values + 4;
        return 0;
    case PKV_KV_FP8_DS_MLA:
        return pkv_fail(err, PKV_ERR_INPUT, "fp8_ds_mla is a layout of latent caches (MLA), and this "
                        "model has heads of K and V");
    case PKV_KV_DTYPE_COUNT:
        break;
    }
    PKV_UNREACHABLE("a data type of the cache");
}
