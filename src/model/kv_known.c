/*
 * kv_known.c - finds a model by name and makes its layers of its row.
 */
#include "model/kv_known_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"

size_t pkv_kv_model_count(void)
{
    return kv_num_rows;
}

const struct pkv_kv_model_info *pkv_kv_model_info(size_t i)
{
    PKV_ASSERT(i < kv_num_rows);
    return &kv_rows[i].info;
}

void pkv_kv_model_word(const char *name, char *out)
{
    size_t length = 0;

    for (; name[length] && length < PKV_KV_NAME_SIZE - 1; length++)
        out[length] = name[length] == ' ' ? '-' : (char)tolower((unsigned char)name[length]);
    out[length] = '\0';
}

/* Its usual name, its Hugging Face id, or the id without its owner. */
static bool is_named(const struct pkv_kv_model_info *info, const char *name)
{
    char wanted[PKV_KV_NAME_SIZE], word[PKV_KV_NAME_SIZE];
    const char *slash = strchr(info->hf_id, '/');

    pkv_kv_model_word(name, wanted);
    pkv_kv_model_word(info->name, word);
    if (strcmp(wanted, word) == 0)
        return true;
    return slash && (strcasecmp(name, info->hf_id) == 0 || strcasecmp(name, slash + 1) == 0);
}

enum role { ROLE_GLOBAL, ROLE_WINDOW, ROLE_STATE, ROLE_NOTHING };

static enum role role_of(const struct kv_row *row, uint32_t layer)
{
    if (layer + row->shared >= row->layers)
        return ROLE_NOTHING;
    if (row->plan && row->plan[layer] != '*')
        return row->plan[layer] == 'M' ? ROLE_STATE : ROLE_NOTHING;
    if (row->period > 0 && layer % row->period != row->offset)
        return ROLE_STATE;
    if (row->window > 0 && (row->pattern == 0 || (layer + 1) % row->pattern != 0))
        return ROLE_WINDOW;
    return ROLE_GLOBAL;
}

static bool has_indexer(const struct kv_row *row, uint32_t layer)
{
    if (row->index_dim == 0 || layer < row->index_first)
        return row->index_dim > 0;
    return (layer + 1 - row->index_first) % row->index_every == 0;
}

static struct pkv_kv_type type_of(const struct kv_row *row, uint32_t layer, enum role role)
{
    struct pkv_kv_type type = { .kind = PKV_KV_FULL, .num_kv_heads = row->kv_heads,
                                .head_dim_k = row->dim, .head_dim_v = row->dim };

    if (role == ROLE_STATE)
        return (struct pkv_kv_type){ .kind = PKV_KV_STATE, .state = row->state };
    if (row->latent > 0)
        return (struct pkv_kv_type){ .kind = PKV_KV_LATENT, .latent_dim = row->latent,
                                     .rope_dim = row->rope,
                                     .index_dim = has_indexer(row, layer) ? row->index_dim : 0 };
    if (role == ROLE_WINDOW) {
        type.kind = row->chunked ? PKV_KV_CHUNKED : PKV_KV_SLIDING;
        type.window = row->window;
    } else if (row->global_kv_heads > 0) {
        type.num_kv_heads = row->global_kv_heads;
        type.head_dim_k = type.head_dim_v = row->global_dim;
    }
    return type;
}

static void make(const struct kv_row *row, struct pkv_kv_model *out)
{
    memset(out, 0, sizeof(*out));
    pkv_kv_model_word(row->info.name, out->name);
    out->num_layers = row->layers;
    for (uint32_t i = 0; i < row->layers; i++) {
        enum role role = role_of(row, i);
        struct pkv_kv_type type = type_of(row, i, role);

        out->layers[i] = role == ROLE_NOTHING
                             ? PKV_KV_NO_TYPE
                             : (uint8_t)pkv_kv_model_add_type(out, &type, NULL);
    }
    out->num_attention_heads = row->heads;
    out->max_model_len = row->max_len;
    out->num_mtp_layers = row->mtp;
    out->dtype = row->dtype;
    out->fp32_state = row->fp32_state;
    out->num_params = row->params;
    if (row->note)
        snprintf(out->note, sizeof(out->note), "%s", row->note);
    if (!row->info.verified)
        snprintf(out->note, sizeof(out->note), "a part of this model's sizes is recalled or inferred: "
                 "%.150s", row->info.source);
}

bool pkv_kv_model_find(const char *name, struct pkv_kv_model *out)
{
    for (size_t i = 0; i < kv_num_rows; i++)
        if (is_named(&kv_rows[i].info, name)) {
            make(&kv_rows[i], out);
            return true;
        }
    return false;
}

const char *pkv_kv_model_nearest(const char *name, char *out)
{
    struct pkv_nearest nearest;
    char wanted[PKV_KV_NAME_SIZE], word[PKV_KV_NAME_SIZE], id[PKV_KV_NAME_SIZE];

    _Static_assert(PKV_KV_NEAREST_SIZE >= PKV_SUGGESTION_SIZE, "a suggestion has room");
    pkv_kv_model_word(name, wanted);
    pkv_nearest_begin(&nearest, wanted);
    for (size_t i = 0; i < kv_num_rows; i++) {
        const char *slash = strchr(kv_rows[i].info.hf_id, '/');

        pkv_kv_model_word(kv_rows[i].info.name, word);
        pkv_nearest_offer(&nearest, word);
        pkv_kv_model_word(kv_rows[i].info.hf_id, id);
        pkv_nearest_offer_as(&nearest, id, word);
        if (slash) {
            pkv_kv_model_word(slash + 1, id);
            pkv_nearest_offer_as(&nearest, id, word);
        }
    }
    return pkv_nearest_say(&nearest, "", out);
}
