/*
 * vary.c - a grid: keys with the values they take, and the scenario of each combination.
 *
 * `vary:` and --vary come to the same tree, a map of keys to lists. One configuration is what the
 * file and the settings say with one value of each key put above it, so a value goes the way of
 * every other one and is refused at its own place. The file is read once.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/out.h"
#include "base/units.h"
#include "scenario/scenario_private.h"

/* Say a value of an axis. Errors about its key stand at the key of the axis. */
static int give_value(struct loader *l, const struct node *axis, const struct node *value,
                      struct pkv_err *err)
{
    struct node *copy;

    if (strcmp(axis->key, "vary") == 0)
        return node_fail_key(axis, err, "vary: a grid cannot be varied itself");
    copy = forest_alloc(&l->forest, sizeof(*copy), err);
    if (!copy)
        return -1;
    *copy = *value;
    copy->key = axis->key;
    copy->key_line = axis->key_line;
    copy->key_column = axis->key_column;
    copy->next = NULL;
    return loader_give(l, axis->key, NULL, copy, LAYER_VARIED, err);
}

/* Would it be read where it goes? What other keys say is not looked at. */
static int check_value(const struct node *axis, const struct node *value, struct pkv_err *err)
{
    struct loader l = { .path = "", .folder = "" };
    int result = -1;

    l.scenario = scenario_create(err);
    if (l.scenario)
        result = give_value(&l, axis, value, err);
    for (int id = KEY_NONE + 1; id < KEY_COUNT && result == 0; id++) {
        const struct given *said = &l.given[id];
        const struct value v = { .scenario = l.scenario, .key = (enum key_id)id,
                                 .source = said->source, .node = said->node,
                                 .shown = said->shown, .folder = "" };

        if (said->source != KEY_NONE)
            result = value_read(&v, err);
    }
    pkv_scenario_destroy(l.scenario);
    forest_finish(&l.forest);
    return result;
}

/* A value as it may be shown: flow style, texts without quotes. */
static void write_node(struct pkv_text *out, const struct node *node)
{
    bool is_map = node->kind == NODE_MAP;

    if (node->kind == NODE_SCALAR) {
        pkv_text_add(out, node->text);
        return;
    }
    pkv_text_add(out, is_map ? "{" : "[");
    for (const struct node *child = node->children; child; child = child->next) {
        if (is_map)
            pkv_text_fmt(out, "%s: ", child->key);
        write_node(out, child);
        pkv_text_add(out, child->next ? ", " : "");
    }
    pkv_text_add(out, is_map ? "}" : "]");
}

static bool is_same_text(const char *a, const char *b)
{
    double x, y;

    return strcmp(a, b) == 0 || (pkv_parse_double(a, strlen(a), &x, NULL) == 0 &&
                                 pkv_parse_double(b, strlen(b), &y, NULL) == 0 && x == y);
}

/* The same value, also where a number is written in two ways. */
static bool is_same(const struct node *a, const struct node *b)
{
    const struct node *x = a->children, *y = b->children;

    if (a->kind != b->kind)
        return false;
    if (a->kind == NODE_SCALAR)
        return is_same_text(a->text, b->text);
    for (; x && y && is_same(x, y) && (a->kind != NODE_MAP || strcmp(x->key, y->key) == 0); x = x->next)
        y = y->next;
    return !x && !y;
}

static int fail_same(const struct node *axis, const struct node *value, struct pkv_err *err)
{
    struct pkv_text text = { .text = NULL };

    write_node(&text, value);
    node_fail(value, err, "vary: %.80s: the value %.80s is there twice", axis->key,
              text.failed ? "" : text.text);
    pkv_text_free(&text);
    return -1;
}

/* Two configurations that are the same would only look like a result. A grid that is too large is
 * refused for that. */
static int check_differ(const struct node *axis, struct pkv_err *err)
{
    size_t num = 0;

    for (const struct node *value = axis->children; value; value = value->next, num++)
        for (const struct node *before = axis->children; before != value && num <= PKV_GRID_MAX;
             before = before->next)
            if (is_same(before, value))
                return fail_same(axis, value, err);
    return 0;
}

