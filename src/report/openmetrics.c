/*
 * openmetrics.c - the sink that counts as vLLM's metrics do, and takes scrapes on the way.
 *
 * A row comes when its step is over, so the scrapes within it are taken then: first those before it, when
 * nobody was live; then what its schedule brought counts, and the scrapes within it are taken; then
 * what came out at its end counts.
 */
#include "report/openmetrics_private.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

struct pkv_openmetrics {
    struct om_layout layout;
    struct om_scrapes scrapes;
    struct om_counts counts;       /* up to the step at hand */
    struct om_counts ending;       /* what its end brings */
    bool has_ending;
    struct om_gauges gauges;       /* of the last step */
    int64_t interval_ns;
    struct pkv_out *out;           /* owned; NULL = given its name */
};

static const struct om_gauges idle;

struct pkv_openmetrics *pkv_openmetrics_create(const struct pkv_openmetrics_config *config,
                                               struct pkv_err *err)
{
    PKV_ASSERT(config->interval_ns > 0 && config->interval_ns % OM_NS_PER_MS == 0);
    struct pkv_openmetrics *m = pkv_alloc(1, sizeof *m, err);
    if (!m)
        return NULL;
    m->interval_ns = config->interval_ns;
    if (om_layout_init(&m->layout, config->scenario, err) < 0 ||
        om_scrapes_init(&m->scrapes, &m->layout, config->interval_ns / OM_NS_PER_MS, err) < 0 ||
        !(m->out = pkv_out_open(NULL, config->path, err))) {
        pkv_openmetrics_destroy(m);
        return NULL;
    }
    return m;
}

void pkv_openmetrics_destroy(struct pkv_openmetrics *m)
{
    if (!m)
        return;
    pkv_out_drop(m->out);
    om_scrapes_finish(&m->scrapes);
    om_layout_finish(&m->layout);
    pkv_free(m);
}

static void observe(struct pkv_openmetrics *m, enum om_histogram histogram, int64_t value,
                    uint64_t count)
{
    struct om_tally *tally = &m->ending.tallies[histogram];
    tally->counts[om_bucket(&m->layout, histogram, value)] += count;
    tally->sum += (__int128)value * count;
    m->has_ending = true;
}

/* What the end of a step brought counts. */
static void settle(struct pkv_openmetrics *m)
{
    struct om_counts *to = &m->counts, *from = &m->ending;
    if (!m->has_ending)
        return;
    to->prompt_tokens += from->prompt_tokens;
    to->cached_tokens += from->cached_tokens;
    for (size_t i = 0; i < OM_END_COUNT; i++)
        to->ends[i] += from->ends[i];
    for (size_t h = 0; h < OM_HISTOGRAM_COUNT; h++) {
        for (size_t i = 0; i <= OM_MAX_BOUNDS; i++)
            to->tallies[h].counts[i] += from->tallies[h].counts[i];
        to->tallies[h].sum += from->tallies[h].sum;
    }
    memset(from, 0, sizeof *from);
    m->has_ending = false;
}

/* The time of the next one. */
static int64_t next_ns(const struct pkv_openmetrics *m)
{
    return (int64_t)om_scrapes_num(&m->scrapes) * m->interval_ns;
}

static int scrape(struct pkv_openmetrics *m, const struct om_gauges *gauges, struct pkv_err *err)
{
    int64_t *slots = om_scrapes_add(&m->scrapes, err);
    if (!slots)
        return -1;
    om_pack(&m->layout, &m->counts, gauges, slots);
    return 0;
}

/* All that are due before this time. Room is left for the last one. */
static int scrape_until(struct pkv_openmetrics *m, int64_t end_ns, const struct om_gauges *gauges,
                        struct pkv_err *err)
{
    int64_t num = end_ns > 0 ? (end_ns - 1) / m->interval_ns + 1 : 0;
    if ((uint64_t)num >= PKV_MAX_SCRAPES)
        return pkv_fail(err, PKV_ERR_INPUT, "%" PRId64 " scrapes, one every %" PRId64 " ms up to "
                        "%" PRId64 " s of virtual time, are more than a file may have (%" PRIu64
                        "): take a longer interval", num, m->interval_ns / OM_NS_PER_MS,
                        end_ns / (1000 * OM_NS_PER_MS), PKV_MAX_SCRAPES - 1);
    while (next_ns(m) < end_ns)
        if (scrape(m, gauges, err) < 0)
            return -1;
    return 0;
}

