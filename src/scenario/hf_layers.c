/*
 * hf_layers.c - which layer is of which kind, in the many ways in which configs say it.
 *
 * layer_types, where it is, says it layer by layer. Else the class of the model has a rule.
 */
#include <string.h>

#include "scenario/hf_private.h"

#define MAX_WINDOW INT32_MAX

static void fill(struct hf *hf, enum hf_role role)
{
    for (uint32_t i = 0; i < hf->num_layers; i++)
        hf->roles[i] = (uint8_t)role;
}

static int read_types(struct hf *hf, const struct node *list, struct pkv_err *err)
{
    static const struct { const char *word; enum hf_role role; } words[] = {
        { "full_attention", HF_FULL }, { "attention", HF_FULL },
        { "sliding_attention", HF_SLIDING }, { "chunked_attention", HF_CHUNK },
        { "linear_attention", HF_STATE }, { "mamba", HF_STATE }, { "mamba2", HF_STATE },
        { "mlp", HF_NOTHING },
    };
    uint32_t layer = 0;

    if (hf_want_list(hf, list, err) < 0)
        return -1;
    for (const struct node *item = list->children; item; item = item->next, layer++) {
        size_t i = 0;

        while (i < sizeof(words) / sizeof(*words) &&
               (item->kind != NODE_SCALAR || strcmp(words[i].word, item->text) != 0))
            i++;
        if (i == sizeof(words) / sizeof(*words))
            return node_fail(item, err, "%s: '%.40s' is not known; known: full_attention, "
                             "sliding_attention, chunked_attention, linear_attention, attention, "
                             "mamba", list->key, item->kind == NODE_SCALAR ? item->text : "");
        hf->roles[layer] = (uint8_t)words[i].role;
    }
    return 0;
}

static const char *const pattern_names[] = { "sliding_window_pattern", "_sliding_window_pattern",
                                                NULL };

/* The pattern's class default is overridden by the key, which has two spellings. */
static int read_pattern(struct hf *hf, struct pkv_err *err)
{
    uint32_t pattern = hf->family->pattern;

    if (!hf_get(hf, "sliding_window"))
        return hf_missing(hf, "sliding_window", "the layers of this type of model slide", err);
    if ((hf_find(hf, pattern_names) || pattern == 0) &&
        hf_need(hf, pattern_names, PKV_KV_MAX_LAYERS, &pattern, err) < 0)
        return -1;
    if (!hf_find(hf, pattern_names))
        hf_assume(hf, pattern_names[0], pattern);
    for (uint32_t i = 0; i < hf->num_layers; i++)
        hf->roles[i] = (i + 1) % pattern != 0 ? HF_SLIDING : HF_FULL;
    if (hf->family->last_is_full)
        hf->roles[hf->num_layers - 1] = HF_FULL;
    return 0;
}

static int read_from_layer(struct hf *hf, struct pkv_err *err)
{
    const struct node *first = hf_get(hf, "max_window_layers");
    uint32_t layer = 0;

    if (!hf_get(hf, "sliding_window") || !hf_flag(hf, "use_sliding_window", false))
        return 0;
    if (!first)
        return hf_missing(hf, "max_window_layers", "use_sliding_window is true", err);
    if (hf_count(first, 0, MAX_WINDOW, &layer, err) < 0)
        return -1;
    for (; layer < hf->num_layers; layer++)
        hf->roles[layer] = HF_SLIDING;
    return 0;
}

/* 1 = with rotary positions, and so chunked. An empty list is as good as none. */
static int read_chunked(struct hf *hf, struct pkv_err *err)
{
    const struct node *list = hf_get(hf, "no_rope_layers");
    const struct node *every = hf_get(hf, "no_rope_layer_interval");
    uint32_t interval = 4, layer = 0;

    if (every && hf_count(every, 1, PKV_KV_MAX_LAYERS, &interval, err) < 0)
        return -1;
    if (!list || (list->kind == NODE_LIST && !list->children)) {
        if (!every)
            hf_assume(hf, "no_rope_layer_interval", interval);
        for (uint32_t i = 0; i < hf->num_layers; i++)
            hf->roles[i] = (i + 1) % interval != 0 ? HF_CHUNK : HF_FULL;
        return 0;
    }
    if (hf_want_list(hf, list, err) < 0)
        return -1;
    for (const struct node *item = list->children; item; item = item->next) {
        uint32_t has_rope = 0;

        if (hf_count(item, 0, 1, &has_rope, err) < 0)
            return -1;
        hf->roles[layer++] = has_rope ? HF_CHUNK : HF_FULL;
    }
    return 0;
}

