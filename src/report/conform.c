/*
 * conform.c - run a recorded load and compare every decision with the recording.
 *
 * Our log is made in the recording's own form and each line is compared as it comes, so neither log
 * is ever held in memory. A step is one millisecond of virtual time: step n begins at n ms.
 */
#include "report/diff_private.h"
#include "report/report_private.h"

#define STEP_NS ((int64_t)1000000)

struct conform {
    const struct pkv_conform_config *config;
    struct pkv_recording *recording;     /* owned */
    struct pkv_trace *trace;             /* owned */
    struct pkv_engine_log *log;          /* owned */
    struct pkv_engine *engine;           /* owned */
    struct pkv_out *emit;                /* owned; NULL = not wanted */
    struct side steps;
    struct pkv_text text;                /* what differs, or that nothing does */
    bool differs, interrupted;
    uint64_t num_same;
    struct record_fields fields;         /* of the recording: those that are compared */
    /* Of the last step, for the closing record of a run that got stuck. */
    uint64_t last_step;
    size_t num_waiting, num_running;
};

static const char ours[] = "this run", theirs[] = "the recording";

/* One line of our log. */
static int on_line(void *ctx, const char *text, size_t length, struct pkv_err *err)
{
    static const struct record_names names = {.a = "recorded", .b = "here",
                                              .only_fields_of_a = true};
    struct conform *c = ctx;
    struct record here, recorded;
    if (c->emit) {
        pkv_out_bytes(c->emit, text, length);
        pkv_out_char(c->emit, '\n');
        pkv_out_end_row(c->emit);
    }
    if (c->differs)
        return 0;
    if (record_read(&here, ours, c->num_same + 1, text, length, err) < 0)
        return -1;
    if (!c->steps.text) {
        record_tell_end(&here, c->num_same, theirs, ours, &c->text);
        c->differs = true;
        return 0;
    }
    if (record_read(&recorded, c->config->steps, c->steps.lines.number, c->steps.text,
                    c->steps.length, err) < 0)
        return -1;
    c->differs = !record_compare(&recorded, &here, &names, &c->text);
    c->num_same += !c->differs;
    record_add_names(&c->fields, &recorded);
    return side_next(&c->steps, err);
}

static int on_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                   struct pkv_err *err)
{
    struct conform *c = ctx;
    (void)err;
    c->last_step = (uint64_t)(row->time_ns / STEP_NS);
    c->num_waiting = pkv_sched_num_waiting(sched);
    c->num_running = pkv_sched_num_running(sched);
    return 0;
}

/* Behind the first difference there is nothing to learn, unless our log is wanted. */
static bool should_stop(void *ctx)
{
    struct conform *c = ctx;
    c->interrupted = c->config->should_stop && c->config->should_stop(c->config->stop_ctx);
    return c->interrupted || (c->differs && !c->emit);
}

static int open_inputs(struct conform *c, struct pkv_err *err)
{
    const struct pkv_conform_config *config = c->config;
    struct pkv_trace_options options = {.format = "tokens"};
    c->recording = pkv_recording_load(config->config, config->preset, err);
    if (!c->recording)
        return -1;
    if (c->recording->trace)
        c->trace = pkv_trace_open_joined(config->requests, c->recording->trace,
                                         c->recording->tokens_per_hash_id, &options, err);
    else
        c->trace = pkv_trace_open(config->requests, &options, err);
    if (!c->trace || side_open(&c->steps, config->steps, err) < 0)
        return -1;
    if (!c->steps.text)
        return pkv_fail_at(err, config->steps, 0, 0, "is empty: there is no step to compare");
    if (config->emit) {
        if (pkv_out_spare(NULL, config->emit, config->config, err) < 0 ||
            pkv_out_spare(NULL, config->emit, config->requests, err) < 0 ||
            pkv_out_spare(NULL, config->emit, config->steps, err) < 0 ||
            pkv_out_spare(NULL, config->emit, c->recording->trace, err) < 0)
            return -1;
        c->emit = pkv_out_open(NULL, config->emit, err);
        if (!c->emit)
            return -1;
    }
    return 0;
}

