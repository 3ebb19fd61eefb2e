/*
 * mix_separate_with_limit.c - prompts alone while there is work on any, but after so many such steps in
 * a row the decoding ones get one.
 *
 * So a token is never further away than that many steps of prompts and one of its own. A step in
 * which nothing ran does not count.
 */
#include "pagedkv/policy.h"

struct state {
    int64_t num_in_a_row, max_in_a_row;
};

static void init(void *state, const int64_t *params)
{
    ((struct state *)state)->max_in_a_row = params[0];
}

static struct pkv_mix choose(const void *state, const struct pkv_sched_view *view)
{
    const struct state *s = state;
    const struct pkv_mix prompts = {.first = PKV_MIX_PROMPTS | PKV_MIX_NEWCOMERS,
                                    .otherwise = PKV_MIX_DECODES};
    (void)view;
    if (s->num_in_a_row < s->max_in_a_row)
        return prompts;
    return (struct pkv_mix){.first = prompts.otherwise, .otherwise = prompts.first};
}

static void observe(void *state, const struct pkv_step_facts *facts)
{
    struct state *s = state;
    if (facts->parts & PKV_MIX_DECODES)
        s->num_in_a_row = 0;
    else if (facts->parts && s->num_in_a_row < s->max_in_a_row)
        s->num_in_a_row++;
}

static const struct pkv_policy_param params[] = {
    {.name = "max_consecutive_prefills",
     .summary = "steps of prompts in a row before the decoding ones get one",
     .preset = 4,
     .min = 1,
     .max = UINT32_MAX},
};

const struct pkv_mix_ops pkv_mix_separate_with_limit = {
    .info = {.name = "separate_with_limit",
             .summary = "as prefill_first, with a decode step after so many steps of prompts",
             .source = "ours",
             .params = params,
             .num_params = sizeof params / sizeof params[0]},
    .ignores_idle_steps = true,
    .choose = choose,
    .state_size = sizeof(struct state),
    .init = init,
    .observe = observe,
};
