#!/usr/bin/env python3
"""pagedkv compare from outside.

usage: test_compare.py PROGRAM SOURCE_ROOT
"""
import json
import os
import re
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
        self.assertEqual(sorted(results[0][1]), ["compare.csv", "compare.json"])
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

    def test_man_files(self):
        """Its names are the columns of compare.csv, in their order."""
        section = self.done("--man", "files").stdout.split(".SH COMPARE.CSV\n")[1].split(".SH ")[0]
        named = [name.replace("\\-", "-") for name in re.findall(r"\\fB(.*?)\\fR", section)]
        for flags in ((), ("--seeds", "2"), ("--batches", "5")):
            self.done("compare", "crowded.yaml", "--vary", "kv.num_blocks=60,90", *flags, "-q", "-o",
                      "out")
            columns = list(self.rows("out", "compare.csv")[0])
            self.assertEqual(columns.pop(1), "kv.num_blocks")
            extras = ("_diff_percent", "_best") + ("_half95", "_diff") * (len(flags) > 0)
            self.assertEqual([c for c in columns if not c.endswith(extras)], named)

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
