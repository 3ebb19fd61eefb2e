/*
 * unknown.c - a key that there is not: which one was probably meant, and which there are.
 *
 * The nearest key of its own section is meant; where that section is no section, the one whose whole
 * name is near; else one of another section that ends alike ("num_blocks" is kv.num_blocks).
 */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "scenario/scenario_private.h"

enum scope { SCOPE_SECTION, SCOPE_WHOLE, SCOPE_END };

struct search {
    struct pkv_nearest nearest;
    enum scope scope;
    const char *section;     /* SCOPE_SECTION: where it stands; "" = the top */
};

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static void offer(struct search *s, const char *name)
{
    const char *end = last_part(name);
    size_t length = strlen(s->section);
    if (s->scope == SCOPE_SECTION &&
        (strncmp(name, s->section, length) != 0 || end != name + length + (length > 0)))
        return;
    pkv_nearest_offer_as(&s->nearest, s->scope == SCOPE_WHOLE ? name : end, name);
}

static void offer_params(struct search *s)
{
    for (int c = 0; c < PKV_CHOICE_COUNT; c++) {
        size_t num;
        const struct pkv_policy_info *const *list = pkv_policy_list((enum pkv_choice)c, &num);

        for (size_t i = 0; i < num; i++)
            for (size_t p = 0; p < list[i]->num_params; p++) {
                char name[NAME_SIZE];
                snprintf(name, sizeof(name), "scheduler.%s", list[i]->params[p].name);
                offer(s, name);
            }
    }
}

static bool find(struct search *s, enum scope scope, const char *text)
{
    s->scope = scope;
    pkv_nearest_begin(&s->nearest, text);
    for (int id = KEY_NONE + 1; id < KEY_COUNT; id++)
        offer(s, keys[id].name);
    for (size_t i = 0; section_name(i); i++)
        offer(s, section_name(i));
    offer_params(s);
    return s->nearest.best[0] != '\0';
}

int fail_unknown_key(const char *name, const char *shown, const struct node *node,
                     struct pkv_err *err)
{
    char section[NAME_SIZE] = "", known[400], hint[PKV_SUGGESTION_SIZE];
    const char *end = last_part(name);
    struct search s = { .section = section };

    if (end > name && (size_t)(end - name) <= sizeof(section))
        memcpy(section, name, (size_t)(end - name) - 1);
    section_list(section, known, sizeof(known));
    if (!find(&s, SCOPE_SECTION, end) && (*known || !find(&s, SCOPE_WHOLE, name)))
        find(&s, SCOPE_END, end);
    pkv_nearest_say(&s.nearest, "", hint);
    if (!*known)
        return node_fail_key(node, err, "unknown key '%.80s'%s", shown, hint);
    return node_fail_key(node, err, "unknown key '%.80s'%s; known%s%s: %s", shown, hint,
                         *section ? " in " : "", section, known);
}

int fail_unknown_word(const char *shown, const struct node *node, const char *const *words, size_t num,
                      struct pkv_err *err)
{
    char known[200] = "", hint[PKV_SUGGESTION_SIZE];
    size_t used = 0;

    for (size_t i = 0; i < num && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i > 0 ? ", " : "", words[i]);
    return node_fail_key(node, err, "%s: unknown key '%.60s'%s; known: %s", shown, node->key,
                         pkv_suggest(hint, node->key, "", words, num), known);
}
