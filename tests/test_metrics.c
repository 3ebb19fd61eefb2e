/*
 * test_metrics.c - the sink driven by hand: every file against text worked out on paper.
 *
 * The run: a pool of 10 blocks of 4 tokens. Three rows, at 0, 10 and 60 ns, lasting 10, 30 and
 * 40 ns, so 20 ns of the 100 are a pause. Six requests, one for each way to end and two more.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "files.h"
#include "pagedkv/metrics.h"

#define ALL_FILES (PKV_FILE_STEPS | PKV_FILE_REQUESTS | PKV_FILE_EVENTS | PKV_FILE_SUMMARY | \
                   PKV_FILE_SCENARIO)

static const struct pkv_step_row rows[] = {
    {.step = 0, .time_ns = 0, .dur_ns = 10, .waiting = 2, .running = 1, .free_blocks = 6,
     .used_blocks = 4, .free_blocks_end = 6, .admitted = 1, .sched_tokens = 12,
     .prefill_tokens = 12, .stored_tokens = 12, .context_tokens = 12, .limit = 2},
    {.step = 1, .time_ns = 10, .dur_ns = 30, .running = 3, .free_blocks = 2, .used_blocks = 8,
     .cached_blocks = 1, .free_blocks_end = 5, .admitted = 2, .finished = 2, .rejected = 1,
     .sched_tokens = 18, .prefill_tokens = 17, .decode_tokens = 1, .hit_tokens = 4,
     .stored_tokens = 30, .context_tokens = 34, .max_gap_ns = 25, .limit = 1,
     .regular_gap_ns = 10, .regular_gaps = 1, .output_tokens = 3},
    {.step = 2, .time_ns = 60, .dur_ns = 40, .waiting = 1, .running = 2, .free_blocks = 5,
     .used_blocks = 5, .cached_blocks = 3, .free_blocks_end = 10, .resumed = 1, .preempted = 1,
     .finished = 1, .aborted = 1, .preemptions_total = 1, .sched_tokens = 2, .decode_tokens = 2,
     .recomputed_tokens = 1, .evicted_blocks = 2, .stored_tokens = 20, .context_tokens = 20,
     .max_gap_ns = 40, .limit = 5, .regular_gap_ns = 40, .regular_gaps = 2, .output_tokens = 2},
};

static struct pkv_request plain(uint64_t row, int64_t arrival_ns)
{
    return (struct pkv_request){
        .row = row, .arrival_ns = arrival_ns, .admitted_ns = PKV_NO_TIME,
        .first_token_ns = PKV_NO_TIME, .max_gap_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .seq = {.num_prompt_tokens = 12}, .num_output_tokens = 4};
}

static void give(const struct pkv_sink *sink, struct pkv_request *r,
                 enum pkv_request_status status, const char *reason, int64_t finish_ns)
{
    const struct pkv_request_row row = {
        .request = r, .status = status, .reason = reason, .finish_ns = finish_ns};
    struct pkv_err err = {0};

    ck_assert_msg(sink->request(sink->ctx, &row, &err) == 0, "%s", err.text);
}

static void give_step(const struct pkv_sink *sink, const struct pkv_step_row *row)
{
    struct pkv_err err = {0};

    ck_assert_msg(sink->step(sink->ctx, NULL, row, &err) == 0, "%s", err.text);
}

static struct pkv_metrics *create(const struct pkv_metrics_config *config)
{
    struct pkv_err err = {0};
    struct pkv_metrics *m = pkv_metrics_create(config, &err);

    ck_assert_msg(m != NULL, "%s", err.text);
    return m;
}

static const struct pkv_engine_figures figures = {
    .outcome = PKV_OUTCOME_STUCK, .num_steps = 3, .first_arrival_ns = 0, .end_ns = 100,
    .arrived = 6, .completed = 3, .rejected = 1, .aborted = 1, .unfinished = 1,
    .prompt_tokens = 48, .output_tokens = 7, .scheduled_tokens = 32, .recomputed_tokens = 1,
    .queried_tokens = 48, .hit_tokens = 4, .resumed_queried_tokens = 13, .resumed_hit_tokens = 8,
    .preemptions = 1,
    .cache = {.num_blocks = 10, .num_free = 10, .num_evicted = 2, .num_copied = 0,
              .pool = {.allocated = 11, .revived = 1, .released = 12}},
};

static void finish(struct pkv_metrics *m)
{
    static const struct pkv_run_info info = {
        .version = "1.2.3", .seed = 7, .scenario_sha256 = "abc", .scenario_yaml = "kv: {}\n",
        .wall_ns = 99};
    struct pkv_err err = {0};

    ck_assert_msg(pkv_metrics_finish(m, &figures, &info, &err) == 0, "%s", err.text);
}

/* Everything that happens in the run, in the order in which the engine tells it. */
static void play(struct pkv_metrics *m)
{
    struct pkv_sink sink = pkv_metrics_sink(m);
    struct pkv_request a = plain(0, 0), b = plain(1, 5), c = plain(2, 7), d = plain(3, 8),
                       e = plain(4, 50), f = plain(5, 12);

    a.id = "first";
    a.admitted_ns = 0, a.first_token_ns = 10, a.num_emitted = 4, a.max_gap_ns = 40;
    a.num_hit_tokens = 4, a.num_recomputed_tokens = 1, a.num_preemptions = 1, a.peak_blocks = 4;
    a.priority = -2;
    b.id = "x,\"y\"", b.tenant = "team";
    b.admitted_ns = 10, b.first_token_ns = 40, b.num_emitted = 1, b.peak_blocks = 3;
    d.admitted_ns = 10, d.first_token_ns = 40, d.num_emitted = 2, d.max_gap_ns = 20;
    f.admitted_ns = 30, f.emits_nothing = true, f.peak_blocks = 1;
    give_step(&sink, &rows[0]);
    give(&sink, &c, PKV_REQUEST_REJECTED, "needs 66 blocks, the pool has 50", PKV_NO_TIME);
    give(&sink, &f, PKV_REQUEST_COMPLETED, "", 40);    /* before b in the plan */
    give(&sink, &b, PKV_REQUEST_COMPLETED, "", 40);
    sink.gap(sink.ctx, 25);
    give_step(&sink, &rows[1]);
    give(&sink, &d, PKV_REQUEST_ABORTED, "", 60);
    give(&sink, &a, PKV_REQUEST_COMPLETED, "", 100);
    give_step(&sink, &rows[2]);
    give(&sink, &e, PKV_REQUEST_UNFINISHED, "nothing can change any more", PKV_NO_TIME);
}

