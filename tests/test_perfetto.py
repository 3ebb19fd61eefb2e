#!/usr/bin/env python3
"""The trace for the Perfetto UI: it is well formed, its slices add up to requests.csv, its counters are
those of steps.csv; and what becomes of the file when something goes wrong.

usage: test_perfetto.py PROGRAM SOURCE_ROOT
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

import tap
from chrome_trace import Broken, Trace, check
from program import FILES, SCENARIO, ProgramCase
from test_program import ENDLESS
from test_results import limit_files

SOURCE_ROOT = None      # set by main

# Every sort of trouble: a pool that is too small, a small budget so that computing again takes several
# steps, requests that never fit, and some that are cancelled in whatever state they are.
TROUBLE = """\
kv: {block_size: 4, num_blocks: 24}
scheduler:
  preset: vllm
  max_num_batched_tokens: 16
  max_num_seqs: 6
step_time: {model: affine, base_ms: 1, per_prefill_token_ms: 0.1}
traffic:
  trace: trace.jsonl
"""


def troubled(num):
    """Rows made by hand of whole numbers, the same each time."""
    rows = []
    for i in range(num):
        row = {"id": f"r{i}", "timestamp": i * 2 + i % 3 * 0.25, "input_length": 5 + i * 7 % 23,
               "output_length": 2 + i * 11 % 31}
        if i % 10 == 7:
            row["input_length"] = 400
        if i % 7 == 3:
            row["abort_ms"] = row["timestamp"] + i % 4 * 9
        rows.append(json.dumps(row) + "\n")
    return "".join(rows)


class Case(ProgramCase):
    def traced(self, *args, path="t.json", is_done=True, status=0):
        result = self.call(*args, "-q", "-o", "out", "--perfetto", path)
        self.assertEqual(result.returncode, status, result.stderr)
        return self.checked(path, is_done)

    def checked(self, path="t.json", is_done=True):
        events = [json.loads(line) for line in self.read("out", "events.jsonl").splitlines()]
        trace = Trace(self.path(path))
        check(trace, self.rows("out", "requests.csv"), self.rows("out", "steps.csv"), events, is_done)
        return trace

    def names(self, trace):
        return {phase.name for request in trace.requests.values() for phase in request.phases}


class Runs(Case):
    def test_by_hand(self):
        """Six blocks of four: a takes the fourth block of b at 5 ms."""
        self.write("trace.jsonl", '{"id": "a", "timestamp": 0, "input_length": 8, "output_length": 6}\n'
                   '{"id": "b", "timestamp": 1, "input_length": 8, "output_length": 6}\n')
        self.write("scenario.yaml", SCENARIO)
        trace = self.traced("run", "scenario.yaml", "--set", "kv.num_blocks=6")
        ms = 1000000
        self.assertEqual([(s.name, s.begin_ns / ms, s.end_ns / ms) for s in trace.requests["b"].phases],
                         [("waiting", 1, 1), ("prefill", 1, 2), ("decode", 2, 5), ("preempted", 5, 6),
                          ("recompute", 6, 7), ("decode", 7, 8)])
        self.assertEqual(trace.arrows, [("a", "b", 5 * ms)])
        self.assertEqual(trace.requests["b"].phases[3].args,
                         {"for": "a", "freed_blocks": 3, "lost_tokens": 11})

    def test_trouble(self):
        self.write("scenario.yaml", TROUBLE)
        self.write("trace.jsonl", troubled(120))
        trace = self.traced("run", "scenario.yaml")
        ends = {request.args["status"] for request in trace.requests.values()}
        self.assertEqual(ends, {"completed", "rejected", "aborted"})
        self.assertEqual(self.names(trace), {"waiting", "prefill", "decode", "preempted", "recompute"})
        preempted_early = [r for r in trace.requests.values() if "preempted" in [
            p.name for p in r.phases[:3]]]
        self.assertTrue(preempted_early)    # before its first token

    def test_ways_to_schedule(self):
        self.write("scenario.yaml", TROUBLE)
        self.write("trace.jsonl", troubled(80))
        for sets in (["scheduler.async_scheduling=true"], ["scheduler.enable_chunked_prefill=false",
                     "scheduler.max_num_batched_tokens=64"], ["kv.prefix_cache=false"],
                     ["scheduler.preempt=oldest"], ["scheduler.grow=whole_batch"],
                     ["scheduler.preset=lightllm"], ["scheduler.preset=vllm-0.19"],
                     ["scheduler.policy=priority"]):
            with self.subTest(sets):
                self.traced("run", "scenario.yaml", *(w for s in sets for w in ("--set", s)))

    def test_horizon(self):
        """What is live when the run is cut ends there."""
        self.write("scenario.yaml", TROUBLE)
        self.write("trace.jsonl", troubled(120))
        trace = self.traced("run", "scenario.yaml", "--set", "horizon=100ms", is_done=False)
        cut = [r for r in trace.requests.values() if r.args["status"] == "unfinished"]
        self.assertGreater(len(cut), 3)

    def test_pauses(self):
        """Nobody is there between two requests: counters fall to nothing meanwhile."""
        self.write("scenario.yaml", SCENARIO)
        self.write("trace.jsonl", "".join(
            f'{{"timestamp": {100 * i}, "input_length": 5, "output_length": 3}}\n' for i in range(3)))
        trace = self.traced("run", "scenario.yaml")
        self.assertEqual([c[1:] for c in trace.counters if c[0] == "requests running"],
                         [(t * 1000000, n) for t, n in ((0, 1), (3, 0), (100, 1), (103, 0), (200, 1),
                                                        (203, 0))])

    def test_scenarios(self):
        """Swapping, samples and beams, a session's turns, thousands of requests in a queue."""
        for name, sets, phases in (
                ("swap_vs_recompute", ["traffic.requests=200", "traffic.arrivals.rate_per_s=6"],
                 {"swapped", "swap in"}),
                ("swap_vs_recompute", ["scheduler.on_preempt=auto", "kv.host_blocks=200"],
                 {"swapped", "swap in", "recompute", "preempted"}),
                ("samples_and_beams", ["traffic.requests=60", "kv.num_blocks=300"], {"preempted"}),
                ("samples_and_beams", ["traffic.requests=60", "traffic.samples=1", "traffic.beam_width=4",
                                       "kv.num_blocks=300"], {"preempted"}),
                ("spike", [], {"waiting"}), ("sample", ["kv.num_blocks=400"], {"preempted"})):
            with self.subTest(name=name, sets=sets):
                path = os.path.join(SOURCE_ROOT, "scenarios", name + ".yaml")
                trace = self.traced("run", path, *(w for s in sets for w in ("--set", s)))
                self.assertLessEqual(phases, self.names(trace))

    def test_lanes(self):
        """As many as requests are live at once, used again, and the lowest free one first."""
        self.write("scenario.yaml", SCENARIO)
        self.write("trace.jsonl", "".join(
            f'{{"timestamp": {4 * i}, "input_length": 4, "output_length": 6}}\n' for i in range(50)))
        trace = self.traced("run", "scenario.yaml")
        self.assertEqual([name for tid, name in sorted(trace.threads.items()) if tid > 10],
                         ["lane 1", "lane 2"])

    def test_checker_sees(self):
        """A trace with one event moved, left out or changed is broken."""
        self.write("scenario.yaml", TROUBLE)
        self.write("trace.jsonl", troubled(40))
        self.traced("run", "scenario.yaml")
        lines = self.read("t.json").decode().splitlines()
        for i in range(len(lines) // 2, len(lines) - 1, 7):
            event = json.loads(lines[i].rstrip(","))
            later = json.dumps(dict(event, ts=round(event.get("ts", 0) + 0.001, 3))) + ","
            for new in ([], [lines[i].rstrip(",") + ","] * 2, [later]):
                with self.subTest(event=event, new=new):
                    self.write("t.json", "\n".join([*lines[:i], *new, *lines[i + 1:]]) + "\n")
                    self.assertRaises((Broken, KeyError, ValueError), self.checked)


class Traces(Case):
    timeout = 600

    def test_real_traffic(self):
        """Conversations of 2023 in a pool that is short of blocks, and prefixes of 2024."""
        shared = os.environ.get("PKV_SHARED") or os.path.join(SOURCE_ROOT, os.pardir, "shared")
        for name, block_size, num_blocks in (("azure2023_conv.csv", 16, 2000),
                                             ("mooncake_conversation.jsonl", 512, 3000)):
            path = os.path.abspath(os.path.join(shared, "data", "traces", name))
            if not os.path.exists(path):
                self.skipTest(f"no {path}")
            trace = self.traced("replay", path, "--block-size", str(block_size), "--num-blocks",
                                str(num_blocks))
            self.assertGreater(len(trace.requests), 10000)
            self.assertGreater(len(trace.arrows), 50)


class Readme(Case):
    def test_lanes(self):
        """As many lanes as the README says, for as many requests."""
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            said = re.search(r"as were live at\nonce, (\d+) here for ([\d,]+);", file.read())
        trace = self.traced("run", os.path.join(SOURCE_ROOT, "scenarios", "sample.yaml"))
        self.assertEqual(int(said[1]), sum(name.startswith("lane ") for name in trace.threads.values()))
        self.assertEqual(int(said[2].replace(",", "")), len(trace.requests))


class File(Case):
    def test_packed(self):
        """The same events, and the same bytes each time."""
        self.write("scenario.yaml", TROUBLE)
        self.write("trace.jsonl", troubled(40))
        self.traced("run", "scenario.yaml")
        self.traced("run", "scenario.yaml", path="t.json.gz")
        first = self.read("t.json.gz")
        self.traced("run", "scenario.yaml", path="t.json.gz")
        self.assertEqual(self.read("t.json.gz"), first)
        self.assertEqual(subprocess.run(["gzip", "-dc", self.path("t.json.gz")], capture_output=True,
                                        check=True).stdout, self.read("t.json"))

    def test_standard_output(self):
        self.write("scenario.yaml", TROUBLE)
        self.write("trace.jsonl", troubled(10))
        result = self.done("run", "scenario.yaml", "-q", "--perfetto", "-")
        self.done("run", "scenario.yaml", "-q", "--perfetto", "t.json")
        self.assertEqual(result.stdout, self.read("t.json").decode())
        result = self.call("run", "scenario.yaml", "--perfetto", "-")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--perfetto - writes to standard output, where the summary goes: add --quiet",
                      result.stderr)

    def test_wrong_input_leaves_nothing(self):
        self.write("scenario.yaml", TROUBLE)
        self.write("trace.jsonl", troubled(10) + "{\n")
        for path in ("t.json", "t.json.gz"):
            result = self.call("run", "scenario.yaml", "-o", "out", "--perfetto", path)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(sorted(os.listdir(self.folder)), ["scenario.yaml", "trace.jsonl"])

    def test_no_folder(self):
        self.small()
        result = self.call("run", "scenario.yaml", "-o", "out", "--perfetto", "nowhere/t.json")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr, "nowhere/t.json: cannot be written: No such file or directory\n")
        self.assertEqual(sorted(os.listdir(self.folder)), ["scenario.yaml", "trace.jsonl"])

    def test_spares_inputs_and_results(self):
        self.small()
        os.symlink("trace.jsonl", self.path("link"))
        os.mkdir(self.path("out"))
        os.symlink("out", self.path("to_out"))
        before = sorted(os.listdir(self.folder))
        for path in ("trace.jsonl", "link", "./scenario.yaml"):
            result = self.call("run", "scenario.yaml", "-o", "out", "--perfetto", path)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(f"{path}: this would write over the input (", result.stderr)
        for name in FILES:
            for path in (f"out/{name}", f"to_out/{name}", f"out/../out/{name}", self.path("out", name)):
                result = self.call("run", "scenario.yaml", "-o", "out", "--perfetto", path)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertEqual(result.stderr, f"pagedkv: --perfetto: {path} is a file that the run "
                                 "writes as well; name another\n")
        self.assertEqual((sorted(os.listdir(self.folder)), os.listdir(self.path("out"))), (before, []))
        result = self.call("run", "scenario.yaml", "--openmetrics", "t", "--perfetto", "t")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--perfetto and --openmetrics name the same file", result.stderr)
        self.done("run", "scenario.yaml", "-q", "-o", "out", "--files", "events",
                  "--perfetto", "out/steps.csv")

    def interrupt(self, *flags):
        self.write("scenario.yaml", ENDLESS)
        run = subprocess.Popen([self.program, "run", "scenario.yaml", "-q", "--perfetto", "t.json", *flags],
                               cwd=self.folder, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        beside = self.path("t.json.partial")
        while not os.path.exists(beside) or os.path.getsize(beside) < 200000:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 3)
        self.assertFalse(os.path.exists(beside))
        return err

    def test_interrupted(self):
        self.assertRegex(self.interrupt("-o", "out"), r"; what was done until then is kept in out, t\.json\n\Z")
        self.checked(is_done=False)

    def test_interrupted_without_other_files(self):
        self.assertRegex(self.interrupt(), r"; what was done until then is kept in t\.json\n\Z")
        trace = Trace(self.path("t.json"))
        ends = [request.args["status"] for request in trace.requests.values()]
        self.assertLess(ends.count("unfinished"), len(ends))

    def test_full_disk(self):
        """What fitted is kept up to a whole event; of a packed file nothing is."""
        self.write("scenario.yaml", TROUBLE)
        self.write("trace.jsonl", troubled(600))
        self.done("run", "scenario.yaml", "-q", "--perfetto", "whole.json")
        whole = self.read("whole.json")
        for path, limit, says in (
                ("t.json", 100000, "pagedkv: what was done until then is kept in t.json\n"
                 "pagedkv: cut behind the last row that could be written: t.json\n"),
                ("t.json.gz", 20000, "pagedkv: not written: t.json.gz\n")):
            result = self.call("run", "scenario.yaml", "-q", "--perfetto", path,
                               preexec_fn=limit_files(limit))
            self.assertEqual((result.returncode, result.stderr),
                             (3, f"{path}: writing failed: File too large\n" + says))
        kept = self.read("t.json")
        self.assertTrue(kept.endswith(b"}\n]\n") and len(kept) > 99000)
        self.assertTrue(whole.startswith(kept[:-3]))
        self.assertEqual(json.loads(kept), json.loads(whole)[:len(json.loads(kept))])
        self.assertFalse(os.path.exists(self.path("t.json.gz")))
        self.assertFalse(os.path.exists(self.path("t.json.gz.partial")))


if __name__ == "__main__":
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    SOURCE_ROOT = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
