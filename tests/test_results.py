#!/usr/bin/env python3
"""The files of a run from outside: full disks, runs side by side, strange names, and the figures of
summary.json reckoned again from the logs.

usage: test_results.py PROGRAM SOURCE_ROOT
"""
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest
from fractions import Fraction

import tap
from program import FILES, SCENARIO, TRACE, ProgramCase

SOURCE_ROOT = None      # set by main

STEADY = """\
kv: {block_size: 16, num_blocks: 64}
scheduler: {max_num_seqs: 1}
step_time: {model: fixed, ms: 1}
traffic:
  requests: 5000
  arrivals: {law: constant, rate_per_s: 100}
  prompt_tokens: 16
  output_tokens: 4
"""


def limit_files(num_bytes):
    """Writes beyond it fail as they do on a full disk; the signal that says so is at its default,
    which would kill."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))
    return limit


class FullDisk(ProgramCase):
    def setUp(self):
        super().setUp()
        self.write("scenario.yaml", STEADY)
        self.done("run", "scenario.yaml", "-q", "-o", "whole")

    def full(self, num_bytes, *flags, says):
        result = self.call("run", "scenario.yaml", "-q", "-o", "out", *flags,
                           preexec_fn=limit_files(num_bytes))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stderr, says)
        left = sorted(os.listdir(self.path("out"))) if os.path.exists(self.path("out")) else []
        self.assertEqual([name for name in left if name.endswith(".partial")], [])
        return left

    def test_what_was_done_is_kept(self):
        """Each log is the beginning of the whole run's, to the last row that has room."""
        for num_bytes in (65536, 100001, 200000):
            with self.subTest(num_bytes):
                left = self.full(num_bytes, says=r"\Aout/\w+\.\w+: writing failed: File too large\n"
                                 r"pagedkv: what was done until then is kept in out\n"
                                 r"pagedkv: cut behind the last row that could be written: "
                                 r"out/[a-z.]+(, out/[a-z.]+)*\n"
                                 r"pagedkv: not written: out/report\.html, out/cache\.csv\n\Z")
                # A page has no rows: cut off it would be none. Of an end that was not reached there
                # is no cache.
                self.assertEqual(left, sorted(set(FILES) - {"report.html", "cache.csv"}))
                for name in ("steps.csv", "requests.csv", "events.jsonl"):
                    kept, whole = self.read("out", name), self.read("whole", name)
                    self.assertTrue(kept.endswith(b"\n"), name)
                    # Those that the end of the run found waiting or running stand last.
                    kept = b"".join(row for row in kept.splitlines(True) if b",unfinished," not in row)
                    self.assertTrue(whole.startswith(kept), name)
                    self.assertGreater(kept.count(b"\n"), 1)
                longest = max(len(self.read("out", name)) for name in left)
                self.assertGreater(longest, num_bytes - 200)     # no row of this run is longer
                self.assertEqual(self.summary("out")["outcome"], "failed")

    def named(self, says, stderr):
        line = re.search(rf"^pagedkv: {says}: (.*)$", stderr, re.MULTILINE)
        return set(line[1].split(", ")) if line else set()

    def test_every_output_is_accounted_for(self):
        """Those that are as they should be, those that are cut, those that are not there; and what is
        there can be read."""
        flags = ("-q", "-o", "out", "--perfetto", "t.json", "--openmetrics", "m.txt", "--scrape-interval",
                 "100ms")
        self.done("run", "scenario.yaml", *flags)
        outputs = {"t.json", "m.txt", *(f"out/{name}" for name in FILES)}
        sizes = {path: len(self.read(path)) for path in outputs}
        shutil.rmtree(self.path("out"))
        self.assertGreater(sizes["t.json"], 400000)
        for num_bytes in (1000, 30000, 100001, 250000, max(sizes.values()) - 1):
            for path in ("t.json", "m.txt"):
                os.remove(self.path(path)) if os.path.exists(self.path(path)) else None
            shutil.rmtree(self.path("out"), ignore_errors=True)
            result = self.call("run", "scenario.yaml", *flags, preexec_fn=limit_files(num_bytes))
            self.assertEqual(result.returncode, 3, result.stderr)
            there = {path for path in outputs if os.path.exists(self.path(path))}
            cut = self.named("cut behind the last row that could be written", result.stderr)
            self.assertEqual(self.named("not written", result.stderr), outputs - there, result.stderr)
            self.assertLessEqual(cut, there)
            for path in there:      # it is cut where no row had room any more
                self.assertEqual(path in cut, len(self.read(path)) > num_bytes - 400, path)
            if "t.json" in there:
                json.loads(self.read("t.json"))
            if "m.txt" in there:
                self.assertTrue(self.read("m.txt").endswith(b"\n# EOF\n"))
            kept = re.search(r"is kept in (.*)$", result.stderr, re.MULTILINE)[1].split(", ")
            self.assertEqual(set(kept), {path.split("/")[0] for path in there})
            self.assertFalse([name for _, _, names in os.walk(self.folder) for name in names
                              if name.endswith(".partial")])

    def test_a_disk_that_is_full_for_one_output(self):
        """The others are whole."""
        self.done("run", "scenario.yaml", "-q", "--perfetto", "whole.json", "--openmetrics", "whole.txt")
        for flag, path in (("--perfetto", "/dev/full"), ("--openmetrics", "/dev/full")):
            result = self.call("run", "scenario.yaml", "-q", "-o", "out", "--perfetto", "t.json", flag, path)
            self.assertEqual(result.returncode, 3)
            self.assertIn(f"{path}: writing failed: No space left on device\n", result.stderr)
            self.assertIn(f"{path}", self.named("not written", result.stderr))
            self.assertIn("is kept in out", result.stderr)

    def test_no_mixture_of_two_runs(self):
        """A log that was lost takes the one of the earlier run along."""
        shutil.copytree(self.path("whole"), self.path("out"))
        left = self.full(300, says="is kept in out")     # less than the header of steps.csv
        self.assertEqual(left, ["events.jsonl", "requests.csv"])
        self.assertTrue(self.read("whole", "events.jsonl").startswith(self.read("out", "events.jsonl")))

    def test_earlier_run_stays_when_nothing_was_written(self):
        shutil.copytree(self.path("whole"), self.path("out"))
        self.full(20, says=r"pagedkv: nothing could be kept in out\n\Z")
        self.same_contents("out", "whole")

    def test_nothing_to_keep(self):
        self.assertEqual(self.full(20, says="nothing could be kept in out"), [])

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_full_device(self):
        os.mkdir(self.path("out"))
        os.symlink("/dev/full", self.path("out", "requests.csv"))
        result = self.call("run", "scenario.yaml", "-q", "-o", "out")
        self.assertEqual(result.returncode, 3)
        self.assertIn("out/requests.csv: writing failed: No space left on device\n", result.stderr)
        self.assertTrue(os.path.islink(self.path("out", "requests.csv")))
        self.assertGreater(len(self.rows("out", "steps.csv")), 0)


