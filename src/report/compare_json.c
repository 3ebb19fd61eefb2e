/*
 * compare_json.c - a comparison as JSON: what compare.csv and fairness.csv have.
 *
 * Both are made from the same cells. A figure that a configuration does not have is null.
 */
#include "report/compare_private.h"

#include "base/alloc.h"

#define SCHEMA 1

static void json_number(struct pkv_text *t, const char *key, bool has, double number,
                        unsigned num_decimals)
{
    pkv_text_fmt(t, "\"%s\": ", key);
    if (has)
        add_decimal(t, number, num_decimals);
    else
        pkv_text_add(t, "null");
}

static void json_cell(struct pkv_text *t, const struct figure_info *info, const struct cell *cell,
                      bool intervals)
{
    double scale = info->unit == UNIT_MS ? COMPARE_NS_PER_MS : 1;
    pkv_text_fmt(t, "\"%s\": {", info->name);
    json_number(t, "value", cell->has, cell->mean / scale, COMPARE_VALUE_DECIMALS);
    pkv_text_add(t, ", ");
    if (intervals) {
        json_number(t, "half95", cell->has_half, cell->half / scale, COMPARE_VALUE_DECIMALS);
        pkv_text_add(t, ", ");
        json_number(t, "diff", cell->has_diff, cell->diff / scale, COMPARE_VALUE_DECIMALS);
        pkv_text_add(t, ", ");
        json_number(t, "diff_half95", cell->has_diff_half, cell->diff_half / scale, COMPARE_VALUE_DECIMALS);
        pkv_text_add(t, ", ");
    }
    json_number(t, "diff_percent", cell->has_percent, cell->percent, COMPARE_PERCENT_DECIMALS);
    pkv_text_fmt(t, ", \"best\": %s}", cell->best ? "true" : "false");
}

static void json_pairs(struct pkv_text *t, const struct pairs *p)
{
    pkv_text_fmt(t, "{\"better\": %llu, \"worse\": %llu, \"same\": %llu, \"lost\": %llu, "
                 "\"gained\": %llu, \"better_p50_ms\": ", (unsigned long long)p->better,
                 (unsigned long long)p->worse, (unsigned long long)p->same,
                 (unsigned long long)p->lost, (unsigned long long)p->gained);
    if (p->better > 0)
        add_median(t, p->by_better);
    pkv_text_add(t, p->better > 0 ? ", \"worse_p50_ms\": " : "null, \"worse_p50_ms\": ");
    if (p->worse > 0)
        add_median(t, p->by_worse);
    pkv_text_add(t, p->worse > 0 ? "}" : "null}");
}

static void json_set(struct pkv_text *t, const struct pkv_compare *c, size_t i)
{
    for (size_t axis = 0; axis < c->grid->num_axes; axis++) {
        pkv_text_add(t, axis > 0 ? ", " : "");
        pkv_text_json(t, c->grid->axes[axis].key);
        pkv_text_add(t, ": ");
        pkv_text_json(t, c->grid->axes[axis].values[pkv_grid_place(c->grid, i, axis)]);
    }
}

static void json_row(struct pkv_text *t, const struct pkv_compare *c, const struct cell *cells,
                     size_t i)
{
    pkv_text_fmt(t, "    {\"configuration\": %zu, \"set\": {", i + 1);
    json_set(t, c, i);
    pkv_text_fmt(t, "}, \"outcome\": \"%s\",\n     \"figures\": {", compare_outcome(c, i));
    for (size_t f = 0; f < FIGURE_COUNT; f++) {
        pkv_text_add(t, f > 0 ? ",\n       " : "\n       ");
        json_cell(t, &figure_infos[f], &cells[f * c->num + i], compare_has_intervals(c));
    }
    pkv_text_add(t, "},\n     \"requests_against_first\": ");
    if (compare_has_pairs(c, i))
        json_pairs(t, &c->pairs[i]);
    else
        pkv_text_add(t, "null");
    pkv_text_add(t, i + 1 < c->num ? "},\n" : "}\n");
}

/* ---- tenants and priorities ---- */

/* The cells are those of one group, [GROUP_FIGURE_COUNT][num]. */
static void json_group(struct pkv_text *t, const struct pkv_compare *c,
                       const struct compare_group *group, struct cell *cells)
{
    const struct group_key *key = &group->key;
    pkv_text_fmt(t, "{\"%s\": ", group_kind_names[key->kind]);
    if (key->kind == GROUP_PRIORITY)
        pkv_text_i64(t, key->priority);
    else if (key->tenant)
        pkv_text_json(t, key->tenant);
    else
        pkv_text_add(t, "null");
    for (size_t f = 0; f < GROUP_FIGURE_COUNT; f++)
        compare_group_column(c, group, (enum group_figure)f, &cells[f * c->num]);
    pkv_text_add(t, ", \"configurations\": [");
    for (size_t i = 0; i < c->num; i++) {
        pkv_text_fmt(t, "%s\n     {\"configuration\": %zu", i > 0 ? "," : "", i + 1);
        for (size_t f = 0; f < GROUP_FIGURE_COUNT; f++) {
            pkv_text_add(t, ",\n      ");
            json_cell(t, &group_figure_infos[f], &cells[f * c->num + i], c->num_seeds > 1);
        }
        pkv_text_add(t, "}");
    }
    pkv_text_add(t, "]}");
}

static void json_groups(struct pkv_text *t, const struct pkv_compare *c, enum group_kind kind,
                        struct cell *cells)
{
    size_t first, num = compare_groups_of(&c->groups, kind, &first);
    for (size_t i = 0; i < num; i++) {
        pkv_text_add(t, i > 0 ? ",\n    " : "\n    ");
        json_group(t, c, &c->groups.items[first + i], cells);
    }
}

/* ---- the whole ---- */

int compare_json(struct pkv_text *t, const struct pkv_compare *c, struct pkv_err *err)
{
    struct cell *cells = compare_cells(c, err);
    struct cell *of_group = cells ? pkv_alloc(GROUP_FIGURE_COUNT * c->num, sizeof *cells, err) : NULL;
    if (of_group) {
        pkv_text_fmt(t, "{\n  \"schema\": %d,\n  \"seeds\": %u,\n  \"batches\": %u,\n"
                     "  \"same_traffic\": %s,\n  \"configurations\": [\n", SCHEMA, c->num_seeds,
                     c->num_batches, compare_varies_traffic(c) ? "false" : "true");
        for (size_t i = 0; i < c->num; i++)
            json_row(t, c, cells, i);
        pkv_text_add(t, "  ],\n  \"tenants\": [");
        json_groups(t, c, GROUP_TENANT, of_group);
        pkv_text_add(t, "],\n  \"priorities\": [");
        json_groups(t, c, GROUP_PRIORITY, of_group);
        pkv_text_add(t, "]\n}\n");
    }
    pkv_free(cells);
    pkv_free(of_group);
    return of_group ? 0 : -1;
}

char *pkv_compare_json(const struct pkv_compare *compare, struct pkv_err *err)
{
    struct pkv_text t = {0};
    if (compare_json(&t, compare, err) == 0 && !t.failed)
        return t.text;
    if (t.failed)
        pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for a comparison");
    pkv_text_free(&t);
    return NULL;
}
