/*
 * html_former.c - the islands of a run that left its other files, but no report.html.
 *
 * What the files have is shown as the run itself would show it. What only the run saw, as the gaps
 * between single tokens, is missing, and the page says how to get it.
 */
#include "report/explain_private.h"
#include "report/html_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

static const char steps_header[] =
#define COLUMN(name) "," #name
    PKV_STEP_COLUMNS(COLUMN);
#undef COLUMN
#define NUM_COLUMNS (offsetof(struct pkv_step_row, regular_gap_ns) / sizeof(int64_t))

/* The latencies that requests tell of. */
#define TOLD(X) X(ttft) X(tpot) X(max_gap) X(e2e) X(queue)

struct former {
    struct run_dir run;
    struct pkv_text summary_text, yaml;
    struct pkv_summary summary;
    void *steps, *requests;             /* parts; owned */
    struct pkv_notable first_unadmitted;   /* unfinished; ns: its arrival */
    int64_t first_arrival_ns;           /* INT64_MAX = nobody came */
    uint64_t num_in_window;             /* rows of steps.csv */
    bool has_steps;
#define FIELD(name) struct pkv_histogram *name;    /* owned */
    TOLD(FIELD)
#undef FIELD
};

static bool is_within(const struct former *f, int64_t ns)
{
    const struct pkv_scenario *s = f->run.scenario;
    return ns >= s->measure_after_ns && (s->measure_until_ns == 0 || ns < s->measure_until_ns);
}

/* ---- steps.csv ---- */

static int take_step(struct former *f, struct side *side, struct row *fields, struct pkv_err *err)
{
    int64_t values[NUM_COLUMNS];
    const char *why;
    if (side_split(side, fields, err) < 0)
        return -1;
    if (fields->num != NUM_COLUMNS)
        return pkv_fail_at(err, side->path, side->lines.number, 0,
                           "a row of %zu fields under a header of %zu", fields->num, NUM_COLUMNS);
    for (size_t i = 0; i < NUM_COLUMNS; i++)
        if (pkv_parse_i64(fields->fields[i], fields->lengths[i], &values[i], &why) < 0)
            return pkv_fail_at(err, side->path, side->lines.number,
                               (uint32_t)(fields->fields[i] - side->text) + 1, "'%.*s' %s",
                               (int)(fields->lengths[i] < 60 ? fields->lengths[i] : 60),
                               fields->fields[i], why);
    f->num_in_window += is_within(f, values[offsetof(struct pkv_step_row, time_ns) / sizeof(int64_t)]);
    return html_steps_add(f->steps, values, err);
}

static int read_steps(struct former *f, struct pkv_err *err)
{
    struct side side = {0};
    struct row fields;
    struct pkv_err missing = {0};
    if (side_open(&side, f->run.steps, &missing) < 0) {
        side_close(&side);
        if (missing.code == PKV_ERR_INPUT)
            return 0;      /* the charts over time are left out, which the page says */
        if (err)
            *err = missing;
        return -1;
    }
    int status = 0;
    f->has_steps = true;
    if (!side.text || side.length != sizeof steps_header - 2 ||
        memcmp(side.text, steps_header + 1, side.length) != 0)
        status = pkv_fail_at(err, f->run.steps, 1, 1, "does not begin with the columns of steps.csv");
    while (status == 0 && (status = side_next(&side, err)) == 0 && side.text)
        status = take_step(f, &side, &fields, err);
    side_close(&side);
    return status;
}

/* ---- requests.csv ---- */

static int add_times(struct former *f, const struct run_row *r, struct pkv_err *err)
{
    int64_t ttft = r->first_token_ns - r->arrival_ns, decode = r->finish_ns - r->first_token_ns;
    if ((r->queue_ns != PKV_NO_TIME && pkv_histogram_add(f->queue, r->queue_ns, 1, err) < 0))
        return -1;
    if (r->first_token_ns == PKV_NO_TIME)
        return 0;
    if (pkv_histogram_add(f->ttft, ttft, 1, err) < 0 ||
        (r->max_gap_ns != PKV_NO_TIME && pkv_histogram_add(f->max_gap, r->max_gap_ns, 1, err) < 0))
        return -1;
    if (r->status != PKV_REQUEST_COMPLETED)
        return 0;
    if (r->output_tokens > 1 &&
        pkv_histogram_add(f->tpot, decode / (int64_t)(r->output_tokens - 1), 1, err) < 0)
        return -1;
    return pkv_histogram_add(f->e2e, r->finish_ns - r->arrival_ns, 1, err);
}

