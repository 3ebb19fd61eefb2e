#!/usr/bin/env python3
"""The Python module: its arrays against the program's files, the summary reckoned again from them, errors,
threads, interruptions, memory.

usage: test_python.py PROGRAM SOURCE_ROOT LIBRARY
"""
import csv
import decimal
import fractions
import gc
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import unittest

import tap
from program import ProgramCase, SCENARIO, TRACE, begin_again

try:
    import numpy as np
except ImportError:
    tap.skip_all("no NumPy here (python3-numpy)")
try:
    import pandas
except ImportError:
    pandas = None

SOURCE_ROOT = LIBRARY = pagedkv = None      # set by main

# Crowded: requests wait, some are preempted, some aborted, the longest rejected; names need quotes.
LOAD = """\
kv: {block_size: 4, num_blocks: 60}
scheduler: {preset: vllm-2025-09, max_num_batched_tokens: 64, max_model_len: 66}
step_time: {model: affine, base_ms: 3, per_prefill_token_ms: 0.1, per_decode_ms: 0.25, per_context_token_ns: 0}
traffic:
  requests: 150
  arrivals: {law: poisson, rate_per_s: 25}
  prompt_tokens: {law: uniform, min: 4, max: 40}
  output_tokens: {law: uniform, min: 0, max: 40}
  prefixes: {num: 2, tokens: 12, share: 0.7}
  aborts: {share: 0.1, min: 10ms, max: 400ms}
  priorities: [0, 3]
targets: {ttft_ms: 60, itl_ms: 20}
"""
# Beside it: other parts of the engine, each with what it adds to LOAD.
VARIANTS = {
    "load": {},
    "cache_off": {"kv.prefix_cache": "false"},
    "async": {"scheduler.preset": "vllm-async"},
    "speculation": {"speculation.method": "ngram", "speculation.num_tokens": "3",
                    "speculation.acceptance_rate": "0.6"},
    "swap": {"kv.num_blocks": "30", "kv.host_blocks": "12", "kv.bytes_per_token": "1000",
             "link.bandwidth": "1GB", "scheduler.on_preempt": "swap"},
    "sessions": {"traffic.sessions.turns": "3", "traffic.sessions.turn_tokens": "6",
                 "traffic.sessions.delay_ms": "100"},
    "samples": {"traffic.samples": "3", "scheduler.fork": "on"},
    "horizon": {"horizon": "2s"},
    "fixed": {"step_time": "{model: fixed, ms: 4}", "scheduler.policy": "priority"},
}
SHIPPED = ("six_blocks", "head_of_line", "neighbours", "priority", "victims", "starvation_under_lpm",
           "paging_vs_reservation", "gptoss_prefixes")
ODD_TRACE = """\
{"id": "a,\\"b\\"", "timestamp": 0, "input_length": 8, "output_length": 6, "tenant": "caf\\u00e9, north"}
{"timestamp": 1, "input_length": 8, "output_length": 1}
{"id": "too long", "timestamp": 2, "input_length": 1600, "output_length": 2}
{"id": "a,\\"b\\" again", "timestamp": 2, "input_length": 16, "output_length": 2, "tenant": "caf\\u00e9, north"}
"""