/* A list of numbers, `full` standing for full attention. */
static int read_numbers(struct hf *hf, const char *name, uint32_t full, enum hf_role other,
                        struct pkv_err *err)
{
    const struct node *list = hf_get(hf, name);
    uint32_t layer = 0, number = 0;

    if (!list)
        return hf_missing(hf, name, "", err);
    if (hf_want_list(hf, list, err) < 0)
        return -1;
    for (const struct node *item = list->children; item; item = item->next) {
        if (hf_count(item, 0, 1, &number, err) < 0)
            return -1;
        hf->roles[layer++] = (uint8_t)(number == full ? HF_FULL : other);
    }
    return 0;
}

static int read_period(struct hf *hf, struct pkv_err *err)
{
    const struct node *node = hf_get(hf, "attn_layer_offset");
    uint32_t period, offset = 0;

    if (hf_need_one(hf, "attn_layer_period", PKV_KV_MAX_LAYERS, &period, err) < 0)
        return -1;
    if (!node)
        return hf_missing(hf, "attn_layer_offset", "", err);
    if (hf_count(node, 0, period - 1, &offset, err) < 0)
        return -1;
    for (uint32_t i = 0; i < hf->num_layers; i++)
        hf->roles[i] = i % period == offset ? HF_FULL : HF_STATE;
    return 0;
}

static int read_interval(struct hf *hf, struct pkv_err *err)
{
    uint32_t interval;

    if (hf_need_one(hf, "full_attention_interval", PKV_KV_MAX_LAYERS, &interval, err) < 0)
        return -1;
    for (uint32_t i = 0; i < hf->num_layers; i++)
        hf->roles[i] = (i + 1) % interval == 0 ? HF_FULL : HF_STATE;
    return 0;
}

static int read_indices(struct hf *hf, struct pkv_err *err)
{
    const struct node *list = hf_get(hf, "attn_layer_indices");
    uint32_t layer = 0;

    if (!list)
        return hf_missing(hf, "attn_layer_indices", "", err);
    if (list->kind != NODE_LIST)
        return node_fail(list, err, "attn_layer_indices: a list of layers belongs here");
    fill(hf, HF_STATE);
    for (const struct node *item = list->children; item; item = item->next) {
        if (hf_count(item, 0, hf->num_layers - 1, &layer, err) < 0)
            return -1;
        hf->roles[layer] = HF_FULL;
    }
    return 0;
}

static int read_override(struct hf *hf, struct pkv_err *err)
{
    const struct node *node = hf_get(hf, "hybrid_override_pattern");

    if (!node)
        return hf_missing(hf, "hybrid_override_pattern", "", err);
    if (node->kind != NODE_SCALAR || node->length != hf->num_layers)
        return node_fail(node, err, "hybrid_override_pattern: one character for each of %u layers "
                         "belongs here", hf->num_layers);
    for (uint32_t i = 0; i < hf->num_layers; i++) {
        char c = node->text[i];

        if (c == '\0' || !strchr("M*-E", c))
            return node_fail(node, err, "hybrid_override_pattern: character %u is none of M, *, -, "
                             "E", i + 1);
        hf->roles[i] = c == 'M' ? HF_STATE : c == '*' ? HF_FULL : HF_NOTHING;
    }
    return 0;
}

static int read_block_types(struct hf *hf, struct pkv_err *err)
{
    const struct node *list = hf_get(hf, "layers_block_type");

    return list ? read_types(hf, list, err) : hf_missing(hf, "layer_types", "", err);
}