static int check_axis(const struct node *axis, struct pkv_err *err)
{
    if (axis->kind != NODE_LIST)
        return node_fail(axis, err, "vary: %.80s: a list of values belongs here, like [1, 2]",
                         axis->key);
    if (!axis->children)
        return node_fail(axis, err, "vary: %.80s: the list of values is empty", axis->key);
    for (const struct node *value = axis->children; value; value = value->next)
        if (check_value(axis, value, err) < 0)
            return -1;
    return check_differ(axis, err);
}

int value_read_vary(const struct value *v, struct pkv_err *err)
{
    if (v->node->kind != NODE_MAP)
        return value_fail(v, err, "keys with lists of values belong here, like "
                          "'kv.num_blocks: [512, 1024]'");
    for (const struct node *axis = v->node->children; axis; axis = axis->next)
        if (check_axis(axis, err) < 0)
            return -1;
    return 0;
}

/* Bytes of text up to the comma that ends a value. */
static size_t value_length(const char *text)
{
    size_t at = 0;
    int depth = 0;

    for (char quote = '\0'; text[at] && (quote || depth > 0 || text[at] != ','); at++) {
        char c = text[at];

        if (quote)
            quote = c == quote ? '\0' : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else
            depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    }
    return at;
}

/* One value of --vary, hung behind *tail. */
static int add_value(struct loader *l, const struct pkv_setting *vary, const char *text,
                     size_t length, struct node ***tail, struct pkv_err *err)
{
    char *copy = forest_copy(&l->forest, text, length, err);
    struct node *value;

    if (!copy)
        return -1;
    if (copy[strspn(copy, " \t")] == '\0')
        return pkv_fail_at(err, vary->origin, 0, 0, "%.80s: a value is empty; values are parted by "
                           "commas, like KEY=1,2", vary->key);
    value = loader_text_node(l, vary->key, copy, vary->origin, err);
    if (!value)
        return -1;
    **tail = value;
    *tail = &value->next;
    return 0;
}

/* One --vary as an axis. */
static struct node *make_axis(struct loader *l, const struct pkv_setting *vary,
                              struct pkv_err *err)
{
    struct node *axis = forest_alloc(&l->forest, sizeof(*axis), err);
    const char *text = vary->value;
    struct node **tail;

    if (!axis)
        return NULL;
    axis->kind = NODE_LIST;
    axis->key = forest_copy(&l->forest, vary->key, strlen(vary->key), err);
    axis->path = forest_copy(&l->forest, vary->origin, strlen(vary->origin), err);
    if (!axis->key || !axis->path)
        return NULL;
    tail = &axis->children;
    for (;;) {
        size_t length = value_length(text);

        if (add_value(l, vary, text, length, &tail, err) < 0)
            return NULL;
        if (!text[length])
            return axis;
        text += length + 1;
    }
}

static int give_varies(struct loader *l, const struct pkv_setting *varies, size_t num,
                       struct pkv_err *err)
{
    struct node *map = forest_alloc(&l->forest, sizeof(*map), err), **tail;

    if (!map)
        return -1;
    map->kind = NODE_MAP;
    map->path = "";
    tail = &map->children;
    for (size_t i = 0; i < num; i++) {
        if (node_child(map, varies[i].key))
            return pkv_fail_at(err, varies[i].origin, 0, 0, "%.80s is varied twice; give all its "
                               "values at once", varies[i].key);
        *tail = make_axis(l, &varies[i], err);
        if (!*tail)
            return -1;
        tail = &(*tail)->next;
    }
    return loader_give(l, "vary", NULL, map, LAYER_VARIED, err);
}

static size_t num_children(const struct node *node)
{
    size_t num = 0;

    for (const struct node *child = node->children; child; child = child->next)
        num++;
    return num;
}

static int keep_axis(struct pkv_grid_axis *out, const struct node *axis, struct pkv_err *err)
{
    out->key = pkv_strdup(axis->key, err);
    out->values = pkv_alloc(num_children(axis), sizeof(*out->values), err);
    if (!out->key || !out->values)
        return -1;
    for (const struct node *value = axis->children; value; value = value->next) {
        struct pkv_text text = { .text = NULL };

        write_node(&text, value);
        pkv_text_add(&text, "");
        if (text.failed) {
            pkv_text_free(&text);
            return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a grid");
        }
        out->values[out->num_values++] = text.text;
    }
    return 0;
}