static void expect_text(const char *folder, const char *name, const char *want)
{
    char *text = read_text(folder, name);

    ck_assert_str_eq(text, want);
    free(text);
}

static const char steps_csv[] =
    "step,time_ns,dur_ns,waiting,running,free_blocks,used_blocks,cached_blocks,free_blocks_end,"
    "admitted,resumed,preempted,finished,rejected,aborted,preemptions_total,sched_tokens,"
    "prefill_tokens,decode_tokens,recomputed_tokens,hit_tokens,evicted_blocks,stored_tokens,"
    "context_tokens,swapped_out_blocks,swapped_in_blocks,max_gap_ns,limit\n"
    "0,0,10,2,1,6,4,0,6,1,0,0,0,0,0,0,12,12,0,0,0,0,12,12,0,0,0,2\n"
    "1,10,30,0,3,2,8,1,5,2,0,0,2,1,0,0,18,17,1,0,4,0,30,34,0,0,25,1\n"
    "2,60,40,1,2,5,5,3,10,0,1,1,1,0,1,1,2,0,2,1,0,2,20,20,0,0,40,5\n";

static const char requests_csv[] =
    "id,arrival_ns,admitted_ns,first_token_ns,finish_ns,status,reason,prompt_tokens,"
    "output_tokens,hit_tokens,recomputed_tokens,preemptions,peak_blocks,max_gap_ns,queue_ns,"
    "tenant,priority\n"
    "2,7,,,,rejected,\"needs 66 blocks, the pool has 50\",12,0,0,0,0,0,,,,0\n"
    "\"x,\"\"y\"\"\",5,10,40,40,completed,,12,1,0,0,0,3,,5,team,0\n"
    "5,12,30,,40,completed,,12,0,0,0,0,1,,18,,0\n"
    "3,8,10,40,60,aborted,,12,2,0,0,0,0,20,2,,0\n"
    "first,0,0,10,100,completed,,12,4,4,1,1,4,40,0,,-2\n"
    "4,50,,,,unfinished,nothing can change any more,12,0,0,0,0,0,,,,0\n";

