/*
 * gather.c - every value that was said, put under the key it is for.
 *
 * Values come in layers, and the later layer wins. Some keys are other names of others (policy
 * says order, preempt and requeue at once): such a value is put under what it stands for, so that
 * a later layer may say a part of it anew. Within one layer the same thing said with two keys is an
 * error that names both; the same key said twice in the settings is not: the last one wins.
 */
#include <stdio.h>
#include <string.h>

#include "scenario/scenario_private.h"

static int fail_pair(const struct given *former, const char *shown, const struct node *node,
                     struct pkv_err *err)
{
    if (former->node->key_line > 0)
        return node_fail_key(node, err,
                             "%s and %s (line %llu) exclude each other; give one of them", shown,
                             former->shown, (unsigned long long)former->node->key_line);
    return node_fail_key(node, err, "%s and %s exclude each other; give one of them", shown,
                         former->shown);
}

static int put(struct given *place, const struct given *said, struct pkv_err *err)
{
    if (place->source != KEY_NONE && place->layer > said->layer)
        return 0;
    if (place->source != KEY_NONE && place->layer == said->layer &&
        place->source != said->source)
        return fail_pair(place, said->shown, said->node, err);
    *place = *said;
    return 0;
}

/* A trace and synthetic traffic: the later layer's word holds. */
static int settle_traffic(struct loader *l, struct pkv_err *err)
{
    struct given *trace = &l->given[KEY_TRACE], *requests = &l->given[KEY_REQUESTS];

    if (trace->source == KEY_NONE || requests->source == KEY_NONE)
        return 0;
    if (trace->layer == requests->layer) {
        const struct given *later =
            trace->node->key_line > requests->node->key_line ? trace : requests;

        return fail_pair(later == trace ? requests : trace, later->shown, later->node, err);
    }
    *(trace->layer < requests->layer ? trace : requests) = (struct given){ .source = KEY_NONE };
    return 0;
}

static int give_key(struct loader *l, enum key_id id, const char *shown, const struct node *node,
                    enum layer layer, struct pkv_err *err)
{
    const struct given said = { .source = id, .node = node, .shown = shown, .layer = layer };

    if (keys[id].means[0] == KEY_NONE && put(&l->given[id], &said, err) < 0)
        return -1;
    for (size_t i = 0; i < MAX_MEANINGS && keys[id].means[i] != KEY_NONE; i++)
        if (put(&l->given[keys[id].means[i]], &said, err) < 0)
            return -1;
    return settle_traffic(l, err);
}

/* Forget what earlier layers said in a section. */
static void clear_section(struct loader *l, const char *name, enum layer layer)
{
    size_t length = strlen(name);

    for (int id = KEY_NONE + 1; id < KEY_COUNT; id++)
        if (strncmp(keys[id].name, name, length) == 0 && keys[id].name[length] == '.' &&
            l->given[id].layer < layer)
            l->given[id] = (struct given){ .source = KEY_NONE };
}

/* A piece of a compact value, at the place of the whole. */
static int give_piece(struct loader *l, enum key_id id, const char *shown,
                      const struct node *whole, const char *text, size_t length, enum layer layer,
                      struct pkv_err *err)
{
    struct node *piece = node_scalar(&l->forest, whole->path, whole->key, text, length, err);

    if (!piece)
        return -1;
    piece->line = whole->line;
    piece->column = whole->column;
    piece->key_line = whole->key_line;
    piece->key_column = whole->key_column;
    return give_key(l, id, shown, piece, layer, err);
}

/* "fixed:1" or "affine:10,0.025,0,0". */
static int give_step_time(struct loader *l, const char *shown, const struct node *node,
                          enum layer layer, struct pkv_err *err)
{
    static const enum key_id fixed[] = { KEY_FIXED_MS, KEY_NONE };
    static const enum key_id affine[] = { KEY_BASE_MS, KEY_PER_PREFILL_TOKEN_MS, KEY_PER_DECODE_MS,
                                          KEY_PER_CONTEXT_TOKEN_NS, KEY_NONE };
    size_t length = strcspn(node->text, ":");
    const char *text = node->text + length;
    const enum key_id *id = NULL;

