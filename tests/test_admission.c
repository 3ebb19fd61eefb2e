/*
 * test_admission.c - admit policies on states made by hand, and in rounds small enough to be worked
 * out on paper.
 */
#include <stdlib.h>

#include <check.h>

#include "rounds_fixture.h"
#include "sched_fixture.h"

/* --- one state, several rules ---------------------------------------------------------------- */

#define R1 0
#define R2 1
#define C 2
#define D 3

static struct pkv_request made[4];
static struct pkv_request *running[4];
static struct pkv_sched *sched;          /* for its cache */
static struct pkv_sched_view view;
static const struct pkv_admit_ops *admit;
static uint64_t pass[8];

static void make(size_t i, uint32_t num_prompt, uint32_t num_emitted, uint32_t max_tokens)
{
    made[i] = (struct pkv_request){ .row = i, .num_emitted = num_emitted, .max_tokens = max_tokens,
                                    .num_output_tokens = max_tokens };
    made[i].seq.num_prompt_tokens = num_prompt;
    made[i].seq.num_known_tokens = num_prompt + num_emitted;
}

/* All its known tokens are in blocks now, and it runs. */
static void start(size_t i)
{
    struct pkv_seq *seq = &made[i].seq;

    seq->num_computed_tokens = seq->num_known_tokens;
    seq->tables[0].num = pkv_cache_need(view.cache, seq, NULL, seq->num_known_tokens);
    view.num_free_blocks -= seq->tables[0].num;
    running[view.num_running++] = &made[i];
}

/* A pool of 10,000 tokens. R1: 1,000 prompt, 100 generated of at most 1,000. R2: 2,000, 500 of 600.
 * 6,400 tokens are free. */
static void begin(const char *name, uint32_t block_size)
{
    struct pkv_sched_config config = base_config(10000 / block_size);

    config.groups[0].block_size = block_size;
    sched = make_sched(&config);
    view = (struct pkv_sched_view){ .cache = pkv_sched_cache(sched), .running = running,
                                    .num_free_blocks = 10000 / block_size,
                                    .num_blocks = 10000 / block_size, .max_model_len = UINT32_MAX };
    make(R1, 1000, 100, 1000);
    make(R2, 2000, 500, 600);
    start(R1);
    start(R2);
    ck_assert_uint_eq(view.num_free_blocks, 6400 / block_size);
    admit = (const struct pkv_admit_ops *)pkv_policy_find(PKV_CHOICE_ADMIT, name);
    ck_assert_ptr_nonnull(admit);
    ck_assert_uint_le(admit->pass_size, sizeof pass);
    if (admit->begin)
        admit->begin(NULL, &view, pass);
}

static void end(void)
{
    if (admit->end)
        admit->end(NULL, &view, pass);
    pkv_sched_destroy(sched);
}

/* The whole prompt in this step. An admitted one runs from now on. */
static void expect_verdict(size_t i, enum pkv_admit_verdict want, uint64_t want_need)
{
    const struct pkv_request *r = &made[i];
    const struct pkv_hit none = { 0 };
    struct pkv_candidate c = { .request = r, .hit = &none, .num_tokens = r->seq.num_prompt_tokens,
                               .num_positions = r->seq.num_prompt_tokens };
    uint64_t need;

    need = c.need_blocks = pkv_cache_need(view.cache, &r->seq, &none, c.num_positions);
    ck_assert_int_eq(admit->consider(NULL, &view, pass, &c, &need), want);
    ck_assert_uint_eq(need, want_need);
    if (want != PKV_ADMIT)
        return;
    start(i);
    if (admit->took)
        admit->took(NULL, &view, pass, &c);
}

/* In blocks of 10, to the end R1 may take 90 more and R2 10: 540 are left. C (3,000, at most 2,000)
 * needs 500: 40 are left of which nobody has a claim. Of its 500 it has taken 300, so 340 are free
 * and 90 + 10 + 200 spoken for. D (500, at most 500) needs 100 and is refused; who needs 40 is not. */
START_TEST(reserved_to_the_end)
{
    begin("reserve_max", 10);
    make(C, 3000, 0, 2000);
    expect_verdict(C, PKV_ADMIT, 100 + 500);
    ck_assert_uint_eq(view.num_free_blocks, 340);
    make(D, 500, 0, 500);
    expect_verdict(D, PKV_ADMIT_GATE, 300 + 100);
    make(D, 201, 0, 201);
    expect_verdict(D, PKV_ADMIT_GATE, 300 + 41);
    make(D, 200, 0, 201);
    expect_verdict(D, PKV_ADMIT, 300 + 40);
    end();
}
END_TEST