static int apply_rule(struct hf *hf, struct pkv_err *err)
{
    const struct node *window = hf_get(hf, "sliding_window");

    fill(hf, HF_FULL);
    switch (hf->family->rule) {
    case HF_PLAIN:
        if (window && hf_flag(hf, "use_sliding_window", true) && hf_find(hf, pattern_names))
            return read_pattern(hf, err);
        /* fall through */
    case HF_ALL_SLIDE:
        if (window && hf_flag(hf, "use_sliding_window", true))
            fill(hf, HF_SLIDING);
        return 0;
    case HF_FROM_LAYER:  return read_from_layer(hf, err);
    case HF_PATTERN:     return read_pattern(hf, err);
    case HF_CHUNKED:     return read_chunked(hf, err);
    case HF_INTERVAL:    return read_interval(hf, err);
    case HF_PERIOD:      return read_period(hf, err);
    case HF_INDICES:     return read_indices(hf, err);
    case HF_TYPES:       return read_block_types(hf, err);
    case HF_OVERRIDE:    return read_override(hf, err);
    case HF_LIST:        return read_numbers(hf, "attn_type_list", 1, HF_STATE, err);
    case HF_MIXED_HEADS: return read_numbers(hf, "hybrid_layer_pattern", 0, HF_SLIDING, err);
    }
    PKV_UNREACHABLE("a rule for layers");
}

/* sliding_window as a list: a number, or null for full attention, for each layer. */
static int read_window_list(struct hf *hf, const struct node *list, struct pkv_err *err)
{
    uint32_t layer = 0;

    if (hf_want_list(hf, list, err) < 0)
        return -1;
    for (const struct node *item = list->children; item; item = item->next, layer++) {
        hf->roles[layer] = HF_FULL;
        if (node_is_null(item))
            continue;
        hf->roles[layer] = HF_SLIDING;
        if (hf_count(item, 1, MAX_WINDOW, &hf->windows[layer], err) < 0)
            return -1;
    }
    return 0;
}

static int read_window(struct hf *hf, enum hf_role role, const char *const *names,
                       uint32_t fallback, struct pkv_err *err)
{
    bool is_used = false;

    for (uint32_t i = 0; i < hf->num_layers; i++)
        is_used |= hf->roles[i] == (uint8_t)role;
    if (!is_used)
        return 0;
    if ((hf_find(hf, names) || fallback == 0) && hf_need(hf, names, MAX_WINDOW, &fallback, err) < 0)
        return -1;
    if (!hf_find(hf, names))
        hf_assume(hf, names[0], fallback);
    for (uint32_t i = 0; i < hf->num_layers; i++)
        if (hf->roles[i] == (uint8_t)role)
            hf->windows[i] = fallback;
    return 0;
}

/* The last layers use what others stored. */
static int drop_shared(struct hf *hf, struct pkv_err *err)
{
    const struct node *node = hf_get(hf, "num_kv_shared_layers");
    uint32_t shared = 0;

    if (node && hf_count(node, 0, hf->num_layers - 1, &shared, err) < 0)
        return -1;
    for (uint32_t i = hf->num_layers - shared; i < hf->num_layers; i++)
        hf->roles[i] = HF_NOTHING;
    return 0;
}

int hf_read_layers(struct hf *hf, struct pkv_err *err)
{
    static const char *const sliding[] = { "sliding_window", "sliding_window_size", NULL };
    static const char *const chunk[] = { "attention_chunk_size", NULL };
    const struct node *types = hf_get(hf, "layer_types"), *window = hf_get(hf, "sliding_window");
    bool is_list = window && window->kind == NODE_LIST;

    if (is_list ? read_window_list(hf, window, err) < 0
                : types ? read_types(hf, types, err) < 0 : apply_rule(hf, err) < 0)
        return -1;
    if (!is_list && read_window(hf, HF_SLIDING, sliding, 0, err) < 0)
        return -1;
    if (read_window(hf, HF_CHUNK, chunk, hf->family->rule == HF_CHUNKED ? 8192 : 0, err) < 0)
        return -1;
    return drop_shared(hf, err);
}
