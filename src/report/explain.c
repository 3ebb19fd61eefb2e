/*
 * explain.c - from the directory of a former run: the life of a request, or which ones to ask about.
 */
#include "report/explain_private.h"

#include <string.h>

#include "base/nearest.h"

/* Copy the row of the request that was asked for. */
static int find_row(const struct run_dir *run, const char *id, struct run_row *out,
                    struct pkv_err *err)
{
    struct run_rows rows;
    struct pkv_nearest nearest;
    char hint[PKV_SUGGESTION_SIZE];
    uint64_t found = 0;
    int more = run_rows_open(&rows, run, err);
    pkv_nearest_begin(&nearest, id);
    while (more == 0 && (more = run_rows_next(&rows, err)) > 0) {
        more = 0;
        if (found == 0)
            pkv_nearest_offer(&nearest, rows.row.id.text);
        if (strcmp(rows.row.id.text, id) != 0)
            continue;
        more = found++ == 0 ? run_row_copy(out, &rows.row, err)
               : pkv_fail_at(err, run->requests, rows.side.lines.number, 1, "a second request has the "
                             "id '%.100s': their events cannot be told apart", id);
    }
    run_rows_close(&rows);
    if (more == 0 && found == 0)
        return pkv_fail_at(err, run->requests, 0, 0, "has no request '%.100s'%s; --worst 10 lists "
                           "ten worth asking about", id, pkv_nearest_say(&nearest, "", hint));
    return more;
}

static int explain_one(struct page *p, const struct run_dir *run, const char *id, bool json,
                       struct pkv_err *err)
{
    struct life life = {0};
    struct watch watch = {.lives = &life, .num = 1};
    struct gap gap;
    int status = -1;
    if (find_row(run, id, &life.row, err) == 0 && watch_run(&watch, run, err) == 0)
        status = gap_find(run, &life, &gap, err);
    if (status == 0 && json)
        life_json(&p->text, &life, &gap);
    else if (status == 0)
        tell_life(p, run, &life, &gap);
    watch_free(&watch);
    life_free(&life);
    return status;
}

char *pkv_explain(const struct pkv_explain_config *config, const struct pkv_report_style *style,
                  struct pkv_err *err)
{
    static const struct run_dir_needs needs = {.asker = "explain", .events = true};
    struct page page = {.style = style};
    struct run_dir run;
    struct pkv_err own = {0};
    int status = run_dir_open(&run, config->dir, &needs, &own);
    if (status == 0)
        status = config->id ? explain_one(&page, &run, config->id, config->json, &own)
                            : worst_find(&page, &run, config->worst, config->json, &own);
    run_dir_close(&run);
    if (status == 0)
        return take_text(&page.text, err);
    pkv_text_free(&page.text);
    if (err)
        *err = own;
    return NULL;
}
