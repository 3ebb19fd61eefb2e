#!/usr/bin/env python3
"""Sizes of models and start-up logs of engines as others published them, where they are at hand:
../shared beside the checkout, or the folder that PKV_SHARED names.

usage: test_sizing_shared.py PROGRAM SOURCE_ROOT
"""
import json
import os
import random
import sys

import tap
from program import ProgramCase

SHARED = None       # set by main
GIB = 1 << 30
LENGTHS = (4096, 32768, 131072)

# What the logs do not say of the models: how the program is told of them.
NAMES = {
    "A1": "llama-3.1-8b", "A2": "llama-3.1-8b", "A3": "llama-3-8b", "A4": "llama-3.1-70b",
    "A6": "qwen3-14b", "A7": "qwen2.5-1.5b", "A8": "llama-3.1-8b", "A9": "granite-4.0-micro",
    "A10": "phi-4-14b", "A11": "phi-4-14b", "A12": "qwen2.5-0.5b", "A13": "qwen2.5-1.5b",
    "A14": "llama-3.2-3b", "A15": "qwen3-30b-a3b", "A16": "llama-3.1-8b", "A17a": "glm-4.6",
    "A17b": "glm-4.6", "A18": "glm-5.2", "A21": "qwen3-4b", "A24": "gpt-oss-120b", "B1": "qwen3-next-80b-a3b",
    "B2": "qwen3.5-0.8b", "B3": "qwen3.5-0.8b", "B4": "qwen3.6-27b", "B5": "qwen3.6-27b",
    "B6": "qwen3.5-9b", "B7a": "gemma-4-26b-a4b", "B7b": "gemma-4-26b-a4b",
    "B7c": "gemma-4-26b-a4b", "B8a": "gemma-4-12b", "B8b": "gemma-4-12b", "B9": "gemma-4-e2b",
    "B10": "gemma-4-31b", "C1": "qwen3-235b-a22b",
}
MORE = {
    "A15": ["--kv-dtype", "fp8"], "A16": ["--draft-layers", "1"], "A17a": ["--tp", "2"],
    "A17b": ["--tp", "2"], "B1": ["--tp", "2", "--no-prefix-cache", "--state-dtype", "bf16"],
    "B5": ["--tp", "2", "--kv-dtype", "fp8"], "B6": ["--kv-dtype", "fp8"],
    "C1": ["--tp", "4", "--ranks-differ"],
    "A18": ["--mtp", "--kv-dtype", "fp8_ds_mla", "--tp", "4", "--dcp", "4", "--block-size", "64"],
    "A19": ["--layers", "40", "--kv-heads", "8", "--head-dim", "128", "--tp", "2"],
    "A20": ["--layers", "36", "--latent", "256,64"],
    "A22": ["--layers", "48", "--kv-heads", "4", "--head-dim", "128"],
    "A23": ["--layers", "31", "--kv-heads", "4", "--head-dim", "128"],
    "B10": ["--kv-dtype", "fp8", "--max-num-batched-tokens", "4096"],
    "B9": ["--max-num-batched-tokens", "2048", "--async-scheduling"],
}
for log in ("B7a", "B7b", "B7c", "B8a", "B8b"):
    MORE[log] = ["--max-num-batched-tokens", "2496", "--async-scheduling"]


# Its published row leaves out the window that its config has.
WINDOWS = {"Phi-3-mini 4k": 2047}


def whole(model):
    return ["--no-hybrid-manager"] if model["name"] in WINDOWS else []


def facts(name):
    with open(os.path.join(SHARED, "data", "sizing", name), encoding="utf-8") as file:
        return json.load(file)


def model_word(model):
    return model["hf_id"] if "/" in model["hf_id"] else model["name"].lower().replace(" ", "-")