static int create_engine(struct conform *c, struct pkv_err *err)
{
    const struct pkv_recording *r = c->recording;
    struct pkv_engine_log_config log = {.step_ns = STEP_NS, .full = r->log_blocks,
                                        .brief = r->trace != NULL,
                                        .async = r->sched.async_scheduling,
                                        .drafts = r->sched.speculation.method !=
                                                  PKV_SPECULATION_NONE,
                                        .line = on_line, .ctx = c};
    c->log = pkv_engine_log_create(&log, err);
    if (!c->log)
        return -1;
    struct pkv_engine_config config = {
        .sched = r->sched,
        .step_time = {.law = PKV_STEP_TIME_FIXED, .fixed_ns = STEP_NS},
        .source = pkv_trace_source(c->trace),
        .sinks = {pkv_engine_log_sink(c->log), {.step = on_step, .ctx = c}},
        .num_sinks = 2,
        .every_step = true,
        .row_ns = STEP_NS,
        .stuck_steps = r->stuck_steps,
        .max_steps = r->max_steps,
        .check = c->config->check,
        .log_evicted = r->log_blocks,
        .should_stop = should_stop,
        .stop_ctx = c,
    };
    c->engine = pkv_engine_create(&config, err);
    return c->engine ? 0 : -1;
}

/* What the recording has beyond our last line. */
static int compare_rest(struct conform *c, struct pkv_err *err)
{
    struct record next;
    if (c->differs || !c->steps.text)
        return 0;
    if (record_read(&next, c->config->steps, c->steps.lines.number, c->steps.text,
                    c->steps.length, err) < 0)
        return -1;
    record_tell_end(&next, c->num_same, ours, theirs, &c->text);
    c->differs = true;
    return 0;
}

static int commit_emitted(struct conform *c, struct pkv_err *err)
{
    struct pkv_out *emit = c->emit;
    c->emit = NULL;
    return emit ? pkv_out_commit(emit, err) : 0;
}

/* What was emitted so far is kept. */
static int fail_interrupted(struct conform *c, struct pkv_err *err)
{
    unsigned long long num_steps = pkv_engine_figures(c->engine)->num_steps;
    const char *plural = num_steps == 1 ? "" : "s";
    bool has_emitted = c->emit != NULL;
    if (commit_emitted(c, err) < 0)
        return -1;
    if (has_emitted)
        return pkv_fail(err, PKV_ERR_INTERRUPTED, "interrupted after %llu step%s; %s has %s",
                        num_steps, plural, c->config->emit, num_steps == 1 ? "it" : "them");
    return pkv_fail(err, PKV_ERR_INTERRUPTED, "interrupted after %llu step%s; nothing was compared "
                    "to the end", num_steps, plural);
}

/* An input that was made to end by the interruption may look like a broken one. */
static bool was_interrupted(const struct conform *c)
{
    return c->interrupted ||
           (c->config->should_stop && c->config->should_stop(c->config->stop_ctx));
}

static int run(struct conform *c, struct pkv_err *err)
{
    struct pkv_err broken = {0};
    int status = pkv_engine_run(c->engine, &broken);
    if (was_interrupted(c) && (status == 0 || broken.code == PKV_ERR_INPUT))
        return fail_interrupted(c, err);
    if (status < 0) {
        *err = broken;
        return -1;
    }
    if (pkv_engine_figures(c->engine)->outcome == PKV_OUTCOME_STUCK &&
        pkv_engine_log_stuck(c->log, c->last_step, c->num_waiting, c->num_running, err) < 0)
        return -1;
    if (compare_rest(c, err) < 0)
        return -1;
    if (!c->differs) {
        pkv_text_fmt(&c->text, "the same: %llu records; compared are the fields that the recording "
                     "has: ", (unsigned long long)c->num_same);
        record_list_names(&c->fields, &c->text);
        pkv_text_add(&c->text, "\n");
    }
    return commit_emitted(c, err);
}

int pkv_conform(const struct pkv_conform_config *config, struct pkv_diff_result *out,
                struct pkv_err *err)
{
    struct conform c = {.config = config};
    int status = -1;
    *out = (struct pkv_diff_result){.same = false};
    if (open_inputs(&c, err) == 0 && create_engine(&c, err) == 0 && run(&c, err) == 0) {
        out->same = !c.differs;
        out->text = take_text(&c.text, err);
        status = out->text ? 0 : -1;
    }
    pkv_out_drop(c.emit);
    pkv_engine_destroy(c.engine);
    pkv_engine_log_destroy(c.log);
    side_close(&c.steps);
    pkv_trace_close(c.trace);
    pkv_recording_destroy(c.recording);
    pkv_text_free(&c.text);
    return status;
}
