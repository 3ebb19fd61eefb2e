/*
 * test_rng.c - random streams: known numbers, the laws, log and exp, and that streams stand apart.
 *
 * The checksums were computed by another program (Python's floats, the method in rng.c's head), so
 * they also tell a machine or a compiler that rounds in another way.
 */
#include "base/rng.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUM_DRAWS 20000

static uint64_t fnv(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}
#define FNV_BEGIN UINT64_C(0xcbf29ce484222325)

/* Outputs of SplitMix64 for seed 1234567 as published with the algorithm (Rosetta Code). */
START_TEST(known_numbers)
{
    static const uint64_t want[] = {
        UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821),
    };
    struct pkv_rng rng;
    pkv_rng_init(&rng, 1234567, "");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_uint_eq(pkv_rng_u64(&rng), want[i]);
}
END_TEST

static double draw_unit(struct pkv_rng *rng) { return pkv_rng_unit(rng); }
static double draw_exponential(struct pkv_rng *rng) { return pkv_rng_exponential(rng); }
static double draw_normal(struct pkv_rng *rng) { return pkv_rng_normal(rng); }
static double draw_exp(struct pkv_rng *rng) { return pkv_exp(pkv_rng_normal(rng) * 10); }

static const struct {
    double (*draw)(struct pkv_rng *rng);
    uint64_t checksum;
    double mean, variance, tolerance;       /* checked where the tolerance is not 0 */
} laws[] = {
    {draw_unit, UINT64_C(0xda6ca76049045f11), 0.5, 1.0 / 12, 0.02},
    {draw_exponential, UINT64_C(0x55dfd19f63f4faad), 1, 1, 0.05},
    {draw_normal, UINT64_C(0x75961914439353fa), 0, 1, 0.05},
    {draw_exp, UINT64_C(0x13c6a10696c4228), 0, 0, 0},
};

START_TEST(law)
{
    struct pkv_rng rng;
    uint64_t hash = FNV_BEGIN;
    double sum = 0, squares = 0;
    pkv_rng_init(&rng, 42, "test");
    for (int i = 0; i < NUM_DRAWS; i++) {
        double x = laws[_i].draw(&rng);
        hash = fnv(hash, &x, sizeof x);
        sum += x;
        squares += x * x;
    }
    ck_assert_uint_eq(hash, laws[_i].checksum);
    if (laws[_i].tolerance == 0)
        return;
    double mean = sum / NUM_DRAWS;
    ck_assert_double_eq_tol(mean, laws[_i].mean, laws[_i].tolerance);
    ck_assert_double_eq_tol(squares / NUM_DRAWS - mean * mean, laws[_i].variance,
                            laws[_i].tolerance);
}
END_TEST

START_TEST(whole_numbers)
{
    struct pkv_rng rng;
    uint64_t hash = FNV_BEGIN;
    uint64_t counts[1000] = {0};
    pkv_rng_init(&rng, 42, "test");
    for (int i = 0; i < NUM_DRAWS; i++) {
        uint64_t n = pkv_rng_below(&rng, 1000);
        ck_assert_uint_lt(n, 1000);
        counts[n]++;
        hash = fnv(hash, &n, sizeof n);
    }
    ck_assert_uint_eq(hash, UINT64_C(0xb922fe30b9f2a2de));
    for (int i = 0; i < 1000; i++)          /* expected 20, deviation 4.5 */
        ck_assert_uint_lt(counts[i], 50);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(pkv_rng_below(&rng, 1), 0);
}
END_TEST

/* The keys were found by running the generator backwards from all ones and from 0. */
START_TEST(unit_never_reaches_its_ends)
{
    struct pkv_rng ones = {.key = UINT64_C(0x31628af67b2131ab)}, copy = ones;
    struct pkv_rng zero = {.key = UINT64_C(0x61c8864680b583eb)};
    ck_assert_uint_eq(pkv_rng_u64(&copy), UINT64_MAX);
    ck_assert_double_eq(pkv_rng_unit(&ones), 1 - 0x1p-53);
    ck_assert_double_eq(pkv_rng_unit(&zero), 0x1p-53);
}
END_TEST

START_TEST(streams_stand_apart)
{
    struct pkv_rng a, b, other_name, other_seed;
    pkv_rng_init(&a, 7, "prompt");
    pkv_rng_init(&b, 7, "prompt");
    pkv_rng_init(&other_name, 7, "output");
    pkv_rng_init(&other_seed, 8, "prompt");
    for (int i = 0; i < 1000; i++) {
        uint64_t x = pkv_rng_u64(&a);
        ck_assert_uint_eq(x, pkv_rng_u64(&b));
        ck_assert_uint_ne(x, pkv_rng_u64(&other_name));
        ck_assert_uint_ne(x, pkv_rng_u64(&other_seed));
    }
}
END_TEST

static double distance_in_ulps(double got, long double want)
{
    double nearest = (double)want;
    double ulp = nextafter(fabs(nearest), INFINITY) - fabs(nearest);
    return (double)(fabsl((long double)got - want) / ulp);
}

START_TEST(log_is_close)
{
    struct pkv_rng rng;
    pkv_rng_init(&rng, 3, "log");
    ck_assert_double_eq(pkv_log(1), 0);
    for (int i = 0; i < 200000; i++) {
        double x = ldexp(1 + pkv_rng_unit(&rng), (int)pkv_rng_below(&rng, 2046) - 1022);
        ck_assert_double_lt(distance_in_ulps(pkv_log(x), logl(x)), 2);
        double near_one = 0.7 + 0.7 * pkv_rng_unit(&rng);
        ck_assert_double_lt(distance_in_ulps(pkv_log(near_one), logl(near_one)), 2);
    }
    ck_assert_double_lt(distance_in_ulps(pkv_log(0x1p-1074), logl(0x1p-1074L)), 2);
    ck_assert_double_lt(distance_in_ulps(pkv_log(0x1.fffffffffffffp1023),
                                         logl(0x1.fffffffffffffp1023L)), 2);
}
END_TEST

START_TEST(exp_is_close)
{
    struct pkv_rng rng;
    pkv_rng_init(&rng, 3, "exp");
    ck_assert_double_eq(pkv_exp(0), 1);
    for (int i = 0; i < 200000; i++) {
        double x = -745 + 1454 * pkv_rng_unit(&rng);
        ck_assert_double_lt(distance_in_ulps(pkv_exp(x), expl(x)), 2);
        double small = pkv_rng_unit(&rng) - 0.5;
        ck_assert_double_lt(distance_in_ulps(pkv_exp(small), expl(small)), 2);
    }
    ck_assert_double_eq(pkv_exp(-800), 0);
    ck_assert(isinf(pkv_exp(800)));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("rng");
    TCase *c = tcase_create("rng");
    tcase_add_test(c, known_numbers);
    tcase_add_loop_test(c, law, 0, (int)(sizeof laws / sizeof *laws));
    tcase_add_test(c, whole_numbers);
    tcase_add_test(c, unit_never_reaches_its_ends);
    tcase_add_test(c, streams_stand_apart);
    tcase_add_test(c, log_is_close);
    tcase_add_test(c, exp_is_close);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