    if (length == 5 && strncmp(node->text, "fixed", length) == 0)
        id = fixed;
    else if (length == 6 && strncmp(node->text, "affine", length) == 0)
        id = affine;
    if (!id || *text != ':')
        goto refuse;
    if (give_piece(l, KEY_STEP_TIME, shown, node, node->text, length, layer, err) < 0)
        return -1;
    for (; *id != KEY_NONE && *text; id++) {
        text++;
        length = strcspn(text, ",");
        if (length == 0)
            goto refuse;
        if (give_piece(l, *id, shown, node, text, length, layer, err) < 0)
            return -1;
        text += length;
    }
    if (*id == KEY_NONE && !*text)
        return 0;
refuse:
    return node_fail(node, err, "%s: '%.60s' is neither fixed:MS nor affine:BASE_MS,"
                     "PER_PREFILL_TOKEN_MS,PER_DECODE_MS,PER_CONTEXT_TOKEN_NS", shown, node->text);
}

/* A bare number. */
static int give_length(struct loader *l, const char *name, const char *shown,
                       const struct node *node, enum layer layer, struct pkv_err *err)
{
    char key[NAME_SIZE];
    enum key_id law;

    snprintf(key, sizeof(key), "%s.law", name);
    law = key_find(key);
    PKV_ASSERT(law != KEY_NONE);
    if (give_piece(l, law, shown, node, "constant", strlen("constant"), layer, err) < 0)
        return -1;
    snprintf(key, sizeof(key), "%s.value", name);
    return give_key(l, key_find(key), shown, node, layer, err);
}

static int give_section(struct loader *l, const struct section *section, const char *shown,
                        const struct node *node, enum layer layer, struct pkv_err *err)
{
    bool is_compact = node->kind == NODE_SCALAR && !node_is_null(node) &&
                      section->form != SECTION_PLAIN;

    if (node->kind != NODE_MAP && !is_compact)
        return node_fail(node, err, "%s: keys belong here%s", shown,
                         section->form == SECTION_LENGTH ? ", or a number of tokens"
                         : section->form == SECTION_NUMBER ? ", or a number" : "");
    if (section->is_whole)
        clear_section(l, section->name, layer);
    if (!is_compact)
        return loader_give_map(l, section->name, node, layer, err);
    return section->form == SECTION_STEP_TIME
               ? give_step_time(l, shown, node, layer, err)
               : give_length(l, section->name, shown, node, layer, err);
}

static bool is_param(const char *name)
{
    for (int c = 0; c < PKV_CHOICE_COUNT; c++) {
        size_t num;
        const struct pkv_policy_info *const *list = pkv_policy_list((enum pkv_choice)c, &num);

        for (size_t i = 0; i < num; i++)
            if (policy_param_find(list[i], name))
                return true;
    }
    return false;
}

static int give_param(struct loader *l, const char *name, const char *shown,
                      const struct node *node, enum layer layer, struct pkv_err *err)
{
    /* A parameter has one name only, so which key stands as its source tells nothing apart. */
    const struct given said = { .source = KEY_PRESET, .node = node, .shown = shown,
                                .layer = layer };
    size_t i = 0;

    while (i < l->num_params && strcmp(l->params[i].name, name) != 0)
        i++;
    if (i == MAX_PARAMS_GIVEN)
        return node_fail_key(node, err, "%s: more than %u parameters of policies", shown,
                             MAX_PARAMS_GIVEN);
    if (i == l->num_params)
        l->params[l->num_params++] = (struct param_given){ .name = name };
    return put(&l->params[i].given, &said, err);
}

int loader_give(struct loader *l, const char *name, const char *shown, const struct node *node,
                enum layer layer, struct pkv_err *err)
{
    static const char scheduler[] = "scheduler.";
    const struct section *section = section_find(name);
    enum key_id id = key_find(name);
    char *kept = forest_copy(&l->forest, name, strlen(name), err);

