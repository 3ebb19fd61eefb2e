#!/usr/bin/env python3
"""Runs that begin with the cache of another: what the second of two runs hits is what it hits as the second
half of one run over both traces, and nothing that was one request's own is hit by accident.

usage: test_warm.py PROGRAM SOURCE_ROOT
"""
import json
import os
import random
import re
import resource
import sys

import tap
from program import ProgramCase

ROOT = None             # set by main
GAP_MS = 1_000_000      # between the halves of one run: the first is over by then

# Ways of the cache that decide which block is free, keyed and next: (block size, blocks, settings).
CACHES = (
    (4, 64, ()),
    (4, 40, ("scheduler.unhashed_free=tail",)),
    (4, 48, ("scheduler.publish=computed", "scheduler.unhashed_free=tail")),
    (4, 64, ("scheduler.preset=vllm-2025-09", "scheduler.max_num_batched_tokens=16")),
    (16, 24, ("kv.groups=[{type: full, block_size: 8}, {type: sliding, window: 12, block_size: 4}]",)),
    (4, 60, ("kv.groups=[{type: full}, {type: chunked, chunk: 16}]",)),
    (4, 48, ("scheduler.fork=on",)),
)


def prompt(rng, row, former, samples):
    """Named texts, own text, and the former turn, in any order that a trace can have."""
    segments = []
    if former:
        segments.append(["@prev", rng.randint(1, former + 2)])
    for _ in range(rng.randint(0, 3)):
        segments.append([rng.choice(("sys", "doc", "tool", None)), rng.randint(1, 14)])
    segments.append([None, rng.randint(1, 6)])
    if former and rng.random() < 0.7:
        segments = [["@prev", former], [None, rng.randint(1, 6)]]
    row["prompt"] = segments
    row["output_length"] = rng.randint(1, 14)
    if samples and not former and rng.random() < 0.3:
        row["n"] = rng.randint(2, 3)
        row.pop("session", None)
    return sum(count for _, count in segments) + row["output_length"]


def half(rng, name, samples):
    """Rows of one trace, with talks that begin and end in it."""
    rows, talks, time = [], {}, 0
    for i in range(rng.randint(8, 24)):
        time += rng.choice((0, 0, 1, 3))
        row = {"id": f"{name}{i}", "timestamp": time}
        if rng.random() < 0.2:
            row["salt"] = rng.choice("xy")
        talk = f"{name}-talk{rng.randint(0, 2)}" if rng.random() < 0.5 else None
        if talk and talk in talks:
            row.update(session=talk, delay_ms=rng.choice((0, 2)))
            talks[talk] = min(prompt(rng, row, talks[talk], samples), 60)
        else:
            if talk:
                row["session"] = talk
            length = prompt(rng, row, 0, samples)
            if "session" in row:
                talks[talk] = length
        rows.append(row)
    return rows


