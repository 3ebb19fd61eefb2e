/*
 * test_trace_shared.c - public traces and recorded loads, when they are there: the folder named by
 * PKV_SHARED, or `shared` beside the checkout. Without them the test is skipped (exit code 77).
 *
 * The figures are those that stand beside the data, counted by another program.
 */
#include <check.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pagedkv/trace.h"

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))
#define MAX_ROWS 32768
#define MAX_IDS 400000

static char shared[1024];

static const struct {
    const char *file, *format;
    uint64_t rows, prompt_tokens, output_tokens;
    double mean_prompt, mean_output;             /* two digits behind the point */
    uint32_t prompt_at[4], output_at[4];         /* p50, p90, p99, max; nearest rank */
    int64_t last_arrival_ns;                     /* the first is 0 */
} traces[] = {
    {"mooncake_conversation.jsonl", "mooncake", 12031, 144793823, 4122048, 12035.06, 342.62,
     {6909, 27367, 85401, 126195}, {350, 597, 1120, 2000}, INT64_C(3536999000000)},
    {"mooncake_synthetic.jsonl", "mooncake", 3993, 61194628, 595432, 15325.48, 149.12,
     {11587, 38615, 66458, 191378}, {69, 389, 769, 893}, INT64_C(1022025000000)},
    /* 18:17:03.9799600 to 19:14:19.9280160 */
    {"azure2023_code.csv", "azure", 8819, 18059974, 245896, 2047.85, 27.88,
     {1469, 5194, 7436, 7437}, {13, 55, 252, 1899}, INT64_C(3435948056000)},
    /* 18:15:46.6805900 to 19:14:08.4025270 */
    {"azure2023_conv.csv", "azure", 19366, 22361870, 4088665, 1154.70, 211.13,
     {1020, 2735, 4142, 14050}, {129, 424, 601, 1000}, INT64_C(3501721937000)},
    {"vidur_splitwise_code.csv", "vidur", 8819, 18059974, 245896, 2047.85, 27.88,
     {1469, 5194, 7436, 7437}, {13, 55, 252, 1899}, INT64_C(3435948056000)},
    {"vidur_splitwise_conv.csv", "vidur", 19366, 22361870, 4088665, 1154.70, 211.13,
     {1020, 2735, 4142, 14050}, {129, 424, 601, 1000}, INT64_C(3501721937000)},
    {"vidur_arxiv_summarization.csv.gz", "vidur", 28257, 73131321, 8234948, 2588.08, 291.43,
     {2730, 3702, 3934, 4054}, {167, 372, 3273, 4056}, 0},
};

/* Vidur's files were made from those of Azure, their times being floating-point differences. */
static const struct { const char *vidur, *azure; } same[] = {
    {"vidur_splitwise_code.csv", "azure2023_code.csv"},
    {"vidur_splitwise_conv.csv", "azure2023_conv.csv"},
};

