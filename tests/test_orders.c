/*
 * test_orders.c - orders that look at the whole queue: the longest cached prefix, the tree of cached
 * prefixes. Small pools, blocks of 2 and 4 tokens, every step by hand.
 */
#include <check.h>

#include "pagedkv/engine.h"
#include "order_fixture.h"

/* --- the longest cached prefix --------------------------------------------------------------- */

/* Row 0 has 8 tokens of text 1 in the cache and runs on. Found are whole blocks of all but the last
 * token: of 8 tokens of text 1 one block of 4, of 9 and of 12 two; row 4 has 6 tokens of it, one. */
START_TEST(lpm_puts_the_longest_hit_first)
{
    struct pkv_sched_config config = one_at_a_time("lpm", 40, 4);
    struct pkv_sched *sched = make_sched(&config);

    add_one(sched, (struct asked_for){ .row = 0, .shared = { { 1, 8 } }, .num_own = 1,
                                       .num_output = 50 });
    step(sched);
    add_one(sched, (struct asked_for){ .row = 1, .num_own = 30, .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 2, .shared = { { 1, 8 } }, .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 3, .shared = { { 1, 9 } }, .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 4, .shared = { { 1, 6 } }, .num_own = 20,
                                       .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 5, .shared = { { 1, 8 } }, .num_own = 4,
                                       .num_output = 1 });
    expect_waiting(sched, "1 2 3 4 5");
    step(sched);
    expect_waiting(sched, "3 5 2 4 1");
    add_one(sched, (struct asked_for){ .row = 6, .shared = { { 1, 9 } }, .num_output = 1 });
    expect_waiting(sched, "3 5 2 4 1 6");   /* it comes between two passes */
    step(sched);
    expect_waiting(sched, "3 5 6 2 4 1");
    pkv_sched_destroy(sched);
}
END_TEST

START_TEST(without_a_prefix_cache_they_are_fcfs)
{
    static const char *const orders[] = { "lpm", "dfs_weight" };

    for (size_t i = 0; i < 2; i++) {
        struct pkv_sched_config config = one_at_a_time(orders[i], 40, 4);
        struct pkv_sched *sched;

        config.prefix_cache = false;
        if (i == 0)
            set_param(&config, "aging_tokens", 5);
        sched = make_sched(&config);
        add_one(sched, (struct asked_for){ .row = 0, .shared = { { 1, 9 } }, .num_output = 50 });
        step(sched);
        add_one(sched, (struct asked_for){ .row = 1, .num_own = 30, .num_output = 1 });
        step(sched);
        add_one(sched, (struct asked_for){ .row = 2, .shared = { { 1, 9 } }, .num_output = 1 });
        step(sched);
        expect_waiting(sched, "1 2");
        pkv_sched_destroy(sched);
    }
}
END_TEST

/* Row 0 computes text 2 by 4 tokens a step, which a pass in the same step finds: 4 in step 1, 8 in
 * step 2, 12 in step 3. Row 10 has left 8 tokens of text 1. Rows 1 and 2 wait with 8 and with what
 * row 0 has done; equal ones go by arrival. */
START_TEST(lpm_sees_what_comes_into_the_cache)
{
    struct pkv_sched_config config = one_at_a_time("lpm", 40, 4);
    struct pkv_sched *sched;

    config.long_prefill_token_threshold = 4;
    sched = make_sched(&config);
    add_one(sched, (struct asked_for){ .row = 10, .shared = { { 1, 8 } }, .num_output = 1 });
    step(sched);
    step(sched);
    add_one(sched, (struct asked_for){ .row = 0, .shared = { { 2, 40 } }, .num_output = 9 });
    step(sched);
    add_one(sched, (struct asked_for){ .row = 1, .shared = { { 1, 9 } }, .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 2, .shared = { { 2, 40 } }, .num_output = 1 });
    step(sched);
    expect_waiting(sched, "1 2");
    step(sched);
    expect_waiting(sched, "2 1");
    pkv_sched_destroy(sched);
}
END_TEST