    if (!kept)
        return -1;
    if (!shown)
        shown = kept;
    if (section)
        return give_section(l, section, shown, node, layer, err);
    if (id != KEY_NONE)
        return give_key(l, id, shown, node, layer, err);
    if (strncmp(name, scheduler, sizeof(scheduler) - 1) == 0 &&
        is_param(name + sizeof(scheduler) - 1))
        return give_param(l, kept + sizeof(scheduler) - 1, shown, node, layer, err);
    return fail_unknown_key(name, shown, node, err);
}

int loader_give_map(struct loader *l, const char *prefix, const struct node *map,
                    enum layer layer, struct pkv_err *err)
{
    for (const struct node *child = map->children; child; child = child->next) {
        char name[NAME_SIZE];
        int length = snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "",
                              child->key);

        if (length < 0 || (size_t)length >= sizeof(name) || strchr(child->key, '.'))
            return node_fail_key(child, err, "unknown key '%.80s'", child->key);
        if (loader_give(l, name, NULL, child, layer, err) < 0)
            return -1;
    }
    return 0;
}

/* Text and paths are taken as they are, unless they are in quotes; so is the short form of a step
 * time, which would be a map if its numbers were missing ("fixed:"). */
static bool is_verbatim(const char *name, const char *text)
{
    enum key_kind kind = keys[key_find(name)].kind;

    if (*text == '"' || *text == '\'')
        return false;
    return kind == KIND_TEXT || kind == KIND_PATH ||
           (strcmp(name, "step_time") == 0 && *text != '{');
}

struct node *loader_text_node(struct loader *l, const char *name, const char *text,
                              const char *origin, struct pkv_err *err)
{
    struct node *node = NULL;
    char *path = forest_copy(&l->forest, origin, strlen(origin), err);

    if (!path)
        return NULL;
    if (is_verbatim(name, text) || text[strspn(text, " \t")] == '\0') {
        node = node_scalar(&l->forest, path, NULL, text, strlen(text), err);
        if (node)
            node->quoted = *text != '\0';
    } else if (tree_parse(&l->forest, path, text, strlen(text), TREE_YAML, false, &node, err) < 0) {
        if (err && err->code == PKV_ERR_INPUT) {
            const struct pkv_err why = *err;

            pkv_fail_at(err, origin, 0, 0, "%s: '%.60s' is not a value: %s", name, text, why.text);
        }
        return NULL;
    }
    return node;
}

int loader_give_text(struct loader *l, const char *name, const char *text, const char *origin,
                     enum layer layer, struct pkv_err *err)
{
    const struct node *node = loader_text_node(l, name, text, origin, err);

    return node ? loader_give(l, name, NULL, node, layer, err) : -1;
}

int loader_settle_sessions(struct loader *l, struct pkv_err *err)
{
    const struct given *turns = &l->given[KEY_TURNS_LAW];

    if (turns->source == KEY_NONE || l->given[KEY_SESSION_SHARE].source != KEY_NONE)
        return 0;
    return give_piece(l, KEY_SESSION_SHARE, turns->shown, turns->node, "1", 1, turns->layer, err);
}

int loader_give_preset(struct loader *l, const struct pkv_preset *preset, bool choices,
                       enum layer layer, struct pkv_err *err)
{
    for (size_t i = 0; i < preset->num_settings; i++) {
        char name[NAME_SIZE];
        enum key_id id;

        snprintf(name, sizeof(name), "%s%s", strchr(preset->settings[i].key, '.') ? "" : "scheduler.",
                 preset->settings[i].key);
        id = key_find(name);
        if (!choices && (id == KEY_ORDER || id == KEY_PREEMPT || id == KEY_REQUEUE ||
                         id == KEY_POLICY))
            continue;
        if (loader_give_text(l, name, preset->settings[i].value, preset->name, layer, err) < 0)
            return -1;
    }
    return 0;
}