class Interrupted(ProgramCase):
    def stop(self, number):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        run = subprocess.Popen(
            [self.program, "run", "endless.yaml", "-q", "-o", "out", "--perfetto", "t.json", "--openmetrics",
             "m.txt", "--scrape-interval", "1m"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        beside = self.path("t.json.partial")
        while not os.path.exists(beside) or os.path.getsize(beside) < 200000:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        run.send_signal(number)
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 3)
        return err

    def test_every_output_is_closed(self):
        """By Ctrl-C, by kill, by a terminal that goes: each is whole, up to one and the same step."""
        self.write("endless.yaml", STEADY.replace("5000", "100000000"))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            err = self.stop(number)
            self.assertRegex(err, r"\Apagedkv: interrupted after \d+ steps; what was done until then is kept "
                             r"in out, m\.txt, t\.json\n\Z")
            steps = int(re.search(r"after (\d+)", err)[1])
            self.assertEqual(sorted(os.listdir(self.path("out"))), sorted(FILES))
            self.assertEqual(sorted(os.listdir(self.folder)), ["endless.yaml", "m.txt", "out", "t.json"])
            self.assertEqual(len(self.rows("out", "steps.csv")), steps)
            self.assertEqual(self.summary("out")["steps"], steps)
            self.assertTrue(self.read("out", "report.html").endswith(b"</html>\n"))
            events = json.loads(self.read("t.json"))
            last = self.rows("out", "steps.csv")[-1]
            self.assertEqual(max(event["ts"] for event in events if event["ph"] == "C"),
                             (int(last["time_ns"]) + int(last["dur_ns"])) / 1000)
            scrapes = self.read("m.txt").decode()
            self.assertTrue(scrapes.endswith("\n# EOF\n"))
            generated = re.findall(r"^vllm:generation_tokens_total\{.*\} (\d+)", scrapes, re.MULTILINE)
            self.assertEqual(int(generated[-1]), self.summary("out")["tokens"]["output"])


class SideBySide(ProgramCase):
    def test_two_runs_into_one_directory(self):
        """Each file is whole and from one of both."""
        self.write("scenario.yaml", STEADY)
        flags = {"one": (), "two": ("--set", "traffic.output_tokens=5")}
        for name, more in flags.items():
            self.done("run", "scenario.yaml", "-q", "-o", name, *more)
        whole = {name: self.contents(name) for name in flags}
        for _ in range(3):
            runs = [subprocess.Popen([self.program, "run", "scenario.yaml", "-q", "-o", "out", *more],
                                     cwd=self.folder) for more in flags.values()]
            self.assertEqual([run.wait(timeout=self.timeout) for run in runs], [0, 0])
            both = self.contents("out")
            self.assertEqual(sorted(both), sorted(FILES))
            for name, content in both.items():
                self.assertIn(content, (whole["one"][name], whole["two"][name]), name)

    def test_left_by_a_killed_run(self):
        """A partial file is taken over once its writer is dead, and not before."""
        self.small()
        self.write("endless.yaml", STEADY.replace("5000", "100000000"))
        partial = self.path("out", "steps.csv.partial")
        run = subprocess.Popen([self.program, "run", "endless.yaml", "-q", "-o", "out"],
                               cwd=self.folder)
        deadline = time.monotonic() + 60
        while not (os.path.exists(partial) and os.path.getsize(partial)):
            self.assertLess(time.monotonic(), deadline, "the run wrote nothing for a minute")
            time.sleep(0.02)
        self.done("run", "scenario.yaml", "-o", "out")
        self.assertTrue(os.path.exists(partial))
        run.kill()
        run.wait(timeout=60)
        self.done("run", "scenario.yaml", "-o", "out")
        self.done("run", "scenario.yaml", "-o", "alone")
        self.same_contents("out", "alone")

    def test_planted_link(self):
        self.small()
        os.mkdir(self.path("out"))
        self.write("victim", "precious")
        os.symlink("../victim", self.path("out", "steps.csv.partial"))
        self.done("run", "scenario.yaml", "-o", "out")
        self.assertEqual(self.read("victim"), b"precious")
        self.assertTrue(self.read("out", "steps.csv").startswith(b"step,"))


class StrangeNames(ProgramCase):
    IDS = ("a. b", "two\nlines", "\x1b[31mred", 'say "so", ', "\x7f\u009b")

    def setUp(self):
        super().setUp()
        self.small()
        self.write("trace.jsonl", "".join(
            json.dumps({"id": name, "timestamp": i, "input_length": 8, "output_length": 6}) + "\n"
            for i, name in enumerate(self.IDS)))

    def assert_tame(self, text):
        self.assertEqual([c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)], [])

    def test_logs(self):
        self.done("run", "scenario.yaml", "-o", "out")
        self.assertEqual(sorted(row["id"] for row in self.rows("out", "requests.csv")),
                         sorted(self.IDS))
        events = [json.loads(line) for line in self.read("out", "events.jsonl").splitlines()]
        self.assertEqual({event["id"] for event in events}, set(self.IDS))

    def test_diff(self):
        self.done("run", "scenario.yaml", "-o", "a")
        self.done("run", "scenario.yaml", "-o", "b", "--set", "kv.num_blocks=7")
        self.done("diff", "a/requests.csv", "a/requests.csv")
        result = self.call("diff", "a/requests.csv", "b/requests.csv")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assert_tame(result.stdout)

    def test_diagnosis(self):
        """Whole, in one line, whatever the id holds."""
        for flags in ((), ("--quiet",)):
            for name, shown in (("a. b", "a. b"), ("x\n\x1b[2Jy. z", r"x\x0a\x1b[2Jy. z")):
                self.write("trace.jsonl", json.dumps({"id": name, "timestamp": 0, "input_length": 40,
                                                      "output_length": 2}) + "\n")
                result = self.call("run", "scenario.yaml", "--set", "scheduler.oversized=wait", *flags)
                self.assertEqual(result.returncode, 3)
                self.assertRegex(result.stderr, r"\Apagedkv: [^\n]*\n\Z")
                self.assertIn(f"request {shown} can never go on", result.stderr)
                self.assertIn("the pool has 8", result.stderr)

    def test_title(self):
        self.write("scenario.yaml", SCENARIO.replace("title: eight small blocks",
                                                     'title: "a\\e[2Jb"'))
        text = self.done("run", "scenario.yaml").stdout
        self.assertIn(r"a\x1b[2Jb", text)
        self.assert_tame(text)

    def test_title_not_utf8(self):
        self.write("scenario.yaml", SCENARIO.encode().replace(b"small", b"sm\xe4ll"))
        result = self.call("run", "scenario.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"\Ascenario\.yaml:1:16: byte 0xe4 .*not UTF-8\n\Z")
        self.small()
        result = self.call("run", "scenario.yaml", "--set", b"title=sm\xe4ll")
        self.assertEqual((result.returncode, result.stderr),
                         (2, "--set: title: the text is not UTF-8\n"))

    def test_path_not_utf8(self):
        """Read byte by byte; refused where scenario.yaml would have to name it."""
        os.rename(self.path("trace.jsonl"), os.path.join(os.fsencode(self.folder), b"tr\xe4ce"))
        flags = (b"tr\xe4ce", "--num-blocks", "8", "--block-size", "4")
        self.assertIn(r"tr\xe4ce", self.done("replay", *flags).stdout)
        self.done("replay", *flags, "-o", "out", "--files", "steps,requests")
        result = self.call("replay", *flags, "-o", "new")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"tr\\xe4ce: this path is not UTF-8, so scenario\.yaml")
        self.assertFalse(os.path.exists(self.path("new")))

    def test_path_in_quotes(self):
        self.write('"t".jsonl', TRACE)
        self.done("replay", '"t".jsonl', "--num-blocks", "8", "-o", "one")
        self.done("run", "one/scenario.yaml", "-o", "two")
        self.same_contents("one", "two")


