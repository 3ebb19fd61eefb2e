/*
 * metrics.c - the sink that records a run: rows and requests go to the figures, the series and the
 * files that are wanted.
 *
 * Rows of steps.csv may be thinned out; a kept row is never changed, and the figures see all rows.
 */
#include "metrics/metrics_private.h"

#include "base/alloc.h"

#include <string.h>

#define FILES(X)                                                                        \
    X(PKV_FILE_STEPS, steps, "steps.csv") X(PKV_FILE_REQUESTS, requests, "requests.csv") \
    X(PKV_FILE_EVENTS, events, "events.jsonl")                                          \
    X(PKV_FILE_SUMMARY, summary_file, "summary.json")                                   \
    X(PKV_FILE_SCENARIO, scenario, "scenario.yaml")                                     \
    X(PKV_FILE_CACHE, cache, PKV_CACHE_FILE)

struct pkv_metrics {
    struct pkv_metrics_config config;
#define FIELD(bit, field, name) struct pkv_out *field;   /* owned; NULL = not wanted */
    FILES(FIELD)
#undef FIELD
    struct figures figures;
    struct request_log request_log;
    struct series series;
    struct exact_means means;
    struct pkv_summary summary;
    struct pkv_text scratch;
    struct pkv_text json;          /* the summary's, once it is asked for */
    struct thinning thinning;
    bool gap_failed;
    bool has_kept;                 /* files of this run have their names */
    unsigned missing, cut;         /* of enum pkv_file, those wanted: without a name; not whole */
    struct pkv_err gap_err;        /* why adding a gap failed; told at the next row */
};

static int open_files(struct pkv_metrics *m, struct pkv_err *err)
{
    if (!m->config.dir)
        return 0;
    if (pkv_make_dir(m->config.dir, err) < 0)
        return -1;
#define OPEN(bit, field, name)                                             \
    if (m->config.files & bit) {                                           \
        m->field = pkv_out_open(m->config.dir, name, err);                 \
        if (!m->field)                                                     \
            return -1;                                                     \
    }
    FILES(OPEN)
#undef OPEN
    return 0;
}

static void write_step_header(struct pkv_out *out)
{
    static const char *const names[] = {
#define NAME(name) #name,
        PKV_STEP_COLUMNS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < NUM_STEP_COLUMNS; i++) {
        if (i)
            pkv_out_char(out, ',');
        pkv_out_text(out, names[i]);
    }
    pkv_out_char(out, '\n');
}

struct pkv_metrics *pkv_metrics_create(const struct pkv_metrics_config *config,
                                       struct pkv_err *err)
{
    struct pkv_metrics *m = pkv_alloc(1, sizeof *m, err);
    if (!m)
        return NULL;
    m->config = *config;
    m->thinning = (struct thinning){.every = config->every, .on_change = config->on_change};
    m->figures.target_ttft_ns = config->target_ttft_ns;
    m->figures.target_itl_ns = config->target_itl_ns;
    m->figures.has_window = config->after_ns > 0 || config->until_ns > 0;
    m->figures.after_ns = config->after_ns;
    m->figures.until_ns = config->until_ns > 0 ? config->until_ns : INT64_MAX;
    if (figures_init(&m->figures, err) < 0 || open_files(m, err) < 0) {
        pkv_metrics_destroy(m);
        return NULL;
    }
#define COUNT(bit, field, name) m->missing |= m->field ? bit : 0u;
    FILES(COUNT)
#undef COUNT
    m->config.dir = NULL;    /* the caller's text; not needed any more */
    if (m->steps)
        write_step_header(m->steps);
    request_log_begin(&m->request_log, m->requests);
    return m;
}

void pkv_metrics_destroy(struct pkv_metrics *m)
{
    if (!m)
        return;
#define DROP(bit, field, name) pkv_out_drop(m->field);
    FILES(DROP)
#undef DROP
    figures_finish(&m->figures);
    request_log_finish(&m->request_log);
    pkv_text_free(&m->scratch);
    pkv_text_free(&m->json);
    pkv_free(m);
}

static void write_row(struct pkv_metrics *m, const struct pkv_step_row *row)
{
    int64_t values[NUM_STEP_COLUMNS];
    if (!thinning_keeps(&m->thinning, row))
        return;
    memcpy(values, row, sizeof values);    /* the printed columns are the first fields, in order */
    pkv_out_csv_row(m->steps, values, NUM_STEP_COLUMNS);
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct pkv_metrics *m = ctx;
    struct pkv_cache_figures cache = {0};
    if (m->figures.has_window)
        cache = pkv_cache_figures(pkv_sched_cache(sched));
    if (m->gap_failed) {
        if (err)
            *err = m->gap_err;
        return -1;
    }
    if (figures_add_row(&m->figures, row, &cache, err) < 0)
        return -1;
    series_add(&m->series, row);
    if (m->steps)
        write_row(m, row);
    request_log_advance(&m->request_log, row->time_ns);
    /* A full disk ends the run now, not when all is computed. */
    if (pkv_out_check(m->steps, err) < 0 || pkv_out_check(m->requests, err) < 0)
        return -1;
    return pkv_out_check(m->events, err);
}