static void set_notable(struct pkv_notable *n, const struct run_row *r, int64_t ns, uint64_t num)
{
    n->exists = true;
    n->is_cut = r->id.length >= sizeof n->id;
    snprintf(n->id, sizeof n->id, "%s", r->id.text);
    n->ns = ns;
    n->num = num;
}

static void note_notable(struct former *f, const struct run_row *r)
{
    struct pkv_summary *s = &f->summary;
    int64_t wait = r->queue_ns;
    if (wait == PKV_NO_TIME && r->finish_ns != PKV_NO_TIME)
        wait = r->finish_ns - r->arrival_ns;
    if (wait != PKV_NO_TIME && wait > s->longest_wait.ns)
        set_notable(&s->longest_wait, r, wait, 0);
    if (wait == PKV_NO_TIME && r->status == PKV_REQUEST_UNFINISHED &&
        (!f->first_unadmitted.exists || r->arrival_ns < f->first_unadmitted.ns))
        set_notable(&f->first_unadmitted, r, r->arrival_ns, 0);
    if (r->preemptions > 0 && r->max_gap_ns != PKV_NO_TIME && r->max_gap_ns > s->longest_away.ns)
        set_notable(&s->longest_away, r, r->max_gap_ns, 0);
    if (r->preemptions > s->most_preempted.num)
        set_notable(&s->most_preempted, r, 0, r->preemptions);
    if (r->status == PKV_REQUEST_UNFINISHED &&
        (!s->first_unfinished.exists || r->arrival_ns < s->first_unfinished.ns))
        set_notable(&s->first_unfinished, r, r->arrival_ns, 0);
    if (r->status == PKV_REQUEST_REJECTED && !s->rejected_reason[0])
        snprintf(s->rejected_reason, sizeof s->rejected_reason, "%s", r->reason.text);
    s->num_with_priority += r->priority != 0;
}

static int64_t time_or_none(int64_t ns)
{
    return ns == PKV_NO_TIME ? -1 : ns;
}

static int take_request(struct former *f, const struct run_row *r, struct pkv_err *err)
{
    const struct html_request plain = {
        .arrival_ns = r->arrival_ns,
        .admitted_ns = time_or_none(r->admitted_ns),
        .first_token_ns = time_or_none(r->first_token_ns),
        .finish_ns = time_or_none(r->finish_ns),
        .status = (int64_t)r->status,
        .prompt_tokens = (int64_t)r->prompt_tokens,
        .output_tokens = (int64_t)r->output_tokens,
        .hit_tokens = (int64_t)r->hit_tokens,
        .recomputed_tokens = (int64_t)r->recomputed_tokens,
        .preemptions = (int64_t)r->preemptions,
        .peak_blocks = (int64_t)r->peak_blocks,
        .max_gap_ns = time_or_none(r->max_gap_ns),
        .priority = r->priority == PKV_NO_TIME ? 0 : r->priority,
        .id = r->id.text ? r->id.text : "",
        .tenant = r->tenant.text ? r->tenant.text : "",
    };
    if (r->arrival_ns < f->first_arrival_ns)
        f->first_arrival_ns = r->arrival_ns;
    if (is_within(f, r->arrival_ns)) {
        note_notable(f, r);
        if (add_times(f, r, err) < 0)
            return -1;
    }
    return html_requests_add(f->requests, &plain, err);
}

/* Those that never ended waited until the end of the run. */
static void end_notable(struct former *f)
{
    struct pkv_summary *s = &f->summary;
    const struct pkv_scenario *scenario = f->run.scenario;
    s->after_ns = scenario->measure_after_ns;
    s->until_ns = scenario->measure_until_ns;
    s->has_window = s->after_ns > 0 || s->until_ns > 0;
    int64_t end_ns = f->first_arrival_ns + (s->has_window ? s->whole.makespan_ns : s->makespan_ns);
    if (s->first_unfinished.exists)
        s->first_unfinished.ns = end_ns - s->first_unfinished.ns;
    if (!f->first_unadmitted.exists || end_ns - f->first_unadmitted.ns <= s->longest_wait.ns)
        return;
    s->longest_wait = f->first_unadmitted;
    s->longest_wait.ns = end_ns - s->longest_wait.ns;
}