class Memory(ProgramCase):
    """On a build without sanitizers, which keep freed memory for a while."""

    def setUp(self):
        super().setUp()
        fast = os.environ.get("PKV_FAST_PROGRAM", "")
        if os.access(fast, os.X_OK):
            self.program = fast
        limit = (1 << 30, 1 << 30)
        if self.call("--version", preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, limit)).returncode != 0:
            self.skipTest("a sanitizer needs memory of its own")

    def peak_kib(self, num_rows):
        run = subprocess.Popen([self.program, "replay", "-", "--num-blocks", "64", "-q", "-o", "out"],
                               cwd=self.folder, stdin=subprocess.PIPE)
        for i in range(num_rows):
            run.stdin.write(b'{"id":"r%d","timestamp":%d,"input_length":%d,"output_length":2}\n'
                            % (i, 100 * i, 16 + i % 50))
        run.stdin.close()
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(self.summary("out")["requests"]["completed"], num_rows)
        return usage.ru_maxrss

    def test_does_not_grow_with_the_trace(self):
        self.assertLess(self.peak_kib(200_000), self.peak_kib(10_000) + 1024)


class Swap(ProgramCase):
    def run_mix(self, mix, how):
        self.write("scenario.yaml", "kv: {block_size: 16, num_blocks: 256, host_blocks: 4096}\n"
                   f"scheduler: {{on_preempt: {how}, mix: {mix}}}\nstep_time: 'affine:10,0.1,0,0'\n"
                   "traffic: {requests: 200, arrivals: {law: at_once}, seed: 1, prompt_tokens: {law: uniform, "
                   "min: 50, max: 200}, output_tokens: {law: uniform, min: 50, max: 400}}\n")
        self.done("run", "scenario.yaml", "-o", "out", "-q")
        return self.summary("out")

    def test_every_mix_comes_to_its_end(self):
        """Whoever comes back takes blocks that those who decode would need in the same step."""
        for mix in ("mixed", "prefill_first", "decode_first", "separate_with_limit"):
            for how in ("swap", "auto"):
                with self.subTest(mix=mix, how=how):
                    summary = self.run_mix(mix, how)
                    self.assertEqual((summary["outcome"], summary["requests"]["completed"]), ("done", 200))
                    self.assertGreater(summary["swap"]["preemptions"], 0)

    def test_bytes_of_a_model(self):
        """On each of 4 ranks: 2 of the 8 KV heads, K and V of 128 values of 2 bytes, in 32 layers."""
        self.write("scenario.yaml", "kv: {num_blocks: 40, model: llama-3.1-8b, tp: 4, host_blocks: 100}\n"
                   "scheduler: {on_preempt: swap}\nstep_time: fixed:10\n"
                   "traffic: {requests: 20, arrivals: {law: at_once}, prompt_tokens: 100, output_tokens: 90}\n")
        self.done("run", "scenario.yaml", "-o", "out", "-q")
        swap = self.summary("out")["swap"]
        self.assertGreater(swap["out_blocks"], 0)
        self.assertEqual(swap["out_bytes"], swap["out_blocks"] * 16 * 32 * 2 * 2 * 128 * 2)