/* The same in single tokens. A last token is never stored, so each needs one less: 899 and 99 more,
 * 5,402 left, C 4,999, 403 left, D 999. */
START_TEST(reserved_to_the_last_stored_token)
{
    begin("reserve_max", 1);
    make(C, 3000, 0, 2000);
    expect_verdict(C, PKV_ADMIT, 998 + 4999);
    make(D, 500, 0, 500);
    expect_verdict(D, PKV_ADMIT_GATE, 998 + 1999 + 999);
    ck_assert_uint_eq(view.num_free_blocks, 3400);
    make(D, 203, 0, 202);
    expect_verdict(D, PKV_ADMIT_GATE, 998 + 1999 + 404);
    make(D, 203, 0, 201);
    expect_verdict(D, PKV_ADMIT, 998 + 1999 + 403);
    end();
}
END_TEST

/* Rules that look at the prompt only let both in: 3,000 of 6,400, then 500 of 3,400. */
START_TEST(prompts_alone)
{
    static const char *const rules[] = { "whole_prompt", "first_chunk" };

    begin(rules[_i], 10);
    make(C, 3000, 0, 2000);
    expect_verdict(C, PKV_ADMIT, 300);
    make(D, 500, 0, 500);
    expect_verdict(D, PKV_ADMIT, 50);
    ck_assert_uint_eq(view.num_free_blocks, 290);
    end();
}
END_TEST

/* --- the peak, and the sum of the maxima ----------------------------------------------------- */

static size_t num_admitted(const char *name, uint32_t num_blocks)
{
    struct pkv_sched_config config = base_config(num_blocks);
    size_t num;

    config.groups[0].block_size = 100;
    set(&config, PKV_CHOICE_ADMIT, name);
    sched = make_sched(&config);
    add(sched, 0, 3000, 2000, 0);
    add(sched, 1, 1100, 900, 0);
    add(sched, 2, 2500, 100, 0);
    num = step(sched)->num_admissions;
    pkv_sched_destroy(sched);
    return num;
}

/* (3000, 2000), (1100, 900), (2500, 100) in blocks of 100. Together they will never hold more than
 * 31 + 12 + 26 = 69 blocks (6,900 tokens), when the last one ends, and the peak must stay below the
 * pool; one by one they come to 50 + 20 + 26 = 96 (9,600 tokens). */
START_TEST(the_peak_is_less_than_the_maxima)
{
    ck_assert_uint_eq(num_admitted("future_peak", 70), 3);
    ck_assert_uint_eq(num_admitted("future_peak", 69), 2);
    ck_assert_uint_eq(num_admitted("reserve_max", 96), 3);
    ck_assert_uint_eq(num_admitted("reserve_max", 95), 2);
    ck_assert_uint_eq(num_admitted("reserve_max", 70), 2);
}
END_TEST

/* --- rounds ---------------------------------------------------------------------------------- */

/* 60 tokens of memory, 2 steps a round, enough are 40 prompt tokens. */
static const struct rounds_row five[] = { { 20, 8 }, { 16, 10 }, { 12, 4 }, { 10, 5 }, { 8, 2 } };

static void expect_rounds(const struct rounds_config *config, const struct rounds_row *rows,
                          size_t num, struct rounds_figures want)
{
    struct rounds_figures f;

    run_rounds(config, rows, num, &f);
    ck_assert_uint_eq(f.num_steps, want.num_steps);
    ck_assert_uint_eq(f.num_rounds, want.num_rounds);
    ck_assert_uint_eq(f.num_usages, want.num_usages);
    ck_assert_uint_eq(f.usage_sum, want.usage_sum);
    ck_assert_uint_eq(f.peak_sum, want.peak_sum);
    ck_assert_uint_eq(f.num_evicted, want.num_evicted);
    ck_assert_uint_eq(f.num_finished, want.num_finished);
}

