/*
 * draws.h - numbers of laws beyond uniform, normal and exponential, with the same bits everywhere;
 * and the functions that they take.
 */
#ifndef PKV_BASE_DRAWS_H
#define PKV_BASE_DRAWS_H

#include <stdint.h>

#include "base/rng.h"

double pkv_log_gamma(double x);   /* log of the gamma function; x >= 1; within 1e-13 of the value or 1 */
double pkv_sin_turn(double x);    /* the sine of x turns, 0 <= x < 1; within 1e-15 */

double pkv_rng_gamma(struct pkv_rng *rng, double shape);     /* scale 1; shape > 0 */
double pkv_rng_weibull(struct pkv_rng *rng, double shape);   /* scale 1; shape > 0 */
double pkv_rng_pareto(struct pkv_rng *rng, double alpha);    /* from 1 up; alpha > 0 */

/* The shape of the Weibull law with this coefficient of variation, 0.01 to 100. */
double pkv_weibull_shape(double cv);

/* Whole numbers min .. max, k with a weight of k^-exponent. */
struct pkv_zipf {
    double exponent, first, last, squeeze;   /* values of the integral at both ends, and see draws.c */
    uint64_t min, max;
};
/* exponent 0 .. 100; 1 <= min <= max < 2^32 */
void pkv_zipf_init(struct pkv_zipf *zipf, double exponent, uint64_t min, uint64_t max);
uint64_t pkv_zipf_draw(const struct pkv_zipf *zipf, struct pkv_rng *rng);

#endif
