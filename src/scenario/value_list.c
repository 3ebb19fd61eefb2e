/*
 * value_list.c - the values that are lists: priorities, tenants and accepted drafts.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "scenario/scenario_private.h"

static int want_list(const struct value *v, const char *what, struct pkv_err *err)
{
    if (v->node->kind == NODE_LIST && v->node->children)
        return 0;
    return value_fail(v, err, "a list of %s belongs here", what);
}

static int read_priority(const struct value *v, const struct node *node, int64_t *out,
                         struct pkv_err *err)
{
    const struct value item = { .node = node, .shown = v->shown };
    const char *why;

    if (value_want_number(&item, "a priority", err) < 0)
        return -1;
    if (pkv_parse_i64(node->text, node->length, out, &why) < 0)
        return value_fail(&item, err, "'%.40s' %s", node->text, why);
    return 0;
}

static int read_weight(const struct value *v, const struct node *node, double *out,
                       struct pkv_err *err)
{
    const struct value item = { .node = node, .shown = v->shown };
    const char *why;

    if (value_want_number(&item, "a weight", err) < 0)
        return -1;
    if (pkv_parse_double(node->text, node->length, out, &why) < 0)
        return value_fail(&item, err, "'%.40s' %s", node->text, why);
    if (!(*out > 0 && *out <= 1e9))
        return value_fail(&item, err, "a weight is above 0 and at most 1e9, not %.40s",
                          node->text);
    return 0;
}

/* 3, or {priority: 3, weight: 0.5}. */
static int read_level(const struct value *v, const struct node *node, int64_t *out_priority,
                      double *out_weight, struct pkv_err *err)
{
    static const char *const known[] = { "priority", "weight" };
    const struct node *priority, *weight;

    *out_weight = 1;
    if (node->kind != NODE_MAP)
        return read_priority(v, node, out_priority, err);
    for (const struct node *child = node->children; child; child = child->next)
        if (strcmp(child->key, "priority") != 0 && strcmp(child->key, "weight") != 0)
            return fail_unknown_word(v->shown, child, known, 2, err);
    priority = node_child(node, "priority");
    weight = node_child(node, "weight");
    if (!priority)
        return node_fail(node, err, "%s: priority is missing", v->shown);
    if (read_priority(v, priority, out_priority, err) < 0)
        return -1;
    return weight ? read_weight(v, weight, out_weight, err) : 0;
}

int value_read_priorities(const struct value *v, struct pkv_err *err)
{
    struct pkv_scenario *s = v->scenario;
    struct pkv_scenario_private *owned = s->private_;
    size_t num = 0;

    if (want_list(v, "priorities, like [0, 1] or [{priority: 0, weight: 3}],", err) < 0)
        return -1;
    for (const struct node *node = v->node->children; node; node = node->next)
        num++;
    owned->priorities = pkv_alloc(num, sizeof(*owned->priorities), err);
    owned->weights = pkv_alloc(num, sizeof(*owned->weights), err);
    if (!owned->priorities || !owned->weights)
        return -1;
    num = 0;
    for (const struct node *node = v->node->children; node; node = node->next, num++)
        if (read_level(v, node, &owned->priorities[num], &owned->weights[num], err) < 0)
            return -1;
    s->synth.priorities = owned->priorities;
    s->synth.priority_weights = owned->weights;
    s->synth.num_priorities = num;
    return 0;
}

/* [3, 0, 1]: so many of the drafts are right, at most as many as are proposed. */
int value_read_accepted(const struct value *v, struct pkv_err *err)
{
    struct pkv_speculation *speculation = &v->scenario->sched.speculation;
    const char *why;
    uint64_t count;

    if (want_list(v, "numbers of drafts, like [3, 0, 1],", err) < 0)
        return -1;
    speculation->num_accepted = 0;
    for (const struct node *node = v->node->children; node; node = node->next) {
        const struct value item = { .node = node, .shown = v->shown };

        if (speculation->num_accepted == PKV_MAX_ACCEPTED)
            return value_fail(&item, err, "has more than %u numbers", PKV_MAX_ACCEPTED);
        if (value_want_number(&item, "a number of drafts", err) < 0)
            return -1;
        if (pkv_parse_u64(node->text, node->length, speculation->num_tokens, &count, &why) < 0)
            return value_fail(&item, err, "'%.40s' %s", node->text, why);
        speculation->accepted[speculation->num_accepted++] = (uint32_t)count;
    }
    return 0;
}

/* {name: a, weight: 3, priority: 1} */
static int read_tenant(const struct value *v, const struct node *node, struct pkv_synth_tenant *out,
                       struct pkv_err *err)
{
    static const char *const known[] = { "name", "weight", "priority" };
    const struct node *name, *weight, *priority;

    if (node->kind != NODE_MAP)
        return node_fail(node, err, "%s: a tenant is a map, like {name: a, weight: 1}", v->shown);
    for (const struct node *child = node->children; child; child = child->next)
        if (strcmp(child->key, "name") != 0 && strcmp(child->key, "weight") != 0 &&
            strcmp(child->key, "priority") != 0)
            return fail_unknown_word(v->shown, child, known, 3, err);
    name = node_child(node, "name");
    weight = node_child(node, "weight");
    priority = node_child(node, "priority");
    if (!name || name->kind != NODE_SCALAR || name->length == 0)
        return node_fail(name ? name : node, err, "%s: a tenant has a name", v->shown);
    out->weight = 1;
    if (weight && read_weight(v, weight, &out->weight, err) < 0)
        return -1;
    out->has_priority = priority != NULL;
    if (priority && read_priority(v, priority, &out->priority, err) < 0)
        return -1;
    out->name = pkv_strdup(name->text, err);
    return out->name ? 0 : -1;
}

int value_read_tenants(const struct value *v, struct pkv_err *err)
{
    struct pkv_scenario *s = v->scenario;
    size_t num = 0;

    if (want_list(v, "tenants, like [{name: a, weight: 3}, {name: b}],", err) < 0)
        return -1;
    for (const struct node *node = v->node->children; node; node = node->next)
        num++;
    s->private_->tenants = pkv_alloc(num, sizeof(*s->private_->tenants), err);
    if (!s->private_->tenants)
        return -1;
    s->synth.tenants = s->private_->tenants;
    for (const struct node *node = v->node->children; node; node = node->next) {
        if (read_tenant(v, node, &s->private_->tenants[s->synth.num_tenants], err) < 0)
            return -1;
        s->synth.num_tenants++;
    }
    return 0;
}
