/*
 * mix_decode_first.c - as long as anybody decodes, only decodes run; prompts when nobody does.
 *
 * So a batch decodes to its end before the next one is let in: the shortest gaps between tokens, and
 * the emptiest steps.
 */
#include "pagedkv/policy.h"

static struct pkv_mix choose(const void *state, const struct pkv_sched_view *view)
{
    (void)state, (void)view;
    return (struct pkv_mix){.first = PKV_MIX_DECODES,
                            .otherwise = PKV_MIX_PROMPTS | PKV_MIX_NEWCOMERS};
}

const struct pkv_mix_ops pkv_mix_decode_first = {
    .info = {.name = "decode_first",
             .summary = "decodes alone while anybody decodes, prompts when nobody does",
             .source = "the decode-prioritizing schedule as Agrawal et al., OSDI 2024 (Sarathi-Serve), "
                       "describe it"},
    .choose = choose,
};
