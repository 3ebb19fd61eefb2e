/*
 * kv_models.c - the models that are known by name: the sizes in their configs, a row each.
 *
 * A row says what the layers are, kv_known.c makes the list of layers of it. Where a part of a row
 * is recalled or inferred, and not read, it is not "verified".
 */
#include "model/kv_known_private.h"

#define SIM "inference-sim model_configs"
#define MLC "mlc-llm model_preset.py"
#define LMC "LMCache modelconfig.json"
#define KVC "KV calculator of kvcache-ai, May 2026"
#define VLT "vLLM base_model_arch_groundtruth.json"
#define AIC "aiconfigurator model_configs"
#define TRT "TensorRT-LLM unit test of its config"
#define VID "vidur model_config.py"
#define EZD "EasyDeL's table of OPT"
#define NEM "NeMo loader"
#define CFG "copy of its config.json"

/* Gated DeltaNet: key heads and their size, value heads and theirs, width of the convolution. */
#define GDN(k_heads, k_dim, v_heads, v_dim, width)                                            \
    { .inner = (v_heads) * (v_dim), .num_groups = (k_heads), .group_values = (k_dim),         \
      .kernel = (width), .num_heads = (v_heads), .head_values = (v_dim) * (k_dim),            \
      .cut_as_one = true }
#define MAMBA1(values, d_state, width)                                                        \
    { .inner = (values), .kernel = (width), .num_heads = (values), .head_values = (d_state) }
#define MAMBA2(heads_, head_dim, groups, d_state, width)                                      \
    { .inner = (heads_) * (head_dim), .num_groups = (groups), .group_values = (d_state),      \
      .kernel = (width), .num_heads = (heads_), .head_values = (head_dim) * (d_state) }
#define LIGHTNING(heads_, head_dim)                                                           \
    { .num_heads = (heads_), .head_values = (head_dim) * (head_dim) }