/*
 * used 4 x 10 + 8 x 30 + 5 x 40 = 480 of 10 x 100; stored 12 x 10 + 30 x 30 + 20 x 40 = 1,820 of
 * 40 x 100; running 10 + 90 + 80 = 180 and waiting 20 + 40 = 60, of 100. First tokens after 10, 35
 * and 32 ns; gaps 10, 25, 40, 40; largest gaps 40 (first) and 20 (aborted); from end to end 100 and
 * 35, the one without a token left out; queued 0, 5, 18, 2; per token (100 - 10) / 3. Good: only
 * the first is within 20 ns to the first token and 40 ns a gap.
 */
static const char summary_json[] =
    "{\n"
    "  \"schema\": 1,\n"
    "  \"requests\": {\"arrived\": 6, \"completed\": 3, \"rejected\": 1, \"aborted\": 1, "
    "\"unfinished\": 1},\n"
    "  \"tokens\": {\"prompt\": 48, \"output\": 7, \"scheduled\": 32, \"recomputed\": 1, "
    "\"queried\": 48, \"hit\": 4, \"resumed_queried\": 13, \"resumed_hit\": 8},\n"
    "  \"blocks\": {\"num_blocks\": 10, \"num_gpu_blocks\": 11, \"block_size\": 4, "
    "\"allocated\": 11, \"released\": 12, \"copied\": 0},\n"
    "  \"preemptions\": 1,\n"
    "  \"evicted_blocks\": 2,\n"
    "  \"steps\": 3,\n"
    "  \"makespan_ns\": 100,\n"
    "  \"peak\": {\"used_blocks\": 8, \"waiting\": 2, \"running\": 3},\n"
    "  \"mean\": {\"used_frac\": 0.48, \"slot_use_frac\": 0.455, \"running\": 1.8, "
    "\"waiting\": 0.6},\n"
    "  \"latency_ms\": {\n"
    "    \"ttft\": {\"count\": 3, \"sum_ns\": 77, \"mean\": 0.000025666, \"p50\": 0.000032, "
    "\"p90\": 0.000035, \"p95\": 0.000035, \"p99\": 0.000035, \"max\": 0.000035},\n"
    "    \"tpot\": {\"count\": 1, \"sum_ns\": 30, \"mean\": 0.00003, \"p50\": 0.00003, "
    "\"p90\": 0.00003, \"p95\": 0.00003, \"p99\": 0.00003, \"max\": 0.00003},\n"
    "    \"itl\": {\"count\": 4, \"sum_ns\": 115, \"mean\": 0.00002875, \"p50\": 0.000025, "
    "\"p90\": 0.00004, \"p95\": 0.00004, \"p99\": 0.00004, \"max\": 0.00004},\n"
    "    \"max_gap\": {\"count\": 2, \"sum_ns\": 60, \"mean\": 0.00003, \"p50\": 0.00002, "
    "\"p90\": 0.00004, \"p95\": 0.00004, \"p99\": 0.00004, \"max\": 0.00004},\n"
    "    \"e2e\": {\"count\": 2, \"sum_ns\": 135, \"mean\": 0.0000675, \"p50\": 0.000035, "
    "\"p90\": 0.0001, \"p95\": 0.0001, \"p99\": 0.0001, \"max\": 0.0001},\n"
    "    \"queue\": {\"count\": 4, \"sum_ns\": 25, \"mean\": 0.00000625, \"p50\": 0.000002, "
    "\"p90\": 0.000018, \"p95\": 0.000018, \"p99\": 0.000018, \"max\": 0.000018}\n"
    "  },\n"
    "  \"throughput\": {\"requests_per_s\": 30000000, \"output_tokens_per_s\": 70000000},\n"
    "  \"goodput\": {\"requests\": 1, \"requests_per_s\": 10000000, "
    "\"output_tokens_per_s\": 40000000},\n"
    "  \"limit_frac\": {\"idle\": 0.2, \"nothing\": 0.3, \"blocks\": 0.1, \"token budget\": 0, "
    "\"sequences\": 0, \"gate\": 0.4, \"latch\": 0, \"preempted\": 0},\n"
    "  \"wall_ns\": 99,\n"
    "  \"version\": \"1.2.3\",\n"
    "  \"seed\": 7,\n"
    "  \"scenario_sha256\": \"abc\",\n"
    "  \"outcome\": \"stuck\"\n"
    "}\n";

