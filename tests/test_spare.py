#!/usr/bin/env python3
"""No command writes over a file that it reads, whatever name it is given for it, nor two texts to one place.

usage: test_spare.py PROGRAM
"""
import json
import os
import subprocess
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

    def expect_clash(self, *args, says, stdout=None):
        """Two outputs of one command in one place: nothing is written to either."""
        before = self.everything()
        result = subprocess.run([self.program, *args], cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                                stdout=stdout or subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                                check=False)
        self.assertEqual(result.returncode, 2, (args, result.stdout))
        self.assertIn(says, result.stderr)
        self.assertEqual(self.everything(), before)

    def everything(self):
        return {path: self.read(path) for folder, _, names in os.walk(self.folder)
                for path in (os.path.join(folder, name) for name in names)}

    def test_two_outputs_in_one_place(self):
        """By whatever names: other paths to it, folders that are links, a link to the file itself, and the
        file that is written beside it until the run is done."""
        self.small()
        os.mkdir(self.path("dir"))
        os.symlink("dir", self.path("to_dir"))
        self.write("dir/there.json", "of somebody")
        os.symlink("dir/there.json", self.path("soft"))
        says = "--perfetto and --openmetrics name the same file"
        for one, other in (("x.json", "./x.json"), ("dir/x.json", "to_dir/x.json"),
                           ("dir/../x.json", self.path("x.json")), ("soft", "dir/there.json"),
                           ("x.json.partial", "x.json"), ("x.json", "x.json.partial"),
                           ("out/new", "./out//new")):
            for flags in (("--perfetto", one, "--openmetrics", other),
                          ("--perfetto", other, "--openmetrics", one)):
                more = ("-o", "out") if one.startswith("out") else ()
                self.expect_clash("run", "scenario.yaml", *flags, *more, says=says)
        self.assertFalse(os.path.exists(self.path("out")))
        self.done("run", "scenario.yaml", "--perfetto", "x.json", "--openmetrics", "dir/x.json")
        self.done("run", "scenario.yaml", "--perfetto", "/dev/null", "--openmetrics", "/dev/null")

    def test_an_output_among_those_of_the_folder(self):
        self.small()
        os.mkdir(self.path("out"))
        os.symlink("out", self.path("to_out"))
        self.write("elsewhere", "of somebody")
        os.symlink("../elsewhere", self.path("out", "steps.csv"))
        for flag in ("--perfetto", "--openmetrics"):
            for path in ("to_out/report.html", "out/summary.json.partial", "elsewhere"):
                self.expect_clash("run", "scenario.yaml", "-o", "out", flag, path,
                                  says=f"{flag}: {path} is a file that the run writes as well; name another")

    def test_the_folder_of_a_warm_cache(self):
        """No file of the run that left it is replaced by one of another kind."""
        self.small()
        self.done("run", "scenario.yaml", "-q", "-o", "w")
        os.symlink("w", self.path("link"))
        for flag in ("--perfetto", "--openmetrics"):
            for name in FILES:
                for path in (f"w/{name}", f"link/../w/./{name}", self.path("w", name)):
                    self.expect_clash("run", "scenario.yaml", "--warm", "link", flag, path, says=path + ": ")
        self.done("run", "scenario.yaml", "-q", "--warm", "w", "--openmetrics", "w/scrapes.txt")

    def test_standard_output_is_an_output(self):
        """The summary goes there."""
        self.small()
        for flag in ("--perfetto", "--openmetrics"):
            for path in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
                self.expect_clash("run", "scenario.yaml", flag, path,
                                  says=f"{flag} {path} writes to standard output, where the summary goes: "
                                  "add --quiet")
            with open(self.path("shown"), "wb") as file:
                self.expect_clash("run", "scenario.yaml", flag, "./shown", stdout=file,
                                  says=f"{flag} ./shown writes to standard output")
        with open(self.path("shown"), "wb") as file:
            self.expect_clash("run", "scenario.yaml", "-q", "--perfetto", "-", "--openmetrics",
                              "/dev/stdout", stdout=file, says="name the same file")
        os.mkdir(self.path("out"))
        with open(self.path("out", "steps.csv"), "wb") as file:
            self.expect_clash("run", "scenario.yaml", "-o", "out", stdout=file,
                              says="standard output: out/steps.csv is a file that the run writes as well")
        self.write("trace.jsonl", TRACE)
        for path in ("-", "/dev/stdout"):
            self.expect_clash("synth", "from", "trace.jsonl", "-o", path, says="-o TRACE is missing")
        with open(self.path("shown"), "wb") as file:
            self.expect_clash("synth", "from", "trace.jsonl", "-o", "shown", stdout=file,
                              says="-o TRACE is missing")

    def test_a_descriptor_by_its_name(self):
        """/dev/stdout is what the shell made of it, a file too: it is written to and never replaced."""
        self.small()
        self.done("run", "scenario.yaml", "-q", "--perfetto", "t.json", "--openmetrics", "m.txt")
        self.done("trace", "convert", "trace.jsonl", "--to", "azure", "-o", "a.csv")
        for path in ("/proc/self/fd/1", "/dev/fd/1", "/dev/stdout"):
            for args, name in ((("run", "scenario.yaml", "-q", "--perfetto", path), "t.json"),
                               (("run", "scenario.yaml", "-q", "--openmetrics", path), "m.txt"),
                               (("trace", "convert", "trace.jsonl", "--to", "azure", "-o", path), "a.csv")):
                with open(self.path("got"), "w+b") as file:
                    file.write(b"before\n")
                    file.flush()
                    result = subprocess.run([self.program, *args], cwd=self.folder, stdout=file,
                                            stderr=subprocess.PIPE, check=False)
                    self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(self.read("got"), b"before\n" + self.read(name))
                result = subprocess.run([self.program, *args], cwd=self.folder, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, check=True)
                self.assertEqual(result.stdout, self.read(name))
                self.assertTrue(os.path.islink("/dev/stdout"))
        read_end, write_end = os.pipe()
        self.done("run", "scenario.yaml", "--openmetrics", f"/dev/fd/{write_end}", pass_fds=(write_end,))
        os.close(write_end)
        with open(read_end, "rb") as file:
            self.assertEqual(file.read(), self.read("m.txt"))
        self.write("read", "something")
        for path in ("/dev/fd/99", "/dev/fd/0", "/dev/fd/x"):
            with open(self.path("read"), "rb") as file:
                result = self.call("run", "scenario.yaml", "-q", "--openmetrics", path, stdin=file)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"{path}: cannot be written: ", result.stderr)

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
