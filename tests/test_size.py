#!/usr/bin/env python3
"""`pagedkv size`, `models` and `gpus`, and models in scenarios: figures worked out by hand.

usage: test_size.py PROGRAM SOURCE_ROOT
"""
import json
import os
import random
import re
import subprocess
import sys

import tap
from program import ProgramCase
from scenario_case import ScenarioCase
from size_case import GIB, MIB, SizeCase

SOURCE_ROOT = None      # set by main

LLAMA_70B = {"model_type": "llama", "num_hidden_layers": 80, "num_attention_heads": 64,
             "num_key_value_heads": 8, "hidden_size": 8192, "torch_dtype": "bfloat16",
             "max_position_embeddings": 131072}
GEMMA_2 = {"model_type": "gemma2", "num_hidden_layers": 42, "num_attention_heads": 16,
           "num_key_value_heads": 8, "head_dim": 256, "sliding_window": 4096, "dtype": "bfloat16"}
LATENT = {"model_type": "deepseek_v3", "num_hidden_layers": 61, "num_attention_heads": 128,
          "num_key_value_heads": 128, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
          "hidden_size": 7168, "torch_dtype": "bfloat16", "num_nextn_predict_layers": 1}
QWEN_NEXT = {"model_type": "qwen3_next", "num_hidden_layers": 48, "num_attention_heads": 16,
             "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4,
             "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 32,
             "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "dtype": "bfloat16"}
JAMBA = {"model_type": "jamba", "num_hidden_layers": 32, "hidden_size": 4096,
         "num_attention_heads": 32, "num_key_value_heads": 8, "attn_layer_period": 8,
         "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
         "torch_dtype": "bfloat16"}
MISTRAL = {"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096,
           "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": 4096,
           "torch_dtype": "bfloat16"}
# Every layer's KV heads x (K + V) x 2 bytes, by hand.
MODELS = {
    "llama-2-7b": 32 * 32 * 256 * 2, "meta-llama/Llama-3.1-70B-Instruct": 327680,
    "Llama 3.1 405B": 126 * 8 * 256 * 2, "qwen3-32b": 64 * 8 * 256 * 2,
    "qwen3-235b-a22b": 94 * 4 * 256 * 2, "gpt-oss-120b": 36 * 8 * 128 * 2,
    "deepseek-v3": 61 * 576 * 2, "deepseek-r1": 61 * 576 * 2, "kimi-k2": 61 * 576 * 2,
    "falcon-7b": 32 * 1 * 128 * 2, "opt-13b": 819200, "phi-3-mini-4k": 32 * 32 * 192 * 2,
    "gemma-4-26b-a4b": (5 * 2 * 1024 + 25 * 8 * 512) * 2, "gemma-4-e2b": (3 * 1024 + 12 * 512) * 2,
    "glm-4.5": 92 * 8 * 256 * 2, "nemotron-h-8b": 4 * 8 * 256 * 2,
}


def without(config, key):
    return {k: v for k, v in config.items() if k != key}


class Figures(SizeCase):
    def test_worked_example(self):
        """Llama 3.1 70B on 40 GiB: 32 by payload, 31 with the null block, 25 reserved."""
        args = ("llama-3.1-70b", "--prompt", "4096", "--output", "1024", "--kv-budget")
        got = self.size(*args, "40GiB")
        self.assertEqual(got["position_bytes"], 327680)
        self.assertEqual((got["num_gpu_blocks"], got["num_blocks"]), (8192, 8191))
        fits = got["requests"]
        self.assertEqual([fits[k] for k in ("payload_requests", "prompt_requests",
                                            "reserved_requests", "end_requests")], [32, 31, 25, 25])
        self.assertEqual(fits["end_positions_tokens"], 4096 + 1024 - 1)
        got = self.size("llama-3.1-70b", "--kv-budget", "50GiB", "--lengths", "4096,32768,131072")
        self.assertEqual([row["payload_bytes"] for row in got["lengths"]],
                         [5 * GIB // 4, 10 * GIB, 40 * GIB])
        fits = self.size(*args, "40GB")["requests"]
        self.assertEqual((fits["payload_requests"], fits["reserved_requests"]), (29, 23))

    def test_second_example(self):
        got = self.size("--layers", "32", "--kv-heads", "8", "--head-dim", "128", "--lengths", "4096")
        self.assertEqual(got["lengths"][0]["payload_bytes"], 536870912)

    def test_emitted_token_is_not_stored(self):
        """4,096 prompt tokens and one answer token fill 256 blocks; reserving counts 257."""
        got = self.size("llama-3.1-70b", "--prompt", "4096", "--output", "1", "--kv-budget", "40GiB")
        self.assertEqual((got["requests"]["end_blocks"], got["requests"]["reserved_blocks"]),
                         (256, 257))

    def test_models(self):
        listed = json.loads(self.done("models", "--json").stdout)
        self.assertGreaterEqual(sum(m["verified"] for m in listed), 47)
        self.assertTrue(all(m["source"] for m in listed))
        for model in listed:
            self.assertEqual(self.size(model["name"], "--kv-dtype", "bf16")["position_bytes"],
                             model["bf16_position_bytes"])
        for name, size in MODELS.items():
            with self.subTest(name):
                self.assertEqual(self.size(name, "--kv-dtype", "bf16")["position_bytes"], size)
                self.assertEqual(self.size(name, "--kv-dtype", "fp8")["position_bytes"], size // 2)

    def test_types_of_the_cache(self):
        """One head of 128 values: K and V of one layer, by the layout of each type."""
        one = ("--layers", "1", "--kv-heads", "1", "--head-dim", "128")
        for dtype, size in (("bf16", 512), ("fp16", 512), ("fp32", 1024), ("fp8", 256), ("int8", 256),
                            ("nvfp4", 2 * (64 + 8)), ("q8_0", 2 * 4 * 34), ("q4_0", 2 * 4 * 18),
                            ("fp8_token_head", 2 * 132), ("int8_per_token_head", 2 * 132),
                            ("fp8_e4m3", 256)):
            self.assertEqual(self.size(*one, "--kv-dtype", dtype)["position_bytes"], size, dtype)
        self.assertEqual(self.size("deepseek-v3", "--kv-dtype", "fp8_ds_mla")["position_bytes"],
                         61 * (512 + 4 * 4 + 64 * 2))
        self.wrong(*one, "--kv-dtype", "fp8_ds_mla", says="fp8_ds_mla")
        self.wrong("deepseek-v3", "--kv-dtype", "int8_token_head", says="int8_token_head")
        self.wrong("--layers", "1", "--kv-heads", "1", "--head-dim", "40", "--kv-dtype", "q8_0",
                   says="q8_0 packs 32")
        self.wrong(*one, "--kv-dtype", "bf61", says="--kv-dtype.*bf61")

    def test_windows(self):
        """A window stops growing, a chunk starts anew."""
        got = self.size("gemma-2-9b", "--lengths", "4096,8192")
        half = 21 * 8 * 512 * 2
        self.assertEqual([row["payload_bytes"] for row in got["lengths"]],
                         [2 * half * 4096, half * (8192 + 4096)])
        self.assertEqual((got["growing_position_bytes"], got["fixed_sequence_bytes"]),
                         (half, half * 4096))
        got = self.size("llama-4-scout-17b-16e", "--lengths", "8192,8193")
        full, chunked = 12 * 4096, 36 * 4096
        self.assertEqual([row["payload_bytes"] for row in got["lengths"]],
                         [(full + chunked) * 8192, full * 8193 + chunked])
        got = self.size("gemma-2-9b", "--lengths", "8192", "--no-hybrid-manager")
        self.assertEqual(got["lengths"][0]["payload_bytes"], 2 * half * 8192)
        self.assertEqual(len(got["groups"]), 1)

    def test_window_of_all_layers(self):
        """Phi-3-mini 4k, by name and by its config: all 32 layers keep 2,047 positions."""
        self.config({"model_type": "phi3", "num_hidden_layers": 32, "num_attention_heads": 32,
                     "num_key_value_heads": 32, "hidden_size": 3072, "sliding_window": 2047,
                     "max_position_embeddings": 4096, "torch_dtype": "bfloat16"})
        for model in ("phi-3-mini-4k", "config.json"):
            got = self.size(model, "--lengths", "2000,4096")
            self.assertEqual((got["position_bytes"], got["growing_position_bytes"]), (393216, 0))
            self.assertEqual([row["payload_bytes"] for row in got["lengths"]],
                             [2000 * 393216, 2047 * 393216])
            got = self.size(model, "--lengths", "4096", "--no-hybrid-manager")
            self.assertEqual((got["growing_position_bytes"], got["lengths"][0]["payload_bytes"]),
                             (393216, 3 * GIB // 2))
        self.assertIn("a window of 2,047 positions", self.size("phi-3-mini-4k")["note"])

    def test_window_blocks(self):
        """Full: 2048. Each of five groups of windows: (1,023 + 2 x 2,496) / 16, and one more."""
        got = self.size("gemma-4-26b-a4b", "--lengths", "65536", "--max-num-batched-tokens", "2496",
                        "--async-scheduling")
        self.assertEqual(got["lengths"][0]["request_blocks"], 65536 // 32 + 5 * (376 + 1))
        self.assertEqual([(g["kind"], g["block_size_tokens"]) for g in got["groups"]],
                         5 * [("sliding", 16)] + [("full", 32)])

    def test_state(self):
        """36 layers: a convolution of 8,192 channels x 3, and 32 x 128 x 128 values; 544 tokens."""
        got = self.size("qwen3-next-80b-a3b", "--tp", "2")
        self.assertEqual(got["state_sequence_bytes"], 36 * (8192 * 3 + 32 * 128 * 128))
        self.assertEqual((got["block_size_tokens"], got["page_bytes"]), (544, 544 * 1024))
        self.assertEqual(got["state_page_padding_bytes"], 544 * 1024 - 548864)
        wide = self.size("qwen3-next-80b-a3b", "--state-dtype", "fp32")
        self.assertEqual(wide["state_sequence_bytes"], 36 * (8192 * 3 * 2 + 32 * 128 * 128 * 4))
        # Three drafts widen the convolution: (4,096 x 6 + 16 x 128 x 128) x 2 / 1,024 = 560 tokens.
        for args, full, blocks in ((("--no-prefix-cache",), 482, 1), ((), 482, 2),
                                   (("--speculative-tokens", "3"), 469, 5),
                                   (("--no-prefix-cache", "--speculative-tokens", "3"), 469, 4),
                                   (("--state-mode", "all"), 482, 482)):
            got = self.size("qwen3-next-80b-a3b", "--tp", "2", "--lengths", "262144", *args)
            self.assertEqual(got["lengths"][0]["request_blocks"], full + 3 * blocks, args)

    def test_padding(self):
        """10 full layers and 52 windows: six groups of ten, eight of whose layers are padding."""
        groups = self.size("gemma-3-27b")["groups"]
        self.assertEqual(sum(g["padding_layers"] for g in groups if g["kind"] == "sliding"), 8)
        self.assertEqual(len(groups), 7)


class PublicCases(SizeCase):
    """Faults that users of other calculators reported, with the values that are right."""
    MODEL = ("--layers", "80", "--heads", "64", "--kv-heads", "8", "--head-dim", "128")

    def test_query_heads_and_units(self):
        """Query heads for KV heads; heads a rank below one; GB for GiB."""
        got = self.size(*self.MODEL, "--kv-budget", "40GiB")
        self.assertEqual((got["position_bytes"], got["num_gpu_blocks"], got["tokens_old_rule"]),
                         (327680, 8192, 131072))
        for tp in ("8", "16"):
            self.assertEqual(self.size(*self.MODEL, "--tp", tp)["position_bytes"], 40960)
        self.assertEqual(self.size(*self.MODEL, "--kv-budget", "40GB")["num_gpu_blocks"], 7629)

    def test_unequal_stages(self):
        """The rank with more memory has fewer blocks, as it has more layers."""
        got = self.size("--layers", "64", "--kv-heads", "8", "--head-dim", "128", "--pp-layers", "56,8",
                        "--kv-budget", "14GiB,4GiB")
        self.assertEqual([(r["num_blocks"], r["stranded_bytes"], r["limiting"]) for r in got["ranks"]],
                         [(4096, 0, True), (8192, 2 * GIB, False)])
        self.assertEqual((got["num_gpu_blocks"], got["tokens_old_rule"]), (4096, 65536))

    def test_the_user_wins(self):
        """A count and a budget are two answers to one question; blocks follow their size."""
        model = ("--layers", "32", "--kv-heads", "8", "--head-dim", "128", "--kv-budget", "10GiB")
        self.wrong(*model, "--num-gpu-blocks", "50", says="--kv-budget.*--num-gpu-blocks exclude")
        for size, blocks in (("16", 5120), ("64", 1280)):
            got = self.size(*model, "--block-size", size)
            self.assertEqual((got["num_gpu_blocks"], got["tokens_old_rule"]), (blocks, 81920))
        self.write("s.yaml", "kv: {num_gpu_blocks: 50, budget: 10GiB, model: llama-3.1-8b}\n"
                             "traffic: {requests: 4, prompt_tokens: 5, output_tokens: 5}\n")
        result = self.call("run", "s.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, "kv.num_gpu_blocks.*kv.budget|kv.budget.*kv.num_gpu_blocks")


class Ranks(SizeCase):
    def test_heads_are_copied(self):
        for tp, size in ((1, 192512), (2, 96256), (4, 48128), (8, 48128), (16, 48128)):
            got = self.size("qwen3-235b-a22b", "--tp", str(tp))
            self.assertEqual(got["position_bytes"], size)
        for tp in ("2", "8"):
            self.assertEqual(self.size("deepseek-v3", "--tp", tp)["position_bytes"], 70272)

    def test_refused(self):
        self.wrong("falcon-7b", "--tp", "2", says="TP 2 .*71 attention heads")
        self.wrong("phi-4-14b", "--tp", "4", says="TP 4 .*10 KV heads")
        self.wrong("llama-3.1-8b", "--dcp", "2", says="DCP 2")
        self.wrong("llama-3.1-8b", "--tp", "8", "--dcp", "2", says="DCP 2")
        self.wrong("gpt-oss-20b", "--tp", "16", "--dcp", "2", says="DCP")
        self.wrong("llama-3.1-8b", "--pp", "33", says="33 pipeline stages for 32 layers")
        self.wrong("llama-3.1-8b", "--pp-layers", "30,3", says="33 layers and the model has 32")
        self.wrong("llama-3.1-8b", "--pp-layers", "30,2", "--pp", "3", says="--pp-layers")

    def test_refused_states(self):
        """Gated DeltaNet's convolution is cut as one; groups of Mamba-2 are cut, or copied if too few."""
        self.write("config.json", json.dumps({**QWEN_NEXT, "num_attention_heads": 48,
                                              "num_key_value_heads": 16, "linear_num_value_heads": 48,
                                              "linear_key_head_dim": 100}))
        # 2 x 16 x 100 + 48 x 128 = 9,344 channels; 3 does not divide them, though 48 heads.
        self.wrong("config.json", "--tp", "3", says="TP 3 ")
        self.assertEqual(self.size("config.json", "--tp", "2")["state_sequence_bytes"],
                         36 * (4672 * 3 + 24 * 100 * 128) * 2)
        mamba = {"model_type": "nemotron_h", "num_hidden_layers": 2, "hidden_size": 4096,
                 "num_attention_heads": 32, "num_key_value_heads": 8, "hybrid_override_pattern": "M*",
                 "mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "conv_kernel": 4}
        for groups, tp, conv in ((8, 4, 2048 + 2 * 2 * 128), (8, 16, 512 + 2 * 128),
                                 (2, 4, 2048 + 2 * 128), (8, 3, None),
                                 (1, 16, 512 + 2 * 128), (1, 4, 2048 + 2 * 128)):
            self.write("config.json", json.dumps({**mamba, "n_groups": groups}))
            if conv is None:
                self.wrong("config.json", "--tp", str(tp), says=f"TP {tp} ")
                continue
            self.assertEqual(self.size("config.json", "--tp", str(tp))["state_sequence_bytes"],
                             (conv * 3 + 8192 // tp * 128) * 2)

    def test_uneven_heads(self):
        """Query heads are shared out evenly among KV heads."""
        for heads in (5, 7, 9, 48, 128):
            self.write("config.json", json.dumps({**LLAMA_70B, "num_key_value_heads": heads}))
            self.wrong("config.json", says=rf"^config\.json:1:\d+: num_key_value_heads: {heads} does not .*64")
            self.wrong("--layers", "80", "--kv-heads", str(heads), "--head-dim", "128", "--heads", "64",
                       says=f"{heads} KV heads do not divide 64 attention heads")
        for heads in (1, 2, 32, 64):
            self.size("--layers", "80", "--kv-heads", str(heads), "--head-dim", "128", "--heads", "64")

    def test_speculation_beside_state(self):
        """A log of Qwen3.6-27B, TP 2, fp8, three drafts of MTP: 423 blocks, 619,479 tokens, 2.36."""
        got = self.size("qwen3.6-27b", "--tp", "2", "--kv-dtype", "fp8", "--mtp",
                        "--speculative-tokens", "3", "--num-gpu-blocks", "423", "--max-model-len", "262144",
                        "--lengths", "262144")
        # The convolution keeps 3 + 3 positions: (5,120 x 6 x 2 + 24 x 128 x 128 x 4) / 1,024 = 1,596.
        self.assertEqual(got["block_size_tokens"], 1600)
        self.assertEqual(got["lengths"][0]["request_blocks"], 164 + 3 * (2 + 3))
        self.assertEqual((got["tokens_new_rule"], got["max_concurrency_hundredths"]), (619479, 236))

    def test_stages(self):
        for pp, layers in ((4, [15, 15, 16, 15]), (3, [20, 21, 20])):
            got = self.size("deepseek-v3", "--pp", str(pp))
            self.assertEqual([s["num_layers"] for s in got["stages"]], layers)
        got = self.size("deepseek-v3", "--pp", "4", "--pp-split", "sglang")
        self.assertEqual([s["num_layers"] for s in got["stages"]], [15, 15, 15, 16])

    def test_stages_of_groups(self):
        """24 layers in turn, 12 a stage: 6 of each of both groups, so a block is 6 pages."""
        got = self.size("gpt-oss-20b", "--pp", "2")
        self.assertEqual([s["block_layers"] for s in got["stages"]], [6, 6])
        # 5 full and 29 windows in 6 groups of 5; three stages of 11, 12 and 11 layers.
        got = self.size("gemma-3-4b", "--pp", "3")
        self.assertEqual([(s["num_layers"], s["block_layers"]) for s in got["stages"]],
                         [(11, 2), (12, 2), (11, 2)])

    def test_smallest_rank_rules(self):
        got = self.size("llama-3.1-8b", "--pp-layers", "28,4", "--kv-budget", "14GiB,4GiB")
        rows = [(r["num_blocks"], r["stranded_bytes"], r["limiting"]) for r in got["ranks"]]
        self.assertEqual(rows, [(8192, 0, True), (32768 // 2, 2 * GIB, False)])
        self.assertEqual(got["num_gpu_blocks"], 8192)
        got = self.size("llama-3.1-8b", "--tp", "2", "--kv-budget", "1GiB,3GiB")
        self.assertEqual([(r["num_blocks"], r["stranded_bytes"]) for r in got["ranks"]],
                         [(1024, 0), (3072, 2 * GIB)])
        self.wrong("llama-3.1-8b", "--tp", "2", "--kv-budget", "1GiB,3GiB,1GiB", says="3 sizes of memory")

    def test_draft_layers(self):
        self.assertEqual(self.size("llama-3.1-8b", "--draft-layers", "1")["position_bytes"],
                         33 * 4096)
        self.assertEqual(self.size("deepseek-v3", "--mtp")["position_bytes"], 62 * 1152)
        self.wrong("llama-3.1-8b", "--mtp", says="--mtp")
        # 79 latent layers and 22 indexers: 64 tokens x 4 ranks of context.
        got = self.size("--layers", "78", "--latent", "512,64", "--indexer", "128",
                        "--indexer-layers", "21", "--draft-layers", "1", "--kv-dtype", "fp8_ds_mla",
                        "--tp", "4", "--dcp", "4", "--block-size", "64", "--kv-budget", "1810000000B",
                        "--max-model-len", "131072")
        self.assertEqual(got["position_bytes"], 79 * 656 + 22 * 132)
        self.assertEqual((got["num_gpu_blocks"], got["tokens_old_rule"],
                          got["max_concurrency_hundredths"]), (516, 132096, 101))


class Budgets(SizeCase):
    def test_terms(self):
        """139.81 GiB x 0.9 less what the log of a Qwen3-Next on two H200 says of the rest."""
        got = self.size("qwen3-next-80b-a3b", "--tp", "2", "--no-prefix-cache", "--gpu", "h200",
                        "--utilisation", "0.9", "--weights", "74.28GiB", "--activation", "5.58GiB",
                        "--other", "1.38GiB")
        budget = got["budget"]
        self.assertEqual(budget["total_bytes"], round(139.81 * GIB))
        pool = budget["total_bytes"] * 9 // 10 - sum(budget[k] for k in (
            "weights_bytes", "activation_bytes", "other_bytes", "graphs_bytes"))
        self.assertEqual(got["ranks"][0]["pool_bytes"], pool)
        self.assertIn(got["num_gpu_blocks"], (7161, 7162, 7163))
        text = " ".join(self.done("size", "llama-3.1-8b", "--gpu", "h100", "--utilisation",
                                  "0.9").stdout.split())
        self.assertIn("[estimate]", text)
        self.assertIn("weights 16,060,522,496 B (14.957 GiB) [estimate]", text)
        self.assertIn("activation 0 B [not given]", text)

    def test_pool_of_a_log(self):
        """The same log to the byte: 7,162 blocks, 973,760 tokens, 14.77."""
        got = self.size("qwen3-next-80b-a3b", "--tp", "2", "--no-prefix-cache", "--kv-budget",
                        "47878721024B")
        self.assertEqual((got["num_gpu_blocks"], got["tokens_old_rule"],
                          got["max_concurrency_hundredths"]), (7162, 973760, 1477))

    def test_new_rule(self):
        for length, tokens, ratio in ((32768, 78433, 239), (65536, 116025, 177), (131072, 152592, 116)):
            got = self.size("gemma-4-26b-a4b", "--kv-budget", "4563402752B", "--max-model-len",
                            str(length), "--max-num-batched-tokens", "2496", "--async-scheduling")
            self.assertEqual((got["num_gpu_blocks"], got["tokens_new_rule"],
                              got["max_concurrency_hundredths"]), (6963, tokens, ratio))

    def test_context_ranks_share_positions(self):
        # 61 layers of 576 values: 70,272 B; of 4,096 positions each of 4 ranks has 1,024.
        got = self.size("deepseek-v3", "--tp", "4", "--dcp", "4", "--kv-budget", "40GiB", "--lengths", "4096,4097",
                        "--prompt", "4096", "--output", "1")
        lengths = {one["positions_tokens"]: one["payload_bytes"] for one in got["lengths"]}
        self.assertEqual(lengths, {4096: 1024 * 70272, 4097: 1025 * 70272})
        said = self.done("size", "deepseek-v3", "--tp", "4", "--dcp", "4", "--kv-budget", "40GiB").stdout
        self.assertIn("of one TP rank, which has one position in 4", " ".join(said.split()))

    def test_fp8_beside_a_sparse_indexer(self):
        # 512 + 4 x 4 + 2 x 64 of a latent vector, 128 + 4 of the indexer.
        flags = ("--layers", "61", "--latent", "512,64", "--indexer", "128")
        for dtype in ("fp8", "fp8_ds_mla"):
            self.assertEqual(self.size(*flags, "--kv-dtype", dtype)["position_bytes"], 61 * (656 + 132))
        self.assertIn("cache fp8, stored as fp8_ds_mla beside a sparse indexer",
                      " ".join(self.done("size", *flags, "--kv-dtype", "fp8").stdout.split()))

    def test_longest(self):
        """What does not fit is named, in bytes, with the length that does."""
        got = self.size("qwen3-30b-a3b", "--kv-dtype", "fp8", "--max-model-len", "221000",
                        "--kv-budget", f"{7630 * 786432}B")
        self.assertEqual((got["max_model_len_fits"], got["longest_request_tokens"],
                          got["max_model_len_request_bytes"]), (False, 122080, 13813 * 786432))
        got = self.size("qwen3-next-80b-a3b", "--tp", "2", "--no-prefix-cache", "--kv-budget",
                        f"{100 * 6684672}B")
        self.assertEqual(got["longest_request_tokens"], (100 - 3) * 544)

    def test_exclusive(self):
        self.wrong("llama-3.1-8b", "--kv-budget", "1GiB", "--num-gpu-blocks", "9", says="exclude")
        self.wrong("llama-3.1-8b", "--gpu", "h100", "--num-gpu-blocks", "9", says="exclude")
        self.wrong("llama-3.1-8b", "--weights", "1GiB", says="--gpu")
        self.wrong("qwen3-8b", "--gpu", "h100", says="--weights is missing")
        self.wrong("llama-3.1-8b", "--gpu", "h101", says="--gpu.*h101")
        self.wrong("llama-3.1-8b", "--gpu", "t4", says="nothing is left")
        self.wrong("llama-3.1-8b", "--kv-budget", "1GB,x", says="--kv-budget: 'x'")
        self.wrong(says="which model")
        self.wrong("llama-9", says="llama-9.*pagedkv models")
        self.wrong("llama-3.1-8b", "--kv-budget", "40", says="'40' has no unit, like 40GB or 40B")
        self.wrong("llama-3.1-8b", "--kv-budget", "40GiB,40", says="'40' has no unit")
        for option in ("--weights", "--activation", "--other", "--graphs"):
            self.wrong("llama-3.1-8b", "--gpu", "h100", option, "5", says=f"{option}: '5' has no unit")
        self.wrong("llama-3.1-8b", "--gpu", "80", says="--gpu: '80' has no unit")
        for pool, says in (("1MiB", "holds none"), ("3MiB", "holds one, which is the null block")):
            self.wrong("llama-3.1-8b", "--kv-budget", pool, says="nothing fits: .*" + says)

    def test_nearest(self):
        """One letter off, in a name or an id; and nothing where nothing is near."""
        for word, near in (("lama-3.1-8b", "llama-3.1-8b"), ("Qwen/Qwen3-14C", "qwen3-14b"),
                           ("gema-3-27b", "gemma-3-27b")):
            self.wrong(word, says=f"the nearest is '{near}'")
        for word in ("xyzzyx", "owner/xyzzyx"):
            self.wrong(word, says=f"'{word}' is neither a known model .* nor a file$")
        for word, near in (("h10", "H100"), ("l40ss", "L40S"), ("mi300", "MI300X")):
            self.wrong("llama-3.1-8b", "--gpu", word, says=f"--gpu: .*the nearest is '{near}'")
        self.small()
        result = self.call("replay", "trace.jsonl", "--kv-budget", "1GiB", "--model", "lama-3.1-8b")
        self.assertEqual(result.returncode, 2)
        self.assertIn("the nearest is 'llama-3.1-8b'", result.stderr)
        self.write("s.yaml", "kv: {budget: 1GiB, model: llama-3.1-8b}\n"
                             "traffic: {requests: 4, prompt_tokens: 5, output_tokens: 5}\n")
        result = self.call("compare", "s.yaml", "--vary", "kv.model=llama-3.1-8b,lama-3.1-70b")
        self.assertEqual(result.returncode, 2)
        self.assertIn("the nearest is 'llama-3.1-70b'", result.stderr)
        result = self.call("trace", "convert", "trace.jsonl", "--to", "azzure", "-o", self.path("x"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("the nearest is 'azure'", result.stderr)
        got = self.size("llama-3.1-8b", "--num-gpu-blocks", "100", "--pp", "2")
        self.assertEqual((got["num_gpu_blocks"], got["num_blocks"]), (100, 99))

    def test_over_the_models_limit(self):
        """131,072 positions are llama's greatest length, of prompt and output together."""
        for prompt, output, limit in ((200000, 0, "200,000"), (131072, 1, "131,073"), (131071, 1, "")):
            more = ["--output", str(output)] if output else []
            text = " ".join(self.done("size", "llama-3.1-70b", "--kv-budget", "40GiB", "--prompt",
                                      str(prompt), *more).stdout.split())
            said = f"prompt and output are {limit} tokens, and max_model_len is 131,072"
            self.assertEqual(said in text, limit != "")
            self.assertEqual("max_model_len is" in text, limit != "")

    def test_one_of_a_kind(self):
        """One is not many."""
        text = " ".join(self.done("size", "--layers", "1", "--kv-heads", "1", "--head-dim", "64",
                                  "--block-size", "1", "--kv-budget", "1GiB").stdout.split())
        self.assertIn("1 layer: 1 full (1 KV head of 64)", text)
        self.assertIn("a block 1 token;", text)
        self.wrong("llama-3.1-8b", "--kv-budget", "1GB,1GB", says="2 sizes of memory for 1 stage of 1 rank;")
        self.wrong("llama-3.1-8b", "--pp", "2", "--pp-layers", "32", says="1 stage, and --pp says 2")

    def test_large_numbers(self):
        got = self.size("llama-3.1-8b", "--kv-budget", f"{2**64 - 1}B", "--lengths", str(2**40))
        self.assertEqual(got["num_gpu_blocks"], (2**64 - 1) // (2 * MIB))
        self.assertEqual(got["lengths"][0]["payload_bytes"], 131072 << 40)


class Configs(SizeCase):
    BROKEN = (
        (LLAMA_70B, "num_hidden_layers", None), (LLAMA_70B, "num_attention_heads", None),
        (LLAMA_70B, "num_attention_heads", 63), (LLAMA_70B, "hidden_size", None),
        (LLAMA_70B, "num_key_value_heads", "8"), (LLAMA_70B, "num_hidden_layers", 0),
        (LLAMA_70B, "num_hidden_layers", 8.5), (MISTRAL, "num_key_value_heads", None),
        (GEMMA_2, "sliding_window", None), (GEMMA_2, "sliding_window", -1),
        (LATENT, "kv_lora_rank", None), (LATENT, "qk_rope_head_dim", None),
        (QWEN_NEXT, "head_dim", None), (QWEN_NEXT, "full_attention_interval", None),
        (QWEN_NEXT, "linear_num_value_heads", None), (JAMBA, "attn_layer_offset", None),
        (JAMBA, "attn_layer_period", 0), (JAMBA, "mamba_d_state", None),
        (JAMBA, "attn_layer_offset", 8), (LLAMA_70B, "layer_types", ["full_attention"] * 79),
        (GEMMA_2, "layer_types", ["dreaming"] * 42), (MISTRAL, "use_sliding_window", "no"),
        (LLAMA_70B, "num_key_value_heads", 65),
    )
    NAMED = {("num_attention_heads", "63"): "head_dim|num_attention_heads",
             ("hidden_size", "None"): "head_dim.*hidden_size"}

    def test_broken(self):
        for config, key, value in self.BROKEN:
            with self.subTest(key, value=value):
                self.config(config)
                self.size("config.json")
                self.config(without(config, key) if value is None else {**config, key: value})
                self.wrong("config.json",
                           says=rf"^config\.json:1:\d+: .*({self.NAMED.get((key, str(value)), key)})")

    def test_place(self):
        self.write("config.json", json.dumps({**LLAMA_70B, "head_dim": "wide"}, indent=1))
        line = 1 + [l.split('"')[1:2] for l in self.read("config.json").decode().splitlines()
                    ].index(["head_dim"])
        self.wrong("config.json", says=rf"^config\.json:{line}:\d+: head_dim")
        self.write("config.json", '{"num_hidden_layers": 80,')
        self.wrong("config.json", says=r"^config\.json:\d+:\d+: ")
        self.wrong("none.json", says=r"^none\.json: ")

    def test_unknown_type(self):
        self.config({**LLAMA_70B, "model_type": "otter"})
        got = self.size("config.json")
        self.assertEqual(got["position_bytes"], 327680)
        self.assertRegex(got["note"], "otter.*taken as plain attention")
        text = " ".join(self.done("size", "config.json").stdout.split())
        self.assertIn("'otter' is not known: taken as plain attention", text)
        self.config({**LLAMA_70B, "model_type": "otter", "sliding_window": 4096})
        self.wrong("config.json", says="layer_types is missing")
        self.config({**LLAMA_70B, "model_type": "otter", "sliding_window": 4096,
                     "layer_types": ["sliding_attention", "full_attention"] * 40})
        got = self.size("config.json")
        self.assertEqual(got["growing_position_bytes"], 327680 // 2)
        self.assertIn("'otter' is not known: taken as attention with the windows", got["note"])
        self.config({**LLAMA_70B, "model_type": "otter", "ssm_state_size": 128})
        self.wrong("config.json", says="ssm_state_size.*otter")
        self.config({**LLAMA_70B, "model_type": "otter", "is_encoder_decoder": True})
        self.wrong("config.json", says="is_encoder_decoder.*otter")
        self.config({**LLAMA_70B, "model_type": "otter", "is_encoder_decoder": False})
        self.size("config.json")

    # Each with the class of models that has it.
    TELLING = (
        ("attn_config", {"kv_n_heads": 8}), ("block_configs", [{"attention": {"no_op": True}}] * 80),
        ("full_attn_idxs", [2, 5, 8]), ("conv_L_cache", 3), ("use_cla", True), ("cla_share_factor", 2),
        ("num_key_value_heads_per_layer", [8] * 80), ("cross_attention_layers", [3, 8]),
        ("num_attention_groups", 1), ("num_query_groups", 8), ("attention_types", [[["global"], 12]]),
        ("window_size", 256), ("attention_window_size", 2048), ("swa_num_key_value_heads", 8),
        ("global_attn_every_n_layers", 3), ("ssm_cfg", {"d_state": 16}), ("state_size", 16),
        ("mamba_d_state", 16), ("time_step_rank", 160), ("lru_width", 2560), ("block_types", ["recurrent"]),
        ("layers_block_type", ["mamba"] * 80), ("linear_attn_config", {"kda_layers": [1]}),
        ("linear_num_value_heads", 32), ("full_attention_interval", 4), ("attn_layer_period", 8),
        ("attn_layer_indices", [9]), ("hybrid_override_pattern", "M*"), ("attn_type_list", [1] * 80),
        ("hybrid_layer_ids", [6]), ("num_kv_shared_layers", 4), ("num_global_key_value_heads", 2),
        ("attention_chunk_size", 8192), ("encoder_layers", 12), ("qk_rope_head_dim", 64),
        ("index_head_dim", 128), ("kv_share_layers", [4]), ("sparse_attention_config", {"block": 64}),
        ("compress_ratios", [4] * 80), ("layer_group_size", 5), ("use_short_conv", True), ("expand_k", 1),
        ("kv_layer_map", [0, 0]), ("kv_dim", 512), ("attention_free_layers", [3]), ("qk_head_dim", 96),
    )

    def test_telling_keys(self):
        """A key that plain attention has no use for refuses an unknown type, named at its place."""
        for key, value in self.TELLING:
            with self.subTest(key):
                self.write("config.json", "{\n" + f'"{key}": {json.dumps(value)},\n' +
                           json.dumps({**LLAMA_70B, "model_type": "otter"})[1:])
                self.wrong("config.json", says=rf"^config\.json:2:1: {key}: model_type 'otter' is not known")
                for off in (None, type(value)()) if key != "num_global_key_value_heads" else (None,):
                    self.config({**LLAMA_70B, "model_type": "otter", key: off})
                    self.assertEqual(self.size("config.json")["position_bytes"], 327680)
        for more in ({"qkv_bias": True, "clip_qkv_to": 8, "fused_qkv_proj": True}, {"use_cla": False, "cla_share_factor": 2}, {"max_window_layers": 28},
                     {"use_sliding_window": False, "sliding_window": 4096},
                     {"vision_config": {"window_size": 112}, "image_encoder": "vit"}):
            text = {**LLAMA_70B, "model_type": "otter"}
            self.config({**more, "text_config": text} if "vision_config" in more else {**text, **more})
            self.assertEqual(self.size("config.json")["position_bytes"], 327680)

    def test_unknown_heads(self):
        """How many KV heads an unknown class has without the key is not known either."""
        otter = {**without(LLAMA_70B, "num_key_value_heads"), "model_type": "otter"}
        self.config(otter)
        self.wrong("config.json", says=r"^config\.json:1:1: num_key_value_heads is missing")
        self.config(without(otter, "model_type"))
        self.wrong("config.json", says=r"num_key_value_heads is missing")
        for keys, heads in (({"multi_query": True}, 1), ({"n_kv_heads": 8}, 8), ({"num_kv_heads": 4}, 4)):
            self.config({**otter, **keys})
            self.assertEqual(self.size("config.json")["position_bytes"], 80 * heads * 512)
        self.config(without(LLAMA_70B, "model_type"))
        self.assertIn("no model_type: taken as plain attention", self.size("config.json")["note"])

    def test_unknown_latent(self):
        self.config({**LATENT, "model_type": "otter"})
        got = self.size("config.json")
        self.assertEqual(got["position_bytes"], 61 * 576 * 2)
        self.assertIn("'otter' is not known: taken as a latent cache (MLA)", got["note"])
        self.assertNotIn("plain attention", got["note"])
        for name in ("longcat_flash", "minicpm3"):
            self.config({**LATENT, "model_type": name})
            self.wrong("config.json", says=rf"^config\.json:1:\d+: model_type: '{name}' cannot be sized")

    def test_nested_heads(self):
        """DBRX, and MPT, whose heads are as many as those of the query unless it says so."""
        dbrx = {"model_type": "dbrx", "n_layers": 40, "n_heads": 48, "d_model": 6144,
                "max_seq_len": 32768, "attn_config": {"kv_n_heads": 8}, "torch_dtype": "bfloat16"}
        got = self.check(dbrx, 40 * 8 * 128 * 2 * 2)
        self.assertEqual((got["max_model_len_tokens"], got.get("note", "")), (32768, ""))
        self.config({**dbrx, "attn_config": {"clip_qkv": 8}})
        self.wrong("config.json", says=r"attn_config\.kv_n_heads is missing")
        for value in (5, [8], [[]], "kv_n_heads", [{}]):
            self.config({**dbrx, "attn_config": value})
            self.wrong("config.json", says=r"^config\.json:1:\d+: attn_config: an object")
        self.config({**dbrx, "attn_config": {"kv_n_heads": 7}})
        self.wrong("config.json", says=r"kv_n_heads: 7 does not divide")
        mpt = {**dbrx, "model_type": "mpt", "n_layers": 32, "n_heads": 32, "d_model": 4096}
        self.check({**mpt, "attn_config": {"attn_type": "multihead_attention"}}, 32 * 32 * 512)
        self.check(without(mpt, "attn_config"), 32 * 32 * 512)
        self.check(mpt, 32 * 8 * 512)
        self.config({**mpt, "attn_config": {"attn_type": "multiquery_attention"}})
        self.wrong("config.json", says=r"attn_config\.kv_n_heads is missing")

    def test_latent_switched_off(self):
        """A DeepSeek of 12 layers, 10 heads of 128 and no latent vector is plain attention."""
        plain = {"model_type": "deepseek_v2", "num_hidden_layers": 12, "num_attention_heads": 10,
                 "num_key_value_heads": 10, "hidden_size": 1280, "kv_lora_rank": None,
                 "qk_rope_head_dim": 0, "qk_nope_head_dim": 0, "v_head_dim": 0, "use_mla": False,
                 "torch_dtype": "bfloat16"}
        self.check(plain, 12 * 10 * 128 * 2 * 2)
        self.check({"model_type": "deepseek_vl_v2", "language_config": plain}, 12 * 10 * 128 * 2 * 2)
        self.config({**LATENT, "use_mla": False})
        self.wrong("config.json", says=r"^config\.json:1:\d+: use_mla: false, and kv_lora_rank says")
        self.config({**without(LATENT, "kv_lora_rank"), "use_mla": False})
        self.wrong("config.json", says="use_mla: false, and qk_rope_head_dim says")
        self.config(without(plain, "use_mla"))
        self.wrong("config.json", says="kv_lora_rank is missing")

    def test_dtypes(self):
        for value in (5, True, [], {}):
            self.config({**LLAMA_70B, "torch_dtype": value})
            self.wrong("config.json", says=r"^config\.json:1:\d+: torch_dtype: a name in quotes")
        for config, note in (({**LLAMA_70B, "torch_dtype": "int4"}, "torch_dtype 'int4' is not known: taken"),
                             (without(LLAMA_70B, "torch_dtype"), "it says no dtype: taken as bf16")):
            self.config(config)
            self.assertIn(note, self.size("config.json")["note"])

    def test_odd_values(self):
        self.config({**QWEN_NEXT, "model_type": "nemotron_h", "num_hidden_layers": 2,
                     "hybrid_override_pattern": "*\0"})
        self.wrong("config.json", says="hybrid_override_pattern: character 2 is none of")
        for value in (5, ["llama"], {}, True):
            self.config({**LLAMA_70B, "model_type": value})
            self.wrong("config.json", says=r"^config\.json:1:\d+: model_type: a name in quotes")
        for value in ("1e21", "1000000000000000019884624838656", "1e+30", "1.0e30", "4294967296"):
            for more, length in (({}, 131072), ({"max_position_embeddings": None}, None)):
                self.write("config.json", json.dumps({**LLAMA_70B, **more})[:-1] +
                           f', "model_max_length": {value}}}')
                self.assertEqual(self.size("config.json").get("max_model_len_tokens"), length)
        for value in ("1.5", '"long"', "-1", "0", "1e3", "[]"):
            self.write("config.json", json.dumps(LLAMA_70B)[:-1] + f', "model_max_length": {value}}}')
            self.wrong("config.json", says="model_max_length")

    def check(self, keys, position, growing=None, **more):
        self.config(keys)
        got = self.size("config.json", "--kv-dtype", "bf16")
        self.assertEqual(got["position_bytes"], position)
        self.assertEqual(got["growing_position_bytes"], position if growing is None else growing)
        for key, value in more.items():
            self.assertEqual(got[key], value)
        return got

    def test_names_of_keys(self):
        heads = {"torch_dtype": "float16"}
        self.check({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, **heads}, 36864)
        self.check({"model_type": "falcon", "n_layer": 60, "n_head": 128, "n_head_kv": 8,
                    "hidden_size": 8192, "new_decoder_architecture": True, **heads}, 122880)
        self.check({"model_type": "RefinedWebModel", "n_layer": 32, "n_head": 71, "hidden_size": 4544,
                    "multi_query": True, **heads}, 8192)
        self.check({"model_type": "chatglm", "num_layers": 28, "num_attention_heads": 32,
                    "multi_query_attention": True, "multi_query_group_num": 2, "kv_channels": 128,
                    "hidden_size": 4096, **heads}, 28 * 2 * 512)
        self.check({"model_type": "qwen", "num_hidden_layers": 32, "num_attention_heads": 32,
                    "kv_channels": 128, "hidden_size": 5120, **heads}, 32 * 32 * 512)

    def test_quantised_weights_change_nothing(self):
        self.check({**LLAMA_70B, "quantization_config": {"quant_method": "fp8"}}, 327680)

    def test_windows(self):
        self.check({**MISTRAL, "sliding_window": None}, 131072)
        self.check(MISTRAL, 131072, 0)
        # The engine gives the window to every layer of a class that does not deal it out.
        self.check({**MISTRAL, "model_type": "llama"}, 131072, 0)
        self.check({**MISTRAL, "model_type": "llama", "sliding_window_pattern": 4}, 131072, 8 * 4096)
        self.check({**MISTRAL, "model_type": "llama", "use_sliding_window": False}, 131072)
        self.check({**MISTRAL, "sliding_window": [4096] * 8 + [None] * 24}, 131072, 24 * 4096)
        qwen = {**MISTRAL, "model_type": "qwen2", "sliding_window": 131072, "max_window_layers": 28}
        self.check({**qwen, "use_sliding_window": False}, 131072)
        self.check({**qwen, "use_sliding_window": True}, 131072, 28 * 4096)
        self.check({**GEMMA_2, "model_type": "cohere2", "num_hidden_layers": 32}, 32 * 8192, 8 * 8192)
        self.check({**GEMMA_2, "model_type": "gemma3_text", "num_hidden_layers": 30,
                    "sliding_window_pattern": 5}, 30 * 8192, 6 * 8192)

    def test_nested(self):
        """A shipped Gemma 3 4B says four sizes; heads, KV heads and their size are the class's."""
        text = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
                "sliding_window": 1024}
        self.check({"model_type": "gemma3", "text_config": text, "torch_dtype": "bfloat16",
                    "vision_config": {"num_hidden_layers": 27}}, 139264, 20480)
        self.check({"model_type": "deepseek_vl_v2", "language_config": LATENT}, 70272)

    def test_chunks(self):
        llama_4 = {**LLAMA_70B, "model_type": "llama4_text", "num_hidden_layers": 48,
                   "num_attention_heads": 40, "head_dim": 128, "attention_chunk_size": 8192}
        self.check({**llama_4, "no_rope_layers": []}, 196608, 49152)
        got = self.check({**llama_4, "no_rope_layers": [1, 0] * 24}, 196608, 98304)
        self.assertEqual({t["kind"] for t in got["layer_types"]}, {"full", "chunked"})

    def test_sparse_index(self):
        self.config({**LATENT, "model_type": "deepseek_v32", "index_head_dim": 128})
        self.assertEqual(self.size("config.json", "--kv-dtype", "fp8_ds_mla")["position_bytes"],
                         61 * (656 + 132))

    def test_sparse_index_not_said(self):
        """Both classes have indexers of 128 values; another type with the keys of one has to say."""
        for kind in ("deepseek_v32", "glm_moe_dsa"):
            self.config({**LATENT, "model_type": kind})
            got = self.size("config.json", "--kv-dtype", "fp8_ds_mla")
            self.assertEqual(got["position_bytes"], 61 * (656 + 132))
            self.assertIn("index_head_dim is not in the config: taken as its class has it (128)",
                          got["note"])
        for kind in ("deepseek_v3", "kimi_k2", "new_latent"):
            for key in ("index_topk", "index_n_heads"):
                self.config({**LATENT, "model_type": kind, key: 64})
                self.wrong("config.json", says=r"^config.json:1:1: index_head_dim is missing: "
                           f"{key} says that there is an indexer$")

    def test_own_heads_not_said(self):
        """Half of MiMo's KV heads or Gemma's head sizes are not dropped without a word."""
        mimo = {"model_type": "mimo_v2_flash", "num_hidden_layers": 4, "num_attention_heads": 64,
                "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "sliding_window": 128,
                "swa_num_key_value_heads": 8, "swa_head_dim": 192, "swa_v_head_dim": 128,
                "hybrid_layer_pattern": [0, 1, 1, 1]}
        gemma = {**GEMMA_2, "model_type": "gemma4_text", "num_hidden_layers": 6, "global_head_dim": 512,
                 "sliding_window": 512, "sliding_window_pattern": 6}
        for whole, keys in ((mimo, ("v_head_dim", "swa_num_key_value_heads")), (gemma, ("global_head_dim",))):
            self.config(whole)
            self.size("config.json")
            for key in keys:
                self.config(without(whole, key))
                self.wrong("config.json", says=f"^config.json:1:1: {key} is missing")

    def test_state_dtype(self):
        """What the state is stored in is a word that is known, or refused at its place."""
        for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
            for bad, said in ((["float32"], "a list"), (32, "'32'"), ("float33", "'float33'"),
                              ("fp8", "'fp8'"), ("my_float32", "'my_float32'"), (True, "'true'"),
                              ({"a": 1}, "an object")):
                self.config({key: bad, **QWEN_NEXT})
                self.wrong("config.json", says=f"^config.json:1:{len(key) + 6}: {key}: {said}")
            sizes = []
            for word in ("auto", "bfloat16", "float16", "float32", "torch.float32", None):
                self.config({**QWEN_NEXT, key: word})
                sizes.append(self.size("config.json")["state_sequence_bytes"])
            self.assertEqual(len(set(sizes[:3] + sizes[5:])), 1)
            self.assertEqual(sizes[3], sizes[4])
            self.assertGreater(sizes[3], sizes[0])

    def test_defaults_are_told(self):
        """Each key that is not there and changes bytes is told, however many there are."""
        small = {"num_hidden_layers": 12, "hidden_size": 2304, "sliding_window": 512}
        heads = {"num_attention_heads": 8, "num_key_value_heads": 8}
        for config, said in (
                ({"model_type": "gemma3_text", **small},
                 {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
                  "sliding_window_pattern": 6}),
                ({"model_type": "llama4_text", **small, **heads},
                 {"no_rope_layer_interval": 4, "attention_chunk_size": 8192})):
            self.config(config)
            note = self.size("config.json")["note"]
            for key, value in said.items():
                self.assertIn(f"{key} is not in the config: taken as its class has it ({value})", note)
            self.assertTrue(note.endswith("max_position_embeddings is not in the config: no longest "
                                          "request is told"), note)
            self.config({**config, **said, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"})
            self.assertNotIn("note", self.size("config.json"))
        self.config({**without(QWEN_NEXT, "mamba_ssm_dtype"), "torch_dtype": "bfloat16"})
        self.assertIn("mamba_ssm_dtype is not in the config: the state is taken as bf16",
                      self.size("config.json")["note"])

    def test_weights_of_few_bits(self):
        """A dtype that no cache takes over is told, as one that is not known."""
        for word in ("fp8", "int8", "float8_x"):
            self.config({**LLAMA_70B, "torch_dtype": word})
            self.assertIn(f"torch_dtype '{word}'", self.size("config.json")["note"])

    def test_shared_index(self):
        """GLM-5.2: an indexer in layers 0, 1, 2 and every 4th from 6, 21 of 78, and in the draft layer."""
        full = {0, 1, 2, *range(6, 78, 4)}
        types = ["full" if i in full else "shared" for i in range(78)]
        glm = {**LATENT, "model_type": "glm_moe_dsa", "num_hidden_layers": 78, "num_attention_heads": 64,
               "index_head_dim": 128, "index_topk_freq": 4, "indexer_types": types}
        self.config(glm)
        packed = ("config.json", "--kv-dtype", "fp8_ds_mla")
        self.assertEqual(types.count("full"), 21)
        for model in ("config.json", "glm-5.2"):
            got = self.size(model, *packed[1:])
            self.assertEqual(got["position_bytes"], 78 * 656 + 21 * 132)
            # 19, 20, 20 and 19 layers a stage.
            stages = self.size(model, *packed[1:], "--pp", "4")["stages"]
            self.assertEqual([s["position_bytes"] for s in stages], [
                len(part) * 656 + 132 * len(full & set(part))
                for part in (range(0, 19), range(19, 39), range(39, 59), range(59, 78))])
            got = self.size(model, *packed[1:], "--mtp", "--tp", "4", "--dcp", "4", "--block-size", "64",
                            "--kv-budget", "1810000000B", "--max-model-len", "131072")
            self.assertEqual((got["position_bytes"], got["num_gpu_blocks"], got["tokens_old_rule"],
                              got["max_concurrency_hundredths"]), (54728, 516, 132096, 101))
        self.config(without(glm, "index_topk_freq"))
        self.assertEqual(self.size(*packed)["position_bytes"], 78 * 656 + 21 * 132)
        for change, says in ((without(glm, "indexer_types"), "indexer_types is missing: index_topk_freq"),
                             ({**without(glm, "index_head_dim"), "model_type": "deepseek_v3"},
                              "index_head_dim is missing"),
                             ({**glm, "indexer_types": types[1:]}, "indexer_types: 77 items for 78"),
                             ({**glm, "indexer_types": ["some"] * 78}, "indexer_types: 'some'")):
            self.config(change)
            self.wrong(*packed, says=says)

    def test_heads_by_type(self):
        gemma_4 = {**GEMMA_2, "model_type": "gemma4_text", "num_hidden_layers": 35,
                   "num_attention_heads": 8, "num_key_value_heads": 1, "global_head_dim": 512,
                   "sliding_window": 512, "num_kv_shared_layers": 20,
                   "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7}
        self.check(gemma_4, 18432, 3 * 2048)
        self.check({"model_type": "mimo_v2_flash", "num_hidden_layers": 4, "num_attention_heads": 64,
                    "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128,
                    "swa_num_key_value_heads": 8, "sliding_window": 128,
                    "hybrid_layer_pattern": [0, 1, 1, 1], "dtype": "bfloat16"},
                   (4 + 3 * 8) * 320 * 2, 4 * 320 * 2)

    def test_states(self):
        self.check(JAMBA, 16384, state_sequence_bytes=28 * (8192 * 3 + 8192 * 16) * 2)
        self.check({**QWEN_NEXT, "mamba_ssm_dtype": "float32"}, 24576,
                   state_sequence_bytes=36 * (8192 * 3 * 2 + 32 * 128 * 128 * 4))
        mamba_2 = 128 * 64 + 2 * 128, 128 * 64 * 128
        self.check({"model_type": "bamba", "num_hidden_layers": 32, "hidden_size": 4096,
                    "num_attention_heads": 32, "num_key_value_heads": 8,
                    "attn_layer_indices": [9, 18, 27], "mamba_n_heads": 128, "mamba_d_head": "auto",
                    "mamba_expand": 2, "mamba_n_groups": 1, "mamba_d_state": 128,
                    "mamba_d_conv": 4}, 12288,
                   state_sequence_bytes=29 * (mamba_2[0] * 3 + mamba_2[1]) * 2)
        self.check({"model_type": "minimax_m1", "num_hidden_layers": 16, "num_attention_heads": 64,
                    "num_key_value_heads": 8, "head_dim": 128, "attn_type_list": ([0] * 7 + [1]) * 2},
                   2 * 4096, state_sequence_bytes=14 * 64 * 128 * 128 * 2)
        self.check({"model_type": "minimax_m2", "num_hidden_layers": 62, "num_attention_heads": 48,
                    "num_key_value_heads": 8, "head_dim": 128, "attn_type_list": [1] * 62}, 62 * 4096)
        self.check({"model_type": "nemotron_h", "num_hidden_layers": 5, "hidden_size": 4096,
                    "num_attention_heads": 32, "num_key_value_heads": 8,
                    "hybrid_override_pattern": "M-M*-", "mamba_num_heads": 128, "mamba_head_dim": 64,
                    "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4}, 4096,
                   state_sequence_bytes=2 * ((8192 + 2 * 8 * 128) * 3 + 8192 * 128) * 2)

    def test_assumed_heads(self):
        """Without the key a class has one KV head a query head, or its own number, and that is said."""
        said = "num_key_value_heads is not in the config: taken as "
        gemma = {**GEMMA_2, "model_type": "gemma3_text"}
        for config, note in ((LLAMA_70B, said + "num_attention_heads (64)"),
                             (gemma, said + "its class has it (4)")):
            self.config(config)
            self.assertNotIn(said, self.done("size", "config.json").stdout)
            self.config(without(config, "num_key_value_heads"))
            self.assertIn(note, " ".join(self.done("size", "config.json").stdout.split()))
        self.config({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768})
        self.assertNotIn(said, self.done("size", "config.json").stdout)

    def test_length(self):
        self.config({**LLAMA_70B, "max_position_embeddings": 8192, "model_max_length": 131072})
        self.assertEqual(self.size("config.json")["max_model_len_tokens"], 131072)


VLLM = """\
INFO 09-30 [utils.py:233] non-default args: {{'model': 'Qwen/Qwen3-14B', 'max_model_len': 32768}}
INFO 09-30 [core.py:77] Initializing a V1 LLM engine (v0.10.2) with config: model='Qwen/Qwen3-14B', \
dtype=torch.bfloat16, max_seq_len=32768, tensor_parallel_size=1, kv_cache_dtype=auto, \
enable_prefix_caching=True
(EngineCore_0 pid=9) \033[36mINFO\033[0m [gpu_worker.py:298] Available KV cache memory: 6.51 GiB
(EngineCore_0 pid=9) INFO [kv_cache_utils.py:864] GPU KV cache size: {tokens} tokens
(EngineCore_0 pid=9) INFO [kv_cache_utils.py:868] Maximum concurrency for 32,768 tokens per request: \
{ratio}x
"""
SGLANG = """\
[2025-07-21 10:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-235B-A22B', tp_size=4, \
page_size=1, kv_cache_dtype='auto')
[2025-07-21 10:00:09 TP0] KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB
[2025-07-21 10:00:11 TP0] max_total_num_tokens=367404, chunked_prefill_size=8192, context_len=40960
"""


class Logs(SizeCase):
    def test_agrees(self):
        self.write("log", VLLM.format(tokens="42,656", ratio="1.30"))
        text = self.done("size", "--log", "log").stdout
        self.assertIn("the log agrees with the model", text)
        self.assertIn("agrees: 2,666 blocks; computed 2,664 to 2,668", " ".join(text.split()))
        part = text[text.index("kv:"):]
        self.assertEqual(part, "kv:\n  block_size: 16\n  num_gpu_blocks: 2666\n"
                               "scheduler:\n  max_model_len: 32768\n")
        self.write("scenario.yaml", part + "traffic: {requests: 3, prompt_tokens: 9, output_tokens: 9}\n")
        self.done("run", "scenario.yaml", "-o", "out", "-q")
        self.assertEqual(self.summary("out")["blocks"]["num_blocks"], 2665)

    def test_differs(self):
        """Half the tokens, and one engine, so no other rank to blame; or another ratio."""
        for tokens, ratio in (("21,328", "0.65"), ("42,656", "1.31"), ("42,660", "1.30")):
            self.write("log", VLLM.format(tokens=tokens, ratio=ratio))
            result = self.call("size", "--log", "log")
            self.assertEqual(result.returncode, 1, tokens)
            self.assertIn("the log does not agree with the model", result.stdout)
        self.write("log", VLLM.format(tokens="42,656", ratio="1.30"))
        self.assertEqual(self.call("size", "llama-3.1-8b", "--log", "log").returncode, 1)

    def test_two_ranks(self):
        """Each rank prints what it has; the smaller one, 13.43 GiB, has the 4,785 blocks."""
        self.write("log", "tensor_parallel_size=2,\n[rank 0] Available KV cache memory: 16.85 GiB\n"
                          "[rank 1] Available KV cache memory: 13.43 GiB\n"
                          "GPU KV cache size: 76,560 tokens\n")
        got = json.loads(self.done("size", "glm-4.6", "--log", "log", "--json").stdout)
        self.assertEqual((got["num_gpu_blocks"], got["highest_blocks"]), (4785, 4785))
        self.assertEqual([c["verdict"] for c in got["checks"]], ["agrees", "agrees"])

    def test_sglang(self):
        """94 layers x 1 KV head x 128 x 2 bytes x 367,404 tokens are 8.234 GiB, printed as GB."""
        self.assertEqual(94 * 128 * 2 * 367404 * 100 // GIB, 823)
        self.write("log", SGLANG)
        got = json.loads(self.done("size", "--log", "log", "--json").stdout)
        self.assertTrue(got["agrees"])
        self.assertEqual((got["num_gpu_blocks"], got["block_bytes"]), (367404, 94 * 128 * 4))
        self.assertIn("num_blocks: 367404\n", got["scenario"])

    def test_old_engine(self):
        """4 GiB of swap space are 2,048 blocks of 2 MiB; no null block."""
        self.write("log", "the rest of the memory reserved for KV Cache is 3.81GiB.\n"
                          "INFO 12-02 # GPU blocks: 1952, # CPU blocks: 2048\n"
                          "Maximum concurrency for 20000 tokens per request: 1.56x\n")
        got = json.loads(self.done("size", "llama-3.1-8b", "--log", "log", "--json").stdout)
        self.assertEqual([(c["check"], c["verdict"]) for c in got["checks"]],
                         [("blocks", "agrees"), ("concurrency_hundredths", "agrees"),
                          ("cpu_blocks", "agrees")])
        self.assertIn("  num_blocks: 1952\n", got["scenario"])

    def test_groups(self):
        """The part has the model's groups, and is a scenario's."""
        self.write("log", "'max_model_len': 65536, 'kv_cache_memory_bytes': 4563402752, "
                          "'max_num_batched_tokens': 2496}\nAsynchronous scheduling is enabled.\n"
                          "GPU KV cache size: 116,025 tokens\n"
                          "Maximum concurrency for 65,536 tokens per request: 1.77x\n")
        got = json.loads(self.done("size", "gemma-4-26b-a4b", "--log", "log", "--json").stdout)
        self.assertEqual((got["num_gpu_blocks"], got["token_rule"]), (6963, "new"))
        self.write("scenario.yaml", got["scenario"] +
                   "traffic: {requests: 3, prompt_tokens: 9, output_tokens: 9}\n")
        self.done("run", "scenario.yaml", "-o", "out", "-q")
        self.assertIn("groups: [" + "{type: sliding, window: 1024}, " * 5 +
                      "{type: full, block_size: 32}]", self.read("out", "scenario.yaml").decode())

    def test_groups_as_of_the_model(self):
        """A scenario with the log's groups and one with the model have the same groups."""
        self.write("log", "Available KV cache memory: 4.66 GiB\nGPU KV cache size: 519,681 tokens\n"
                          "Maximum concurrency for 16,384 tokens per request: 31.72x\n")
        got = json.loads(self.done("size", "gemma-4-e2b", "--log", "log", "--json", "--async-scheduling",
                                   "--max-num-batched-tokens", "2048").stdout)
        traffic = "traffic: {requests: 30, prompt_tokens: 700, output_tokens: 70}\n"
        self.write("log.yaml", got["scenario"] + traffic)
        self.write("model.yaml", "kv: {model: gemma-4-e2b, num_gpu_blocks: 50877}\nscheduler: "
                   "{max_model_len: 16384, max_num_batched_tokens: 2048, async_scheduling: true}\n" +
                   traffic)
        for name in ("log", "model"):
            self.done("run", f"{name}.yaml", "-q", "-o", f"of_{name}")
        self.assertEqual(self.summary("of_log")["blocks"]["num_gpu_blocks"], 50877)
        self.assertEqual(self.read("of_log", "steps.csv"), self.read("of_model", "steps.csv"))

    def test_unknown_model(self):
        """Counts are held against each other: 127,626 blocks x 16 tokens."""
        self.write("log", "# GPU blocks: 127626\nGPU KV cache size: 2,042,016 tokens\n"
                          "Maximum concurrency for 2,048 tokens per request: 997.08x\n")
        result = self.call("size", "--log", "log")
        text = result.stdout
        self.assertEqual(result.returncode, 1)
        self.assertIn("the log does not say enough to tell", text)
        self.assertIn("not known", text)
        self.assertIn("num_gpu_blocks: 127626", text)

    def verdicts(self, *arguments):
        """The verdict with its exit status, and that of each check."""
        result = self.call("size", *arguments, "--log", "log", "--json")
        got = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0 if got["verdict"] == "agrees" else 1)
        self.assertEqual(got["agrees"], got["verdict"] == "agrees")
        return got["verdict"], {c["check"]: c["verdict"] for c in got["checks"]}

    def test_cannot_tell(self):
        """Any model has 131,072 tokens in blocks; the bytes of these tell one from another."""
        counts = ("GPU KV cache size: 131,072 tokens\n"
                  "Maximum concurrency for 131,072 tokens per request: 1.00x\n")
        models = ("llama-3.1-70b", "llama-3.1-8b", "gemma-3-27b")
        self.write("log", counts)
        for model in models:
            self.assertEqual(self.verdicts(model)[0], "cannot_tell", model)
            self.assertIn("the log does not say enough to tell",
                          self.call("size", model, "--log", "log").stdout)
        for memory in ("Available KV cache memory: 40.00 GiB\n", "kv_cache_memory_bytes=42949672960,\n"):
            self.write("log", memory + counts)
            self.assertEqual([self.verdicts(model)[0] for model in models],
                             ["agrees", "differs", "differs"], memory)
            self.write("log", memory)
            self.assertEqual(self.verdicts(models[0]), ("cannot_tell", {}))
        self.write("log", "# GPU blocks: 8192, # CPU blocks: 2048\n")
        self.assertEqual(self.verdicts(models[0])[0], "cannot_tell")

    def test_other_tokens(self):
        """40 GiB / 5 MiB = 8,192 blocks of 16; what is printed of twice as many is not of it."""
        self.write("log", "Available KV cache memory: 40.00 GiB\nGPU KV cache size: 262,144 tokens\n"
                          "Maximum concurrency for 131,072 tokens per request: 2.00x\n")
        self.assertEqual(self.verdicts("llama-3.1-70b"), ("differs", {
            "blocks": "differs", "tokens": "differs", "concurrency_hundredths": "differs"}))
        text = " ".join(self.call("size", "llama-3.1-70b", "--log", "log").stdout.split())
        self.assertIn("differs: 262,144 tokens; computed 131,040 to 131,088", text)

    def test_fewer_blocks(self):
        """At TP 2 a block takes half: 16,384 would fit. A rank with less has to be heard of."""
        memory = "Available KV cache memory: {} GiB\n"
        tokens = "GPU KV cache size: 131,072 tokens\n"
        self.write("log", memory.format("40.00") + tokens)
        self.assertEqual(self.verdicts("llama-3.1-70b", "--tp", "2")[0], "differs")
        self.assertEqual(self.verdicts("llama-3.1-70b", "--tp", "2", "--ranks-differ"),
                         ("agrees", {"blocks": "smallest_rank", "tokens": "smallest_rank"}))
        self.write("log", memory.format("40.00") + memory.format("39.00") + tokens)
        self.assertEqual(self.verdicts("llama-3.1-70b", "--tp", "2")[0], "differs")
        self.assertEqual(self.verdicts("llama-3.1-70b", "--tp", "4")[0], "agrees")
        self.write("log", memory.format("40.00") * 2 + tokens)
        self.assertEqual(self.verdicts("llama-3.1-70b", "--tp", "4")[0], "differs")

    def test_alone(self):
        """A question of another pool is not answered from a log."""
        self.write("log", "Available KV cache memory: 40.00 GiB\nGPU KV cache size: 131,072 tokens\n")
        for option, value in (("--kv-budget", "1GiB"), ("--num-gpu-blocks", "9"), ("--gpu", "h100"),
                              ("--utilisation", "0.9"), ("--prompt", "9"), ("--lengths", "9"),
                              ("--max-model-len", "9")):
            self.wrong("llama-3.1-70b", "--log", "log", option, value,
                       says=f"--log and {option} exclude each other")
        self.wrong("llama-3.1-70b", "--ranks-differ", says="goes with --log")

    def test_no_log(self):
        self.write("log", "hello\n")
        self.wrong("--log", "log", says="^log: no line")
        self.wrong("--log", "none", says="^none: ")


class Scenarios(SizeCase):
    TRAFFIC = "traffic: {requests: 40, prompt_tokens: 500, output_tokens: 50}\n"

    def test_budget(self):
        self.write("s.yaml", "kv: {budget: 1GiB, model: llama-3.1-8b}\n" + self.TRAFFIC)
        text = self.done("run", "s.yaml", "-o", "out").stdout
        self.assertEqual(self.summary("out")["blocks"]["num_gpu_blocks"], 512)
        self.assertIn("1,073,741,824 B (1 GiB) holds 512 blocks", text)
        self.done("run", self.path("out", "scenario.yaml"), "-o", "again", "-q")
        self.same_contents("out", "again")
        for key, value, blocks in (("kv.dtype", "fp8", 1024), ("kv.tp", "2", 1024),
                                   ("kv.model", "llama-3.1-70b", 204), ("kv.num_blocks", "77", 78),
                                   ("kv.budget", "1GB", 476), ("kv.block_size", "32", 256),
                                   ("kv.pp", "2", 1024)):
            self.done("run", "s.yaml", "-q", "-o", "out", "--set", f"{key}={value}")
            self.assertEqual(self.summary("out")["blocks"]["num_gpu_blocks"], blocks, key)

    def test_blocks_over_a_budget(self):
        """What is said last wins, and what is kept says nothing of the budget any more."""
        self.write("s.yaml", "kv: {budget: 1GiB, model: llama-3.1-8b}\n" + self.TRAFFIC)
        text = self.done("run", "s.yaml", "-o", "out", "--set", "kv.num_blocks=100").stdout
        self.assertEqual(self.summary("out")["blocks"]["num_gpu_blocks"], 101)
        kept = self.read("out", "scenario.yaml").decode()
        self.assertIn("num_blocks: 100\n", kept)
        self.assertNotIn("budget:", kept)
        self.assertNotIn("1 GiB", text)
        result = self.call("run", "s.yaml", "--set", "kv.num_blocks=100", "--set", "kv.budget=1GiB")
        self.assertEqual(result.returncode, 2)
        self.assertIn("exclude each other", result.stderr)

    def test_replay(self):
        self.small()
        self.done("replay", "trace.jsonl", "--kv-budget", "1GiB", "--model", "llama-3.1-8b",
                  "--kv-dtype", "fp8", "--tp", "2", "-q", "-o", "out")
        self.assertEqual(self.summary("out")["blocks"]["num_gpu_blocks"], 2048)
        text = self.done("replay", "trace.jsonl", "--kv-budget", "14GiB,4GiB", "--model",
                         "llama-3.1-8b", "--pp-layers", "28,4").stdout
        self.assertIn("stranded 2,147,483,648 B (2 GiB)", " ".join(text.split()))

    def test_drafts(self):
        """The cache holds the draft head's layer too, and each draft a block of state."""
        spec = "speculation: {method: %s, num_tokens: 3, acceptance_rate: 0.5}\n"
        for model, method, more, layer, layers in (
                ("llama-3.1-8b", "eagle", "", 65536, 33), ("deepseek-v3", "eagle", "", 18432, 62),
                ("llama-3.1-8b", "eagle", ", draft_layers: 0", 65536, 32),
                ("llama-3.1-8b", "draft_model", ", draft_layers: 2", 65536, 34),
                ("llama-3.1-8b", "draft_model", "", 65536, 32), ("llama-3.1-8b", "ngram", "", 65536, 32)):
            self.write("s.yaml", f"kv: {{budget: 1GiB, model: {model}{more}}}\n" + spec % method + self.TRAFFIC)
            text = " ".join(self.done("run", "s.yaml", "-o", "out").stdout.split())
            self.assertEqual(self.summary("out")["blocks"]["num_gpu_blocks"], GIB // (layer * layers))
            self.assertIn(f"blocks of {layer * layers:,} B", text)
            self.done("run", self.path("out", "scenario.yaml"), "-o", "again", "-q")
            self.same_contents("out", "again")
        # 1,600 tokens x 1,024 B x 17 layers; 423 of them are what an engine had.
        self.write("s.yaml", "kv: {budget: 11781734400B, model: qwen3.6-27b, tp: 2, dtype: fp8, "
                   "draft_layers: 1}\n" + spec % "draft_model" + self.TRAFFIC)
        text = " ".join(self.done("run", "s.yaml", "-o", "out").stdout.split())
        self.assertIn("holds 423 blocks of 27,852,800 B", text)
        self.assertIn("1 draft layer", text)
        self.assertIn("KV groups state 5, state 5, state 5, full", text)
        self.write("s.yaml", "kv: {num_blocks: 9, draft_layers: 1}\n" + self.TRAFFIC)
        result = self.call("run", "s.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^s\.yaml:1:\d+: kv\.draft_layers.*kv\.model")

    def draw(self, draw, model):
        """The same question of a model for `size` and for a scenario."""
        tp, pp = draw.choice((1, 1, 2, 3, 4, 8)), draw.choice((1, 1, 2, 3, 4))
        kv = {"dtype": draw.choice(("bf16", "fp8", "nvfp4", "fp32", "int8_token_head", "fp8_ds_mla")),
              "tp": tp, "pp": pp, "block_size": draw.choice((1, 8, 16, 48, 64, 256)),
              "draft_layers": draw.choice((0, 0, 1, 2))}
        pools = [draw.randrange(1 << 32, 80 * GIB) for _ in range(draw.choice((1, pp, pp * tp)))]
        flags = [model, "--kv-dtype", kv["dtype"], "--kv-budget", ",".join(f"{n}B" for n in pools)]
        for key in ("tp", "pp", "block_size", "draft_layers"):
            flags += [f"--{key.replace('_', '-')}={kv[key]}"] if kv[key] else []
        drafts, batched = draw.choice((0, 0, 1, 5)), draw.choice((512, 8192))
        text = ""
        if draw.random() < 0.3:
            kv["prefix_cache"] = "false"
            flags += ["--no-prefix-cache"]
        if drafts:
            text = f"speculation: {{method: draft_model, num_tokens: {drafts}, acceptance_rate: 0.5}}\n"
            flags += [f"--speculative-tokens={drafts}"]
        flags += [f"--max-num-batched-tokens={batched}"]
        text += f"scheduler: {{max_num_batched_tokens: {batched}}}\n"
        kv.update(model=model, budget="[" + ", ".join(f"{n}B" for n in pools) + "]")
        return flags, "kv: {" + ", ".join(f"{k}: {v}" for k, v in kv.items()) + "}\n" + text

    def test_same_as_size(self):
        """Any model on any ranks: blocks, bytes of a block and what is refused are those of `size`."""
        draw, seen, refused = random.Random(27), 0, 0
        for model in json.loads(self.done("models", "--json").stdout) * 2:
            flags, text = self.draw(draw, model["name"])
            self.write("s.yaml", text + "traffic: {requests: 1, prompt_tokens: 5, output_tokens: 2}\n")
            with self.subTest(" ".join(flags)):
                want = self.call("size", *flags, "--json")
                have = self.call("run", "s.yaml", "--check")
                if want.returncode:
                    refused += 1
                    self.assertIn(re.sub(r"^pagedkv: ", "", want.stderr).strip(), have.stderr)
                    continue
                want = json.loads(want.stdout)
                if len(want["groups"]) > 8:
                    self.assertIn(f"this model has {len(want['groups'])} KV groups", have.stderr)
                    continue
                self.assertEqual(have.returncode, 0, have.stderr)
                rows = re.findall(r"holds ([\d,]+) blocks? of ([\d,]+) B", " ".join(have.stdout.split()))
                self.assertEqual([[int(n.replace(",", "")) for n in row] for row in rows],
                                 [[r["num_blocks"], r["block_bytes"]] for r in want["ranks"]
                                  if r["block_bytes"]])
                self.assertEqual(min(int(n.replace(",", "")) for n, _ in rows), want["num_gpu_blocks"])
                seen += 1
        self.assertGreater(seen, 60)
        self.assertGreater(refused, 20)

    def test_config_beside_the_scenario(self):
        os.mkdir(self.path("below"))
        self.write(os.path.join("below", "config.json"), json.dumps(LLAMA_70B))
        self.write(os.path.join("below", "s.yaml"),
                   "kv: {budget: 1GiB, model: config.json}\n" + self.TRAFFIC)
        self.done("run", "below/s.yaml", "-q", "-o", "out")
        self.assertEqual(self.summary("out")["blocks"]["num_gpu_blocks"], 204)
        self.done("run", "out/scenario.yaml", "-q", "-o", "again")
        self.same_contents("out", "again")
        self.write(os.path.join("below", "config.json"),
                   json.dumps(without(LLAMA_70B, "num_hidden_layers")))
        result = self.call("run", "below/s.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^below/config\.json:1:1: num_hidden_layers is missing")

    def test_groups(self):
        """A model brings its groups, and the run with them passes its own checks."""
        for model, groups in (("gemma-3-1b", ["sliding"] * 2 + ["full"] + ["sliding"] * 4),
                              ("gemma-4-e2b", ["sliding"] * 4 + ["full"]),
                              ("llama-4-scout-17b-16e", ["chunked"] * 3 + ["full"]),
                              ("qwen3-next-80b-a3b", ["state"] * 3 + ["full"])):
            self.write("s.yaml", f"kv: {{budget: 1GiB, model: {model}}}\n" + self.TRAFFIC)
            self.done("run", "s.yaml", "--check", "-q", "-o", "out")
            self.assertEqual(self.summary("out")["requests"]["completed"], 40)
            shown = " ".join(self.done("run", "s.yaml").stdout.split())
            kinds = re.search(r"KV groups (.*?) model ", shown)[1]
            self.assertEqual(sorted(re.findall("sliding|full|chunked|state", kinds)), sorted(groups))
            self.done("run", self.path("out", "scenario.yaml"), "-o", "again", "-q")
            self.assertEqual(self.read("out", "steps.csv"), self.read("again", "steps.csv"))

    def test_wrong(self):
        for kv, says in (
                ("{budget: 1GiB}", r"^s\.yaml:1:14: kv\.budget.*kv\.model"),
                ("{num_blocks: 9, budget: 1GiB, model: llama-3.1-8b}", r"^s\.yaml:1:\d+: .*exclude"),
                ("{budget: 1GiB, model: llama-3.1-8b, pp: 2, pp_layers: [32]}", "1 stage, and kv.pp is 2"),
                ("{num_blocks: 9, dtype: fp8}", r"^s\.yaml:1:\d+: kv\.dtype.*kv\.model"),
                ("{budget: 1GiB, model: llama-9}", r"^s\.yaml:1:\d+: kv\.model: 'llama-9'"),
                ("{budget: 1GiB, model: llama-3.1-8b, tp: 3}", r"^s\.yaml:1:\d+: kv\.tp: TP 3"),
                ("{budget: 1MiB, model: llama-3.1-8b}", r"^s\.yaml:1:\d+: kv\.budget: no block fits"),
                ("{budget: 3MiB, model: llama-3.1-8b}", r"^s\.yaml:1:\d+: kv\.budget: one block fits"),
                ("{budget: 40, model: llama-3.1-8b}",
                 r"^s\.yaml:1:\d+: kv\.budget: '40' has no unit, like 40GB or 40B"),
                ("{budget: 1GiB, model: lama-3.1-8b}", "the nearest is 'llama-3.1-8b'"),
                ("{num_blocks: 9, host_blocks: 4}\nlink: {bandwidth: 25}",
                 r"^s\.yaml:2:\d+: link\.bandwidth: '25' has no unit, like 25GB or 25B"),
                ("{budget: [1GiB, 1GiB], model: llama-3.1-8b}", r"^s\.yaml:1:\d+: kv\.budget: 2 sizes"),
                ("{budget: 1GiB, model: llama-3.1-8b, groups: [{type: full}]}", "exclude each other"),
                ("{budget: 1GiB, model: llama-3.1-8b, pp_layers: [1, 2]}", r"kv\.pp_layers"),
                ("{budget: 1XB, model: llama-3.1-8b}", r"^s\.yaml:1:\d+: kv\.budget: '1XB'"),
                ("{budget: [], model: llama-3.1-8b}", r"kv\.budget.*empty")):
            self.write("s.yaml", f"kv: {kv}\n" + self.TRAFFIC)
            result = self.call("run", "s.yaml")
            self.assertEqual((result.returncode, result.stdout), (2, ""), kv)
            self.assertRegex(result.stderr, says)

    def test_vary(self):
        """At one budget a model, a type and a TP each make their own blocks: 8,192 tokens of 131,072 B,
        7,281 of 147,456 B; twice as many at a byte a value, and at TP 2."""
        self.write("s.yaml", "kv: {budget: 1GiB, model: llama-3.1-8b}\n" + self.TRAFFIC +
                   "vary: {kv.model: [llama-3.1-8b, qwen3-8b], kv.dtype: [bf16, fp8], kv.tp: [1, 2]}\n")
        self.done("compare", "s.yaml", "-o", "out", "-q")
        rows = {tuple(row[k] for k in ("kv.model", "kv.dtype", "kv.tp")): row["configuration"]
                for row in self.rows("out", "compare.csv")}
        self.assertEqual(len(rows), 8)
        for (model, dtype, tp), number in rows.items():
            layers = {"llama-3.1-8b": 32, "qwen3-8b": 36}[model.lower().replace(" ", "-")]
            size = 16 * layers * 8 // int(tp) * 256 * (1 if dtype == "fp8" else 2)
            self.done("run", "s.yaml", "-q", "-o", "one", "--set", f"kv.model={model}", "--set",
                      f"kv.dtype={dtype}", "--set", f"kv.tp={tp}")
            self.assertEqual(self.summary("one")["blocks"]["num_gpu_blocks"], GIB // size, number)

    def test_lesson(self):
        """Half the bytes are twice the blocks, which is worth something where blocks limit."""
        name, table = "kv_dtype.yaml", []
        runs = {}
        for budget in ("1GiB", "8GiB"):
            for dtype in ("bf16", "fp8"):
                run = runs[budget, dtype] = self.run_scenario(
                    name, "--set", f"kv.budget={budget}", "--set", f"kv.dtype={dtype}")
                table.append(f"{budget} {dtype} {run['blocks']['num_blocks']:,} {run['preemptions']} "
                             f"{run['mean']['running']:.1f} "
                             f"{run['latency_ms']['ttft']['mean'] / 1000:.2f} s "
                             f"{run['throughput']['output_tokens_per_s']:,.0f}")
        lines = [" ".join(line[1:].split()) for line in self.text(name).splitlines()]
        for row in table:
            self.assertIn(row, lines)
        for budget in ("1GiB", "8GiB"):
            half, whole = (runs[budget, d]["blocks"]["num_gpu_blocks"] for d in ("fp8", "bf16"))
            self.assertEqual(half, 2 * whole)
        fits = [self.size("llama-3.1-8b", "--kv-budget", "1GiB", "--prompt", "1000", "--output", "200",
                          "--kv-dtype", dtype)["requests"]["end_requests"] for dtype in ("fp8", "bf16")]
        self.say(name, f"{fits[0]} requests fit to their end, in bf16 {fits[1]}.")
        self.assertEqual(fits, [1023 // 75, 511 // 75])
        ample = [runs["8GiB", d] for d in ("bf16", "fp8")]
        self.assertEqual(ample[0]["latency_ms"], ample[1]["latency_ms"])
        self.say(name, *(f"{100 * (1 - run['mean']['used_frac']):.1f} %" for run in ample))


class Readme(SizeCase):
    def test_shown(self):
        """The walk from a config.json to how many users fit is what the program prints."""
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            text = file.read()
        part = text[text.index("\n## How many users fit"):]
        part = part[:part.index("\n## ", 4)]
        self.write("config.json", re.search(r"```json\n(.*?)```", part, re.S)[1])
        shown = re.findall(r"\$ pagedkv (.*?)\n(.*?)(?=\n\$|\n```)", part, re.S)
        self.assertGreaterEqual(len(shown), 3)
        for command, output in shown:
            result = subprocess.run([self.program, *command.split()], cwd=self.folder, text=True,
                                    capture_output=True, check=False, timeout=self.timeout,
                                    env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
            self.assertEqual(result.stdout.rstrip(), output.rstrip())

    def test_gpus(self):
        known = json.loads(self.done("gpus", "--json").stdout)
        self.assertGreater(len(known), 10)
        h100 = next(gpu for gpu in known if gpu["name"] == "H100")
        self.assertEqual((h100["nvml_bytes"], h100["cuda_gib_hundredths"]), (81559 * MIB, 7918))
        for gpu in known:
            self.assertGreater(gpu["total_bytes"], 0)
            self.assertTrue(gpu["source"])


def main():
    global SOURCE_ROOT
    ProgramCase.program = os.path.abspath(sys.argv[1])
    SOURCE_ROOT = sys.argv[2]
    ScenarioCase.scenarios = os.path.join(SOURCE_ROOT, "scenarios")
    tap.main("__main__")


if __name__ == "__main__":
    main()