START_TEST(every_file_is_as_worked_out)
{
    const char *folder = make_folder();
    struct pkv_metrics_config config = {
        .dir = folder, .files = ALL_FILES, .block_size = 4, .num_gpu_blocks = 11,
        .target_ttft_ns = 20, .target_itl_ns = 40};
    struct pkv_metrics *m = create(&config);

    play(m);
    ck_assert(!file_exists(folder, "steps.csv"));
    finish(m);
    expect_text(folder, "steps.csv", steps_csv);
    expect_text(folder, "requests.csv", requests_csv);
    expect_text(folder, "events.jsonl", "");
    expect_text(folder, "scenario.yaml", "kv: {}\n");
    expect_text(folder, "summary.json", summary_json);
    ck_assert_uint_eq(num_files(folder), 5);
    pkv_metrics_destroy(m);
    remove_folder(folder);
}
END_TEST

START_TEST(the_summary_has_the_same_figures_without_files)
{
    struct pkv_metrics_config config = {.block_size = 4, .num_gpu_blocks = 11};
    struct pkv_metrics *m = create(&config);
    const struct pkv_summary *s;

    play(m);
    finish(m);
    s = pkv_metrics_summary(m);
    ck_assert_int_eq(s->makespan_ns, 100);
    ck_assert_double_eq_tol(s->mean_used_frac, 0.48, 1e-12);
    ck_assert_double_eq_tol(s->mean_slot_use_frac, 0.455, 1e-12);
    ck_assert_double_eq_tol(s->limit_frac[PKV_LIMIT_GATE], 0.4, 1e-12);
    ck_assert_double_eq_tol(s->limit_frac[PKV_LIMIT_EMPTY], 0.2, 1e-12);
    ck_assert_double_eq_tol(s->requests_per_s, 3e7, 1e-3);
    ck_assert_int_eq(s->e2e.max, 100);
    ck_assert_str_eq(s->rejected_reason, "needs 66 blocks, the pool has 50");
    ck_assert_uint_eq(s->num_with_priority, 1);
    ck_assert_uint_eq(s->num_with_deadline, 0);
    ck_assert(!s->has_targets);
    pkv_metrics_destroy(m);
}
END_TEST

/* Three that do not fit the pool, the second of them the longest, and one of another kind. */
START_TEST(the_longest_of_the_rejected_is_told)
{
    static const struct { uint32_t prompt; const char *reason; } rejected[] = {
        {100, "needs 60 blocks, the pool has 50"}, {900, "needs 666 blocks, the pool has 50"},
        {300, "needs 70 blocks, the pool has 50"}, {5000, "too long by 100"}};
    struct pkv_metrics_config config = {.block_size = 4, .num_gpu_blocks = 11};
    struct pkv_metrics *m = create(&config);
    struct pkv_sink sink = pkv_metrics_sink(m);

    for (size_t i = 0; i < sizeof rejected / sizeof *rejected; i++) {
        struct pkv_request r = plain(i, 0);
        r.seq.num_prompt_tokens = rejected[i].prompt;
        r.deadline_ns = 5;
        give(&sink, &r, PKV_REQUEST_REJECTED, rejected[i].reason, PKV_NO_TIME);
    }
    finish(m);
    ck_assert_str_eq(pkv_metrics_summary(m)->rejected_reason, rejected[1].reason);
    ck_assert_uint_eq(pkv_metrics_summary(m)->num_with_deadline, 4);
    pkv_metrics_destroy(m);
}
END_TEST

START_TEST(only_the_files_wanted_are_written)
{
    const char *folder = make_folder();
    struct pkv_metrics_config config = {
        .dir = folder, .files = PKV_FILE_STEPS, .block_size = 4, .num_gpu_blocks = 11};
    struct pkv_metrics *m = create(&config);

    ck_assert_ptr_null(pkv_metrics_sink(m).event);    /* events cost the engine something */
    play(m);
    finish(m);
    ck_assert_uint_eq(num_files(folder), 1);
    pkv_metrics_destroy(m);
    remove_folder(folder);
}
END_TEST

START_TEST(a_run_that_is_not_finished_leaves_nothing)
{
    const char *folder = make_folder();
    struct pkv_metrics_config config = {
        .dir = folder, .files = ALL_FILES, .block_size = 4, .num_gpu_blocks = 11};
    struct pkv_metrics *m = create(&config);

    play(m);
    pkv_metrics_destroy(m);
    ck_assert_uint_eq(num_files(folder), 0);
    remove_folder(folder);
}
END_TEST

