#!/usr/bin/env python3
"""--openmetrics: what a scraper would have had, reckoned again from the logs of the same run, and given
to promtool, which takes it and gives it back sample by sample.

usage: test_openmetrics.py PROGRAM SOURCE_ROOT
"""
import bisect
import json
import os
import re
import signal
import subprocess
import sys
import time

import tap
from program import TRACE, ProgramCase

SOURCE_ROOT = None      # set by main

MS = 1_000_000
TTFT = [.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560]
GAP = [.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]
REQUEST = [.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
STEP = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
LENGTH = [m * 10 ** e for e in range(6) for m in (1, 2, 5) if m * 10 ** e <= 131072]
BOUNDS = {"time_to_first_token_seconds": TTFT, "inter_token_latency_seconds": GAP,
          "request_time_per_output_token_seconds": GAP, "e2e_request_latency_seconds": REQUEST,
          "request_queue_time_seconds": REQUEST, "request_inference_time_seconds": REQUEST,
          "request_prefill_time_seconds": REQUEST, "request_decode_time_seconds": REQUEST,
          "request_prompt_tokens": LENGTH, "request_generation_tokens": LENGTH,
          "request_prefill_kv_computed_tokens": LENGTH, "iteration_tokens_total": STEP}
# Preemptions, aborts while waiting and while running, sessions of shared prompts, an idle stretch, and a
# request that can never run.
ROWS = [{"id": f"r{i}", "timestamp": 7 * i + (4000 if i >= 24 else 0), "input_length": 20 + 9 * (i % 7),
         "output_length": 6 + 11 * (i % 5), **({"abort_ms": 7 * i + 31} if i in (5, 11, 17) else {}),
         **({"max_tokens": 100} if i % 3 == 0 else {})} for i in range(36)]
ROWS.insert(20, {"id": "huge", "timestamp": ROWS[20]["timestamp"], "input_length": 4000,
                 "output_length": 3})
PRESSED = """\
kv: {block_size: 4, num_blocks: 40}
step_time: {model: affine, base_ms: 3, per_prefill_token_ms: 0.05, per_decode_ms: 0.25}
traffic: {trace: rows.jsonl}
"""


ENDLESS = """\
kv: {block_size: 16, num_blocks: 64}
scheduler: {max_num_seqs: 1}
step_time: {model: fixed, ms: 1}
traffic:
  requests: 1000000000
  arrivals: {law: constant, rate_per_s: 1000}
  prompt_tokens: 16
  output_tokens: 4
"""


NUMBER = r"(?:0|[1-9]\d*)(?:\.\d+)?"
SAMPLE = re.compile(rf'(vllm:[a-z0-9_]+)\{{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\}} ({NUMBER}) ({NUMBER})')
SUFFIXES = {"gauge": [""], "counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}


def check_point(kind, name, point):
    """One metric at one time."""
    if kind != "histogram":
        assert len(point) == 1, name
        return
    bounds = [float(dict(labels)["le"]) for suffix, labels, _ in point if suffix == "_bucket"]
    counts = [value for suffix, _, value in point if suffix == "_bucket"]
    rest = {suffix: value for suffix, _, value in point if suffix != "_bucket"}
    assert [suffix for suffix, _, _ in point] == ["_bucket"] * len(bounds) + ["_count", "_sum"], name
    assert bounds == sorted(set(bounds)) and bounds[-1] == float("inf"), (name, bounds)
    assert counts == sorted(counts) and counts[-1] == rest["_count"], (name, point)
    assert rest["_count"] > 0 or rest["_sum"] == 0, (name, point)


def check_format(text):
    """What OpenMetrics 1.0 asks of a text, but for what a parser needs of it: metadata once and before the
    samples, units that end their names, families and metrics that are not torn apart, times and counts that
    only grow, whole histograms."""
    assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1 and "\n\n" not in text
    families, metrics = {}, set()
    family = metric = time = kind = None
    point, former = [], {}
    for line in text.splitlines():
        keyword = re.match(r"# (TYPE|UNIT|HELP|EOF)\b", line)
        found = None if keyword else SAMPLE.fullmatch(line)
        assert keyword or found, line
        labels = tuple(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', found[2])) if found else None
        where = tuple(pair for pair in labels if pair[0] != "le" or kind != "histogram") if found else None
        if point and (not found or (where, found[4]) != (metric, time)):
            check_point(kind, family, point)
            point = []
        if keyword:
            metric = None
            if keyword[1] == "EOF":
                continue
            name, word = line.split(" ", 3)[2:]
            if keyword[1] == "TYPE":
                assert name not in families, name
                family, kind, families[name] = name, word, {"TYPE"}
                continue
            assert name == family and keyword[1] not in families[name], line
            families[name].add(keyword[1])
            assert keyword[1] != "UNIT" or name.endswith("_" + word), line
            continue
        assert found[1].startswith(family) and found[1][len(family):] in SUFFIXES[kind], line
        assert len(dict(labels)) == len(labels), line
        if where != metric:
            assert (family, where) not in metrics, line
            metrics.add((family, where))
            metric, time, former = where, None, {}
        assert time is None or float(found[4]) >= float(time), line
        time, key, value = found[4], (found[1], labels), float(found[3])
        assert key not in former or former[key][0] < float(time), line
        assert kind == "gauge" or key not in former or former[key][1] <= value, line
        former[key] = float(time), value
        point.append((found[1][len(family):], labels, value))
    for name, words in families.items():
        assert {"TYPE", "HELP"} <= words and ("UNIT" in words) == name.endswith("_seconds"), name


def parse(text):
    """{(name, labels): [(time in ms, value)]}, with the order that the format asks for."""
    samples, families, family, kind = {}, [], None, None
    lines = text.splitlines()
    assert lines[-1] == "# EOF" and "# EOF" not in lines[:-1]
    for line in lines[:-1]:
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:]
            assert family not in families, family
            families.append(family)
        elif not line.startswith(("# HELP ", "# UNIT ")):
            name, labels, value, time = re.fullmatch(r'([\w:]+)\{(.*)\} (\S+) (\S+)', line).groups()
            assert name in [family + end for end in SUFFIXES[kind]], line
            key = name, tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)))
            samples.setdefault(key, []).append((round(float(time) * 1000), float(value)))
    return samples