/* One request a step, done in that step. Row 0 leaves 8 tokens of text 1. Row 1 shares nothing and
 * comes before step 1; before each step t from 1 on, one comes that finds 8.
 *   returns  the step in which row 1 comes in; 0 = not in 100 */
static uint64_t step_of_the_stranger(int64_t aging_tokens)
{
    struct pkv_sched_config config = one_at_a_time("lpm", 8, 4);
    struct pkv_sched *sched;
    uint64_t came_in = 0;

    set_param(&config, "aging_tokens", aging_tokens);
    sched = make_sched(&config);
    add_one(sched, (struct asked_for){ .row = 0, .shared = { { 1, 8 } }, .num_own = 1,
                                       .num_output = 1 });
    ck_assert_uint_eq(row_admitted(sched), 0);
    add_one(sched, (struct asked_for){ .row = 1, .num_own = 9, .num_output = 1 });
    for (uint64_t t = 1; t <= 100 && came_in == 0; t++) {
        uint64_t row;

        add_one(sched, (struct asked_for){ .row = 1 + t, .shared = { { 1, 8 } }, .num_own = 1,
                                           .num_output = 1 });
        row = row_admitted(sched);
        ck_assert(row == 1 || row == 1 + t);
        came_in = row == 1 ? t : 0;
    }
    pkv_sched_destroy(sched);
    return came_in;
}

/* In step t it has missed t - 1 passes, and comes in when aging x (t - 1) reaches 8: it came first, so
 * equal is enough. */
START_TEST(lpm_starves_and_aging_cures_it)
{
    ck_assert_uint_eq(step_of_the_stranger(0), 0);
    ck_assert_uint_eq(step_of_the_stranger(1), 9);
    ck_assert_uint_eq(step_of_the_stranger(2), 5);    /* 2 x 4 = 8 */
    ck_assert_uint_eq(step_of_the_stranger(3), 4);    /* 3 x 3 = 9, 3 x 2 = 6 */
    ck_assert_uint_eq(step_of_the_stranger(8), 2);
    ck_assert_uint_eq(step_of_the_stranger(1000000000), 2);
}
END_TEST

START_TEST(lpm_looks_nobody_up_in_a_long_queue)
{
    struct pkv_sched_config config = one_at_a_time("lpm", 40, 4);
    struct pkv_request *first;
    struct pkv_sched *sched;

    set_param(&config, "lpm_max_waiting", 2);
    sched = make_sched(&config);
    add_one(sched, (struct asked_for){ .row = 0, .shared = { { 1, 9 } }, .num_output = 50 });
    step(sched);
    first = add_one(sched, (struct asked_for){ .row = 1, .num_own = 9, .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 2, .num_own = 9, .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 3, .shared = { { 1, 9 } }, .num_output = 1 });
    step(sched);
    expect_waiting(sched, "1 2 3");
    cancel(sched, first);
    step(sched);
    expect_waiting(sched, "3 2");
    pkv_sched_destroy(sched);
}
END_TEST

/* In the batch, from 4 tokens on. Text 1 is cached for 8 tokens, so row 5 finds 8 and row 6 finds 4;
 * row 7 finds 4 as well and begins as row 6. Rows 1, 2 and 3 begin with 4 tokens of text 2, row 3 under
 * a salt; row 4 has only 3 of them. */
START_TEST(lpm_lets_one_of_a_batch_go_first)
{
    struct pkv_sched_config config = one_at_a_time("lpm", 60, 4);
    struct pkv_request *first;
    struct pkv_sched *sched;

    set_param(&config, "in_batch_prefix_tokens", 4);
    sched = make_sched(&config);
    add_one(sched, (struct asked_for){ .row = 0, .shared = { { 1, 8 } }, .num_own = 1,
                                       .num_output = 50 });
    step(sched);
    first = add_one(sched, (struct asked_for){ .row = 1, .shared = { { 2, 6 } }, .num_own = 3,
                                               .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 2, .shared = { { 2, 4 } }, .num_own = 5,
                                       .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 3, .shared = { { 2, 6 } }, .num_own = 3,
                                       .num_output = 1, .salt = "s" });
    add_one(sched, (struct asked_for){ .row = 4, .shared = { { 2, 3 } }, .num_own = 6,
                                       .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 5, .shared = { { 1, 9 } }, .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 6, .shared = { { 1, 5 } }, .num_own = 9,
                                       .num_output = 1 });
    add_one(sched, (struct asked_for){ .row = 7, .shared = { { 1, 5 } }, .num_own = 9,
                                       .num_output = 1 });
    step(sched);
    expect_waiting(sched, "5 6 1 3 4 2 7");
    cancel(sched, first);
    step(sched);
    expect_waiting(sched, "5 6 2 3 4 7");
    pkv_sched_destroy(sched);
}
END_TEST