/* The step numbers kept of rows that count like the given ones; ends with -1. */
static void expect_kept(struct pkv_metrics_config config, const struct pkv_step_row *given,
                        size_t num, const char *want)
{
    const char *folder = make_folder();
    char kept[256] = "", *text, *line;

    config.dir = folder;
    config.files = PKV_FILE_STEPS;
    config.block_size = 4;
    struct pkv_metrics *m = create(&config);
    struct pkv_sink sink = pkv_metrics_sink(m);
    for (size_t i = 0; i < num; i++)
        give_step(&sink, &given[i]);
    finish(m);
    pkv_metrics_destroy(m);
    text = read_text(folder, "steps.csv");
    for (line = strchr(text, '\n'); line[1]; line = strchr(line + 1, '\n')) {
        strncat(kept, line + 1, strcspn(line + 1, ","));
        strcat(kept, " ");
    }
    ck_assert_str_eq(kept, want);
    free(text);
    remove_folder(folder);
}

START_TEST(rows_can_be_thinned_out)
{
    struct pkv_step_row given[10] = {{0}};

    for (int i = 0; i < 10; i++)
        given[i] = (struct pkv_step_row){.step = i, .time_ns = i * 10, .dur_ns = 10, .running = 1,
                                         .context_tokens = i};
    given[4].preempted = 1;
    given[7].waiting = given[8].waiting = 3;
    expect_kept((struct pkv_metrics_config){0}, given, 10, "0 1 2 3 4 5 6 7 8 9 ");
    expect_kept((struct pkv_metrics_config){.every = 1}, given, 10, "0 1 2 3 4 5 6 7 8 9 ");
    expect_kept((struct pkv_metrics_config){.every = 4}, given, 10, "0 4 8 ");
    expect_kept((struct pkv_metrics_config){.on_change = true}, given, 10, "0 4 5 7 9 ");
}
END_TEST

static void give_event(const struct pkv_sink *sink, struct pkv_event event)
{
    struct pkv_err err = {0};

    ck_assert_msg(sink->event(sink->ctx, &event, &err) == 0, "%s", err.text);
}

START_TEST(events_have_their_keys_in_order)
{
    const char *folder = make_folder();
    struct pkv_metrics_config config = {.dir = folder, .files = PKV_FILE_EVENTS, .block_size = 4};
    struct pkv_metrics *m = create(&config);
    struct pkv_sink sink = pkv_metrics_sink(m);
    struct pkv_request r = plain(3, 0), other = plain(9, 0);

    other.id = "o\"1";
    other.emits_nothing = true;
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_ARRIVE, .time_ns = 5, .step = 1,
                                         .request = &r});
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_ARRIVE, .time_ns = 5, .step = 1,
                                         .request = &other});
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_REJECT, .time_ns = 5, .step = 1,
                                         .request = &r, .reason = "too long"});
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_ADMIT, .time_ns = 6, .step = 2,
                                         .request = &r, .need_blocks = 3, .free_blocks = 9,
                                         .hit_tokens = 4, .sched_tokens = 8});
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_RESUME, .time_ns = 6, .step = 2,
                                         .request = &r, .need_blocks = 1, .free_blocks = 2});
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_BLOCKED, .time_ns = 7, .step = 3,
                                         .request = &r, .limit = PKV_LIMIT_GATE, .need_blocks = 5,
                                         .free_blocks = 4, .num_holders = 2,
                                         .holders = {{&other, 6}, {&r, 2}}});
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_PREEMPT, .time_ns = 8, .step = 4,
                                         .request = &r, .grower = &other, .freed_blocks = 2,
                                         .lost_tokens = 7});
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_FIRST_TOKEN, .time_ns = 9, .step = 5,
                                         .request = &r});
    r.num_emitted = 4;
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_FINISH, .time_ns = 10, .step = 6,
                                         .request = &r});
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_ABORT, .time_ns = 11, .step = 7,
                                         .request = &other, .was = PKV_REQUEST_PREEMPTED});
    finish(m);
    expect_text(folder, "events.jsonl",
        "{\"time_ns\":5,\"step\":1,\"kind\":\"arrive\",\"id\":\"3\",\"prompt_tokens\":12,"
        "\"output_tokens\":4}\n"
        "{\"time_ns\":5,\"step\":1,\"kind\":\"arrive\",\"id\":\"o\\\"1\",\"prompt_tokens\":12,"
        "\"output_tokens\":0}\n"
        "{\"time_ns\":5,\"step\":1,\"kind\":\"reject\",\"id\":\"3\",\"reason\":\"too long\"}\n"
        "{\"time_ns\":6,\"step\":2,\"kind\":\"admit\",\"id\":\"3\",\"need_blocks\":3,"
        "\"free_blocks\":9,\"hit_tokens\":4,\"sched_tokens\":8}\n"
        "{\"time_ns\":6,\"step\":2,\"kind\":\"resume\",\"id\":\"3\",\"need_blocks\":1,"
        "\"free_blocks\":2,\"hit_tokens\":0,\"sched_tokens\":0}\n"
        "{\"time_ns\":7,\"step\":3,\"kind\":\"blocked\",\"id\":\"3\",\"limit\":5,"
        "\"need_blocks\":5,\"free_blocks\":4,\"holders\":[[\"o\\\"1\",6],[\"3\",2]]}\n"
        "{\"time_ns\":8,\"step\":4,\"kind\":\"preempt\",\"id\":\"3\",\"for\":\"o\\\"1\","
        "\"freed_blocks\":2,\"lost_tokens\":7}\n"
        "{\"time_ns\":9,\"step\":5,\"kind\":\"first_token\",\"id\":\"3\"}\n"
        "{\"time_ns\":10,\"step\":6,\"kind\":\"finish\",\"id\":\"3\",\"output_tokens\":4}\n"
        "{\"time_ns\":11,\"step\":7,\"kind\":\"abort\",\"id\":\"o\\\"1\",\"was\":\"preempted\","
        "\"freed_blocks\":0}\n");
    pkv_metrics_destroy(m);
    remove_folder(folder);
}
END_TEST