/* Usage and prompt up to 54. In each round two samples after steps, one after the look at the queue,
 * and the peak then:
 *   1   0  0  48   A, B, C come in: enough         C 4 left, B 10:  3rd end 4 * 3 + 48 = 60
 *   2  51 54  54   D would make 64                 2 * 3 + 54 = 60
 *   3  57 44  54   C ends; D makes 54, E 62        4 * 3 (A first to end) + 54 = 66
 *   4  57 60  60   E would make 68                 2 * 3 + 60 = 66
 *   5  63 24  45   D, the last to come, goes back with its 3 tokens; A ends; D's prompt of 10 makes
 *                  34, but it brings 13; E makes 45     2 * 3 + 45 = 51 */
START_TEST(rounds_of_first_chunk)
{
    static const struct rounds_config config = { "first_chunk", 60, 6, UINT32_MAX, 2, 40 };

    expect_rounds(&config, five, 5, (struct rounds_figures){
        .num_steps = 10, .num_rounds = 5, .num_usages = 15,
        .usage_sum = 48 + 159 + 155 + 177 + 132, .peak_sum = 60 + 60 + 66 + 66 + 51,
        .num_evicted = 1, .num_finished = 2 });
}
END_TEST

/* The peak with true lengths below 60:
 *   1   0  0  36   A and B: 8 * 2 + 36 = 52; C would make 60
 *   2  38 40  40   52; C 4 * 3 + 52 = 64
 *   3  42 44  44   52; C 4 * 3 + 56 = 68
 *   4  46 48  48   52; C 2 * 3 + 60 = 66
 *   5  50 24  46   A ends; C 2 * 2 + 36 = 40, D 2 * 3 + 46 = 52; E would make 2 * 4 + 54 = 62
 *   6  49 26  34   B ends; E 2 * 3 + 34 = 40 */
START_TEST(rounds_of_future_peak)
{
    static const struct rounds_config config = { "future_peak", 60, 0, UINT32_MAX, 2, 40 };

    expect_rounds(&config, five, 5, (struct rounds_figures){
        .num_steps = 12, .num_rounds = 6, .num_usages = 18,
        .usage_sum = 36 + 118 + 130 + 142 + 120 + 109, .peak_sum = 5 * 52 + 40,
        .num_evicted = 0, .num_finished = 2 });
}
END_TEST

/* Prompt + 8 each, together up to 60. As before until A ends:
 *   5  50 24  36   24 + 20 for B and C, D would make 62; the peak is 2 * 2 + 36 = 40
 *   6  38 14  32   B ends; C, D and E make 20 + 18 + 16 = 54; 2 * 3 + 32 = 38 */
START_TEST(rounds_of_reserve_max)
{
    static const struct rounds_config config = { "reserve_max", 60, 0, 9, 2, 40 };

    expect_rounds(&config, five, 5, (struct rounds_figures){
        .num_steps = 12, .num_rounds = 6, .num_usages = 18,
        .usage_sum = 36 + 118 + 130 + 142 + 110 + 84, .peak_sum = 4 * 52 + 40 + 38,
        .num_evicted = 0, .num_finished = 2 });
}
END_TEST

/* 30 tokens, prompt + 3 each. (10, 9) alone is enough for the first look (10 prompt tokens). After 5
 * steps it has outgrown its 13, which still stand for it: 13 + 17 = 30, and (14, 2) comes in. The
 * peaks are 19 and 2 * 2 + 29 = 33. */
START_TEST(rounds_with_one_that_outgrows_its_maximum)
{
    static const struct rounds_config config = { "reserve_max", 30, 0, 4, 5, 10 };
    static const struct rounds_row two[] = { { 10, 9 }, { 14, 2 } };

    expect_rounds(&config, two, 2, (struct rounds_figures){
        .num_steps = 10, .num_rounds = 2, .num_usages = 12,
        .usage_sum = 10 + (11 + 12 + 13 + 14 + 15) + 29, .peak_sum = 19 + 33,
        .num_evicted = 0, .num_finished = 0 });
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("admission");
    TCase *tests = tcase_create("admission");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, reserved_to_the_end);
    tcase_add_test(tests, reserved_to_the_last_stored_token);
    tcase_add_loop_test(tests, prompts_alone, 0, 2);
    tcase_add_test(tests, the_peak_is_less_than_the_maxima);
    tcase_add_test(tests, rounds_of_first_chunk);
    tcase_add_test(tests, rounds_of_future_peak);
    tcase_add_test(tests, rounds_of_reserve_max);
    tcase_add_test(tests, rounds_with_one_that_outgrows_its_maximum);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
