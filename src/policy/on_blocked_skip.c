/*
 * on_blocked_skip.c - those behind a refused request may start before it, up to a bound.
 */
#include "pagedkv/policy.h"

static bool counts_overtakes(const int64_t *params)
{
    return params[0] > 0;
}

static bool goes_on(const struct pkv_request *refused, const int64_t *params)
{
    return params[0] == 0 || refused->num_overtakes < params[0];
}

static const struct pkv_policy_param params[] = {
    {.name = "max_overtakes",
     .summary = "later requests that may start before a refused one; 0 = no bound",
     .preset = 0,
     .min = 0,
     .max = UINT32_MAX},
};

const struct pkv_on_blocked_ops pkv_on_blocked_skip = {
    .info = {.name = "skip",
             .summary = "later requests that fit may start before the refused one",
             .source = "ours",
             .params = params,
             .num_params = sizeof params / sizeof params[0]},
    .counts_overtakes = counts_overtakes,
    .goes_on = goes_on,
};