START_TEST(a_shut_queue_is_told_with_whose_refusal)
{
    const char *folder = make_folder();
    struct pkv_metrics_config config = {.dir = folder, .files = PKV_FILE_EVENTS, .block_size = 4};
    struct pkv_metrics *m = create(&config);
    struct pkv_sink sink = pkv_metrics_sink(m);
    struct pkv_request r = plain(3, 0), other = plain(9, 0);

    other.id = "o\"1";
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_BLOCKED, .time_ns = 7, .step = 3,
                                         .request = &r, .limit = PKV_LIMIT_LATCH, .need_blocks = 5,
                                         .is_latched = true, .refused = &other, .refused_step = 2});
    give_event(&sink, (struct pkv_event){.kind = PKV_EVENT_BLOCKED, .time_ns = 7, .step = 3,
                                         .request = &r, .limit = PKV_LIMIT_LATCH, .need_blocks = 5,
                                         .is_latched = true, .refused_step = 0});
    finish(m);
    expect_text(folder, "events.jsonl",
        "{\"time_ns\":7,\"step\":3,\"kind\":\"blocked\",\"id\":\"3\",\"limit\":6,\"need_blocks\":5,"
        "\"free_blocks\":0,\"holders\":[],\"refused_step\":2,\"refused\":\"o\\\"1\"}\n"
        "{\"time_ns\":7,\"step\":3,\"kind\":\"blocked\",\"id\":\"3\",\"limit\":6,\"need_blocks\":5,"
        "\"free_blocks\":0,\"holders\":[],\"refused_step\":0}\n");
    pkv_metrics_destroy(m);
    remove_folder(folder);
}
END_TEST

