/*
 * test_differential.c - thousands of small random runs through the product and through the model,
 * compared step by step: the log line, every column of the step row, every request's row, and the
 * final figures. Each is run twice: watched, with a log and all invariants recounted after each
 * step, and plain, so that nobody reads in between what the product would rather put off. Every
 * third run has sessions: the model is given its requests as they came.
 *
 *   test_differential [RUNS [FIRST_SEED]]
 *
 * A difference is printed with its seed, the whole configuration and the first field that differs;
 * "test_differential 1 SEED" runs that one again.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_fields.h"
#include "model.h"
#include "pagedkv/engine.h"
#include "pagedkv/metrics.h"
#include "random_run.h"
#include "session_run.h"

#define DEFAULT_RUNS 3000
#define LOG_STEP_NS 1000
#define MOST_REQUESTS (RANDOM_RUN_MAX_REQUESTS * RANDOM_RUN_MAX_SAMPLES)
#define MOST_STEPS_GIVEN 2000     /* with every_step a livelock goes on, until it is cut here */
#define MOST_STEPS_TAKEN 200000   /* else a run ends by itself, well before this */

/* What the product told of an ended request. */
struct told {
    uint64_t row;
    const char *status;
    bool has_reason;
    int64_t admitted_ns, first_token_ns, finish_ns, max_gap_ns;
    uint32_t num_emitted, num_hit, num_preemptions, peak_blocks;
    uint64_t num_recomputed;
};

struct comparison {
    struct random_run run;
    bool has_sessions;
    struct session_run session;       /* then: the requests as the product is given them */
    bool watched;
    struct model_config model_config;
    struct model *model;
    size_t next_spec;
    char *line;                       /* owned: the product's line of this step */
    struct told told[MOST_REQUESTS];
    size_t num_told;
    char difference[4096];            /* the first one; "" = none */
};

/* What all runs came to, so that a draw that never shares anything does not pass for a test. */
static struct { uint64_t forks, copies, dropped_beams, preempted_samples; } covered;

static int differ(struct comparison *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int differ(struct comparison *c, const char *fmt, ...)
{
    va_list args;

    if (c->difference[0] != '\0')
        return -1;
    va_start(args, fmt);
    vsnprintf(c->difference, sizeof c->difference, fmt, args);
    va_end(args);
    return -1;
}

static int give_spec(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct comparison *c = ctx;

    (void)err;
    if (c->next_spec == c->run.num_specs)
        return 0;
    *out = c->run.specs[c->next_spec++];
    return 1;
}

static int keep_line(void *ctx, const char *text, size_t length, struct pkv_err *err)
{
    struct comparison *c = ctx;

    (void)err;
    free(c->line);
    c->line = strndup(text, length);
    return c->line != NULL ? 0 : -1;
}

static int keep_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct comparison *c = ctx;
    const struct pkv_request *r = row->request;

    (void)err;
    covered.preempted_samples += r->sample.num > 1 && r->num_preemptions > 0;
    if (c->num_told == MOST_REQUESTS)
        return differ(c, "more requests ended than there are");
    c->told[c->num_told++] = (struct told){
        .row = r->row, .status = pkv_request_status_name(row->status),
        .has_reason = row->reason != NULL && row->reason[0] != '\0',
        .admitted_ns = r->admitted_ns, .first_token_ns = r->first_token_ns,
        .finish_ns = row->finish_ns, .max_gap_ns = r->max_gap_ns, .num_emitted = r->num_emitted,
        .num_hit = r->num_hit_tokens, .num_preemptions = r->num_preemptions,
        .peak_blocks = r->peak_blocks, .num_recomputed = r->num_recomputed_tokens };
    return 0;
}

static int compare_row(struct comparison *c, const struct pkv_step_row *row)
{
    const struct model_row *model = model_row(c->model);

#define COMPARE_COLUMN(name)                                                                  \
    if (row->name != model->name)                                                             \
        return differ(c, "step %" PRId64 ", column " #name ": product %" PRId64               \
                      ", model %" PRId64 "\n#   product %s\n#   model   %s", row->step,       \
                      row->name, model->name, c->line != NULL ? c->line : "",                 \
                      model_line(c->model));
    PKV_STEP_COLUMNS(COMPARE_COLUMN)
#undef COMPARE_COLUMN
    return 0;
}

