"""What the tests of the program share: starting it in a folder of its own."""
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

FILES = ("steps.csv", "requests.csv", "events.jsonl", "summary.json", "scenario.yaml",
         "report.html", "cache.csv")

# Eight blocks of four tokens; step t is the step at t ms.
SCENARIO = """\
title: eight small blocks
kv:
  block_size: 4
  num_blocks: 8
scheduler:
  preset: vllm
step_time: {model: fixed, ms: 1}
traffic:
  trace: trace.jsonl
"""
TRACE = """\
{"id": "a", "timestamp": 0, "input_length": 8, "output_length": 6}
{"id": "b", "timestamp": 1, "input_length": 8, "output_length": 6}
{"id": "c", "timestamp": 2, "input_length": 16, "output_length": 2}
"""


def loading(library):
    """What a Python has to have in its environment to load it: a library with the address sanitizer in it
    wants that loaded before all else."""
    needs = subprocess.run(["ldd", library], check=True, text=True, stdout=subprocess.PIPE).stdout
    runtimes = re.findall(r"=> (\S*libasan\S*)", needs)
    if not runtimes:
        return {}
    # Python leaves much behind at its end; memory given back is to be given back.
    options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0:quarantine_size_mb=1"
    return {"LD_PRELOAD": ":".join(runtimes), "ASAN_OPTIONS": options}


def begin_again(source_root, library):
    """In an environment in which the Python module finds this library, and the library what it wants."""
    if os.environ.get("PAGEDKV_LIBRARY") == library:
        return
    module = os.path.join(source_root, "tools", "python")
    os.execve(sys.executable, [sys.executable, *sys.argv],
              {**os.environ, **loading(library), "PAGEDKV_LIBRARY": library, "PYTHONPATH": module})


class ProgramCase(unittest.TestCase):
    program = None      # set by main
    timeout = 120

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pagedkv-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content):
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(self.path(name), mode) as file:
            file.write(content)

    def read(self, *names):
        with open(self.path(*names), "rb") as file:
            return file.read()

    def rows(self, *names):
        with open(self.path(*names), newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def summary(self, *names):
        with open(self.path(*names, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def small(self):
        self.write("scenario.yaml", SCENARIO)
        self.write("trace.jsonl", TRACE)

    def call(self, *args, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([self.program, *args], cwd=self.folder, capture_output=True,
                              text=True, errors="replace", timeout=self.timeout, check=False,
                              **kwargs)

    def done(self, *args, **kwargs):
        result = self.call(*args, **kwargs)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def same_contents(self, one, other):
        """Two runs left the same; of a page that differs no text is shown, it would take minutes."""
        left, right = self.contents(one), self.contents(other)
        self.assertEqual(sorted(left), sorted(right))
        self.assertEqual([name for name in left if left[name] != right[name]], [])

    def contents(self, *names):
        """The files of a run, without the one number that may differ."""
        files = {name: self.read(*names, name) for name in sorted(os.listdir(self.path(*names)))}
        if "summary.json" in files:
            summary = json.loads(files["summary.json"])
            self.assertGreater(summary.pop("wall_ns"), 0)
            files["summary.json"] = json.dumps(summary)
        if "report.html" in files:
            files["report.html"], num = re.subn(rb'"wall_ns": \d+', b"", files["report.html"])
            self.assertGreater(num, 0)
        return files
