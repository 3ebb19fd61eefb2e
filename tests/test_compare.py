#!/usr/bin/env python3
"""pagedkv compare from outside.

usage: test_compare.py PROGRAM SOURCE_ROOT
"""
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import tap
from program import ProgramCase

SOURCE_ROOT = None      # set by main

# Synthetic traffic on a pool that is too small.
CROWDED = """\
title: crowded
kv: {block_size: 4, num_blocks: 60}
step_time: {model: fixed, ms: 1}
traffic:
  requests: 200
  arrivals: {law: poisson, rate_per_s: 150}
  prompt_tokens: {law: lognormal, mean: 40, cv: 1, max: 150}
  output_tokens: {law: lognormal, mean: 20, cv: 1, max: 80}
"""
SIXTEEN = ("--vary", "kv.num_blocks=60,70,80,90", "--vary", "scheduler.admit=whole_prompt,first_chunk",
           "--vary", "scheduler.watermark=0,0.1")
FILES = ("compare.csv", "compare.json", "fairness.csv", "overlay.csv", "report.html")
OVERLAY = ("configuration", "begin_ns", "end_ns", "free_blocks_min", "free_blocks_max", "waiting_min",
           "waiting_max", "running_min", "running_max", "preemptions_total")

# Six tenants that want more than there is, and a request without one; more than 100 of each priority,
# so that their 99th percentile is not their maximum.
TENANTS = "".join(
    f'{{"timestamp": {i * 3}, "input_length": {4 + i * 7 % 31}, "output_length": {1 + i * 5 % 17}'
    + (f', "tenant": "t{i * i % 11}", "priority": {i % 3 - 1}}}\n' if i else "}\n") for i in range(650))