static struct pkv_trace *open_shared(const char *folder, const char *file)
{
    char path[2048];
    struct pkv_err err = {0};
    snprintf(path, sizeof path, "%s/%s/%s", shared, folder, file);
    struct pkv_trace *t = pkv_trace_open(path, NULL, &err);
    ck_assert_msg(t != NULL, "%s: %s", path, err.text);
    return t;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void expect_ranks(uint32_t *lengths, size_t num, const uint32_t want[4])
{
    static const unsigned percent[] = {50, 90, 99, 100};
    qsort(lengths, num, sizeof *lengths, by_number);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(lengths[(num * percent[i] + 99) / 100 - 1], want[i]);
}

START_TEST(figures)
{
    static uint32_t prompts[MAX_ROWS], outputs[MAX_ROWS];
    struct pkv_trace *t = open_shared("data/traces", traces[_i].file);
    struct pkv_source source = pkv_trace_source(t);
    struct pkv_request_spec spec;
    struct pkv_err err = {0};
    uint64_t num = 0, prompt_tokens = 0, output_tokens = 0;
    int more;
    while ((more = source.next(source.ctx, &spec, &err)) > 0) {
        ck_assert_uint_lt(num, MAX_ROWS);
        if (num == 0)
            ck_assert_int_eq(spec.arrival_ns, 0);
        prompt_tokens += prompts[num] = spec.num_prompt_tokens;
        output_tokens += outputs[num] = spec.num_output_tokens;
        num++;
    }
    ck_assert_msg(more == 0, "%" PRIu64 ":%u: %s", err.line, err.column, err.text);
    ck_assert_str_eq(pkv_trace_notes(t)->format, traces[_i].format);
    ck_assert_uint_eq(pkv_trace_notes(t)->skipped_no_output, 0);
    ck_assert_uint_eq(num, traces[_i].rows);
    ck_assert_uint_eq(prompt_tokens, traces[_i].prompt_tokens);
    ck_assert_uint_eq(output_tokens, traces[_i].output_tokens);
    ck_assert_int_eq(spec.arrival_ns, traces[_i].last_arrival_ns);
    ck_assert_double_eq_tol((double)prompt_tokens / (double)num, traces[_i].mean_prompt, 0.005001);
    ck_assert_double_eq_tol((double)output_tokens / (double)num, traces[_i].mean_output, 0.005001);
    expect_ranks(prompts, num, traces[_i].prompt_at);
    expect_ranks(outputs, num, traces[_i].output_at);
    pkv_trace_close(t);
}
END_TEST

START_TEST(equal_rows)
{
    struct pkv_trace *a = open_shared("data/traces", same[_i].vidur);
    struct pkv_trace *b = open_shared("data/traces", same[_i].azure);
    struct pkv_source from_a = pkv_trace_source(a), from_b = pkv_trace_source(b);
    struct pkv_request_spec x, y;
    struct pkv_err err = {0};
    int more;
    while ((more = from_a.next(from_a.ctx, &x, &err)) > 0) {
        ck_assert_int_eq(from_b.next(from_b.ctx, &y, &err), 1);
        ck_assert_int_eq(x.arrival_ns, y.arrival_ns);
        ck_assert_uint_eq(x.num_prompt_tokens, y.num_prompt_tokens);
        ck_assert_uint_eq(x.num_output_tokens, y.num_output_tokens);
    }
    ck_assert_int_eq(more, 0);
    ck_assert_int_eq(from_b.next(from_b.ctx, &y, &err), 0);
    ck_assert_uint_gt(pkv_trace_notes(a)->rows_rounded, 0);
    pkv_trace_close(a);
    pkv_trace_close(b);
}
END_TEST

/* One hash id in one row, and what stood before it. */
struct use {
    uint64_t origin, parent;
    uint32_t row, position;
    bool partial;
};

static int by_origin(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    return x->origin < y->origin ? -1 : x->origin > y->origin;
}

static size_t read_uses(const char *file, struct use *uses)
{
    struct pkv_trace *t = open_shared("data/traces", file);
    struct pkv_source source = pkv_trace_source(t);
    struct pkv_request_spec spec;
    size_t num = 0;
    while (source.next(source.ctx, &spec, NULL) > 0)
        for (uint32_t i = 0; i < spec.content.num_prompt_spans; i++) {
            const struct pkv_span *span = &spec.content.prompt[i];
            ck_assert_uint_lt(num, MAX_IDS);
            ck_assert_uint_eq(span->first, 0);
            ck_assert(span->count == 512 || i + 1 == spec.content.num_prompt_spans);
            uses[num++] = (struct use){
                .origin = span->origin, .parent = i ? span[-1].origin : 0,
                .row = (uint32_t)spec.row, .position = i, .partial = span->count < 512,
            };
        }
    pkv_trace_close(t);
    return num;
}

static const struct {
    const char *file;
    unsigned num_partial, num_partial_shared;
} sharing[] = {
    {"mooncake_conversation.jsonl", 12009, 206},
    {"mooncake_synthetic.jsonl", 3989, 407},
};

/* Ids never change their parent or position, and so many last, partly filled blocks are met in
 * another row as well. */
START_TEST(shared_ids)
{
    static struct use uses[MAX_IDS];
    size_t num = read_uses(sharing[_i].file, uses);
    unsigned partial = 0, partial_shared = 0;
    qsort(uses, num, sizeof *uses, by_origin);
    for (size_t from = 0, to; from < num; from = to) {
        bool several = false;
        for (to = from; to < num && uses[to].origin == uses[from].origin; to++) {
            several |= uses[to].row != uses[from].row;
            ck_assert_uint_eq(uses[to].parent, uses[from].parent);
            ck_assert_uint_eq(uses[to].position, uses[from].position);
        }
        for (size_t i = from; i < to; i++) {
            partial += uses[i].partial;
            partial_shared += uses[i].partial && several;
        }
    }
    ck_assert_uint_eq(partial, sharing[_i].num_partial);
    ck_assert_uint_eq(partial_shared, sharing[_i].num_partial_shared);
}
END_TEST

static uint64_t count_rows(struct pkv_trace *t, const char *name)
{
    struct pkv_source source = pkv_trace_source(t);
    struct pkv_request_spec spec;
    struct pkv_err err = {0};
    uint64_t num = 0;
    int more;
    while ((more = source.next(source.ctx, &spec, &err)) > 0)
        num++;
    ck_assert_msg(more == 0, "%s:%" PRIu64 ":%u: %s", name, err.line, err.column, err.text);
    return num;
}

/* All recorded loads, less those that point into a trace. */
START_TEST(recorded_loads)
{
    char path[2048];
    snprintf(path, sizeof path, "%s/golden", shared);
    DIR *dir = opendir(path);
    unsigned files = 0;
    uint64_t rows = 0;
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!strstr(entry->d_name, ".requests.jsonl") || strncmp(entry->d_name, "mooncake", 8) == 0)
            continue;
        struct pkv_trace *t = open_shared("golden", entry->d_name);
        ck_assert_str_eq(pkv_trace_notes(t)->format, "tokens");
        rows += count_rows(t, entry->d_name);
        files++;
        pkv_trace_close(t);
    }
    closedir(dir);
    ck_assert_uint_ge(files, 40);
    ck_assert_uint_ge(rows, 6000);
}
END_TEST

