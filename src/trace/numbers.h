/*
 * numbers.h - numbers of a law: lengths before they are rounded, ratios, times.
 */
#ifndef PKV_TRACE_NUMBERS_H
#define PKV_TRACE_NUMBERS_H

#include "base/rng.h"
#include "pagedkv/trace.h"

struct pkv_numbers {
    struct pkv_number law;
    struct pkv_rng rng;
    double shape, scale;         /* lognormal: of the logarithm: deviation and mean */
};
/* errors: PKV_ERR_INPUT with the sentence about `what` ("the delay of a turn") */
int pkv_numbers_init(struct pkv_numbers *numbers, const struct pkv_number *law, const char *what,
                     uint64_t seed, const char *stream, struct pkv_err *err);
/* Cut to min and max. PKV_NUMBER_NONE draws nothing and gives 0. */
double pkv_numbers_draw(struct pkv_numbers *numbers);

#endif