static int compare_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                        struct pkv_err *err)
{
    struct comparison *c = ctx;
    struct json_field in_product, in_model;
    const char *field;

    (void)sched;
    (void)err;
    if (!model_next(c->model))
        return differ(c, "step %" PRId64 ": the model's run has ended before it\n#   product %s",
                      row->step, c->line != NULL ? c->line : "");
    if (!c->watched)
        return compare_row(c, row);
    field = json_first_difference(model_line(c->model), c->line, &in_model, &in_product);
    if (field != NULL)
        return differ(c, "step %" PRId64 ", field %s of the log:\n#   product %s\n#   model   %s",
                      row->step, field, c->line, model_line(c->model));
    return compare_row(c, row);
}

static int compare_request(struct comparison *c, const struct told *told,
                           const struct model_request *r)
{
    if (told->row != r->row)
        return differ(c, "requests in the order they ended: product row %" PRIu64 ", model row %"
                      PRIu64, told->row, r->row);
    if (strcmp(told->status, model_status_name(r->status)) != 0)
        return differ(c, "row %" PRIu64 ", status: product %s, model %s", told->row, told->status,
                      model_status_name(r->status));
    if (told->has_reason != (r->status == MODEL_REJECTED || r->status == MODEL_UNFINISHED))
        return differ(c, "row %" PRIu64 " is %s and has %s reason", told->row, told->status,
                      told->has_reason ? "a" : "no");
#define COMPARE_FIELD(name)                                                                   \
    if (told->name != r->name)                                                                \
        return differ(c, "row %" PRIu64 " (%s), " #name ": product %" PRId64 ", model %" PRId64, \
                      told->row, told->status, (int64_t)told->name, (int64_t)r->name);
    COMPARE_FIELD(admitted_ns)
    COMPARE_FIELD(first_token_ns)
    COMPARE_FIELD(finish_ns)
    COMPARE_FIELD(max_gap_ns)
    COMPARE_FIELD(num_emitted)
    COMPARE_FIELD(num_hit)
    COMPARE_FIELD(num_preemptions)
    COMPARE_FIELD(peak_blocks)
    COMPARE_FIELD(num_recomputed)
#undef COMPARE_FIELD
    return 0;
}

/* The model's request at this place, or of this row: one that follows another which is aborted comes
 * after that in the product, and in the model, where it came by itself, before it. */
static const struct model_request *same_request(const struct comparison *c, size_t i)
{
    for (size_t k = 0; c->has_sessions && k < c->num_told; k++)
        if (model_ended(c->model, k)->row == c->told[i].row)
            return model_ended(c->model, k);
    return model_ended(c->model, i);
}

static int compare_requests(struct comparison *c)
{
    if (c->num_told != model_num_ended(c->model))
        return differ(c, "%zu requests ended, in the model %zu", c->num_told,
                      model_num_ended(c->model));
    for (size_t i = 0; i < c->num_told; i++)
        if (compare_request(c, &c->told[i], same_request(c, i)) < 0)
            return -1;
    return 0;
}

