#!/usr/bin/env python3
"""The scenarios that come with the program: each says its question, its finding and how to run the
other side, and the finding's numbers are what the runs give.

usage: test_scenarios.py PROGRAM SOURCE_ROOT
"""
import json
import os
import re
import sys

import tap
from program import ProgramCase
from scenario_case import ScenarioCase

NS_PER_STEP = 1_000_000      # of admission_32_vs_25.yaml
GIVEN_UP = [1, 129, 273, 417, 577, 753, 945]    # its steps with a preemption
GATE_OFF = ("--set", "scheduler.reserve_full_isl=false")


def mean_ms(values):
    return sum(values) / len(values) / 1e6


class Scenarios(ScenarioCase):
    def waits_ms(self, priority):
        return [int(row["first_token_ns"]) - int(row["arrival_ns"])
                for row in self.rows("out", "requests.csv") if row["priority"] == priority]

    def preemptions(self, priority):
        return sum(int(row["preemptions"])
                   for row in self.rows("out", "requests.csv") if row["priority"] == priority)

    def test_each_has_its_question_finding_and_other_side(self):
        names = sorted(name for name in os.listdir(self.scenarios) if name.endswith(".yaml"))
        self.assertGreaterEqual(len(names), 16)
        for name in names:
            text = self.text(name)
            with self.subTest(name):
                self.assertRegex(text, rf"\n#   pagedkv run {name}( -o \S+)? --set \S+=\S+")
                self.assertRegex(text, r"\ntitle: \S")
                question = re.search(r"^question: (.*)$", text, re.M).group(1)
                self.assertTrue(text.startswith(f"# Question  {question}\n"))

    def check_optimistic(self, summary):
        """The m who run need their (256 + g)th block each in step 16 (g - 1) + 1, and m of them fit
        while m (256 + g) is at most 8,192: 31 up to g = 8, 30 up to 17, 29 up to 26, 28 up to 36,
        27 up to 47, 26 up to 59, and 25 to the end. So the last of m goes at g = 1, 9, ..., 60.
        """
        events = [json.loads(line) for line in self.read("out", "events.jsonl").splitlines()]
        victims = [event for event in events if event["kind"] == "preempt"]
        self.assertEqual([event["step"] for event in victims], GIVEN_UP)
        self.assertEqual([event["id"] for event in victims], "31 30 29 28 27 26 25".split())
        for m, g, event in zip(range(32, 25, -1), (1, 9, 18, 27, 37, 48, 60), victims):
            held = 256 + g - 1                  # by each of the m before the step
            self.assertEqual(event["step"], 16 * (g - 1) + 1)
            # The free blocks go to the first ones in line; the next one lacks one.
            self.assertEqual(event["for"], str(8192 - m * held))
            self.assertEqual((event["freed_blocks"], event["lost_tokens"]),
                             (held, 4096 + event["step"] - 1))
        resumed = [event for event in events if event["kind"] == "resume"]
        self.assertEqual([(event["step"], event["id"]) for event in resumed],
                         [(1024, row) for row in "25 26 27 28 29 30 31".split()])
        self.assertEqual((summary["preemptions"], summary["steps"]), (7, 2047))
        # 32 prompts, 1,023 tokens more of each, and what is computed again: sum of 4,095 + T.
        self.assertEqual(7 * 4095 + sum(GIVEN_UP), 31760)
        self.assertEqual(32 * (4096 + 1023) + 31760, 195568)
        self.assertEqual((summary["tokens"]["scheduled"], summary["tokens"]["recomputed"]),
                         (195568, 31760))
        self.assertEqual(summary["tokens"]["output"], 32 * 1024)
        self.assertEqual((summary["peak"]["running"], summary["peak"]["waiting"],
                          summary["peak"]["used_blocks"]), (32, 7, 8192))

    def check_rows(self, rows, *wanted):
        """(step, running, waiting, used blocks) of some rows."""
        for step, *values in wanted:
            row = rows[step]
            self.assertEqual([int(row[key]) for key in ("step", "running", "waiting", "used_blocks")],
                             [step, *values])
            self.assertEqual(int(row["used_blocks"]) + int(row["free_blocks"]), 8192)

    def lives(self):
        """Of each request: steps of its first and last token, preemptions, tokens computed again,
        most blocks, longest gap in steps."""
        return [(int(row["first_token_ns"]) // NS_PER_STEP - 1,
                 int(row["finish_ns"]) // NS_PER_STEP - 1, int(row["preemptions"]),
                 int(row["recomputed_tokens"]), int(row["peak_blocks"]),
                 int(row["max_gap_ns"]) // NS_PER_STEP)
                for row in self.rows("out", "requests.csv")]

    def test_admission_32_vs_25(self):
        name = "admission_32_vs_25.yaml"
        optimistic = self.run_scenario(name)
        self.check_optimistic(optimistic)
        rows = self.rows("out", "steps.csv")
        self.assertEqual([int(r["step"]) for r in rows if r["preempted"] != "0"], GIVEN_UP)
        self.assertEqual([(r["step"], r["resumed"]) for r in rows if r["resumed"] != "0"],
                         [("1024", "7")])
        # Full at once; then the 31 that are left hold 257 each.
        self.check_rows(rows, (0, 32, 0, 32 * 256), (1, 31, 1, 7967), (128, 31, 1, 31 * 264),
                        (129, 30, 2, 30 * 265), (945, 25, 7, 25 * 316), (1023, 25, 7, 25 * 320))
        self.assertEqual((rows[1]["free_blocks"], rows[-1]["step"]), ("225", "2046"))
        # The one given up in step T has T tokens. The others come from step 1,024 on.
        self.assertEqual(self.lives(), [(0, 1023, 0, 0, 320, 1)] * 25 + [
            (0, 1024 + 1023 - t, 1, 4096 + t - 1, 320, 1024 - (t - 1)) for t in GIVEN_UP[::-1]])
        self.assertEqual(optimistic["latency_ms"]["max_gap"]["max"], 1024)
        reserve = self.run_scenario(name, "--set", "scheduler.admit=reserve_max")
        rows = self.rows("out", "steps.csv")
        # 5,119 positions are 320 blocks: 25 x 320 = 8,000 of 8,192.
        self.check_rows(rows, (0, 25, 7, 25 * 256), (1023, 25, 7, 8000), (1024, 7, 0, 7 * 256),
                        (2047, 7, 0, 7 * 320))
        self.assertEqual([(r["step"], r["admitted"]) for r in rows if r["admitted"] != "0"],
                         [("0", "25"), ("1024", "7")])
        self.assertEqual([(r["step"], r["finished"]) for r in rows if r["finished"] != "0"],
                         [("1023", "25"), ("2047", "7")])
        self.assertEqual(self.lives(), [(0, 1023, 0, 0, 320, 1)] * 25 +
                         [(1024, 2047, 0, 0, 320, 1)] * 7)
        self.assertEqual((reserve["preemptions"], reserve["tokens"]["recomputed"]), (0, 0))
        self.assertEqual((reserve["peak"]["used_blocks"], reserve["peak"]["waiting"]), (8000, 7))
        self.assertEqual(reserve["tokens"]["scheduled"], 32 * 5119)
        self.assertEqual(reserve["tokens"]["scheduled"], 163808)
        self.assertEqual(reserve["latency_ms"]["max_gap"]["max"], 1)
        self.assertEqual(rows[-1]["step"], "2047")
        self.say(name, "195,568", "31,760", "163,808", "1, 129, 273, 417, 577, 753, 945",
                 "step 2,046", "step 2,047")

    def test_six_blocks(self):
        name = "six_blocks.yaml"
        small = self.run_scenario(name)
        rows = self.rows("out", "steps.csv")
        self.assertEqual([r["step"] for r in rows if r["preempted"] != "0"], ["5"])
        self.assertEqual((rows[6]["resumed"], rows[6]["hit_tokens"], rows[6]["sched_tokens"]),
                         ("1", "16", "1"))
        self.assertEqual(small["tokens"]["recomputed"], 0)
        requests = {row["id"]: row for row in self.rows("out", "requests.csv")}
        self.assertEqual(requests["c"]["queue_ns"], "8000000")
        apart = self.run_scenario(name, "--set", "kv.prefix_cache=false")
        self.assertLess(max(int(r["running"]) for r in self.rows("out", "steps.csv")), 3)
        large = self.run_scenario(name, "--set", "kv.num_blocks=8")
        self.assertEqual([s["steps"] for s in (small, apart, large)], [12, 16, 9])
        self.assertEqual([s["preemptions"] for s in (small, apart)], [1, 0])
        self.say(name, "step 5", "16 computed tokens", "back in step 6", "computes 1 of 17",
                 "waits 8 steps; the run takes 12", "takes 16 steps", "it takes 9")

    def test_consumed_not_emitted(self):
        name = "consumed_not_emitted.yaml"
        fits = self.run_scenario(name)
        self.assertEqual((fits["steps"], fits["peak"]["used_blocks"], fits["tokens"]["scheduled"]),
                         (5, 4, 64))
        six = ("--set", "traffic.output_tokens=6")
        refused = self.run_scenario(name, *six)
        self.assertEqual((refused["requests"]["rejected"], refused["tokens"]["scheduled"]), (1, 0))
        reason = self.rows("out", "requests.csv")[0]["reason"]
        waits = self.run_scenario(name, *six, "--set", "scheduler.oversized=wait", status=3)
        self.assertEqual((waits["requests"]["unfinished"], waits["tokens"]["output"]), (1, 5))
        self.say(name, reason)

    def test_thrash_and_the_gate(self):
        name = "thrash_and_the_gate.yaml"
        gate = self.run_scenario(name)
        self.assertEqual(gate["preemptions"], 0)
        thrash = self.run_scenario(name, *GATE_OFF)
        cached = self.run_scenario(name, *GATE_OFF, "--set", "kv.prefix_cache=true")
        self.assertEqual(cached["preemptions"], 4)
        self.say(name, f"{thrash['preemptions']} preemptions",
                 f"{thrash['tokens']['recomputed'] / 1e6:.1f} million tokens computed again",
                 f"{gate['tokens']['scheduled'] / 1e6:.1f} million are needed",
                 f"done after {gate['makespan_ns'] / 1e9:.0f} s",
                 f"done after {thrash['makespan_ns'] / 1e9:.0f} s",
                 f"after {gate['latency_ms']['ttft']['mean'] / 1e3:.1f} s on average",
                 f"first tokens after {thrash['latency_ms']['ttft']['mean'] / 1e3:.0f} s",
                 f"4 preemptions, {cached['makespan_ns'] / 1e9:.0f} s")

    def test_sample(self):
        name = "sample.yaml"
        small = self.run_scenario(name)
        skip = self.run_scenario(name, "--set", "scheduler.on_blocked=skip")
        reserve = self.run_scenario(name, "--set", "scheduler.admit=reserve_max")
        large = self.run_scenario(name, "--set", "kv.num_blocks=3000")
        self.assertEqual((large["preemptions"], large["peak"]["waiting"]), (0, 0))
        self.assertEqual(reserve["preemptions"], 0)
        ttft = {key: run["latency_ms"]["ttft"] for key, run in
                (("small", small), ("skip", skip), ("reserve", reserve), ("large", large))}
        self.say(name, f"{100 * small['mean']['used_frac']:.0f} % on average",
                 f"there are {small['preemptions']} preemptions",
                 f"after {ttft['small']['mean'] / 1e3:.2f} s on average",
                 f"{small['tokens']['hit']:,} of {small['tokens']['queried']:,} prompt tokens",
                 f"first tokens after {ttft['large']['mean']:.0f} ms",
                 f"the average ({ttft['skip']['mean'] / 1e3:.2f} s)",
                 f"percentile {ttft['skip']['p99'] / 1e3:.1f} s instead of "
                 f"{ttft['small']['p99'] / 1e3:.1f} s",
                 f"wait longer ({ttft['reserve']['mean'] / 1e3:.2f} s)")

    def test_shared_system_prompt(self):
        name = "shared_system_prompt.yaml"
        cached = self.run_scenario(name)
        self.assertEqual((cached["preemptions"], cached["peak"]["waiting"]), (0, 0))
        plain = self.run_scenario(name, "--set", "kv.prefix_cache=false")
        hit_percent = 100 * cached["tokens"]["hit"] // cached["tokens"]["queried"]
        self.say(name, f"{hit_percent} % of the prompt tokens are found",
                 f"{cached['tokens']['scheduled'] / 1e6:.2f} million tokens are scheduled",
                 f"{plain['tokens']['scheduled'] / 1e6:.2f} million tokens are scheduled",
                 f"at most {cached['peak']['used_blocks']:,} of 3,000 blocks",
                 f"after {cached['latency_ms']['ttft']['mean']:.0f} ms on average",
                 f"{plain['preemptions']} preemptions",
                 f"up to {plain['peak']['waiting']} waiting",
                 f"first tokens after {plain['latency_ms']['ttft']['mean'] / 1e3:.1f} s")

    def test_paging_vs_reservation(self):
        name = "paging_vs_reservation.yaml"
        paged = self.run_scenario(name)
        tokens = paged["tokens"]
        self.assertEqual((round(tokens["prompt"] / 1000), round(tokens["output"] / 1000)),
                         (161, 338))
        used, held = paged["mean"]["slot_use_frac"], paged["mean"]["used_frac"]
        rows = {"vllm": f"{100 * used:.1f} - - - {paged['mean']['running']:.1f} 96.3 30.4"}
        rates, outside = [], []
        for preset, paper in (("orca-max", "20.4 7.0"), ("orca-pow2", "26.8 9.8"),
                              ("orca-oracle", "38.2 13.6")):
            run = self.run_scenario(name, "--set", "scheduler.preset=" + preset)
            mean, waste = run["mean"], run["waste"]
            shares = (mean["slot_use_frac"], *waste.values())
            self.assertEqual(run["preemptions"], 0)
            self.assertLess(sum(shares), 1)
            # What is held is all of used, reserved and never used.
            self.assertAlmostEqual(sum(shares[:3]), mean["used_frac"], places=6)
            rows[preset] = " ".join(f"{100 * share:.1f}" for share in shares)
            rows[preset] += f" {mean['running']:.1f} {paper}"
            rates.append(f"{run['throughput']['requests_per_s']:.2f}")
            outside.append(f"{100 * (shares[2] + shares[3]):.1f}")
        self.say_rows(name, rows)
        again = self.run_scenario(name, "--set", "scheduler.watermark=0.05")
        self.say(name, f"{100 * used / held:.1f} % of what it holds is used",
                 f"serves {paged['throughput']['requests_per_s']:.2f} requests a second, the three "
                 f"{rates[0]}, {rates[1]} and {rates[2]}.",
                 f"{paged['preemptions']:,} preemptions, "
                 f"{100 * tokens['recomputed'] / tokens['scheduled']:.1f} % of its tokens",
                 f"leaves {again['preemptions']} preemptions and "
                 f"{again['throughput']['requests_per_s']:.2f} requests a second",
                 f"are {outside[0]}, {outside[1]} and {outside[2]} % here")

    def queue_s(self, rows):
        waits = [int(row["admitted_ns"]) - int(row["arrival_ns"]) for row in rows]
        return sum(waits) / len(waits) / 1e9

    def test_starvation_under_lpm(self):
        name = "starvation_under_lpm.yaml"
        waits, alone, means, found = {}, {}, set(), set()
        for key, value in (("order", "fcfs"), *(("aging_tokens", n) for n in (0, 1, 4, 16))):
            run = self.run_scenario(name, "--set", f"scheduler.{key}={value}")
            rows = self.rows("out", "requests.csv")
            # The first of the others has nothing to find yet.
            alone[value] = [r for r in rows if r["hit_tokens"] == "0" and r["id"] != "0"]
            sharing = [r for r in rows if r not in alone[value]]
            waits[value] = (self.queue_s(alone[value]), self.queue_s(sharing))
            means.add(f"{self.queue_s(rows):.2f}")
            found.add(run["tokens"]["hit"])
            if value == 0:
                longest = run["latency_ms"]["queue"]["max"] / 1e3
                share = 1e11 * longest / run["makespan_ns"]
        self.assertEqual({len(rows) for rows in alone.values()}, {48})
        self.assertEqual((len(means), len(found)), (1, 1))
        # While those with a hit wait nobody else starts, but for those who came before they had to.
        first = min(alone[0], key=lambda r: int(r["arrival_ns"]))
        self.assertEqual(first["id"], "22")
        last_arrival = max(int(r["arrival_ns"]) for r in self.rows("out", "requests.csv"))
        self.assertTrue(all(int(r["admitted_ns"]) > last_arrival for r in alone[0]))
        text = lambda value: f"{waits[value][0]:.1f} s and {waits[value][1]:.1f} s"
        self.say(name, f"request 22, waits {longest:.1f} s for a place, {share:.0f} % of the run",
                 f"the 48 wait {waits[0][0]:.1f} s on average, the others {waits[0][1]:.1f} s.",
                 f"aging_tokens 1: {text(1)}; 4: {text(4)}; 16: {text(16)},",
                 f"first served gives ({text('fcfs')})", f"average wait is {means.pop()} s")
        shown = self.call("run", os.path.join(self.scenarios, name))
        self.assertRegex(shown.stdout, r"(?m)^starving +request 22: waited 33\.33 s")

    def test_priority(self):
        name = "priority.yaml"
        summary = self.run_scenario(name)
        urgent, others = self.waits_ms("0"), self.waits_ms("1")
        self.assertEqual(self.preemptions("0"), 0)
        self.say(name, f"the {len(urgent)} urgent", f"after {mean_ms(urgent):.0f} ms on average",
                 f"({max(urgent) / 1e6:.0f} ms at most)", f"the other {len(others):,} wait",
                 f"wait {mean_ms(others) / 1e3:.2f} s", f"all {summary['preemptions']} preemptions")
        self.run_scenario(name, "--set", "scheduler.policy=fcfs")
        urgent, others = self.waits_ms("0"), self.waits_ms("1")
        self.say(name, f"urgent ones wait {mean_ms(urgent) / 1e3:.2f} s",
                 f"({max(urgent) / 1e9:.1f} s at most)",
                 f"preempted {self.preemptions('0')} times",
                 f"the others wait {mean_ms(others) / 1e3:.2f} s")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ScenarioCase.scenarios = os.path.join(os.path.abspath(sys.argv.pop(2)), "scenarios")
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
