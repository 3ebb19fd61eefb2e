/*
 * groups.c - the KV groups of a model: read, given their block sizes, and written out.
 *
 * A group's own block size stands above the general one of the same layer, so groups are read before
 * it is known how large their blocks are, and looked at together afterwards.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "scenario/scenario_private.h"

static int check_keys(const struct value *v, const struct node *group, const char *size_name,
                      struct pkv_err *err)
{
    const char *const known[] = { "type", "block_size", size_name };
    size_t num = size_name ? 3 : 2;

    for (const struct node *child = group->children; child; child = child->next) {
        size_t i = 0;
        while (i < num && strcmp(child->key, known[i]) != 0)
            i++;
        if (i == num)
            return fail_unknown_word(v->shown, child, known, num, err);
    }
    return 0;
}

static int read_size(const struct value *v, const struct node *group, const char *type,
                     const char *size_name, uint32_t *out, struct pkv_err *err)
{
    struct value item = { .node = node_child(group, size_name), .shown = v->shown };
    const char *why;
    uint64_t size = 0;

    if (!item.node)
        return node_fail(group, err, "%s: a group of type %s has a %s, like {type: %s, %s: %s}",
                         v->shown, type, size_name, type, size_name,
                         strcmp(size_name, "blocks") == 0 ? "1" : "1024");
    if (value_want_number(&item, "a whole number", err) < 0)
        return -1;
    if (pkv_parse_u64(item.node->text, item.node->length, MAX_COUNT, &size, &why) < 0)
        return value_fail(&item, err, "'%.40s' %s", item.node->text, why);
    if (size == 0)
        return value_fail(&item, err, "%s 0 is below 1", size_name);
    *out = (uint32_t)size;
    return 0;
}

static int read_group(const struct value *v, const struct node *node,
                      struct pkv_group_config *out, struct pkv_err *err)
{
    const struct node *type = node->kind == NODE_MAP ? node_child(node, "type") : NULL;
    static const char *const types[] = { "full", "sliding", "chunked", "state" };
    const struct pkv_group_ops *ops;
    const char *size_name = NULL;
    char hint[PKV_SUGGESTION_SIZE];

    if (!type || type->kind != NODE_SCALAR)
        return node_fail(node, err, "%s: a group is a map with a type, like {type: full}",
                         v->shown);
    ops = pkv_group_find(type->text, &size_name);
    if (!ops)
        return node_fail(type, err, "%s: type '%.40s' is not known%s; known: full, sliding, chunked, "
                         "state", v->shown, type->text, pkv_suggest(hint, type->text, "", types, 4));
    *out = (struct pkv_group_config){ .ops = ops, .block_size = out->block_size };
    if (check_keys(v, node, size_name, err) < 0)
        return -1;
    return size_name ? read_size(v, node, type->text, size_name, &out->size, err) : 0;
}

int value_read_groups(const struct value *v, struct pkv_err *err)
{
    struct pkv_sched_config *c = &v->scenario->sched;

    if (v->node->kind != NODE_LIST || !v->node->children)
        return value_fail(v, err, "a list of groups, like [{type: full}], belongs here");
    c->num_groups = 0;
    for (const struct node *node = v->node->children; node; node = node->next) {
        if (c->num_groups == PKV_MAX_GROUPS)
            return node_fail(node, err, "%s: at most %u groups", v->shown, PKV_MAX_GROUPS);
        if (read_group(v, node, &c->groups[c->num_groups++], err) < 0)
            return -1;
    }
    return 0;
}

int groups_read_block_sizes(struct loader *l, struct pkv_err *err)
{
    const struct given *said = &l->given[KEY_GROUPS];
    struct pkv_sched_config *c = &l->scenario->sched;
    struct value v = { .scenario = l->scenario, .key = KEY_BLOCK_SIZE, .source = KEY_BLOCK_SIZE,
                       .shown = said->shown };
    uint32_t general = c->groups[0].block_size, sizes[PKV_MAX_GROUPS];
    bool counts = said->source != KEY_NONE && said->layer >= l->given[KEY_BLOCK_SIZE].layer;
    const struct node *group = counts ? said->node->children : NULL;
    struct pkv_err why = { 0 };

    for (uint32_t g = 0; g < c->num_groups; g++, group = group ? group->next : NULL) {
        v.node = group ? node_child(group, "block_size") : NULL;
        if (v.node && value_read(&v, err) < 0)
            return -1;
        sizes[g] = v.node ? c->groups[0].block_size : general;   /* it was read to there */
    }
    for (uint32_t g = 0; g < c->num_groups; g++)
        c->groups[g].block_size = sizes[g];
    if (said->source == KEY_NONE || pkv_groups_check(c->groups, c->num_groups, &why) == 0)
        return 0;
    return node_fail(said->node, err, "%s: %s", said->shown, why.text);
}

/* The general block size is the first group's; others say theirs where it is another. */
void groups_write(struct pkv_text *out, const struct pkv_sched_config *c)
{
    pkv_text_add(out, "[");
    for (uint32_t g = 0; g < c->num_groups; g++) {
        const struct pkv_group_config *group = &c->groups[g];
        const char *size_name = NULL;

        pkv_group_find(pkv_group_name(group), &size_name);
        pkv_text_fmt(out, "%s{type: %s", g ? ", " : "", pkv_group_name(group));
        if (size_name)
            pkv_text_fmt(out, ", %s: %" PRIu32, size_name, group->size);
        if (group->block_size != c->groups[0].block_size)
            pkv_text_fmt(out, ", block_size: %" PRIu32, group->block_size);
        pkv_text_add(out, "}");
    }
    pkv_text_add(out, "]");
}