def bins_of(steps, width, first):
    """The rows of overlay.csv that these rows of steps.csv have in bins of that width."""
    stretches, end = [], first
    for row in steps:
        row = {key: int(value) for key, value in row.items()}
        begin = row["time_ns"]
        if begin > end:
            stretches.append((end, begin, row["free_blocks"] + row["used_blocks"], 0, 0, 0))
        end = begin + row["dur_ns"]
        stretches.append((begin, end, row["free_blocks"], row["waiting"], row["running"],
                          row["preempted"]))
    bins, total = [[] for _ in range((end - first - 1) // width + 1)], 0
    for stretch in stretches:
        for place in range((stretch[0] - first) // width, (stretch[1] - first - 1) // width + 1):
            bins[place].append(stretch)
    for place, inside in enumerate(bins):
        total += sum(s[5] for s in inside if s[0] - first >= place * width)
        yield (place * width, (place + 1) * width,
               *(f(s[i] for s in inside) for i in (2, 3, 4) for f in (min, max)), total)


class Compare(ProgramCase):
    def setUp(self):
        super().setUp()
        self.small()
        self.write("crowded.yaml", CROWDED)

    def test_jobs(self):
        """Sixteen configurations give the same bytes with -j 1 and -j 2."""
        results = []
        for jobs in ("1", "2", "2"):
            text = self.done("compare", "crowded.yaml", *SIXTEEN, "-j", jobs, "-o", "out").stdout
            results.append((text, self.contents("out")))
        self.assertIn("16 configurations", results[0][0])
        self.assertEqual(tuple(sorted(results[0][1])), FILES)
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])

    def test_rows_are_runs(self):
        """Each row has the figures of the run it stands for."""
        self.done("compare", "crowded.yaml", *SIXTEEN, "-q", "-o", "out")
        rows = self.rows("out", "compare.csv")
        self.assertEqual(len(rows), 16)
        keys = ("kv.num_blocks", "scheduler.admit", "scheduler.watermark")
        for i in (0, 1, 2, 7, 15):
            sets = [word for key in keys for word in ("--set", f"{key}={rows[i][key]}")]
            self.done("run", "crowded.yaml", "-q", *sets, "-o", f"run{i}")
            summary = self.summary(f"run{i}")
            self.assertEqual(rows[i]["preemptions"], str(summary["preemptions"]))
            self.assertEqual(rows[i]["makespan_ns"], str(summary["makespan_ns"]))
            self.assertAlmostEqual(float(rows[i]["ttft_mean_ms"]),
                                   summary["latency_ms"]["ttft"]["mean"], places=5)
            self.assertAlmostEqual(float(rows[i]["e2e_p99_ms"]), summary["latency_ms"]["e2e"]["p99"])
            self.assertAlmostEqual(float(rows[i]["used_frac"]), summary["mean"]["used_frac"], places=5)
        first = {r["id"]: int(r["finish_ns"]) for r in self.rows("run0", "requests.csv")}
        last = {r["id"]: int(r["finish_ns"]) for r in self.rows("run15", "requests.csv")}
        gains = sorted(first[i] - last[i] for i in first if last[i] < first[i])
        self.assertEqual(rows[15]["better"], str(len(gains)))
        self.assertEqual(rows[15]["worse"], str(sum(last[i] > first[i] for i in first)))
        median = gains[(len(gains) - 1) // 2] / 1e6
        self.assertLessEqual(median, float(rows[15]["better_p50_ms"]) + 1e-9)
        self.assertAlmostEqual(float(rows[15]["better_p50_ms"]), median, delta=median / 1024)

    def test_first_key_slowest(self):
        self.done("compare", "scenario.yaml", "--vary", "kv.num_blocks=8,9", "--vary",
                  "scheduler.max_num_seqs=1,2", "-q", "-o", "out")
        self.assertEqual([(r["configuration"], r["kv.num_blocks"], r["scheduler.max_num_seqs"])
                          for r in self.rows("out", "compare.csv")],
                         [("1", "8", "1"), ("2", "8", "2"), ("3", "9", "1"), ("4", "9", "2")])

    def test_json(self):
        text = self.done("compare", "scenario.yaml", "--vary", "step_time.ms=1,2", "--json", "-o",
                         "out").stdout
        self.assertEqual(text.encode(), self.read("out", "compare.json"))
        one, two = json.loads(text)["configurations"]
        self.assertEqual(two["set"], {"step_time.ms": "2"})
        self.assertIsNone(one["figures"]["makespan_ns"]["diff_percent"])
        self.assertIsNone(one["requests_against_first"])

    def test_section(self):
        """The grid of the file; a plain run leaves it aside."""
        self.write("grid.yaml", CROWDED + "vary:\n  kv.num_blocks: [60, 90]\n")
        self.assertIn("   2  kv.num_blocks=90\n", self.done("compare", "grid.yaml").stdout)
        self.done("run", "grid.yaml", "-q", "-o", "out")
        self.assertEqual(self.summary("out")["blocks"]["num_blocks"], 60)

    def test_vary_replaces_the_section(self):
        """And says so where it is looked for."""
        self.write("grid.yaml", CROWDED + "vary:\n  kv.num_blocks: [70, 90]\n")
        self.done("compare", "grid.yaml", "--vary", "scheduler.watermark=0,0.1", "-q", "-o", "out")
        rows = self.rows("out", "compare.csv")
        self.assertEqual([row["scheduler.watermark"] for row in rows], ["0", "0.1"])
        self.assertNotIn("kv.num_blocks", rows[0])
        self.done("run", "grid.yaml", "-q", "-o", "run")      # the file's own 60
        self.assertEqual(rows[0]["makespan_ns"], str(self.summary("run")["makespan_ns"]))
        for args in (("compare", "--help"), ("--man", "compare"), ("--man", "scenario")):
            self.assertRegex(" ".join(self.done(*args).stdout.replace("\\-", "-").split()),
                             r"--vary, which replaces (that|this) section")

    def test_legend(self):
        """Below the table, before all else: what each sign in it means, and no others."""
        grid = ("--vary", "kv.num_blocks=60,70,71,90")
        legend = {"*": "the best, or all that are; none where a worse one prints the same", "~": "may be noise",
                  "+-": "half the 95 % interval"}
        for flags, signs in (((), "*"), (("--seeds", "3"), "*~+-"), (("--batches", "4"), "*~+-")):
            text = self.done("compare", "crowded.yaml", *grid, *flags).stdout
            below = text.split("\n\n")
            place = next(i for i, part in enumerate(below) if part.startswith("   *  "))
            self.assertRegex(below[place - 1], r"\n   4  ")
            self.assertTrue(below[place + 1].startswith("Requests against configuration 1"))
            found = re.findall(r"(?m)^ {2,3}(\S+)  ", below[place])
            self.assertEqual("".join(found), signs)
            for sign in found:
                self.assertIn(f"{sign}  {legend[sign]}", below[place])

    def test_no_star_beside_noise(self):
        """No cell of any table has both signs."""
        for flags in (("--seeds", "3"), ("--batches", "4")):
            text = self.done("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,62,64,90", *flags)
            self.assertIn("~", text.stdout)
            self.assertIn(" *", text.stdout)
            self.assertNotIn("~ *", text.stdout)

    def test_goodput(self):
        """With targets of the scenario: what keeps them, as each run's summary has it."""
        self.write("good.yaml", CROWDED + "targets: {ttft_ms: 20, itl_ms: 10}\n"
                   "vary:\n  kv.num_blocks: [60, 90]\n")
        text = self.done("compare", "good.yaml", "-o", "out").stdout
        self.assertIn("goodput req/s", text)
        for row, blocks in zip(self.rows("out", "compare.csv"), ("60", "90")):
            self.done("run", "good.yaml", "--set", f"kv.num_blocks={blocks}", "-q", "-o", "run")
            good = sum(r["status"] == "completed" and int(r["max_gap_ns"] or 0) <= 10000000
                       and int(r["first_token_ns"]) - int(r["arrival_ns"]) <= 20000000
                       for r in self.rows("run", "requests.csv"))
            makespan = self.summary("run")["makespan_ns"]
            self.assertTrue(0 < good < 200, good)
            self.assertAlmostEqual(float(row["good_frac"]), good / 200, places=6)
            self.assertAlmostEqual(float(row["good_requests_per_s"]), good * 1e9 / makespan, places=5)
        self.assertNotIn("goodput", self.done("compare", "crowded.yaml", "--vary",
                                              "kv.num_blocks=60,90").stdout)

    def test_fairness(self):
        """Tenants and priorities have the figures that the rows of requests.csv come to."""
        self.check_fairness(0, 10 ** 18)

    def test_fairness_of_a_window(self):
        """Those of the requests that arrive in it, and so are the marks of better and worse."""
        self.check_fairness(400_000_000, 1_500_000_000, "--set", "measure.after=400ms", "--set",
                            "measure.until=1500ms")
        row = self.rows("out", "compare.csv")[1]
        ends = []
        for blocks in ("16", "30"):
            self.done("run", "scenario.yaml", "--set", f"kv.num_blocks={blocks}", "-q", "-o", "run")
            ends.append({r["id"]: int(r["finish_ns"]) for r in self.rows("run", "requests.csv")
                         if 400_000_000 <= int(r["arrival_ns"]) < 1_500_000_000})
        first, last = ends
        self.assertEqual(len(first), 366)      # one every 3 ms: rows 134 to 499
        self.assertEqual([int(row[key]) for key in ("better", "worse", "same")],
                         [sum(last[i] < first[i] for i in first), sum(last[i] > first[i] for i in first),
                          sum(last[i] == first[i] for i in first)])

    def check_fairness(self, after, until, *flags):
        self.write("trace.jsonl", TENANTS)
        self.done("compare", "scenario.yaml", "--vary", "kv.num_blocks=16,30", "-q", "-o", "out", *flags)
        rows = self.rows("out", "fairness.csv")
        indices = []
        for i, blocks in enumerate(("16", "30")):
            self.done("run", "scenario.yaml", "--set", f"kv.num_blocks={blocks}", "-q", "-o", "run")
            requests = [r for r in self.rows("run", "requests.csv")
                        if after <= int(r["arrival_ns"]) < until]
            for group, order in (("tenant", str), ("priority", int)):
                names = sorted({r[group] for r in requests}, key=order)
                mine = [r for r in rows if r["configuration"] == str(i + 1) and r["group"] == group]
                self.assertEqual([r["name"] for r in mine], names)
                rates, firsts = [], []
                for row in mine:
                    own = [r for r in requests if r[group] == row["name"]]
                    ttft = sorted(int(r["first_token_ns"]) - int(r["arrival_ns"]) for r in own)
                    e2e = sorted(int(r["finish_ns"]) - int(r["arrival_ns"]) for r in own)
                    span = max(int(r["finish_ns"]) for r in own) - min(int(r["arrival_ns"])
                                                                       for r in own)
                    service = sum(int(r["prompt_tokens"]) + 2 * int(r["output_tokens"]) for r in own)
                    self.assertEqual(row["requests"], str(len(own)))
                    self.assertEqual(row["completed"], str(len(own)))
                    for key in ("output_tokens", "preemptions"):
                        self.assertEqual(row[key], str(sum(int(r[key]) for r in own)))
                    for key, times in (("ttft", ttft), ("e2e", e2e)):
                        self.assertAlmostEqual(float(row[key + "_mean_ms"]),
                                               sum(times) / len(times) / 1e6, places=5)
                        rank = -(-len(times) * 99 // 100)
                        self.assertEqual(float(row[key + "_p99_ms"]), times[rank - 1] / 1e6)
                    self.assertAlmostEqual(float(row["service_per_s"]), service * 1e9 / span, places=4)
                    rates.append(service / span)
                    firsts.append(sum(ttft) / len(ttft))
                if group == "tenant":
                    indices.append([sum(x) ** 2 / len(x) / sum(v * v for v in x)
                                    for x in (rates, firsts)])
        for row, (service, ttft) in zip(self.rows("out", "compare.csv"), indices):
            self.assertAlmostEqual(float(row["jain_service"]), service, places=5)
            self.assertAlmostEqual(float(row["jain_ttft"]), ttft, places=5)
        with open(self.path("out", "compare.json"), encoding="utf-8") as file:
            data = json.load(file)
        untold = [None] if any(r["tenant"] == "" for r in requests) else []
        self.assertEqual([t["tenant"] for t in data["tenants"]],
                         untold + sorted({r["tenant"] for r in requests} - {""}))
        self.assertEqual([p["priority"] for p in data["priorities"]], [-1, 0, 1])
        self.assertEqual(data["priorities"][2]["configurations"][1]["preemptions"]["value"],
                         int(rows[-1]["preemptions"]))

    def test_groups_only_of_several(self):
        """One tenant and one priority have no table, but their rows in the files."""
        text = self.done("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,90", "-o", "out").stdout
        for word in ("Tenants", "Priorities", "Jain"):
            self.assertNotIn(word, text)
        self.assertEqual([(r["configuration"], r["group"], r["name"], r["requests"])
                          for r in self.rows("out", "fairness.csv")],
                         [("1", "tenant", "", "200"), ("2", "tenant", "", "200"),
                          ("1", "priority", "0", "200"), ("2", "priority", "0", "200")])
        self.assertEqual(self.rows("out", "compare.csv")[0]["jain_service"], "")

    def test_overlay(self):
        """Bins have the extremes of the rows in them, and one width for runs of any length."""
        step = "affine:2,0.1,0.01,0"
        for flags in ((), ("--set", "step_time=" + step, "--set", "traffic.requests=3000")):
            self.done("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,90", *flags, "-q", "-o",
                      "out")
            rows = self.rows("out", "overlay.csv")
            self.assertEqual(tuple(rows[0]), OVERLAY)
            width = int(rows[0]["end_ns"])
            counts = []
            for i, blocks in enumerate(("60", "90")):
                self.done("run", "crowded.yaml", *flags, "--set", f"kv.num_blocks={blocks}", "-q", "-o",
                          "run")
                first = min(int(r["arrival_ns"]) for r in self.rows("run", "requests.csv"))
                mine = [tuple(map(int, r.values())) for r in rows if r["configuration"] == str(i + 1)]
                self.assertEqual(mine, [(i + 1, *row) for row in
                                        bins_of(self.rows("run", "steps.csv"), width, first)])
                counts.append(len(mine))
                self.assertEqual(mine[-1][-1], self.summary("run")["preemptions"])
            self.assertTrue(500 <= max(counts) <= 1000, counts)

    def test_spike(self):
        """Of two requests that come in the midst of 100,000 steps one waits for one step."""
        self.write("trace.jsonl", '{"timestamp": 0, "input_length": 4, "output_length": 100000}\n'
                   + '{"timestamp": 54321, "input_length": 8, "output_length": 1}\n' * 2)
        self.done("compare", "scenario.yaml", "--set", "kv.num_blocks=25010", "--set",
                  "scheduler.max_num_batched_tokens=9", "--vary", "kv.block_size=4,5", "-q", "-o", "out")
        for number in ("1", "2"):
            rows = [r for r in self.rows("out", "overlay.csv") if r["configuration"] == number]
            self.assertEqual(len(rows), 1000)
            self.assertEqual([int(r["begin_ns"]) for r in rows if r["waiting_max"] == "1"],
                             [54300 * 1000000])
            self.assertEqual({r["waiting_max"] for r in rows}, {"0", "1"})
            self.assertEqual([int(r["begin_ns"]) for r in rows if r["running_max"] == "2"],
                             [54300 * 1000000])

    def test_seeds(self):
        """Means of the seeds run one by one, and the interval that Student's t gives."""
        self.done("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,90", "--seeds", "3",
                  "--seed", "5", "-q", "-o", "out")
        means = []
        for seed in ("5", "6", "7"):
            self.done("run", "crowded.yaml", "--seed", seed, "-q", "-o", "run")
            means.append(self.summary("run")["latency_ms"]["e2e"]["mean"])
        row = self.rows("out", "compare.csv")[0]
        mean = sum(means) / 3
        spread = (sum((m - mean) ** 2 for m in means) / 2) ** .5
        self.assertAlmostEqual(float(row["e2e_mean_ms"]), mean, places=4)
        self.assertAlmostEqual(float(row["e2e_mean_ms_half95"]), 4.303 * spread / 3 ** .5, places=4)
        self.assertEqual(len(self.rows("out", "compare.csv")), 2)
        text = self.done("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,90", "--seeds",
                         "3").stdout
        self.assertIn("seeds 1 to 3", text)
        self.assertIn(" +-", text)

    def test_wrong_use(self):
        for args, place, words in (
                ((), "crowded.yaml: ", "nothing to vary"),
                (("--vary", "kv.num_blocks"), "pagedkv: ", "not of the form KEY=V1,V2"),
                (("--vary", "kv.num_blocks=1,x"), "--vary: ", "'x' is not a whole number"),
                (("--vary", "kv.blocks=1"), "--vary: ", "unknown key 'kv.blocks'"),
                (("--vary", "kv.num_blocks="), "--vary: ", "a value is empty"),
                (("--vary", "kv.num_blocks=8,9,8"), "--vary: ", "the value 8 is there twice"),
                (("--vary", "scheduler.watermark=0,0.1,0.10"), "--vary: ", "the value 0.10 is there twice"),
                (("--vary", "kv={block_size: 4, num_blocks: 9},{block_size: 4, num_blocks: 9}"),
                 "--vary: ", "the value {block_size: 4, num_blocks: 9} is there twice"),
                (("--vary", "kv.num_blocks=9", "--seeds", "0"), "pagedkv: ", "--seeds: must be 1"),
                (("--vary", "kv.num_blocks=9", "-j", "x"), "pagedkv: ", "--jobs: 'x'"),
                (("--vary", "traffic.seed=1,2", "--seeds", "2"), "pagedkv: ", "traffic.seed is varied"),
                (("--vary", "traffic.requests=9", "--set", "x.y=1"), "--set: ", "unknown key 'x.y'")):
            with self.subTest(args):
                result = self.call("compare", "crowded.yaml", *args, "-o", "out")
                self.assertEqual(result.returncode, 2)
                self.assertTrue(result.stderr.startswith(place), result.stderr)
                self.assertIn(words, result.stderr)
                self.assertFalse(os.path.exists(self.path("out")))

    def test_places(self):
        self.write("bad.yaml", CROWDED + "vary:\n  kv.num_blocks: [60, none]\n")
        result = self.call("compare", "bad.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("bad.yaml:10:23: "), result.stderr)

    def test_trace_and_seeds(self):
        result = self.call("compare", "scenario.yaml", "--vary", "kv.num_blocks=8,9", "--seeds", "2")
        self.assertEqual(result.returncode, 2)
        self.assertIn("several seeds are for synthetic traffic", result.stderr)

    def test_batches(self):
        """Mean latencies of a trace have intervals from its stretches of time, by default twenty."""
        times = [i * 10 for i in range(40)]
        self.write("trace.jsonl", "".join(
            f'{{"timestamp": {t}, "input_length": {4 + i % 7}, "output_length": {1 + i % 5}}}\n'
            for i, t in enumerate(times)))
        for batches in (20, 4):
            flags = ("--batches", str(batches)) if batches != 20 else ()
            self.done("compare", "scenario.yaml", "--vary", "kv.num_blocks=8,4", *flags, "-q", "-o", "out")
            rows = self.rows("out", "compare.csv")
            self.done("run", "scenario.yaml", "-q", "-o", "run")
            sums = [[] for _ in range(batches)]
            for r in self.rows("run", "requests.csv"):
                came = int(r["arrival_ns"])
                sums[came * batches // 390000001].append((int(r["finish_ns"]) - came) / 1e6)
            means = [sum(s) / len(s) for s in sums]
            mean = sum(means) / batches
            spread = (sum((m - mean) ** 2 for m in means) / (batches - 1)) ** .5
            quantile = {20: 2.093, 4: 3.182}[batches]
            self.assertAlmostEqual(float(rows[0]["e2e_mean_ms_half95"]),
                                   quantile * spread / batches ** .5, places=5)
            self.assertEqual(rows[0]["makespan_ns_half95"], "")
        text = self.done("compare", "scenario.yaml", "--vary", "kv.num_blocks=8,4").stdout
        self.assertIn(" +-", text)
        text = self.done("compare", "scenario.yaml", "--vary", "kv.num_blocks=8,4", "--batches", "1")
        self.assertNotIn("+-", text.stdout)

    def test_unfinished(self):
        """A configuration that gets stuck is shown, never best, and the status tells."""
        result = self.call("compare", "scenario.yaml", "--vary", "kv.num_blocks=8,3", "--set",
                           "scheduler.oversized=wait")
        self.assertEqual(result.returncode, 3)
        self.assertIn("   2! kv.num_blocks=3  NOT FINISHED (stuck)\n", result.stdout)
        self.assertIn("not every configuration could come to its end", result.stderr)

    def test_interrupted(self):
        """The runs that ended are shown and kept."""
        self.write("long.yaml", CROWDED.replace("requests: 200", "requests: 1000000000"))
        process = subprocess.Popen([self.program, "compare", "long.yaml", "--vary",
                                    "traffic.requests=5,1000000000", "-j", "1", "-o", "out"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        text, errors = process.communicate(timeout=self.timeout)
        self.assertEqual(process.returncode, 3, errors)
        self.assertIn("interrupted after 1 of 2 runs; those are kept in out\n", errors)
        self.assertIn("NOT FINISHED (not_run)", text)
        rows = self.rows("out", "compare.csv")
        self.assertEqual([r["outcome"] for r in rows], ["done", "not_run"])
        self.assertEqual((rows[0]["completed"], rows[1]["completed"]), ("5", ""))
        self.assertEqual(tuple(sorted(os.listdir(self.path("out")))), FILES)
        self.assertEqual({r["configuration"] for r in self.rows("out", "overlay.csv")}, {"1"})
        with open(self.path("out", "compare.json"), encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["configurations"]), 2)

    def test_killed(self):
        """What a former comparison left stays whole until there is a new one."""
        self.done("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,90", "-q", "-o", "out")
        former = self.contents("out")
        self.write("long.yaml", CROWDED.replace("requests: 200", "requests: 1000000000"))
        process = subprocess.Popen([self.program, "compare", "long.yaml", "--vary",
                                    "traffic.requests=5,1000000000", "-q", "-j", "1", "-o", "out"],
                                   cwd=self.folder)
        time.sleep(0.5)
        process.kill()
        process.wait(timeout=self.timeout)
        self.assertEqual(self.contents("out"), former)

    def test_full_disk(self):
        """A file that cannot be written leaves the others as they were."""
        self.done("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,90", "-q", "-o", "out")
        former = self.contents("out")
        limit = len(former["compare.csv"]) + len(former["compare.json"])
        result = self.call("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,90,120", "-q", "-o",
                           "out", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                        (limit, limit)))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(self.contents("out"), former)

    def named(self, file):
        """The names that the man page has for a file."""
        section = self.done("--man", "files").stdout.split(f".SH {file}\n")[1].split(".SH ")[0]
        return [name.replace("\\-", "-") for name in re.findall(r"\\fB(.*?)\\fR", section)]

    def test_man_files(self):
        """Its names are the columns of the files, in their order."""
        named = self.named("COMPARE.CSV")
        for flags in ((), ("--seeds", "2"), ("--batches", "5")):
            self.done("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,90", *flags, "-q", "-o",
                      "out")
            columns = list(self.rows("out", "compare.csv")[0])
            self.assertEqual(columns.pop(1), "kv.num_blocks")
            extras = ("_diff_percent", "_best") + ("_half95", "_diff") * (len(flags) > 0)
            self.assertEqual([c for c in columns if not c.endswith(extras)], named)
            columns = list(self.rows("out", "fairness.csv")[0])
            self.assertEqual(any(c.endswith("_half95") for c in columns), "--seeds" in flags)
            self.assertEqual([c for c in columns if not c.endswith(extras)], self.named("FAIRNESS.CSV"))
        self.assertEqual(self.named("OVERLAY.CSV"), list(OVERLAY))

    def test_batches_documented(self):
        for text in (self.done("compare", "--help").stdout, self.done("--man", "compare").stdout):
            self.assertRegex(text.replace("\\-", "-"), "--batches")

    def test_examples(self):
        """Those of --help run from the source's folder."""
        text = self.done("compare", "--help").stdout.split("examples:\n")[1].split("\n\n")[0]
        for line in text.splitlines():
            args = [os.path.join(SOURCE_ROOT, w) if w.startswith("scenarios/") else w
                    for w in line.split()[1:]]
            self.assertIn("Requests against configuration 1", self.done(*args).stdout)

    def test_readme(self):
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            named = set(re.findall(r"`(?:-\w`, `)?(--[\w-]+)", file.read()))
        flags = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", self.done("compare", "--help").stdout, re.M)
        self.assertLessEqual({"--vary", "--seeds", "--batches", "--jobs", "--json"}, set(flags))
        self.assertLessEqual(set(flags) - {"--help"}, named)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SOURCE_ROOT = os.path.abspath(sys.argv.pop(2))
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
