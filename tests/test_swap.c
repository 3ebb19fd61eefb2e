/*
 * test_swap.c - blocks that go to the host and come back, with every number worked out by hand.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "engine_fixture.h"
#include "sched_fixture.h"

static const struct pkv_link link_1ms = { .bytes_per_s = 16000000, .latency_ns = 250000 };

/* 16 tokens of 1,000 bytes take 1 ms at 16 MB/s; with the latency 1.25 ms a block. */
static void let_swap(struct pkv_sched_config *config, const char *how, uint32_t num_host_blocks)
{
    set(config, PKV_CHOICE_ON_PREEMPT, how);
    config->swap = (struct pkv_swap_config){
        .num_host_blocks = num_host_blocks, .bytes_per_token = 1000, .link = link_1ms };
}

/* --- the link -------------------------------------------------------------------------------- */

/* 2 MiB at 25 GB/s take 83,886.08 ns, rounded up for each block; the latency is each block's own, so the
 * same bytes in blocks of 16 tokens take less than in blocks of 1. */
START_TEST(a_block_is_a_transfer)
{
    const struct pkv_link link = { .bytes_per_s = UINT64_C(25000000000), .latency_ns = 10000 };

    ck_assert_int_eq(pkv_link_time_ns(&link, 1, 16 * 131072), 83887 + 10000);
    ck_assert_int_eq(pkv_link_time_ns(&link, 46, 16 * 131072), 46 * 93887);
    ck_assert_int_eq(pkv_link_time_ns(&link, 16, 131072), 16 * (5243 + 10000));
    ck_assert_int_eq(pkv_link_time_ns(&link, 0, 131072), 0);
    ck_assert_int_eq(pkv_link_time_ns(&link, UINT64_MAX, UINT64_MAX), PKV_LONGEST_STEP_NS);
}
END_TEST

/* --- one that goes and comes ----------------------------------------------------------------- */

/*
 * 4 blocks of 16. Row 0 has 32 + 17 tokens, row 1 30 + 10; a step takes 1 ms.
 *
 *   step   at      what
 *      0    0      both are computed: 2 blocks each, one token each
 *      1    1      row 0 needs a third block: row 1 goes out, 2 blocks, 2.5 ms; row 0 gets nothing
 *      2    2      nothing can happen before 3.5
 *      3    3.5    2 blocks are free: row 0 takes one; row 1 needs 2 for its 31 tokens, 1 is free
 *     18   18.5    row 0's 17th token
 *     19   19.5    row 1 comes in, 2.5 ms
 *     20   20.5    nothing can happen before 22
 *     21   22      row 1 goes on; its 10th token comes out of step 29, which ends at 31
 */
static void run_two(struct run *run, int64_t abort_ns)
{
    begin_run(run, 4);
    let_swap(&run->config.sched, "swap", 8);
    ask(run, (struct asked){ .num_prompt = 32, .num_output = 17 });
    ask(run, (struct asked){ .num_prompt = 30, .num_output = 10, .abort_ns = abort_ns });
    expect_outcome(run, PKV_OUTCOME_DONE);
}

static void expect_step(const struct run *run, size_t i, int64_t time_ns, int64_t dur_ns,
                        int64_t num_tokens, int64_t num_free)
{
    ck_assert_int_eq(run->steps[i].time_ns, time_ns);
    ck_assert_int_eq(run->steps[i].dur_ns, dur_ns);
    ck_assert_int_eq(run->steps[i].sched_tokens, num_tokens);
    ck_assert_int_eq(run->steps[i].free_blocks, num_free);
}

