/*
 * compare_more.c - what stands below a comparison's table: tenants, priorities, plots over time.
 *
 * Each is shown only where it says something: groups where there are several, plots for as many
 * configurations as can be looked at together. The files have all of them.
 */
#include "report/compare_page_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define MAX_GROUPS 6u     /* of a kind; the largest */
#define MAX_LINES 5u

/* ---- tenants and priorities ---- */

static double requests_of(const struct compare_group *group)
{
    return group->runs[0].values[GROUP_REQUESTS];
}

/* Is it among the MAX_GROUPS with the most requests in configuration 1? Of equal ones the first. */
static bool is_shown(const struct compare_group *groups, size_t num, size_t i)
{
    size_t num_larger = 0;
    for (size_t other = 0; other < num && num_larger < MAX_GROUPS; other++)
        num_larger += requests_of(&groups[other]) > requests_of(&groups[i]) ||
                      (other < i && !(requests_of(&groups[other]) < requests_of(&groups[i])));
    return num_larger < MAX_GROUPS;
}

static void add_name(struct page *p, const struct group_key *key)
{
    struct pkv_text t = {0};
    if (key->kind == GROUP_PRIORITY)
        pkv_text_fmt(&t, "priority %lld", (long long)key->priority);
    else if (key->tenant)
        pkv_text_fmt(&t, "tenant %s", key->tenant);
    else
        pkv_text_add(&t, "no tenant");
    pkv_text_add(&p->text, "\n");
    page_ink(p, INK_FAINT);
    page_wrap(p, 0, t.text ? t.text : "");
    page_ink(p, INK_PLAIN);
    p->text.failed |= t.failed;
    pkv_text_free(&t);
}

static int add_group(struct page *p, const struct pkv_compare *c, const struct compare_group *group,
                     struct cell *cells, struct pkv_err *err)
{
    struct column columns[GROUP_FIGURE_COUNT];
    size_t num = 0;
    int status = 0;
    for (size_t f = 0; f < GROUP_FIGURE_COUNT && status == 0; f++) {
        compare_group_column(c, group, (enum group_figure)f, cells);
        if (compare_has_column(c, cells))
            status = column_init(&columns[num++], c, &group_figure_infos[f], cells, err);
    }
    if (status == 0 && num > 0) {
        add_name(p, &group->key);
        page_panels(p, c, columns, num);
    }
    for (size_t i = 0; i < num; i++)
        column_finish(&columns[i]);
    return status;
}

static int add_kind(struct page *p, const struct pkv_compare *c, enum group_kind kind,
                    struct cell *cells, struct pkv_err *err)
{
    size_t first, num = compare_groups_of(&c->groups, kind, &first);
    const struct compare_group *groups = &c->groups.items[first];
    struct pkv_text t = {0};
    int status = 0;
    if (num < 2)
        return 0;
    page_heading(p, kind == GROUP_TENANT ? "Tenants" : "Priorities (smaller is sooner)");
    if (kind == GROUP_TENANT)
        page_wrap(p, 0, "service: a prompt token counts 1, a generated one 2, a second from a tenant's "
                  "first arrival to its last end; Jain's index of it and of the mean ttft is 1 when "
                  "all tenants fare alike");
    for (size_t i = 0; i < num && status == 0; i++)
        if (is_shown(groups, num, i))
            status = add_group(p, c, &groups[i], cells, err);
    if (num > MAX_GROUPS) {
        pkv_text_add(&p->text, "\n");
        pkv_text_fmt(&t, "and %zu with fewer requests, which fairness.csv of -o has, too",
                     num - MAX_GROUPS);
        page_wrap(p, 0, t.text ? t.text : "");
    }
    p->text.failed |= t.failed;
    pkv_text_free(&t);
    return status;
}

int page_groups(struct page *p, const struct pkv_compare *c, struct pkv_err *err)
{
    struct cell *cells = pkv_alloc(c->num, sizeof *cells, err);
    int status = cells ? 0 : -1;
    for (int kind = 0; kind < GROUP_KIND_COUNT && status == 0; kind++)
        status = add_kind(p, c, (enum group_kind)kind, cells, err);
    pkv_free(cells);
    return status;
}

/* ---- over time ---- */

int page_overlay(struct page *p, const struct pkv_compare *c, struct pkv_err *err)
{
    struct plot_line lines[MAX_LINES];
    struct overlay_grid grid;
    size_t num = 0;
    overlay_grid_read(c, &grid);
    if (c->num > MAX_LINES || grid.width_ns == 0)
        return 0;
    struct pkv_series_point *points = pkv_alloc(c->num * OVERLAY_BINS, sizeof *points, err);
    if (!points)
        return -1;
    for (size_t i = 0; i < c->num; i++) {
        struct pkv_series_point *of_line = &points[i * OVERLAY_BINS];
        size_t num_points = overlay_read(&c->series[i], &grid, of_line);
        if (num_points > 0)
            lines[num++] = (struct plot_line){i + 1, of_line, num_points,
                                              c->grid->scenarios[i]->sched.num_blocks};
    }
    page_heading(p, c->num_seeds > 1 ? "Fewest free blocks and most waiting over time, first seed"
                                     : "Fewest free blocks and most waiting over time");
    page_plot_lines(p, lines, num, grid.end_ns);
    pkv_free(points);
    return 0;
}
