/*
 * test_draws.c - the laws of synthetic traffic at a million draws: mean and variance within the
 * sampling error, and a checksum of the first ones.
 *
 * Moments are those of the laws in any textbook; a mean may be off by five of its standard errors, the
 * variance by five of its own, which the fourth moment of the sample tells. Sums are FNV-1a over the
 * first 10,000 draws as 64-bit numbers, low byte first, as laws_reference.py reckons them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <check.h>

#include "base/draws.h"
#include "trace/synth_private.h"

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))
#define NUM_DRAWS 1000000
#define NUM_SUMMED 10000
#define SEED 5
#define S INT64_C(1000000000)
#define PI 3.14159265358979323846

static double sample[NUM_DRAWS];

static uint64_t add_to_sum(uint64_t sum, uint64_t value)
{
    for (int i = 0; i < 64; i += 8)
        sum = (sum ^ ((value >> i) & 0xff)) * UINT64_C(0x100000001b3);
    return sum;
}
#define EMPTY_SUM UINT64_C(0xcbf29ce484222325)

/* slack: what rounding adds to the error of the mean. */
static void expect_moments(const char *name, double mean, double variance, double slack)
{
    double sum = 0, second = 0, fourth = 0;

    for (int i = 0; i < NUM_DRAWS; i++)
        sum += sample[i];
    for (int i = 0; i < NUM_DRAWS; i++) {
        double square = (sample[i] - mean) * (sample[i] - mean);

        second += square / NUM_DRAWS;
        fourth += square * square / NUM_DRAWS;
    }
    double error = sqrt(variance / NUM_DRAWS), error2 = sqrt((fourth - second * second) / NUM_DRAWS);
    ck_assert_msg(fabs(sum / NUM_DRAWS - mean) <= 5 * error + slack,
                  "%s: mean %g instead of %g, standard error %g", name, sum / NUM_DRAWS, mean, error);
    ck_assert_msg(fabs(second - variance) <= 5 * error2 + slack,
                  "%s: variance %g instead of %g, standard error %g", name, second, variance, error2);
}

static void expect_sum(const char *name, uint64_t sum, uint64_t want)
{
    ck_assert_msg(sum == want, "%s: checksum %016" PRIx64 " instead of %016" PRIx64, name, sum, want);
}

/* --- lengths --------------------------------------------------------------------------------- */

static const struct {
    struct pkv_length law;
    double mean, variance;             /* 0 = zipf: summed up below */
    uint64_t sum;
} lengths[] = {
    { { .law = PKV_LENGTH_UNIFORM, .min = 3, .max = 50 }, 26.5, (48 * 48 - 1) / 12.0,
      UINT64_C(0x0a33e7353038a2f5) },
    { { .law = PKV_LENGTH_LOGNORMAL, .mean = 3000, .cv = 1.2 }, 3000, 3600 * 3600,
      UINT64_C(0x203ac087507a4d9c) },
    { { .law = PKV_LENGTH_GAMMA, .mean = 2000, .cv = 0.5 }, 2000, 1000 * 1000,
      UINT64_C(0x4765afa85f65a0ba) },
    { { .law = PKV_LENGTH_GAMMA, .mean = 5000, .cv = 2 }, 5000, 1e8,
      UINT64_C(0xc704dd991404693a) },
    { { .law = PKV_LENGTH_ZIPF, .exponent = 0, .min = 1, .max = 1000 }, 0, 0,
      UINT64_C(0x03d06e38c008ab55) },
    { { .law = PKV_LENGTH_ZIPF, .exponent = 0.5, .min = 1, .max = 1000 }, 0, 0,
      UINT64_C(0x07cea7359a02da30) },
    { { .law = PKV_LENGTH_ZIPF, .exponent = 1, .min = 1, .max = 1000 }, 0, 0,
      UINT64_C(0xf360576e9c10a7a9) },
    { { .law = PKV_LENGTH_ZIPF, .exponent = 1.3, .min = 10, .max = 5000 }, 0, 0,
      UINT64_C(0xce5bb55317becb59) },
    { { .law = PKV_LENGTH_ZIPF, .exponent = 5, .min = 1, .max = 100000 }, 0, 0,
      UINT64_C(0xf889f5d66ccdd96a) },
    /* 9 of 10 lognormal, mean 500 and second moment 500^2 * 2; 1 of 10 Pareto from 1000 with alpha 8:
     * mean 8/7 and second moment 8/6 of the square. */
    { { .law = PKV_LENGTH_PARETO_LOGNORMAL, .mean = 500, .cv = 1, .tail_share = 0.1,
        .tail_alpha = 8, .tail_min = 1000 },
      0.9 * 500 + 0.1 * 8000 / 7,
      0.9 * 500000 + 0.1 * 1e6 * 8 / 6 - (450 + 800.0 / 7) * (450 + 800.0 / 7),
      UINT64_C(0x19eef4bd5b5c1eae) },
};