static int read_requests(struct former *f, struct pkv_err *err)
{
    struct run_rows rows;
    f->first_arrival_ns = INT64_MAX;
    int more = -1, status = run_rows_open(&rows, &f->run, err);
    while (status == 0 && (more = run_rows_next(&rows, err)) > 0)
        status = take_request(f, &rows.row, err);
    run_rows_close(&rows);
    if (f->first_arrival_ns != INT64_MAX)
        end_notable(f);
    return status < 0 || more < 0 ? -1 : 0;
}

/* ---- together ---- */

static void close_former(struct former *f)
{
    run_dir_close(&f->run);
    pkv_text_free(&f->summary_text);
    pkv_text_free(&f->yaml);
    if (f->steps)
        html_steps.destroy(f->steps);
    if (f->requests)
        html_requests.destroy(f->requests);
#define DESTROY(name) pkv_histogram_destroy(f->name);
    TOLD(DESTROY)
#undef DESTROY
}

static int open_former(struct former *f, const char *dir, struct pkv_err *err)
{
    static const struct run_dir_needs needs = {.asker = "report"};
    if (run_dir_open(&f->run, dir, &needs, err) < 0 ||
        run_dir_read(f->run.summary, &f->summary_text, err) < 0 ||
        run_dir_read(f->run.scenario_file, &f->yaml, err) < 0 ||
        html_summary_read(f->run.summary, f->summary_text.text, f->summary_text.length, &f->summary,
                          err) < 0)
        return -1;
#define CREATE(name)                             \
    f->name = pkv_histogram_create(err);         \
    if (!f->name)                                \
        return -1;
    TOLD(CREATE)
#undef CREATE
    const struct pkv_html_config config = {.scenario = f->run.scenario};
    f->steps = html_steps.create(&config, err);
    f->requests = f->steps ? html_requests.create(&config, err) : NULL;
    if (!f->requests || read_steps(f, err) < 0)
        return -1;
    return read_requests(f, err);
}

static void tell_thinned(const struct former *f, struct pkv_text *t)
{
    if (!f->has_steps) {
        pkv_text_add(t, "There is no steps.csv, so nothing is shown over time.");
    } else if (f->num_in_window < f->summary.engine.num_steps) {
        pkv_text_add(t, "steps.csv was thinned out: it has ");
        add_grouped(t, f->num_in_window);
        pkv_text_add(t, " of ");
        add_grouped(t, f->summary.engine.num_steps);
        pkv_text_add(t, " steps. What happened between them is not shown, and peaks may be missing.");
    }
}

static int write_former(struct former *f, struct pkv_out *out, const char *prefix, struct pkv_err *err)
{
    const struct pkv_sched_config *sched = &f->run.scenario->sched;
    const struct html_words words = {
        .scenario = f->run.scenario, .summary = &f->summary,
        .block_size = pkv_groups_block_size(sched->groups, sched->num_groups),
    };
    bool failed = false;
    if (html_run_texts(out, prefix, f->summary_text.text, f->yaml.text, err) < 0)
        return -1;
    html_words_write(&words, prefix, out, &failed);
    if (failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for report.html");
#define WRITE(name)                                                                      \
    if (html_histogram_write(f->name, prefix, "hist-" #name, out, err) < 0)              \
        return -1;
    TOLD(WRITE)
#undef WRITE
    if (f->has_steps && html_steps.write(f->steps, prefix, out, err) < 0)
        return -1;
    return html_requests.write(f->requests, prefix, out, err);
}

int html_former_write(struct pkv_out *out, const char *prefix, const char *dir,
                      struct pkv_text *title, struct pkv_text *thinned, struct pkv_err *err)
{
    struct former f = {0};
    int status = open_former(&f, dir, err);
    if (status == 0) {
        html_title(title, f.run.scenario);
        tell_thinned(&f, thinned);
        status = write_former(&f, out, prefix, err);
    }
    close_former(&f);
    return status;
}
