/*
 * rng.h - seeded random streams that any program can repeat, and log and exp that give the same
 * bits on every machine (libm's differ with and without FMA).
 *
 * A stream is a function of (seed, name, counter): changing how many numbers one stream gives never
 * shifts another.
 */
#ifndef PKV_BASE_RNG_H
#define PKV_BASE_RNG_H

#include <stdint.h>

struct pkv_rng {
    uint64_t key, counter;
    double spare;          /* second normal of a pair */
    int has_spare;
};

void pkv_rng_init(struct pkv_rng *rng, uint64_t seed, const char *stream);
uint64_t pkv_rng_u64(struct pkv_rng *rng);
uint64_t pkv_rng_below(struct pkv_rng *rng, uint64_t n);      /* 0 .. n - 1, unbiased; n > 0 */
double pkv_rng_unit(struct pkv_rng *rng);                     /* in (0, 1), 53 bits */
double pkv_rng_normal(struct pkv_rng *rng);                   /* mean 0, variance 1 */
double pkv_rng_exponential(struct pkv_rng *rng);              /* mean 1 */

double pkv_log(double x);   /* x > 0; within 2 ulp */
double pkv_exp(double x);   /* within 2 ulp; 0 and infinity at the ends */

#endif
