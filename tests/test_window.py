#!/usr/bin/env python3
"""The window that figures cover and the horizon of a run, reckoned again from the files of a whole run.

usage: test_window.py PROGRAM SOURCE_ROOT
"""
import json
import os
import sys

import tap
from program import ProgramCase

# Crowded: requests wait, and some are preempted.
LOAD = """\
kv: {block_size: 4, num_blocks: 60}
scheduler: {preset: vllm-2025-09, max_num_batched_tokens: 64}
step_time: {model: affine, base_ms: 3, per_prefill_token_ms: 0.1, per_decode_ms: 0.25, per_context_token_ns: 0}
traffic:
  requests: 120
  arrivals: {law: poisson, rate_per_s: 25}
  prompt_tokens: {law: uniform, min: 4, max: 40}
  output_tokens: {law: uniform, min: 0, max: 40}
  prefixes: {num: 2, tokens: 12, share: 0.7}
  aborts: {share: 0.1, min: 10ms, max: 400ms}
targets: {ttft_ms: 60}
"""
# Additions to it, the object of summary.json that they make, and which of its figures count steps or those
# who come, so that they grow with the window.
FEATURES = {
    "speculation": (("speculation.method=ngram", "speculation.num_tokens=3", "speculation.acceptance_rate=0.6"),
                    ("verifications", "drafted", "accepted", "emitted")),
    "swap": (("kv.num_blocks=30", "kv.host_blocks=12", "kv.bytes_per_token=1000", "link.bandwidth=1GB",
              "scheduler.on_preempt=swap"),
             ("preemptions", "host_full", "out_blocks", "in_blocks", "out_bytes", "in_bytes",
              "link_busy_ns")),
    "sessions": (("traffic.sessions.turns=3", "traffic.sessions.turn_tokens=6",
                  "traffic.sessions.delay_ms=100"),
                 ("turns", "former_tokens", "retained_tokens")),
    "samples": (("traffic.samples=3", "scheduler.fork=on"),
                ("requests", "samples", "forks", "forked_tokens", "copied_blocks")),
}
MS = 1_000_000


def number(text):
    return int(text) if text else None


class Case(ProgramCase):
    def setUp(self):
        super().setUp()
        self.write("load.yaml", LOAD)
        self.done("run", "load.yaml", "-o", "whole", "-q")
        self.steps = [{key: int(value) for key, value in row.items()}
                      for row in self.rows("whole", "steps.csv")]
        self.requests = [{key: value if key in ("id", "status", "reason", "tenant") else number(value)
                          for key, value in row.items()}
                         for row in self.rows("whole", "requests.csv")]


