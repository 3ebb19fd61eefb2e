/*
 * engine_fixture.c - see engine_fixture.h.
 */
#include "engine_fixture.h"

#include <stdio.h>
#include <string.h>

#include <check.h>

#include "sched_fixture.h"

static int give(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    struct run *run = ctx;
    const struct asked *asked;

    (void)err;
    if (run->num_given == run->num_asked)
        return 0;
    asked = &run->asked[run->num_given];
    run->prompt = (struct pkv_span){ pkv_origin(PKV_ORIGIN_OWN, run->num_given), 0,
                                     asked->num_prompt };
    *out = (struct pkv_request_spec){
        .row = run->num_given, .arrival_ns = asked->arrival_ns,
        .abort_ns = asked->abort_ns ? asked->abort_ns : PKV_NO_TIME,
        .deadline_ns = PKV_NO_TIME, .num_prompt_tokens = asked->num_prompt,
        .num_output_tokens = asked->num_output,
        .max_tokens = asked->max_tokens ? asked->max_tokens : asked->num_output,
        .num_samples = asked->num_samples, .sample_output_tokens = asked->outputs,
        .is_beam_search = asked->is_beam_search,
        .content = { .prompt = &run->prompt, .num_prompt_spans = 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, run->num_given) } };
    run->num_given++;
    return 1;
}

static int note_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    struct run *run = ctx;
    struct told_event *told = &run->events[run->num_events++];

    (void)err;
    ck_assert_uint_le(run->num_events, MOST_TOLD);
    *told = (struct told_event){
        .kind = event->kind, .step = event->step, .row = event->request->row,
        .grower_row = event->grower ? event->grower->row : UINT64_MAX, .limit = event->limit,
        .need_blocks = event->need_blocks, .free_blocks = event->free_blocks,
        .num_holders = event->num_holders, .num_blocks = event->num_blocks,
        .num_bytes = event->num_bytes, .time_ns = event->time_ns, .done_ns = event->done_ns };
    told->parent_row = event->parent ? event->parent->row : UINT64_MAX;
    told->shared_blocks = event->shared_blocks;
    told->freed_blocks = event->freed_blocks;
    pkv_request_id(event->request, told->id, sizeof told->id);
    for (size_t i = 0; i < event->num_holders; i++) {
        told->holder_rows[i] = event->holders[i].request->row;
        told->holder_blocks[i] = event->holders[i].num_blocks;
    }
    return 0;
}

static int note_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct run *run = ctx;
    struct told_request *told = &run->requests[run->num_requests++];

    (void)err;
    ck_assert_uint_le(run->num_requests, MOST_REQUESTS);
    told->row = row->request->row;
    told->status = row->status;
    told->num_emitted = row->request->num_emitted;
    told->peak_blocks = row->request->peak_blocks;
    snprintf(told->reason, sizeof told->reason, "%s", row->reason);
    return 0;
}

static int note_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                     struct pkv_err *err)
{
    struct run *run = ctx;

    (void)sched;
    (void)err;
    ck_assert_uint_lt(run->num_steps, MOST_TOLD);
    run->steps[run->num_steps++] = *row;
    return 0;
}

void begin_run(struct run *run, uint32_t num_blocks)
{
    memset(run, 0, sizeof *run);
    run->config = (struct pkv_engine_config){
        .sched = base_config(num_blocks),
        .step_time = { .law = PKV_STEP_TIME_FIXED, .fixed_ns = MS },
        .source = { give, run },
        .sinks = { { .event = note_event, .request = note_request, .step = note_step,
                     .ctx = run } },
        .num_sinks = 1,
        .stuck_steps = 1,
        .check = true,
    };
}

void ask(struct run *run, struct asked asked)
{
    ck_assert_uint_lt(run->num_asked, MOST_REQUESTS);
    run->asked[run->num_asked++] = asked;
}

void do_run(struct run *run)
{
    struct pkv_engine *engine = pkv_engine_create(&run->config, &run->err);
    const struct pkv_engine_figures *f = &run->figures;

    ck_assert_msg(engine != NULL, "%s", run->err.text);
    run->result = pkv_engine_run(engine, &run->err);
    run->figures = *pkv_engine_figures(engine);
    pkv_engine_destroy(engine);
    ck_assert_uint_eq(f->arrived, f->completed + f->rejected + f->aborted + f->unfinished);
    ck_assert_uint_eq(f->arrived, run->num_requests);
    ck_assert_uint_eq(f->cache.num_free, f->cache.num_blocks);
    ck_assert_uint_eq(f->cache.num_stored, 0);
}

void expect_outcome(struct run *run, enum pkv_outcome outcome)
{
    do_run(run);
    ck_assert_msg(run->result == 0, "%s", run->err.text);
    ck_assert_str_eq(pkv_outcome_name(run->figures.outcome), pkv_outcome_name(outcome));
}

size_t events_of(const struct run *run, enum pkv_event_kind kind, uint64_t row,
                 const struct told_event **out)
{
    size_t num = 0;

    for (size_t i = 0; i < run->num_events; i++)
        if (run->events[i].kind == kind && run->events[i].row == row)
            out[num++] = &run->events[i];
    return num;
}
