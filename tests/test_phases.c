/*
 * test_phases.c - drawn runs whose requests are told phase by phase: without a gap, and in all what their
 * rows say. And the same, as a trace for the Perfetto UI and as a part of report.html, while memory is
 * short: the first allocation fails, then the second, and so on until one gets by.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "files.h"
#include "model/random_run.h"
#include "pagedkv/engine.h"
#include "pagedkv/report.h"
#include "report/html_private.h"
#include "report/phases.h"

#define MOST_ALLOCATIONS 20000
#define MOST_REQUESTS 4096

static int run_with(const struct random_run *run, const struct pkv_sink *sinks, size_t num_sinks,
                    struct pkv_err *err)
{
    struct random_traffic traffic = { run, 0 };
    struct pkv_engine_config config = {
        .sched = run->sched, .step_time = run->step_time, .source = random_source(&traffic),
        .num_sinks = num_sinks, .stuck_steps = run->stuck_steps, .max_steps = 500 };
    struct pkv_engine *engine;
    int result = -1;

    memcpy(config.sinks, sinks, num_sinks * sizeof *sinks);
    engine = pkv_engine_create(&config, err);
    if (engine != NULL)
        result = pkv_engine_run(engine, err);
    pkv_engine_destroy(engine);
    return result;
}

/* ---- what is told adds up ---- */

struct told {
    bool is_live;
    enum phase phase;
    int64_t since_ns, waited_ns, total_ns, first_decode_ns;
    uint32_t num_preemptions;
};

struct listener {
    struct phases *phases;
    struct told slots[MOST_REQUESTS];
    size_t num_ended, num_live, most_live, num_preemptions;
};

static int on_came(void *ctx, size_t slot, const struct pkv_request *r, struct pkv_err *err)
{
    struct listener *l = ctx;

    (void)err;
    ck_assert_uint_lt(slot, MOST_REQUESTS);
    ck_assert(!l->slots[slot].is_live);
    l->slots[slot] = (struct told){ .is_live = true, .phase = PHASE_COUNT, .since_ns = r->arrival_ns,
                                    .first_decode_ns = PKV_NO_TIME };
    l->num_live++;
    if (l->num_live > l->most_live)
        l->most_live = l->num_live;
    ck_assert_uint_lt(slot, l->most_live);
    return 0;
}

static void add_span(struct told *t, int64_t time_ns)
{
    ck_assert_int_ge(time_ns, t->since_ns);
    t->total_ns += time_ns - t->since_ns;
    if (t->phase == PHASE_WAITING)
        t->waited_ns += time_ns - t->since_ns;
    t->since_ns = time_ns;
}

static int on_entered(void *ctx, size_t slot, const struct pkv_request *r, enum phase phase,
                      int64_t time_ns, const struct pkv_event *cause, struct pkv_err *err)
{
    struct listener *l = ctx;
    struct told *t = &l->slots[slot];

    (void)err;
    ck_assert(t->is_live);
    ck_assert_uint_eq(phases_slot(l->phases, r), slot);
    add_span(t, time_ns);
    ck_assert_int_eq(phase == PHASE_WAITING, t->phase == PHASE_COUNT);
    if (cause != NULL) {
        ck_assert_ptr_eq(cause->request, r);
        t->num_preemptions += cause->kind == PKV_EVENT_PREEMPT;
    }
    if (phase == PHASE_DECODE && t->first_decode_ns == PKV_NO_TIME)
        t->first_decode_ns = time_ns;
    t->phase = phase;
    return 0;
}

static int on_ended(void *ctx, size_t slot, const struct pkv_request_row *row, int64_t time_ns,
                    struct pkv_err *err)
{
    struct listener *l = ctx;
    struct told *t = &l->slots[slot];
    const struct pkv_request *r = row->request;

    (void)err;
    ck_assert(t->is_live);
    t->is_live = false;
    l->num_live--;
    l->num_ended++;
    l->num_preemptions += r->num_preemptions;
    if (t->phase != PHASE_COUNT)
        add_span(t, time_ns);
    ck_assert_int_eq(t->phase == PHASE_COUNT, row->status == PKV_REQUEST_REJECTED);
    ck_assert_int_eq(t->total_ns, time_ns - r->arrival_ns);
    if (row->finish_ns != PKV_NO_TIME)
        ck_assert_int_eq(time_ns, row->finish_ns);
    if (r->admitted_ns != PKV_NO_TIME)
        ck_assert_int_eq(t->waited_ns, r->admitted_ns - r->arrival_ns);
    ck_assert_uint_eq(t->num_preemptions, r->num_preemptions);
    if (t->first_decode_ns != PKV_NO_TIME)
        ck_assert_int_le(r->first_token_ns, t->first_decode_ns);
    return 0;
}