class Window(Case):
    def reckon(self, after, until):
        """Figures of [after, until) from the rows of the whole run."""
        steps = [row for row in self.steps if after <= row["time_ns"] < until]
        came = [row for row in self.requests if after <= row["arrival_ns"] < until]
        begin = max(after, min(row["arrival_ns"] for row in self.requests))
        end = min(until, max(row["time_ns"] + row["dur_ns"] for row in self.steps))
        span = end - begin
        lasting = [(row, min(row["time_ns"] + row["dur_ns"], until) - max(row["time_ns"], after))
                   for row in self.steps]
        lasting = [(row, ns) for row, ns in lasting if ns > 0]
        ttft = [row["first_token_ns"] - row["arrival_ns"] for row in came
                if row["first_token_ns"] is not None]
        done = [row for row in came if row["status"] == "completed"]
        return {
            "requests": {"arrived": len(came), "completed": len(done),
                         "rejected": sum(row["status"] == "rejected" for row in came),
                         "aborted": sum(row["status"] == "aborted" for row in came),
                         "unfinished": 0},
            "steps": len(steps),
            "makespan_ns": span,
            "preemptions": sum(row["preempted"] for row in steps),
            "evicted_blocks": sum(row["evicted_blocks"] for row in steps),
            "scheduled": sum(row["sched_tokens"] for row in steps),
            "recomputed": sum(row["recomputed_tokens"] for row in steps),
            "hits": sum(row["hit_tokens"] for row in steps),
            "peak_used": max(row["used_blocks"] for row, _ in lasting),
            "peak_waiting": max(row["waiting"] for row, _ in lasting),
            "used_frac": sum(row["used_blocks"] * ns for row, ns in lasting) / 60 / span,
            "running": sum(row["running"] * ns for row, ns in lasting) / span,
            "ttft": (len(ttft), sum(ttft), max(ttft)),
            "queue": sum(row["queue_ns"] for row in came if row["queue_ns"] is not None),
            "requests_per_s": len(done) * 1e9 / span,
        }

    def check(self, after, until, flags):
        self.done("run", "load.yaml", "-o", "part", "-q", *flags)
        s = self.summary("part")
        want = self.reckon(after, until)
        self.assertGreater(want["requests"]["completed"], 5)
        self.assertEqual(s["requests"], want["requests"])
        for key in ("steps", "makespan_ns", "preemptions", "evicted_blocks"):
            self.assertEqual(s[key], want[key], key)
        self.assertEqual(s["tokens"]["scheduled"], want["scheduled"])
        self.assertEqual(s["tokens"]["recomputed"], want["recomputed"])
        self.assertEqual(s["tokens"]["hit"] + s["tokens"]["resumed_hit"], want["hits"])
        self.assertEqual(s["peak"]["used_blocks"], want["peak_used"])
        self.assertEqual(s["peak"]["waiting"], want["peak_waiting"])
        self.assertAlmostEqual(s["mean"]["used_frac"], want["used_frac"], places=8)
        self.assertAlmostEqual(s["mean"]["running"], want["running"], places=8)
        ttft = s["latency_ms"]["ttft"]
        self.assertEqual((ttft["count"], ttft["sum_ns"], round(ttft["max"] * MS)), want["ttft"])
        self.assertEqual(s["latency_ms"]["queue"]["sum_ns"], want["queue"])
        self.assertAlmostEqual(s["throughput"]["requests_per_s"], want["requests_per_s"], places=6)
        whole = self.summary("whole")
        self.assertEqual(s["whole"], {key: whole[key]
                                      for key in ("requests", "preemptions", "makespan_ns")})
        self.assertEqual(self.done("explain", "part", "--worst", "3", "--json").stdout,
                         self.done("explain", "whole", "--worst", "3", "--json").stdout)
        for name in ("steps.csv", "requests.csv", "events.jsonl"):
            self.assertEqual(self.read("part", name), self.read("whole", name))

    def test_middle(self):
        self.check(1000 * MS, 3000 * MS, ("--set", "measure.after=1s", "--set", "measure.until=3s"))

    def test_after(self):
        self.check(1500 * MS, 10**18, ("--set", "measure.after=1500ms"))

    def test_until(self):
        self.check(0, 2000 * MS, ("--set", "measure.until=2s"))

    def test_whole(self):
        """A window around everything changes no figure."""
        self.done("run", "load.yaml", "-o", "part", "-q", "--set", "measure.until=1h")
        whole, part = self.summary("whole"), self.summary("part")
        del part["whole"]
        for summary in (whole, part):
            for key in ("wall_ns", "scenario_sha256"):
                del summary[key]
        self.assertEqual(part, whole)

    def feature(self, name, out, *measure):
        flags = [part for key in (*FEATURES[name][0], *measure) for part in ("--set", key)]
        page = self.done("run", "load.yaml", "-o", out, *flags).stdout
        self.assertRegex(page, rf"(?m)^{name} ")
        return self.summary(out)

    def test_features(self):
        """Two windows side by side share what one around everything has as if there were none."""
        for name, (_, counted) in FEATURES.items():
            with self.subTest(name):
                whole = self.feature(name, "features")
                half = whole["makespan_ns"] // 2 // MS
                around = self.feature(name, "part", "measure.until=1h")
                first = self.feature(name, "part", f"measure.until={half}ms")
                second = self.feature(name, "part", f"measure.after={half}ms")
                self.assertEqual(around[name], whole[name])
                for key in counted:
                    self.assertGreater(first[name][key], 0, key)
                    self.assertLess(first[name][key], whole[name][key], key)
                    self.assertEqual(first[name][key] + second[name][key], whole[name][key], key)

    def test_features_of_nothing(self):
        """A window behind the run has the objects of the run all the same, and nothing in them."""
        for name, (flags, counted) in FEATURES.items():
            keys = [part for key in (*flags, "measure.after=1h") for part in ("--set", key)]
            self.done("run", "load.yaml", "-o", "part", "-q", *keys)
            part = self.summary("part")[name]
            self.assertEqual([part[key] for key in counted], [0] * len(counted), name)

    def test_swap_rows(self):
        """Blocks moved are those of the rows; the peak of the host is the whole run's."""
        part = self.feature("swap", "part", "measure.after=1s", "measure.until=3s")["swap"]
        rows = [row for row in self.rows("part", "steps.csv") if 1000 * MS <= int(row["time_ns"]) < 3000 * MS]
        for way in ("out", "in"):
            self.assertEqual(part[way + "_blocks"], sum(int(row[f"swapped_{way}_blocks"]) for row in rows))
        self.assertEqual(part["peak_host_blocks"], self.feature("swap", "features")["swap"]["peak_host_blocks"])

    def test_session_events(self):
        """Turns belong to the step that their arrival belongs to."""
        part = self.feature("sessions", "part", "measure.after=1s", "measure.until=3s")["sessions"]
        steps = {row["step"] for row in self.rows("part", "steps.csv")
                 if 1000 * MS <= int(row["time_ns"]) < 3000 * MS}
        events = [json.loads(line) for line in self.read("part", "events.jsonl").splitlines()]
        turns = [event for event in events
                 if "former_tokens" in event and str(event["step"]) in steps]
        self.assertEqual(part, {"turns": len(turns),
                                "former_tokens": sum(event["former_tokens"] for event in turns),
                                "retained_tokens": sum(event["retained_tokens"] for event in turns)})

    def test_flags(self):
        self.small()
        text = self.done("replay", "trace.jsonl", "--num-blocks", "8", "--block-size", "4", "--step-time",
                         "fixed:1", "--after", "1ms", "--until", "2ms").stdout
        self.assertIn("figures cover what comes and begins from 1.0 ms to 2.0 ms; plots and", text)
        self.assertRegex(text, r"(?m)^requests +1 arrived")