static int compare_figures(struct comparison *c, const struct pkv_engine_figures *f)
{
    struct model_totals t = model_totals(c->model);

#define COMPARE_FIGURE(in_product, in_model)                                                  \
    if ((f->in_product) != (t.in_model))                                                      \
        return differ(c, "figure " #in_product ": product %" PRId64 ", model %" PRId64,       \
                      (int64_t)f->in_product, (int64_t)t.in_model);
#define COMPARE_SAME(name) COMPARE_FIGURE(name, name)
    COMPARE_SAME(num_steps)
    COMPARE_SAME(first_arrival_ns)
    COMPARE_SAME(end_ns)
    COMPARE_SAME(arrived)
    COMPARE_SAME(completed)
    COMPARE_SAME(rejected)
    COMPARE_SAME(aborted)
    COMPARE_SAME(unfinished)
    COMPARE_SAME(prompt_tokens)
    COMPARE_SAME(output_tokens)
    COMPARE_SAME(scheduled_tokens)
    COMPARE_SAME(recomputed_tokens)
    COMPARE_SAME(queried_tokens)
    COMPARE_SAME(hit_tokens)
    COMPARE_SAME(resumed_queried_tokens)
    COMPARE_SAME(resumed_hit_tokens)
    COMPARE_SAME(preemptions)
    COMPARE_SAME(num_verifications)
    COMPARE_FIGURE(drafted_tokens, drafted)
    COMPARE_FIGURE(accepted_tokens, accepted)
    COMPARE_FIGURE(verified_tokens, verified)
    COMPARE_SAME(swaps)
    COMPARE_SAME(swap_fallbacks)
    COMPARE_SAME(swapped_out_blocks)
    COMPARE_SAME(swapped_in_blocks)
    COMPARE_SAME(peak_host_blocks)
    COMPARE_SAME(link_busy_ns)
    COMPARE_SAME(dropped_beams)
    COMPARE_FIGURE(cache.num_evicted, evicted)
    COMPARE_FIGURE(cache.num_copied, copied)
    COMPARE_FIGURE(cache.pool.allocated, allocated)
    COMPARE_FIGURE(cache.pool.released, released)
#undef COMPARE_SAME
#undef COMPARE_FIGURE
    return 0;
}

/* The product says that nothing can come of those who are there. The model goes on with them for a
 * while: not one token may come out, and nobody may finish. */
static int expect_hopeless(struct comparison *c, const struct pkv_engine_figures *f)
{
    uint64_t num_steps = f->num_steps;
    struct model_config config = c->model_config;
    struct model *m;
    uint64_t num_tokens = 0, num_ended = 0;
    size_t num_rows = 0;

    config.stuck_steps = UINT32_MAX;
    while (model_count_samples(c->run.specs, num_rows) < f->arrived)
        num_rows++;
    m = model_create(&config, c->run.specs, num_rows);
    for (uint64_t i = 0; i < num_steps + 300; i++) {
        if (i == num_steps) {
            num_tokens = model_totals(m).output_tokens;
            num_ended = model_num_ended(m);
        }
        model_next(m);
    }
    if (model_totals(m).output_tokens != num_tokens || model_num_ended(m) != num_ended)
        differ(c, "the product gives up after step %" PRIu64 ", but it would have gone on",
               num_steps - 1);
    model_destroy(m);
    return c->difference[0] != '\0' ? -1 : 0;
}

static int compare_end(struct comparison *c, const struct pkv_engine_figures *f)
{
    switch (f->outcome) {
    case PKV_OUTCOME_DONE:
        if (model_next(c->model))
            return differ(c, "the product has ended, the model goes on: %s", model_line(c->model));
        break;
    case PKV_OUTCOME_STUCK:
    case PKV_OUTCOME_LIVELOCK:
        if (f->diagnosis[0] == '\0')
            return differ(c, "the run cannot go on and there is no diagnosis");
        if (expect_hopeless(c, f) < 0)
            return -1;
        break;
    case PKV_OUTCOME_MAX_STEPS:
        if (!c->run.every_step)
            return differ(c, "the run does not end");
        break;
    case PKV_OUTCOME_HORIZON:
    case PKV_OUTCOME_INTERRUPTED:
    case PKV_OUTCOME_FAILED:
    case PKV_OUTCOME_COUNT:
        return differ(c, "the run was interrupted");
    }
    covered.forks += f->forks;
    covered.copies += f->cache.num_copied;
    covered.dropped_beams += f->dropped_beams;
    model_stop(c->model);
    return compare_requests(c) < 0 ? -1 : compare_figures(c, f);
}

static struct pkv_engine_config config_of(struct comparison *c)
{
    return (struct pkv_engine_config){
        .sched = c->run.sched,
        .step_time = c->run.step_time,
        .source = { .next = give_spec, .ctx = c },
        .sinks = { { .request = keep_request, .step = compare_step, .ctx = c } },
        .num_sinks = 1,
        .every_step = c->run.every_step,
        .stuck_steps = c->run.stuck_steps,
        .max_steps = c->run.every_step ? MOST_STEPS_GIVEN : MOST_STEPS_TAKEN,
        .check = c->watched,
        .log_evicted = c->watched,
    };
}

