#!/usr/bin/env python3
"""`pagedkv synth from`: what of a trace is kept when nothing is scaled, and what each scale does.

usage: test_synth_from.py PROGRAM
"""
import collections
import json
import os
import random
import re
import sys

import tap
from program import ProgramCase


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


class MadeCase(ProgramCase):
    def source(self, rows):
        self.write("source.jsonl", lines(rows))

    def made(self, *args):
        self.text = self.done("synth", "from", "source.jsonl", "-o", "made.jsonl", *args).stdout
        return [json.loads(line) for line in self.read("made.jsonl").decode().splitlines()]

    def info(self, name, *args):
        return json.loads(self.done("trace", "info", name, "--json", *args).stdout)

    def told(self, name):
        """Source, wanted, made and deviation of a row of the table; percent signs are left out."""
        line = re.search(rf"^{name} {{2,}}(.*)$", self.text, re.M).group(1)
        return line.replace("%", "").replace(",", "").split()


def chats(num=400, seed=3):
    """Rows of Mooncake: one of three system prompts of 2 blocks, then chats whose turns have all blocks
    of the former turn."""
    rng = random.Random(seed)
    rows, talks, fresh, time = [], [], 1000, 0
    for _ in range(num):
        if not talks or rng.random() < 0.4:
            system = rng.randrange(3)
            talks.append([10 * system + 1, 10 * system + 2])
        talk = rng.choice(talks)
        talk.append(fresh)
        fresh += 1
        time += rng.choice((0, 10, 700))
        rows.append({"timestamp": time, "input_length": 512 * len(talk),
                     "output_length": rng.randrange(1, 500), "hash_ids": list(talk)})
    return rows


class Unscaled(MadeCase):
    def test_what_is_kept(self):
        rows = chats()
        self.source(rows)
        made = self.made("--seed", "9", "--run", "20")
        for field in ("input_length", "output_length"):
            self.assertEqual(sorted(row[field] for row in made), sorted(row[field] for row in rows))
        self.assertNotEqual([row["input_length"] for row in made],
                            [row["input_length"] for row in rows])
        before = self.info("source.jsonl")
        after = self.info("made.jsonl", "--block-size", "512")
        self.assertEqual(after["unique_blocks"], before["unique_blocks"])
        # A prefix is met before by all of its rows but the first one, whatever their order.
        hits = [info["infinite"]["hit_blocks"] for info in (before, after)]
        self.assertEqual(hits[0], hits[1])
        self.assertEqual(self.told("different blocks")[-1], "+0.0")
        self.assertEqual(self.told("shared first texts"), ["3", "3", "3", "+0.0"])
        self.assertEqual(self.told("rows"), ["400", "400", "400", "+0.0"])

    def test_runs_stay_together(self):
        """Rows are told apart by their output; within a run of 50 each follows the one before it."""
        rows = [{"timestamp": 10 * i * i, "input_length": 10, "output_length": i + 1}
                for i in range(200)]
        self.source(rows)
        made = self.made("--run", "50", "--seed", "4")
        outputs = [row["output_length"] for row in made]
        self.assertEqual(sorted(outputs), list(range(1, 201)))
        self.assertNotEqual(outputs, sorted(outputs))
        for i in range(0, 200, 50):
            self.assertEqual(outputs[i:i + 50], list(range(outputs[i], outputs[i] + 50)))
        times = [row["timestamp"] for row in made]
        for i in range(1, 200):
            if i % 50 == 0:
                continue
            k = outputs[i] - 1
            self.assertEqual(times[i] - times[i - 1], 10 * (k * k - (k - 1) * (k - 1)))

    def test_same_seed_same_bytes(self):
        self.source(chats())
        self.made("--seed", "1")
        first = self.read("made.jsonl")
        self.made()
        self.assertEqual(self.read("made.jsonl"), first)
        self.made("--seed", "2")
        self.assertNotEqual(self.read("made.jsonl"), first)

    def test_what_else_a_row_asks_for(self):
        self.source([{"timestamp": 5 * i, "input_length": 8, "output_length": 2, "max_tokens": 9,
                      "priority": i, "tenant": f"t{i % 2}", "abort_ms": 5 * i + 7,
                      "deadline_ms": 5 * i + 100} for i in range(10)])
        for row in self.made("--run", "1"):
            self.assertEqual(row["tenant"], f"t{row['priority'] % 2}" if "priority" in row else "t0")
            self.assertEqual(row["max_tokens"], 9)
            self.assertEqual(row["abort_ms"] - row["timestamp"], 7)
            self.assertEqual(row["deadline_ms"] - row["timestamp"], 100)


