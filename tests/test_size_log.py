#!/usr/bin/env python3
"""`pagedkv size --log`: whose memory is whose, and the scenario that comes out of a log.

usage: test_size_log.py PROGRAM SOURCE_ROOT
"""
import json
import os
import sys

import tap
from program import ProgramCase
from size_case import GIB, SizeCase

EIGHT = ("--layers", "78", "--latent", "512,64", "--indexer", "128", "--indexer-layers", "21",
         "--draft-layers", "1", "--kv-dtype", "fp8_ds_mla", "--tp", "4")
# A block of 16 tokens of Llama 3.1 8B takes 2 MiB: 64 KiB in each of 32 layers.
PLAIN = "Available KV cache memory: 1.00 GiB\nGPU KV cache size: 8,192 tokens\n"


class Cuts(SizeCase):
    """A log that is still being written, or was cut: a number at its very end is not whole yet."""
    V1 = ("INFO Initializing a V1 LLM engine (v0.11.0) with config: model='meta-llama/Llama-3.1-8B', "
          "speculative_config={'method': 'ngram', 'num_speculative_tokens': 12}, "
          "dtype=torch.bfloat16, kv_cache_dtype=auto, block_size=16, max_num_batched_tokens=2048, "
          "max_num_seqs=256\nAvailable KV cache memory: 16.00 GiB\n"
          "GPU KV cache size: 131,072 tokens\n"
          "Maximum concurrency for 131,072 tokens per request: 1.00x\n"
          "INFO max_model_len=131072")
    V0 = ("INFO Initializing an LLM engine (v0.6.4) with config: max_seq_len=20000, max_num_seqs=256\n"
          "the rest of the memory reserved for KV Cache is 3.81GiB.\n"
          "INFO 12-02 08:00:00 # GPU blocks: 1952, # CPU blocks: 2048\n"
          "INFO Maximum concurrency for 20000 tokens per request: 1.56x\n")
    SGLANG = ("server_args=ServerArgs(model_path='x', tp_size=1, page_size=16)\n"
              "KV Cache is allocated. #tokens: 32768, K size: 2.00 GB, V size: 2.00 GB\n"
              "max_total_num_tokens=32768, max_running_requests=2048, context_len=131072")

    def test_cuts(self):
        """Behind each digit, and at every fifth byte, from the end of the first line."""
        for log in (self.V1, self.V0, self.SGLANG):
            self.assertEqual(self.cut(log + "\n", len(log) + 1, "llama-3.1-8b")["verdict"], "agrees")
            told = [self.cut(log, end, "llama-3.1-8b") for end in range(log.index("\n"), len(log) + 1)
                    if log[end - 1].isdigit() or end % 5 == 0]
            blocks = {got["num_gpu_blocks"] for got in told if got and got["agrees"]}
            self.assertEqual(len(blocks), 1, blocks)

    def test_no_last_newline(self):
        """What is closed by a word, a bracket or the x of a concurrency is whole without a newline."""
        for end in ("max_model_len=8192)", "{'max_model_len': 8192}", "max_model_len=8192 ",
                    "Maximum concurrency for 8,192 tokens per request: 1.00x"):
            self.assertIn("max_model_len: 8192\n", self.hold(PLAIN + end, "llama-3.1-8b")["scenario"])
        self.assertNotIn("max_model_len", self.hold(PLAIN + "max_model_len=8192",
                                                    "llama-3.1-8b")["scenario"])


