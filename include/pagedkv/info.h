/*
 * info.h - what a policy is listed with: its word, its line, its source, its parameters.
 */
#ifndef PAGEDKV_INFO_H
#define PAGEDKV_INFO_H

#include <stddef.h>
#include <stdint.h>

enum { PKV_MAX_POLICY_PARAMS = 6 };

/* A number a policy takes. Numbers with decimals are kept as whole ones, times the scale. */
struct pkv_policy_param {
    const char *name;                   /* flat key beside the policy in a scenario */
    const char *summary;
    int64_t preset, min, max;           /* value if not given; range allowed, ends included */
    int64_t scale;                      /* a power of ten up to 10^9: 1000 keeps three decimals; 0 = whole */
};

/* Every ops struct of every choice begins with one. */
struct pkv_policy_info {
    const char *name;                   /* the word in scenarios and listings */
    const char *summary;                /* one line */
    const char *source;                 /* where the rule comes from */
    const struct pkv_policy_param *params;
    size_t num_params;                  /* <= PKV_MAX_POLICY_PARAMS */
};

#endif
