/*
 * compare_html.c - report.html of a comparison: its table, and the first seed's runs laid over each other.
 */
#include "report/compare_private.h"
#include "report/html_private.h"

#include <stdio.h>

#include "base/alloc.h"
#include "report/packed.h"

/* "scheduler.policy=fcfs, kv.num_blocks=64" */
static void add_name(struct pkv_text *t, const struct pkv_grid *grid, size_t configuration)
{
    for (size_t i = 0; i < grid->num_axes; i++)
        pkv_text_fmt(t, "%s%s=%s", i > 0 ? ", " : "", grid->axes[i].key,
                     grid->axes[i].values[pkv_grid_place(grid, configuration, i)]);
}

static const char *make_prefix(char out[32], size_t configuration)
{
    snprintf(out, 32, "r%zu-", configuration + 1);
    return out;
}

static int write_bins(struct pkv_out *out, const char *prefix, const struct pkv_compare *c,
                      size_t configuration, struct pkv_err *err)
{
    static const char *const columns[] = {
        "begin_ns", "end_ns", "min_free", "max_free", "min_waiting", "max_waiting", "min_running",
        "max_running", "min_preemptions_total", "max_preemptions_total",
    };
    struct overlay_grid grid;
    int64_t preemptions = 0;
    int status = 0;
    struct packed *p = packed_create(columns, sizeof columns / sizeof *columns, err);
    struct pkv_series_point *points = p ? pkv_alloc(OVERLAY_BINS, sizeof *points, err) : NULL;
    overlay_grid_read(c, &grid);
    size_t num = points ? overlay_read(&c->series[configuration], &grid, points) : 0;
    for (size_t i = 0; i < num && status == 0; i++) {
        const struct pkv_series_point *b = &points[i];
        const int64_t values[] = {b->begin_ns, b->end_ns, b->min_free, b->max_free, b->min_waiting,
                                  b->max_waiting, b->min_running, b->max_running, preemptions,
                                  preemptions + b->preemptions};
        preemptions += b->preemptions;
        status = packed_row(p, values, err);
    }
    if (!points || status < 0 || packed_write(p, prefix, "bins", out, err) < 0)
        status = -1;
    pkv_free(points);
    packed_destroy(p);
    return status;
}

static int write_run(struct pkv_out *out, const struct pkv_compare *c, size_t configuration,
                     struct pkv_err *err)
{
    const struct pkv_scenario *scenario = c->grid->scenarios[configuration];
    const struct kept_run *kept = &c->kept[configuration];
    char prefix[32], sha256[65];
    char *yaml = pkv_scenario_resolved(scenario, err);
    if (!yaml)
        return -1;
    pkv_scenario_sha256(yaml, sha256);
    const struct pkv_run_info info = {.version = c->version, .seed = scenario->seed,
                                      .scenario_sha256 = sha256, .scenario_yaml = yaml};
    const struct pkv_html_run run = {.metrics = kept->metrics, .info = &info,
                                     .notes = kept->has_notes ? &kept->notes : NULL};
    int status = html_run_figures(out, make_prefix(prefix, configuration), scenario, &run, err);
    pkv_scenario_free_text(yaml);
    return status < 0 ? -1 : write_bins(out, prefix, c, configuration, err);
}

static bool is_shown(const struct pkv_compare *c, size_t i)
{
    return c->kept[i].metrics && c->series[i].num > 0;
}

static int write_heads(struct pkv_out *out, const struct pkv_compare *c, struct pkv_err *err)
{
    struct pkv_text runs = {0}, name = {0};
    struct overlay_grid grid;
    char prefix[32];
    overlay_grid_read(c, &grid);
    pkv_text_add(&runs, "[");
    for (size_t i = 0; i < c->num; i++) {
        if (!is_shown(c, i))
            continue;
        pkv_text_clear(&name);
        add_name(&name, c->grid, i);
        pkv_text_fmt(&runs, "%s{\"prefix\":\"%s\",\"span\":[0,%lld],\"name\":",
                     runs.length > 1 ? "," : "", make_prefix(prefix, i), (long long)grid.end_ns);
        pkv_text_json(&runs, name.text ? name.text : "");
        pkv_text_add(&runs, "}");
    }
    pkv_text_add(&runs, "]");
    int status = runs.failed || name.failed
        ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for report.html") : 0;
    if (status == 0)
        html_json(out, "", "runs", runs.text);
    pkv_text_free(&runs);
    pkv_text_free(&name);
    return status;
}

int compare_html(struct pkv_out *out, const struct pkv_compare *c, struct pkv_err *err)
{
    struct pkv_text title = {0};
    char *table = pkv_compare_json(c, err);
    if (!table)
        return -1;
    pkv_text_add(&title, "Comparison: ");
    html_title(&title, c->grid->scenarios[0]);
    html_begin(out, title.text ? title.text : "");
    pkv_text_free(&title);
    html_json(out, "", "compare", table);
    pkv_report_free(table);
    int status = write_heads(out, c, err);
    for (size_t i = 0; i < c->num && status == 0; i++)
        if (is_shown(c, i))
            status = write_run(out, c, i, err);
    html_end(out);
    return status;
}
