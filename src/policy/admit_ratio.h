/*
 * admit_ratio.h - what admit: ratio keeps from step to step and in a pass, for its file and for tests
 * that look at the numbers.
 */
#ifndef PKV_POLICY_ADMIT_RATIO_H
#define PKV_POLICY_ADMIT_RATIO_H

#include "pagedkv/policy.h"

struct ratio_state {
    double ratio;                /* share of the output to come that is set aside, 0 .. 1 */
    double init, min, step;
    int64_t retract_steps, clip;
};

struct ratio_pass {
    double offset;               /* tokens set aside */
    uint64_t num_taken_tokens;   /* in blocks taken in this pass, free when it began */
};

#endif
