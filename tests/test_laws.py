#!/usr/bin/env python3
"""Synthetic traffic as `pagedkv gen` writes it: each law number by number against a second program
(laws_reference.py), on a machine with FMA and as on one without; a replay of what was written gives
what a run gives, byte for byte; and no law shifts another.

usage: test_laws.py PROGRAM
"""
import json
import os
import sys

import laws_reference as laws
import tap
from program import ProgramCase

NUM = 3000
SEED = 11
NS = 10 ** 9
NO_FMA = "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX512F,-AVX512VL"

ARRIVALS = {
    "constant": ("rate_per_s: 7", {"rate": 7}),
    "poisson": ("rate_per_s: 40", {"rate": 40}),
    "gamma": ("rate_per_s: 40, cv: 3", {"rate": 40, "cv": 3.0}),
    "weibull": ("rate_per_s: 40, cv: 0.4", {"rate": 40, "cv": 0.4}),
    "bursts": ("rate_per_s: 40, on: 500ms, off: 2s", {"rate": 40, "on": NS // 2, "off": 2 * NS}),
    "diurnal": ("rate_per_s: 40, period: 20s, amplitude: 0.8",
                {"rate": 40, "period": 20 * NS, "amplitude": 0.8}),
    "spike": ("rate_per_s: 40, at: 10s, for: 5s, factor: 6",
              {"rate": 40, "at": 10 * NS, "lasts": 5 * NS, "factor": 6.0}),
}
LENGTHS = {
    "uniform": ("min: 3, max: 50", {"low": 3, "high": 50}),
    "lognormal": ("mean: 161, cv: 1.2, max: 900", {"mean": 161.0, "cv": 1.2, "high": 900}),
    "gamma": ("mean: 90, cv: 1.5", {"mean": 90.0, "cv": 1.5}),
    "zipf": ("exponent: 1.3, min: 10, max: 700", {"exponent": 1.3, "low": 10, "high": 700}),
    "pareto_lognormal": (
        "mean: 60, cv: 1, tail_share: 0.1, tail_alpha: 1.5, tail_min: 200, max: 3000",
        {"mean": 60.0, "cv": 1.0, "tail_share": 0.1, "tail_alpha": 1.5, "tail_min": 200,
         "high": 3000}),
}
NUMBERS = {
    "uniform": ("min: 1, max: 4", {"low": 1.0, "high": 4.0}),
    "exponential": ("mean: 2", {"mean": 2.0}),
    "lognormal": ("mean: 2, cv: 0.7", {"mean": 2.0, "cv": 0.7}),
    "gamma": ("mean: 2, cv: 0.5, max: 3", {"mean": 2.0, "cv": 0.5, "high": 3.0}),
    "weibull": ("mean: 2, cv: 2.5", {"mean": 2.0, "cv": 2.5}),
}
# What a run is made of beside the law at hand.
OTHERS = {
    "arrivals": "{law: poisson, rate_per_s: 40}",
    "prompt_tokens": "{law: lognormal, mean: 120, cv: 1}",
    "output_tokens": "{law: uniform, min: 1, max: 40}",
}
WHOLE = {
    "closed_loop": {"arrivals": "{law: closed_loop, concurrency: 8, delay: 3ms}"},
    "tree": {"prefixes": "{num: 5, depth: 3, zipf: 1.1, share: 0.8, tokens: 30}"},
    "tenants": {"tenants": "[{name: gold, weight: 1, priority: -2}, {name: 'bl\\u00fcck'}]",
                "priorities": "[0, {priority: 4, weight: 2}]"},
    "aborts": {"aborts": "{share: 0.3, after_ms: {law: weibull, mean: 300, cv: 2}}"},
    "agents": {"sessions": "{turns: {law: zipf, exponent: 1, min: 1, max: 20}, turn_tokens: {law: "
                           "gamma, mean: 40, cv: 1}, delay_ms: {law: lognormal, mean: 400, cv: 1.5}, "
                           "max_context_tokens: 1500}",
               "prefixes": "{num: 2, tokens: 200}",
               "aborts": "{share: 0.1, after_ms: {law: exponential, mean: 200}}"},
    "some_talk": {"sessions": "{share: 0.3, turns: 4, turn_tokens: 20}"},
}
FILES = ("steps.csv", "requests.csv", "events.jsonl")
POOL = ("--num-blocks", "300")


class LawsCase(ProgramCase):
    def scenario(self, num=NUM, **traffic):
        keys = {**OTHERS, **traffic}
        self.write("scenario.yaml", "kv: {num_blocks: 300}\ntraffic:\n" +
                   f"  requests: {num}\n  seed: {SEED}\n" +
                   "".join(f"  {key}: {value}\n" for key, value in keys.items()))

    def gen(self, name="made.jsonl", env=None, **traffic):
        self.scenario(**traffic)
        self.done("gen", "scenario.yaml", "-q", "-o", name, **({"env": env} if env else {}))
        return [json.loads(line) for line in self.read(name).decode().splitlines()]


class Reference(LawsCase):
    def test_arrivals(self):
        for law, (text, told) in ARRIVALS.items():
            with self.subTest(law):
                rows = self.gen(arrivals=f"{{law: {law}, {text}}}")
                times = [round(row["timestamp"] * 10 ** 6) for row in rows]
                self.assertEqual(times, laws.arrivals(law, SEED, num=NUM, **told))

    def test_lengths(self):
        for law, (text, told) in LENGTHS.items():
            with self.subTest(law):
                rows = self.gen(prompt_tokens=f"{{law: {law}, {text}}}")
                draw = laws.length(law, laws.Stream(SEED, "prompt tokens"), **told)
                self.assertEqual([row["input_length"] for row in rows], [draw() for _ in rows])

    def test_max_tokens(self):
        for law, (text, told) in NUMBERS.items():
            with self.subTest(law):
                rows = self.gen(max_tokens_ratio=f"{{law: {law}, {text}}}")
                draw = laws.number(law, laws.Stream(SEED, "max tokens"), **told)
                for row in rows:
                    output = row["output_length"]
                    self.assertEqual(row.get("max_tokens", output),
                                     max(output, int(draw() * output + 0.5)))

    def test_delays_and_aborts(self):
        rows = self.gen(sessions="{turns: 3, turn_tokens: 5, delay_ms: {law: gamma, mean: 700, cv: 2}}",
                        aborts="{share: 1, after_ms: {law: exponential, mean: 250}}")
        delay = laws.number("gamma", laws.Stream(SEED, "turn delay"), 700.0, 2.0)
        after = laws.number("exponential", laws.Stream(SEED, "abort after"), 250.0)
        for i, row in enumerate(rows):
            abort = int(after() * 1e6 + 0.5)
            if i % 3 == 0:
                self.assertNotIn("delay_ms", row)
                abort += round(row["timestamp"] * 10 ** 6)
            else:
                self.assertEqual(round(row["delay_ms"] * 10 ** 6), int(delay() * 1e6 + 0.5))
            self.assertEqual(round(row["abort_ms"] * 10 ** 6), abort)

    def test_tree(self):
        """Level by level: the child by Zipf, its number behind all numbers of the levels above."""
        rows = self.gen(prefixes="{num: 5, depth: 3, zipf: 1.1, tokens: {law: uniform, min: 2, max: 9}}",
                        prompt_tokens="100")
        pick, zipf = laws.Stream(SEED, "prefix pick"), laws.Zipf(1.1, 1, 5)
        tokens = laws.length("uniform", laws.Stream(SEED, "prefix tokens"), low=2, high=9)
        lengths = [tokens() for _ in range(5 + 25 + 125)]
        for row in rows:
            place, above, want = 0, 0, []
            for level in (5, 25, 125):
                place = place * 5 + zipf.draw(pick) - 1
                want.append([f"prefix {above + place}", lengths[above + place]])
                above += level
            rest = 100 - sum(count for _, count in want)
            self.assertEqual(row["prompt"], want + [[None, rest]])

    def test_joint_lengths(self):
        pairs = [(10, 1), (20, 2), (30, 3), (40, 0)]
        self.write("pairs.jsonl", "".join(json.dumps(
            {"timestamp": 0, "input_length": a, "output_length": b}) + "\n" for a, b in pairs))
        rows = self.gen(prompt_tokens="{law: empirical, trace: pairs.jsonl}",
                        output_tokens="{law: joint}")
        drawn = [(row["input_length"], row["output_length"]) for row in rows]
        self.assertEqual(set(drawn), set(pairs))
        for pair in pairs:      # expected 750, deviation 24
            self.assertLess(abs(drawn.count(pair) - NUM // 4), 120)


class Machines(LawsCase):
    def test_without_fma(self):
        env = dict(os.environ, GLIBC_TUNABLES=NO_FMA)
        wanted = [{"arrivals": f"{{law: {law}, {text}}}"} for law, (text, _) in ARRIVALS.items()]
        wanted += [{"prompt_tokens": f"{{law: {law}, {text}}}"} for law, (text, _) in LENGTHS.items()]
        wanted += [{"max_tokens_ratio": f"{{law: {law}, {text}}}"} for law, (text, _) in NUMBERS.items()]
        for traffic in wanted + list(WHOLE.values()):
            with self.subTest(str(traffic)):
                self.gen("with.jsonl", **traffic)
                self.gen("without.jsonl", env=env, **traffic)
                self.assertEqual(self.read("with.jsonl"), self.read("without.jsonl"))


class Streams(LawsCase):
    def test_lengths_leave_arrivals_alone(self):
        for law, (text, _) in ARRIVALS.items():
            arrivals = f"{{law: {law}, {text}}}"
            times = [row["timestamp"] for row in self.gen(arrivals=arrivals)]
            for length, (words, _) in LENGTHS.items():
                rows = self.gen(arrivals=arrivals, prompt_tokens=f"{{law: {length}, {words}}}",
                                output_tokens=f"{{law: {length}, {words}}}")
                self.assertEqual([row["timestamp"] for row in rows], times, (law, length))


class Replay(LawsCase):
    def same(self, **traffic):
        self.scenario(num=600, **traffic)
        self.done("run", "scenario.yaml", "-q", "-o", "run")
        self.done("gen", "scenario.yaml", "-q", "-o", "made.jsonl")
        self.done("replay", "made.jsonl", *POOL, "-q", "-o", "replay")
        for name in FILES:
            self.assertEqual(self.read("run", name), self.read("replay", name), name)

    def test_every_law(self):
        for law, (text, _) in ARRIVALS.items():
            self.same(arrivals=f"{{law: {law}, {text}}}")
        for law, (text, _) in LENGTHS.items():
            self.same(prompt_tokens=f"{{law: {law}, {text}}}",
                      output_tokens=f"{{law: {law}, {text}}}")
        for law, (text, _) in NUMBERS.items():
            self.same(max_tokens_ratio=f"{{law: {law}, {text}}}")
        self.same(arrivals="{law: at_once}", prompt_tokens="50", output_tokens="9")

    def test_every_kind_of_traffic(self):
        for name, traffic in WHOLE.items():
            with self.subTest(name):
                self.same(**traffic)

    def test_samples(self):
        """Each with a length of its own; of all formats the native one alone has room for them."""
        self.same(samples="3")
        rows = [json.loads(line) for line in self.read("made.jsonl").decode().splitlines()]
        self.assertEqual({(row["n"], len(row["output_length"])) for row in rows}, {(3, 3)})
        told = self.done("trace", "convert", "made.jsonl", "--to", "mooncake", "-o", "cut.jsonl")
        self.assertRegex(told.stdout + told.stderr, r"600 +.*several answers a row")
        rows = [json.loads(line) for line in self.read("cut.jsonl").decode().splitlines()]
        self.assertNotIn("n", rows[0])
        self.assertIsInstance(rows[0]["output_length"], int)


class ClosedLoop(LawsCase):
    def test_as_many_as_asked_for_until_the_end(self):
        """64 are in flight in every step, until fewer than 64 are left to end."""
        self.scenario(num=2000, arrivals="{law: closed_loop, concurrency: 64}")
        self.done("run", "scenario.yaml", "-q", "-o", "out", "--set", "kv.num_blocks=2000")
        ended = 0
        for row in self.rows("out", "steps.csv"):
            self.assertEqual(int(row["waiting"]) + int(row["running"]), min(64, 2000 - ended))
            ended += int(row["finished"])
        self.assertEqual(ended, 2000)


class LoopOfTalks(LawsCase):
    """Users who hold one conversation to its end and then begin the next."""
    USERS, DELAY = 12, 7 * 10 ** 6

    def setUp(self):
        super().setUp()
        self.scenario(num=900, arrivals=f"{{law: closed_loop, concurrency: {self.USERS}, delay: 7ms}}",
                      sessions="{share: 0.8, turns: {law: uniform, min: 1, max: 6}, turn_tokens: {law: "
                               "uniform, min: 1, max: 30}, delay_ms: {law: exponential, mean: 60}}",
                      aborts="{share: 0.05, after_ms: {law: exponential, mean: 200}}")
        self.done("gen", "scenario.yaml", "-q", "-o", "made.jsonl")
        self.asked = [json.loads(line) for line in self.read("made.jsonl").decode().splitlines()]

    def test_each_begins_when_another_is_over(self):
        self.done("run", "scenario.yaml", "-q", "-o", "out", "--check")
        came = {int(row["id"]): row for row in self.rows("out", "requests.csv")}
        self.assertEqual(len(came), 900)
        talks = {}
        for row, asked in enumerate(self.asked):
            talks.setdefault(asked["session"], []).append(row)
        begins, ends = [], []
        for rows in talks.values():
            self.assertTrue(self.asked[rows[-1]]["last"])
            for former, row in zip(rows, rows[1:]):
                delay = round(self.asked[row]["delay_ms"] * 10 ** 6)
                self.assertEqual(int(came[row]["arrival_ns"]), int(came[former]["finish_ns"]) + delay)
            begins.append(int(came[rows[0]]["arrival_ns"]))
            ends.append(int(came[rows[-1]]["finish_ns"]))
        # In the order of the rows: the first of each user at once, then one for each that is over.
        self.assertGreater(len(begins), 200)
        self.assertEqual(begins, [0] * self.USERS +
                         [end + self.DELAY for end in sorted(ends)[:len(ends) - self.USERS]])
        told = self.summary("out")["sessions"]
        self.assertEqual(told["turns"], 900 - len(talks))

    def test_a_trace_of_it(self):
        self.done("run", "scenario.yaml", "-q", "-o", "run")
        self.done("replay", "made.jsonl", *POOL, "-q", "-o", "replay")
        for name in FILES:
            self.assertEqual(self.read("run", name), self.read("replay", name), name)
        self.done("trace", "convert", "made.jsonl", "--to", "native", "-o", "same.jsonl")
        self.assertEqual(self.read("same.jsonl"), self.read("made.jsonl"))
        told = self.done("trace", "convert", "made.jsonl", "--to", "dynamo", "-o", "cut.jsonl")
        left_out = sum("delay_ms" in row for row in self.asked)
        self.assertRegex(told.stdout + told.stderr, rf"{left_out} rows: left out; they come after another")

    def test_a_loop_needs_a_session(self):
        self.write("bad.jsonl", '{"timestamp": 0, "input_length": 1, "output_length": 1, "loop": "l"}\n')
        result = self.call("replay", "bad.jsonl", "--num-blocks", "9")
        self.assertEqual(result.returncode, 2)
        self.assertIn("bad.jsonl:1:", result.stderr)
        self.assertIn("needs a session", result.stderr)


class Sessions(LawsCase):
    def test_a_chat_keeps_its_state_or_not(self):
        """Turns of 16 tokens prompt and 17 output: 32 of 33 are stored, and 32 are whole blocks. With
        room each turn finds all but the last token of what was said before, in whole blocks; in a pool
        with room for little more than one turn it finds less."""
        keys = {"arrivals": "{law: constant, rate_per_s: 5}", "prompt_tokens": "16",
                "output_tokens": "17",
                "sessions": "{turns: 4, turn_tokens: 15, delay_ms: 3000}"}
        self.scenario(num=400, **keys)
        for blocks, kept in ((2000, True), (12, False)):
            self.done("run", "scenario.yaml", "-q", "-o", "out", "--set", f"kv.num_blocks={blocks}")
            told = self.summary("out")["sessions"]
            self.assertEqual(told["turns"], 300)
            # 33, 33 + 32 = 65 and 97 tokens were said before; 32, 64 and 96 of them are stored.
            self.assertEqual(told["former_tokens"], 100 * (33 + 65 + 97))
            if kept:
                self.assertEqual(told["retained_tokens"], 100 * (32 + 64 + 96))
            else:
                self.assertLess(told["retained_tokens"], 100 * (32 + 64 + 96) // 2)
        arrived = [json.loads(line) for line in self.read("out", "events.jsonl").decode().splitlines()
                   if '"arrive"' in line]
        self.assertEqual(sum("retained_tokens" in event for event in arrived), 300)


class WrongUse(LawsCase):
    def refused(self, words, **traffic):
        self.scenario(**traffic)
        result = self.call("gen", "scenario.yaml", "-o", "made.jsonl")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(words, result.stderr)
        self.assertFalse(os.path.exists(self.path("made.jsonl")))

    def test_what_is_impossible(self):
        self.refused("traffic.arrivals.cv is missing", arrivals="{law: gamma, rate_per_s: 1}")
        self.refused("traffic.arrivals.cv: has no meaning while traffic.arrivals.law is poisson",
                     arrivals="{law: poisson, rate_per_s: 1, cv: 2}")
        for several in ({"sessions": "{share: 1, turns: 2, turn_tokens: 4}"},
                        {"arrivals": "{law: closed_loop, concurrency: 2}"}):
            self.refused("several answers in a session are impossible", samples="2", **several)
        self.refused("a joint output length is impossible", output_tokens="{law: joint}")
        self.refused("a tenant has a name", tenants="[{weight: 2}]")
        self.refused("are more than 1048576 texts", prefixes="{num: 100, depth: 4, tokens: 3}")
        self.refused("traffic.sessions.delay_ms: max 1 is below min 5", sessions="{turns: 2, turn_tokens: "
                     "1, delay_ms: {law: uniform, min: 5, max: 1}}")

    def test_a_trace_is_no_law(self):
        self.write("t.jsonl", '{"timestamp": 0, "input_length": 1, "output_length": 1}\n')
        self.write("scenario.yaml", "kv: {num_blocks: 9}\ntraffic: {trace: t.jsonl}\n")
        result = self.call("gen", "scenario.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertIn("is a trace already", result.stderr)


if __name__ == "__main__":
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
