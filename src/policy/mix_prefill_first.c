/*
 * mix_prefill_first.c - while any prompt can be worked on, only that is done: first those in pieces,
 * then newcomers. The decoding ones stand still meanwhile and go on when there is none.
 *
 * A steady arrival of small prompts stops all decoding.
 */
#include "pagedkv/policy.h"

static struct pkv_mix choose(const void *state, const struct pkv_sched_view *view)
{
    (void)state, (void)view;
    return (struct pkv_mix){.first = PKV_MIX_PROMPTS | PKV_MIX_NEWCOMERS,
                            .otherwise = PKV_MIX_DECODES};
}

const struct pkv_mix_ops pkv_mix_prefill_first = {
    .info = {.name = "prefill_first",
             .summary = "prompts alone while there is work on any, else the decoding ones",
             .source = "after source of SGLang 0.5.18 (2026-08-21), its default without mixed chunks; "
                       "vLLM V0. The rule alone"},
    .choose = choose,
};
