/*
 * preset.c - named bundles of choices and switches. They are data: keys of a scenario's scheduler
 * section, applied before the scenario's own. A preset never sets a size.
 *
 * What each does was established by running the engine; the recorded step logs are the judge.
 */
#include <string.h>

#include "pagedkv/policy.h"

#define VLLM_CHOICES                                                                    \
    {"order", "fcfs"}, {"on_blocked", "stop"}, {"preempt", "newest"},                   \
    {"on_preempt", "recompute"}, {"requeue", "front"}, {"grow", "one_by_one"},          \
    {"publish", "alloc"}, {"mix", "mixed"}, {"evict", "lru"}, {"cache", "blocks"},      \
    {"layout", "paged"}, {"watermark", "0"}, {"priority_victim", "vllm"},               \
    {"oversized", "reject"}

static const struct pkv_preset_setting vllm[] = {
    VLLM_CHOICES,
    {"admit", "whole_prompt"},
    {"unhashed_free", "head"},
    {"blocked_prefill", "stop"},
};

static const struct pkv_preset_setting vllm_0_19[] = {
    VLLM_CHOICES,
    {"admit", "whole_prompt"},
    {"unhashed_free", "tail"},
    {"blocked_prefill", "stop"},
};

static const struct pkv_preset_setting vllm_2025_09[] = {
    VLLM_CHOICES,
    {"admit", "first_chunk"},
    {"unhashed_free", "tail"},
    {"blocked_prefill", "skip"},
};

static const struct pkv_preset_setting lightllm[] = {
    VLLM_CHOICES,
    {"admit", "future_peak"},
    {"unhashed_free", "tail"},
    {"blocked_prefill", "stop"},
};

static const struct pkv_preset_setting mc_sf[] = {
    VLLM_CHOICES,
    {"order", "sjf_true"},
    {"admit", "mc_sf"},
    {"unhashed_free", "tail"},
    {"blocked_prefill", "stop"},
};

#define SETTINGS(array) .settings = array, .num_settings = sizeof array / sizeof array[0]

static const struct pkv_preset presets[] = {
    {.name = "vllm",
     .summary = "vLLM V1, synchronous scheduling",
     .source = "vLLM main 48ebd6f2f164 of 2026-07-26; checked against recorded step logs",
     SETTINGS(vllm)},
    {.name = "vllm-0.19",
     .summary = "vLLM 0.19, synchronous scheduling: all freed blocks go to the tail",
     .source = "inferred from the dates of the changes between 67f3fb084 and 48ebd6f2f164",
     SETTINGS(vllm_0_19)},
    {.name = "vllm-2025-09",
     .summary = "vLLM of the days before v0.11.0: no full-prompt gate; first come first served only",
     .source = "vLLM main 67f3fb084 of 2025-09-30; checked against recorded step logs",
     SETTINGS(vllm_2025_09),
     .priority_note = "under order: priority it is known to differ from that engine, which kept "
                      "scheduling a victim: that fault is not repeated"},
    {.name = "lightllm",
     .summary = "Past-Future admission with true output lengths; all else as in vllm-0.19",
     .source = "after source of LightLLM at 051a2bcf88b8 (continues_batch/impl.py), not checked "
               "against a run; its estimate of output lengths is replaced by the truth",
     SETTINGS(lightllm)},
    {.name = "mc-sf",
     .summary = "hindsight: true lengths, shortest output first, memory checked at every future end",
     .source = "after MC-SF, arXiv 2502.07115, not checked against a run",
     SETTINGS(mc_sf)},
};

enum { NUM_PRESETS = sizeof presets / sizeof presets[0] };

const struct pkv_preset *const *pkv_preset_list(size_t *out_num)
{
    static const struct pkv_preset *const list[NUM_PRESETS] = {
        &presets[0], &presets[1], &presets[2], &presets[3], &presets[4]};
    *out_num = NUM_PRESETS;
    return list;
}

const struct pkv_preset *pkv_preset_find(const char *name)
{
    for (size_t i = 0; i < NUM_PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}