class Horizon(Case):
    def test_prefix(self):
        """The same rows as far as it goes, and nobody who did not come for one of them."""
        result = self.done("run", "load.yaml", "-o", "part", "--set", "horizon=2s")
        self.assertIn("The run stopped at its horizon", result.stdout)
        steps = [row for row in self.steps if row["time_ns"] < 2000 * MS]
        ours = [{key: int(value) for key, value in row.items()}
                for row in self.rows("part", "steps.csv")]
        self.assertEqual(ours, steps)
        s = self.summary("part")
        self.assertEqual(s["outcome"], "horizon")
        came = {row["id"] for row in self.requests if row["arrival_ns"] <= steps[-1]["time_ns"]}
        rows = self.rows("part", "requests.csv")
        self.assertEqual({row["id"] for row in rows}, came)
        self.assertEqual(s["requests"]["arrived"], len(came))
        unfinished = [row for row in rows if row["status"] == "unfinished"]
        self.assertGreater(len(unfinished), 0)
        self.assertEqual({row["reason"] for row in unfinished}, {"the run reached its horizon"})

    def test_beyond_the_end(self):
        self.done("run", "load.yaml", "-o", "part", "-q", "--set", "horizon=1h")
        self.assertEqual(self.summary("part")["outcome"], "done")
        self.assertEqual(self.read("part", "steps.csv"), self.read("whole", "steps.csv"))

    def test_before_anybody_comes(self):
        self.write("late.jsonl", '{"timestamp": 5000, "input_length": 4, "output_length": 1}\n')
        self.done("replay", "late.jsonl", "--num-blocks", "8", "-o", "part", "--set", "horizon=1s")
        self.assertEqual(self.summary("part")["requests"]["arrived"], 0)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ProgramCase.program = os.path.abspath(sys.argv[1])
    del sys.argv[1:]
    tap.main(__name__)
