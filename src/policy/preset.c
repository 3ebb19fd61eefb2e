/*
 * preset.c - named bundles of choices and switches. They are data: keys of a scenario's scheduler
 * section, applied before the scenario's own. A preset never sets a size.
 *
 * What each does was established by running the engine; the recorded step logs are the judge.
 */
#include <string.h>

#include "pagedkv/policy.h"

#define VLLM_CHOICES(order)                                                             \
    {"order", order}, {"on_blocked", "stop"}, {"preempt", "newest"},                    \
    {"on_preempt", "recompute"}, {"requeue", "front"}, {"grow", "one_by_one"},          \
    {"publish", "alloc"}, {"mix", "mixed"}, {"evict", "lru"}, {"cache", "blocks"},      \
    {"layout", "paged"}, {"watermark", "0"}, {"priority_victim", "vllm"},               \
    {"oversized", "reject"}, {"fork", "false"}

static const struct pkv_preset_setting vllm[] = {
    VLLM_CHOICES("fcfs"),
    {"admit", "whole_prompt"},
    {"unhashed_free", "head"},
    {"blocked_prefill", "stop"},
};

static const struct pkv_preset_setting vllm_async[] = {
    VLLM_CHOICES("fcfs"),
    {"admit", "whole_prompt"},
    {"unhashed_free", "head"},
    {"blocked_prefill", "stop"},
    {"async_scheduling", "true"},
};

static const struct pkv_preset_setting vllm_0_19[] = {
    VLLM_CHOICES("fcfs"),
    {"admit", "whole_prompt"},
    {"unhashed_free", "tail"},
    {"blocked_prefill", "stop"},
};

static const struct pkv_preset_setting vllm_2025_09[] = {
    VLLM_CHOICES("fcfs"),
    {"admit", "first_chunk"},
    {"unhashed_free", "tail"},
    {"blocked_prefill", "skip"},
    {"chunk_end", "keep"},
    {"lookahead_at_admission", "false"},
};

static const struct pkv_preset_setting lightllm[] = {
    VLLM_CHOICES("fcfs"),
    {"admit", "future_peak"},
    {"unhashed_free", "tail"},
    {"blocked_prefill", "stop"},
};

static const struct pkv_preset_setting mc_sf[] = {
    VLLM_CHOICES("sjf_true"),
    {"admit", "mc_sf"},
    {"unhashed_free", "tail"},
    {"blocked_prefill", "stop"},
};

/* Orca's scheduler over the three ways of reserving that the paper on paging compares with. Nothing is
 * shared between requests, so the key of the prefix cache stands beside those of the scheduler. */
#define ORCA_CHOICES                                                                    \
    {"order", "fcfs"}, {"admit", "reserve_max"}, {"on_blocked", "stop"},                \
    {"preempt", "newest"}, {"on_preempt", "recompute"}, {"requeue", "front"},           \
    {"grow", "one_by_one"}, {"publish", "alloc"}, {"mix", "mixed"}, {"evict", "lru"},   \
    {"cache", "blocks"}, {"kv.prefix_cache", "false"}, {"watermark", "0"},              \
    {"unhashed_free", "head"}, {"blocked_prefill", "stop"}, {"priority_victim", "vllm"}, \
    {"oversized", "reject"}, {"fork", "false"}

static const struct pkv_preset_setting orca_max[] = {ORCA_CHOICES, {"layout", "contiguous_max"}};
static const struct pkv_preset_setting orca_pow2[] = {ORCA_CHOICES, {"layout", "contiguous_pow2"}};
static const struct pkv_preset_setting orca_oracle[] = {ORCA_CHOICES, {"layout", "contiguous_exact"}};

#define ORCA_SOURCE "as Kwon et al., SOSP 2023, 6.1, describe it; not checked against a run"

#define SETTINGS(array) .settings = array, .num_settings = sizeof array / sizeof array[0]

static const struct pkv_preset presets[] = {
    {.name = "vllm",
     .summary = "vLLM V1, synchronous scheduling",
     .source = "vLLM main 48ebd6f2f164 of 2026-07-26; checked against recorded step logs",
     SETTINGS(vllm)},
    {.name = "vllm-async",
     .summary = "vLLM V1 as it is started by default: each step is scheduled while another runs",
     .source = "vLLM main 48ebd6f2f164 of 2026-07-26; checked against recorded step logs",
     SETTINGS(vllm_async)},
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
    {.name = "orca-max",
     .summary = "a run of max_model_len positions for every request, reserved to its end",
     .source = ORCA_SOURCE,
     SETTINGS(orca_max)},
    {.name = "orca-pow2",
     .summary = "a run for the prompt and the next power of two of the output",
     .source = ORCA_SOURCE,
     SETTINGS(orca_pow2)},
    {.name = "orca-oracle",
     .summary = "a run for the true length, known beforehand: the bound of reserving",
     .source = ORCA_SOURCE,
     SETTINGS(orca_oracle)},
};

enum { NUM_PRESETS = sizeof presets / sizeof presets[0] };

const struct pkv_preset *const *pkv_preset_list(size_t *out_num)
{
    static const struct pkv_preset *const list[NUM_PRESETS] = {
        &presets[0], &presets[1], &presets[2], &presets[3],
        &presets[4], &presets[5], &presets[6], &presets[7], &presets[8]};
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
