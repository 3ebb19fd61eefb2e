/*
 * gpus.c - how much memory GPUs have.
 *
 * Engines take their share of what the driver tells programs, which is half a GiB less than what
 * nvidia-smi shows; and neither is the size in the name. Figures are as programs printed them, so
 * those of programs are exact to 0.01 GiB only.
 */
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "pagedkv/sizing.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define SMI "nvidia-smi, thundergolfer.com/blog/nvidia-gpu-memory-capacity"

static const struct pkv_gpu gpus[] = {
    {"H200", "h200-141gb", MIB(143771), 13981, SMI "; vLLM 0.10.2 log"},
    {"H100", "h100-80gb", MIB(81559), 7918, SMI "; llm-d capacity planner"},
    {"A100-80GB", "a100", MIB(81920), 0, SMI},
    {"A100-40GB", "", MIB(40960), 3950, SMI "; vllm issue 12330"},
    {"L40S", "l40s-48gb", MIB(46068), 4439, SMI "; logs of a 46,068 MiB GPU"},
    {"A40", "a40-48gb", MIB(46068), 0, "guqiong96/Lvllm issue 35"},
    {"L4", "l4-24gb", MIB(23034), 0, SMI},
    {"A10", "a10-24gb", MIB(23028), 0, SMI},
    {"T4", "t4-16gb", MIB(15360), 0, SMI},
    {"RTX-3090", "3090", 0, 2358, "vllm issue 10517"},
    {"RTX-3090-Ti", "3090-ti", MIB(24112), 0, "pegainfer issue 422"},
    {"RTX-4090-48GB", "4090-48gb", 0, 4737, "start-up log; a modified card"},
    {"RTX-5090", "5090", 0, 3136, "start-up logs"},
    {"B200", "", 0, 17835, "eight out-of-memory messages"},
    {"MI300X", "", 0, 19198, "out-of-memory messages"},
};
#define NUM_GPUS (sizeof(gpus) / sizeof(*gpus))

size_t pkv_gpu_count(void)
{
    return NUM_GPUS;
}

const struct pkv_gpu *pkv_gpu_at(size_t i)
{
    PKV_ASSERT(i < NUM_GPUS);
    return &gpus[i];
}

const struct pkv_gpu *pkv_gpu_find(const char *name)
{
    char word[PKV_KV_NAME_SIZE];

    pkv_kv_model_word(name, word);
    for (size_t i = 0; i < NUM_GPUS; i++)
        if (strcasecmp(gpus[i].name, word) == 0 || strcmp(gpus[i].alias, word) == 0)
            return word[0] ? &gpus[i] : NULL;
    return NULL;
}

const char *pkv_gpu_nearest(const char *name, char *out)
{
    struct pkv_nearest nearest;
    char wanted[PKV_KV_NAME_SIZE], word[PKV_KV_NAME_SIZE];

    pkv_kv_model_word(name, wanted);
    pkv_nearest_begin(&nearest, wanted);
    for (size_t i = 0; i < NUM_GPUS; i++) {
        pkv_kv_model_word(gpus[i].name, word);
        pkv_nearest_offer_as(&nearest, word, gpus[i].name);
        if (gpus[i].alias[0])
            pkv_nearest_offer_as(&nearest, gpus[i].alias, gpus[i].name);
    }
    return pkv_nearest_say(&nearest, "", out);
}

uint64_t pkv_gpu_total_bytes(const struct pkv_gpu *gpu)
{
    if (gpu->cuda_gib_hundredths > 0)
        return (((uint64_t)gpu->cuda_gib_hundredths << 30) + 50) / 100;
    return gpu->nvml_bytes;
}
