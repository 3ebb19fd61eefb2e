/*
 * html.c - report.html of a run: the parts that watch it, and the page that they make together.
 */
#include "report/html_private.h"

#include <string.h>

#include "base/alloc.h"

static const struct html_part *const parts[] = {
    &html_steps, &html_requests, &html_blockmap, &html_timeline,
};
#define NUM_PARTS (sizeof parts / sizeof *parts)

struct pkv_html {
    struct pkv_out *out;               /* owned */
    const struct pkv_scenario *scenario;   /* borrowed */
    void *parts[NUM_PARTS];            /* owned; NULL beyond those made */
    struct pkv_sink sinks[NUM_PARTS];
};

struct pkv_html *pkv_html_create(const struct pkv_html_config *config, struct pkv_err *err)
{
    struct pkv_html *h = pkv_alloc(1, sizeof *h, err);
    if (!h)
        return NULL;
    h->scenario = config->scenario;
    h->out = pkv_out_open(config->dir, "report.html", err);
    bool is_whole = h->out != NULL;
    for (size_t i = 0; is_whole && i < NUM_PARTS; i++) {
        h->parts[i] = parts[i]->create(config, err);
        is_whole = h->parts[i] != NULL;
        if (is_whole)
            h->sinks[i] = parts[i]->sink(h->parts[i]);
    }
    if (is_whole)
        return h;
    pkv_html_destroy(h);
    return NULL;
}

void pkv_html_destroy(struct pkv_html *h)
{
    for (size_t i = 0; h && i < NUM_PARTS; i++)
        if (h->parts[i])
            parts[i]->destroy(h->parts[i]);
    if (h)
        pkv_out_drop(h->out);
    pkv_free(h);
}

static int on_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    const struct pkv_html *h = ctx;
    for (size_t i = 0; i < NUM_PARTS; i++)
        if (h->sinks[i].event && h->sinks[i].event(h->sinks[i].ctx, event, err) < 0)
            return -1;
    return 0;
}

static int on_planned(void *ctx, struct pkv_sched *sched, const struct pkv_plan *plan,
                      struct pkv_err *err)
{
    const struct pkv_html *h = ctx;
    for (size_t i = 0; i < NUM_PARTS; i++)
        if (h->sinks[i].planned && h->sinks[i].planned(h->sinks[i].ctx, sched, plan, err) < 0)
            return -1;
    return 0;
}

static int on_scheduled(void *ctx, struct pkv_sched *sched, struct pkv_err *err)
{
    const struct pkv_html *h = ctx;
    for (size_t i = 0; i < NUM_PARTS; i++)
        if (h->sinks[i].scheduled && h->sinks[i].scheduled(h->sinks[i].ctx, sched, err) < 0)
            return -1;
    return 0;
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    const struct pkv_html *h = ctx;
    for (size_t i = 0; i < NUM_PARTS; i++)
        if (h->sinks[i].request && h->sinks[i].request(h->sinks[i].ctx, row, err) < 0)
            return -1;
    return 0;
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    const struct pkv_html *h = ctx;
    for (size_t i = 0; i < NUM_PARTS; i++)
        if (h->sinks[i].step && h->sinks[i].step(h->sinks[i].ctx, sched, row, err) < 0)
            return -1;
    return 0;
}

/* Only calls that some part has: those of events and plans cost the engine something. */
struct pkv_sink pkv_html_sink(struct pkv_html *h)
{
    struct pkv_sink all = {.ctx = h};
    for (size_t i = 0; i < NUM_PARTS; i++) {
        all.event = h->sinks[i].event ? on_event : all.event;
        all.planned = h->sinks[i].planned ? on_planned : all.planned;
        all.scheduled = h->sinks[i].scheduled ? on_scheduled : all.scheduled;
        all.request = h->sinks[i].request ? on_request : all.request;
        all.step = h->sinks[i].step ? on_step : all.step;
    }
    return all;
}

int html_run_texts(struct pkv_out *out, const char *prefix, const char *summary_json,
                   const char *scenario_yaml, struct pkv_err *err)
{
    struct pkv_text t = {0};
    pkv_text_json(&t, scenario_yaml);
    html_json(out, prefix, "summary", summary_json);
    if (!t.failed)
        html_json(out, prefix, "scenario", t.text);
    int status = t.failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for report.html") : 0;
    pkv_text_free(&t);
    return status;
}

static int write_words(struct pkv_out *out, const char *prefix, const struct pkv_scenario *scenario,
                       const struct pkv_html_run *run, struct pkv_err *err)
{
    const struct pkv_sched_config *sched = &scenario->sched;
    const struct html_words words = {
        .scenario = scenario, .summary = pkv_metrics_summary(run->metrics), .notes = run->notes,
        .block_size = pkv_groups_block_size(sched->groups, sched->num_groups),
    };
    bool failed = false;
    html_words_write(&words, prefix, out, &failed);
    return failed ? pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for report.html") : 0;
}

int html_run_figures(struct pkv_out *out, const char *prefix, const struct pkv_scenario *scenario,
                     const struct pkv_html_run *run, struct pkv_err *err)
{
    static const char *const names[] = {
#define NAME(name) "hist-" #name,
        PKV_LATENCIES(NAME)
#undef NAME
    };
    const char *summary = pkv_metrics_json(run->metrics, run->info, err);
    if (!summary)
        return -1;
    int status = html_run_texts(out, prefix, summary, run->info->scenario_yaml, err);
    if (status == 0)
        status = write_words(out, prefix, scenario, run, err);
    for (int i = 0; status == 0 && i < PKV_LATENCY_COUNT; i++)
        status = html_histogram_write(pkv_metrics_histogram(run->metrics, (enum pkv_latency)i), prefix,
                                      names[i], out, err);
    return status;
}

void html_title(struct pkv_text *t, const struct pkv_scenario *s)
{
    const char *slash = s->is_trace ? strrchr(s->trace, '/') : NULL;
    if (s->title)
        pkv_text_add(t, s->title);
    else if (s->is_trace)
        pkv_text_fmt(t, "Replay of %s", slash ? slash + 1 : s->trace);
    else
        pkv_text_add(t, "A run of synthetic traffic");
}

static int write_page(struct pkv_html *h, const struct pkv_html_run *run, struct pkv_err *err)
{
    struct pkv_text title = {0};
    html_title(&title, h->scenario);
    html_begin(h->out, title.text ? title.text : "");
    pkv_text_free(&title);
    html_json(h->out, "", "runs", "[{\"prefix\":\"\"}]");
    int status = html_run_figures(h->out, "", h->scenario, run, err);
    for (size_t i = 0; status == 0 && i < NUM_PARTS; i++)
        status = parts[i]->write(h->parts[i], "", h->out, err);
    html_end(h->out);
    return status;
}

int pkv_html_write(struct pkv_html *h, const struct pkv_html_run *run, struct pkv_err *err)
{
    struct pkv_out *out = h->out;
    int status = write_page(h, run, err);
    h->out = NULL;
    if (status < 0)
        pkv_out_spoil(out);
    if (pkv_out_close(out, status < 0 ? NULL : err) == 0)
        return pkv_out_install(out, err);
    pkv_out_drop_with_former(out);    /* or a page of another run would stand among our files */
    return -1;
}
