/*
 * test_conform.c - a small recorded load, worked out by hand: the run agrees with it, and a change
 * of one number anywhere is found and named.
 *
 * Two requests, 3 + 3 and 5 + 2 tokens, blocks of 4 tokens, six tokens a step. How each number
 * comes about stands in test_engine_log.c.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "files.h"
#include "pagedkv/report.h"

static const char config_json[] =
    "{\"name\": \"two\", \"note\": \"\", \"trees\": [\"new\"], \"block_size\": 4,\n"
    " \"num_blocks\": 7, \"max_num_seqs\": 8, \"max_num_batched_tokens\": 6,\n"
    " \"enable_prefix_caching\": true, \"enable_chunked_prefill\": true, \"policy\": \"fcfs\",\n"
    " \"long_prefill_token_threshold\": 0, \"watermark\": 0.0, \"reserve_full_isl\": true,\n"
    " \"max_model_len\": 1048576, \"groups\": [{\"type\": \"full\", \"block_size\": 4}],\n"
    " \"spec\": null, \"async_scheduling\": false, \"log_blocks\": true, \"max_steps\": 1000,\n"
    " \"stuck_steps\": 3, \"prefix_match_unit\": null}\n";

static const char requests_jsonl[] =
    "{\"id\":\"a\",\"arrival_step\":1,\"prompt\":[[100,3]],\"max_tokens\":3}\n"
    "{\"id\":\"b\",\"arrival_step\":1,\"prompt\":[[200,5]],\"max_tokens\":2}\n";

static const char steps_jsonl[] =
    "{\"step\":1,\"new\":[[\"a\",0],[\"b\",0]],\"resumed\":[],\"sched\":[[\"a\",3],[\"b\",3]],"
    "\"preempted\":[],\"aborted\":[],\"finished\":[],\"gen\":1,\"free_sched\":4,\"free\":4,"
    "\"waiting\":[],\"running\":[\"a\",\"b\"],\"n_waiting\":0,\"n_running\":2,"
    "\"preempt_total\":0,\"cached_blocks\":0,\"blocks\":{\"a\":[[1]],\"b\":[[2]]},"
    "\"evicted\":[]}\n"
    "{\"step\":2,\"new\":[],\"resumed\":[],\"sched\":[[\"a\",1],[\"b\",2]],\"preempted\":[],"
    "\"aborted\":[],\"finished\":[],\"gen\":2,\"free_sched\":3,\"free\":3,\"waiting\":[],"
    "\"running\":[\"a\",\"b\"],\"n_waiting\":0,\"n_running\":2,\"preempt_total\":0,"
    "\"cached_blocks\":2,\"blocks\":{\"b\":[[3]]},\"evicted\":[]}\n"
    "{\"step\":3,\"new\":[],\"resumed\":[],\"sched\":[[\"a\",1],[\"b\",1]],\"preempted\":[],"
    "\"aborted\":[],\"finished\":[\"a\",\"b\"],\"gen\":2,\"free_sched\":2,\"free\":6,"
    "\"waiting\":[],\"running\":[],\"n_waiting\":0,\"n_running\":0,\"preempt_total\":0,"
    "\"cached_blocks\":2,\"blocks\":{\"a\":[[4]]},\"evicted\":[]}\n";

/* A folder with the three files, and their paths. */
static struct pkv_conform_config begin(const char *folder, const char *steps)
{
    write_text(folder, "config.json", config_json);
    write_text(folder, "requests.jsonl", requests_jsonl);
    write_text(folder, "steps.jsonl", steps);
    return (struct pkv_conform_config){.config = path_in(folder, "config.json"),
                                       .requests = path_in(folder, "requests.jsonl"),
                                       .steps = path_in(folder, "steps.jsonl"),
                                       .check = true};
}

static void end(const char *folder, struct pkv_conform_config *config)
{
    free((char *)config->config);
    free((char *)config->requests);
    free((char *)config->steps);
    free((char *)config->emit);
    remove_folder(folder);
}

static void expect(const char *steps, bool same, const char *text_begins)
{
    const char *folder = make_folder();
    struct pkv_conform_config config = begin(folder, steps);
    struct pkv_diff_result result;
    struct pkv_err err = {0};

    ck_assert_msg(pkv_conform(&config, &result, &err) == 0, "%s", err.text);
    ck_assert_msg(result.same == same, "%s", result.text);
    ck_assert_msg(strncmp(result.text, text_begins, strlen(text_begins)) == 0, "%s",
                  result.text);
    pkv_report_free(result.text);
    end(folder, &config);
}

START_TEST(the_run_agrees_with_the_recording)
{
    expect(steps_jsonl, true, "the same: 3 records");
}
END_TEST