class Samples(ProgramCase):
    """README.md's request of four samples: 20 tokens in blocks of 16, 2, 3, 4 and 6 tokens out."""

    def run_four(self, *args, **kwargs):
        self.write("scenario.yaml", "kv: {num_blocks: 10, prefix_cache: false}\n"
                   "step_time: fixed:1\ntraffic: {trace: trace.jsonl}\n")
        self.write("trace.jsonl", '{"id": "a", "timestamp": 0, "input_length": 20, "n": 4, '
                   '"output_length": [2, 3, 4, 6]}\n')
        return self.done("run", "scenario.yaml", "--check", *args, **kwargs)

    def column(self, name):
        return [int(row[name]) for row in self.rows("out", "steps.csv")]

    def test_fork(self):
        """Each copy is a block beside the full one, which all hold until the last of them ends."""
        self.run_four("-q", "-o", "out", "--set", "scheduler.fork=on")
        self.assertEqual(self.column("used_blocks"), [2, 1 + 4, 1 + 3, 1 + 2, 1 + 1, 1 + 1])
        self.assertEqual(self.column("free_blocks_end"), [8, 10 - 4, 10 - 3, 10 - 2, 10 - 2, 10])
        told = self.summary("out")["samples"]
        times = [told.pop(name) for name in ("ttft_ms", "e2e_ms")]
        self.assertEqual(told, {"requests": 1, "samples": 4, "forks": 3, "forked_tokens": 3 * 20,
                                "dropped_beams": 0, "copied_blocks": 3, "shared_frac": 6 / 24,
                                "peak_shared_frac": 3 / 8})
        self.assertEqual([(t["count"], t["max"]) for t in times], [(1, 1), (1, 6)])

    def test_times_of_whole_requests(self):
        """One after the other: samples begin with steps 0, 2, 5 and 9, the last of 15 ends the run."""
        self.run_four("-q", "-o", "out", "--set", "scheduler.max_num_seqs=1")
        figures = self.summary("out")
        self.assertEqual([(figures["samples"][name]["count"], figures["samples"][name]["max"])
                          for name in ("ttft_ms", "e2e_ms")], [(1, 1), (1, 15)])
        self.assertEqual(figures["latency_ms"]["ttft"]["sum_ns"], (1 + 3 + 6 + 10) * 10**6)

    def test_an_aborted_sample_ends_no_request(self):
        """The first token came, the end did not: all samples are aborted in step 1."""
        self.run_four("-q", "-o", "whole")
        self.write("trace.jsonl", self.read("trace.jsonl").replace(b'"n": 4', b'"n": 4, "abort_ms": 1.5'))
        self.done("run", "scenario.yaml", "-q", "-o", "out")
        told = self.summary("out")["samples"]
        self.assertEqual((told["ttft_ms"]["count"], told["e2e_ms"]["count"]), (1, 0))

    def test_step_by_step(self):
        shown = self.run_four("--step", "--set", "scheduler.fork=on", input="\n" * 8, stdin=None).stdout
        page = shown.partition("\nStep 1 ")[2].partition("\nStep 2 ")[0]
        self.assertIn("\nshared      0 by 4: A B C D\n", page)
        for table in ("a/0          +1        21/21     5/16  0* 2", "a/3          +1        21/21     "
                      "5/16  0* 1"):
            self.assertIn(table, page)
        self.assertIn("\nforked      a/1 from a/0: shares its 2 blocks\n", shown)