static int sink_event(void *ctx, const struct pkv_event *event, struct pkv_err *err)
{
    struct listener *l = ctx;

    return phases_event(l->phases, event, err);
}

static int sink_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct listener *l = ctx;

    return phases_request(l->phases, row, err);
}

static int sink_step(void *ctx, struct pkv_sched *sched, const struct pkv_step_row *row,
                     struct pkv_err *err)
{
    struct listener *l = ctx;

    (void)sched;
    return phases_step(l->phases, row, err);
}

/* Runs of every sort of scheduler, drawn; among them are enough with preemptions. */
START_TEST(phases_add_up)
{
    size_t num_preemptions = 0;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct random_run run;
        struct pkv_err err = { 0 };
        struct listener *l = calloc(1, sizeof *l);
        const struct phases_listener told = { on_came, on_entered, on_ended, l };
        const struct pkv_sink sink = { .event = sink_event, .request = sink_request, .step = sink_step,
                                       .ctx = l };

        ck_assert_ptr_nonnull(l);
        random_run_draw(&run, seed);
        l->phases = phases_create(&told, &err);
        ck_assert_ptr_nonnull(l->phases);
        ck_assert_msg(run_with(&run, &sink, 1, &err) == 0, "seed %d: %s", (int)seed, err.text);
        ck_assert_uint_eq(l->num_live, 0);
        ck_assert_uint_ge(l->num_ended, run.num_specs > 0);
        num_preemptions += l->num_preemptions;
        phases_destroy(l->phases);
        free(l);
    }
    ck_assert_uint_gt(num_preemptions, 300);
}
END_TEST

/* ---- without memory ---- */

/* 0, or -1: the run, the trace or the part found no memory. */
static int run_and_write(const struct random_run *run, const char *path, const char *page,
                         struct pkv_err *err)
{
    const struct pkv_html_config config = { .dir = NULL };
    struct pkv_perfetto *trace = pkv_perfetto_create(path, err);
    void *part = trace != NULL ? html_timeline.create(&config, err) : NULL;
    struct pkv_out *out = part != NULL ? pkv_out_open(NULL, page, err) : NULL;
    int result = -1;

    if (out != NULL) {
        const struct pkv_sink sinks[] = { pkv_perfetto_sink(trace), html_timeline.sink(part) };

        result = run_with(run, sinks, 2, err);
        if (result == 0)
            result = html_timeline.write(part, "", out, err);
        if (result == 0)
            result = pkv_perfetto_finish(trace, err);
    }
    pkv_perfetto_destroy(trace);
    if (part != NULL)
        html_timeline.destroy(part);
    pkv_out_drop(out);
    return result;
}

static void sweep(uint64_t seed, const char *name, int sticky)
{
    const char *folder = make_folder();
    char *path = path_in(folder, name), *page = path_in(folder, "page");
    struct random_run run;
    uint64_t n = 0;
    int result = -1;

    random_run_draw(&run, seed);
    if (run.num_specs > 6)
        run.num_specs = 6;
    while (result < 0) {
        struct pkv_err err = { 0 };

        ck_assert_uint_lt(++n, MOST_ALLOCATIONS);
        pkv_alloc_fail_at(n, sticky);
        result = run_and_write(&run, path, page, &err);
        pkv_alloc_fail_at(0, 0);
        if (result < 0) {
            ck_assert_msg(err.code == PKV_ERR_MEMORY, "seed %d, allocation %d: code %d, '%s'", (int)seed,
                          (int)n, (int)err.code, err.text);
            ck_assert_uint_eq(num_files(folder), 0);
        }
    }
    ck_assert_uint_eq(num_files(folder), 1);
    ck_assert(file_exists(folder, name));
    free(path);
    free(page);
    remove_folder(folder);
}

START_TEST(one_allocation_fails)
{
    sweep((uint64_t)_i, _i % 2 ? "trace.json" : "trace.json.gz", 0);
}
END_TEST

START_TEST(all_fail_from_one_on)
{
    sweep((uint64_t)_i, _i % 2 ? "trace.json.gz" : "trace.json", 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("phases");
    TCase *tests = tcase_create("phases");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, phases_add_up);
    tcase_add_loop_test(tests, one_allocation_fails, 1, 16);
    tcase_add_loop_test(tests, all_fail_from_one_on, 1, 8);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
