#!/usr/bin/env python3
"""The scenarios for teaching: what their findings say is what the runs give, and the main effect of each
is worked out here on paper beside it.

usage: test_lessons.py PROGRAM SOURCE_ROOT
"""
import json
import os
import re
import shutil
import subprocess
import sys

import tap
from program import ProgramCase
from scenario_case import ScenarioCase


def sets(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def percent(frac):
    return f"{100 * frac:.1f} %"


def seconds(ms, decimals=2):
    return f"{ms / 1e3:.{decimals}f} s"


def as_shown(ms):
    """As the program shows a time of at least 1 ms."""
    if ms < 999.95:
        return f"{ms:.1f} ms"
    return seconds(ms) if ms < 59995 else f"{round(ms / 1e3) // 60} min {round(ms / 1e3) % 60} s"


def as_rate(rate):
    """With the four digits that the program shows."""
    return f"{rate:#.4g}"


def recomputed(run):
    return run["tokens"]["recomputed"] / run["tokens"]["scheduled"]


def first_token_ms(row):
    return (int(row["first_token_ns"]) - int(row["arrival_ns"])) / 1e6


def tokens_of(row):
    return int(row["prompt_tokens"]) + int(row["output_tokens"])


def mean(values):
    values = list(values)
    return sum(values) / len(values)


class Lessons(ScenarioCase):
    maxDiff = None

    def requests(self):
        return self.rows("out", "requests.csv")

    def queue_is_gone_s(self):
        """When the last step begins that leaves somebody waiting."""
        return max(int(row["time_ns"]) for row in self.rows("out", "steps.csv")
                   if row["waiting"] != "0") / 1e9

    def files(self):
        return sorted(name for name in os.listdir(self.scenarios) if name.endswith(".yaml"))

    def shell(self, line):
        """As a student would paste it, in a copy of the folder."""
        quiet = " -q" if re.match(r"pagedkv (run|compare) (?!.*--step)", line) else ""
        path = os.path.dirname(self.program) + os.pathsep + os.environ["PATH"]
        result = subprocess.run(["/bin/sh", "-c", line + quiet], cwd=self.path("scenarios"),
                                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=self.timeout, check=False, env={**os.environ, "PATH": path})
        # A thrashing engine may say that it is stuck.
        self.assertIn(result.returncode, (0, 3) if "run " in line else (0,), result.stderr)
        return result.stdout

    def test_commands_of_the_heads(self):
        """Each command line of a head works when all are pasted one after the other, and what lines for
        single figures print stands in the finding."""
        shutil.copytree(self.scenarios, self.path("scenarios"),
                        ignore=shutil.ignore_patterns("out"))
        for name in self.files():
            text = re.sub(r" \\\n# +", " ", self.text(name))   # a line may go on
            lines = re.findall(r"^#   ((?:pagedkv|awk|for|grep) .*)$", text, re.M)
            told = self.parts(name)[1].replace(",", "")
            numbers = re.findall(r"\d+(?:\.\d+)?", told)
            for line in lines:
                with self.subTest(line):
                    words = line.split()
                    if words[:2] in (["pagedkv", "run"], ["pagedkv", "compare"]):
                        self.assertEqual(words[2], name)
                    shown = self.shell(line)
                    if words[1] == "explain":
                        wait = re.search(r"waited ([\d.]+) s to be admitted", shown).group(1)
                        self.assertIn(wait, numbers)
                    elif words[0] != "pagedkv":
                        self.assertTrue(shown)
                        self.assert_told(re.findall(r"(?<![\w.])\d+(?:\.\d+)?", shown), numbers)
                        for name_shown in re.findall(r"\b[a-z]+\d+\b", shown):
                            self.assertIn(name_shown, told)
            if "\nvary:" in self.text(name):
                self.assertIn(f"pagedkv compare {name}", lines)

    def assert_told(self, printed, numbers):
        """Each of the numbers that were printed is told, perhaps with fewer digits, or in s for ms."""
        for number in printed:
            told = any(abs(float(number) / unit - float(n)) <= 0.5001 * 10 ** -len(n.partition(".")[2])
                       for n in numbers for unit in (1, 1000) if float(n) > 0 or float(number) == 0)
            self.assertTrue(told or float(number) == 0, f"{number} is not told")

    def test_shape(self):
        """A question, what to predict, what to type, the scenario; and the finding behind it all."""
        for name in self.files():
            text = self.text(name)
            with self.subTest(name):
                places = [text.index(mark) for mark in (
                    "# Question  ", "\n#\n# Predict   ", "\n#\n# Commands\n#   pagedkv ", "\ntitle: ",
                    "\ntraffic: " if "\ntraffic: " in text else "\ntraffic:\n", "\n\n# Finding   ")]
                self.assertEqual(places, sorted(places))
                shown, finding = text[:places[-1]], text[places[-1]:]
                self.assertNotIn("Finding", shown)
                self.assertRegex(finding, r"\A\n(\n#.*)+\n\Z")
                predict = text[places[1]:places[2]]
                self.assertIn("?", predict)
                self.assertRegex(shown, rf"\n#   pagedkv (run|compare) {name}( -o out/\w+| --step)?\n")

    def test_units(self):
        """Where every step takes the same time the program shows latencies in steps, so a finding does
        not speak of seconds."""
        fixed = [name for name in self.files()
                 if re.search(r"\nstep_time: *(\{model: )?fixed", self.text(name))]
        self.assertIn("six_blocks.yaml", fixed)
        for name in fixed:
            self.assertNotRegex(self.parts(name)[1], r"\d (ms|s)\b", name)

    def test_course(self):
        """The README's course has every scenario and takes one hour, one and a half, or two; its numbers
        are of the scenarios."""
        with open(os.path.join(self.scenarios, os.pardir, "README.md"), encoding="utf-8") as file:
            course = file.read().split("\n## For the one who teaches\n")[1].split("\n## ")[0]
        lessons = re.findall(r"^\| (\d+) \| `(\w+)` \| (.*)$", course, re.M)
        self.assertEqual(sorted(name + ".yaml" for _, name, _ in lessons), self.files())
        minutes = [int(lesson[0]) for lesson in lessons]
        self.assertEqual((sum(minutes[:9]), sum(minutes[:13]), sum(minutes[:18])), (60, 90, 120))
        number_of = re.compile(r"\d[\d.]*\d|\d")
        for _, name, said in lessons:
            self.assertEqual(said.count(" | "), 3)
            known = number_of.findall(self.text(name + ".yaml").replace(",", ""))
            for number in number_of.findall(said.replace(",", "")):
                with self.subTest(name, number=number):
                    self.assertIn(number, known)

    def test_cached_state(self):
        name = "cached_state.yaml"
        # P + O - 1 positions less the hit; found are whole blocks of all but the last prompt token.
        found = [0, (1024 - 1) // 16 * 16, (1025 - 1) // 16 * 16]
        computed = [p + 100 - 1 - hit for p, hit in zip((1024, 1024, 1025), found)]
        self.assertEqual(computed, [1123, 115, 100])
        run = self.run_scenario(name)
        self.assertEqual(run["tokens"]["scheduled"], sum(computed))
        rows = self.requests()
        self.assertEqual([int(row["hit_tokens"]) for row in rows], found)
        # The first step computes what was not found, at 25 us a token but at least 10 ms; 99 follow.
        firsts = [max(10, 0.025 * (c - 99)) for c in computed]
        self.assertEqual([first_token_ms(row) for row in rows], firsts)
        table = {}
        for row, hit, tokens, first in zip(rows, found, computed, firsts):
            whole = (int(row["finish_ns"]) - int(row["arrival_ns"])) / 1e6
            self.assertEqual(whole, first + 99 * 10)
            table[row["id"]] = (f"{int(row['prompt_tokens']):,} {hit:,} {tokens:,} {first:.1f} ms "
                                f"{whole:,.1f} ms")
        self.say_rows(name, table)
        self.say(name, f"and {percent((25.6 - 10) / 1015.6)} of the time")
        without = self.run_scenario(name, *sets("kv.prefix_cache=false"))
        self.assertEqual(without["tokens"]["scheduled"], 1123 + 1123 + 1124)
        self.run_scenario(name, *sets("kv.block_size=1", "kv.num_blocks=3200"))
        self.assertEqual([row["hit_tokens"] for row in self.requests()], ["0", "1023", "1024"])
        self.say(name, "the second finds 1,023 and computes 100")

    def shared(self, name, *settings):
        """Blocks saved by sharing, of those in all tables, as a head says it."""
        return percent(self.run_scenario(name, *sets(*settings))["samples"]["shared_frac"])

    def test_samples_and_beams(self):
        name = "samples_and_beams.yaml"
        alone = ("traffic.samples=1",)
        table = {n: self.shared(name, f"traffic.samples={n}") + " " +
                 self.shared(name, *alone, f"traffic.beam_width={n}") for n in "246"}
        self.say_rows(name, table)
        off = self.run_scenario(name, *sets("scheduler.fork=off"))
        self.assertEqual((off["samples"]["shared_frac"], off["samples"]["forks"]), (0, 0))
        cached = self.shared(name, "scheduler.fork=off", "kv.prefix_cache=true")
        self.say(name, f"full blocks all the same: {cached}",
                 f"{off['preemptions']} requests are preempted",
                 f"three of four copies of it are saved: {100 * 3 / 4 * 161 / 499:.0f} %")
        # On paper: a prompt of 160 tokens is 10 blocks, of which 3 of 4 holds are saved; each sample
        # takes a block of its own for every 16 of its 336 - 1 further positions, step by step.
        saved = tables = 0
        for position in range(161, 160 + 336):
            saved += 3 * 10
            tables += 4 * -(-position // 16)
        run = self.run_scenario(name, *sets("traffic.requests=1", "traffic.prompt_tokens=160",
                                            "traffic.output_tokens=336", "step_time=fixed:1"))
        # The first step has the prompt alone in the tables: 10 blocks.
        self.assertEqual(run["samples"]["shared_frac"],
                         int(saved / (tables + 10) * 1e9) / 1e9)
        self.assertEqual((run["samples"]["forks"], run["blocks"]["copied"]), (3, 0))

    def test_block_size(self):
        name = "block_size.yaml"
        table, taken, running = {}, {}, {}
        for size in (1, 4, 16, 64, 256):
            run = self.run_scenario(name, *sets(f"kv.block_size={size}",
                                                f"kv.num_blocks={12288 // size}"))
            held, used = run["mean"]["used_frac"], run["mean"]["slot_use_frac"]
            running[size] = run["mean"]["running"]
            taken[size] = run["blocks"]["allocated"]
            found = 1000 // size * size
            # All but the first request find the whole blocks of the system prompt, and nothing else.
            self.assertEqual(run["tokens"]["hit"], 999 * found)
            # A last block is filled by (size + 1) / 2 on average.
            self.assertAlmostEqual(12288 * (held - used), run["mean"]["running"] * (size - 1) / 2,
                                   delta=0.005 * 12288 * held)
            for row in self.requests():
                self.assertEqual(int(row["peak_blocks"]), -(-(tokens_of(row) - 1) // size))
            first = run["latency_ms"]["ttft"]["mean"]
            table[str(size)] = (f"{percent(1 - used / held)} {found:,} "
                                f"{taken[size]:,} {percent(held)} "
                                f"{run['preemptions']} {run['mean']['running']:.1f} "
                                + (f"{first:.0f} ms" if first < 1000 else seconds(first, 1)))
        self.say_rows(name, table)
        self.assertEqual(taken[1] // taken[16], 15)                 # a fifteenth
        self.assertAlmostEqual(running[256] / running[16], 0.75, delta=0.02)    # a quarter fewer
        # With room to spare for the waste of blocks of 16 it does not show.
        spare = {size: self.run_scenario(name, *sets(f"kv.block_size={size}",
                                                     f"kv.num_blocks={16384 // size}"))
                 for size in (1, 16)}
        self.assertEqual([run["preemptions"] for run in spare.values()], [0, 0])
        shown = [f"{run['latency_ms']['ttft']['mean']:.1f}" for run in spare.values()]
        self.say(name, f"come after {shown[0]} and {shown[1]} ms")
        self.say(name, f"1,250 tokens at most {1249:,} with blocks of 1, {1249 // 16} with blocks of "
                 "16", f"keeps {1000 - 768} tokens of the system prompt for itself")

    def test_victims(self):
        name = "victims.yaml"
        lost, table, times_of, length = {}, {}, {}, {}
        rules = re.search(r"preempt: \[([^]]*)\]", self.text(name)).group(1).split(",")
        for rule in map(str.strip, rules):
            run = self.run_scenario(name, *sets("scheduler.preempt=" + rule))
            rows = self.requests()
            times = [int(row["preemptions"]) for row in rows if row["preemptions"] != "0"]
            length["all"] = mean(map(tokens_of, rows))
            length[rule] = mean(tokens_of(row) for row in rows if row["preemptions"] != "0")
            times_of[rule] = sum(times)
            self.assertEqual(sum(times), run["preemptions"])
            lost[rule] = run["tokens"]["recomputed"] / run["preemptions"]
            latency = run["latency_ms"]
            table[rule] = (f"{run['preemptions']} {lost[rule]:,.0f} {percent(recomputed(run))} "
                           f"{len(times)} {max(times)} {seconds(latency['ttft']['mean'])} "
                           f"{seconds(latency['e2e']['mean'])}")
        self.assertEqual(len(table), 9)
        self.say_rows(name, table)
        # By their definitions: the least work is lost where it is asked for, the most with the most.
        order = sorted(lost, key=lost.get)
        self.assertEqual((set(order[:2]), order[-1]), ({"least_lost", "fit"}, "most_blocks"))
        wanted = ["least_lost", "newest", "random", "most_blocks"]
        self.assertEqual(sorted(wanted, key=lost.get), wanted)
        self.say(name, f"from {min(times_of.values())} to {max(times_of.values())}, the price of one by "
                 f"a factor of {lost['most_blocks'] / lost['least_lost']:.0f}")
        # Short ones pay for the one, long ones for the other.
        self.assertLess(length["least_lost"], length["all"])
        self.assertGreater(length["most_blocks"], 3 * length["all"])
        stuck = self.run_scenario(name, *sets("scheduler.preempt=never"), status=3)
        self.assertEqual((stuck["outcome"], stuck["preemptions"]), ("stuck", 0))
        reserved = self.run_scenario(name, *sets("scheduler.preempt=never",
                                                 "scheduler.admit=reserve_max"))
        self.assertEqual((reserved["outcome"], reserved["preemptions"]), ("done", 0))

    def test_head_of_line(self):
        name = "head_of_line.yaml"
        waits, who = {}, {}
        for bound in (None, 0, 10, 20, 40):
            passing = [] if bound is None else ["scheduler.on_blocked=skip"]
            passing += [f"scheduler.max_overtakes={bound}"] if bound else []
            self.run_scenario(name, *sets(*passing))
            rows = self.requests()
            short = [row for row in rows if row["id"] != "long"]
            who[bound] = {int(row["id"][5:]) for row in short if int(row["queue_ns"]) > 20_000_000}
            waits[bound] = (int(next(r["queue_ns"] for r in rows if r["id"] == "long")) / 1e9,
                            sum(int(r["queue_ns"]) > 20_000_000 for r in short),
                            max(int(r["queue_ns"]) for r in short) / 1e9,
                            mean(first_token_ms(r) for r in short) / 1e3)
        blocked = next(event for event in map(json.loads, self.read("out", "events.jsonl").splitlines())
                       if event["kind"] == "blocked" and event["id"] == "long")
        self.presuppose(name, f"{12000 // 16} of 1,000 blocks", f"leave {blocked['free_blocks']} free")
        # A short request comes every 50 ms, and each that may pass moves the long one by as much.
        for bound in (10, 20, 40):
            self.assertAlmostEqual(waits[bound][0] - waits[None][0], bound * 0.05, places=9)
            self.assertEqual(waits[bound][1], waits[None][1])
            # All that moves is the first of those who wait, and so the last.
            self.assertEqual((min(who[bound]), max(who[bound])),
                             (min(who[None]) + bound, max(who[None]) + bound))
            self.assertTrue(who[None].isdisjoint(range(188, 300)))
        self.assertEqual(waits[0][1], 0)
        # The last short one comes at 14.95 s; with all of them passing the long one starts after that.
        self.assertGreater(2.01 + waits[0][0], 14.95)
        self.say(name, f"starts after {waits[None][0]:.2f} s",
                 f"{waits[None][1]} short ones wait for more than a step, short41 to short187, up to "
                 f"{waits[None][2]:.2f} s", f"come after {waits[None][3]:.2f} s on average",
                 f"first tokens after {waits[0][3]:.2f} s. The long one waits {waits[0][0]:.2f} s",
                 f"waits {waits[10][0]:.2f}, {waits[20][0]:.2f}, {waits[40][0]:.2f} s",
                 f"As many short ones wait as before, {waits[10][1]}, but others",
                 f"They wait up to {waits[10][2]:.2f} s (of 10: short69), with first tokens after "
                 f"{waits[10][3]:.2f} s on average")

    def test_chat_state(self):
        name = "chat_state.yaml"
        before = [500 + 160 * turn for turn in range(4)]
        stored = [said - 1 for said in before + [1140]]
        kept = [tokens // 16 * 16 for tokens in stored[:4]]
        self.assertEqual(kept, [496, 656, 816, 976])
        # All that other chats touch in the 21 s between two turns lies behind a chat's blocks.
        held = [-(-tokens // 16) for tokens in stored]
        self.assertEqual((held, 0.5 * 21 * sum(held), 0.5 * 11 * sum(held)),
                         ([32, 42, 52, 62, 72], 2730, 1430))
        table = {}
        for blocks in (3000, 2720, 2700, 2500, 2000, 1500):
            run = self.run_scenario(name, *sets(f"kv.num_blocks={blocks}"))
            told = run["sessions"]
            self.assertEqual((told["turns"], told["former_tokens"]), (320, 80 * sum(before)))
            self.assertEqual(told["retained_tokens"] == 80 * sum(kept), blocks >= 0.99 * 2730)
            table[f"{blocks:,}"] = (
                f"{percent(told['retained_tokens'] / told['former_tokens'])} "
                f"{run['latency_ms']['ttft']['mean']:.1f} ms {run['tokens']['scheduled']:,}")
            self.assertLessEqual(run["peak"]["used_blocks"], 248)
            if blocks not in (3000, 2500):
                continue
            turns = [event for event in map(json.loads, self.read("out", "events.jsonl").splitlines())
                     if event["kind"] == "arrive" and event["id"] in ("201", "202", "203", "204")]
            self.assertEqual([event["former_tokens"] for event in turns], before)
            self.assertEqual([event["retained_tokens"] for event in turns],
                             kept if blocks == 3000 else [0] * 4)
        self.say_rows(name, {**table, **{str(said): f"{found} 0" for said, found in zip(before, kept)}})
        run = self.run_scenario(name)
        self.assertEqual(run["peak"]["used_blocks"], 248)
        self.presuppose(name, "more than 248 of the 2,500 blocks")
        short = self.run_scenario(name, *sets("kv.num_blocks=1500", "traffic.sessions.delay_ms=10000"))
        self.assertEqual(short["sessions"]["retained_tokens"], 80 * sum(kept))
        self.say(name, "so 2,730 blocks", "1,430 blocks, and with 1,500 all is kept")

    def test_neighbours(self):
        name = "neighbours.yaml"
        trace = "traffic.trace=" + os.path.join(self.scenarios, "traces",
                                                "neighbours_unsalted.jsonl")

        def found(*settings):
            self.run_scenario(name, *sets(*settings))
            rows = sorted(self.requests(), key=lambda row: int(row["arrival_ns"]))
            self.assertEqual({row["hit_tokens"] for row in rows}, {"0", "1024"})
            return {tenant: [row for row in rows if row["tenant"] == tenant] for tenant in "abc"}

        def times(rows):
            return sum(row["hit_tokens"] != "0" for row in rows)

        salted = found()
        for row in salted["a"] + salted["b"]:
            # 1,088 tokens at 25 us, or the least that a step takes.
            self.assertEqual(first_token_ms(row), 10 if row["hit_tokens"] != "0" else 27.2)
        self.assertEqual(salted["b"][0]["hit_tokens"], "0")
        # c's prompt and answer take (4,000 + 10 - 1) / 16 blocks, four times a second.
        self.assertGreater(4 * -(-4009 // 16), 800)
        misses = [row for row in salted["a"] if row["hit_tokens"] == "0"][1:]
        self.assertTrue(all(15e9 < int(row["arrival_ns"]) < 26e9 for row in misses))
        open_to_all = found(trace)
        self.assertEqual((open_to_all["b"][0]["hit_tokens"], first_token_ms(open_to_all["b"][0])),
                         ("1024", 10))
        larger = found("kv.num_blocks=1200")
        self.assertEqual((times(larger["a"]), times(larger["b"])), (39, 39))
        self.say(name, f"its prompt {times(salted['a'])} times of 40, b {times(salted['b'])} times",
                 f"outlives c: {times(open_to_all['a'])} and {times(open_to_all['b'])} times of 40",
                 "nobody loses anything: 39 times each", "after 27.2 ms instead of 10")

    def test_watermark(self):
        name = "watermark.yaml"
        published = {"0": "1,065 2.306", "0.01": "- -", "0.02": "400 2.416", "0.05": "187 2.423",
                     "0.10": "168 2.356", "0.15": "168 2.317"}
        table, preemptions, rate, running = {}, [], {}, {}
        for share, engine in published.items():
            run = self.run_scenario(name, *sets("scheduler.watermark=" + share))
            preemptions.append(run["preemptions"])
            rate[share] = run["throughput"]["requests_per_s"]
            table[share] = (f"{run['preemptions']:,} {100 * recomputed(run):.2f} % "
                            f"{as_rate(rate[share])} {as_shown(run['latency_ms']['ttft']['mean'])} "
                            f"{engine}")
            running[share] = run["mean"]["running"]
        self.say_rows(name, table)
        self.assertEqual(preemptions, sorted(preemptions, reverse=True))
        # Steep, then flat: 5 % take away most, three times as much again little.
        self.assertGreater(preemptions[0] - preemptions[3], 10 * (preemptions[3] - preemptions[5]))
        self.assertGreater(min(rate["0.02"], rate["0.05"]), max(rate["0"], rate["0.10"], rate["0.15"]))
        reserve = self.run_scenario(name, *sets("scheduler.admit=reserve_max"))
        self.assertEqual(reserve["preemptions"], 0)
        reserved = reserve["throughput"]["requests_per_s"]
        self.say(name, f"{reserve['mean']['running']:.1f} run at once, where {running['0.05']:.1f} do at "
                 "5 %", f"and {as_rate(reserved)} requests a second are "
                 f"{100 * (1 - reserved / rate['0']):.0f} % fewer")

    def test_prompt_length(self):
        name = "prompt_length.yaml"
        table = {}
        for prompt in (500, 1000, 1500, 1600, 2000, 4000):
            run = self.run_scenario(name, *sets(f"traffic.prompt_tokens={prompt}"))
            blocks = -(-(prompt + 200 - 1) // 16)
            self.assertEqual({row["peak_blocks"] for row in self.requests()}, {str(blocks)})
            # The knee on paper: 40 at once, of all ages, hold P + 100 tokens on average.
            ttft = run["latency_ms"]["ttft"]["mean"]
            self.assertEqual(ttft == 10, 40 * (prompt + 100) / 16 <= 4096)
            table[str(prompt)] = (f"{blocks} {4096 // blocks} {run['peak']['running']} "
                                  f"{percent(run['mean']['used_frac'])} {run['preemptions']} "
                                  f"{ttft:,.0f} ms {run['throughput']['requests_per_s']:.1f}")
        self.say_rows(name, table)
        self.say(name, f"gives P = {4096 * 16 // 40 - 100:,}:")
        longer = sets("traffic.prompt_tokens=1400")
        fixed = self.run_scenario(name, *longer)["latency_ms"]["ttft"]["mean"]
        affine = self.run_scenario(name, *longer, *sets("step_time=affine:10,0.025,0,0"))
        self.say(name, f"after {fixed:.0f} ms here, {seconds(affine['latency_ms']['ttft']['mean'], 1)} "
                 "there")

    def test_spike(self):
        name = "spike.yaml"
        reserve = "scheduler.admit=reserve_max"

        def run(*settings):
            summary = self.run_scenario(name, *sets(*settings))
            return summary, self.queue_is_gone_s()

        # On paper: 44 blocks each, so 15 at once, 7.5 a second; 20 a second for 5 s, then 5.
        self.assertEqual((-(-699 // 16), 700 // 44), (44, 15))
        paper, gone = run(reserve)
        self.assertEqual((paper["preemptions"], paper["peak"]["running"]), (0, 15))
        backlog = (20 - 7.5) * 5
        self.assertAlmostEqual(paper["peak"]["waiting"], backlog, delta=5)
        self.assertAlmostEqual(gone, 15 + paper["peak"]["waiting"] / (7.5 - 5), delta=1)
        late = sum(int(row["queue_ns"]) > 500_000_000 for row in self.requests())
        begin = min(int(row["time_ns"]) for row in self.rows("out", "steps.csv")
                    if row["waiting"] != "0") / 1e9
        self.say(name, f"(in the run {paper['peak']['waiting']} wait at most)",
                 f"{paper['peak']['waiting']} are gone after {paper['peak']['waiting'] / 2.5:.0f} s",
                 f"is felt for {gone - begin:.0f} s, by {late} of {len(self.requests())} requests")
        rows = {"to_the_end": f"{gone - begin:.1f} s {gone:.1f} s"}

        def row(which, *settings):
            summary, gone = run(*settings)
            begin = min(int(row["time_ns"]) for row in self.rows("out", "steps.csv")
                        if row["waiting"] != "0") / 1e9
            rows[which] = f"{gone - begin:.1f} s {gone:.1f} s"
            return summary, gone

        busy, gone = row("busier", reserve, "traffic.speedup=1.25")
        self.assertAlmostEqual(gone, 12 + busy["peak"]["waiting"] / (7.5 - 6.25), delta=3)
        now, gone = row("base")
        self.say(name, f"up to {now['peak']['running']} at once: {now['preemptions']} preemptions, "
                 f"at most {now['peak']['waiting']} wait")
        self.assertGreater(row("prefill", "step_time=affine:10,0.025,0,0")[1], gone)
        self.assertEqual(1056 // 44, 24)
        row("larger", reserve, "kv.num_blocks=1056")
        self.say_rows(name, rows)

    def test_short_and_long(self):
        name = "short_and_long.yaml"
        cures = {"none": "admit=first_chunk", "whole_prompt": "admit=whole_prompt",
                 "reserve_max": "admit=reserve_max"}
        cures.update({cure: cure for cure in ("watermark=0.05", "watermark=0.2", "max_num_seqs=4",
                                              "max_num_seqs=3")})
        table, runs = {}, {}
        for cure, setting in cures.items():
            run = runs[cure] = self.run_scenario(name, *sets("scheduler." + setting))
            ttft = run["latency_ms"]["ttft"]
            table[cure] = (f"{run['preemptions']:,} {100 * recomputed(run):.2f} % "
                           f"{as_shown(ttft['mean'])} {as_shown(ttft['p99'])}")
        self.say_rows(name, table)
        thrash, gate = runs["none"], runs["whole_prompt"]
        self.assertEqual(gate["preemptions"], 0)
        short = ("traffic.prompt_tokens.mean=500", "traffic.requests=1000",
                 "traffic.arrivals.rate_per_s=8")
        few = self.run_scenario(name, *sets(*short, "scheduler.max_num_seqs=3"))
        calm = self.run_scenario(name, *sets(*short))
        self.assertEqual((calm["preemptions"], calm["peak"]["waiting"]), (0, 0))
        less = self.run_scenario(name, *sets("traffic.arrivals.rate_per_s=0.3"))
        self.run_scenario(name)
        events = [json.loads(line) for line in self.read("out", "events.jsonl").splitlines()]
        own = sum(e["kind"] == "preempt" and e["id"] == e["for"] for e in events)
        # The paper of it: 12,000 + 400 - 1 positions take 775 blocks.
        self.assertEqual(4000 // -(-12399 // 16), 5)
        self.assertEqual(int(thrash["latency_ms"]["ttft"]["mean"]
                             / less["latency_ms"]["ttft"]["mean"]), 52)
        self.say(name, f"prompts: {100 * calm['mean']['used_frac']:.0f} % of the pool, "
                 f"{calm['mean']['running']:.1f} at once, no preemption, nobody waits, first tokens "
                 f"after {calm['latency_ms']['ttft']['mean']:.0f} ms",
                 f"would need {100 * gate['mean']['used_frac']:.0f} %, "
                 f"{gate['mean']['running']:.1f} at once",
                 f"they hold {100 * thrash['mean']['used_frac']:.0f} %: {thrash['preemptions']:,} "
                 f"preemptions, {percent(recomputed(thrash))} of the work",
                 f"first tokens after {as_shown(thrash['latency_ms']['ttft']['mean'])}",
                 f"({own:,} times)",
                 f"there are {less['preemptions']} preemptions and first tokens after "
                 f"{seconds(less['latency_ms']['ttft']['mean'], 1)}",
                 f"a second {few['throughput']['requests_per_s']:.2f} are served")

    def test_swap_vs_recompute(self):
        name = "swap_vs_recompute.yaml"
        runs, table, cost = {}, {}, {}
        for size in (1, 4, 16, 64, 256):
            # One way: the latency, and what the link carries in a whole number of ns.
            block_ns = 200_000 + -(-size * 819_200 * 10**9 // (25 * 10**9))
            cost[size] = 2 * block_ns / size / 1e6
            for how in ("recompute", "swap", "auto"):
                run = runs[how, size] = self.run_scenario(
                    name, *sets(f"kv.block_size={size}", f"kv.num_blocks={16384 // size}",
                                "scheduler.on_preempt=" + how))
                swap, gaps = run["swap"], run["latency_ms"]["itl"]
                blocks = swap["out_blocks"] + swap["in_blocks"]
                self.assertEqual(swap["link_busy_ns"], blocks * block_ns)
                self.assertEqual(swap["out_bytes"] + swap["in_bytes"], blocks * size * 819_200)
                self.assertEqual(swap["host_full"], 0)
                # Without a cache nothing is found again, so all that goes out comes back.
                self.assertEqual(swap["out_blocks"], swap["in_blocks"])
                events = [json.loads(line) for line in self.read("out", "events.jsonl").splitlines()]
                lost = sum(event["lost_tokens"] for event in events if event["kind"] == "preempt")
                self.assertEqual(run["tokens"]["recomputed"], lost)
                if how != "auto":
                    table[f"{how}-{size}"] = (
                        f"{run['preemptions']} {lost:,} "
                        f"{(swap['out_bytes'] + swap['in_bytes']) / 1e9:.1f} GB "
                        f"{percent(swap['link_busy_ns'] / run['makespan_ns'])} {gaps['mean']:.1f} ms "
                        f"{gaps['p99']:.1f} ms {seconds(run['latency_ms']['ttft']['mean'])}")
            self.assertEqual(runs["swap", size]["swap"]["preemptions"],
                             runs["swap", size]["preemptions"])
            self.assertEqual(runs["recompute", size]["swap"]["out_blocks"], 0)
        self.say_rows(name, table)
        costs = [f"{cost[size]:.3f}" for size in sorted(cost)]
        self.say(name, "Copying takes " + ", ".join(costs[:-1]) + f" and {costs[-1]} ms a token")
        # 2 (0.2 / n + 0.032768) = 0.1
        cheaper = -(-0.2 // (0.1 / 2 - 0.032768))
        self.say(name, f"cheaper from blocks of {cheaper:.0f} on")
        p99 = {key: run["latency_ms"]["itl"]["p99"] for key, run in runs.items()}
        for size in cost:
            self.assertEqual(p99["swap", size] > p99["recompute", size], size == 1)
        idle = 1 - runs["swap", 4]["swap"]["link_busy_ns"] / runs["swap", 4]["makespan_ns"]
        self.say(name, f"the link is idle {100 * idle:.0f} % of the time")
        shares = {size: runs["auto", size]["swap"]["out_bytes"]
                  / runs["swap", size]["swap"]["out_bytes"] for size in cost}
        self.assertEqual(shares[1], 0)
        self.assertLess(shares[4], 0.1)
        self.assertGreater(min(shares[16], shares[64], shares[256]), 0.9)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ScenarioCase.scenarios = os.path.join(os.path.abspath(sys.argv.pop(2)), "scenarios")
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
