/*
 * test_grid.c - grids of configurations: their order, what wins, and every kind of wrong one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "scenario_fixture.h"

#define SMALL                                                                        \
    "kv: {block_size: 4, num_blocks: 8}\nstep_time: {model: fixed, ms: 1}\n"         \
    "traffic: {requests: 1, prompt_tokens: 8, output_tokens: 6}\n"

static struct pkv_grid *try_grid(const char *text, const struct pkv_setting *varies, size_t num,
                                 struct pkv_err *err)
{
    fixture_write("scenario.yaml", text);
    return pkv_grid_load(fixture_path("scenario.yaml"), NULL, 0, varies, num, err);
}

static struct pkv_grid *grid_of(const char *text, const struct pkv_setting *varies, size_t num)
{
    struct pkv_err err = {0};
    struct pkv_grid *grid = try_grid(text, varies, num, &err);

    ck_assert_msg(grid != NULL, "%s:%d: %s", err.path, (int)err.line, err.text);
    return grid;
}

static void expect_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no '%s' in\n%s", part, text);
}

START_TEST(first_key_is_slowest)
{
    static const uint32_t blocks[] = { 10, 10, 10, 20, 20, 20 }, seqs[] = { 1, 2, 3, 1, 2, 3 };
    struct pkv_grid *grid =
        grid_of(MINIMAL "vary:\n  kv.num_blocks: [10, 20]\n  scheduler.max_num_seqs: [1, 2, 3]\n",
                NULL, 0);

    ck_assert_uint_eq(grid->num, 6);
    ck_assert_uint_eq(grid->num_axes, 2);
    ck_assert_str_eq(grid->axes[0].key, "kv.num_blocks");
    ck_assert_str_eq(grid->axes[1].values[2], "3");
    for (size_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(pkv_grid_place(grid, i, 0), i / 3);
        ck_assert_uint_eq(pkv_grid_place(grid, i, 1), i % 3);
        ck_assert_uint_eq(grid->scenarios[i]->sched.num_blocks, blocks[i]);
        ck_assert_uint_eq(grid->scenarios[i]->sched.max_num_seqs, seqs[i]);
    }
    pkv_grid_destroy(grid);
}
END_TEST

START_TEST(flags_stand_for_the_section)
{
    const struct pkv_setting varies[] = {
        { "step_time", "fixed:2,\"affine:10,0.025,0,0\",{model: fixed, ms: 3}", "--vary" },
        { "title", "one", "--vary" },
    };
    struct pkv_grid *grid = grid_of(SMALL "vary: {kv.num_blocks: [10, 20]}\n", varies, 2);

    ck_assert_uint_eq(grid->num, 3);
    ck_assert_str_eq(grid->axes[0].values[1], "affine:10,0.025,0,0");
    ck_assert_str_eq(grid->axes[0].values[2], "{model: fixed, ms: 3}");
    ck_assert_int_eq(grid->scenarios[0]->step_time.fixed_ns, 2000000);
    ck_assert_int_eq(grid->scenarios[1]->step_time.law, PKV_STEP_TIME_AFFINE);
    ck_assert_int_eq(grid->scenarios[2]->step_time.fixed_ns, 3000000);
    ck_assert_uint_eq(grid->scenarios[2]->sched.num_blocks, 8);
    ck_assert_str_eq(grid->scenarios[2]->title, "one");
    pkv_grid_destroy(grid);
}
END_TEST

/* A varied value wins over --set, also under the key's other name; the file's paths are its own. */
START_TEST(a_varied_value_wins)
{
    const struct pkv_setting set = { "kv.num_blocks", "77", "--set" };
    struct pkv_err err = {0};
    struct pkv_grid *grid;

    fixture_write("scenario.yaml", "kv: {num_blocks: 5}\ntraffic: {trace: a}\n"
                  "vary: {kv.num_gpu_blocks: [10, 20], traffic.trace: [b, /c]}\n");
    grid = pkv_grid_load(fixture_path("scenario.yaml"), &set, 1, NULL, 0, &err);
    ck_assert_msg(grid != NULL, "%s", err.text);
    ck_assert_uint_eq(grid->scenarios[3]->sched.num_blocks, 19);
    ck_assert_str_eq(grid->scenarios[0]->trace, fixture_path("b"));
    ck_assert_str_eq(grid->scenarios[1]->trace, "/c");
    pkv_grid_destroy(grid);
}
END_TEST

START_TEST(run_leaves_a_grid_aside)
{
    struct pkv_scenario *s = fixture_load(MINIMAL "vary: {kv.num_blocks: [1, 2]}\n", NULL, 0);
    struct pkv_err err = {0};
    char *text = pkv_scenario_resolved(s, &err);

    ck_assert_uint_eq(s->sched.num_blocks, 100);
    ck_assert_ptr_null(strstr(text, "vary"));
    pkv_scenario_free_text(text);
    pkv_scenario_destroy(s);
}
END_TEST