class OpenMetrics(ProgramCase):
    timeout = 600

    def run_it(self, *args):
        self.done(*args, "-o", "out", "--openmetrics", "m.txt", "--quiet")
        check_format(self.read("m.txt").decode())
        self.samples = parse(self.read("m.txt").decode())
        self.steps = [{k: int(v) for k, v in row.items()} for row in self.rows("out", "steps.csv")]
        self.requests = self.rows("out", "requests.csv")
        self.first = [e for e in map(json.loads, self.read("out", "events.jsonl").splitlines())
                      if e["kind"] == "first_token"]

    def get(self, name, **labels):
        found = [v for (n, each), v in self.samples.items()
                 if n == "vllm:" + name and labels.items() <= dict(each).items()]
        self.assertEqual(len(found), 1, (name, labels, len(found)))
        return found[0]

    def last(self, name, **labels):
        return self.get(name, **labels)[-1][1]

    def check_times(self, interval_ms):
        end = self.steps[-1]["time_ns"] + self.steps[-1]["dur_ns"]
        end_ms = -(-end // MS)
        expected = list(range(0, end_ms, interval_ms)) + [end_ms]
        for key, values in self.samples.items():
            self.assertTrue([time for time, _ in values] == expected, (key, len(values), len(expected)))

    def check_gauges(self):
        """A scrape sees the row in force: the last that began, unless it is over, when nobody was live."""
        begins = [row["time_ns"] for row in self.steps]
        blocks = self.summary("out")["blocks"]["num_blocks"]
        gauges = {"num_requests_running": lambda row: row["running"],
                  "num_requests_waiting": lambda row: row["waiting"],
                  "kv_cache_usage_perc": lambda row: row["used_blocks"] / blocks}
        for name, of in gauges.items():
            for time, value in self.get(name):
                row = self.steps[bisect.bisect_right(begins, time * MS) - 1] if time * MS >= begins[0] \
                    else None
                live = row is not None and time * MS < row["time_ns"] + row["dur_ns"]
                self.assertAlmostEqual(value, of(row) if live else 0, delta=1e-15, msg=(name, time))
        self.assertEqual(self.get("num_requests_waiting_by_reason", reason="capacity"),
                         self.get("num_requests_waiting"))
        for time, value in self.get("num_preemptions_total"):
            before = bisect.bisect_right(begins, time * MS)
            self.assertEqual(value, self.steps[before - 1]["preemptions_total"] if before else 0)

    def observations(self):
        """What each histogram is given, as (time in ns, value), where the logs tell."""
        prompts = {row["id"]: int(row["prompt_tokens"]) for row in self.requests}
        arrivals = {row["id"]: int(row["arrival_ns"]) for row in self.requests}
        hits = {row["id"]: int(row["hit_tokens"] or 0) for row in self.requests}
        given = {name: [] for name in BOUNDS}
        for event in self.first:
            key = str(event["id"])
            given["time_to_first_token_seconds"].append(
                (event["time_ns"], event["time_ns"] - arrivals[key]))
        for row in self.requests:
            if row["status"] != "completed":
                continue
            end, begin, admitted, first = (int(row[k]) for k in
                                           ("finish_ns", "arrival_ns", "admitted_ns", "first_token_ns"))
            num = int(row["output_tokens"])
            for name, value in (
                    ("e2e_request_latency_seconds", end - begin),
                    ("request_queue_time_seconds", admitted - begin),
                    ("request_inference_time_seconds", end - admitted),
                    ("request_prefill_time_seconds", first - admitted),
                    ("request_decode_time_seconds", end - first),
                    ("request_time_per_output_token_seconds", (end - first) // max(1, num - 1)),
                    ("request_prompt_tokens", prompts[row["id"]]),
                    ("request_generation_tokens", num),
                    ("request_prefill_kv_computed_tokens", prompts[row["id"]] - hits[row["id"]])):
                given[name].append((end, value))
        return given, prompts, hits

    def check_histograms(self):
        given, prompts, hits = self.observations()
        for name in set(BOUNDS) - {"inter_token_latency_seconds", "iteration_tokens_total"}:
            unit = MS * 1000 if name.endswith("_seconds") else 1
            self.check_histogram(name, given[name], unit)
        for name, of in ("prompt_tokens", prompts), ("prompt_tokens_cached", hits):
            for time, value in self.get(name + "_total"):
                self.assertEqual(value, sum(of[str(e["id"])] for e in self.first
                                            if e["time_ns"] <= time * MS), (name, time))

    def check_histogram(self, name, given, unit):
        for bound in BOUNDS[name] + [float("inf")]:
            text = "+Inf" if bound == float("inf") else str(float(bound))
            times = sorted(time for time, value in given if value <= round(bound * unit, 3))
            for time, value in self.get(name + "_bucket", le=text):
                self.assertEqual(value, bisect.bisect_right(times, time * MS), (name, bound, time))
        self.assertEqual(self.get(name + "_count"), self.get(name + "_bucket", le="+Inf"))
        for time, value in self.get(name + "_sum"):
            right = sum(value for end, value in given if end <= time * MS)
            self.assertAlmostEqual(value, right / unit, delta=1e-9 * max(1, right / unit))

    def check_summary(self):
        """The last values are those of summary.json."""
        summary = self.summary("out")
        requests, tokens = summary["requests"], summary["tokens"]
        success = {reason: self.last("request_success_total", finished_reason=reason)
                   for reason in ("stop", "length", "abort", "error", "repetition")}
        self.assertEqual(success["stop"] + success["length"], requests["completed"])
        self.assertEqual(success["abort"], requests["aborted"])
        self.assertEqual(success["error"] + success["repetition"], 0)
        self.assertEqual(self.last("num_preemptions_total"), summary["preemptions"])
        self.assertEqual(self.last("generation_tokens_total"), tokens["output"])
        self.assertEqual(self.last("prefix_cache_queries_total"), tokens["queried"])
        self.assertEqual(self.last("prefix_cache_hits_total"), tokens["hit"])
        # Tokens that drafts bring together are one output.
        together = 0
        if "speculation" in summary:
            told = summary["speculation"]
            together = told["emitted"] - told["verifications"]
        for name, key, less in (("time_to_first_token_seconds", "ttft", 0),
                                ("inter_token_latency_seconds", "itl", together),
                                ("e2e_request_latency_seconds", "e2e", 0)):
            latency = summary["latency_ms"][key]
            self.assertEqual(self.last(name + "_count"), latency["count"] - less, key)
            self.assertEqual(self.last(name + "_sum"), latency["sum_ns"] / 1e9, key)
        if requests["completed"] == requests["arrived"]:
            self.assertEqual(self.last("prompt_tokens_total"), tokens["prompt"])
            self.assertEqual(self.last("request_queue_time_seconds_sum"),
                             summary["latency_ms"]["queue"]["sum_ns"] / 1e9)
            self.assertEqual(self.last("request_time_per_output_token_seconds_sum"),
                             summary["latency_ms"]["tpot"]["sum_ns"] / 1e9)
        by_source = [self.last("prompt_tokens_by_source_total", source=source) for source in
                     ("local_compute", "local_cache_hit", "external_kv_transfer")]
        self.assertEqual(by_source[1:], [self.last("prompt_tokens_cached_total"), 0])
        self.assertEqual(sum(by_source), self.last("prompt_tokens_total"))
        self.assertEqual(self.last("iteration_tokens_total_sum"),
                         self.last("prompt_tokens_total") - self.last("prompt_tokens_cached_total") +
                         self.last("generation_tokens_total"))
        self.assertLessEqual(self.last("iteration_tokens_total_count"), summary["steps"])

    def check_promtool(self):
        """It takes the file, and dumps exactly its samples."""
        tool = ["promtool", "tsdb"]
        subprocess.run([*tool, "create-blocks-from", "openmetrics", "m.txt", "tsdb"], cwd=self.folder,
                       check=True, capture_output=True, timeout=self.timeout)
        os.makedirs(self.path("tsdb", "wal"))    # it reads only what looks like a whole database
        dump = subprocess.run([*tool, "dump", "tsdb"], cwd=self.folder, check=True, capture_output=True,
                              text=True, timeout=self.timeout).stdout
        dumped = {}
        for line in dump.splitlines():
            labels, value, time = re.fullmatch(r"\{(.*)\} (\S+) (-?\d+)", line).groups()
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
            key = labels.pop("__name__"), tuple(sorted(labels.items()))
            dumped.setdefault(key, []).append((int(time), float(value)))
        self.assertEqual(sorted(dumped), sorted(self.samples))
        for key, values in dumped.items():
            differing = [pair for pair in zip(values, self.samples[key]) if pair[0] != pair[1]]
            self.assertEqual((key, len(values), differing[:3]), (key, len(self.samples[key]), []))

    def check_all(self, interval_ms):
        self.check_times(interval_ms)
        self.check_gauges()
        self.check_histograms()
        self.check_summary()
        self.check_promtool()

    def test_pressure(self):
        self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
        self.write("pressed.yaml", PRESSED)
        for interval_ms in (20, 3000):
            with self.subTest(interval_ms):
                self.run_it("run", "pressed.yaml", "--scrape-interval", f"{interval_ms}ms")
                requests = self.summary("out")["requests"]
                self.assertEqual((requests["aborted"], requests["rejected"]), (3, 1))
                self.assertGreater(self.summary("out")["preemptions"], 5)
                self.check_all(interval_ms)
                subprocess.run(["rm", "-r", self.path("tsdb")], check=True)

    def scenario(self, name, *args):
        self.run_it("run", os.path.join(SOURCE_ROOT, "scenarios", name), *args)

    def test_sample(self):
        """More scrapes than are kept in memory."""
        self.scenario("sample.yaml", "--scrape-interval", "500ms")
        self.assertGreater(len(self.get("num_requests_running")), 1024)
        self.check_all(500)

    def test_drafts(self):
        self.scenario("drafts_under_pressure.yaml", "--scrape-interval", "100ms")
        told = self.summary("out")["speculation"]
        self.assertEqual(self.last("spec_decode_num_drafts_total"), told["verifications"])
        self.assertEqual(self.last("spec_decode_num_draft_tokens_total"), told["drafted"])
        self.assertEqual(self.last("spec_decode_num_accepted_tokens_total"), told["accepted"])
        at = [values[-1][1] for (name, _), values in self.samples.items()
              if name == "vllm:spec_decode_num_accepted_tokens_per_pos_total"]
        self.assertEqual(sum(at), told["accepted"])
        self.assertEqual(at, sorted(at, reverse=True))   # a draft is right up to some place
        self.check_all(100)

    def test_async(self):
        self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
        self.write("pressed.yaml", PRESSED)
        self.run_it("run", "pressed.yaml", "--scrape-interval", "30ms", "--set",
                    "scheduler.preset=vllm-async")
        self.check_all(30)

    def test_by_hand(self):
        """a comes at 0, b at 1 and c at 2 ms. a and b have a token a step, from the ends at 1 and 2 ms on,
        and come to hold 3 blocks each. c, of 4, waits until a is gone, at 6 ms; b goes at 7, c at 8 ms."""
        self.small()
        self.run_it("run", "scenario.yaml", "--scrape-interval", "1ms")

        def values(name, **labels):
            return [int(value) for _, value in self.get(name, **labels)]

        self.assertEqual(values("num_requests_running"), [1, 2, 2, 2, 2, 2, 2, 1, 0])
        self.assertEqual(values("num_requests_waiting"), [0, 0, 1, 1, 1, 1, 0, 0, 0])
        self.assertEqual(values("generation_tokens_total"), [0, 1, 3, 5, 7, 9, 11, 13, 14])
        self.assertEqual(values("prompt_tokens_total"), [0, 8, 16, 16, 16, 16, 16, 32, 32])
        self.assertEqual(values("prefix_cache_queries_total"), [8, 16, 16, 16, 16, 16, 32, 32, 32])
        self.assertEqual(values("request_success_total", finished_reason="length"),
                         [0, 0, 0, 0, 0, 0, 1, 2, 3])
        self.assertEqual(values("iteration_tokens_total_bucket", le="8.0"), [0, 0, 0, 1, 2, 3, 4, 4, 5])
        self.assertEqual(values("iteration_tokens_total_sum"), [0, 9, 19, 21, 23, 25, 27, 45, 46])
        self.check_all(1)

    def test_labels(self):
        self.small()
        self.run_it("run", "scenario.yaml")
        info = dict(next(labels for name, labels in self.samples if name == "vllm:cache_config_info"))
        self.assertEqual(info, {"block_size": "4", "enable_prefix_caching": "True", "engine": "0",
                                "num_gpu_blocks": "9"})
        for name, labels in self.samples:
            if name != "vllm:cache_config_info":
                self.assertIn(("engine", "0"), labels)
                self.assertIn(("model_name", "pagedkv"), labels)
        self.run_it("replay", "trace.jsonl", "--kv-budget", "8GiB", "--model", "llama-3.1-8b",
                    "--max-model-len", "4000000")
        self.get("num_requests_running", model_name="llama-3.1-8b")
        self.get("request_prompt_tokens_bucket", le="2e+06")
        self.get("request_prompt_tokens_bucket", le="500000.0")

    def test_same_bytes(self):
        self.small()
        self.run_it("run", "scenario.yaml")
        before = self.read("m.txt")
        self.run_it("run", "scenario.yaml")
        self.assertEqual(self.read("m.txt"), before)

    def test_the_window_does_not_matter(self):
        self.small()
        self.run_it("run", "scenario.yaml", "--scrape-interval", "1ms")
        before = self.samples
        self.run_it("run", "scenario.yaml", "--scrape-interval", "1ms", "--set", "measure.after=3ms")
        self.assertEqual(self.samples, before)

    def expect_wrong(self, *args, says):
        before = sorted(os.listdir(self.folder))
        result = self.call(*args)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, says)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_wrong_use(self):
        self.small()
        run = ("run", "scenario.yaml")
        self.expect_wrong(*run, "--scrape-interval", "1s", says="no --openmetrics FILE")
        for value in ("0s", "1us", "1500us", "-1s", "soon", ""):
            self.expect_wrong(*run, "--openmetrics", "m.txt", "--scrape-interval", value,
                              says=r"--scrape-interval: '" + value)
        self.expect_wrong(*run, "--openmetrics", "trace.jsonl", says="write over the input")
        self.expect_wrong(*run, "--openmetrics", "./scenario.yaml", says="write over the input")
        self.expect_wrong(*run, "--openmetrics", "none/m.txt", says="none/m.txt: cannot be written")
        self.expect_wrong(*run, "--openmetrics", "out/steps.csv", "-o", "out",
                          says="out/steps.csv is a file that the run writes as well")
        self.expect_wrong(*run, "--openmetrics", self.path("out", "summary.json"), "-o", "./out/",
                          says="the run writes as well")
        self.done(*run, "--openmetrics", "out/steps.csv", "-o", "out", "--files", "summary", "--quiet")

    def test_too_many_scrapes(self):
        """One request at the start, and one after eleven days: refused as soon as that is known."""
        self.small()
        self.write("trace.jsonl", '{"timestamp": 0, "input_length": 4, "output_length": 2}\n'
                                  '{"timestamp": 1000000000, "input_length": 4, "output_length": 2}\n')
        self.expect_wrong("run", "scenario.yaml", "-o", "out", "--openmetrics", "m.txt",
                          says=r"1000000 scrapes, one every 1000 ms up to 1000000 s of virtual time, are "
                               r"more than a file may have \(999999\)")
        self.run_it("run", "scenario.yaml", "--scrape-interval", "10m")
        self.check_times(600_000)
        self.check_gauges()

    def test_unfinished(self):
        """Stopped by a horizon: the last scrape sees those who are still there."""
        self.small()
        self.run_it("run", "scenario.yaml", "--set", "horizon=3ms", "--scrape-interval", "1ms")
        self.assertEqual(self.last("num_requests_running"), self.steps[-1]["running"])
        self.assertEqual(self.last("num_requests_waiting"), 1)
        self.check_summary()

    def test_interrupted(self):
        """What was done until then is there, whole."""
        self.write("endless.yaml", ENDLESS)
        run = subprocess.Popen([self.program, "run", "endless.yaml", "-q", "-o", "out", "--openmetrics",
                                "m.txt", "--scrape-interval", "1m"], cwd=self.folder,
                               stderr=subprocess.DEVNULL)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=60), 3)
        self.assertEqual(sorted(os.listdir(self.folder)), ["endless.yaml", "m.txt", "out"])
        self.samples = parse(self.read("m.txt").decode())
        summary = self.summary("out")
        self.assertEqual(self.last("generation_tokens_total"), summary["tokens"]["output"])
        self.assertEqual(self.last("request_success_total", finished_reason="length"),
                         summary["requests"]["completed"])
        self.assertGreater(self.last("num_requests_waiting"), 0)

    def test_runs_at_the_edge(self):
        """One step, one that comes late, more scrapes than steps; nobody completes."""
        self.write("one.jsonl", '{"timestamp": 0, "input_length": 3, "output_length": 1}\n')
        self.write("late.jsonl", '{"timestamp": 3000, "input_length": 3, "output_length": 1}\n')
        self.write("huge.jsonl", '{"timestamp": 0, "input_length": 4000, "output_length": 6}\n')
        for name, completed in (("one", 1), ("late", 1), ("huge", 0)):
            for flags in ((), ("--scrape-interval", "100ms", "--step-time", "fixed:0.3")):
                with self.subTest((name, flags)):
                    self.done("replay", f"{name}.jsonl", "--num-blocks", "8", "-q", "--openmetrics",
                              "m.txt", *flags)
                    text = self.read("m.txt").decode()
                    check_format(text)
                    self.samples = parse(text)
                    self.assertEqual(self.last("e2e_request_latency_seconds_count"), completed)

    def test_every_scenario_that_comes_along(self):
        """Samples, sessions, swaps, drafts, windows, tenants, layouts ..."""
        folder = os.path.join(SOURCE_ROOT, "scenarios")
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".yaml"):
                continue
            with self.subTest(name):
                self.call("run", os.path.join(folder, name), "-q", "--openmetrics", "m.txt",
                          "--set", "horizon=5s", "--scrape-interval", "500ms")
                check_format(self.read("m.txt").decode())
                os.remove(self.path("m.txt"))

    def test_to_standard_output(self):
        self.small()
        self.run_it("run", "scenario.yaml")
        result = self.done("run", "scenario.yaml", "--quiet", "--openmetrics", "-")
        self.assertEqual(result.stdout, self.read("m.txt").decode())

    def test_a_full_disk(self):
        self.small()
        result = self.call("run", "scenario.yaml", "--quiet", "--openmetrics", "/dev/full")
        self.assertEqual(result.returncode, 3, result.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SOURCE_ROOT = os.path.abspath(sys.argv.pop(2))
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