/* Keys, values, and how many configurations they make. */
static int keep_axes(struct pkv_grid *grid, const struct node *vary, struct pkv_err *err)
{
    grid->axes = pkv_alloc(num_children(vary), sizeof(*grid->axes), err);
    if (!grid->axes)
        return -1;
    grid->num = 1;
    for (const struct node *axis = vary->children; axis; axis = axis->next) {
        size_t num_values = num_children(axis);

        if (num_values > PKV_GRID_MAX / grid->num)
            return node_fail_key(axis, err, "vary: with the values of %.80s there are more than "
                                 "%u configurations", axis->key, PKV_GRID_MAX);
        grid->num *= num_values;
        grid->num_axes++;
        if (keep_axis(&grid->axes[grid->num_axes - 1], axis, err) < 0)
            return -1;
    }
    return 0;
}

size_t pkv_grid_place(const struct pkv_grid *grid, size_t configuration, size_t axis)
{
    PKV_ASSERT(configuration < grid->num && axis < grid->num_axes);
    for (size_t i = grid->num_axes - 1; i > axis; i--)
        configuration /= grid->axes[i].num_values;
    return configuration % grid->axes[axis].num_values;
}

static const struct node *child_at(const struct node *node, size_t i)
{
    const struct node *child = node->children;

    for (; i > 0; i--)
        child = child->next;
    return child;
}

/* What was gathered is copied, not read again; only the memory of the trees is shared. */
static int make_configuration(struct pkv_grid *grid, struct loader *base, const struct node *vary,
                              size_t configuration, struct pkv_err *err)
{
    struct loader l = *base;
    const struct node *axis = vary->children;
    int result = 0;

    for (size_t i = 0; i < grid->num_axes && result == 0; i++, axis = axis->next)
        result = give_value(&l, axis, child_at(axis, pkv_grid_place(grid, configuration, i)), err);
    if (result == 0)
        grid->scenarios[configuration] = loader_make(&l, err);
    base->forest = l.forest;
    return grid->scenarios[configuration] ? 0 : -1;
}

static int fill(struct pkv_grid *grid, struct loader *base, struct pkv_err *err)
{
    struct given *said = &base->given[KEY_VARY];
    const struct node *vary = said->node;
    const struct value v = { .key = KEY_VARY, .source = KEY_VARY, .node = vary, .shown = "vary" };

    if (said->source != KEY_NONE && value_read(&v, err) < 0)
        return -1;
    if (said->source == KEY_NONE || !vary->children)
        return pkv_fail_at(err, base->path, 0, 0, "nothing to vary: give vary: in the scenario, or "
                           "--vary KEY=V1,V2");
    *said = (struct given){ .source = KEY_NONE };
    if (keep_axes(grid, vary, err) < 0)
        return -1;
    grid->scenarios = pkv_alloc(grid->num, sizeof(*grid->scenarios), err);
    if (!grid->scenarios)
        return -1;
    for (size_t i = 0; i < grid->num; i++)
        if (make_configuration(grid, base, vary, i, err) < 0)
            return -1;
    return 0;
}

struct pkv_grid *pkv_grid_load(const char *path, const struct pkv_setting *settings,
                               size_t num_settings, const struct pkv_setting *varies,
                               size_t num_varies, struct pkv_err *err)
{
    struct loader base = { .scenario = NULL };
    struct pkv_grid *grid = pkv_alloc(1, sizeof(*grid), err);

    if (!grid)
        return NULL;
    if (loader_gather(&base, path, settings, num_settings, err) < 0 ||
        (num_varies > 0 && give_varies(&base, varies, num_varies, err) < 0) ||
        fill(grid, &base, err) < 0) {
        pkv_grid_destroy(grid);
        grid = NULL;
    }
    forest_finish(&base.forest);
    return grid;
}

void pkv_grid_destroy(struct pkv_grid *grid)
{
    if (!grid)
        return;
    for (size_t i = 0; i < grid->num && grid->scenarios; i++)
        pkv_scenario_destroy(grid->scenarios[i]);
    for (size_t i = 0; i < grid->num_axes; i++) {
        for (size_t k = 0; k < grid->axes[i].num_values; k++)
            pkv_free(grid->axes[i].values[k]);
        pkv_free(grid->axes[i].values);
        pkv_free(grid->axes[i].key);
    }
    pkv_free(grid->axes);
    pkv_free(grid->scenarios);
    pkv_free(grid);
}