START_TEST(recorded_rows_of_a_trace)
{
    char requests[2048], trace[2048];
    struct pkv_err err = {0};
    snprintf(requests, sizeof requests, "%s/golden/mooncake2000_b16.requests.jsonl", shared);
    snprintf(trace, sizeof trace, "%s/data/traces/mooncake_conversation.jsonl", shared);
    struct pkv_trace *t = pkv_trace_open_joined(requests, trace, 512, NULL, &err);
    ck_assert_msg(t != NULL, "%s", err.text);
    struct pkv_source source = pkv_trace_source(t);
    struct pkv_request_spec spec;
    uint64_t num = 0, output_tokens = 0;
    while (source.next(source.ctx, &spec, &err) > 0) {
        output_tokens += spec.num_output_tokens;
        num++;
    }
    ck_assert_msg(err.code == PKV_ERR_NONE, "%s", err.text);
    ck_assert_uint_eq(num, 2000);
    ck_assert_uint_eq(output_tokens, 704602);
    pkv_trace_close(t);
}
END_TEST

static bool find_shared(void)
{
    const char *named = getenv("PKV_SHARED"), *root = getenv("PKV_SOURCE_ROOT");
    struct stat info;
    if (named)
        snprintf(shared, sizeof shared, "%s", named);
    else
        snprintf(shared, sizeof shared, "%s/../shared", root ? root : ".");
    return stat(shared, &info) == 0;
}

int main(void)
{
    if (!find_shared()) {
        printf("1..0 # SKIP no folder %s\n", shared);
        return 77;
    }
    Suite *s = suite_create("trace_shared");
    TCase *c = tcase_create("trace_shared");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, figures, 0, NUM(traces));
    tcase_add_loop_test(c, equal_rows, 0, NUM(same));
    tcase_add_loop_test(c, shared_ids, 0, NUM(sharing));
    tcase_add_test(c, recorded_loads);
    tcase_add_test(c, recorded_rows_of_a_trace);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