def sets(settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def cells(columns):
    """The rows of a table as a CSV reader would give them, its header first."""
    def words(values):
        return ["" if value is np.ma.masked or value is None else str(value) for value in values.tolist()]
    return [list(columns), *map(list, zip(*map(words, columns.values())))]


class Case(ProgramCase):
    def csv(self, *names):
        with open(self.path(*names), newline="", encoding="utf-8") as file:
            return list(csv.reader(file))

    def compare_with_files(self, run, folder):
        """All that the run keeps is what the program wrote, cell by cell."""
        self.assertEqual(cells(run.steps), self.csv(folder, "steps.csv"))
        self.assertEqual(cells(run.requests), self.csv(folder, "requests.csv"))
        self.assertEqual(run.scenario_yaml, self.read(folder, "scenario.yaml").decode())
        theirs = self.read(folder, "summary.json").decode()
        cut = re.compile(r'"wall_ns": \d+')
        self.assertEqual(cut.sub("", run.summary_json), cut.sub("", theirs))
        if run.events is not None:
            lines = self.read(folder, "events.jsonl").decode().splitlines()
            self.assertEqual(run.events, [json.loads(line) for line in lines])


class Equal(Case):
    def test_variants(self):
        self.write("load.yaml", LOAD)
        window = {"measure.after": "1s", "measure.until": "3s"}
        for name, settings in {**VARIANTS, "window": window}.items():
            with self.subTest(name):
                self.call("run", "load.yaml", "-o", name, "-q", *sets(settings))
                run = pagedkv.run(self.path("load.yaml"), settings, events=True)
                self.compare_with_files(run, name)
                self.assertGreater(len(run.steps["step"]), 100)

    def test_shipped_scenarios(self):
        for name in SHIPPED:
            with self.subTest(name):
                path = os.path.join(SOURCE_ROOT, "scenarios", name + ".yaml")
                self.call("run", path, "-o", name, "-q")
                self.compare_with_files(pagedkv.run(path), name)

    def test_odd_texts(self):
        self.write("scenario.yaml", SCENARIO)
        self.write("trace.jsonl", ODD_TRACE)
        self.done("run", "scenario.yaml", "-o", "out", "-q")
        run = pagedkv.run(self.path("scenario.yaml"), events=True)
        self.compare_with_files(run, "out")
        self.assertEqual(sorted(run.requests["id"]), ["1", 'a,"b"', 'a,"b" again', "too long"])
        self.assertEqual(list(run.requests["tenant"]).count("caf\u00e9, north"), 2)

    def test_thinned_out(self):
        self.write("load.yaml", LOAD)
        whole = len(pagedkv.run(self.path("load.yaml")).steps["step"])
        for flags, options in ((["--every", "7"], {"every": 7}), (["--on-change"], {"on_change": True})):
            self.done("run", "load.yaml", "-o", "out", "-q", *flags)
            run = pagedkv.run(self.path("load.yaml"), extra=True, **options)
            self.compare_with_files(run, "out")
            self.assertLess(len(run.steps["step"]), whole)
            self.assertEqual(len(run.extra["output_tokens"]), len(run.steps["step"]))

    def test_replay(self):
        self.small()
        self.done("replay", "trace.jsonl", "--num-blocks", "8", "--block-size", "4", "--step-time", "fixed:1",
                  "--no-prefix-cache", "--speedup", "2.5", "-o", "out", "-q")
        run = pagedkv.replay(self.path("trace.jsonl"), num_blocks=8, block_size=4, step_time="fixed:1",
                             prefix_cache=False, speedup=2.5)
        self.compare_with_files(run, "out")

    def test_keywords_of_replay_are_its_flags(self):
        others = {"output", "files", "every", "on-change", "set", "check", "step", "quiet", "help"}
        text = self.done("replay", "--help").stdout
        flags = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.MULTILINE))
        self.assertIn("num-blocks", flags)
        ours = {word.replace("_", "-") for word in pagedkv._REPLAY} - {"prefix-cache"} | {"no-prefix-cache"}
        self.assertLessEqual(ours, flags)
        self.assertFalse({word for word in flags - ours - others if not self.is_of_run(word)})

    def is_of_run(self, word):
        """A flag that `run` has, too, is no key of the scenario."""
        return f"--{word}" in self.done("run", "--help").stdout

    def test_files_are_the_programs(self):
        self.small()
        self.done("run", "scenario.yaml", "-o", "theirs", "-q")
        pagedkv.run(self.path("scenario.yaml"), out=self.path("ours"))
        self.same_contents("ours", "theirs")
        pagedkv.run(self.path("scenario.yaml"), out=self.path("few"), files=["steps", "summary"])
        self.assertEqual(sorted(os.listdir(self.path("few"))), ["steps.csv", "summary.json"])

    def test_text_and_dict(self):
        self.small()
        file = pagedkv.run(self.path("scenario.yaml"))
        said = {"title": "eight small blocks", "kv": {"block_size": 4, "num_blocks": np.int64(8)},
                "scheduler": {"preset": "vllm"}, "step_time": {"model": "fixed", "ms": 1.0},
                "traffic": {"trace": self.path("trace.jsonl")}}
        text = SCENARIO.replace("trace.jsonl", self.path("trace.jsonl"))
        for scenario in (text, said):
            run = pagedkv.run(scenario)
            self.assertEqual(run.scenario_yaml, file.scenario_yaml)
            self.assertEqual(cells(run.steps), cells(file.steps))
        # A float stays a decimal number, and texts with signs are quoted.
        run = pagedkv.run({**said, "title": "a: [b] # c", "step_time": {
            "model": "affine", "base_ms": 0.00001, "per_prefill_token_ms": 0, "per_decode_ms": 0.0,
            "per_context_token_ns": 0}})
        self.assertEqual(int(run.steps["dur_ns"][0]), 10)
        self.assertIn('"a: [b] # c"', run.scenario_yaml)
        self.assertEqual(pagedkv.run(said, {"kv.num_blocks": 9}).summary["blocks"]["num_blocks"], 9)

    def test_version(self):
        self.assertEqual(f"pagedkv {pagedkv.__version__}\n", self.done("--version").stdout)