/* Row 0 holds 3 of 8 blocks, row 1 wants six and is refused in step 1. Row 2 finds 8 tokens of row 0's: it
 * would be first, and is when row 0 has ended. Until then nobody is moved. */
START_TEST(lpm_names_who_would_be_first)
{
    struct pkv_sched_config config = one_at_a_time("lpm", 8, 4);
    struct pkv_request *first;
    struct pkv_sched *sched;
    struct pkv_plan *plan;

    set(&config, PKV_CHOICE_ON_BLOCKED, "latch");
    config.max_num_seqs = 0;
    sched = make_sched(&config);
    first = add_one(sched, (struct asked_for){ .row = 0, .shared = { { 1, 9 } }, .num_output = 3 });
    step(sched);
    add_one(sched, (struct asked_for){ .row = 1, .num_own = 24, .num_output = 1 });
    ck_assert_int_eq(step(sched)->limit, PKV_LIMIT_BLOCKS);
    add_one(sched, (struct asked_for){ .row = 2, .shared = { { 1, 9 } }, .num_output = 1 });
    ck_assert_int_eq(pkv_sched_plan(sched, &plan, NULL), 0);
    ck_assert_int_eq(plan->limit, PKV_LIMIT_LATCH);
    ck_assert_int_eq(pkv_sched_find_head(sched, plan, NULL), 0);
    ck_assert_uint_eq(plan->head.request->row, 2);
    ck_assert_uint_eq(plan->refused.request->row, 1);
    expect_waiting(sched, "1 2");
    pkv_sched_commit(sched, plan);
    ck_assert_uint_eq(plan->num_finished, 1);
    pkv_sched_forget(sched, first);
    ck_assert_uint_eq(row_admitted(sched), 2);
    pkv_sched_destroy(sched);
}
END_TEST

/* As far as a hit can be long, 200 tokens here, it matters by how many passes one is older: the
 * livelock of one that gives itself up at the front while another waits is seen once that is over. */
static size_t num_given;

static int give_two(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    static struct pkv_span span;

    (void)ctx;
    (void)err;
    if (num_given == 2)
        return 0;
    span = (struct pkv_span){ pkv_origin(PKV_ORIGIN_OWN, num_given), 0, num_given ? 200 : 100 };
    *out = (struct pkv_request_spec){
        .row = num_given++, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .num_prompt_tokens = span.count, .num_output_tokens = 5, .max_tokens = 5,
        .content = { .prompt = &span, .num_prompt_spans = 1 } };
    return 1;
}

static uint64_t steps_to_livelock(const char *order, int64_t aging_tokens)
{
    struct pkv_engine_config config = {
        .sched = base_config(4), .source = { give_two, NULL }, .stuck_steps = 1,
        .max_steps = 10000, .check = true,
        .step_time = { .law = PKV_STEP_TIME_FIXED, .fixed_ns = 1000 } };
    struct pkv_engine *engine;
    uint64_t num_steps;

    set(&config.sched, PKV_CHOICE_ORDER, order);
    set(&config.sched, PKV_CHOICE_ADMIT, "future_peak");
    if (aging_tokens > 0)
        set_param(&config.sched, "aging_tokens", aging_tokens);
    config.sched.oversized = PKV_OVERSIZED_WAIT;
    config.sched.long_prefill_token_threshold = 48;
    num_given = 0;
    engine = pkv_engine_create(&config, NULL);
    ck_assert_ptr_nonnull(engine);
    ck_assert_int_eq(pkv_engine_run(engine, NULL), 0);
    ck_assert_int_eq(pkv_engine_figures(engine)->outcome, PKV_OUTCOME_LIVELOCK);
    ck_assert_uint_eq(pkv_engine_figures(engine)->output_tokens, 0);
    num_steps = pkv_engine_figures(engine)->num_steps;
    pkv_engine_destroy(engine);
    return num_steps;
}