class Bounds(SizeCase):
    """A number of a log that nothing can have is told with its line, and no option is blamed."""
    START = "INFO first\nINFO Initializing a V1 LLM engine (v0.11.0) with config: {}\n"

    def bad(self, setting, says):
        self.write("log", self.START.format(setting) + PLAIN)
        self.wrong("llama-3.1-8b", "--log", "log", says=f"^log:2: {says}$")

    def test_settings(self):
        for key, most in (("tensor_parallel_size", 65536), ("tp_size", 65536),
                          ("pipeline_parallel_size", 64), ("pp_size", 64),
                          ("decode_context_parallel_size", 65536), ("block_size", 1 << 20),
                          ("page_size", 1 << 20), ("num_speculative_tokens", 4096),
                          ("max_seq_len", 1 << 40), ("context_len", 1 << 40), ("max_num_seqs", 1 << 40),
                          ("max_running_requests", 1 << 40), ("max_num_batched_tokens", 1 << 40)):
            for n in (most + 1, 1 << 62, 10 ** 30):
                self.bad(f"{key}={n}", f"{key}: {n} is above {most}")
        for key in ("num_spec_tokens", "num_speculative_tokens"):
            self.bad(f"speculative_config=SpeculativeConfig(method='eagle', {key}=2147483647)",
                     f"{key}: 2147483647 is above 4096")

    def test_phrases(self):
        for phrase, key, most in (
                ("GPU KV cache size: {} tokens", "KV cache size", 1 << 52),
                ("# GPU blocks: {}, # CPU blocks: 7", "# GPU blocks", 1 << 52),
                ("# GPU blocks: 7, # CPU blocks: {}", "# CPU blocks", 1 << 52),
                ("# cuda blocks: {}", "# cuda blocks", 1 << 52),
                ("num_gpu_blocks is: {}", "num_gpu_blocks is", 1 << 52),
                ("num_gpu_blocks_override={}", "num_gpu_blocks_override", 1 << 52),
                ("kv_cache_memory_bytes={}", "kv_cache_memory_bytes", 1 << 60),
                ("max_total_num_tokens={}", "max_total_num_tokens", 1 << 52),
                ("#tokens: {}, K size: 1.00 GB, V size: 1.00 GB", "#tokens", 1 << 52),
                ("#tokens: 64, K size: {} GB, V size: 1.00 GB", "K size", 1 << 30),
                ("#tokens: 64, K size: 1.00 GB, V size: {} GB", "V size", 1 << 30),
                ("#tokens: 64, KV size: {} GB", "KV size", 1 << 30),
                ("Available KV cache memory: {} GiB", "KV cache memory", 1 << 30),
                ("reserved for KV Cache is {}GiB", "reserved for KV Cache", 1 << 30),
                ("Setting attention block size to {} tokens", "attention block size", 1 << 20),
                ("Maximum concurrency for {} tokens per request: 1.00x", "maximum concurrency for", 1 << 52),
                ("Maximum concurrency for 8,192 tokens per request: {}.00x", "maximum concurrency",
                 ((1 << 32) - 1) // 200)):
            for n in (str(most + 1), str(10 ** 30), f"{10 ** 30:,}"):
                with self.subTest(phrase, n=n):
                    self.write("log", f"INFO first\n{phrase.format(n)}\n{PLAIN}")
                    self.wrong("llama-3.1-8b", "--log", "log", says=f"^log:2: {key}: {n[:39]} is above {most}$")

    def test_ranks_of_the_model(self):
        self.bad("tensor_parallel_size=7", "TP 7 does not divide 32 attention heads")
        self.bad("pipeline_parallel_size=33", "33 pipeline stages for 32 layers; from 1 to 32 are possible")
        self.bad("tensor_parallel_size=16, decode_context_parallel_size=4", "DCP 4 needs a TP that .*")
        self.write("log", self.START.format("tensor_parallel_size=7") + PLAIN)
        self.wrong("llama-3.1-8b", "--tp", "5", "--log", "log", says="^pagedkv: TP 5 does not divide 32 attention heads$")

    def test_option(self):
        self.wrong("llama-3.1-8b", "--tp", "65537", says="TP 65537 is not within 1 .. 65536$")


class Ranks(SizeCase):
    """Rank 0 has 28 layers and 14 GiB, rank 1 has 4 and 4 GiB: 8,192 blocks of 1.75 MiB, 16,384 of 256
    KiB; so the rank with more memory rules, and 2 GiB are stranded on the other."""
    MEMORY = ("({} pid=7) INFO Available KV cache memory: 14.00 GiB\n"
              "({} pid=8) INFO Available KV cache memory: 4.00 GiB\n")
    COUNTS = "GPU KV cache size: 131,072 tokens\n"
    STAGES = ("llama-3.1-8b", "--pp-layers", "28,4")

    def check(self, log, *more):
        got = self.hold(log, *self.STAGES, *more)
        self.assertEqual(got["num_gpu_blocks"], 8192)
        # 14 GiB to 0.005 GiB is 8,192 blocks to 2.93, cut to whole ones.
        self.assertEqual((got["lowest_blocks"], got["highest_blocks"]), (8189, 8194))
        return got

    def test_marked(self):
        for names in (("Worker_PP0", "Worker_PP1"), ("VllmWorker rank=0", "VllmWorker rank=1"),
                      ("Worker_DP0_PP0_TP0", "Worker_DP0_PP1_TP0")):
            got = self.check(self.MEMORY.format(*names) + self.COUNTS)
            rows = {r["stage"]: r for r in got["ranks"]}
            self.assertEqual([rows[0]["block_bytes"], rows[1]["block_bytes"]], [7 << 18, 1 << 18])
            self.assertEqual([rows[0]["limiting"], rows[1]["limiting"]], [True, False])
            low, high = rows[1]["lowest_stranded_bytes"], rows[1]["highest_stranded_bytes"]
            self.assertEqual((low, high), (GIB * 3995 // 1000 - 2 * GIB, GIB * 4005 // 1000 - 2 * GIB))

    def test_in_words(self):
        self.write("log", self.MEMORY.format("Worker_PP0", "Worker_PP1") + self.COUNTS)
        text = self.text_of(*self.STAGES, "--log", "log")
        self.assertIn("stage 0: 14.00 GiB / 1,835,008 B (1.75 MiB) = 8,189 to 8,194 blocks: the fewest, "
                      "so all ranks have so many", text)
        self.assertRegex(text, r"stage 1: 4\.00 GiB / 262,144 B \(256 KiB\) = .* blocks; stranded 2,1")

    def test_in_another_order(self):
        """Marks count, not the order of the lines."""
        lines = self.MEMORY.format("Worker_PP0", "Worker_PP1").splitlines(True)
        self.check(lines[1] + lines[0] + self.COUNTS)
        got = self.hold(self.MEMORY.format("Worker_PP1", "Worker_PP0") + self.COUNTS, *self.STAGES,
                        verdict="differs")     # 4 GiB for 28 layers are 2,340 blocks
        self.assertEqual(got["highest_blocks"], (4 * GIB + GIB // 200) // (7 << 18))

    def test_not_marked(self):
        """From 4 GiB for the 28 layers to 14 GiB for them: 8,192 blocks are among these."""
        got = self.hold(self.MEMORY.format("x", "x") + self.COUNTS, *self.STAGES)
        self.assertEqual((got["lowest_blocks"], got["highest_blocks"]), (2337, 8194))
        self.assertNotIn("stage", got["ranks"][0])

    def test_other_stage_only(self):
        """Only the rank with the small blocks is heard of: the other one may well have fewer."""
        line = self.MEMORY.format("Worker_PP0", "Worker_PP1").splitlines(True)[1]
        got = self.hold(line + self.COUNTS, *self.STAGES)
        self.assertEqual([c["verdict"] for c in got["checks"]], ["smallest_rank", "smallest_rank"])
        got = self.hold(line + "GPU KV cache size: 524,288 tokens\n", *self.STAGES, verdict="differs")

    def test_tokens_of_every_rank(self):
        """Each rank prints its own tokens; the engine has the fewest, whoever speaks last."""
        both = ("GPU KV cache size: 131,072 tokens\nMaximum concurrency for 8,192 tokens per request: "
                "16.00x\nGPU KV cache size: 262,144 tokens\nMaximum concurrency for 8,192 tokens per "
                "request: 32.00x\n")
        got = self.check(self.MEMORY.format("Worker_PP0", "Worker_PP1") + both)
        self.assertEqual(len(got["checks"]), 3)

    def test_started_twice(self):
        """The memory of a rank that speaks again is that of a new start."""
        first = ("(Worker_PP0) Available KV cache memory: 3.50 GiB\n(Worker_PP1) Available KV cache "
                 "memory: 4.00 GiB\nGPU KV cache size: 32,768 tokens\n")
        for start in ("", "INFO Initializing a V1 LLM engine (v0.11.0) with config: x\n"):
            got = self.check(first + start + self.MEMORY.format("Worker_PP0", "Worker_PP1") + self.COUNTS)
            self.assertEqual(len(got["ranks"]), 2)
        one = PLAIN.replace("1.00", "3.00").replace("8,192", "24,576") + start + PLAIN
        self.assertEqual(self.hold(one, "llama-3.1-8b")["num_gpu_blocks"], 512)

    def test_pool_of_drafts(self):
        """SGLang: 32 layers and one of a draft head, 4,096 B a token each: 4.00 and 0.125 GiB, half of it
        K. The second pool of a rank is added, a new start is not."""
        line = "[2025-07-21 10:00:09{}] KV Cache is allocated. #tokens: {}, K size: {} GB, V size: {} GB\n"
        args = "[2025-07-21 10:00:00] server_args=ServerArgs(model_path='x', page_size=1)\n"
        for name in ("", " TP0"):
            log = (line.format(name, 9999, "1.00", "1.00") + args +
                   line.format(name, 32768, "2.00", "2.00") + line.format(name, 32768, "0.06", "0.06"))
            got = self.hold(log, "llama-3.1-8b", "--draft-layers", "1")
            self.assertEqual(len(got["ranks"]), 1)
            self.assertEqual(got["ranks"][0]["lowest_pool_bytes"], (412 * 2 - 4) * GIB // 200)
            self.hold(log, "llama-3.1-8b", verdict="differs")

    def test_other_pools(self):
        """SGLang has a pool for windows and one for state beside the one that it prints."""
        log = "KV Cache is allocated. #tokens: 2618868, K size: 19.98 GB, V size: 19.98 GB\n"
        for model in ("qwen3-next-80b-a3b", "gemma-3-27b"):
            got = self.hold(log, model, verdict="cannot_tell")
            self.assertIn("a pool for each kind of layer", got["no_scenario"])
            self.assertIn("a pool for each kind of layer", self.text_of(model, "--log", "log"))

    def test_published(self):
        """Qwen3-32B at PP 2, of which the first stage alone prints its memory: 3,540 blocks of 2 MiB."""
        log = ("(Worker_PP0 pid=611) INFO [model_runner.py:329] Model loading took 30.52 GiB\n"
               "(Worker_PP0 pid=611) INFO [gpu_worker.py:563] Available KV cache memory: 6.92 GiB\n"
               "(EngineCore pid=411) INFO [kv_cache_utils.py:2235] GPU KV cache size: 56,640 tokens\n"
               "(EngineCore pid=411) INFO [kv_cache_utils.py:2236] Maximum concurrency for 32,768 tokens "
               "per request: 1.73x\n")
        got = self.hold(log, "qwen3-32b", "--pp", "2")
        self.assertEqual((got["num_gpu_blocks"], got["block_bytes"]), (56640 // 16, 2 << 20))
        self.assertEqual([c["verdict"] for c in got["checks"]], ["agrees"] * 3)
        self.hold(log, "qwen3-32b", verdict="differs")

    def test_bytes_of_every_rank(self):
        """The same bytes on both stages: the one with 28 layers rules."""
        got = self.hold(f"'kv_cache_memory_bytes': {14 * GIB},\n" + self.COUNTS, *self.STAGES)
        self.assertEqual([(r["lowest_blocks"], r["lowest_stranded_bytes"], r["limiting"])
                          for r in got["ranks"]], [(8192, 0, True), (57344, 12 * GIB, False)])

    def test_smallest_of_four(self):
        """Qwen3-235B, TP 4: 11,180 blocks of 770,048 B, and 8.11 GiB on a rank that has more."""
        got = self.hold("Available KV cache memory: 8.11 GiB\nGPU KV cache size: 178,880 tokens\n",
                        "qwen3-235b-a22b", "--tp", "4", "--ranks-differ")
        row, = got["ranks"]
        used = 11180 * 770048
        self.assertEqual((got["num_gpu_blocks"], row["limiting"]), (11180, False))
        self.assertEqual((row["lowest_stranded_bytes"], row["highest_stranded_bytes"]),
                         (8105 * GIB // 1000 - used, 8115 * GIB // 1000 - used))
        self.assertIn("a rank: 8.11 GiB / 770,048 B (752 KiB) = 11,301 to 11,315 blocks; stranded 93,",
                      self.text_of("qwen3-235b-a22b", "--tp", "4", "--ranks-differ", "--log", "log"))
        # The rank that has no more than these, heard of as well: 8.018 GiB.
        got = self.hold("(Worker_TP0) Available KV cache memory: 8.11 GiB\n(Worker_TP1) Available KV "
                        "cache memory: 8.02 GiB\nGPU KV cache size: 178,880 tokens\n",
                        "qwen3-235b-a22b", "--tp", "4")
        self.assertEqual([r["limiting"] for r in got["ranks"]], [False, True])

    def test_wrong_model(self):
        """The memory of a rank tells a wrong model at TP 4, and a wrong TP."""
        log = "(Worker_TP{}) Available KV cache memory: 10.00 GiB\n"
        log = "".join(log.format(i) for i in range(4)) + "GPU KV cache size: 131,072 tokens\n"
        # 80 x 2 heads x 256 x 2 B x 16 tokens: 1.25 MiB a block, 8,192 in 10 GiB.
        self.assertEqual(self.hold(log, "llama-3.1-70b", "--tp", "4")["num_gpu_blocks"], 8192)
        for model, tp in (("llama-3.1-8b", "4"), ("qwen2.5-72b", "8"), ("qwen3-32b", "4"),
                          ("llama-3.1-70b", "2"), ("gemma-3-27b", "4")):
            self.hold(log, model, "--tp", tp, verdict="differs")

    def test_many(self):
        """256 ranks may speak, one head of 32 layers x 2 MiB / 512 on each; one more is no silence."""
        line = "(Worker_TP{}) Available KV cache memory: {} GiB\n"
        ranks = [line.format(i, "2.00") for i in range(255)]
        tokens = "GPU KV cache size: 16,384 tokens\n"
        log = "".join(ranks) + line.format(255, "1.00") + "GPU KV cache size: 8,192 tokens\n"
        got = self.hold(log, "--layers", "32", "--kv-heads", "256", "--head-dim", "1024", "--tp", "256")
        self.assertEqual((len(got["ranks"]), got["num_gpu_blocks"]), (256, 512))
        self.write("log", "".join(line.format(i, "2.00") for i in range(257)) + tokens)
        self.wrong("llama-3.1-8b", "--log", "log", says="^log:257: more than 256 ranks")


class Reading(SizeCase):
    def test_decimals(self):
        """A block is 2 MiB = 1/512 GiB, and 513 are 1.001953125 GiB: half a unit of the last decimal
        less and more."""
        for gib, low, high in (("1.00", 509, 514), ("1.002", 512, 513), ("1.00196", 513, 513),
                               ("1", 256, 768), ("1.001953125", 512, 513)):
            got = self.hold(PLAIN.replace("1.00", gib).replace("8,192", "8,208"), "llama-3.1-8b",
                            verdict="agrees" if low <= 513 <= high else "differs")
            self.assertEqual((got["lowest_blocks"], got["highest_blocks"]), (low, high), gib)
        self.assertIn("1.001953125 GiB for the cache", self.text_of("llama-3.1-8b", "--log", "log"))

    def test_old_engine_without_swap(self):
        """V0 says it by its CPU blocks, none as they are, or by its name: no null block, and no prefix
        cache unless it is on."""
        for log in ("# GPU blocks: 512, # CPU blocks: 0\n", "Initializing a V0 LLM engine (v0.8.5)\n"
                    "# GPU blocks: 512\n", "the rest of the memory reserved for KV Cache is 1.00GiB.\n"
                    "# cuda blocks: 512\n"):
            for said, cached in (("", "false"), ("enable_prefix_caching=True\n", "true")):
                self.write("log", said + log)
                part = self.call("size", "llama-3.1-8b", "--log", "log").stdout
                self.assertIn("vLLM V0", part)
                blocks, text = self.reload(part[part.index("kv:"):])
                self.assertEqual(blocks["num_blocks"], 512)
                self.assertIn(f"prefix_cache: {cached}\n", text)
        self.write("log", "Initializing a V1 LLM engine (v0.8.5)\n# GPU blocks: 512, # CPU blocks: 0\n")
        self.assertIn("vLLM V1", self.call("size", "llama-3.1-8b", "--log", "log").stdout)

    def test_model_of_drafts(self):
        """The draft's model is not the engine's, whatever stands first."""
        for drafts in ("'speculative_config': {'model': 'yuhuili/EAGLE-LLaMA3.1', "
                       "'num_speculative_tokens': 3, 'max_model_len': 2048}",
                       "speculative_config=SpeculativeConfig(method='eagle3', model='yuhuili/x(3)', "
                       "num_spec_tokens=3)",
                       "--speculative-config '{\"model\": \"yuhuili/EAGLE\", \"num_speculative_tokens\": "
                       "3}'"):
            for line in (f"{{{drafts}, 'model': 'Qwen/Qwen3-14B', 'max_model_len': 4096}}",
                         f"{{'model': 'Qwen/Qwen3-14B', 'max_model_len': 4096, {drafts}}}"):
                got = self.hold(f"args: {line}\nAvailable KV cache memory: 6.51 GiB\nGPU KV cache size: "
                                "42,656 tokens\n")
                self.assertEqual(got["model"].lower().replace(" ", "-"), "qwen3-14b")
                _, text = self.reload(got["scenario"])
                for key in ("method: eagle", "num_tokens: 3", "max_model_len: 4096"):
                    self.assertIn(f"{key}\n", text)

    def test_place_of_a_type(self):
        """What is wrong stands in the log, not on the command line."""
        self.write("log", "hello\nconfig: dtype=bfloat16, kv_cache_dtype=bf61, x\n" + PLAIN)
        self.wrong("llama-3.1-8b", "--log", "log", says=r"^log:2:40: kv_cache_dtype 'bf61' is not known")
        self.wrong("llama-3.1-8b", "--log", "log", "--kv-dtype", "bf62", says="^--kv-dtype: 'bf62'")
        self.hold("kv_cache_dtype=bf61\n" + PLAIN, "llama-3.1-8b", "--kv-dtype", "bf16")

    def test_long(self):
        """What stands behind 64 MiB counts as well; a line of so many is refused."""
        with open(self.path("log"), "w", encoding="ascii") as file:
            for _ in range(66):
                file.write(("x" * 1023 + "\n") * 1024)
            file.write(PLAIN)
        self.assertEqual(self.size("llama-3.1-8b", "--log", "log")["num_gpu_blocks"], 512)
        with open(self.path("log"), "w", encoding="ascii") as file:
            file.write("hello\n")
            for _ in range(66):
                file.write("x" * (1 << 20))
            file.write("\n" + PLAIN)
        self.wrong("llama-3.1-8b", "--log", "log", says="^log:2: this line of the log has more than 64 MiB")

    def test_many_groups(self):
        """Bamba: 3 full layers and 29 of state are 1 + 10 groups of 3, too many to run, not to hold: a
        page holds its state, so a block is three of them."""
        size = self.size("bamba-9b", "--kv-budget", "2GiB")
        self.assertEqual(len(size["groups"]), 11)
        tokens = 2 * GIB // (3 * size["page_bytes"]) // 11 * size["block_size_tokens"]
        log = f"Available KV cache memory: 2.00 GiB\nGPU KV cache size: {tokens:,} tokens\n"
        for says, verdict in ((log, "agrees"), (log.replace("2.00", "9.00"), "differs")):
            got = self.hold(says, "bamba-9b", verdict=verdict)
            self.assertNotIn("scenario", got)
            self.assertRegex(got["no_scenario"], "11 KV groups, and a cache at most 8")
            text = self.text_of("bamba-9b", "--log", "log")
            self.assertRegex(text, "verdict the log .*agree")
            self.assertIn("no kv: part this model has 11 KV groups", text)


class Reload(SizeCase):
    """The scenario of a log has the log's pool and does what its engine did."""

    def capacity(self, part, tokens):
        """So many tokens fit and not one more: those of the request itself, in usable blocks."""
        for prompt, status in ((tokens, "completed"), (tokens + 1, "rejected")):
            self.write("reload.yaml", part + "scheduler: {max_num_batched_tokens: 0}\n"
                       f"traffic: {{requests: 1, prompt_tokens: {prompt}, output_tokens: 1}}\n")
            self.call("run", "reload.yaml", "-q", "-o", "reloaded")
            self.assertEqual(self.rows("reloaded", "requests.csv")[0]["status"], status, prompt)

    def test_dcp(self):
        """516 blocks of 64 tokens on each of 4 ranks: 132,096 tokens, less the null block's 256."""
        got = self.hold("'kv_cache_memory_bytes': 1810000000\nGPU KV cache size: 132,096 tokens\n",
                        *EIGHT, "--dcp", "4", "--block-size", "64")
        blocks, _ = self.reload(got["scenario"])
        self.assertEqual((blocks["num_gpu_blocks"], blocks["block_size"]), (516, 256))
        self.assertEqual(blocks["num_gpu_blocks"] * blocks["block_size"], 132096)
        self.assertIn("64 on each of 4 DCP ranks", got["scenario"])
        self.capacity(got["scenario"], 515 * 256)

    def test_dcp_without_a_model(self):
        got = self.hold("decode_context_parallel_size=4, block_size=64\n# GPU blocks: 516\nGPU KV cache "
                        "size: 132,096 tokens\n", verdict="cannot_tell")
        self.assertEqual([c["verdict"] for c in got["checks"]], ["agrees"])
        blocks, _ = self.reload(got["scenario"])
        self.assertEqual(blocks["num_gpu_blocks"] * blocks["block_size"], 132096)

    def test_capacity(self):
        got = self.hold(PLAIN, "llama-3.1-8b")
        self.capacity(got["scenario"], 511 * 16)

    def test_window(self):
        """One group of windows stays one: Mistral 7B v0.1 forgets what is 4,096 positions behind."""
        got = self.hold(PLAIN, "mistral-7b-v0.1")
        _, text = self.reload(got["scenario"])
        self.assertIn("{type: sliding, window: 4096}", text)

    def test_prefix_cache(self):
        """Off in the log, or said to be off beside it."""
        for said, more in (("enable_prefix_caching=False\n", ()), ("", ("--no-prefix-cache",)),
                           ("disable_radix_cache=True\n", ())):
            _, text = self.reload(self.hold(said + PLAIN, "llama-3.1-8b", *more)["scenario"])
            self.assertIn("prefix_cache: false\n", text)
        for said in ("", "enable_prefix_caching=True\n", "enable_prefix_caching=None\n"):
            _, text = self.reload(self.hold(said + PLAIN, "llama-3.1-8b")["scenario"])
            self.assertIn("prefix_cache: true\n", text)

    def test_scheduler(self):
        """Batches, sequences, asynchronous scheduling, chunks."""
        said = ("non-default args: {'max_num_batched_tokens': 2048, 'max_num_seqs': 32, "
                "'async_scheduling': True, 'enable_chunked_prefill': False, 'max_model_len': 2048}\n")
        for log, more in ((said + PLAIN, ()),
                          (said.replace("'async_scheduling': True, ", "").replace("2048, 'max_num_s",
                                        "9, 'max_num_s") + PLAIN,
                           ("--async-scheduling", "--max-num-batched-tokens", "2048"))):
            _, text = self.reload(self.hold(log, "llama-3.1-8b", *more)["scenario"])
            for key in ("max_num_batched_tokens: 2048", "max_num_seqs: 32", "async_scheduling: true",
                        "enable_chunked_prefill: false", "max_model_len: 2048"):
                self.assertIn(f"{key}\n", text)
        self.assertNotIn("scheduler:", self.hold(PLAIN, "llama-3.1-8b")["scenario"])

    def test_without_chunks(self):
        """A prompt of the greatest length is one step's, at least 2,048 tokens, unless it is said."""
        for length, said, batch in ((6000, "", 6000), (1024, "", 2048),
                                    (6000, "max_num_batched_tokens=7000, ", 7000)):
            got = self.hold(f"max_model_len={length}, {said}enable_chunked_prefill=False\n" + PLAIN,
                            "llama-3.1-8b")
            _, text = self.reload(got["scenario"], "traffic: {requests: 1, prompt_tokens: "
                                  f"{length - 1}, output_tokens: 1}}\n")
            self.assertIn(f"max_num_batched_tokens: {batch}\n", text)
            self.assertEqual([row["sched_tokens"] for row in self.rows("reloaded", "steps.csv")],
                             [str(length - 1)])

    def test_override(self):
        """Blocks that somebody asked for say nothing of the memory, whichever model it is."""
        log = ("Available KV cache memory: 1.00 GiB\nOverriding num_gpu_blocks=512 with "
               "num_gpu_blocks_override=100\nGPU KV cache size: {} tokens\n")
        for model in ("llama-3.1-8b", "llama-3.1-70b"):
            got = self.hold(log.format("1,600"), model, verdict="cannot_tell")
            self.assertEqual(self.reload(got["scenario"])[0]["num_gpu_blocks"], 100)
            self.assertIn("num_gpu_blocks_override stands above the memory",
                          self.text_of(model, "--log", "log"))
            self.hold(log.format("1,616"), model, verdict="differs")

    def test_drafts(self):
        """Lookahead slots and accepted tokens need a method: drafts of a draft head, of n-grams."""
        line = "'speculative_config': {{'method': '{}', 'num_speculative_tokens': 3}}\n"
        for method, kept in (("eagle3", "eagle"), ("deepseek_mtp", "eagle"), ("ngram", "ngram"),
                             ("draft_model", "draft_model")):
            got = self.hold(line.format(method) + PLAIN, "llama-3.1-8b")
            self.assertIn("# a log of the start cannot say it", got["scenario"])
            _, text = self.reload(got["scenario"])
            self.assertIn(f"method: {kept}\n", text)
            self.assertIn("num_tokens: 3\n", text)
            self.assertIn("acceptance_rate: 0\n", text)
        got = self.hold(PLAIN, "llama-3.1-8b", "--speculative-tokens", "2", "--async-scheduling")
        _, text = self.reload(got["scenario"])
        self.assertIn("num_tokens: 2\n", text)
        self.assertIn("it was on, which is not simulated with drafts", got["scenario"])
        got = self.hold(PLAIN, "llama-3.1-8b", "--speculative-tokens", "65")
        self.assertRegex(got["no_scenario"], "65 drafts a step, and at most 64")

    def test_state(self):
        """Qwen3-Next at TP 2: what one request of up to 5,440 comes to hold is 10 blocks of attention and
        of each of three groups of state 1, 2, 2 and 3 drafts, or 10."""
        for more, each in ((("--no-prefix-cache",), 1), ((), 2), (("--speculative-tokens", "3"), 5),
                           (("--state-mode", "all"), 10)):
            args = ("qwen3-next-80b-a3b", "--tp", "2", *more)
            sized = self.size(*args, "--lengths", "5440")
            self.assertEqual(sized["lengths"][0]["request_blocks"], 10 + 3 * each)
            pool = 1000 * sized["stages"][0]["block_bytes"]
            tokens = 1000 // 4 * sized["block_size_tokens"]
            got = self.hold(f"'kv_cache_memory_bytes': {pool}\nGPU KV cache size: {tokens:,} tokens\n",
                            *args)
            self.assertEqual(got["num_gpu_blocks"], 1000)
            blocks, text = self.reload(
                got["scenario"], "traffic: {requests: 1, prompt_tokens: 5430, output_tokens: 4}\n")
            self.assertEqual((blocks["num_gpu_blocks"], blocks["block_size"]),
                             (1000, sized["block_size_tokens"]))
            self.assertEqual(self.rows("reloaded", "requests.csv")[0]["peak_blocks"],
                             str(10 + 3 * each), more)
            self.assertEqual(text.count(f"type: state, blocks: {each}"), 0 if each == 10 else 3)

    def test_counts_beyond_a_scenario(self):
        """2^31 blocks, sequences or tokens are more than are simulated; one block is the null block; and a
        log that does not tell them says so in their place."""
        for log, says in (("# GPU blocks: 2147483648\n", "2147483648 blocks"),
                          ("'max_num_seqs': 2147483648\n" + PLAIN, "2147483648 sequences"),
                          ("'max_model_len': 2147483648\n" + PLAIN, "2147483648 positions"),
                          ("# GPU blocks: 1\n", "the one block of the log is the null block")):
            self.write("log", log)
            got = json.loads(self.call("size", "--log", "log", "--json").stdout)
            self.assertIn(says, got["no_scenario"])
        got = self.hold("Available KV cache memory: 1.00 GiB\n", "llama-3.1-8b", verdict="cannot_tell")
        self.assertIn("  # num_gpu_blocks: the log does not tell\n", got["scenario"])

    def test_full_length(self):
        """Windows charged at full length are full."""
        got = self.hold("'kv_cache_memory_bytes': 1073741824\nGPU KV cache size: "
                        f"{GIB // (344064 * 16) * 16:,} tokens\n", "gemma-2-9b", "--no-hybrid-manager")
        self.assertNotIn("groups", got["scenario"])


def main():
    ProgramCase.program = os.path.abspath(sys.argv[1])
    tap.main("__main__")


if __name__ == "__main__":
    main()