class Figures(ProgramCase):
    """Every figure of summary.json that the logs tell, by the definitions in README.md."""

    def run_of(self, *args):
        self.done(*args, "-q", "-o", "out")
        self.figures = self.summary("out")
        self.steps = [{name: int(n) for name, n in row.items()} for row in self.rows("out", "steps.csv")]
        self.requests = self.rows("out", "requests.csv")
        self.check_counts()
        self.check_means()
        self.check_latencies()

    def total(self, column):
        return sum(row[column] for row in self.steps)

    def times(self, end, begin, rows=None):
        """end - begin of the requests that have both; 0 as begin is the number."""
        pairs = [(row[end], row[begin] if begin else "0") for row in rows or self.requests]
        return [int(b) - int(a) for b, a in pairs if a and b]

    def check_counts(self):
        f, statuses = self.figures, [row["status"] for row in self.requests]
        for status in ("completed", "rejected", "aborted", "unfinished"):
            self.assertEqual(f["requests"][status], statuses.count(status))
        self.assertEqual(f["requests"]["arrived"], len(statuses))
        admitted = [row for row in self.requests if row["admitted_ns"]]
        self.assertEqual(f["tokens"]["prompt"], sum(int(r["prompt_tokens"]) for r in admitted))
        self.assertEqual(f["tokens"]["hit"], sum(int(r["hit_tokens"]) for r in admitted))
        self.assertEqual(f["tokens"]["output"], sum(int(r["output_tokens"]) for r in self.requests))
        for key, column in (("scheduled", "sched_tokens"), ("recomputed", "recomputed_tokens")):
            self.assertEqual(f["tokens"][key], self.total(column))
        self.assertEqual(f["tokens"]["hit"] + f["tokens"]["resumed_hit"], self.total("hit_tokens"))
        self.assertEqual(f["tokens"]["recomputed"],
                         sum(int(r["recomputed_tokens"]) for r in self.requests))
        self.assertEqual(f["preemptions"], self.total("preempted"))
        self.assertEqual(f["preemptions"], sum(int(r["preemptions"]) for r in self.requests))
        self.assertEqual(f["evicted_blocks"], self.total("evicted_blocks"))
        self.assertEqual(f["steps"], len(self.steps))
        for key in ("used_blocks", "waiting", "running"):
            self.assertEqual(f["peak"][key], max(row[key] for row in self.steps))

    def check_means(self):
        f = self.figures
        first = min(int(row["arrival_ns"]) for row in self.requests)
        span = self.steps[-1]["time_ns"] + self.steps[-1]["dur_ns"] - first
        self.assertEqual(f["makespan_ns"], span)

        def weighed(value):
            return sum(Fraction(value(row)) * row["dur_ns"] for row in self.steps) / span
        blocks, size = f["blocks"]["num_blocks"], f["blocks"]["block_size"]
        self.near(f["mean"]["used_frac"], weighed(lambda row: Fraction(row["used_blocks"], blocks)))
        self.near(f["mean"]["running"], weighed(lambda row: row["running"]))
        self.near(f["mean"]["waiting"], weighed(lambda row: row["waiting"]))
        self.near(f["mean"]["slot_use_frac"],
                  weighed(lambda row: Fraction(row["stored_tokens"], blocks * size)))
        for limit, share in enumerate(f["limit_frac"].values()):
            if limit > 0:     # 0 also has the time between steps
                self.near(share, weighed(lambda row, n=limit: row["limit"] == n))
        self.near(sum(map(Fraction, f["limit_frac"].values())), 1, 1e-8)
        self.near(f["throughput"]["requests_per_s"],
                  Fraction(f["requests"]["completed"] * 10**9, span))
        self.near(f["throughput"]["output_tokens_per_s"],
                  Fraction(f["tokens"]["output"] * 10**9, span))

    def check_latencies(self):
        done = [row for row in self.requests if row["status"] == "completed"]
        pairs = [(int(row["finish_ns"]) - int(row["first_token_ns"]), int(row["output_tokens"]))
                 for row in done]
        for key, values in (
                ("ttft", self.times("first_token_ns", "arrival_ns")),
                ("queue", self.times("admitted_ns", "arrival_ns")),
                ("e2e", self.times("finish_ns", "arrival_ns", done)),
                ("max_gap", self.times("max_gap_ns", None)),
                ("tpot", [span // (num - 1) for span, num in pairs if num > 1])):
            self.check_distribution(key, values)
        itl = self.figures["latency_ms"]["itl"]
        self.assertEqual(itl["sum_ns"], sum(span for span, num in pairs if num > 1))
        self.assertEqual(itl["count"], sum(num - 1 for _, num in pairs if num > 1))

    def check_distribution(self, key, values):
        shown = self.figures["latency_ms"][key]
        self.assertEqual((shown["count"], shown["sum_ns"]), (len(values), sum(values)), key)
        self.near(shown["mean"], Fraction(sum(values), len(values) * 10**6))
        self.near(shown["max"], Fraction(max(values), 10**6))
        values.sort()
        for percent in (50, 90, 95, 99):      # nearest rank, told by the upper edge of its bucket
            exact = values[math.ceil(len(values) * percent / 100) - 1] / 1e6
            self.assertGreaterEqual(shown[f"p{percent}"], exact - 1e-6)
            self.assertLessEqual(shown[f"p{percent}"], exact * (1 + 2**-10) + 1e-6)

    def near(self, shown, exact, tolerance=2e-9):
        """Printed with nine decimals, cut."""
        self.assertLessEqual(abs(Fraction(shown) - exact), Fraction(tolerance), (shown, float(exact)))

    def test_small(self):
        self.small()
        self.run_of("run", "scenario.yaml")

    def test_preemptions(self):
        """The sample trace on a pool too small for it, with the gate off."""
        trace = os.path.join(SOURCE_ROOT, "scenarios", "traces", "sample_1000.jsonl")
        self.run_of("replay", trace, "--num-blocks", "1200", "--limit", "200",
                    "--set", "scheduler.reserve_full_isl=false", "--speedup", "2")
        self.assertGreater(self.figures["preemptions"], 0)

    def test_synthetic(self):
        self.write("scenario.yaml", "kv: {num_blocks: 40}\nstep_time: {model: fixed, ms: 2}\n"
                   "traffic: {requests: 150, arrivals: {law: poisson, rate_per_s: 40}, "
                   "prompt_tokens: {law: lognormal, mean: 90, cv: 1}, "
                   "output_tokens: {law: uniform, min: 1, max: 40}}\n")
        self.run_of("run", "scenario.yaml", "--seed", "5")
        self.assertGreater(self.figures["requests"]["completed"], 100)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SOURCE_ROOT = os.path.abspath(sys.argv.pop(2))
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