def total(values):
    """Exact, whatever the sizes."""
    return int(np.sum(values.astype(object))) if len(values) else 0


def cut(num, den):
    """As summary.json prints a quotient: nine decimals, the rest cut."""
    return decimal.Decimal(num * 10**9 // den) / 10**9 if den else decimal.Decimal(0)


def of_each_variant(check):
    """A test that calls check(self, run, summary) for each."""
    def test(self):
        for name, settings in VARIANTS.items():
            with self.subTest(name):
                run = pagedkv.run(self.path("load.yaml"), settings, extra=True, gaps=True)
                check(self, run, json.loads(run.summary_json, parse_float=decimal.Decimal))
    return test


class Summary(Case):
    """The definitions of README.md and pagedkv-files(5), on the arrays alone."""

    def setUp(self):
        super().setUp()
        self.write("load.yaml", LOAD)

    def makespan(self, run):
        s = run.steps
        return int(s["time_ns"][-1] + s["dur_ns"][-1]) - int(run.requests["arrival_ns"].min())

    @of_each_variant
    def test_counts(self, run, told):
        s, e, r = run.steps, run.extra, run.requests
        admitted = ~np.ma.getmaskarray(r["admitted_ns"])
        counts = {word: int((r["status"] == word).sum())
                  for word in ("completed", "rejected", "aborted", "unfinished")}
        self.assertEqual(told["requests"], {"arrived": len(r["id"]), **counts})
        first_hits = total(r["hit_tokens"])
        self.assertEqual(told["tokens"], {
            "prompt": total(r["prompt_tokens"][admitted]), "output": total(r["output_tokens"]),
            "scheduled": total(s["sched_tokens"]), "recomputed": total(s["recomputed_tokens"]),
            "queried": total(e["queried_tokens"]), "hit": first_hits,
            "resumed_queried": total(e["resumed_queried_tokens"]),
            "resumed_hit": total(s["hit_tokens"]) - first_hits})
        blocks = int(s["free_blocks"][0] + s["used_blocks"][0])
        self.assertEqual(told["blocks"], {
            "num_blocks": blocks, "num_gpu_blocks": blocks + 1, "block_size": 4,
            "allocated": int(e["allocated_total"][-1]),
            # What is held when all is over (a horizon came) goes back then.
            "released": int(e["released_total"][-1] + blocks - s["free_blocks_end"][-1]),
            "copied": int(e["copied_total"][-1])})
        self.assertEqual(told["preemptions"], total(s["preempted"]))
        self.assertEqual(told["preemptions"], total(r["preemptions"]))
        self.assertEqual(told["evicted_blocks"], total(s["evicted_blocks"]))
        self.assertEqual(told["steps"], len(s["step"]))
        self.assertEqual(told["makespan_ns"], self.makespan(run))
        self.assertEqual(told["peak"], {"used_blocks": int(s["used_blocks"].max()),
                                        "waiting": int(s["waiting"].max()),
                                        "running": int(s["running"].max())})

    @of_each_variant
    def test_means(self, run, told):
        s, span = run.steps, self.makespan(run)
        dur = s["dur_ns"].astype(object)
        pool = int(s["free_blocks"][0] + s["used_blocks"][0])
        over_time = {name: total(s[name] * dur)
                     for name in ("used_blocks", "stored_tokens", "running", "waiting")}
        self.assertEqual(told["mean"], {
            "used_frac": cut(over_time["used_blocks"], span * pool),
            "slot_use_frac": cut(over_time["stored_tokens"], span * pool * 4),
            "running": cut(over_time["running"], span), "waiting": cut(over_time["waiting"], span)})
        limits = [total(dur[s["limit"] == number]) for number in range(len(told["limit_frac"]))]
        limits[0] += span - total(dur)      # no step: nobody there
        self.assertEqual(list(told["limit_frac"].values()), [cut(ns, span) for ns in limits])
        completed = run.requests["status"] == "completed"
        tokens = total(run.requests["output_tokens"])
        self.assertEqual(told["throughput"], {
            "requests_per_s": cut(int(completed.sum()) * 10**9, span),
            "output_tokens_per_s": cut(tokens * 10**9, span)})

    def latencies(self, r):
        """Lists of (ns, how many)."""
        one = {name: r[name].tolist() for name in r}
        rows = [dict(zip(one, values)) for values in zip(*one.values())]
        done = [row for row in rows if row["status"] == "completed" and row["first_token_ns"] is not None]
        ends = {
            "ttft": [row["first_token_ns"] - row["arrival_ns"] for row in rows
                     if row["first_token_ns"] is not None],
            "tpot": [(row["finish_ns"] - row["first_token_ns"]) // (row["output_tokens"] - 1)
                     for row in done if row["output_tokens"] > 1],
            "max_gap": [row["max_gap_ns"] for row in rows if row["output_tokens"] > 1],
            "e2e": [row["finish_ns"] - row["arrival_ns"] for row in done],
            "queue": [row["queue_ns"] for row in rows if row["admitted_ns"] is not None],
        }
        return {name: [(ns, 1) for ns in values] for name, values in ends.items()}, done

    def check_distribution(self, told, weighted):
        weighted = sorted(weighted)
        count = sum(num for _, num in weighted)
        sum_ns = sum(ns * num for ns, num in weighted)
        self.assertEqual((told["count"], told["sum_ns"]), (count, sum_ns))
        self.assertEqual(told["mean"], cut(sum_ns, count * 10**6))
        self.assertEqual(told["max"] * 10**6, weighted[-1][0] if count else 0)
        for percent in (50, 90, 95, 99):
            rank, seen, exact = -(-count * percent // 100), 0, 0
            for ns, num in weighted:
                seen += num
                exact = ns
                if seen >= rank:
                    break
            shown = fractions.Fraction(told[f"p{percent}"]) * 10**6
            self.assertLessEqual(exact, shown)
            self.assertLessEqual(shown, exact * fractions.Fraction(1025, 1024))

    @of_each_variant
    def test_latencies(self, run, told):
        latencies, _ = self.latencies(run.requests)
        latencies["itl"] = list(zip(run.gaps["gap_ns"].tolist(), run.gaps["num"].tolist()))
        self.assertGreater(len(latencies["tpot"]), 10)
        self.assertEqual(set(latencies), set(told["latency_ms"]))
        for name, weighted in latencies.items():
            self.check_distribution(told["latency_ms"][name], weighted)

    @of_each_variant
    def test_goodput(self, run, told):
        _, done = self.latencies(run.requests)
        good = [row for row in done if row["first_token_ns"] - row["arrival_ns"] <= 60 * 10**6 and
                (row["max_gap_ns"] or 0) <= 20 * 10**6]
        span = self.makespan(run)
        tokens = sum(row["output_tokens"] for row in good)
        self.assertEqual(told["goodput"], {"requests": len(good),
                                           "requests_per_s": cut(len(good) * 10**9, span),
                                           "output_tokens_per_s": cut(tokens * 10**9, span)})

    @of_each_variant
    def test_gaps_are_those_of_the_requests(self, run, _told):
        r = run.requests
        largest = r["max_gap_ns"].compressed()
        self.assertEqual(int(run.gaps["gap_ns"].max()), int(largest.max()))
        several = r["output_tokens"] > 1
        self.assertEqual(total(run.gaps["num"]), total(r["output_tokens"][several] - 1))
        self.assertTrue(np.isin(run.gaps["time_ns"], run.steps["time_ns"]).all())


class Arrays(Case):
    def test_kinds(self):
        self.write("load.yaml", LOAD)
        run = pagedkv.run(self.path("load.yaml"), extra=True)
        for values in (*run.steps.values(), *run.extra.values()):
            self.assertEqual((values.dtype, len(values)), (np.dtype(np.int64), len(run.steps["step"])))
        with self.assertRaises(ValueError):
            run.steps["step"][0] = 1
        rejected = run.requests["status"] == "rejected"
        self.assertGreater(rejected.sum(), 0)
        times = run.requests["finish_ns"]
        self.assertIsInstance(times, np.ma.MaskedArray)
        self.assertTrue((times.filled() == pagedkv.NO_TIME)[rejected].all())
        self.assertTrue((np.ma.getmaskarray(times) == rejected).all())

    def test_what_is_not_wanted(self):
        self.small()
        run = pagedkv.run(self.path("scenario.yaml"), steps=False, requests=False)
        self.assertEqual((run.steps, run.requests, run.extra, run.gaps, run.events), ({}, {}, {}, {}, None))
        self.assertEqual(run.summary["requests"]["completed"], 3)

    def test_what_a_notebook_shows(self):
        self.small()
        run, = pagedkv.compare(self.path("scenario.yaml"), {"kv.num_blocks": [8]})
        self.assertIn("requests: 3 of 3 completed", repr(run))
        run.varied = {"<b>&": "1"}
        self.assertIn("<tr><th>&lt;b&gt;&amp;</th><td>1</td></tr>", run._repr_html_())
        self.assertEqual(run.figures()["latency_ms.ttft.p99"], run.summary["latency_ms"]["ttft"]["p99"])

    def test_an_array_outlives_its_run(self):
        self.small()
        run = pagedkv.run(self.path("scenario.yaml"))
        column, expected = run.steps["free_blocks"], run.steps["free_blocks"].tolist()
        times = run.requests["finish_ns"]
        finishes = times.tolist()
        del run
        gc.collect()
        pagedkv.run(self.path("scenario.yaml"))
        self.assertEqual((column.tolist(), times.tolist()), (expected, finishes))

    def test_nothing_arrives(self):
        self.write("load.yaml", LOAD)
        run = pagedkv.run(self.path("load.yaml"), {"horizon": "1ns"}, extra=True, gaps=True)
        self.assertEqual({len(values) for table in (run.steps, run.requests, run.extra, run.gaps)
                          for values in table.values()}, {0})
        self.assertEqual(run.summary["requests"]["arrived"], 0)

    @unittest.skipUnless(pandas, "no pandas here")
    def test_frames(self):
        self.write("load.yaml", LOAD)
        run = pagedkv.run(self.path("load.yaml"), extra=True)
        steps, requests = run.steps_frame(), run.requests_frame()
        self.assertEqual(list(steps.columns), [*run.steps, *run.extra])
        self.assertEqual(steps["free_blocks"].tolist(), run.steps["free_blocks"].tolist())
        self.assertEqual(str(requests["finish_ns"].dtype), "Int64")
        rejected = requests["status"] == "rejected"
        self.assertTrue((requests["finish_ns"].isna() == rejected).all())
        self.assertEqual(requests["finish_ns"].dropna().tolist(),
                         run.requests["finish_ns"].compressed().tolist())

    def test_without_pandas(self):
        self.small()
        code = ("import sys; sys.modules['pandas'] = None; import pagedkv\n"
                "run = pagedkv.run('scenario.yaml'); print(run.steps['step'].max())\n"
                "try: run.steps_frame()\nexcept ImportError: print('no frame')\n")
        self.done("run", "scenario.yaml", "-o", "out", "-q")
        last = self.rows("out", "steps.csv")[-1]["step"]
        self.assertEqual(self.python("-c", code), f"{last}\nno frame\n")

    def python(self, *args, **environment):
        return subprocess.run([sys.executable, *args], cwd=self.folder, check=True, text=True, timeout=300,
                              stdout=subprocess.PIPE, env={**os.environ, **environment}).stdout

    def test_example(self):
        try:
            import matplotlib      # noqa: F401, only whether it is there
        except ImportError:
            self.skipTest("no matplotlib here")
        example = os.path.join(SOURCE_ROOT, "tools", "python", "example.py")
        scenario = os.path.join(SOURCE_ROOT, "scenarios", "victims.yaml")
        for name, begin in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
            said = self.python(example, scenario, name, MPLCONFIGDIR=self.folder)
            self.assertIn("preemptions", said)
            self.assertTrue(self.read(name).startswith(begin))
            self.assertGreater(len(self.read(name)), 10000)


class Readme(Case):
    def test_what_it_shows(self):
        """The program in the README says what stands below it."""
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            section = file.read().split("\n## In Python and notebooks\n")[1].split("\n## ")[0]
        code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", section, re.DOTALL).groups()
        said = subprocess.run([sys.executable, "-c", code], cwd=SOURCE_ROOT, check=True, text=True,
                              stdout=subprocess.PIPE, timeout=300).stdout
        self.assertEqual(said, shown)

    def test_manual(self):
        said = self.done("--man", "pagedkv").stdout
        self.assertIn("import pagedkv", said)


class Errors(Case):
    def fails(self, *args, run=None, **kwargs):
        with self.assertRaises(pagedkv.Error) as caught:
            (run or pagedkv.run)(*args, **kwargs)
        return caught.exception

    def test_place_in_a_file(self):
        self.write("bad.yaml", "kv:\n  num_blocks: many\ntraffic: {requests: 1}\n")
        error = self.fails(self.path("bad.yaml"))
        self.assertEqual((error.path, error.line, error.column, error.code),
                         (self.path("bad.yaml"), 2, 15, "input"))
        said = self.call("run", self.path("bad.yaml")).stderr
        self.assertEqual(said.strip(), str(error))

    def test_place_in_a_text_and_a_dict(self):
        error = self.fails("kv: {num_blocks: 9}\ntrafic: {requests: 1}\n")
        self.assertEqual((error.path, error.line, error.column), ("<text>", 2, 1))
        self.assertIn("'traffic'", error.text)
        error = self.fails({"kv": {"num_blocks": 9}, "traffic": {"requests": "many"}})
        self.assertEqual((error.path, error.line), ("<dict>", 2))
        self.assertIn("traffic.requests", error.text)

    def test_settings_and_keywords(self):
        self.small()
        error = self.fails(self.path("scenario.yaml"), {"kv.num_block": 3})
        self.assertEqual((error.path, error.line, error.column), ("settings", 0, 0))
        error = self.fails(self.path("trace.jsonl"), num_blocks="many", run=pagedkv.replay)
        self.assertEqual(error.path, "num_blocks")
        error = self.fails(self.path("trace.jsonl"), run=pagedkv.replay)
        self.assertIn("num_blocks", error.text)
        with self.assertRaises(TypeError):
            pagedkv.replay(self.path("trace.jsonl"), num_bloks=3)
        with self.assertRaises(TypeError):
            pagedkv.run({"kv": object()})

    def test_a_row_of_the_trace(self):
        self.small()
        self.write("trace.jsonl", TRACE + '{"id": "d", "timestamp": 3, "input_length": -1}\n')
        for folder, left in (("new", None), ("old", [])):
            if left is not None:
                os.mkdir(self.path(folder))
            try:
                pagedkv.run(self.path("scenario.yaml"), out=self.path(folder))
                self.fail("it ran")
            except pagedkv.Error as error:      # kept, and with it all that it refers to
                self.assertEqual((os.path.basename(error.path), error.line), ("trace.jsonl", 4))
                path = self.path(folder)
                self.assertEqual(os.listdir(path) if os.path.exists(path) else None, left)

    def test_inputs_are_spared(self):
        self.small()
        error = self.fails(self.path("scenario.yaml"), out=self.folder)
        self.assertIn("scenario.yaml", str(error))
        self.assertEqual(self.read("scenario.yaml").decode(), SCENARIO)

    def test_stuck_is_no_error(self):
        self.small()
        settings = {"kv.num_blocks": 6, "scheduler.preempt": "never"}
        run = pagedkv.run(self.path("scenario.yaml"), settings)
        told = self.call("run", self.path("scenario.yaml"), "-q", *sets(settings)).stderr
        self.assertEqual(run.outcome, "stuck")
        self.assertIn(run.diagnosis, told)

    def test_no_library(self):
        result = subprocess.run([sys.executable, "-c", "import pagedkv"], check=False, text=True,
                                stderr=subprocess.PIPE, env={**os.environ, "PAGEDKV_LIBRARY": "/none.so"})
        self.assertIn("ImportError: cannot load the library of pagedkv: /none.so", result.stderr)


ENDLESS = """\
kv: {num_blocks: 500}
step_time: {model: affine, base_ms: 1, per_prefill_token_ms: 0.001, per_decode_ms: 0.001, per_context_token_ns: 1}
traffic:
  requests: 4000000000
  arrivals: {law: poisson, rate_per_s: 20}
  prompt_tokens: {law: uniform, min: 4, max: 400}
  output_tokens: {law: uniform, min: 1, max: 40}
"""


class Threads(Case):
    def state(self, run):
        return [cells(run.steps), cells(run.requests), re.sub(r'"wall_ns": \d+', "", run.summary_json)]

    def test_side_by_side(self):
        self.write("load.yaml", LOAD)
        seeds = (1, 2, 3)

        def run(seed):
            return self.state(pagedkv.run(self.path("load.yaml"), {"traffic.seed": seed,
                                                                   "traffic.requests": 400}))
        one_by_one = {seed: run(seed) for seed in seeds}
        together = {}
        threads = [threading.Thread(target=lambda seed=seed: together.update({seed: run(seed)}))
                   for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, one_by_one)
        self.assertNotEqual(one_by_one[1], one_by_one[2])

    def test_compare(self):
        self.write("load.yaml", LOAD)
        runs = pagedkv.compare(self.path("load.yaml"), {"kv.num_blocks": [40, 60], "traffic.seed": [1, 2]},
                               jobs=3)
        self.assertEqual([tuple(run.varied.values()) for run in runs], [(40, 1), (40, 2), (60, 1), (60, 2)])
        for run in runs:
            alone = pagedkv.run(self.path("load.yaml"), run.varied)
            self.assertEqual(self.state(run), self.state(alone))
        with self.assertRaises(pagedkv.Error):
            pagedkv.compare(self.path("load.yaml"), {"kv.num_blocks": [40, "many"]})
        if pandas:
            frame = pagedkv.table(runs)
            self.assertEqual(frame["kv.num_blocks"].tolist(), [40, 40, 60, 60])
            self.assertEqual(frame["preemptions"].tolist(), [run.summary["preemptions"] for run in runs])

    def interrupt(self, call):
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with self.assertRaises(KeyboardInterrupt) as caught:
                call()
        finally:
            timer.cancel()
            timer.join()
        return caught.exception

    def test_interrupt(self):
        self.write("endless.yaml", ENDLESS)
        run = self.interrupt(lambda: pagedkv.run(self.path("endless.yaml"))).run
        self.assertEqual(run.outcome, "interrupted")
        steps = len(run.steps["step"])
        self.assertGreater(steps, 0)
        # What was done is what a longer run begins with.
        again = pagedkv.run(self.path("endless.yaml"), {"traffic.requests": 40}, requests=False)
        same = min(steps, 50, len(again.steps["step"]))
        self.assertEqual(again.steps["free_blocks"][:same].tolist(), run.steps["free_blocks"][:same].tolist())

    def test_interrupt_of_several(self):
        self.write("endless.yaml", ENDLESS)
        self.interrupt(lambda: pagedkv.compare(self.path("endless.yaml"), {"kv.num_blocks": [500] * 4},
                                               jobs=2, steps=False))
        self.assertEqual(threading.active_count(), 1)


class Memory(Case):
    def resident(self):
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    @unittest.skipUnless(os.path.exists("/proc/self/statm"), "no /proc here")
    def test_two_hundred_runs(self):
        self.write("load.yaml", LOAD)

        def one():
            run = pagedkv.run(self.path("load.yaml"), {"traffic.requests": 300}, extra=True, gaps=True)
            size = sum(values.nbytes for values in (*run.steps.values(), *run.extra.values()))
            self.assertGreater(size, 300_000)
            return size
        for _ in range(20):
            size = one()
        before = self.resident()
        for _ in range(200):
            one()
        gc.collect()
        # Kept, the arrays of one in ten would show.
        self.assertLess(self.resident() - before, 20 * size)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    ProgramCase.program, SOURCE_ROOT, LIBRARY = map(os.path.abspath, sys.argv[1:])
    begin_again(SOURCE_ROOT, LIBRARY)
    import pagedkv     # noqa: F811
    tap.main(__name__)