static void run_both(struct comparison *c, struct pkv_engine_log *log)
{
    struct pkv_engine_config config = config_of(c);
    struct pkv_err err = { 0 };
    struct pkv_engine *engine;

    if (c->has_sessions)
        config.source = session_run_source(&c->session);
    if (c->watched) {   /* the log first, so that its line is there to compare */
        config.sinks[config.num_sinks++] = config.sinks[0];
        config.sinks[0] = pkv_engine_log_sink(log);
    }
    engine = pkv_engine_create(&config, &err);
    if (engine == NULL)
        differ(c, "no engine: %s", err.text);
    else if (pkv_engine_run(engine, &err) < 0)
        differ(c, "the run failed: %s", err.text);
    else
        compare_end(c, pkv_engine_figures(engine));
    pkv_engine_destroy(engine);
}

static uint64_t num_followed;     /* requests that came after another of their session */

/* Of several answers none is the one that a next turn goes on from. */
static void leave_one_answer(struct random_run *run)
{
    for (size_t i = 0; i < run->num_specs; i++) {
        run->specs[i].num_samples = 1;
        run->specs[i].is_beam_search = false;
        run->specs[i].sample_output_tokens = NULL;
    }
}

static bool is_equal(uint64_t seed, bool watched)
{
    struct comparison *c = calloc(1, sizeof *c);
    struct pkv_engine_log_config log_config = { .step_ns = LOG_STEP_NS, .full = true,
                                                .line = keep_line, .ctx = c };
    struct pkv_engine_log *log;
    bool equal;

    if (c == NULL)
        abort();
    c->watched = watched;
    random_run_draw(&c->run, seed);
    log_config.async = c->run.sched.async_scheduling;
    log_config.drafts = c->run.sched.speculation.method != PKV_SPECULATION_NONE;
    log = pkv_engine_log_create(&log_config, NULL);
    if (log == NULL)
        abort();
    c->has_sessions = seed % 3 == 0;
    if (c->has_sessions) {
        const struct pkv_engine_config config = config_of(c);

        leave_one_answer(&c->run);
        session_run_draw(&c->session, &c->run);
        c->has_sessions = session_run_flatten(&c->session, &c->run, &config);
        num_followed += c->has_sessions ? c->session.num_followed : 0;
    }
    model_config_read(&c->model_config, &c->run.sched);
    c->model_config.step_time = c->run.step_time;
    c->model_config.every_step = c->run.every_step;
    c->model_config.stuck_steps = c->run.stuck_steps;
    c->model_config.log_step_ns = LOG_STEP_NS;
    c->model_config.log_blocks = true;
    c->model = model_create(&c->model_config, c->run.specs, c->run.num_specs);
    run_both(c, log);
    equal = c->difference[0] == '\0';
    if (!equal) {
        random_run_print(&c->run);
        printf("# seed %" PRIu64 ", %s: %s\n", seed, watched ? "watched" : "plain", c->difference);
    }
    pkv_engine_log_destroy(log);
    model_destroy(c->model);
    session_run_finish(&c->session);
    free(c->line);
    free(c);
    return equal;
}

int main(int argc, char **argv)
{
    uint64_t runs = argc > 1 ? strtoull(argv[1], NULL, 10) : DEFAULT_RUNS;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    for (uint64_t seed = first; seed < first + runs; seed++) {
        if (is_equal(seed, true) && is_equal(seed, false))
            continue;
        printf("not ok 1 - %" PRIu64 " random runs equal to the model\n1..1\n", runs);
        return 1;
    }
    printf("# %" PRIu64 " forks, %" PRIu64 " copies, %" PRIu64 " beams gave way, %" PRIu64
           " samples were given up\n", covered.forks, covered.copies, covered.dropped_beams,
           covered.preempted_samples);
    bool follows = runs < 100 || num_followed > runs;   /* else they would show nothing */
    printf("%s 1 - %" PRIu64 " random runs equal to the model, %" PRIu64 " requests that followed "
           "others\n1..1\n", follows ? "ok" : "not ok", runs, num_followed);
    return follows ? 0 : 1;
}