const struct kv_row kv_rows[] = {
    {{"Llama 2 7B", "meta-llama/Llama-2-7b-hf", SIM "; " MLC, true},
     .layers = 32, .heads = 32, .kv_heads = 32, .dim = 128, .max_len = 4096, .dtype = PKV_KV_FP16,
     .params = 6738415616},
    {{"Llama 2 13B", "meta-llama/Llama-2-13b-hf", MLC, true},
     .layers = 40, .heads = 40, .kv_heads = 40, .dim = 128, .max_len = 4096, .dtype = PKV_KV_FP16,
     .params = 13015864320},
    {{"Llama 2 70B", "meta-llama/Llama-2-70b-hf", MLC "; " VID, true},
     .layers = 80, .heads = 64, .kv_heads = 8, .dim = 128, .max_len = 4096, .dtype = PKV_KV_FP16,
     .params = 68976648192},
    {{"Llama 3.1 8B", "meta-llama/Llama-3.1-8B-Instruct", SIM "; " MLC, true},
     .layers = 32, .heads = 32, .kv_heads = 8, .dim = 128, .max_len = 131072, .params = 8030261248},
    {{"Llama 3.1 70B", "meta-llama/Llama-3.1-70B-Instruct", SIM "; " MLC, true},
     .layers = 80, .heads = 64, .kv_heads = 8, .dim = 128, .max_len = 131072,
     .params = 70553706496},
    {{"Llama 3.1 405B", "meta-llama/Llama-3.1-405B", LMC, true},
     .layers = 126, .heads = 128, .kv_heads = 8, .dim = 128, .max_len = 131072},
    {{"Llama 4 Scout 17B-16E", "meta-llama/Llama-4-Scout-17B-16E-Instruct", SIM "; " VLT, true},
     .layers = 48, .heads = 40, .kv_heads = 8, .dim = 128, .max_len = 10485760, .window = 8192,
     .pattern = 4, .chunked = true},
    {{"Llama 4 Maverick 17B-128E", "meta-llama/Llama-4-Maverick-17B-128E-Instruct", TRT, true},
     .layers = 48, .heads = 40, .kv_heads = 8, .dim = 128, .max_len = 1048576, .window = 8192,
     .pattern = 4, .chunked = true},
    {{"Mistral 7B v0.1", "mistralai/Mistral-7B-v0.1", MLC, true},
     .layers = 32, .heads = 32, .kv_heads = 8, .dim = 128, .max_len = 32768, .window = 4096,
     .params = 7241732096},
    {{"Mistral 7B v0.3", "mistralai/Mistral-7B-v0.3", MLC, true},
     .layers = 32, .heads = 32, .kv_heads = 8, .dim = 128, .max_len = 32768},
    {{"Mixtral 8x7B", "mistralai/Mixtral-8x7B-v0.1", SIM "; " MLC, true},
     .layers = 32, .heads = 32, .kv_heads = 8, .dim = 128, .max_len = 32768, .params = 46702792704},
    {{"Qwen2.5 7B", "Qwen/Qwen2.5-7B-Instruct", SIM "; " LMC, true},
     .layers = 28, .heads = 28, .kv_heads = 4, .dim = 128, .max_len = 32768, .params = 7615616512},
    {{"Qwen2.5 72B", "Qwen/Qwen2.5-72B-Instruct", KVC, true},
     .layers = 80, .heads = 64, .kv_heads = 8, .dim = 128, .max_len = 32768},
    {{"Qwen3 8B", "Qwen/Qwen3-8B", LMC "; " KVC, true},
     .layers = 36, .heads = 32, .kv_heads = 8, .dim = 128, .max_len = 40960},
    {{"Qwen3 32B", "Qwen/Qwen3-32B", LMC "; " KVC, true},
     .layers = 64, .heads = 64, .kv_heads = 8, .dim = 128, .max_len = 40960},
    {{"Qwen3 235B-A22B", "Qwen/Qwen3-235B-A22B", KVC, true},
     .layers = 94, .heads = 64, .kv_heads = 4, .dim = 128, .max_len = 40960},
    {{"Qwen3 30B-A3B", "Qwen/Qwen3-30B-A3B", SIM "; " KVC, true},
     .layers = 48, .heads = 32, .kv_heads = 4, .dim = 128, .max_len = 40960},
    {{"Qwen3-Next 80B-A3B", "Qwen/Qwen3-Next-80B-A3B-Instruct", VLT "; " AIC, true},
     .layers = 48, .heads = 16, .kv_heads = 2, .dim = 256, .max_len = 262144, .period = 4,
     .offset = 3, .state = GDN(16, 128, 32, 128, 4)},
    {{"Gemma 2 9B", "google/gemma-2-9b", MLC, true},
     .layers = 42, .heads = 16, .kv_heads = 8, .dim = 256, .max_len = 8192, .window = 4096,
     .pattern = 2},
    {{"Gemma 2 27B", "google/gemma-2-27b", MLC, true},
     .layers = 46, .heads = 32, .kv_heads = 16, .dim = 128, .max_len = 8192, .window = 4096,
     .pattern = 2},
    {{"Gemma 3 1B", "google/gemma-3-1b-it", MLC, true},
     .layers = 26, .heads = 4, .kv_heads = 1, .dim = 256, .max_len = 32768, .window = 512,
     .pattern = 6},
    {{"Gemma 3 4B", "google/gemma-3-4b-it", CFG, true},
     .layers = 34, .heads = 8, .kv_heads = 4, .dim = 256, .max_len = 131072, .window = 1024,
     .pattern = 6},
    {{"Gemma 3 12B", "google/gemma-3-12b-it", CFG, true},
     .layers = 48, .heads = 16, .kv_heads = 8, .dim = 256, .max_len = 131072, .window = 1024,
     .pattern = 6},
    {{"Gemma 3 27B", "google/gemma-3-27b-it", CFG, true},
     .layers = 62, .heads = 32, .kv_heads = 16, .dim = 128, .max_len = 131072, .window = 1024,
     .pattern = 6},
    {{"gpt-oss-20b", "openai/gpt-oss-20b", VLT, true},
     .layers = 24, .heads = 64, .kv_heads = 8, .dim = 64, .max_len = 131072, .window = 128,
     .pattern = 2},
    {{"gpt-oss-120b", "openai/gpt-oss-120b", "alvarobartt/hf-mem issue 60", true},
     .layers = 36, .heads = 64, .kv_heads = 8, .dim = 64, .max_len = 131072, .window = 128,
     .pattern = 2},
    {{"DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V2-Lite", SIM "; " MLC, true},
     .layers = 27, .heads = 16, .latent = 512, .rope = 64, .max_len = 163840},
    {{"DeepSeek-V3", "deepseek-ai/DeepSeek-V3", LMC "; " KVC, true},
     .layers = 61, .heads = 128, .latent = 512, .rope = 64, .max_len = 163840, .mtp = 1},
    {{"DeepSeek-R1", "deepseek-ai/DeepSeek-R1", LMC "; " KVC, true},
     .layers = 61, .heads = 128, .latent = 512, .rope = 64, .max_len = 163840, .mtp = 1},
    {{"Kimi K2", "moonshotai/Kimi-K2-Instruct", KVC "; " AIC, true},
     .layers = 61, .heads = 64, .latent = 512, .rope = 64, .max_len = 131072},
    {{"Phi-3-mini 4k", "microsoft/Phi-3-mini-4k-instruct", MLC, true},
     .layers = 32, .heads = 32, .kv_heads = 32, .dim = 96, .max_len = 4096, .window = 2047,
     .note = "its config has a window of 2,047 positions in every layer, which published tables leave "
             "out; without it (--no-hybrid-manager) a sequence keeps all its positions"},
    {{"Phi-4 14B", "microsoft/phi-4", CFG, true},
     .layers = 40, .heads = 40, .kv_heads = 10, .dim = 128, .max_len = 16384},
    {{"Command R+", "CohereLabs/c4ai-command-r-plus", KVC, true},
     .layers = 64, .heads = 96, .kv_heads = 8, .dim = 128, .max_len = 131072},
    {{"Falcon-7B", "tiiuae/falcon-7b", VLT "; " NEM, true},
     .layers = 32, .heads = 71, .kv_heads = 1, .dim = 64, .max_len = 2048},
    {{"Falcon-40B", "tiiuae/falcon-40b", VLT, true},
     .layers = 60, .heads = 128, .kv_heads = 8, .dim = 64, .max_len = 2048},
    {{"GPT-2 124M", "openai-community/gpt2", MLC, true},
     .layers = 12, .heads = 12, .kv_heads = 12, .dim = 64, .max_len = 1024},
    {{"OPT-13B", "facebook/opt-13b", EZD, true},
     .layers = 40, .heads = 40, .kv_heads = 40, .dim = 128, .max_len = 2048, .dtype = PKV_KV_FP16},
    {{"OPT-66B", "facebook/opt-66b", CFG, true},
     .layers = 64, .heads = 72, .kv_heads = 72, .dim = 128, .max_len = 2048, .dtype = PKV_KV_FP16},
    {{"OPT-175B", "", "OPT paper, recalled", false},
     .layers = 96, .heads = 96, .kv_heads = 96, .dim = 128, .max_len = 2048, .dtype = PKV_KV_FP16},
    {{"Jamba v0.1", "ai21labs/Jamba-v0.1", CFG, true},
     .layers = 32, .heads = 32, .kv_heads = 8, .dim = 128, .max_len = 262144, .period = 8,
     .offset = 4, .state = MAMBA1(8192, 16, 4)},
    {{"Bamba-9B", "ibm-ai-platform/Bamba-9B", CFG, false},
     .layers = 32, .heads = 32, .kv_heads = 8, .dim = 128,
     .plan = "MMMMMMMMM*MMMMMMMM*MMMMMMMM*MMMM", .state = MAMBA2(128, 64, 1, 128, 4)},
    {{"Nemotron-H-8B", "nvidia/Nemotron-H-8B-Base-8K", CFG, true},
     .layers = 52, .heads = 32, .kv_heads = 8, .dim = 128, .max_len = 8192,
     .plan = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", .state = MAMBA2(128, 64, 8,
     128, 4)},
    {{"Granite 4.0 H Small", "ibm-granite/granite-4.0-h-small", CFG, true},
     .layers = 40, .heads = 32, .kv_heads = 8, .dim = 128, .period = 10, .offset = 5,
     .state = MAMBA2(128, 64, 1, 128, 4)},
    {{"Granite 4.0 Micro", "ibm-granite/granite-4.0-micro", CFG, false},
     .layers = 40, .heads = 40, .kv_heads = 8, .dim = 64, .max_len = 131072},
    {{"GLM-4.5", "zai-org/GLM-4.5", LMC "; " VLT, true},
     .layers = 92, .heads = 96, .kv_heads = 8, .dim = 128, .max_len = 131072},
    {{"MiniMax-M1", "MiniMaxAI/MiniMax-M1-80k", CFG, true},
     .layers = 80, .heads = 64, .kv_heads = 8, .dim = 128, .max_len = 10240000, .period = 8,
     .offset = 7, .state = LIGHTNING(64, 128)},
    {{"Yi-34B", "01-ai/Yi-34B", SIM, true},
     .layers = 60, .heads = 56, .kv_heads = 8, .dim = 128, .max_len = 4096, .params = 34388917248},
    {{"Gemma 4 26B-A4B", "google/gemma-4-26b-a4b", KVC, true},
     .layers = 30, .heads = 16, .kv_heads = 8, .dim = 256, .global_kv_heads = 2, .global_dim = 512,
     .max_len = 262144, .window = 1024, .pattern = 6},
    {{"Gemma 4 31B", "google/gemma-4-31b", KVC, true},
     .layers = 60, .heads = 32, .kv_heads = 16, .dim = 256, .global_kv_heads = 4,
     .global_dim = 512, .max_len = 262144, .window = 1024, .pattern = 6},
    {{"Gemma 4 12B", "google/gemma-4-12b", CFG, true},
     .layers = 48, .heads = 16, .kv_heads = 8, .dim = 256, .global_kv_heads = 1, .global_dim = 512,
     .max_len = 262144, .window = 1024, .pattern = 6},
    {{"Qwen3.6-27B", "Qwen/Qwen3.6-27B", KVC, true},
     .layers = 64, .heads = 24, .kv_heads = 4, .dim = 256, .max_len = 262144, .period = 4,
     .offset = 3, .state = GDN(16, 128, 48, 128, 4), .fp32_state = true, .mtp = 1},
    {{"Llama 3 8B", "meta-llama/Meta-Llama-3-8B", "start-up log in vllm issue 12330", false},
     .layers = 32, .heads = 32, .kv_heads = 8, .dim = 128, .max_len = 8192, .params = 8030261248},
    {{"Llama 3.2 3B", "meta-llama/Llama-3.2-3B-Instruct", "layers and heads of a start-up log", false},
     .layers = 28, .heads = 24, .kv_heads = 8, .dim = 128, .max_len = 131072},
    {{"Qwen2.5 0.5B", "Qwen/Qwen2.5-0.5B-Instruct", "layers and heads of a start-up log", false},
     .layers = 24, .heads = 14, .kv_heads = 2, .dim = 64, .max_len = 32768},
    {{"Qwen2.5 1.5B", "Qwen/Qwen2.5-1.5B-Instruct", "start-up log of vLLM V1", false},
     .layers = 28, .heads = 12, .kv_heads = 2, .dim = 128, .max_len = 32768},
    {{"Qwen3 4B", "Qwen/Qwen3-4B", "memory figures in pegainfer issue 422", false},
     .layers = 36, .heads = 32, .kv_heads = 8, .dim = 128, .max_len = 40960},
    {{"Qwen3 14B", "Qwen/Qwen3-14B", "start-up log in LMCache issue 1739", false},
     .layers = 40, .heads = 40, .kv_heads = 8, .dim = 128, .max_len = 40960,
     .params = 14768307200},
    {{"Qwen3.5 0.8B", "Qwen/Qwen3.5-0.8B", "start-up log of vLLM 0.28", false},
     .layers = 24, .heads = 8, .kv_heads = 2, .dim = 256, .max_len = 262144,
     .period = 4, .offset = 3, .state = GDN(16, 128, 16, 128, 4), .fp32_state = true},
    {{"Qwen3.5 9B", "Qwen/Qwen3.5-9B", "start-up log of vLLM 0.16", false},
     .layers = 32, .heads = 16, .kv_heads = 4, .dim = 256, .max_len = 262144,
     .period = 4, .offset = 3, .state = GDN(16, 128, 32, 128, 4), .fp32_state = true},
    {{"GLM-4.6", "zai-org/GLM-4.6", "start-up log of two nodes, vLLM V1", false},
     .layers = 92, .heads = 96, .kv_heads = 8, .dim = 128, .max_len = 202752, .mtp = 1},
    {{"GLM-5.2", "zai-org/GLM-5.2", "start-up log of vLLM on four nodes; its indexer_types in ROCm/ATOM "
      "pull request 1260", false},
     .layers = 78, .heads = 64, .latent = 512, .rope = 64, .index_dim = 128, .index_first = 3,
     .index_every = 4, .max_len = 1048576, .mtp = 1},
    {{"Gemma 4 E2B", "google/gemma-4-E2B-it", "start-up log on a T4", false},
     .layers = 35, .heads = 8, .kv_heads = 1, .dim = 256, .global_kv_heads = 1, .global_dim = 512,
     .max_len = 131072, .window = 512, .pattern = 5, .shared = 20},
};
const size_t kv_num_rows = sizeof(kv_rows) / sizeof(*kv_rows);
