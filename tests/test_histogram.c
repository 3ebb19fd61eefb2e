/*
 * test_histogram.c - percentiles against sorted arrays, exact sums, and the promised error.
 */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "pagedkv/metrics.h"

#define NUM_VALUES 5000u

static uint64_t state = 88172645463325252u;

/* xorshift64 (Marsaglia 2003): any spread of values will do. */
static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static struct pkv_histogram *create(void)
{
    struct pkv_err err = {0};
    struct pkv_histogram *h = pkv_histogram_create(&err);

    ck_assert_msg(h != NULL, "%s", err.text);
    return h;
}

static void add(struct pkv_histogram *h, int64_t value, uint64_t count)
{
    struct pkv_err err = {0};

    if (pkv_histogram_add(h, value, count, &err) < 0)    /* an assertion each would be slow */
        ck_abort_msg("%s", err.text);
}

/* Nearest rank: the smallest value that at least so many per cent of all do not exceed. */
static int64_t nearest(const int64_t *sorted, size_t num, size_t percent)
{
    size_t rank = (percent * num + 99) / 100;

    return sorted[rank - 1];
}

/* got is the upper edge of want's bucket. */
static void expect_close(int64_t got, int64_t want)
{
    ck_assert_int_ge(got, want);
    ck_assert_msg((__int128)(got - want) * 1024 <= want, "%lld is too far above %lld",
                  (long long)got, (long long)want);
}

/* Values of up to so many bits. */
static void compare_with_sorted(unsigned bits, size_t num)
{
    struct pkv_histogram *h = create();
    struct pkv_distribution d;
    int64_t values[NUM_VALUES];
    __int128 sum = 0;

    for (size_t i = 0; i < num; i++) {
        values[i] = (int64_t)(next_random() >> (64 - bits) >> next_random() % bits);
        sum += values[i];
        add(h, values[i], 1);
    }
    qsort(values, num, sizeof values[0], compare);
    pkv_histogram_read(h, &d);
    ck_assert_uint_eq(d.count, num);
    ck_assert(d.sum == sum);
    ck_assert_int_eq(d.max, values[num - 1]);
    expect_close(d.p50, nearest(values, num, 50));
    expect_close(d.p90, nearest(values, num, 90));
    expect_close(d.p95, nearest(values, num, 95));
    expect_close(d.p99, nearest(values, num, 99));
    ck_assert_int_le(d.p99, d.max);
    pkv_histogram_destroy(h);
}

START_TEST(percentiles_are_those_of_the_sorted_values)
{
    for (unsigned bits = 1; bits <= 62; bits++)
        compare_with_sorted(bits, NUM_VALUES);
    for (size_t num = 1; num <= 120; num++)
        compare_with_sorted(40, num);
}
END_TEST

START_TEST(small_values_are_exact)
{
    struct pkv_histogram *h = create();
    struct pkv_distribution d;

    for (int64_t v = 0; v < 2048; v++)
        add(h, v, 1);
    pkv_histogram_read(h, &d);
    ck_assert_int_eq(d.p50, 1023);    /* rank 1024 of 2048 */
    ck_assert_int_eq(d.p90, 1843);    /* rank 1844 */
    ck_assert_int_eq(d.p95, 1945);    /* rank 1946 */
    ck_assert_int_eq(d.p99, 2027);    /* rank 2028 */
    ck_assert_int_eq(d.max, 2047);
    pkv_histogram_destroy(h);
}
END_TEST

START_TEST(a_value_takes_the_upper_edge_of_its_bucket)
{
    struct pkv_histogram *h = create();
    struct pkv_distribution d;

    add(h, 4096, 99);      /* 4096 .. 4099 share a bucket: 2^12 / 2^10 = 4 values wide */
    add(h, 1000000, 1);
    pkv_histogram_read(h, &d);
    ck_assert_int_eq(d.p50, 4099);
    ck_assert_int_eq(d.p99, 4099);
    ck_assert_int_eq(d.max, 1000000);
    pkv_histogram_destroy(h);
}
END_TEST

START_TEST(a_percentile_is_never_above_the_maximum)
{
    struct pkv_histogram *h = create();
    struct pkv_distribution d;

    add(h, 4097, 3);
    pkv_histogram_read(h, &d);
    ck_assert_int_eq(d.p50, 4097);
    ck_assert_int_eq(d.p99, 4097);
    pkv_histogram_destroy(h);
}
END_TEST

START_TEST(the_ends_of_the_range_have_buckets)
{
    struct pkv_histogram *h = create();
    struct pkv_distribution d;

    add(h, 0, 1);
    add(h, INT64_MAX, 2);
    pkv_histogram_read(h, &d);
    ck_assert_uint_eq(d.count, 3);
    ck_assert(d.sum == (__int128)INT64_MAX * 2);
    ck_assert_int_eq(d.p50, INT64_MAX);
    ck_assert_int_eq(d.max, INT64_MAX);
    pkv_histogram_destroy(h);
}
END_TEST

START_TEST(counts_beyond_32_bits_stay_exact)
{
    struct pkv_histogram *h = create();
    struct pkv_distribution d;

    add(h, 5, UINT64_C(1) << 62);
    add(h, 7, (UINT64_C(1) << 62) + 1);
    add(h, 9, 0);                              /* no value at all */
    pkv_histogram_read(h, &d);
    ck_assert_uint_eq(d.count, (UINT64_C(1) << 63) + 1);
    ck_assert_int_eq(d.p50, 7);
    ck_assert_int_eq(d.max, 7);
    ck_assert(d.sum == (__int128)12 * (UINT64_C(1) << 62) + 7);
    pkv_histogram_destroy(h);
}
END_TEST

START_TEST(nothing_counted_is_all_zero)
{
    struct pkv_histogram *h = create();
    struct pkv_distribution d;

    pkv_histogram_read(h, &d);
    ck_assert_uint_eq(d.count, 0);
    ck_assert(d.sum == 0);
    ck_assert_int_eq(d.p50, 0);
    ck_assert_int_eq(d.p99, 0);
    ck_assert_int_eq(d.max, 0);
    pkv_histogram_destroy(h);
    pkv_histogram_destroy(NULL);
}
END_TEST

START_TEST(a_failed_allocation_changes_nothing)
{
    struct pkv_histogram *h = create();
    struct pkv_distribution d;
    struct pkv_err err = {0};

    add(h, 1, 1);
    pkv_alloc_fail_at(1, 0);
    ck_assert_int_eq(pkv_histogram_add(h, 1000000000, 1, &err), -1);
    ck_assert_int_eq(err.code, PKV_ERR_MEMORY);
    pkv_histogram_read(h, &d);
    ck_assert_uint_eq(d.count, 1);
    ck_assert_int_eq(d.max, 1);
    add(h, 1000000000, 1);
    pkv_histogram_read(h, &d);
    ck_assert_uint_eq(d.count, 2);
    pkv_histogram_destroy(h);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("histogram");
    TCase *tcase = tcase_create("histogram");

    tcase_add_test(tcase, percentiles_are_those_of_the_sorted_values);
    tcase_add_test(tcase, small_values_are_exact);
    tcase_add_test(tcase, a_value_takes_the_upper_edge_of_its_bucket);
    tcase_add_test(tcase, a_percentile_is_never_above_the_maximum);
    tcase_add_test(tcase, the_ends_of_the_range_have_buckets);
    tcase_add_test(tcase, counts_beyond_32_bits_stay_exact);
    tcase_add_test(tcase, nothing_counted_is_all_zero);
    tcase_add_test(tcase, a_failed_allocation_changes_nothing);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