START_TEST(a_livelock_is_seen_under_each)
{
    ck_assert_uint_lt(steps_to_livelock("lpm", 0), 50);
    ck_assert_uint_lt(steps_to_livelock("dfs_weight", 0), 50);
    ck_assert_uint_lt(steps_to_livelock("vtc", 0), 50);
    ck_assert_uint_ge(steps_to_livelock("lpm", 1), 200);
    ck_assert_uint_ge(steps_to_livelock("lpm", 2), 100);
    ck_assert_uint_lt(steps_to_livelock("lpm", 1000), 50);
}
END_TEST

/* Row 0 leaves 8 tokens of text 1 and is done in step 0. Row 1 comes then, wants more than the pool has
 * and waits for ever, as the first in line once it has missed passes enough. Row 2 finds 8 tokens: it
 * comes `late` after the start of step 1, in which row 1 misses its first pass. */
struct late { size_t num_given; int64_t late_ns; };

static int give_late(void *ctx, struct pkv_request_spec *out, struct pkv_err *err)
{
    static struct pkv_span span;
    static const uint32_t lengths[] = { 9, 100, 9 };
    struct late *late = ctx;
    size_t row = late->num_given;

    (void)err;
    if (row == 3)
        return 0;
    span = (struct pkv_span){ pkv_origin(PKV_ORIGIN_NAME, row == 1 ? 2 : 1), 0, lengths[row] };
    *out = (struct pkv_request_spec){
        .row = row, .abort_ns = PKV_NO_TIME, .deadline_ns = PKV_NO_TIME,
        .arrival_ns = row == 2 ? 1000 + late->late_ns : (int64_t)row,
        .num_prompt_tokens = span.count, .num_output_tokens = 1, .max_tokens = 1,
        .content = { .prompt = &span, .num_prompt_spans = 1,
                     .output_origin = pkv_origin(PKV_ORIGIN_OUTPUT, row) } };
    late->num_given++;
    return 1;
}

static struct pkv_engine_figures after_a_wait(int64_t aging_tokens, int64_t late_ns, bool every_step)
{
    struct late late = { 0, late_ns };
    struct pkv_engine_config config = {
        .sched = one_at_a_time("lpm", 8, 4), .source = { give_late, &late }, .stuck_steps = 1,
        .max_steps = 100000, .check = true, .every_step = every_step,
        .step_time = { .law = PKV_STEP_TIME_FIXED, .fixed_ns = 1000 } };
    struct pkv_engine_figures figures;
    struct pkv_engine *engine;

    set_param(&config.sched, "aging_tokens", aging_tokens);
    config.sched.oversized = PKV_OVERSIZED_WAIT;
    engine = pkv_engine_create(&config, NULL);
    ck_assert_ptr_nonnull(engine);
    ck_assert_int_eq(pkv_engine_run(engine, NULL), 0);
    figures = *pkv_engine_figures(engine);
    ck_assert_int_eq(figures.outcome, PKV_OUTCOME_STUCK);
    pkv_engine_destroy(engine);
    return figures;
}

/* Passes that are over when row 2 comes: one for each begun step. Row 2 goes first while they count for
 * fewer than its 8 tokens. However long it takes, the wait is one row: steps 0, 1, those of row 2 and
 * the idle one at the end. */
START_TEST(lpm_counts_the_passes_of_a_long_wait)
{
    for (int64_t late = 1; late <= 20; late++) {
        for (int64_t aging = 1; aging <= 9; aging++) {
            uint64_t num_done = late * aging < 8 ? 2 : 1;

            ck_assert_uint_eq(after_a_wait(aging, late * 1000, true).completed, num_done);
            ck_assert_uint_eq(after_a_wait(aging, late * 1000, false).completed, num_done);
            ck_assert_uint_eq(after_a_wait(aging, late * 1000 - 999, false).completed, num_done);
        }
    }
    ck_assert_uint_le(after_a_wait(1, INT64_C(3600000000000), false).num_steps, 4);
    ck_assert_uint_le(after_a_wait(1000000000, INT64_C(3600000000000), false).num_steps, 4);
    ck_assert_uint_eq(after_a_wait(0, INT64_C(3600000000000), false).completed, 2);
}
END_TEST

