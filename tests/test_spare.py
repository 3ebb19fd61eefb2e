#!/usr/bin/env python3
"""No command writes over a file that it reads, whatever name it is given for it.

usage: test_spare.py PROGRAM
"""
import json
import os
import sys

import tap
from program import FILES, TRACE, ProgramCase

MADE = """\
kv: {block_size: 4, num_blocks: 8}
traffic:
  requests: 3
  arrivals: {law: at_once}
  prompt_tokens: {law: empirical, trace: trace.jsonl}
  output_tokens: 2
"""


class Spare(ProgramCase):
    def expect_refused(self, *args, name, stdin=None):
        """Every file is what it was, and there is none besides."""
        before = {each: self.read(each) for each in os.listdir(self.folder)}
        options = {} if stdin is None else {"stdin": stdin}
        result = self.call(*args, **options)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn(f"{name}: this would write over the input (", result.stderr)
        self.assertEqual({each: self.read(each) for each in os.listdir(self.folder)}, before)

    def links(self, name):
        """The name, other paths to it, and links of both kinds."""
        os.symlink(name, self.path("soft"))
        os.link(self.path(name), self.path("hard"))
        return name, "./" + name, self.path(name), "soft", "hard"

    def test_synth(self):
        self.small()
        for name in self.links("trace.jsonl"):
            self.expect_refused("synth", "from", "trace.jsonl", "-o", name, name=name)
        self.done("synth", "from", "trace.jsonl", "-o", "other.jsonl")

    def test_convert(self):
        self.small()
        for name in self.links("trace.jsonl"):
            self.expect_refused("trace", "convert", "trace.jsonl", "--to", "azure", "-o", name, name=name)
        with open(self.path("trace.jsonl"), "rb") as file:
            self.expect_refused("trace", "convert", "-", "--to", "azure", "-o", "trace.jsonl",
                                name="trace.jsonl", stdin=file)
        self.done("trace", "convert", "trace.jsonl", "--to", "azure", "-o", "other.csv")

    def test_the_file_written_beside(self):
        """A writer of out.jsonl takes out.jsonl.partial over, as one that a killed writer left."""
        self.write("out.jsonl.partial", TRACE)
        for args in (("synth", "from", "out.jsonl.partial"),
                     ("trace", "convert", "out.jsonl.partial", "--to", "native")):
            self.expect_refused(*args, "-o", "out.jsonl", name="out.jsonl")

    def test_devices_are_no_files(self):
        self.small()
        self.done("trace", "convert", "trace.jsonl", "--to", "azure", "-o", "/dev/null")
        result = self.call("trace", "convert", "/dev/null", "--to", "azure", "-o", "/dev/null")
        self.assertNotIn("write over", result.stderr)

    def test_gen(self):
        self.write("made.yaml", MADE)
        self.write("trace.jsonl", TRACE)
        for name in ("made.yaml", "trace.jsonl"):
            self.expect_refused("gen", "made.yaml", "-o", name, name=name)
        self.done("gen", "made.yaml", "-o", "other.jsonl")

    def test_run_and_replay(self):
        """The scenario, or its trace, has the name of a file of the run and lies where that goes."""
        self.small()
        self.expect_refused("run", "scenario.yaml", "-o", ".", name="./scenario.yaml")
        self.done("run", "scenario.yaml", "-o", ".", "--files", "steps")
        os.remove(self.path("steps.csv"))
        for name in FILES[:4]:
            os.rename(self.path("trace.jsonl"), self.path(name))
            self.expect_refused("replay", name, "--format", "native", "--num-blocks", "8", "-o", ".",
                                name="./" + name)
            os.rename(self.path(name), self.path("trace.jsonl"))

    def test_compare(self):
        self.small()
        for name in ("compare.csv", "compare.json", "fairness.csv", "overlay.csv"):
            os.rename(self.path("scenario.yaml"), self.path(name))
            self.expect_refused("compare", name, "--vary", "kv.num_blocks=8,9", "-o", ".",
                                name="./" + name)
            os.rename(self.path(name), self.path("scenario.yaml"))

    def test_conform(self):
        """The log is refused before a step is compared."""
        self.write("config.json", json.dumps(
            {"name": "one", "block_size": 4, "num_blocks": 5, "max_num_seqs": 4,
             "max_num_batched_tokens": 64, "enable_prefix_caching": True,
             "enable_chunked_prefill": True, "policy": "fcfs", "long_prefill_token_threshold": 0,
             "watermark": 0.0, "reserve_full_isl": True, "max_model_len": 1024,
             "groups": [{"type": "full", "block_size": 4}], "spec": None, "async_scheduling": False,
             "log_blocks": True, "max_steps": 100, "stuck_steps": 3, "prefix_match_unit": None}))
        self.write("requests.jsonl", '{"id": "a", "arrival_step": 1, "prompt": [[7, 5]], '
                   '"max_tokens": 2}\n')
        self.write("steps.jsonl", '{"step": 0}\n')
        inputs = ("config.json", "requests.jsonl", "steps.jsonl")
        for name in inputs:
            self.expect_refused("conform", *inputs, "--emit", name, name=name)


if __name__ == "__main__":
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
