/*
 * html_dirs.c - one page of former runs, from the directories that they left.
 *
 * A directory with a report.html of the same run gives all of its islands: they have every step, though
 * steps.csv may be thinned out, and what no other file has. Else, as when that page was cut off, the other
 * files are read.
 */
#include "report/explain_private.h"
#include "report/html_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define MAX_PAGE_BYTES ((size_t)1 << 30)

/* 1 = it is there, 0 = it is not, -1 with an error. */
static int read_if_there(const char *dir, const char *name, struct pkv_text *out, struct pkv_err *err)
{
    struct pkv_err own = {0};
    char buffer[1 << 16];
    size_t num = 0;
    int status = 0;
    char *path = join_path(dir, name, err);
    if (!path)
        return -1;
    struct pkv_input *input = pkv_input_open(path, &own);
    pkv_free(path);
    if (!input && own.code == PKV_ERR_INPUT)
        return 0;
    while (input && (status = pkv_input_read(input, buffer, sizeof buffer, &num, &own)) == 0 && num > 0 &&
           out->length < MAX_PAGE_BYTES)
        pkv_text_bytes(out, buffer, num);
    pkv_input_close(input);
    if (input && status == 0 && !out->failed)
        return 1;
    if (out->failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for %s", name);
    if (err)
        *err = own;
    return -1;
}

/* Is the page that of the run whose summary.json lies beside it? */
static bool is_of_run(const char *page, const struct pkv_text *summary)
{
    struct pkv_text island = {0};
    bool same = html_island_read(page, "summary", &island) && !island.failed &&
                (summary->length == 0 || html_json_is(summary->text, island.text, island.length));
    pkv_text_free(&island);
    return same;
}

/* The title stands in the words. */
static void read_title(const char *page, struct pkv_text *title)
{
    const char *begin = strstr(page, "<title>"), *end = begin ? strstr(begin, "</title>") : NULL;
    static const struct { const char *html; char byte; } escapes[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}};
    for (const char *at = begin ? begin + strlen("<title>") : NULL; at && end && at < end;) {
        size_t length = 1;
        char byte = *at;
        for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
            if (strncmp(at, escapes[i].html, strlen(escapes[i].html)) == 0) {
                byte = escapes[i].byte;
                length = strlen(escapes[i].html);
            }
        pkv_text_bytes(title, &byte, 1);
        at += length;
    }
}

/* A page that does not go on to its end, with nothing beside it to tell the run by. */
static int fail_cut(const char *dir, struct pkv_err *err)
{
    char *path = join_path(dir, "report.html", err);
    if (path)
        pkv_fail_at(err, path, 0, 0, "is cut off: it does not end as a page does, and no summary.json is "
                    "beside it");
    pkv_free(path);
    return -1;
}

/* What there is of one run is written; its head goes to the list of runs. */
static int write_run(struct pkv_out *out, const char *prefix, const char *dir, struct pkv_text *title,
                     struct pkv_text *thinned, struct pkv_err *err)
{
    struct pkv_text page = {0}, summary = {0};
    int there = read_if_there(dir, "report.html", &page, err);
    if (there > 0 && read_if_there(dir, "summary.json", &summary, err) < 0)
        there = -1;
    bool is_cut = there > 0 && !html_is_whole(&page);
    bool has_page = there > 0 && !is_cut && is_of_run(page.text, &summary);
    bool is_alone = summary.length == 0;
    if (has_page) {
        read_title(page.text, title);
        html_islands_copy(out, prefix, page.text);
    }
    pkv_text_free(&page);
    pkv_text_free(&summary);
    if (there < 0 || has_page)
        return there < 0 ? -1 : 0;
    if (is_cut && is_alone)
        return fail_cut(dir, err);
    return html_former_write(out, prefix, dir, title, thinned, err);
}

static void add_head(struct pkv_text *runs, const char *prefix, const char *name,
                     const struct pkv_text *thinned)
{
    pkv_text_add(runs, runs->length > 1 ? "," : "");
    pkv_text_add(runs, "{\"prefix\":");
    pkv_text_json(runs, prefix);
    if (name) {
        pkv_text_add(runs, ",\"name\":");
        pkv_text_json(runs, name);
    }
    if (thinned->length > 0) {
        pkv_text_add(runs, ",\"thinned\":");
        pkv_text_json(runs, thinned->text);
    }
    pkv_text_add(runs, "}");
}

/* Titles are known when the runs have been read, and stand in front of them. */
static int write_runs(struct pkv_out *out, const char *const *dirs, size_t num, struct pkv_err *err)
{
    struct pkv_text runs = {0}, title = {0}, thinned = {0};
    int status = 0;
    pkv_text_add(&runs, "[");
    for (size_t i = 0; status == 0 && i < num; i++) {
        char prefix[32] = "";
        if (num > 1)
            snprintf(prefix, sizeof prefix, "r%zu-", i + 1);
        pkv_text_clear(&title);
        pkv_text_clear(&thinned);
        status = write_run(out, prefix, dirs[i], &title, &thinned, err);
        add_head(&runs, prefix, num > 1 ? dirs[i] : title.text, &thinned);
    }
    pkv_text_add(&runs, "]");
    if (status == 0 && (runs.failed || title.failed || thinned.failed))
        status = pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for report.html");
    if (status == 0)
        html_json(out, "", "runs", runs.text);
    pkv_text_free(&runs);
    pkv_text_free(&title);
    pkv_text_free(&thinned);
    return status;
}

/* The page of one run is made again in its place; that of several takes no page of theirs away. */
static int spare_pages(const char *const *dirs, size_t num, const char *out_dir, struct pkv_err *err)
{
    int status = 0;
    for (size_t i = 0; num > 1 && status == 0 && i < num; i++) {
        char *page = join_path(dirs[i], "report.html", err);
        status = page ? pkv_out_spare(out_dir, "report.html", page, err) : -1;
        pkv_free(page);
    }
    return status;
}

int pkv_html_from_dirs(const char *const *dirs, size_t num, const char *out_dir, struct pkv_err *err)
{
    PKV_ASSERT(num > 0);
    if (spare_pages(dirs, num, out_dir, err) < 0)
        return -1;
    struct pkv_out *out = pkv_out_open(out_dir, "report.html", err);
    char title[64];
    if (!out)
        return -1;
    snprintf(title, sizeof title, num > 1 ? "%zu runs" : "A run", num);
    html_begin(out, title);
    int status = write_runs(out, dirs, num, err);
    html_end(out);
    if (status == 0)
        return pkv_out_commit(out, err);
    pkv_out_drop(out);
    return -1;
}