/* --- the tree of cached prefixes ------------------------------------------------------------- */

/* Cached, in blocks of 2: P A, P B, and Q1 Q2. Where the matches of those waiting end:
 *
 *                       root: 12
 *                      /        \
 *              P: 11 (4)        Q1: 14 (2)
 *              /       \              \
 *        A: 13 (1)  B: 15, 16 (2)      Q2: 10 (1)
 *
 * in brackets how many end in the subtree. P goes before Q1, B before A, children before their node:
 * 15 16, 13, 11, then 10, 14, and 12 at the end. Without 11 and 16 everything is even, and the subtree
 * of the earliest goes first: that of 10, then 13 before 15. */
START_TEST(dfs_weight_walks_the_tree)
{
    enum { P = 1, A = 2, B = 3, Q = 4 };
    struct pkv_sched_config config = one_at_a_time("dfs_weight", 60, 2);
    struct pkv_sched *sched = make_sched(&config);
    struct pkv_request *at_p, *second_at_b;

    add_one(sched, (struct asked_for){ 0, { { P, 2 }, { A, 2 } }, 1, 1, NULL, NULL });
    add_one(sched, (struct asked_for){ 1, { { P, 2 }, { B, 2 } }, 1, 1, NULL, NULL });
    add_one(sched, (struct asked_for){ 2, { { Q, 4 }, { 0, 0 } }, 1, 1, NULL, NULL });
    add_one(sched, (struct asked_for){ 3, { { 0, 0 }, { 0, 0 } }, 1, 50, NULL, NULL });
    for (int t = 0; t < 4; t++)
        step(sched);
    add_one(sched, (struct asked_for){ 10, { { Q, 4 }, { 0, 0 } }, 1, 1, NULL, NULL });
    at_p = add_one(sched, (struct asked_for){ 11, { { P, 2 }, { 0, 0 } }, 1, 1, NULL, NULL });
    add_one(sched, (struct asked_for){ 12, { { 0, 0 }, { 0, 0 } }, 9, 1, NULL, NULL });
    add_one(sched, (struct asked_for){ 13, { { P, 2 }, { A, 2 } }, 1, 1, NULL, NULL });
    add_one(sched, (struct asked_for){ 14, { { Q, 2 }, { 0, 0 } }, 2, 1, NULL, NULL });
    add_one(sched, (struct asked_for){ 15, { { P, 2 }, { B, 2 } }, 3, 1, NULL, NULL });
    second_at_b =
        add_one(sched, (struct asked_for){ 16, { { P, 2 }, { B, 2 } }, 1, 1, NULL, NULL });
    step(sched);
    expect_waiting(sched, "15 16 13 11 10 14 12");
    cancel(sched, at_p);
    cancel(sched, second_at_b);
    step(sched);
    expect_waiting(sched, "10 14 13 15 12");
    pkv_sched_destroy(sched);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("orders");
    TCase *tests = tcase_create("orders");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, lpm_puts_the_longest_hit_first);
    tcase_add_test(tests, without_a_prefix_cache_they_are_fcfs);
    tcase_add_test(tests, lpm_sees_what_comes_into_the_cache);
    tcase_add_test(tests, lpm_starves_and_aging_cures_it);
    tcase_add_test(tests, lpm_looks_nobody_up_in_a_long_queue);
    tcase_add_test(tests, lpm_lets_one_of_a_batch_go_first);
    tcase_add_test(tests, lpm_names_who_would_be_first);
    tcase_add_test(tests, a_livelock_is_seen_under_each);
    tcase_add_test(tests, lpm_counts_the_passes_of_a_long_wait);
    tcase_add_test(tests, dfs_weight_walks_the_tree);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