class Scaled(MadeCase):
    def test_rate(self):
        self.source([{"timestamp": 30 * i, "input_length": 8, "output_length": 2} for i in range(101)])
        times = [row["timestamp"] for row in self.made("--rate", "1.5")]
        self.assertEqual(times, [20 * i for i in range(101)])
        self.assertEqual(self.told("arrivals a second"), ["33.33", "50", "50", "+0.0"])

    def test_prefix_length(self):
        """A shared text of 4 blocks, one of 2 behind it, and own text: 6 blocks become 9, 4 become 6."""
        self.source([{"timestamp": i, "input_length": 512 * 7, "output_length": 1,
                      "hash_ids": [1, 2, 3, 4, 5 + i % 2, 7 + i % 2, 100 + i]} for i in range(8)])
        for row in self.made("--prefix-length", "1.5"):
            names, counts = zip(*row["prompt"])
            self.assertEqual(counts, (512 * 6, 512 * 3, 512))
            self.assertIsNone(names[2])
        self.assertEqual(self.told("prompt tokens, mean"),
                         ["3584", "5120", "5120", "+0.0"])
        for row in self.made("--prefix-length", "0"):
            self.assertEqual(row["input_length"], 512)
            self.assertNotIn("prompt", row)
        self.assertEqual(self.told("shared first texts"), ["1", "0", "0", "none"])

    def test_first_texts_scaled_to_nothing(self):
        """Two first texts of a block, 512 tokens that 0.0009 makes 0; behind each, five blocks more that two
        chats of it share: 6 blocks become 3 tokens. So prompts begin with one of four texts."""
        self.source([{"timestamp": i, "input_length": 512 * 7, "output_length": 1, "hash_ids":
                      [1 + i % 2, *range(10 + 5 * (i % 4), 15 + 5 * (i % 4)), 1000 + i]}
                     for i in range(16)])
        made = self.made("--prefix-length", "0.0009")
        firsts = collections.Counter(tuple(row["prompt"][0]) for row in made)
        self.assertEqual(sorted((count, rows) for (_, count), rows in firsts.items()), [(3, 4)] * 4)
        self.assertEqual(self.told("shared first texts"), ["2", "2", "4", "+100.0"])

    def test_more_roots(self):
        """One system prompt, behind it 40 chats of 5 rows. With four there are four, and the rows of a
        chat begin with the same one."""
        self.source([{"timestamp": i, "input_length": 512 * 3, "output_length": 1,
                      "hash_ids": [1, 2 + i % 40, 1000 + i]} for i in range(200)])
        roots = collections.defaultdict(set)
        for row in self.made("--roots", "4"):
            root, chat, own = row["prompt"]
            self.assertIsNone(own[0])
            roots[root[0]].add(chat[0])
        self.assertEqual(len(roots), 4)
        self.assertEqual(sum(len(some) for some in roots.values()), 40)
        self.assertEqual(self.told("shared first texts"), ["1", "4", "4", "+0.0"])

    def test_fewer_roots(self):
        self.source([{"timestamp": i, "input_length": 512 * 2, "output_length": 1,
                      "hash_ids": [1 + i % 6, 1000 + i]} for i in range(60)])
        made = self.made("--roots", "0.5")
        counts = collections.Counter(row["prompt"][0][0] for row in made)
        self.assertEqual(sorted(counts.values()), [20, 20, 20])

    def test_more_rows(self):
        """Twice as many: the first texts are the same, the chats are others."""
        self.source([{"timestamp": i, "input_length": 512 * 3, "output_length": 1,
                      "hash_ids": [1, 2 + i % 5, 1000 + i]} for i in range(50)])
        made = self.made("--requests", "100")
        self.assertEqual(len(made), 100)
        self.assertEqual(len({row["prompt"][0][0] for row in made}), 1)
        first, second = ({row["prompt"][1][0] for row in part} for part in (made[:50], made[50:]))
        self.assertEqual((len(first), len(second), len(first & second)), (5, 5, 0))


class Readme(MadeCase):
    def test_table(self):
        """The README shows what comes out of the shipped trace."""
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
        with open(os.path.join(root, "README.md"), encoding="utf-8") as file:
            command, table = re.search(r"^\$ pagedkv (synth from .*)\n((?:.+\n)+?)```", file.read(),
                                       re.M).groups()
        _, _, trace, *flags = command.split()
        shown = self.done("synth", "from", os.path.join(root, trace), *flags).stdout
        self.assertEqual(shown, table)


class WrongUse(MadeCase):
    def refused(self, words, *args):
        result = self.call("synth", *args)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(words, result.stderr)
        self.assertFalse(os.path.exists(self.path("made.jsonl")))

    def test_wrong_use(self):
        self.source(chats(5))
        made = ("-o", "made.jsonl")
        self.refused("'after' is not from", "after", "source.jsonl", *made)
        self.refused("-o TRACE is missing", "from", "source.jsonl")
        self.refused("cannot be standard input", "from", "-", *made)
        self.refused("a rate of 0 is out of range", "from", "source.jsonl", "--rate", "0", *made)
        self.refused("a number of roots of 2000 is", "from", "source.jsonl", "--roots", "2000", *made)
        self.refused("--prefix-length: 'x'", "from", "source.jsonl", "--prefix-length", "x", *made)
        self.write("source.jsonl", lines([
            {"timestamp": 0, "input_length": 3, "output_length": 1, "session": "a"},
            {"delay_ms": 0, "input_length": 3, "output_length": 1, "session": "a"}]))
        self.refused("source.jsonl:2:", "from", "source.jsonl", *made)


if __name__ == "__main__":
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