static void zipf_moments(const struct pkv_length *law, double *mean, double *variance)
{
    double weights = 0, first = 0, second = 0;

    for (double k = law->min; k <= law->max; k++) {
        double weight = pow(k, -law->exponent);

        weights += weight;
        first += weight * k;
        second += weight * k * k;
    }
    *mean = first / weights;
    *variance = second / weights - *mean * *mean;
}

START_TEST(of_lengths)
{
    const struct pkv_length *law = &lengths[_i].law;
    double mean = lengths[_i].mean, variance = lengths[_i].variance;
    struct pkv_err err = { 0 };
    struct pkv_lengths *drawn =
        pkv_lengths_create(law, PKV_LENGTH_OF_PROMPT, NULL, SEED, &err);
    const char *name = pkv_length_law_name(law->law);
    uint64_t sum = EMPTY_SUM;

    ck_assert_msg(drawn != NULL, "%s", err.text);
    for (int i = 0; i < NUM_DRAWS; i++) {
        uint32_t length = pkv_lengths_draw(drawn);

        sample[i] = length;
        if (i < NUM_SUMMED)
            sum = add_to_sum(sum, length);
    }
    pkv_lengths_destroy(drawn);
    if (law->law == PKV_LENGTH_ZIPF)
        zipf_moments(law, &mean, &variance);
    expect_moments(name, mean, variance, 0.1);
    expect_sum(name, sum, lengths[_i].sum);
}
END_TEST

/* --- numbers --------------------------------------------------------------------------------- */

static const struct {
    struct pkv_number law;
    double mean, variance;
    uint64_t sum;                      /* of millionths, rounded */
} numbers[] = {
    { { .law = PKV_NUMBER_UNIFORM, .min = 1, .max = 4 }, 2.5, 0.75, UINT64_C(0xe859ebda790b6bab) },
    { { .law = PKV_NUMBER_EXPONENTIAL, .mean = 2 }, 2, 4, UINT64_C(0x77fa98626c566bd3) },
    { { .law = PKV_NUMBER_LOGNORMAL, .mean = 2, .cv = 0.7 }, 2, 1.96,
      UINT64_C(0x7bcb908deaa6a8f8) },
    { { .law = PKV_NUMBER_GAMMA, .mean = 2, .cv = 0.5 }, 2, 1, UINT64_C(0xfad83fe17e191d8e) },
    { { .law = PKV_NUMBER_GAMMA, .mean = 2, .cv = 3 }, 2, 36, UINT64_C(0x725c70b10892a018) },
    { { .law = PKV_NUMBER_WEIBULL, .mean = 2, .cv = 0.3 }, 2, 0.36, UINT64_C(0x49e315f2ad21ed48) },
    { { .law = PKV_NUMBER_WEIBULL, .mean = 2, .cv = 1 }, 2, 4, UINT64_C(0x77fa98626c566bd3) },
    { { .law = PKV_NUMBER_WEIBULL, .mean = 2, .cv = 2.5 }, 2, 25, UINT64_C(0x30d87eac905618fb) },
};

START_TEST(of_numbers)
{
    const struct pkv_number *law = &numbers[_i].law;
    const char *name = pkv_number_law_name(law->law);
    struct pkv_numbers drawn;
    uint64_t sum = EMPTY_SUM;

    ck_assert_int_eq(pkv_numbers_init(&drawn, law, "x", SEED, "max tokens", NULL), 0);
    for (int i = 0; i < NUM_DRAWS; i++) {
        sample[i] = pkv_numbers_draw(&drawn);
        if (i < NUM_SUMMED)
            sum = add_to_sum(sum, (uint64_t)(sample[i] * 1e6 + 0.5));
    }
    expect_moments(name, numbers[_i].mean, numbers[_i].variance, 0);
    expect_sum(name, sum, numbers[_i].sum);
}
END_TEST

/* --- arrivals -------------------------------------------------------------------------------- */

/* The gap from one arrival to the next of a process that is on for 1/a, off for 1/b and has r a second
 * while on: an exponential time X to an arrival or the end of on, at rate r + a; then with p = a / (r + a)
 * the time off and all over again. */
static double burst_variance(double r, double a, double b)
{
    double p = a / (r + a), mean = (1 + a / b) / r;
    double second = (2 / ((r + a) * (r + a)) + 2 * p / (r + a) * (1 / b + mean) +
                     p * (2 / (b * b) + 2 * mean / b)) / (1 - p);

    return second - mean * mean;
}

static const struct {
    struct pkv_synth_config config;
    uint64_t sum;
} arrivals[] = {
    { { .arrival = PKV_ARRIVAL_CONSTANT, .rate_per_s = 7 }, UINT64_C(0x0142439d2e8fd5d8) },
    { { .arrival = PKV_ARRIVAL_POISSON, .rate_per_s = 40 }, UINT64_C(0x722f7dd1d87d2fc2) },
    { { .arrival = PKV_ARRIVAL_GAMMA, .rate_per_s = 40, .arrival_cv = 3 },
      UINT64_C(0x129b148d0103f3f4) },
    { { .arrival = PKV_ARRIVAL_WEIBULL, .rate_per_s = 40, .arrival_cv = 0.4 },
      UINT64_C(0x8eab0133870d421a) },
    { { .arrival = PKV_ARRIVAL_BURSTS, .rate_per_s = 40, .on_ns = S / 2, .off_ns = 2 * S },
      UINT64_C(0xfcf8323eed48faa9) },
    { { .arrival = PKV_ARRIVAL_DIURNAL, .rate_per_s = 40, .period_ns = 3600 * S, .amplitude = 0.8 },
      UINT64_C(0xfb255a53742260e0) },
    { { .arrival = PKV_ARRIVAL_SPIKE, .rate_per_s = 40, .spike_at_ns = 100 * S,
        .spike_for_ns = 3000 * S, .spike_factor = 6 }, UINT64_C(0xfb998c5376e79b67) },
};