static void on_gap(void *ctx, int64_t gap_ns)
{
    struct pkv_metrics *m = ctx;
    if (figures_add_gap(&m->figures, gap_ns, m->gap_failed ? NULL : &m->gap_err) < 0)
        m->gap_failed = true;
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct pkv_metrics *m = ctx;
    if (figures_add_request(&m->figures, row, err) < 0)
        return -1;
    return request_log_add(&m->request_log, row, err);
}

static int on_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    struct pkv_metrics *m = ctx;
    return event_log_add(m->events, &m->scratch, event, err);
}

struct pkv_sink pkv_metrics_sink(struct pkv_metrics *metrics)
{
    return (struct pkv_sink){
        .event = metrics->events ? on_event : NULL,
        .request = on_request,
        .gap = on_gap,
        .step = on_step,
        .ctx = metrics,
    };
}

/* Close one file; the first failure of several is the one told. */
static void close_file(struct pkv_metrics *m, struct pkv_out *out, unsigned bit, int *status,
                       struct pkv_err *err)
{
    if (!out || pkv_out_close(out, *status < 0 ? NULL : err) == 0)
        return;
    m->cut |= bit;
    *status = -1;
}

static bool has_rows(const struct pkv_out *out)
{
    return out && pkv_out_has_rows(out);
}

/* A file that is lost takes one of an earlier run along, or that would stand among ours. */
static void install_file(struct pkv_metrics *m, struct pkv_out **out, unsigned bit, int *status,
                         struct pkv_err *err)
{
    struct pkv_out *file = *out;
    *out = NULL;
    if (!file)
        return;
    if (!pkv_out_has_rows(file))
        pkv_out_drop_with_former(file);
    else if (pkv_out_install(file, *status < 0 ? NULL : err) < 0)
        *status = -1;
    else
        m->missing &= ~bit;
    m->has_kept |= (m->missing & bit) == 0;
    m->cut &= ~(m->missing & bit);
}

/* All files are closed before the first one takes its name: when nothing of the logs could be
 * written, what an earlier run left stays as it is. */
static int put_in_place(struct pkv_metrics *m, int status, struct pkv_err *err)
{
#define CLOSE(bit, field, name) close_file(m, m->field, bit, &status, err);
    FILES(CLOSE)
#undef CLOSE
    if (status < 0 && !has_rows(m->steps) && !has_rows(m->requests) && !has_rows(m->events))
        return -1;
#define INSTALL(bit, field, name) install_file(m, &m->field, bit, &status, err);
    FILES(INSTALL)
#undef INSTALL
    return status;
}

int pkv_metrics_finish(struct pkv_metrics *m, const struct pkv_engine_figures *figures,
                       const struct pkv_run_info *info, struct pkv_err *err)
{
    int status = 0;
    figures_read(&m->figures, figures, m->config.block_size, &m->means, &m->summary);
    m->summary.has_waste = m->config.has_waste;
    m->summary.has_speculation = m->config.has_speculation;
    if (m->requests)
        request_log_advance(&m->request_log, INT64_MAX);
    if (m->scenario)
        pkv_out_text(m->scenario, info->scenario_yaml);
    if (m->summary_file && summary_json_write(m->summary_file, &m->summary, &m->means, &m->config,
                                              info, err) < 0) {
        pkv_out_spoil(m->summary_file);
        status = -1;
    }
    if (m->cache && figures->outcome == PKV_OUTCOME_FAILED) {
        pkv_out_spoil(m->cache);
    } else if (m->cache && cache_file_write(m->cache, info->cache, status < 0 ? NULL : err) < 0) {
        pkv_out_spoil(m->cache);
        status = -1;
    }
    return put_in_place(m, status, err);
}

const char *pkv_metrics_json(struct pkv_metrics *m, const struct pkv_run_info *info,
                             struct pkv_err *err)
{
    pkv_text_clear(&m->json);
    if (summary_json_text(&m->json, &m->summary, &m->means, &m->config, info, err) < 0)
        return NULL;
    return m->json.text;
}

bool pkv_metrics_has_kept(const struct pkv_metrics *metrics)
{
    return metrics->has_kept;
}

unsigned pkv_metrics_missing(const struct pkv_metrics *metrics)
{
    return metrics->missing;
}

unsigned pkv_metrics_cut(const struct pkv_metrics *metrics)
{
    return metrics->has_kept ? metrics->cut : 0;
}

const struct pkv_summary *pkv_metrics_summary(const struct pkv_metrics *metrics)
{
    return &metrics->summary;
}

size_t pkv_metrics_series(const struct pkv_metrics *metrics, struct pkv_series_point *out,
                          size_t room)
{
    size_t num = metrics->series.num < room ? metrics->series.num : room;
    memcpy(out, metrics->series.points, num * sizeof *out);
    return num;
}

const struct pkv_histogram *pkv_metrics_histogram(const struct pkv_metrics *m, enum pkv_latency latency)
{
    switch (latency) {
#define LATENCY(name)                     \
    case PKV_LATENCY_##name:              \
        return m->figures.name;
        PKV_LATENCIES(LATENCY)
#undef LATENCY
    case PKV_LATENCY_COUNT:
        break;
    }
    PKV_UNREACHABLE("a latency");
}