START_TEST(blocks_leave_beside_the_compute)
{
    static struct run run;

    run_two(&run, 0);
    expect_step(&run, 1, 1 * MS, MS, 0, 0);
    ck_assert_int_eq(run.steps[1].preempted, 1);
    ck_assert_int_eq(run.steps[1].swapped_out_blocks, 2);
    expect_step(&run, 2, 2 * MS, 3 * MS / 2, 0, 0);
    ck_assert_int_eq(run.steps[2].preempted, 0);
    ck_assert_int_eq(run.steps[2].limit, PKV_LIMIT_PREEMPTED);
    expect_step(&run, 3, 7 * MS / 2, MS, 1, 1);
    ck_assert_int_eq(run.steps[3].limit, PKV_LIMIT_BLOCKS);
    expect_step(&run, 18, 37 * MS / 2, MS, 1, 1);
    ck_assert_int_eq(run.steps[18].finished, 1);
}
END_TEST

START_TEST(they_come_back_without_prefill)
{
    static struct run run;

    run_two(&run, 0);
    expect_step(&run, 19, 39 * MS / 2, MS, 0, 2);
    ck_assert_int_eq(run.steps[19].resumed, 1);
    ck_assert_int_eq(run.steps[19].swapped_in_blocks, 2);
    ck_assert_int_eq(run.steps[19].running, 1);
    ck_assert_int_eq(run.steps[19].waiting, 0);
    expect_step(&run, 20, 41 * MS / 2, 3 * MS / 2, 0, 2);
    expect_step(&run, 21, 22 * MS, MS, 1, 2);
    ck_assert_uint_eq(run.num_steps, 30);
    ck_assert_int_eq(run.figures.end_ns, 31 * MS);
    ck_assert_uint_eq(run.figures.recomputed_tokens, 0);
    ck_assert_uint_eq(run.figures.scheduled_tokens, 48 + 39);
    ck_assert_uint_eq(run.figures.swaps, 1);
    ck_assert_uint_eq(run.figures.swap_fallbacks, 0);
    ck_assert_uint_eq(run.figures.swapped_out_blocks, 2);
    ck_assert_uint_eq(run.figures.swapped_in_blocks, 2);
    ck_assert_int_eq(run.figures.link_busy_ns, 5 * MS);
    ck_assert_uint_eq(run.figures.peak_host_blocks, 2);
    ck_assert_uint_eq(run.figures.cache.num_host_used, 0);
}
END_TEST

START_TEST(the_events_say_when_the_link_is_done)
{
    static struct run run;
    const struct told_event *out[2], *in[2];

    run_two(&run, 0);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_SWAP_OUT, 1, out), 1);
    ck_assert_uint_eq(events_of(&run, PKV_EVENT_SWAP_IN, 1, in), 1);
    ck_assert_uint_eq(out[0]->step, 1);
    ck_assert_uint_eq(out[0]->num_blocks, 2);
    ck_assert_uint_eq(out[0]->num_bytes, 32000);
    ck_assert_int_eq(out[0]->done_ns, 7 * MS / 2);
    ck_assert_uint_eq(in[0]->step, 19);
    ck_assert_uint_eq(in[0]->num_blocks, 2);
    ck_assert_int_eq(in[0]->done_ns, 22 * MS);
}
END_TEST

/* Cancelled while its copies wait: nothing of it is left, and its blocks have been free for long. */
START_TEST(one_on_the_host_is_cancelled)
{
    static struct run run;

    run_two(&run, 10 * MS);
    ck_assert_uint_eq(run.figures.aborted, 1);
    ck_assert_uint_eq(run.figures.swapped_in_blocks, 0);
    ck_assert_int_eq(run.figures.end_ns, 39 * MS / 2);
}
END_TEST

/* Cancelled on its way out, at 2 ms: the link goes on to 3.5, and only then are the blocks free. */
START_TEST(one_on_its_way_out_is_cancelled)
{
    static struct run run;

    run_two(&run, 2 * MS);
    expect_step(&run, 2, 2 * MS, 3 * MS / 2, 0, 0);
    ck_assert_int_eq(run.steps[2].aborted, 1);
    ck_assert_int_eq(run.steps[2].limit, PKV_LIMIT_EMPTY);
    expect_step(&run, 3, 7 * MS / 2, MS, 1, 1);
}
END_TEST

