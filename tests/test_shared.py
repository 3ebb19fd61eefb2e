#!/usr/bin/env python3
"""Recorded logs, cases and public traces, where they are at hand: ../shared beside the checkout, or
the folder that PKV_SHARED names.

usage: test_shared.py PROGRAM SOURCE_ROOT

The runs are long; PKV_FAST_PROGRAM may name a build without sanitizers for them.
"""
import csv
import gzip
import json
import os
import subprocess
import sys

import tap
from program import ProgramCase

SHARED = None       # set by main
NS_PER_MS = 1_000_000

# vLLM's real scheduler driven with the same clock, on the load of a real run: preemptions, steps,
# most waiting, sums of the times to the first token and to the end in ns.
REAL_RUN = (
    ("vllm", {}, (200, 6137, 235, 19_825_022_943_189, 26_188_405_455_431)),
    ("vllm-0.19", {}, (203, 6137, 235, 19_850_235_855_183, 26_221_850_923_507)),
    ("vllm", {"scheduler.reserve_full_isl": "false"},
     (231, 6136, 235, 19_876_121_639_883, 26_265_220_133_555)),
    ("vllm-async", {}, (194, 6145, 235, 19_850_010_713_879, 26_206_396_682_297)),
)
# One load of 1,000 requests: the share of the pool kept free, the name of the recording, preemptions and
# steps.
WATERMARKS = (("0.0", "stress1000_fcfs", 212, 1434), ("0.05", "stress1000_watermark", 4, 1497))
# Rows, prompt and output tokens as counted from the files.
TRACES = (
    ("mooncake_conversation.jsonl", 80000, 12031, 144_793_823, 4_122_048),
    ("azure2023_code.csv", 2500, 8819, 18_059_974, 245_896),
    ("azure2023_conv.csv", 2500, 19366, 22_361_870, 4_088_665),
)


def shared(*names):
    return os.path.join(SHARED, *names)