class Warm(ProgramCase):
    def trace(self, name, rows):
        self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def replay(self, trace, out, *flags, block_size=4, num_blocks=64):
        return self.done("replay", trace, "--block-size", str(block_size), "--num-blocks",
                         str(num_blocks), "--step-time", "fixed:1", "-o", out, "-q", "--check", *flags)

    def shape(self, out):
        """The free queue without the identities of what one run alone can know."""
        lines = self.read(out, "cache.csv").decode().splitlines()
        return [(row.split(",")[0], bool(row.split(",")[1]), row.split(",")[3]) for row in lines[5:]]

    def test_two_runs_hit_what_one_run_hits(self):
        rng = random.Random(5)
        hits = preemptions = 0
        for case in range(42):
            block_size, num_blocks, settings = CACHES[case % len(CACHES)]
            flags = [word for setting in settings for word in ("--set", setting)]
            samples = "scheduler.fork=on" in settings
            first, second = half(rng, "a", samples), half(rng, "b", samples)
            for row in second:
                row["timestamp"] += GAP_MS
            self.trace("a.jsonl", first)
            self.trace("b.jsonl", second)
            self.trace("ab.jsonl", first + second)
            sizes = {"block_size": block_size, "num_blocks": num_blocks}
            self.replay("a.jsonl", "a", *flags, **sizes)
            self.replay("b.jsonl", "b", "--warm", "a", *flags, **sizes)
            self.replay("ab.jsonl", "ab", *flags, **sizes)
            whole = [row for row in self.rows("ab", "requests.csv") if row["id"].startswith("b")]
            with self.subTest(case=case):
                self.assertEqual(self.rows("b", "requests.csv"), whole)
                self.assertEqual(self.shape("b"), self.shape("ab"))
                steps = [row for row in self.rows("ab", "steps.csv")
                         if int(row["time_ns"]) >= GAP_MS * 1_000_000]
                begun = self.rows("b", "steps.csv")
                for row in steps + begun:
                    del row["step"], row["preemptions_total"]
                self.assertEqual(begun, steps)
            hits += sum(int(row["hit_tokens"]) for row in whole)
            preemptions += sum(int(row["preemptions"]) for row in whole)
        self.assertGreater(hits, 1000)
        self.assertGreater(preemptions, 10)

    def test_what_is_a_request_s_own_is_never_hit_in_another_run(self):
        # Three times the same trace: row 0 has the same prompt each time, and only "sys" of it is the
        # same text, 16 tokens in blocks of 4. The 8 tokens behind it are of that run's row 0.
        self.trace("t.jsonl", [{"timestamp": 0, "prompt": [["sys", 16], [None, 8], ["sys", 8], [None, 1]],
                                "output_length": 9},
                               {"timestamp": 50, "prompt": 40, "output_length": 9}])
        self.replay("t.jsonl", "0")
        for run in (1, 2):
            self.replay("t.jsonl", str(run), "--warm", str(run - 1))
            self.assertEqual([row["hit_tokens"] for row in self.rows(str(run), "requests.csv")],
                             ["16", "0"])
            self.assertIn(f"# runs {run + 1}\n", self.read(str(run), "cache.csv").decode())

    def test_answers_under_token_ids_are_one_run_s_own(self):
        # The prompt of the second row contains the answer of the first: ids from 2^40 on.
        self.trace("t.jsonl", [{"id": "a", "arrival_step": 1, "prompt": [[8000, 12]], "max_tokens": 9},
                               {"id": "b", "arrival_step": 50,
                                "prompt": [[8000, 12], [2**40, 8], [77, 1]], "max_tokens": 1}])
        self.replay("t.jsonl", "0")
        self.assertEqual([row["hit_tokens"] for row in self.rows("0", "requests.csv")], ["0", "20"])
        self.trace("late.jsonl", [{"id": "c", "arrival_step": 1,
                                   "prompt": [[8000, 12], [2**40, 8], [77, 1]], "max_tokens": 1}])
        self.replay("late.jsonl", "1", "--warm", "0")
        self.assertEqual([row["hit_tokens"] for row in self.rows("1", "requests.csv")], ["12"])

    def test_synthetic_prefixes_are_hit_by_their_trace_and_the_other_way_round(self):
        self.write("s.yaml", "kv: {block_size: 4, num_blocks: 400}\nstep_time: {model: fixed, ms: 1}\n"
                   "traffic: {requests: 6, arrivals: {law: constant, rate_per_s: 5}, prompt_tokens: 20, "
                   "output_tokens: 3, prefixes: {num: 2, tokens: 12}}\n")
        self.done("gen", "s.yaml", "-o", "s.jsonl")
        self.done("run", "s.yaml", "-o", "cold", "-q")
        cold = sum(int(row["hit_tokens"]) for row in self.rows("cold", "requests.csv"))
        self.assertEqual(cold, (6 - 2) * 12)     # both prefixes occur
        self.done("run", "s.yaml", "--warm", "cold", "-o", "warm", "-q")
        self.replay("s.jsonl", "replayed", "--warm", "cold", num_blocks=400)
        for out in ("warm", "replayed"):
            self.assertEqual([row["hit_tokens"] for row in self.rows(out, "requests.csv")], ["12"] * 6)

    def test_a_smaller_pool_keeps_what_was_used_last_and_a_larger_one_all(self):
        # Six prompts of 9 tokens one after the other: two full blocks each, and a third one that goes back
        # to the head and serves the next. The queue ends with a1 a0 b1 b0 ... f1 f0, tails first.
        self.trace("t.jsonl", [{"timestamp": 10 * i, "prompt": [[name, 8], [None, 1]], "output_length": 1}
                               for i, name in enumerate("abcdef")])
        self.replay("t.jsonl", "cold", num_blocks=20)
        self.trace("u.jsonl", [{"id": name, "timestamp": 10 * i, "prompt": [[name, 8], [None, 1]],
                                "output_length": 1} for i, name in enumerate("fedcba")])
        # In 12 blocks all are there, but the first third block is a1; in 7 there are c0 d1 d0 ..., and it
        # is c0.
        for num_blocks, hits in ((40, "888888"), (20, "888888"), (13, "888888"), (12, "888884"),
                                 (7, "888000")):
            self.replay("u.jsonl", "warm", "--warm", "cold", num_blocks=num_blocks)
            self.assertEqual("".join(row["hit_tokens"] for row in self.rows("warm", "requests.csv")),
                             hits, num_blocks)
            self.assertEqual(self.summary("warm")["warm"],
                             {"blocks": min(12, num_blocks), "left_out": max(0, 12 - num_blocks)})
        self.assertNotIn("warm", self.summary("cold"))

    def test_it_says_how_many_blocks_were_taken_over(self):
        # A prompt of 8 + 1 tokens: two full blocks of 4. Nobody has the text of the other trace.
        row = {"timestamp": 0, "prompt": [["sys", 8], [None, 1]], "output_length": 1}
        self.trace("t.jsonl", [row])
        self.trace("u.jsonl", [dict(row, prompt=[["other", 8], [None, 1]])])
        self.replay("t.jsonl", "cold")
        pool = ("--block-size", "4", "--step-time", "fixed:1", "--warm", "cold", "--num-blocks")
        said = self.done("replay", "u.jsonl", *pool, "64").stdout
        self.assertIn("prefix hits 0.0 % of prompt tokens (0 of 9)\n"
                      "            began with 2 cached blocks of the former run\n", said)
        self.trace("t.jsonl", [row, dict(row, timestamp=5, prompt=[["more", 8], [None, 1]])])
        self.replay("t.jsonl", "cold")
        said = self.done("replay", "u.jsonl", *pool, "3").stdout
        self.assertIn("began with 3 cached blocks of the former run; 1 more had no room\n", said)

    def test_the_memory_is_that_of_the_rows(self):
        self.trace("t.jsonl", [{"timestamp": 0, "prompt": [["sys", 8], [None, 1]], "output_length": 1}])
        self.replay("t.jsonl", "cold")
        kept = self.read("cold", "cache.csv").decode()
        most = 2 ** 31 - 1
        self.assertIn("62,,,\n", kept)
        self.write("cold/cache.csv", kept.replace("# blocks 64\n", f"# blocks {most}\n")
                   .replace("62,,,\n", f"{most - 2},,,\n"))
        limit = 4 << 30       # of address space: a sanitizer reserves terabytes, and does not run in it
        bound = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))}
        if self.call("--version", **bound).returncode != 0:
            self.skipTest("this build does not run in 4 GiB of address space")
        self.done("replay", "t.jsonl", "--block-size", "4", "--num-blocks", "64", "--step-time", "fixed:1",
                  "--warm", "cold", "-o", "warm", "-q", **bound)
        self.assertEqual(self.summary("warm")["tokens"]["hit"], 8)
        self.assertEqual(self.summary("warm")["warm"], {"blocks": 2, "left_out": 0})

    def test_blocks_held_at_a_horizon_count_as_given_back_there(self):
        # 32 tokens and 4 of its answer are there when the run stops.
        self.trace("t.jsonl", [{"timestamp": 0, "prompt": [["sys", 32], [None, 4]], "output_length": 90}])
        self.replay("t.jsonl", "cut", "--set", "horizon=5ms")
        self.assertEqual(self.rows("cut", "requests.csv")[0]["status"], "unfinished")
        self.replay("t.jsonl", "warm", "--warm", "cut")
        self.assertEqual(self.rows("warm", "requests.csv")[0]["hit_tokens"], "32")

    def test_the_resolved_scenario_repeats_the_run(self):
        self.trace("t.jsonl", [{"timestamp": 0, "prompt": [["sys", 32], [None, 4]], "output_length": 9}])
        self.replay("t.jsonl", "cold")
        self.replay("t.jsonl", "warm", "--warm", "cold")
        self.write("again.yaml", self.read("warm", "scenario.yaml"))
        self.done("run", "again.yaml", "-o", "again", "-q")
        self.same_contents("again", "warm")
        self.assertNotEqual(self.summary("warm")["scenario_sha256"],
                            self.summary("cold")["scenario_sha256"])
        # Relative to the scenario that says it.
        self.write("here.yaml", self.read("cold", "scenario.yaml").replace(b"kv:\n", b"kv:\n  warm: cold\n"))
        self.done("run", "here.yaml", "-o", "here", "-q")
        self.assertEqual(self.rows("here", "requests.csv"), self.rows("warm", "requests.csv"))

    def test_what_the_readme_shows(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            shown = re.findall(r"\$ pagedkv (run scenarios/cached_state[^|\n]*) \| grep hits\n(.*)\n", file.read())
        self.assertEqual(len(shown), 2)
        os.symlink(os.path.join(ROOT, "scenarios"), self.path("scenarios"))
        for command, line in shown:
            self.assertIn(line + "\n", self.done(*command.split()).stdout)

    def refuse(self, place, words, *args):
        result = self.call("replay", "t.jsonl", "--step-time", "fixed:1", *args)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertTrue(result.stderr.startswith(place), result.stderr)
        self.assertIn(words, result.stderr)

    def test_what_does_not_match_is_refused_with_its_place(self):
        self.trace("t.jsonl", [{"timestamp": 0, "prompt": [["sys", 8], [None, 1]], "output_length": 1}])
        pool = ("--block-size", "4", "--num-blocks", "8")
        self.replay("t.jsonl", "cold", num_blocks=8)
        good = self.read("cold", "cache.csv").decode()
        self.assertEqual(good.splitlines()[:6], ["# identities 1", "# groups full:4", "# blocks 8", "# runs 1",
                                                 "blocks,identity,second,twin", "6,,,"])
        self.refuse("cold/cache.csv:2:10: ", "has full:8", "--block-size", "8", "--num-blocks", "8",
                    "--warm", "cold")
        self.refuse("nowhere/cache.csv: ", "No such file", *pool, "--warm", "nowhere")
        self.refuse("pagedkv: --warm: ", "empty", *pool, "--warm", "")
        self.refuse("--warm: ", "kv.prefix_cache", *pool, "--warm", "cold", "--no-prefix-cache")
        self.refuse("cold/cache.csv: ", "write over the input", *pool, "--warm", "cold", "-o", "cold")
        key = good.splitlines()[6].split(",")[1]
        for line, column, old, new, words in (
                (1, 14, "# identities 1", "# identities 2", "in way 2"),
                (1, 1, "# identities 1", "identities 1", "does not say"),
                (3, 10, "# blocks 8", "# blocks 0", "is 0"),
                (3, 10, "# blocks 8", "# blocks 8x", "not a whole number"),
                (5, 1, "blocks,identity", "block,identity", "is not 'blocks,identity"),
                (6, 1, "6,,,", "9,,,", "more than are left"),
                (6, 1, "6,,,", "0,,,", "no number of blocks"),
                (6, 3, "6,,,", "6,,,0", "not what follows"),
                (7, 3, key, key[:15], "no identity"),
                (7, 3, key, key[:15] + "G", "no identity"),
                (7, 3, key, "0" * 16, "no identity"),
                (7, 1, "1," + key, "2," + key, "a row of its own"),
                (7, None, ",0\n", ",1\n", "is twin 1 of identity " + key + ", but no block is its twin 0"),
                (7, 20, key + ",,", key + "," + key + ",", "a second identity, which no block of these"),
                (4, 8, "# runs 1", "# runs 4294967295", "4294967294"),
                (3, 1, good[good.index("# blocks"):], "", "ends before it says '# blocks"),
                (5, 1, good[good.index("blocks,"):], "", "ends before its header"),
                (8, None, good.splitlines()[7], good.splitlines()[6],
                 "is the second block of identity " + key + " that is its twin 0"),
                (8, None, "6,,,", "5,,,", "ends after 7 of its 8")):
            self.assertIn(old, good)
            self.write("cold/cache.csv", good.replace(old, new, 1))
            at = f"{line}:{column}" if column else f"{line}"
            self.refuse(f"cold/cache.csv:{at}: ", words, *pool, "--warm", "cold")

    def test_a_comparison_and_a_run_without_cache_take_none(self):
        self.trace("t.jsonl", [{"timestamp": 0, "prompt": [["sys", 8], [None, 1]], "output_length": 1}])
        self.replay("t.jsonl", "cold")
        self.write("s.yaml", self.read("cold", "scenario.yaml").replace(b"kv:\n", b"kv:\n  warm: cold\n"))
        result = self.call("compare", "s.yaml", "--vary", "scheduler.max_num_seqs=1,2")
        self.assertEqual((result.returncode, "kv.warm" in result.stderr), (2, True))
        self.replay("t.jsonl", "off", "--no-prefix-cache")
        self.assertNotIn("cache.csv", self.contents("off"))
        result = self.call("run", "off/scenario.yaml", "-o", "no", "--files", "cache")
        self.assertEqual((result.returncode, "no cache to write" in result.stderr), (2, True))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ProgramCase.program = os.path.abspath(sys.argv[1])
    ROOT = os.path.abspath(sys.argv[2])
    del sys.argv[1:]
    tap.main(__name__)
