/*
 * draws.c - see draws.h. Only additions, multiplications, divisions and square roots of IEEE
 * doubles, and the log and exp of rng.c.
 *
 * Sources: gamma: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), with
 * the power of a uniform number for shapes below 1. Zipf: Hormann and Derflinger, "Rejection-inversion
 * to generate variates from monotone discrete distributions" (1996), here from any first number.
 * log gamma: Lanczos' approximation with the coefficients for g = 7, n = 9 (Godfrey). Weibull and
 * Pareto: inversion.
 */
#include "base/draws.h"

#include <math.h>

#include "pagedkv/err.h"

#define HALF_LOG_TWO_PI 0.91893853320467274178
#define HALF_PI 1.57079632679489661923

double pkv_log_gamma(double x)
{
    static const double of[] = {
        676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
        12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
    };
    double sum = 0.99999999999980993;
    PKV_ASSERT(x >= 1);
    for (int i = 0; i < 8; i++)
        sum += of[i] / (x + i);
    double t = x + 6.5;
    return HALF_LOG_TWO_PI + (x - 0.5) * pkv_log(t) - t + pkv_log(sum);
}

/* The Taylor series over a quarter turn, where 11 terms reach below 2^-53. */
double pkv_sin_turn(double x)
{
    double quarters = 4 * x;
    double sign = quarters < 2 ? 1 : -1;
    if (quarters >= 2)
        quarters -= 2;
    if (quarters > 1)
        quarters = 2 - quarters;
    double a = quarters * HALF_PI, square = a * a, sum = 0;
    for (int i = 21; i >= 3; i -= 2)
        sum = -(1 + sum) * square / (i * (i - 1));
    return sign * (a + a * sum);
}

static double gamma_from_1(struct pkv_rng *rng, double shape)
{
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = pkv_rng_normal(rng), v = 1 + c * x;
        double u = pkv_rng_unit(rng);
        if (v <= 0)
            continue;
        v = v * v * v;
        if (pkv_log(u) < 0.5 * x * x + d - d * v + d * pkv_log(v))
            return d * v;
    }
}

double pkv_rng_gamma(struct pkv_rng *rng, double shape)
{
    PKV_ASSERT(shape > 0);
    if (shape >= 1)
        return gamma_from_1(rng, shape);
    double power = pkv_log(pkv_rng_unit(rng)) / shape;
    return gamma_from_1(rng, shape + 1) * pkv_exp(power);
}

double pkv_rng_weibull(struct pkv_rng *rng, double shape)
{
    return pkv_exp(pkv_log(pkv_rng_exponential(rng)) / shape);
}

double pkv_rng_pareto(struct pkv_rng *rng, double alpha)
{
    return pkv_exp(pkv_rng_exponential(rng) / alpha);
}

/* 1 + cv^2 is gamma(1 + 2 / shape) / gamma(1 + 1 / shape)^2, which falls as the shape grows. */
double pkv_weibull_shape(double cv)
{
    double low = 0.05, high = 200, want = pkv_log(1 + cv * cv);
    PKV_ASSERT(cv >= 0.01 && cv <= 100);
    for (int i = 0; i < 100; i++) {
        double shape = (low + high) / 2;
        double have = pkv_log_gamma(1 + 2 / shape) - 2 * pkv_log_gamma(1 + 1 / shape);
        *(have > want ? &low : &high) = shape;
    }
    return (low + high) / 2;
}

/* --- Zipf ------------------------------------------------------------------------------------ */

/* (exp(t) - 1) / t and log(1 + t) / t, also near 0. */
static double exp_less_1_over(double t)
{
    if (t > -0.01 && t < 0.01)
        return 1 + t / 2 * (1 + t / 3 * (1 + t / 4 * (1 + t / 5)));
    return (pkv_exp(t) - 1) / t;
}

static double log_of_1_plus_over(double t)
{
    if (t > -0.01 && t < 0.01)
        return 1 - t * (0.5 - t * (1.0 / 3 - t * (0.25 - t * (0.2 - t * (1.0 / 6 - t / 7)))));
    return pkv_log(1 + t) / t;
}

/* The integral of x^-exponent from 1, and its inverse. */
static double integral(double exponent, double x)
{
    double log_x = pkv_log(x);
    return log_x * exp_less_1_over((1 - exponent) * log_x);
}

static double inverse(double exponent, double area)
{
    double t = area * (1 - exponent);
    return pkv_exp(area * log_of_1_plus_over(t < -1 + 0x1p-52 ? -1 + 0x1p-52 : t));
}

static double weight(double exponent, double x)
{
    return pkv_exp(-exponent * pkv_log(x));
}

/* squeeze: numbers so little above the point drawn are taken without a look at their weight. */
void pkv_zipf_init(struct pkv_zipf *z, double exponent, uint64_t min, uint64_t max)
{
    double m = (double)min;
    PKV_ASSERT(exponent >= 0 && exponent <= 100 && min >= 1 && min <= max && max <= UINT32_MAX);
    *z = (struct pkv_zipf){.exponent = exponent, .min = min, .max = max};
    z->first = integral(exponent, m + 0.5) - weight(exponent, m);
    z->last = integral(exponent, (double)max + 0.5);
    z->squeeze = m + 1 - inverse(exponent, integral(exponent, m + 1.5) - weight(exponent, m + 1));
}

uint64_t pkv_zipf_draw(const struct pkv_zipf *z, struct pkv_rng *rng)
{
    for (;;) {
        double area = z->last + pkv_rng_unit(rng) * (z->first - z->last);
        double x = inverse(z->exponent, area);
        uint64_t k = x + 0.5 < (double)z->min ? z->min
                   : x + 0.5 >= (double)z->max ? z->max : (uint64_t)(x + 0.5);
        if ((double)k - x <= z->squeeze ||
            area >= integral(z->exponent, (double)k + 0.5) - weight(z->exponent, (double)k))
            return k;
    }
}