/* Requests to be expected up to then, where the rate changes with time; else the time itself. Between
 * two arrivals it grows by 1 on average, with a variance of 1: that is what a Poisson process is. */
static double expected(const struct pkv_synth_config *c, double t)
{
    double at = (double)c->spike_at_ns / 1e9, lasts = (double)c->spike_for_ns / 1e9;
    double turn = 2 * PI / ((double)c->period_ns / 1e9);

    if (c->arrival == PKV_ARRIVAL_DIURNAL)
        return c->rate_per_s * (t + c->amplitude * (1 - cos(turn * t)) / turn);
    if (c->arrival == PKV_ARRIVAL_SPIKE)
        return c->rate_per_s * (t + (c->spike_factor - 1) * fmin(fmax(t - at, 0), lasts));
    return t;
}

static void gap_moments(const struct pkv_synth_config *c, double *mean, double *variance)
{
    *mean = 1 / c->rate_per_s;
    *variance = *mean * *mean;
    switch (c->arrival) {
    case PKV_ARRIVAL_CONSTANT: *variance = 0; break;
    case PKV_ARRIVAL_GAMMA:
    case PKV_ARRIVAL_WEIBULL:  *variance *= c->arrival_cv * c->arrival_cv; break;
    case PKV_ARRIVAL_BURSTS:   *variance = burst_variance(40 * 5, 2, 0.5); break;   /* on a fifth */
    case PKV_ARRIVAL_DIURNAL:
    case PKV_ARRIVAL_SPIKE:    *mean = *variance = 1; break;
    case PKV_ARRIVAL_POISSON: case PKV_ARRIVAL_AT_ONCE: case PKV_ARRIVAL_CLOSED_LOOP:
    case PKV_ARRIVAL_LAW_COUNT:
        break;
    }
}

START_TEST(of_arrivals)
{
    struct pkv_synth_config config = arrivals[_i].config;
    const char *name = pkv_arrival_law_name(config.arrival);
    struct pkv_arrivals drawn;
    uint64_t sum = EMPTY_SUM;
    double former = 0, mean, variance;

    config.seed = SEED;
    ck_assert_int_eq(pkv_arrivals_init(&drawn, &config, NULL), 0);
    for (int i = 0; i < NUM_DRAWS; i++) {
        int64_t time_ns;

        if (pkv_arrivals_next(&drawn, (uint64_t)i, &time_ns, NULL) < 0)
            ck_abort_msg("%s: no arrival %d", name, i);   /* an assertion a draw takes too long */
        if (i < NUM_SUMMED)
            sum = add_to_sum(sum, (uint64_t)time_ns);
        double now = expected(&config, (double)time_ns / 1e9);
        sample[i] = now - former;
        former = now;
    }
    gap_moments(&config, &mean, &variance);
    if (config.arrival == PKV_ARRIVAL_CONSTANT)
        sample[0] = mean;              /* the first one comes at 0 */
    expect_moments(name, mean, variance, 1e-9);
    expect_sum(name, sum, arrivals[_i].sum);
}
END_TEST

/* --- functions ------------------------------------------------------------------------------- */

START_TEST(functions)
{
    for (double x = 1; x < 300; x *= 1.01) {
        double want = lgamma(x);

        ck_assert_double_eq_tol(pkv_log_gamma(x), want, 1e-13 * fmax(1, fabs(want)));
    }
    for (double x = 0; x < 1; x += 1.0 / 1024)
        ck_assert_double_eq_tol(pkv_sin_turn(x), sin(2 * PI * x), 1e-15);
    ck_assert_double_eq_tol(pkv_weibull_shape(1), 1, 1e-12);   /* which is the exponential law */
    for (double cv = 0.01; cv <= 100; cv *= 1.3) {
        double k = pkv_weibull_shape(cv);
        double have = sqrt(exp(lgamma(1 + 2 / k) - 2 * lgamma(1 + 1 / k)) - 1);

        ck_assert_double_eq_tol(have, cv, 1e-6 * cv);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("draws");
    TCase *c = tcase_create("draws");
    SRunner *runner;
    int failed;

    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, of_lengths, 0, NUM(lengths));
    tcase_add_loop_test(c, of_numbers, 0, NUM(numbers));
    tcase_add_loop_test(c, of_arrivals, 0, NUM(arrivals));
    tcase_add_test(c, functions);
    suite_add_tcase(suite, c);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
