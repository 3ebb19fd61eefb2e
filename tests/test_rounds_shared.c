/*
 * test_rounds_shared.c - three admit policies of ours on 3,000 requests of three kinds, against what
 * the simulators of Past-Future's authors gave for them: data/reference/lightllm_ae in the folder
 * named by PKV_SHARED, or in `shared` beside the checkout. Without it the test is skipped (exit code
 * 77).
 *
 * What is expected is read from the recorded file, every column of it: steps as they are, shares at
 * the two digits they were printed with.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <check.h>

#include "rounds_fixture.h"

#define MAX_ROWS 3000
#define MEMORY_TOKENS 120000

static char folder[1024];

/* `pastfuture` is left out: it draws its output lengths, with a stream that nobody wrote down. */
static const struct {
    const char *recorded;           /* the authors' word */
    struct rounds_config ours;
} policies[] = {
    /* Usage and prompt within 118,800 tokens: only what it asks for now, and 1 % kept free. */
    { "aggressive", { "first_chunk", MEMORY_TOKENS, 1200, UINT32_MAX, 10, 32768 } },
    /* Prompt + 4,096 of each together within the memory, also where an output gets longer (dist2). A
     * last token is never stored here and held there, so max_tokens is one more. */
    { "conservative", { "reserve_max", MEMORY_TOKENS, 0, 4097, 10, 32768 } },
    /* The future peak with true lengths below the memory. */
    { "theoretical_optimum", { "future_peak", MEMORY_TOKENS, 0, UINT32_MAX, 10, 32768 } },
};
static const char *const lists[] = { "dist1", "dist2", "dist3" };

/* --- the recorded file ----------------------------------------------------------------------- */

static FILE *open_reference(const char *name)
{
    char path[2048];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "no file %s", path);
    return file;
}

static char *recorded_text(void)
{
    static char text[1 << 16];
    FILE *file = open_reference("results_seed0.json");
    size_t length = fread(text, 1, sizeof text - 1, file);

    ck_assert_uint_lt(length, sizeof text - 1);
    text[length] = '\0';
    fclose(file);
    return text;
}

/* What stands behind "name": in text. */
static const char *after(const char *text, const char *name)
{
    char key[64];
    const char *at;

    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(text, key);
    ck_assert_msg(at != NULL, "the recorded file has no %s", key);
    return at + strlen(key);
}

static size_t read_rows(const char *list, struct rounds_row *rows)
{
    char name[64], line[64];
    FILE *file;
    size_t num = 0;

    snprintf(name, sizeof name, "%s_seed0.csv", list);
    file = open_reference(name);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    ck_assert_int_eq(strncmp(line, "prompt_tokens,output_tokens", 27), 0);
    while (fgets(line, sizeof line, file)) {
        ck_assert_uint_lt(num, MAX_ROWS);
        ck_assert_int_eq(sscanf(line, "%u,%u", &rows[num].num_prompt, &rows[num].num_output), 2);
        num++;
    }
    fclose(file);
    return num;
}

/* --- ours ------------------------------------------------------------------------------------ */

/* part / whole in hundredths of a per cent, rounded as printed. */
static uint64_t hundredths(uint64_t part, uint64_t whole)
{
    return (20000 * part + whole) / (2 * whole);
}

static uint64_t figure(const struct rounds_figures *f, const char *column)
{
    if (strcmp(column, "decoding_steps") == 0)
        return f->num_steps;
    if (strcmp(column, "memory_utilization_pct") == 0)
        return hundredths(f->usage_sum, f->num_usages * MEMORY_TOKENS);
    if (strcmp(column, "peak_memory_pct") == 0)
        return hundredths(f->peak_sum, f->num_rounds * MEMORY_TOKENS);
    if (strcmp(column, "evicted_reqs_pct") == 0)
        return hundredths(f->num_evicted, f->num_finished);
    ck_abort_msg("what is %s?", column);
    return 0;
}

/* The columns of one line: { "name": number, ... }. returns how many there are */
static size_t compare(const char *line, const struct rounds_figures *f, const char *what)
{
    size_t num = 0;
    char column[64];
    double value;
    int length;

    while (sscanf(line, " %*[{,] \"%63[a-z_]\": %lf%n", column, &value, &length) == 2) {
        bool is_share = strstr(column, "_pct") != NULL;
        long long want = llround(is_share ? 100 * value : value);

        ck_assert_msg(figure(f, column) == (uint64_t)want, "%s, %s: %llu, recorded is %lld", what,
                      column, (unsigned long long)figure(f, column), want);
        line += length;
        num++;
    }
    ck_assert_int_eq(line[strspn(line, " \n")], '}');
    return num;
}

START_TEST(as_recorded)
{
    static struct rounds_row rows[MAX_ROWS];
    const char *list = lists[_i % 3], *text = recorded_text();
    struct rounds_figures figures;
    char what[64];

    ck_assert_int_eq(strtol(after(text, "memory_tokens"), NULL, 10), MEMORY_TOKENS);
    ck_assert_uint_eq(read_rows(list, rows), MAX_ROWS);
    run_rounds(&policies[_i / 3].ours, rows, MAX_ROWS, &figures);
    snprintf(what, sizeof what, "%s on %s", policies[_i / 3].recorded, list);
    ck_assert_uint_eq(compare(after(after(after(text, "results"), policies[_i / 3].recorded), list),
                              &figures, what), 4);
}
END_TEST

/* argv[1] = the source root. */
int main(int argc, char **argv)
{
    const char *given = getenv("PKV_SHARED");
    Suite *suite;
    TCase *tests;
    SRunner *runner;
    struct stat info;
    int failed;

    snprintf(folder, sizeof folder, "%s%s/data/reference/lightllm_ae",
             given ? given : argc > 1 ? argv[1] : ".", given ? "" : "/../shared");
    if (stat(folder, &info) != 0) {
        printf("1..0 # SKIP no recorded figures at %s\n", folder);
        return 77;
    }
    suite = suite_create("rounds_shared");
    tests = tcase_create("rounds_shared");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, as_recorded, 0, 9);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
