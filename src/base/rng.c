/*
 * rng.c - random streams anyone can repeat, and log and exp with the same bits everywhere.
 *
 * Number k (from 1) of a stream is the SplitMix64 output for the state key + k * GAMMA, where key
 * is made from the seed and the stream's name; so a stream is a plain function of three things.
 * log and exp use additions, multiplications and divisions of IEEE doubles only, each rounded once
 * (no fused ones: the build says -ffp-contract=off), hence one result on every machine.
 *
 * Sources: SplitMix64 of Steele, Lea, Flood, "Fast splittable pseudorandom number generators"
 * (2014). Normals: Marsaglia's polar method. log: the series of artanh after taking out the power
 * of two; exp: the Taylor series after taking out the multiple of ln 2 (both in any textbook; ln 2
 * in two parts after Cody and Waite).
 */
#include "base/rng.h"

#include <math.h>
#include <string.h>

#include "pagedkv/err.h"

#define GAMMA UINT64_C(0x9e3779b97f4a7c15)
#define LN2_HI 0x1.62e42feep-1              /* its last 20 bits are 0: k * LN2_HI is exact */
#define LN2_LO 0x1.a39ef35793c76p-33        /* ln 2 - LN2_HI */
#define INV_LN2 0x1.71547652b82fep+0
#define SQRT_HALF 0x1.6a09e667f3bcdp-1

static uint64_t finalise(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void pkv_rng_init(struct pkv_rng *rng, uint64_t seed, const char *stream)
{
    uint64_t key = seed;
    if (*stream)
        key = finalise(key + GAMMA);
    for (; *stream; stream++)
        key = finalise((key ^ (unsigned char)*stream) + GAMMA);
    *rng = (struct pkv_rng){.key = key};
}

uint64_t pkv_rng_u64(struct pkv_rng *rng)
{
    rng->counter++;
    return finalise(rng->key + rng->counter * GAMMA);
}

uint64_t pkv_rng_below(struct pkv_rng *rng, uint64_t n)
{
    PKV_ASSERT(n > 0);
    uint64_t surplus = (UINT64_MAX - n + 1) % n;   /* 2^64 mod n numbers would be one too many */
    uint64_t draw;
    do
        draw = pkv_rng_u64(rng);
    while (draw < surplus);
    return draw % n;
}

double pkv_rng_unit(struct pkv_rng *rng)
{
    return ((double)(pkv_rng_u64(rng) >> 12) + 0.5) * 0x1p-52;
}

double pkv_rng_normal(struct pkv_rng *rng)
{
    if (rng->has_spare) {
        rng->has_spare = 0;
        return rng->spare;
    }
    double a, b, q;
    do {
        a = 2 * pkv_rng_unit(rng) - 1;
        b = 2 * pkv_rng_unit(rng) - 1;
        q = a * a + b * b;
    } while (q >= 1 || q == 0);
    double scale = sqrt(-2 * pkv_log(q) / q);   /* sqrt is rounded exactly by IEEE 754 */
    rng->spare = b * scale;
    rng->has_spare = 1;
    return a * scale;
}

double pkv_rng_exponential(struct pkv_rng *rng)
{
    return -pkv_log(pkv_rng_unit(rng));
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* 2^k for -1022 <= k <= 1023. */
static double power_of_two(int k)
{
    uint64_t bits = (uint64_t)(k + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* log(1 + f) = f - s (f - R) with s = f / (2 + f) and R = 2 (s^2/3 + s^4/5 + ...): f is exact, so
 * only the small second part is rounded. |s| <= 0.172, where 11 terms reach below 2^-60. */
double pkv_log(double x)
{
    static const double odd[] = {3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23};
    int k = 0;
    PKV_ASSERT(x > 0 && x - x == 0);
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        k = -54;
    }
    int exponent = (int)(bits_of(x) >> 52) - 1023;
    double m = x * power_of_two(exponent == 1023 ? -1022 : -exponent);
    if (exponent == 1023)
        m *= 0.5;
    k += exponent;
    if (m > 2 * SQRT_HALF) {
        m *= 0.5;
        k++;
    }
    double f = m - 1;
    double s = f / (2 + f);
    double z = s * s;
    double sum = 0;
    for (int i = (int)(sizeof odd / sizeof *odd) - 1; i >= 0; i--)
        sum = z * (2 / odd[i] + sum);
    return k * LN2_HI - ((s * (f - sum) - k * LN2_LO) - f);
}

/* exp(x) = 2^k exp(r), |r| <= ln 2 / 2, where 14 terms reach below 2^-60. */
double pkv_exp(double x)
{
    PKV_ASSERT(x == x);
    if (x > 709.8)
        return HUGE_VAL;
    if (x < -745.2)
        return 0;
    int k = (int)(x * INV_LN2 + (x < 0 ? -0.5 : 0.5));
    double r = (x - k * LN2_HI) - k * LN2_LO;
    double sum = 0;
    for (int i = 14; i >= 2; i--)
        sum = (sum + 1) * r / i;
    double y = 1 + (r + r * sum);
    if (k > 1023)
        return y * 2 * power_of_two(k - 1);
    if (k < -1022)
        return y * power_of_two(k + 60) * 0x1p-60;
    return y * power_of_two(k);
}