/* Errors of `vary:` that a run tells as well are in test_scenario_errors.c. */
static const struct { const char *text; unsigned line, column; const char *words; } wrong_grids[] = {
    { MINIMAL, 0, 0, "nothing to vary" },
    { MINIMAL "vary: {}\n", 0, 0, "nothing to vary" },
    { MINIMAL "vary:\n  kv.num_blocks: [1, 0]\n", 4, 22, "kv.num_blocks: 0 is below 1" },
    { MINIMAL "vary:\n  kv.num_blocks: [10, 20, 10]\n", 4, 27, "the value 10 is there twice" },
    { MINIMAL "vary:\n  scheduler.watermark: [0.1, 0.10]\n", 4, 30, "the value 0.10 is there twice" },
    { MINIMAL "vary: {kv.num_blocks: [5], kv.num_gpu_blocks: [6]}\n", 3, 28, "exclude each other" },
    { MINIMAL "vary: {scheduler.max_overtakes: [1]}\n", 3, 8, "is a parameter of on_blocked" },
    { MINIMAL "vary: {step_time.ms: [1]}\n", 3, 8, "has no meaning while step_time.model" },
};

START_TEST(wrong_grids_are_refused_at_their_place)
{
    struct pkv_err err = {0};

    ck_assert_ptr_null(try_grid(wrong_grids[_i].text, NULL, 0, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_str_eq(err.path, fixture_path("scenario.yaml"));
    expect_has(err.text, wrong_grids[_i].words);
    ck_assert_uint_eq(err.line, wrong_grids[_i].line);
    ck_assert_uint_eq(err.column, wrong_grids[_i].column);
}
END_TEST

static const struct { const char *key, *values, *words; } wrong_flags[] = {
    { "kv.num_blocks", "", "a value is empty" },
    { "kv.num_blocks", "1,,2", "a value is empty" },
    { "kv.num_blocks", "1,two", "'two' is not a whole number" },
    { "kv.blocks", "1", "unknown key 'kv.blocks'; known in kv" },
    { "vary", "1", "a grid cannot be varied" },
    { "kv.num_blocks", "{a", "'{a' is not a value" },
};

START_TEST(wrong_flags_are_refused)
{
    const struct pkv_setting vary = { wrong_flags[_i].key, wrong_flags[_i].values, "--vary" };
    struct pkv_err err = {0};

    ck_assert_ptr_null(try_grid(MINIMAL, &vary, 1, &err));
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_str_eq(err.path, "--vary");
    expect_has(err.text, wrong_flags[_i].words);
}
END_TEST

START_TEST(a_key_is_varied_once)
{
    const struct pkv_setting twice[] = { { "kv.num_blocks", "1", "--vary" },
                                         { "kv.num_blocks", "2", "--vary" } };
    struct pkv_err err = {0};

    ck_assert_ptr_null(try_grid(MINIMAL, twice, 2, &err));
    expect_has(err.text, "kv.num_blocks is varied twice");
}
END_TEST

/* 70 x 70 = 4,900. */
START_TEST(a_grid_has_an_end)
{
    char text[1024] = MINIMAL "vary:\n  kv.num_blocks: [", *second = NULL;
    struct pkv_err err = {0};

    for (int i = 1; i <= 70; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), i > 1 ? ",%d" : "%d", i);
    second = strdup(strchr(text, '['));
    strcat(text, "]\n  scheduler.max_num_seqs: ");
    strcat(text, second);
    strcat(text, "]\n");
    free(second);
    ck_assert_ptr_null(try_grid(text, NULL, 0, &err));
    expect_has(err.text, "more than 4096 configurations");
    ck_assert_uint_eq(err.line, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grid");
    TCase *tests = tcase_create("grid");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tests, fixture_begin, fixture_end);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, first_key_is_slowest);
    tcase_add_test(tests, flags_stand_for_the_section);
    tcase_add_test(tests, a_varied_value_wins);
    tcase_add_test(tests, run_leaves_a_grid_aside);
    tcase_add_loop_test(tests, wrong_grids_are_refused_at_their_place, 0,
                        sizeof wrong_grids / sizeof wrong_grids[0]);
    tcase_add_loop_test(tests, wrong_flags_are_refused, 0,
                        sizeof wrong_flags / sizeof wrong_flags[0]);
    tcase_add_test(tests, a_key_is_varied_once);
    tcase_add_test(tests, a_grid_has_an_end);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