/* Rows whose free blocks fall and rise, whose every 7th has a preemption, with a pause. */
START_TEST(the_series_keeps_extremes_and_sums_in_fixed_room)
{
    struct pkv_metrics_config config = {.block_size = 4};
    struct pkv_metrics *m = create(&config);
    struct pkv_sink sink = pkv_metrics_sink(m);
    struct pkv_series_point points[PKV_SERIES_POINTS];
    int64_t preemptions = 0, min_free = INT64_MAX, max_waiting = 0, sum = 0;
    size_t num;

    for (int64_t i = 0; i < 5000; i++) {
        struct pkv_step_row row = {.step = i, .time_ns = i * 10 + (i >= 3000 ? 70000 : 0),
                                   .dur_ns = 10, .free_blocks = 100, .used_blocks = 900,
                                   .running = 1, .preempted = i % 7 == 0};
        row.free_blocks = i == 1234 ? 3 : 100;
        row.waiting = i == 4321 ? 77 : 1;
        preemptions += row.preempted;
        give_step(&sink, &row);
    }
    num = pkv_metrics_series(m, points, PKV_SERIES_POINTS);
    ck_assert_uint_gt(num, PKV_SERIES_POINTS / 2 - 2);
    for (size_t i = 0; i < num; i++) {
        ck_assert_int_eq(points[i].begin_ns, i ? points[i - 1].end_ns : 0);
        ck_assert_int_lt(points[i].begin_ns, points[i].end_ns);
        min_free = points[i].min_free < min_free ? points[i].min_free : min_free;
        max_waiting = points[i].max_waiting > max_waiting ? points[i].max_waiting : max_waiting;
        sum += points[i].preemptions;
    }
    ck_assert_int_eq(points[num - 1].end_ns, 4999 * 10 + 70000 + 10);
    ck_assert_int_eq(min_free, 3);
    ck_assert_int_eq(max_waiting, 77);
    ck_assert_int_eq(sum, preemptions);
    for (size_t i = 0; i < num; i++)      /* in the pause all 1,000 blocks are free */
        if (points[i].begin_ns >= 30000 && points[i].end_ns <= 100000) {
            ck_assert_int_eq(points[i].min_free, 1000);
            ck_assert_int_eq(points[i].max_running, 0);
        }
    pkv_metrics_destroy(m);
}
END_TEST

/* Play the run with allocation n failing. returns 1 when it never came to that. */
static int play_without_memory(const char *folder, uint64_t n)
{
    struct pkv_metrics_config config = {
        .dir = folder, .files = ALL_FILES, .block_size = 4, .num_gpu_blocks = 11};
    const struct pkv_run_info info = {.version = "", .scenario_sha256 = "", .scenario_yaml = ""};
    struct pkv_request a = plain(0, 0);
    const struct pkv_request_row row = {.request = &a, .status = PKV_REQUEST_COMPLETED,
                                        .reason = "", .finish_ns = 20};
    const struct pkv_event event = {.kind = PKV_EVENT_ARRIVE, .request = &a};
    struct pkv_err err = {0};
    uint64_t before = pkv_alloc_count();

    a.admitted_ns = 0, a.first_token_ns = 10, a.num_emitted = 2, a.max_gap_ns = 3000000;
    pkv_alloc_fail_at(n, 0);
    struct pkv_metrics *m = pkv_metrics_create(&config, &err);
    if (m) {
        struct pkv_sink sink = pkv_metrics_sink(m);
        sink.gap(sink.ctx, 10);
        if (sink.event(sink.ctx, &event, &err) == 0 && sink.request(sink.ctx, &row, &err) == 0 &&
            sink.step(sink.ctx, NULL, &rows[0], &err) == 0)
            pkv_metrics_finish(m, &figures, &info, &err);
    }
    bool reached = pkv_alloc_count() - before >= n;
    pkv_alloc_fail_at(0, 0);
    ck_assert_int_eq(err.code, reached ? PKV_ERR_MEMORY : PKV_ERR_NONE);
    pkv_metrics_destroy(m);
    return !reached;
}

START_TEST(every_failed_allocation_is_told)
{
    const char *folder = make_folder();
    uint64_t n = 1;

    while (!play_without_memory(folder, n))
        n++;
    ck_assert_uint_gt(n, 20);
    remove_folder(folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tcase = tcase_create("metrics");

    tcase_add_test(tcase, every_file_is_as_worked_out);
    tcase_add_test(tcase, the_summary_has_the_same_figures_without_files);
    tcase_add_test(tcase, only_the_files_wanted_are_written);
    tcase_add_test(tcase, the_longest_of_the_rejected_is_told);
    tcase_add_test(tcase, a_run_that_is_not_finished_leaves_nothing);
    tcase_add_test(tcase, rows_can_be_thinned_out);
    tcase_add_test(tcase, events_have_their_keys_in_order);
    tcase_add_test(tcase, a_shut_queue_is_told_with_whose_refusal);
    tcase_add_test(tcase, the_series_keeps_extremes_and_sums_in_fixed_room);
    tcase_add_test(tcase, every_failed_allocation_is_told);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