class Recorded(ProgramCase):
    timeout = 900

    def checker(self, name, *args):
        result = subprocess.run([sys.executable, shared("tools", name), *args],
                                capture_output=True, text=True, timeout=self.timeout, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout.splitlines()[-1]

    def test_logs(self):
        last = self.checker("conform_all.py", shared("golden"), self.program, "--plain")
        self.assertRegex(last, r"^(\d+) of \1 logs conform$")
        self.assertGreaterEqual(int(last.split()[0]), 40)

    def test_cases(self):
        last = self.checker("check_cases.py", shared("cases"), self.program, "--parts",
                            "core,trace")
        self.assertRegex(last, r"^(\d+) of \1 cases hold$")
        self.assertGreaterEqual(int(last.split()[0]), 20)

    def test_cases_of_policies(self):
        for case in ("03", "20", "21", "22", "25"):
            with self.subTest(case):
                last = self.checker("check_cases.py", shared("cases"), self.program, "--parts",
                                    "core,trace,policies", "--only", case)
                self.assertRegex(last, r"^(\d+) of \1 cases hold$")

    def test_one_number_changed(self):
        with open(shared("golden", "contention_fcfs.steps.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        for place, field in ((40, "free_sched"), (60, "n_waiting"), (70, "gen")):
            changed = [dict(row) for row in rows]
            changed[place][field] += 1
            self.write("changed.jsonl", "".join(json.dumps(row) + "\n" for row in changed))
            result = self.call("conform", shared("golden", "contention_fcfs.config.json"),
                               shared("golden", "contention_fcfs.requests.jsonl"), "changed.jsonl")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertRegex(result.stdout, rf"step {rows[place]['step']}\b")
            self.assertIn(field, result.stdout)

    def test_emitted_log_is_the_recorded_one(self):
        for name in ("prefix_lru", "spec_draft_k3", "spec_draft_k3_contention", "spec_eagle_k2",
                     "spec_pad", "async_sched"):
            names = [shared("golden", f"{name}.{part}")
                     for part in ("config.json", "requests.jsonl", "steps.jsonl")]
            self.done("conform", *names, "--emit", "ours.jsonl", "--check")
            with open(names[2], encoding="utf-8") as file:
                recorded = [json.loads(line) for line in file]
            with self.subTest(name):
                self.assertEqual([json.loads(line) for line in self.read("ours.jsonl").splitlines()],
                                 recorded)

    def test_eagle_of_the_older_engine(self):
        names = [shared("golden", "spec_eagle_k2." + part)
                 for part in ("config.json", "requests.jsonl", "steps.v0110.jsonl")]
        self.done("conform", *names, "--preset", "vllm-2025-09")


class Watermark(ProgramCase):
    """What a watermark of 5 % does to a load of 1,000 requests on 400 blocks."""
    timeout = 300

    def recorded(self, name):
        with gzip.open(shared("golden", name + ".steps.jsonl.gz"), "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_one_key_of_the_settings(self):
        """The two recordings differ in the watermark alone, and so do our two logs."""
        with open(shared("golden", "stress1000_fcfs.config.json"), encoding="utf-8") as file:
            config = json.load(file)
        logs = [shared("golden", name + ".steps.jsonl.gz") for _, name, _, _ in WATERMARKS]
        for number, (watermark, _, preemptions, steps) in enumerate(WATERMARKS):
            config["watermark"] = float(watermark)
            self.write("config.json", json.dumps(config))
            load = ("config.json", shared("golden", "stress1000_fcfs.requests.jsonl"))
            self.done("conform", *load, logs[number], "--emit", "ours.jsonl")
            ours = [json.loads(line) for line in self.read("ours.jsonl").splitlines()]
            self.assertEqual((len(ours), ours[-1]["step"]), (steps, steps))
            self.assertEqual(ours[-1]["preempt_total"], preemptions)
            self.assertEqual(sum(len(row["preempted"]) for row in ours), preemptions)
            self.assertEqual(self.call("conform", *load, logs[1 - number]).returncode, 1)

    def test_one_key_of_a_replay(self):
        """The same as traffic: a step of 1 ms each, num_gpu_blocks as the engine counts them."""
        for watermark, name, preemptions, steps in WATERMARKS:
            self.done("replay", shared("golden", name + ".requests.jsonl"), "--num-gpu-blocks", "401",
                      "--max-num-seqs", "64", "--max-num-batched-tokens", "512", "--step-time",
                      "fixed:1", "--set", "scheduler.watermark=" + watermark, "-o", "out", "--quiet")
            summary, log = self.summary("out"), self.recorded(name)
            self.assertEqual((summary["preemptions"], summary["steps"]), (preemptions, steps))
            self.assertEqual((summary["requests"]["completed"], summary["requests"]["aborted"]),
                             tuple(sum(len(row[key]) for row in log)
                                   for key in ("finished", "aborted")))
            self.assertEqual(summary["tokens"]["scheduled"],
                             sum(num for row in log for _, num in row["sched"]))
            rows = self.rows("out", "steps.csv")
            self.assertEqual([int(row["preempted"]) for row in rows],
                             [len(row["preempted"]) for row in log])
            self.assertEqual([int(row["free_blocks"]) for row in rows],
                             [row["free_sched"] for row in log])


class RealRun(ProgramCase):
    """A real engine run under memory pressure."""
    timeout = 300

    def run_it(self, preset, keys, want):
        folder = shared("data", "real_runs", "rtx4090_llama31_8b")
        sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
        self.done("replay", os.path.join(folder, "trace.jsonl"), "--hash-block-size", "16",
                  "--num-gpu-blocks", "2588", "--preset", preset, "--max-num-batched-tokens",
                  "2048", "--step-time", "affine:17.8,0.105,0.05,138", "-o", "out", "--quiet", *sets)
        summary = self.summary("out")
        latency = summary["latency_ms"]
        self.assertEqual((summary["preemptions"], summary["steps"], summary["peak"]["waiting"],
                          latency["ttft"]["sum_ns"], latency["e2e"]["sum_ns"]), want)
        return self.rows("out", "requests.csv")

    def test_vllm(self):
        rows = self.run_it(*REAL_RUN[0])
        self.assertEqual(max(int(row["finish_ns"]) for row in rows), 184_352_036_518)

    def test_vllm_0_19(self):
        self.run_it(*REAL_RUN[1])

    def test_async(self):
        self.run_it(*REAL_RUN[3])

    def test_gate_off(self):
        self.run_it(*REAL_RUN[2])


class Traces(ProgramCase):
    """Whole public traces: every identity in every row, and twice the same bytes."""
    timeout = 900

    def check_row(self, row, before, num_blocks, block_size):
        row = {key: int(value) for key, value in row.items()}
        self.assertTrue(all(value >= 0 for value in row.values()), row)
        self.assertEqual(row["used_blocks"] + row["free_blocks"], num_blocks)
        self.assertLessEqual(row["stored_tokens"], row["used_blocks"] * block_size)
        self.assertLessEqual(row["cached_blocks"], row["free_blocks"])
        self.assertGreaterEqual(row["free_blocks_end"], row["free_blocks"])
        self.assertEqual(row["sched_tokens"], row["prefill_tokens"] + row["decode_tokens"])
        self.assertLessEqual(row["sched_tokens"], 8192)
        self.assertLessEqual(row["running"], 256)
        self.assertGreater(row["dur_ns"], 0)
        self.assertLessEqual(row["limit"], 7)
        self.assertEqual(row["limit"] == 0, row["waiting"] == 0 and row["admitted"] +
                         row["resumed"] == 0)
        if before is not None:
            # What is live now was live before, less what ended, and what was preempted or admitted
            # only changed its place.
            self.assertEqual(row["step"], before["step"] + 1)
            self.assertGreaterEqual(row["time_ns"], before["time_ns"] + before["dur_ns"])
            self.assertEqual(row["preemptions_total"],
                             before["preemptions_total"] + row["preempted"])
            self.assertEqual(row["running"], before["running"] - before["finished"] +
                             row["admitted"] + row["resumed"] - row["preempted"])
        return row

    def check_steps(self, folder, num_blocks, block_size):
        before, sums = None, {}
        with open(self.path(folder, "steps.csv"), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                before = self.check_row(row, before, num_blocks, block_size)
                for key, value in before.items():
                    sums[key] = sums.get(key, 0) + value
        self.assertEqual(before["free_blocks_end"], num_blocks)
        return sums

    def check_requests(self, folder, block_size):
        """Sums over completed requests, and the bounds of each."""
        sums = {"stored": 0, "hit": 0, "recomputed": 0, "output": 0}
        for row in self.rows(folder, "requests.csv"):
            if row["status"] != "completed":
                continue
            prompt, output = int(row["prompt_tokens"]), int(row["output_tokens"])
            positions = prompt + max(output, 1) - 1
            self.assertLessEqual(int(row["peak_blocks"]), -(-positions // block_size))
            self.assertLessEqual(int(row["hit_tokens"]), prompt - 1)
            self.assertGreater(int(row["finish_ns"]), int(row["admitted_ns"]))
            self.assertGreaterEqual(int(row["admitted_ns"]), int(row["arrival_ns"]))
            sums["stored"] += positions
            sums["hit"] += int(row["hit_tokens"])
            sums["recomputed"] += int(row["recomputed_tokens"])
            sums["output"] += output
        return sums

    def replay(self, name, num_blocks, num_rows, num_prompt, num_output):
        trace = shared("data", "traces", name)
        for folder in ("one", "two"):
            self.done("replay", trace, "--num-blocks", str(num_blocks), "-o", folder, "--quiet")
        self.same_contents("one", "two")
        summary = self.summary("one")
        requests, tokens = summary["requests"], summary["tokens"]
        self.assertEqual(requests["arrived"], num_rows)
        self.assertEqual(requests["completed"] + requests["rejected"] + requests["aborted"] +
                         requests["unfinished"], num_rows)
        self.assertEqual((requests["aborted"], requests["unfinished"]), (0, 0))
        steps = self.check_steps("one", num_blocks, 16)
        served = self.check_requests("one", 16)
        self.assertEqual(steps["finished"], requests["completed"])
        self.assertEqual(steps["admitted"], requests["completed"])
        self.assertEqual(steps["resumed"], summary["preemptions"])
        self.assertEqual(steps["sched_tokens"], tokens["scheduled"])
        self.assertEqual(steps["recomputed_tokens"], served["recomputed"])
        self.assertEqual(tokens["output"], served["output"])
        # Positions first covered by a hit: those found at first admission and, where texts are
        # shared, those that somebody else computed while a preempted request waited.
        bound = served["stored"] - served["hit"] + served["recomputed"]
        self.assertLessEqual(tokens["scheduled"], bound)
        if summary["preemptions"] == 0 or name.startswith("azure"):
            self.assertEqual(tokens["scheduled"], bound)
        if requests["rejected"] == 0:
            self.assertEqual((tokens["prompt"], tokens["output"]), (num_prompt, num_output))

    def test_mooncake(self):
        self.replay(*TRACES[0])

    def test_azure_code(self):
        self.replay(*TRACES[1])

    def test_azure_conv(self):
        self.replay(*TRACES[2])

    def check_waste(self, name, fixed_max):
        """Figures of another program: integers equal, quotients to all their digits."""
        with open(shared("data", "reference", "azure_concurrency.json"), encoding="utf-8") as file:
            want = json.load(file)[name]
        ours = json.loads(self.done(
            "waste", shared("data", "traces", f"azure2023_{name}.csv"), "--token-time",
            "20ms,50ms,100ms", "--fixed-max", str(fixed_max), "--json").stdout)
        self.assertEqual((ours["rows"], ours["last_arrival_us"]),
                         (want["rows"], want["last_arrival_us"]))
        for key in ("tbt_20ms", "tbt_50ms", "tbt_100ms"):
            self.assertEqual(ours[key].keys(), want[key].keys())
            for figure, value in want[key].items():
                with self.subTest(f"{name} {key} {figure}"):
                    if isinstance(value, int):
                        self.assertEqual(ours[key][figure], value)
                    else:
                        self.assertAlmostEqual(ours[key][figure], value, places=12)

    def test_waste(self):
        self.check_waste("code", 8192)
        self.check_waste("conv", 16384)

    def info(self, name):
        return json.loads(self.done("trace", "info", shared("data", "traces", name),
                                    "--json").stdout)

    def check_ratios(self, want, ours, path):
        """Figures of another program: integers equal, quotients to all their digits."""
        for figure, value in want.items():
            figure = {"full_block_refs": "block_refs"}.get(figure, figure)
            if figure == "plain_hit_blocks_without_prefix_rule":
                figure = "hit_blocks"       # the same on these traces
            with self.subTest(f"{path} {figure}"):
                if isinstance(value, dict):
                    self.check_ratios(value, ours[figure], f"{path} {figure}")
                elif isinstance(value, int):
                    self.assertEqual(ours[figure], value)
                else:
                    self.assertAlmostEqual(ours[figure], value, places=15)

    def test_prefix_hits(self):
        with open(shared("data", "reference", "prefix_hit_ratios.json"), encoding="utf-8") as file:
            reference = json.load(file)
        for name in ("mooncake_conversation", "mooncake_synthetic"):
            ours = self.info(f"{name}.jsonl")
            self.assertEqual((ours["rows"], ours["block_size"], ours["unique_blocks"],
                              ours["infinite"]["block_refs"], ours["prompt_tokens"]["sum"]),
                             tuple(reference[name][key] for key in (
                                 "rows", "block_size", "unique_blocks", "total_block_refs",
                                 "total_input_tokens")))
            self.check_ratios(reference[name]["infinite"], ours["infinite"], name)

    def test_lengths(self):
        """Rows, sums, means, percentiles and span, from the table that stands beside the files."""
        with open(shared("data", "traces", "README.md"), encoding="utf-8") as file:
            table = file.read().split("## Figures a reader must come to")[1]
        files = {os.path.splitext(name.replace(".gz", ""))[0]: name
                 for name in os.listdir(shared("data", "traces")) if name != "README.md"}
        lines = [[cell.strip() for cell in line.strip("| ").split("|")]
                 for line in table.splitlines() if line.startswith("|")][2:]
        self.assertEqual(len(lines), len(files))
        for name, rows, prompt, output, mean_prompt, mean_output, prompts, outputs, span in lines:
            ours = self.info(files[name])
            self.assertEqual(ours["rows"], int(rows.replace(",", "")))
            for key, total, mean, ranks in (("prompt_tokens", prompt, mean_prompt, prompts),
                                            ("output_tokens", output, mean_output, outputs)):
                self.assertEqual(ours[key]["sum"], int(total.replace(",", "")))
                self.assertEqual(f"{ours[key]['mean']:.2f}", mean)
                self.assertEqual([ours[key][rank] for rank in ("p50", "p90", "p99", "max")],
                                 [int(rank) for rank in ranks.split(" / ")])
            arrivals = ours["arrivals"]
            self.assertEqual(arrivals["first_ms"], 0)
            if span == "none":
                self.assertTrue(ours["quirks"]["untimed"])
            elif span.endswith(" ms"):
                self.assertEqual(arrivals["last_ms"], int(span.split()[2]))
            elif span.endswith(" s"):
                self.assertAlmostEqual(arrivals["last_ms"], float(span.split()[2]) * 1000, places=6)

    def test_convert(self):
        """Whole traces to other formats and back: the same rows, and the same shared prefixes."""
        name = shared("data", "traces", "mooncake_conversation.jsonl")
        there = self.done("trace", "convert", name, "--to", "mooncake", "-o", "same.jsonl")
        self.assertNotIn("lost", there.stderr)
        with open(name, encoding="utf-8") as file:
            self.assertEqual([json.loads(line) for line in file],
                             [json.loads(line) for line in self.read("same.jsonl").splitlines()])
        self.done("trace", "convert", name, "--to", "tokens", "--limit", "2000", "-o", "tokens.jsonl")
        self.done("trace", "convert", "tokens.jsonl", "--to", "mooncake", "--block-size", "512",
                  "-o", "back.jsonl")
        self.done("trace", "convert", name, "--to", "bailian", "--limit", "2000", "-o", "b.jsonl")
        hits = [json.loads(self.done("trace", "info", file, "--json", "--limit", "2000",
                                     "--block-size", "512").stdout)["infinite"]["full_blocks_only"]
                for file in (name, "back.jsonl", "b.jsonl")]
        self.assertEqual(hits[0], hits[1])
        self.assertEqual(hits[0], hits[2])
        azure = shared("data", "traces", "azure2023_code.csv")
        self.done("trace", "convert", azure, "--to", "vidur", "-o", "vidur.csv")
        self.done("trace", "convert", "vidur.csv", "--to", "azure", "-o", "azure.csv")
        with open(azure, encoding="utf-8", newline="") as file:
            rows = [line.rsplit(",", 2)[1:] for line in file.read().split("\r\n")]
        self.assertEqual([line.rsplit(",", 2)[1:]
                          for line in self.read("azure.csv").decode().splitlines()], rows)

    def test_packed_and_piped(self):
        name = shared("data", "traces", "azure2023_code.csv")
        with open(name, "rb") as file:
            self.write("code.csv.gz", gzip.compress(file.read()))
        flags = ("--num-blocks", "2500", "--limit", "500", "--files", "steps")
        self.done("replay", name, *flags, "-o", "plain")
        self.done("replay", "code.csv.gz", *flags, "-o", "packed")
        with open(name, "rb") as file:
            self.done("replay", "-", *flags, "-o", "piped", stdin=file)
        for folder in ("packed", "piped"):
            self.assertEqual(self.read(folder, "steps.csv"), self.read("plain", "steps.csv"))


def find_shared(source_root):
    folder = os.environ.get("PKV_SHARED") or os.path.join(source_root, os.pardir, "shared")
    if not os.path.isdir(os.path.join(folder, "golden")):
        tap.skip_all(f"no recorded logs at {folder}")
    return os.path.abspath(folder)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SHARED = find_shared(sys.argv[2])
    fast = os.environ.get("PKV_FAST_PROGRAM", "")
    ProgramCase.program = os.path.abspath(fast if os.access(fast, os.X_OK) else sys.argv[1])
    del sys.argv[1:]
    tap.main(__name__)
