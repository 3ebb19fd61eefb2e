/*
 * run_dir.c - what a former run was: the figures of its summary.json and its scenario.
 *
 * Files of two runs in one directory would be told as one story, so they are held against each
 * other: the summary names the scenario by its sum, and counts what the other files list.
 */
#include "report/explain_private.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

char *join_path(const char *dir, const char *name, struct pkv_err *err)
{
    struct pkv_text t = {0};
    pkv_text_fmt(&t, "%s/%s", dir, name);
    if (!t.failed)
        return t.text;
    pkv_text_free(&t);
    pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the name of %s", name);
    return NULL;
}

/* The whole of a small file. */
#define MAX_FILE_BYTES ((size_t)16 << 20)
int run_dir_read(const char *path, struct pkv_text *out, struct pkv_err *err)
{
    char buffer[4096];
    size_t num = 0;
    struct pkv_input *input = pkv_input_open(path, err);
    if (!input)
        return -1;
    int status;
    while ((status = pkv_input_read(input, buffer, sizeof buffer, &num, err)) == 0 && num > 0 &&
           out->length < MAX_FILE_BYTES)
        pkv_text_bytes(out, buffer, num);
    pkv_input_close(input);
    if (status == 0 && num > 0)
        return pkv_fail_at(err, path, 0, 0, "is longer than %zu bytes", MAX_FILE_BYTES);
    if (status == 0 && out->failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for %s", path);
    if (status == 0 && out->length == 0)
        return pkv_fail_at(err, path, 0, 0, "is empty");
    return status;
}

/* ---- summary.json ---- */

#define SUMMARY_SCHEMA 1u
#define REQUEST_COUNTS(X) X(arrived) X(completed) X(rejected) X(aborted) X(unfinished)

static int read_requests(struct pkv_json *j, struct run_counts *counts, unsigned *seen,
                         struct pkv_err *err)
{
    struct pkv_json_text key;
    int more;
    if (pkv_json_enter_object(j, err) < 0)
        return -1;
    while ((more = pkv_json_next_member(j, &key, err)) > 0) {
        uint64_t *to = NULL;
#define FIND(name) to = pkv_json_text_is(&key, #name) ? &counts->name : to;
        REQUEST_COUNTS(FIND)
#undef FIND
        if ((to ? pkv_json_u64(j, UINT64_MAX, to, err) : pkv_json_value(j, NULL, err)) < 0)
            return -1;
        *seen += to != NULL;
    }
    return more;
}

static int read_whole(struct pkv_json *j, struct run_counts *counts, struct pkv_err *err)
{
    struct pkv_json_text key;
    unsigned seen = 0;
    int more;
    if (pkv_json_enter_object(j, err) < 0)
        return -1;
    while ((more = pkv_json_next_member(j, &key, err)) > 0) {
        bool is_preemptions = pkv_json_text_is(&key, "preemptions");
        uint64_t *to = is_preemptions ? &counts->preemptions : &counts->makespan_ns;
        if ((pkv_json_text_is(&key, "requests") ? read_requests(j, counts, &seen, err)
             : is_preemptions || pkv_json_text_is(&key, "makespan_ns")
                 ? pkv_json_u64(j, INT64_MAX, to, err)
                 : pkv_json_value(j, NULL, err)) < 0)
            return -1;
    }
    return more;
}

/* seen: how many of the figures that are needed have come. Of a run with a window those of the whole
 * run, which come last, are wanted. */
static int read_member(struct pkv_json *j, const struct pkv_json_text *key,
                       struct run_counts *counts, char sha256[65], unsigned *seen,
                       struct pkv_err *err)
{
    struct pkv_json_text text;
    uint64_t schema;
    if (pkv_json_text_is(key, "requests"))
        return read_requests(j, counts, seen, err);
    if (pkv_json_text_is(key, "whole"))
        return read_whole(j, counts, err);
    if (pkv_json_text_is(key, "schema")) {
        if (pkv_json_u64(j, UINT64_MAX, &schema, err) < 0)
            return -1;
        return schema == SUMMARY_SCHEMA ? 0
            : pkv_json_fail(j, err, "schema %" PRIu64 " is not read by this version, which reads %u",
                            schema, SUMMARY_SCHEMA);
    }
    if (pkv_json_text_is(key, "scenario_sha256")) {
        if (pkv_json_string(j, &text, err) < 0)
            return -1;
        if (text.length != 64 || text.has_escapes)
            return pkv_json_fail_at(j, text.column, err, "scenario_sha256 should have 64 digits");
        memcpy(sha256, text.text, 64);
        *seen += 1;
        return 0;
    }
    bool is_preemptions = pkv_json_text_is(key, "preemptions");
    if (!is_preemptions && !pkv_json_text_is(key, "makespan_ns"))
        return pkv_json_value(j, NULL, err);
    *seen += 1;
    return pkv_json_u64(j, INT64_MAX, is_preemptions ? &counts->preemptions : &counts->makespan_ns,
                        err);
}

#define NUM_NEEDED 8u    /* five counts of requests, preemptions, makespan, sum */

static int parse_summary(struct run_dir *run, const struct pkv_text *text, char sha256[65],
                         struct pkv_err *err)
{
    struct pkv_json j;
    struct pkv_json_text key;
    unsigned seen = 0;
    int more;
    pkv_json_init(&j, run->summary, 0, text->text, text->length);
    if (pkv_json_enter_object(&j, err) < 0)
        return -1;
    while ((more = pkv_json_next_member(&j, &key, err)) > 0)
        if (read_member(&j, &key, &run->counts, sha256, &seen, err) < 0)
            return -1;
    if (more < 0 || pkv_json_end(&j, err) < 0)
        return -1;
    if (seen != NUM_NEEDED)
        return pkv_fail_at(err, run->summary, 0, 0, "is no summary of a run: requests, preemptions, "
                           "makespan_ns and scenario_sha256 should each be there once");
    return 0;
}

/* ---- all of it ---- */

static int check_scenario(const struct run_dir *run, const struct pkv_text *yaml,
                          const char *sha256, struct pkv_err *err)
{
    char sum[65];
    pkv_scenario_sha256(yaml->text, sum);
    if (strcmp(sum, sha256) == 0)
        return 0;
    return pkv_fail_at(err, run->scenario_file, 0, 0, "is not the scenario of the run that wrote %s "
                       "(SHA-256 %.8s..., there %.8s...): files of different runs, or one was edited",
                       run->summary, sum, sha256);
}

static int read_run(struct run_dir *run, struct pkv_text *summary, struct pkv_text *yaml,
                    struct pkv_err *err)
{
    char sha256[65] = "";
    if (run_dir_read(run->summary, summary, err) < 0 ||
        parse_summary(run, summary, sha256, err) < 0 ||
        run_dir_read(run->scenario_file, yaml, err) < 0 ||
        check_scenario(run, yaml, sha256, err) < 0)
        return -1;
    run->scenario = pkv_scenario_load(run->scenario_file, NULL, 0, err);
    if (!run->scenario)
        return -1;
    if (run->scenario->step_time.law == PKV_STEP_TIME_FIXED)
        run->step_ns = run->scenario->step_time.fixed_ns;
    return 0;
}

/* The files that tell a life; each is missed with the same advice. */
static int check_there(const struct run_dir *run, const char *dir, const struct run_dir_needs *needs,
                       struct pkv_err *err)
{
    const char *const needed[] = {run->events, run->requests, run->summary, run->scenario_file};
    for (size_t i = needs->events ? 0 : 1; i < sizeof needed / sizeof *needed; i++) {
        struct pkv_input *input = pkv_input_open(needed[i], err);
        if (!input && err && err->code == PKV_ERR_INPUT) {
            char why[sizeof err->text];
            memcpy(why, err->text, sizeof why);
            return pkv_fail_at(err, needed[i], 0, 0, "%.200s; %s reads the directory that a run with "
                               "-o %.120s leaves (all files, or --files with %srequests, summary and "
                               "scenario)", why, needs->asker, dir, needs->events ? "events, " : "");
        }
        if (!input)
            return -1;
        pkv_input_close(input);
    }
    return 0;
}

int run_dir_open(struct run_dir *run, const char *dir, const struct run_dir_needs *needs,
                 struct pkv_err *err)
{
    struct pkv_text summary = {0}, yaml = {0};
    int status = -1;
    *run = (struct run_dir){0};
    if ((run->requests = join_path(dir, "requests.csv", err)) &&
        (run->events = join_path(dir, "events.jsonl", err)) &&
        (run->steps = join_path(dir, "steps.csv", err)) &&
        (run->summary = join_path(dir, "summary.json", err)) &&
        (run->scenario_file = join_path(dir, "scenario.yaml", err)) && check_there(run, dir, needs, err) == 0)
        status = read_run(run, &summary, &yaml, err);
    pkv_text_free(&summary);
    pkv_text_free(&yaml);
    return status;
}

void run_dir_close(struct run_dir *run)
{
    pkv_scenario_destroy(run->scenario);
    pkv_free(run->requests);
    pkv_free(run->events);
    pkv_free(run->steps);
    pkv_free(run->summary);
    pkv_free(run->scenario_file);
}

int run_dir_mixed(const char *path, const char *what, uint64_t here, uint64_t in_summary,
                  struct pkv_err *err)
{
    return pkv_fail_at(err, path, 0, 0, "%s: %" PRIu64 " here, %" PRIu64 " in summary.json: files of "
                       "different runs, or a log that was cut off", what, here, in_summary);
}