TYPES = (("Qwen3.6", "qwen3_5_text"), ("Qwen3-Next", "qwen3_next"), ("Qwen3 235", "qwen3_moe"),
         ("Qwen3 30", "qwen3_moe"), ("Qwen3", "qwen3"), ("Qwen2.5", "qwen2"), ("Mistral", "mistral"),
         ("Mixtral", "mixtral"), ("DeepSeek-V2", "deepseek_v2"), ("DeepSeek-V3", "deepseek_v3"),
         ("Phi-3", "phi3"), ("Command", "cohere"), ("GPT-2", "gpt2"), ("OPT", "opt"),
         ("GLM", "glm4_moe"), ("Granite 4.0 Micro", "granite"))


def config_of(model):
    """A config.json with the keys that the facts name."""
    keys = {k: v for k, v in model["config"].items() if not k.startswith("(") and k != "nesting"}
    kind = keys.get("model_type", next((t for n, t in TYPES if model["name"].startswith(n)), "llama"))
    keys["model_type"] = kind.split(" (")[0]
    nested = model["config"].get("nesting") or "text_config" in kind
    if "no_rope_layers" in keys:
        keys["no_rope_layers"] = []
    if keys["model_type"] == "gpt_oss":
        keys["layer_types"] = ["sliding_attention", "full_attention"] * (keys["num_hidden_layers"] // 2)
    if keys["model_type"] == "granitemoehybrid":
        keys["layer_types"] = (["mamba"] * 5 + ["attention"] + ["mamba"] * 4) * 4
        keys.update(mamba_n_heads=128, mamba_d_head="auto", mamba_n_groups=1)
    if keys["model_type"] == "minimax_m1":
        keys["attn_type_list"] = ([0] * 7 + [1]) * 10
    if nested:
        dtype = keys.pop("torch_dtype", "bfloat16")
        return {"model_type": keys["model_type"], "torch_dtype": dtype, "text_config": keys}
    return keys


def engine_log(printed, engine):
    """The lines of a start-up log that print these figures."""
    old = printed.get("num_cpu_blocks") is not None
    lines = []
    if printed.get("available_bytes"):
        lines.append(f"INFO non-default args: {{'kv_cache_memory_bytes': {printed['available_bytes']}}}")
    elif printed.get("available_gib"):
        gib = f"{printed['available_gib']:.2f}"
        lines.append(f"model weights take 14.99GiB; the rest of the memory reserved for KV Cache is "
                     f"{gib}GiB." if old else f"INFO [gpu_worker.py:298] Available KV cache memory: "
                     f"{gib} GiB")
    if old:
        lines.append(f"INFO 12-02 08:00:00 # GPU blocks: {printed['num_gpu_blocks']}, # CPU blocks: "
                     f"{printed['num_cpu_blocks']}")
    elif printed.get("num_gpu_blocks"):
        lines.append(f"INFO [core.py:1] # GPU blocks: {printed['num_gpu_blocks']}")
    if printed.get("kv_cache_tokens"):
        lines.append(f"(EngineCore_0 pid=7) \033[32mINFO\033[0m [kv_cache_utils.py:864] GPU KV cache "
                     f"size: {printed['kv_cache_tokens']:,} tokens")
    if printed.get("max_concurrency"):
        lines.append(f"Maximum concurrency for {printed['max_model_len']:,} tokens per request: "
                     f"{printed['max_concurrency']:.2f}x")
    elif printed.get("max_model_len"):
        lines.append(f"INFO Initializing {engine} with config: max_seq_len={printed['max_model_len']},")
    return "\n".join(lines) + "\n"


class Sizing(ProgramCase):
    def size(self, *args):
        return json.loads(self.done("size", *args, "--json").stdout)

    def test_models(self):
        """Every model, bf16 and fp8, three lengths."""
        for model in facts("models.json"):
            with self.subTest(model["name"]):
                for dtype in ("bf16", "fp8"):
                    got = self.size(model_word(model), "--kv-dtype", dtype, *whole(model))
                    self.assertEqual(got["position_bytes"], model[f"bytes_per_token_{dtype}"])
                    state = got["state_sequence_bytes"]
                    for row in got["lengths"]:
                        self.assertEqual(row["payload_bytes"] - state, model[
                            f"sequence_bytes_{dtype}"][str(row["positions_tokens"])])
                    self.assertEqual([r["positions_tokens"] for r in got["lengths"]], list(LENGTHS))
                    if dtype == "bf16":
                        self.assertEqual(got["growing_position_bytes"],
                                         model["growing_bytes_per_token_bf16"])
                    states = model["state_bytes_per_sequence"]
                    if states:
                        self.assertIn(state, states.values())
                    elif not states:
                        self.assertEqual(state, 0)

    def test_configs(self):
        """The same from a config.json that has the published keys."""
        for model in facts("models.json"):
            with self.subTest(model["name"]):
                self.write("config.json", json.dumps(config_of(model)))
                got = self.size("config.json", "--kv-dtype", "bf16", *whole(model))
                self.assertEqual(got["position_bytes"], model["bytes_per_token_bf16"])
                self.assertEqual(got["growing_position_bytes"],
                                 model["growing_bytes_per_token_bf16"])
                states = model["state_bytes_per_sequence"]
                if states:
                    self.assertIn(got["state_sequence_bytes"], states.values())
                self.assertNotIn("is not known", got.get("note", ""))

    def test_table_and_configs(self):
        """What is known by name is what its config says, windows, state and groups too."""
        for model in facts("models.json"):
            with self.subTest(model["name"]):
                config = config_of(model)
                args = ("--kv-dtype", "fp8", "--lengths", "1000,100000", "--num-gpu-blocks", "9000")
                self.write("config.json", json.dumps(config))
                named, read = self.size(model_word(model), *args), self.size("config.json", *args)
                if named["state_sequence_bytes"] != read["state_sequence_bytes"]:
                    # Of this one the key for the state's data type was not published.
                    self.assertEqual(model["name"], "Qwen3.6-27B")
                    continue
                for key in ("position_bytes", "growing_position_bytes", "fixed_sequence_bytes",
                            "page_bytes", "groups", "layer_types", "stages"):
                    self.assertEqual(read[key], named[key], key)
                for ours, theirs in zip(named["lengths"], read["lengths"]):
                    self.assertEqual(ours["payload_bytes"], theirs["payload_bytes"])
                    self.assertEqual(ours["request_blocks"], theirs["request_blocks"])

    def test_types(self):
        """Layers by type, and vLLM's groups."""
        for model in facts("models.json"):
            with self.subTest(model["name"]):
                got = self.size(model_word(model), "--kv-dtype", "bf16")
                kinds = {"mla": "latent"}
                want = sorted((kinds.get(t["type"], t["type"]), t["count"], t["kv_heads"],
                               t["head_dim_k"], t["window"]) for t in model["layers"])
                if model["name"] in WINDOWS:
                    want = [("sliding", *row[1:4], WINDOWS[model["name"]]) for row in want]
                have = sorted((t["kind"], t["num_layers"], t.get("num_kv_heads"),
                               t.get("head_dim_k", t.get("latent_values", 0) + t.get("rope_values", 0)),
                               t.get("window_tokens"))
                              for t in got["layer_types"] if t["kind"] != "state")
                self.assertEqual(have, want)
                if "vllm_groups" in model:
                    groups = {}
                    padding = {}
                    for g in got["groups"]:
                        groups[g["kind"]] = groups.get(g["kind"], 0) + 1
                        padding[g["kind"]] = padding.get(g["kind"], 0) + g["padding_layers"]
                    self.assertEqual({"group_size": got["group_size_layers"], "groups": groups,
                                      "padding_layers": padding}, model["vllm_groups"])

    def test_tensor_parallel(self):
        for model in facts("models.json"):
            for tp, want in model["tp"].items():
                with self.subTest(model["name"], tp=tp):
                    args = [model_word(model), "--kv-dtype", "bf16", "--tp", tp, *whole(model)]
                    if not want["valid"]:
                        result = self.call("size", *args)
                        self.assertEqual(result.returncode, 2)
                        self.assertIn(f"TP {tp} ", result.stderr)
                        continue
                    got = self.size(*args)
                    self.assertEqual(got["position_bytes"], want["bytes_per_token_per_rank_bf16"])
                    for row in got["lengths"]:
                        self.assertEqual(row["payload_bytes"] - got["state_sequence_bytes"],
                                         want["sequence_bytes_per_rank_bf16"][
                                             str(row["positions_tokens"])])

    def test_pipeline(self):
        for model in facts("models.json"):
            for engine in ("vllm", "sglang"):
                for pp, want in model[f"pp_layer_split_{engine}"].items():
                    with self.subTest(model["name"], engine=engine, pp=pp):
                        got = self.size(model_word(model), "--pp", pp, "--pp-split", engine)
                        self.assertEqual([s["num_layers"] for s in got["stages"]], want)
                        self.assertEqual(sum(s["position_bytes"] for s in got["stages"]),
                                         got["position_bytes"])

    def test_logs(self):
        """Every published start-up log; strengths F, C and I to the unit, R within its range."""
        seen = 0
        for log in facts("vllm_logs.json"):
            name = log["id"]
            with self.subTest(name):
                self.write("log", engine_log(log["printed"], log["engine"]))
                model = [NAMES[name]] if name in NAMES else []
                result = self.call("size", *model, "--log", "log", "--json", *MORE.get(name, []))
                got = json.loads(result.stdout)
                want = log["recomputed"]
                says = "cannot_tell" if log["strength"].startswith("identity only") else "agrees"
                self.assertEqual(got["verdict"], says)
                self.assertEqual(result.returncode, 0 if says == "agrees" else 1)
                self.assertEqual(got["agrees"], says == "agrees")
                self.assertEqual(got["num_gpu_blocks"], want["num_blocks"] if name != "A24"
                                 else log["hybrid_form"]["blocks_candidates"][0])
                if name != "A5" and name != "A24":
                    self.assertEqual(got["block_bytes"], want["block_bytes"])
                verdicts = {c["check"]: c["verdict"] for c in got["checks"]}
                wanted = dict.fromkeys(verdicts, "agrees")
                if name == "C1":
                    wanted["blocks"] = wanted["tokens"] = "smallest_rank"
                self.assertEqual(verdicts, wanted)
                self.assertGreater(len(verdicts), 0)
                if "blocks_range_from_printed_gib" in want and name != "A24" and \
                        not log["printed"].get("available_bytes"):
                    self.assertEqual([got["lowest_blocks"], got["highest_blocks"]],
                                     want["blocks_range_from_printed_gib"])
                seen += 1
        self.assertEqual(seen, len(facts("vllm_logs.json")))

    def test_reload(self):
        """The scenario of a log has the log's blocks, and where they are of one kind its tokens."""
        for log in facts("vllm_logs.json"):
            name, want = log["id"], log["recomputed"]
            with self.subTest(name):
                self.write("log", engine_log(log["printed"], log["engine"]))
                model = [NAMES[name]] if name in NAMES else []
                got = json.loads(self.call("size", *model, "--log", "log", "--json",
                                           *MORE.get(name, [])).stdout)
                self.write("s.yaml", got["scenario"] + "traffic: {requests: 2, prompt_tokens: 5, "
                                                       "output_tokens: 5}\n")
                self.done("run", "s.yaml", "-q", "--check", "-o", "out")
                blocks = self.summary("out")["blocks"]
                is_old = log["printed"].get("num_cpu_blocks") is not None
                self.assertEqual(blocks["num_blocks" if is_old else "num_gpu_blocks"],
                                 got["num_gpu_blocks"])
                if got["num_groups"] == 1:
                    self.assertEqual(got["num_gpu_blocks"] * blocks["block_size"], want["tokens"])
                else:
                    text = self.read("out", "scenario.yaml").decode()
                    self.assertEqual(text.count("{type: "), got["num_groups"])

    def test_smallest_rank_in_words(self):
        log = next(log for log in facts("vllm_logs.json") if log["id"] == "C1")
        self.write("log", engine_log(log["printed"], log["engine"]))
        text = " ".join(self.done("size", NAMES["C1"], "--log", "log", "--tp", "4",
                                  "--ranks-differ").stdout.split())
        self.assertIn("11,180 blocks", text)
        self.assertIn("8,609,136,640 B (8.017 GiB)", text)
        self.assertIn("the smallest rank rules", text)
        self.assertRegex(text, r"8\.11 GiB / 770,048 B \(752 KiB\) = 11,301 to 11,315 blocks; stranded ")
        result = self.call("size", NAMES["C1"], "--log", "log", "--tp", "4")
        self.assertEqual(result.returncode, 1)
        self.assertIn("say --ranks-differ", " ".join(result.stdout.split()))

    def test_fits_every_rank(self):
        """Models, TP, PP and memories at random: no rank holds more than it has."""
        draw = random.Random(20)
        models = facts("models.json")
        for i in range(len(models) + 30):
            model = models[i] if i < len(models) else draw.choice(models)
            pp = draw.choice((1, 2, 3, 4))
            tp = draw.choice([int(tp) for tp, v in model["tp"].items() if v["valid"]])
            pools = [draw.randrange(1 << 28, 80 * GIB)
                     for _ in range(draw.choice((1, pp, pp * tp)))]
            more = draw.choice(([], ["--kv-dtype", "fp8"], ["--kv-dtype", "fp16"], ["--kv-dtype", "int8"],
                                ["--draft-layers", "1"], ["--no-prefix-cache"], ["--state-dtype", "fp32"],
                                ["--state-dtype", "bf16", "--kv-dtype", "fp8"]))
            with self.subTest(model["name"], pp=pp, tp=tp, pools=pools, more=more):
                args = (model_word(model), "--tp", str(tp), "--pp", str(pp), "--kv-budget",
                        ",".join(f"{n}B" for n in pools), *more)
                got = self.size(*args)
                used = [r["pool_bytes"] - r["stranded_bytes"] for r in got["ranks"]]
                for rank, bytes_ in zip(got["ranks"], used):
                    self.assertEqual(bytes_, got["num_gpu_blocks"] * rank["block_bytes"])
                    self.assertLessEqual(bytes_, rank["pool_bytes"])
                limiting = next(r for r in got["ranks"] if r["limiting"])
                self.assertLess(limiting["stranded_bytes"], limiting["block_bytes"])

    def test_gpus(self):
        known = {g["name"].lower(): g for g in json.loads(self.done("gpus", "--json").stdout)}
        for gpu in facts("gpus.json"):
            if not gpu["nvml_bytes"] and not gpu["cuda_total_gib_printed"]:
                continue
            name = gpu["gpu"].split(" (")[0].replace(" SXM/PCIe", "").lower().replace(" ", "-")
            name = {"h100-80gb": "h100"}.get(name, name)
            with self.subTest(gpu["gpu"]):
                have = known[name]
                self.assertEqual(have["nvml_bytes"], gpu["nvml_bytes"] or 0)
                self.assertEqual(have["cuda_gib_hundredths"],
                                 round((gpu["cuda_total_gib_printed"] or 0) * 100))
                if gpu["cuda_total_bytes_range"]:
                    low, high = gpu["cuda_total_bytes_range"]
                    self.assertTrue(low <= have["total_bytes"] <= high)


def main():
    global SHARED
    ProgramCase.program = os.path.abspath(sys.argv[1])
    SHARED = os.environ.get("PKV_SHARED") or os.path.join(sys.argv[2], "..", "shared")
    if not os.path.isdir(os.path.join(SHARED, "data", "sizing")):
        tap.skip_all(f"no published sizes in {SHARED}")
    tap.main("__main__")


if __name__ == "__main__":
    main()