static void add_schedule(struct pkv_openmetrics *m, const struct pkv_step_row *row)
{
    m->counts.preemptions += (uint64_t)row->preempted;
    m->counts.queries += (uint64_t)row->queried_tokens;
    m->counts.hits += (uint64_t)row->first_hit_tokens;
    m->counts.ends[OM_ABORT] += (uint64_t)row->aborted;
    m->gauges = (struct om_gauges){row->running, row->waiting, row->used_blocks};
}

static void add_results(struct pkv_openmetrics *m, const struct pkv_step_row *row)
{
    const struct pkv_engine_figures *f = row->counted;
    int64_t computed = (int64_t)(m->ending.prompt_tokens - m->ending.cached_tokens);
    if (row->regular_gaps > 0)
        observe(m, OM_GAP, row->regular_gap_ns, (uint64_t)row->regular_gaps);
    if (row->output_tokens > 0)
        observe(m, OM_ITERATION, computed + row->output_tokens, 1);
    settle(m);
    m->counts.generated += (uint64_t)row->output_tokens;
    m->counts.drafts = f->num_verifications;
    m->counts.draft_tokens = f->drafted_tokens;
    m->counts.accepted = f->accepted_tokens;
    memcpy(m->counts.accepted_at, f->accepted_at, sizeof f->accepted_at);
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct pkv_openmetrics *m = ctx;
    (void)sched;
    if (scrape_until(m, row->time_ns, &idle, err) < 0)
        return -1;
    add_schedule(m, row);
    if (scrape_until(m, row->time_ns + row->dur_ns, &m->gauges, err) < 0)
        return -1;
    add_results(m, row);
    return 0;
}

static int on_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    struct pkv_openmetrics *m = ctx;
    const struct pkv_request *r = event->request;
    (void)err;
    if (event->kind != PKV_EVENT_FIRST_TOKEN)
        return 0;
    observe(m, OM_TTFT, event->time_ns - r->arrival_ns, 1);
    m->ending.prompt_tokens += r->seq.num_prompt_tokens;
    m->ending.cached_tokens += r->num_hit_tokens;
    return 0;
}

/* Tokens that come out together are one output. */
static void on_gap(void *ctx, int64_t gap_ns)
{
    if (gap_ns > 0)
        observe(ctx, OM_GAP, gap_ns, 1);
}

static void add_finished(struct pkv_openmetrics *m, const struct pkv_request_row *row)
{
    const struct pkv_request *r = row->request;
    int64_t decode = row->finish_ns - r->first_token_ns;
    observe(m, OM_E2E, row->finish_ns - r->arrival_ns, 1);
    observe(m, OM_DECODE, decode, 1);
    observe(m, OM_TPOT, r->num_emitted > 1 ? decode / (r->num_emitted - 1) : 0, 1);
    observe(m, OM_PROMPT, r->seq.num_prompt_tokens, 1);
    observe(m, OM_GENERATION, r->num_emitted, 1);
    observe(m, OM_COMPUTED, (int64_t)r->seq.num_prompt_tokens - r->num_hit_tokens, 1);
    if (r->admitted_ns == PKV_NO_TIME)
        return;    /* a sample whose prompt another one computed */
    observe(m, OM_QUEUE, r->admitted_ns - r->arrival_ns, 1);
    observe(m, OM_PREFILL, r->first_token_ns - r->admitted_ns, 1);
    observe(m, OM_INFERENCE, row->finish_ns - r->admitted_ns, 1);
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct pkv_openmetrics *m = ctx;
    const struct pkv_request *r = row->request;
    (void)err;
    if (row->status != PKV_REQUEST_COMPLETED)
        return 0;
    m->ending.ends[r->num_emitted < r->max_tokens ? OM_STOP : OM_LENGTH]++;
    m->has_ending = true;
    if (r->first_token_ns != PKV_NO_TIME)
        add_finished(m, row);
    return 0;
}

struct pkv_sink pkv_openmetrics_sink(struct pkv_openmetrics *metrics)
{
    return (struct pkv_sink){
        .event = on_event,
        .request = on_request,
        .gap = on_gap,
        .step = on_step,
        .ctx = metrics,
    };
}

int pkv_openmetrics_finish(struct pkv_openmetrics *m, const struct pkv_engine_figures *figures,
                           struct pkv_err *err)
{
    int64_t end_ns = figures->end_ns == PKV_NO_TIME ? 0 : figures->end_ns;
    const struct om_gauges *gauges = figures->unfinished == 0 ? &idle : &m->gauges;
    struct pkv_out *out = m->out;
    m->out = NULL;
    if (scrape(m, gauges, err) < 0 ||
        om_scrapes_write(&m->scrapes, (end_ns + OM_NS_PER_MS - 1) / OM_NS_PER_MS, out, err) < 0) {
        pkv_out_drop(out);
        return -1;
    }
    return pkv_out_commit(out, err);
}
