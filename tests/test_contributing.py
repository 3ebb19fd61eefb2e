#!/usr/bin/env python3
"""The policy that CONTRIBUTING.md shows is added to a copy of the sources as the text says, built and
used.

usage: test_contributing.py SOURCE_ROOT
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import tap

SOURCE_ROOT = None      # set by main
SOURCES = ("meson.build", "meson_options.txt", "include", "src", "tools", "tests", "scenarios")

# Five blocks of four tokens, all taken after the first step: 2, 1 and 2.
SCENARIO = """\
kv: {{block_size: 4, num_blocks: 5, prefix_cache: false}}
{scheduler}
step_time: {{model: fixed, ms: 1}}
traffic: {{trace: trace.jsonl}}
"""
TRACE = """\
{"id": "a", "timestamp": 0, "input_length": 8, "output_length": 4}
{"id": "b", "timestamp": 0, "input_length": 4, "output_length": 4}
{"id": "c", "timestamp": 0, "input_length": 8, "output_length": 4}
"""


def only(pattern, text):
    found = re.findall(pattern, text, re.M | re.S)
    if len(found) != 1:
        raise ValueError(f"{len(found)} times {pattern} in CONTRIBUTING.md, not once")
    return found[0]


class NewPolicy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(SOURCE_ROOT, "CONTRIBUTING.md"), encoding="utf-8") as file:
            text = only(r"^## A new policy\n(.*?)^## ", file.read())
        cls.code = only(r"^```c\n(.*?)^```$", text)
        cls.file = only(r"The file, `(src/policy/\w+\.c)`", text)
        cls.word = only(r"^```meson\n(.*?)^```$", text)
        cls.commands = only(r"^```sh\n(.*?)^```$", text).splitlines()
        cls.scheduler = only(r"in a scenario it is `(scheduler: [^`]*)`", text)
        folder = tempfile.TemporaryDirectory(prefix="pagedkv-policy-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = folder.name
        cls.copy()
        cls.add()
        cls.build()

    @classmethod
    def copy(cls):
        for name in SOURCES:
            source, target = os.path.join(SOURCE_ROOT, name), os.path.join(cls.root, name)
            if os.path.isdir(source):
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)

    @classmethod
    def add(cls):
        """The two steps."""
        with open(os.path.join(cls.root, cls.file), "x", encoding="utf-8") as file:
            file.write(cls.code)
        name = os.path.join(cls.root, "src", "meson.build")
        with open(name, encoding="utf-8") as file:
            lines = file.readlines()
        last = max(i for i, line in enumerate(lines) if line.startswith("  'preempt_"))
        lines.insert(last + 1, cls.word)
        with open(name, "w", encoding="utf-8") as file:
            file.writelines(lines)

    @classmethod
    def build(cls):
        meson = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"
        for command in (["setup", "build", "--buildtype=release", "-Dtests=disabled"],
                        ["compile", "-C", "build", "tools/pagedkv:executable"]):
            subprocess.run([meson, *command], cwd=cls.root, check=True, stdout=sys.stderr)

    def call(self, *words):
        result = subprocess.run(words, cwd=self.root, capture_output=True, text=True, check=False,
                                timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def pagedkv(self, *words):
        return self.call(os.path.join("build", "tools", "pagedkv"), *words)

    def run_with(self, scheduler):
        """returns (who was given up for whom, when each ended in ms, tokens computed again)"""
        for name, content in (("scenario.yaml", SCENARIO.format(scheduler=scheduler)),
                              ("trace.jsonl", TRACE)):
            with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
                file.write(content)
        self.pagedkv("run", "scenario.yaml", "-o", "out", "--quiet")
        with open(os.path.join(self.root, "out", "events.jsonl"), encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        with open(os.path.join(self.root, "out", "summary.json"), encoding="utf-8") as file:
            recomputed = json.load(file)["tokens"]["recomputed"]
        return ([(e["step"], e["id"], e["for"]) for e in events if e["kind"] == "preempt"],
                {e["id"]: e["time_ns"] // 1_000_000 for e in events if e["kind"] == "finish"},
                recomputed)

    def test_it_is_listed(self):
        rows = json.loads(self.pagedkv("policies", "--json"))
        choices = [row["name"] for row in rows if row["choice"] == "preempt"]
        self.assertEqual((choices[0], choices[-1]), ("newest", "shortest_prompt"))
        self.assertIn("shortest_prompt", self.pagedkv("--man", "scenario"))

    def test_it_decides(self):
        """In step 1 each wants one block more, from a on.

        newest: c goes, and its two blocks do for a and b, who end in step 3. c comes back in step
        4 with 9 tokens, 8 of them for the second time, and ends in step 6.

        shortest_prompt: b goes, and its block does for a; of a and c, whose prompts are as long, c
        is the later and gives itself up. Two blocks are free and c needs three. Both come back in
        step 4, when a has ended, and end in step 6; 4 and 8 tokens are computed again.
        """
        self.assertEqual(self.run_with("scheduler: {preset: vllm}"),
                         ([(1, "c", "a")], {"a": 4, "b": 4, "c": 7}, 8))
        self.assertEqual(self.run_with(self.scheduler),
                         ([(1, "b", "a"), (1, "c", "c")], {"a": 4, "b": 7, "c": 7}, 4 + 8))

    def test_the_commands_of_the_text(self):
        self.assertEqual([command.split()[1] for command in self.commands],
                         ["policies", "run", "compare"])
        for command in self.commands:
            said = self.call(*command.split())
            self.assertIn("shortest_prompt", said)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    SOURCE_ROOT = sys.argv.pop(1)
    tap.main(__name__)
