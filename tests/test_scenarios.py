#!/usr/bin/env python3
"""The scenarios that come with the program: each says its question, its finding and how to run the
other side, and the finding's numbers are what the runs give.

usage: test_scenarios.py PROGRAM SOURCE_ROOT
"""
import os
import re
import sys

import tap
from program import ProgramCase

SCENARIOS = ""

GATE_OFF = ("--set", "scheduler.reserve_full_isl=false")


def mean_ms(values):
    return sum(values) / len(values) / 1e6


class Scenarios(ProgramCase):
    def run_scenario(self, name, *args, status=0):
        result = self.call("run", os.path.join(SCENARIOS, name), "-o", "out", "--quiet", *args)
        self.assertEqual(result.returncode, status, result.stderr)
        return self.summary("out")

    def say(self, name, *phrases):
        """The head of the scenario says these numbers."""
        with open(os.path.join(SCENARIOS, name), encoding="utf-8") as file:
            head = re.sub(r"\s*\n# *", " ", file.read())
        for phrase in phrases:
            self.assertIn(phrase, head)

    def waits_ms(self, priority):
        return [int(row["first_token_ns"]) - int(row["arrival_ns"])
                for row in self.rows("out", "requests.csv") if row["priority"] == priority]

    def preemptions(self, priority):
        return sum(int(row["preemptions"])
                   for row in self.rows("out", "requests.csv") if row["priority"] == priority)

    def test_each_has_its_question_finding_and_other_side(self):
        names = sorted(name for name in os.listdir(SCENARIOS) if name.endswith(".yaml"))
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            with open(os.path.join(SCENARIOS, name), encoding="utf-8") as file:
                text = file.read()
            with self.subTest(name):
                self.assertTrue(text.startswith("# Question  "))
                self.assertIn("\n# Finding   ", text)
                self.assertRegex(text, rf"\n#   pagedkv run {name} --set \S+=\S+")
                self.assertRegex(text, r"\ntitle: \S")
                question = re.search(r"^question: (.*)$", text, re.M).group(1)
                self.assertTrue(text.startswith(f"# Question  {question}\n"))

    def test_admission_32_vs_25(self):
        name = "admission_32_vs_25.yaml"
        optimistic = self.run_scenario(name)
        rows = self.rows("out", "steps.csv")
        self.assertEqual([int(r["step"]) for r in rows if r["preempted"] != "0"],
                         [1, 129, 273, 417, 577, 753, 945])
        self.assertEqual(rows[0]["running"], "32")
        self.assertEqual(optimistic["tokens"]["scheduled"], 195568)
        self.assertEqual(optimistic["tokens"]["recomputed"], 31760)
        self.assertEqual(optimistic["latency_ms"]["max_gap"]["max"], 1024)
        self.assertEqual(rows[-1]["step"], "2046")
        reserve = self.run_scenario(name, "--set", "scheduler.admit=reserve_max")
        rows = self.rows("out", "steps.csv")
        self.assertEqual((rows[0]["running"], rows[0]["waiting"]), ("25", "7"))
        self.assertEqual(reserve["tokens"]["scheduled"], 163808)
        self.assertEqual(reserve["latency_ms"]["max_gap"]["max"], 1)
        self.assertEqual(rows[-1]["step"], "2047")
        self.say(name, "195,568", "31,760", "163,808", "1, 129, 273, 417, 577, 753, 945",
                 "step 2,046", "step 2,047")

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
        with open(os.path.join(SCENARIOS, name), encoding="utf-8") as file:
            table = {line.split()[1]: " ".join(line.split()[2:]) for line in file
                     if re.match(r"#           (orca-|vllm )", line)}
        self.assertEqual(table, rows)
        again = self.run_scenario(name, "--set", "scheduler.watermark=0.05")
        self.say(name, f"{100 * used / held:.1f} % of what it holds is used",
                 f"serves {paged['throughput']['requests_per_s']:.2f} requests a second, the three "
                 f"{rates[0]}, {rates[1]} and {rates[2]}.",
                 f"{paged['preemptions']:,} preemptions, "
                 f"{100 * tokens['recomputed'] / tokens['scheduled']:.1f} % of its tokens",
                 f"leaves {again['preemptions']} preemptions and "
                 f"{again['throughput']['requests_per_s']:.2f} requests a second",
                 f"are {outside[0]}, {outside[1]} and {outside[2]} % here")

    def test_drafts_under_pressure(self):
        name = "drafts_under_pressure.yaml"
        rows = []
        for drafts in ("none", 1, 4, 8, 16, 32):
            change = (("--set", "speculation.method=none") if drafts == "none" else
                      ("--set", f"speculation.num_tokens={drafts}"))
            run = self.run_scenario(name, *change)
            made = run.get("speculation", {"emitted": 1, "verifications": 1})
            self.assertEqual("speculation" in run, drafts != "none")
            if drafts != "none":   # 1 - 0.7^(k+1) over 0.3, but for what the ends cut off
                expected = (1 - 0.7 ** (drafts + 1)) / 0.3
                self.assertAlmostEqual(made["emitted"] / made["verifications"], expected, delta=0.07)
                self.assertEqual(made["drafted"], drafts * made["verifications"])
            rows.append(f"{drafts} {made['emitted'] / made['verifications']:.2f} "
                        f"{run['mean']['running']:.1f} {run['preemptions']} "
                        f"{run['makespan_ns'] / 1e9:.2f}")
        with open(os.path.join(SCENARIOS, name), encoding="utf-8") as file:
            table = [" ".join(line.split()[1:6]) for line in file
                     if re.match(r"# {10,}(none|\d+) +\d\.\d\d ", line)]
        self.assertEqual(table, rows)
        ngram = self.run_scenario(name, "--set", "speculation.method=ngram",
                                  "--set", "speculation.num_tokens=16")
        self.say(name, f"16 of them are done after {ngram['makespan_ns'] / 1e9:.2f} s")

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
    SCENARIOS = os.path.join(os.path.abspath(sys.argv.pop(2)), "scenarios")
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