/* Cancelled on its way in, at 20.5 ms: what the link writes into is not free before 22. A third request
 * comes at 21: it finds 2 blocks free, and needs 4. */
START_TEST(one_on_its_way_in_is_cancelled)
{
    static struct run run;

    begin_run(&run, 4);
    let_swap(&run.config.sched, "swap", 8);
    ask(&run, (struct asked){ .num_prompt = 32, .num_output = 17 });
    ask(&run, (struct asked){ .num_prompt = 30, .num_output = 10, .abort_ns = 41 * MS / 2 });
    ask(&run, (struct asked){ .arrival_ns = 21 * MS, .num_prompt = 64, .num_output = 1 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_int_eq(run.steps[20].aborted, 1);
    expect_step(&run, 20, 41 * MS / 2, MS, 0, 2);
    expect_step(&run, 21, 43 * MS / 2, MS, 0, 2);
    ck_assert_int_eq(run.steps[21].limit, PKV_LIMIT_BLOCKS);
    expect_step(&run, 22, 45 * MS / 2, MS, 64, 0);
    ck_assert_uint_eq(run.figures.completed, 2);
}
END_TEST

/* --- who waits for those who come back ------------------------------------------------------- */

/*
 * 20 blocks of 1 token of 1,000,000 bytes, so that a block takes 10 ms; 10 of them stay free after an
 * admission while others are in. Rows of (6, 12), (4, 14) and (3, 3) tokens come at 0.
 *
 *   step   at      what
 *      0    0      row 0 is in, 14 are free; so is row 1, with 4 + 10; row 2 asks for 3 + 10 of 10
 *      5    5      11 + 9 hold all blocks
 *      6    6      row 0 needs a block: row 1 goes out, 9 blocks, to 96
 *      8   96      row 0 goes on to its 12th token, which is out of step 13
 *     14  102      row 1 comes back, 9 blocks, to 192; row 2 asks for 3 + 10 of 11
 *     16  192      row 1 takes its 10th block; its 14th token is out of step 23
 *     24  200      row 2 finds nobody
 */
START_TEST(the_watermark_sees_one_that_comes_back)
{
    static struct run run;

    begin_run(&run, 20);
    run.config.sched.groups[0].block_size = 1;
    run.config.sched.watermark = 0.5;
    let_swap(&run.config.sched, "swap", 40);
    set(&run.config.sched, PKV_CHOICE_ADMIT, "first_chunk");
    run.config.sched.swap.bytes_per_token = 1000000;
    run.config.sched.swap.link = (struct pkv_link){ .bytes_per_s = 100000000 };
    ask(&run, (struct asked){ .num_prompt = 6, .num_output = 12 });
    ask(&run, (struct asked){ .num_prompt = 4, .num_output = 14 });
    ask(&run, (struct asked){ .num_prompt = 3, .num_output = 3 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    expect_step(&run, 5, 5 * MS, MS, 2, 0);
    ck_assert_int_eq(run.steps[6].swapped_out_blocks, 9);
    expect_step(&run, 14, 102 * MS, MS, 0, 11);
    ck_assert_int_eq(run.steps[14].swapped_in_blocks, 9);
    ck_assert_int_eq(run.steps[14].admitted, 0);
    ck_assert_int_eq(run.steps[14].limit, PKV_LIMIT_GATE);
    expect_step(&run, 15, 103 * MS, 89 * MS, 0, 11);
    expect_step(&run, 16, 192 * MS, MS, 1, 10);
    expect_step(&run, 24, 200 * MS, MS, 3, 17);
    ck_assert_int_eq(run.steps[24].admitted, 1);
    ck_assert_int_eq(run.figures.end_ns, 203 * MS);
}
END_TEST

/* --- what is moved --------------------------------------------------------------------------- */

/* A text of 32 tokens that all begin with, and own ones behind it. */
static struct pkv_request *add_sharing(struct pkv_sched *sched, uint64_t row, uint32_t num_own,
                                       uint32_t num_output)
{
    const struct pkv_span spans[] = {
        { pkv_origin(PKV_ORIGIN_NAME, 7), 0, 32 }, { pkv_origin(PKV_ORIGIN_OWN, row), 0, num_own } };
    const struct pkv_request_spec spec = {
        .row = row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = 32 + num_own, .num_output_tokens = num_output,
        .max_tokens = num_output,
        .content = { .prompt = spans, .num_prompt_spans = 2,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, row) } };
    struct pkv_request *request = NULL;
    char reason[256];

    ck_assert_int_eq(pkv_sched_add(sched, &spec, &request, reason, sizeof reason, NULL), 0);
    return request;
}

/*
 * 5 blocks. Rows 0 and 1 share 2 blocks; row 0 has 33 + 30 tokens, row 1 40 + 20. After step t row 0 has
 * computed 32 + t, row 1 39 + t. In step 17 row 0 needs its fourth block: row 1 is given up with 55
 * positions in 4 blocks, of which two are row 0's as well.
 */
static struct pkv_sched *give_up_sharing(struct pkv_sched_config *config, struct pkv_request **out)
{
    struct pkv_sched *sched;
    const struct pkv_plan *plan;

    config->prefix_cache = true;
    let_swap(config, "swap", 8);
    sched = make_sched(config);
    add_sharing(sched, 0, 1, 30);
    *out = add_sharing(sched, 1, 8, 20);
    for (int t = 1; t <= 16; t++)
        ck_assert_uint_eq(step(sched)->num_preemptions, 0);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_preemptions, 1);
    ck_assert_uint_eq(plan->preemptions[0].num_swapped_blocks, 2);
    ck_assert_uint_eq(plan->preemptions[0].freed_blocks, 0);
    ck_assert_uint_eq(plan->preemptions[0].lost_tokens, 0);
    ck_assert_uint_eq(plan->num_stalled, 1);
    ck_assert_uint_eq((*out)->status, PKV_REQUEST_SWAPPED);
    ck_assert_uint_eq(num_used(sched), 5);
    pkv_sched_transfer_done(sched);
    ck_assert_uint_eq(num_used(sched), 3);
    return sched;
}

/* Row 0 takes the partly filled block, which is the first to be lost, and runs to its 30th token in step
 * 31. Then row 1 finds 48 tokens in the pool, and one block comes from the host. */
START_TEST(only_blocks_without_another_holder_move)
{
    struct pkv_sched_config config = base_config(5);
    struct pkv_request *r;
    struct pkv_sched *sched = give_up_sharing(&config, &r);
    const struct pkv_plan *plan;
    size_t num;

    for (int t = 18; t <= 30; t++)
        ck_assert_uint_eq(step(sched)->num_finished, 0);
    ck_assert_uint_eq(step(sched)->num_finished, 1);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_tokens, 0);
    ck_assert_uint_eq(plan->num_admissions, 1);
    ck_assert_uint_eq(plan->admissions[0].num_hit_tokens, 48);
    ck_assert_uint_eq(plan->num_transfers, 1);
    ck_assert_uint_eq(pkv_sched_transfers(sched, &num)[0].num_blocks, 1);
    ck_assert_uint_eq(r->status, PKV_REQUEST_RESUMING);
    ck_assert_uint_eq(pkv_sched_num_resuming(sched), 1);
    pkv_sched_transfer_done(sched);
    ck_assert_uint_eq(r->seq.num_computed_tokens, 55);
    plan = step(sched);
    ck_assert_uint_eq(plan->num_decodes, 1);
    ck_assert_uint_eq(plan->num_recomputed_tokens, 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* Row 2 is before row 1 in the queue, takes the whole pool when row 0 has ended, and so what row 1 shared
 * is lost: its copies lie behind a gap, and all 56 tokens are computed. */
START_TEST(what_is_behind_a_gap_is_computed_again)
{
    struct pkv_sched_config config = base_config(5);
    struct pkv_request *r;
    struct pkv_sched *sched;
    const struct pkv_plan *plan;

    set(&config, PKV_CHOICE_REQUEUE, "tail");
    config.max_num_seqs = 2;
    config.prefix_cache = true;
    let_swap(&config, "swap", 8);
    sched = make_sched(&config);
    add_sharing(sched, 0, 1, 30);
    r = add_sharing(sched, 1, 8, 20);
    add(sched, 2, 80, 1, 0);
    for (int t = 1; t <= 17; t++)
        step(sched);
    ck_assert_uint_eq(r->status, PKV_REQUEST_SWAPPED);
    expect_waiting(sched, "2 1");
    pkv_sched_transfer_done(sched);
    for (int t = 18; t <= 31; t++)
        step(sched);
    plan = step(sched);                            /* row 2 comes and goes */
    ck_assert_uint_eq(plan->num_tokens, 80);
    plan = step(sched);
    ck_assert_uint_eq(r->status, PKV_REQUEST_RUNNING);
    ck_assert_uint_eq(plan->num_transfers, 0);
    ck_assert_uint_eq(plan->num_tokens, 56);
    ck_assert_uint_eq(plan->num_recomputed_tokens, 55);
    ck_assert_uint_eq(pkv_cache_figures(pkv_sched_cache(sched)).num_host_used, 0);
    pkv_sched_destroy(sched);
}
END_TEST

/* --- when it is not done --------------------------------------------------------------------- */

START_TEST(a_full_host_falls_back_to_recompute)
{
    static struct run run;

    begin_run(&run, 4);
    let_swap(&run.config.sched, "swap", 1);        /* row 1 has 2 blocks */
    ask(&run, (struct asked){ .num_prompt = 32, .num_output = 17 });
    ask(&run, (struct asked){ .num_prompt = 30, .num_output = 10 });
    expect_outcome(&run, PKV_OUTCOME_DONE);
    ck_assert_uint_eq(run.figures.preemptions, 1);
    ck_assert_uint_eq(run.figures.swaps, 0);
    ck_assert_uint_eq(run.figures.swap_fallbacks, 1);
    ck_assert_uint_eq(run.figures.recomputed_tokens, 30);
    ck_assert_int_eq(run.steps[1].sched_tokens, 1);    /* its blocks were free at once */
}
END_TEST

static bool auto_swaps(const struct pkv_swap_case *c)
{
    const struct pkv_on_preempt_ops *ops =
        (const struct pkv_on_preempt_ops *)(const void *)pkv_policy_find(PKV_CHOICE_ON_PREEMPT, "auto");

    return ops->swaps(c);
}

/* 1,000 positions at 25 us are 25 ms, 100 of them the base of 10 ms, one a base and a decode. */
START_TEST(auto_takes_the_cheaper)
{
    const struct pkv_step_time law = { .law = PKV_STEP_TIME_AFFINE, .base_ns = 10 * MS,
                                       .per_prefill_token_ns = 25000, .per_decode_ns = 50000,
                                       .per_context_token_ns = 100 };
    struct pkv_swap_case c = { .num_blocks = 63, .num_positions = 1000, .step_time = &law };
    const int64_t whole = 25 * MS + 1000 * 100;

    c.transfer_ns = whole / 2;
    ck_assert(!auto_swaps(&c));                    /* equal */
    c.transfer_ns = whole / 2 - 1;
    ck_assert(auto_swaps(&c));
    c.wait_ns = 2;
    ck_assert(!auto_swaps(&c));
    c.wait_ns = 1;
    ck_assert(auto_swaps(&c));
    c.wait_ns = whole;
    c.transfer_ns = 0;
    ck_assert(!auto_swaps(&c));
    c = (struct pkv_swap_case){ .num_positions = 100, .transfer_ns = 5 * MS, .step_time = &law };
    ck_assert(auto_swaps(&c));                     /* 10 ms and 10,000 ns */
    c.transfer_ns += 5000;
    ck_assert(!auto_swaps(&c));
    c = (struct pkv_swap_case){ .num_positions = 1, .transfer_ns = 5 * MS + 25000, .step_time = &law };
    ck_assert(auto_swaps(&c));                     /* 10.05 ms and 100 ns */
    c.transfer_ns += 50;
    ck_assert(!auto_swaps(&c));
}
END_TEST

/* A block takes 1.25 ms: 2 out and in 5 ms; computing 30 positions takes a step. */
START_TEST(auto_asks_the_step_time)
{
    static struct run run;

    for (int slow = 0; slow < 2; slow++) {
        begin_run(&run, 4);
        let_swap(&run.config.sched, "auto", 8);
        run.config.step_time.fixed_ns = slow ? 5 * MS + 1 : 5 * MS;
        ask(&run, (struct asked){ .num_prompt = 32, .num_output = 17 });
        ask(&run, (struct asked){ .num_prompt = 30, .num_output = 10 });
        expect_outcome(&run, PKV_OUTCOME_DONE);
        ck_assert_uint_eq(run.figures.swaps, (uint64_t)slow);
        ck_assert_uint_eq(run.figures.recomputed_tokens, slow ? 0 : 30);
    }
}
END_TEST

START_TEST(runs_of_blocks_are_not_moved)
{
    struct pkv_sched_config config = base_config(8);
    struct pkv_err err = { 0 };

    let_swap(&config, "swap", 8);
    set(&config, PKV_CHOICE_LAYOUT, "contiguous_exact");
    ck_assert_ptr_null(pkv_sched_create(&config, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(err.text, "contiguous_exact"));
}
END_TEST

static void expect_no_drafts(const struct pkv_sched_config *config)
{
    struct pkv_err err = { 0 };

    ck_assert_ptr_null(pkv_sched_create(config, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(err.text, "no speculation, no async_scheduling"));
}

START_TEST(neither_drafts_nor_overlapping_steps)
{
    struct pkv_sched_config config = base_config(4);

    let_swap(&config, "auto", 8);
    config.async_scheduling = true;
    expect_no_drafts(&config);
    config.async_scheduling = false;
    config.speculation = (struct pkv_speculation){
        .method = PKV_SPECULATION_NGRAM, .num_tokens = 2, .acceptance_rate = 1 };
    expect_no_drafts(&config);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("swap");
    TCase *link = tcase_create("link"), *two = tcase_create("two"), *moved = tcase_create("moved"),
          *not_done = tcase_create("not done");
    SRunner *runner;
    int num_failed;

    tcase_add_test(link, a_block_is_a_transfer);
    tcase_add_test(two, blocks_leave_beside_the_compute);
    tcase_add_test(two, they_come_back_without_prefill);
    tcase_add_test(two, the_events_say_when_the_link_is_done);
    tcase_add_test(two, one_on_the_host_is_cancelled);
    tcase_add_test(two, one_on_its_way_out_is_cancelled);
    tcase_add_test(two, one_on_its_way_in_is_cancelled);
    tcase_add_test(two, the_watermark_sees_one_that_comes_back);
    tcase_add_test(moved, only_blocks_without_another_holder_move);
    tcase_add_test(moved, what_is_behind_a_gap_is_computed_again);
    tcase_add_test(not_done, a_full_host_falls_back_to_recompute);
    tcase_add_test(not_done, auto_takes_the_cheaper);
    tcase_add_test(not_done, auto_asks_the_step_time);
    tcase_add_test(not_done, runs_of_blocks_are_not_moved);
    tcase_add_test(not_done, neither_drafts_nor_overlapping_steps);
    suite_add_tcase(suite, link);
    suite_add_tcase(suite, two);
    suite_add_tcase(suite, moved);
    suite_add_tcase(suite, not_done);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    num_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return num_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