/* Replace one digit of the recording, each in turn. */
START_TEST(every_changed_number_is_found)
{
    static char steps[sizeof steps_jsonl];
    bool quoted = false;
    int num_changed = 0;

    for (size_t i = 0; steps_jsonl[i]; i++) {
        char c = steps_jsonl[i];
        quoted ^= c == '"';
        if (quoted || c < '0' || c > '9')
            continue;
        memcpy(steps, steps_jsonl, sizeof steps);
        steps[i] = c == '9' ? '8' : (char)(c + 1);
        expect(steps, false, "step ");
        num_changed++;
    }
    ck_assert_int_eq(num_changed, 36);
}
END_TEST

START_TEST(the_difference_names_step_field_and_both_values)
{
    static char steps[sizeof steps_jsonl];

    memcpy(steps, steps_jsonl, sizeof steps);
    *(strstr(steps, "\"b\":[[3]]") + 6) = '5';
    expect(steps, false, "step 2 differs: field blocks, first at blocks.b[0][0]\n"
                         "  recorded   5\n  here       3\n");
}
END_TEST

START_TEST(missing_and_extra_records_are_differences)
{
    static char steps[sizeof steps_jsonl + 128];
    const char *second = strchr(steps_jsonl, '\n') + 1;
    const char *third = strchr(second, '\n') + 1;

    memcpy(steps, steps_jsonl, (size_t)(third - steps_jsonl));
    expect(steps, false, "step 3 differs: the recording ends after 2 records, this run goes on\n");
    strcpy(steps, steps_jsonl);
    strcat(steps, "{\"step\":3,\"stuck\":true,\"n_waiting\":0,\"n_running\":0}\n");
    expect(steps, false, "step 3 differs: this run ends after 3 records, the recording goes on\n");
}
END_TEST

START_TEST(a_recording_with_fewer_fields_is_compared_in_those)
{
    expect("{\"step\":1,\"free\":4}\n{\"free\":3,\"step\":2}\n{\"step\":3}\n", true,
           "the same: 3 records; compared are the fields that the recording has: step, free\n");
}
END_TEST

START_TEST(our_log_has_the_form_of_the_recording)
{
    const char *folder = make_folder();
    struct pkv_conform_config config = begin(folder, "{\"step\":0}\n");    /* differs at once */
    struct pkv_diff_result result;
    struct pkv_err err = {0};
    char *text;

    config.emit = path_in(folder, "ours.jsonl");
    ck_assert_msg(pkv_conform(&config, &result, &err) == 0, "%s", err.text);
    ck_assert(!result.same);
    pkv_report_free(result.text);
    text = read_text(folder, "ours.jsonl");
    ck_assert_str_eq(text, steps_jsonl);
    free(text);
    end(folder, &config);
}
END_TEST

static void expect_refused(const char *steps, uint64_t line)
{
    const char *folder = make_folder();
    struct pkv_conform_config config = begin(folder, steps);
    struct pkv_diff_result result;
    struct pkv_err err = {0};

    ck_assert_int_eq(pkv_conform(&config, &result, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_str_eq(err.path, config.steps);
    ck_assert_uint_eq(err.line, line);
    ck_assert_uint_eq(num_files(folder), 3);
    end(folder, &config);
}

START_TEST(a_broken_recording_is_refused_with_its_place)
{
    expect_refused("", 0);
    expect_refused("{\"step\":1,\n", 1);
    expect_refused("{\"step\":1}\n[]\n", 2);
    expect_refused("{\"free\":1}\n", 1);
}
END_TEST

/* Run with allocation n failing. returns true when it never came to that. */
static bool conform_without_memory(const struct pkv_conform_config *config, uint64_t n)
{
    struct pkv_diff_result result;
    struct pkv_err err = {0};
    uint64_t before = pkv_alloc_count();

    pkv_alloc_fail_at(n, 0);
    int status = pkv_conform(config, &result, &err);
    bool reached = pkv_alloc_count() - before >= n;
    pkv_alloc_fail_at(0, 0);
    if (status == 0) {
        ck_assert_msg(result.same, "allocation %llu: %s", (unsigned long long)n, result.text);
        pkv_report_free(result.text);
    } else {
        ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    }
    return !reached;
}

START_TEST(every_failed_allocation_is_told)
{
    const char *folder = make_folder();
    struct pkv_conform_config config = begin(folder, steps_jsonl);
    uint64_t n = 1;

    while (!conform_without_memory(&config, n))
        n++;
    ck_assert_uint_gt(n, 50);
    end(folder, &config);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conform");
    TCase *tcase = tcase_create("conform");

    tcase_add_test(tcase, the_run_agrees_with_the_recording);
    tcase_add_test(tcase, every_changed_number_is_found);
    tcase_add_test(tcase, the_difference_names_step_field_and_both_values);
    tcase_add_test(tcase, missing_and_extra_records_are_differences);
    tcase_add_test(tcase, a_recording_with_fewer_fields_is_compared_in_those);
    tcase_add_test(tcase, our_log_has_the_form_of_the_recording);
    tcase_add_test(tcase, a_broken_recording_is_refused_with_its_place);
    tcase_add_test(tcase, every_failed_allocation_is_told);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
