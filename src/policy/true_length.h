/*
 * true_length.h - what a request will really still generate: hindsight, for policies that are bounds.
 */
#ifndef PKV_POLICY_TRUE_LENGTH_H
#define PKV_POLICY_TRUE_LENGTH_H

#include "pagedkv/policy.h"

/* Tokens to come, at least 1; a request ends at max_model_len too. */
static inline uint64_t true_remaining(const struct pkv_sched_view *view,
                                      const struct pkv_request *r)
{
    uint64_t end = (uint64_t)r->seq.num_prompt_tokens + r->num_output_tokens;
    uint64_t last = end < view->max_model_len ? end : view->max_model_len;
    return last > r->seq.num_known_tokens ? last - r->seq.num_known_tokens : 1;
}

#endif
