#!/usr/bin/env python3
"""How the Python module is called: arguments that are wrong, texts, folders of several runs, copies,
threads, interruptions, a Python without NumPy.

usage: test_python_use.py PROGRAM SOURCE_ROOT LIBRARY
"""
import concurrent.futures
import copy
import gc
import importlib.util
import io
import json
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
from unittest import mock

import tap
from program import FILES, ProgramCase, begin_again

try:
    import numpy as np
except ImportError:
    tap.skip_all("no NumPy here (python3-numpy)")

SOURCE_ROOT = LIBRARY = pagedkv = None      # set by main

SMALL = {
    "kv": {"block_size": 4, "num_blocks": 8},
    "step_time": {"model": "fixed", "ms": 1},
    "traffic": {"requests": 5, "arrivals": {"law": "poisson", "rate_per_s": 500}, "prompt_tokens": 6,
                "output_tokens": 4},
}
ENDLESS = """\
kv: {num_blocks: 500}
step_time: {model: fixed, ms: 1}
traffic:
  requests: 4000000000
  arrivals: {law: poisson, rate_per_s: 20}
  prompt_tokens: {law: uniform, min: 4, max: 400}
  output_tokens: {law: uniform, min: 1, max: 40}
"""
ROW = '{"timestamp": 0, "input_length": 8, "output_length": 6}\n'


def has_matplotlib():
    return importlib.util.find_spec("matplotlib") is not None


class Case(ProgramCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def refuses(self, kind, said, call, *args, **kwargs):
        """It raises this kind of error, in a sentence that has each of the words in it."""
        with self.assertRaises(kind) as caught:
            call(*args, **kwargs)
        for word in said:
            self.assertIn(word, str(caught.exception))
        self.assertIs(type(caught.exception), kind)
        return caught.exception

    def tree(self, folder="."):
        return sorted(os.path.relpath(os.path.join(at, name), folder)
                      for at, _, names in os.walk(folder) for name in names)


class Arguments(Case):
    def test_every(self):
        """As --every: whole numbers from 1 to 2**64 - 1."""
        whole = len(pagedkv.run(SMALL).steps["step"])
        self.assertGreater(whole, 6)
        for every, rows in ((1, whole), (np.int64(4), (whole + 3) // 4), (2**64 - 1, 1)):
            self.assertEqual(len(pagedkv.run(SMALL, every=every).steps["step"]), rows)
        for every in (0, -1, 2**64, 2**64 + 1):
            self.refuses(ValueError, ["every", str(every), str(2**64 - 1)], pagedkv.run, SMALL, every=every)
        for every in (2.0, "3", None, [1]):
            self.refuses(TypeError, ["every", "whole number", repr(every)], pagedkv.run, SMALL, every=every)

    def test_files(self):
        few = ["scenario.yaml", "steps.csv"]
        for number, files in enumerate((["steps", "scenario"], ("scenario", "steps"), "steps,scenario",
                                        {"steps", "scenario"}, iter(["steps", "scenario"]))):
            pagedkv.run(SMALL, out=f"few{number}", files=files)
            self.assertEqual(self.tree(f"few{number}"), few)
        pagedkv.run(SMALL, out="one", files="summary", events=True)
        self.assertEqual(self.tree("one"), ["events.jsonl", "summary.json"])
        before = self.tree()
        self.refuses(ValueError, ["files", "'step'", "'steps'"], pagedkv.run, SMALL, out="o", files=["step"])
        self.refuses(ValueError, ["files", "''", "summary"], pagedkv.run, SMALL, out="o", files="steps,")
        self.refuses(ValueError, ["files", "3"], pagedkv.run, SMALL, out="o", files=[3])
        self.refuses(ValueError, ["files", "[]"], pagedkv.run, SMALL, out="o", files=[[]])
        self.refuses(ValueError, ["files", "none"], pagedkv.run, SMALL, out="o", files=[])
        self.refuses(TypeError, ["files", "int"], pagedkv.run, SMALL, out="o", files=3)
        self.assertEqual(self.tree(), before)
        self.assertFalse(os.path.exists("o"))

    def test_files_want_a_folder(self):
        """As --files wants -o."""
        self.assertIn("--files", self.call("run", "x.yaml", "--files", "steps").stderr)
        for options in ({}, {"events": True}):
            self.refuses(ValueError, ["files", "out"], pagedkv.run, SMALL, files=["steps"], **options)

    def test_settings(self):
        for settings, name in ((["kv.num_blocks=3"], "list"), ("kv.num_blocks=3", "str"), ([], "list"),
                               (3, "int")):
            self.refuses(TypeError, ["settings", "dict", name], pagedkv.run, SMALL, settings)
            self.refuses(TypeError, ["settings", "dict", name], pagedkv.compare, SMALL,
                         {"kv.num_blocks": [8]}, settings)
            self.refuses(TypeError, ["settings", "dict", name], pagedkv.replay, "t.jsonl", settings,
                         num_blocks=8)
        self.refuses(TypeError, ["settings", "key", "3"], pagedkv.run, SMALL, {3: 3})
        for value in (object(), b"text", {"a", "b"}, 1j):
            name = type(value).__name__
            self.refuses(TypeError, ["kv.num_blocks", name], pagedkv.run, SMALL, {"kv.num_blocks": value})
            self.refuses(TypeError, [name], pagedkv.run, {**SMALL, "title": value})
        self.assertEqual(pagedkv.run(SMALL, None).summary["blocks"]["num_blocks"], 8)
        run = pagedkv.run(SMALL, {"kv.num_blocks": np.array(9)})
        self.assertEqual(run.summary["blocks"]["num_blocks"], 9)

    def test_vary(self):
        for vary in (["kv.num_blocks"], "kv.num_blocks", None):
            self.refuses(TypeError, ["vary", "dict", type(vary).__name__], pagedkv.compare, SMALL, vary)
        for value in (512, "newest", None, {"a": 1}, b"12", {8, 9}):
            self.refuses(TypeError, ["vary", "scheduler.preempt", "list", type(value).__name__],
                         pagedkv.compare, SMALL, {"kv.num_blocks": [8], "scheduler.preempt": value})
        self.refuses(ValueError, ["vary", "kv.num_blocks", "empty"], pagedkv.compare, SMALL,
                     {"kv.num_blocks": []})
        self.refuses(TypeError, ["vary", "key", "3"], pagedkv.compare, SMALL, {3: [3]})
        for values in ((8, 9), range(8, 10), np.array([8, 9]), iter([8, 9])):
            runs = pagedkv.compare(SMALL, {"kv.num_blocks": values})
            self.assertEqual([run.summary["blocks"]["num_blocks"] for run in runs], [8, 9])

    def test_jobs(self):
        for jobs in (0, -1):
            self.refuses(ValueError, ["jobs", str(jobs)], pagedkv.compare, SMALL, {"kv.num_blocks": [8]},
                         jobs=jobs)
        for jobs in (2.5, "2"):
            self.refuses(TypeError, ["jobs", "whole number"], pagedkv.compare, SMALL,
                         {"kv.num_blocks": [8]}, jobs=jobs)
        for jobs in (None, 1, np.int64(2), 10**30):
            self.assertEqual(len(pagedkv.compare(SMALL, {"kv.num_blocks": [8, 9]}, jobs=jobs)), 2)

    def test_keywords(self):
        self.refuses(TypeError, ["run()", "'evry'", "'every'"], pagedkv.run, SMALL, evry=3)
        self.refuses(TypeError, ["compare()", "'job'", "'jobs'"], pagedkv.compare, SMALL,
                     {"kv.num_blocks": [8]}, job=3)
        self.refuses(TypeError, ["replay()", "'num_bloks'", "'num_blocks'"], pagedkv.replay, "t.jsonl",
                     num_bloks=3)

    def test_paths(self):
        self.write("s.yaml", "kv: {num_blocks: 8, block_size: 4}\nstep_time: fixed:1\n"
                             "traffic: {trace: t.jsonl}\n")
        self.write("t.jsonl", ROW)
        self.write("'t'.jsonl", ROW)
        for scenario in ("s.yaml", b"s.yaml", pathlib.Path("s.yaml")):
            self.assertEqual(pagedkv.run(scenario).outcome, "done")
        for trace in ("'t'.jsonl", b"'t'.jsonl", pathlib.Path("'t'.jsonl")):
            self.assertEqual(pagedkv.replay(trace, num_blocks=8).summary["requests"]["completed"], 1)
        for out in ("a", b"b", pathlib.Path("c")):
            pagedkv.run("s.yaml", out=out)
            self.assertEqual(self.tree(out if isinstance(out, str) else os.fsdecode(out)), sorted(FILES))
        for value in (5, ["s.yaml"], 1.5):
            name = type(value).__name__
            self.refuses(TypeError, ["scenario", "path", "dict", name], pagedkv.run, value)
            self.refuses(TypeError, ["trace", "path", name], pagedkv.replay, value, num_blocks=8)
            self.refuses(TypeError, ["out", "path", name], pagedkv.run, "s.yaml", out=value)
        self.refuses(TypeError, ["trace", "path", "NoneType"], pagedkv.replay, None, num_blocks=8)
        for call, what in ((lambda text: pagedkv.run(text), "scenario"),
                           (lambda text: pagedkv.replay(text, num_blocks=8), "trace"),
                           (lambda text: pagedkv.run("s.yaml", out=text), "out")):
            self.refuses(ValueError, [what, "empty"], call, "")
            self.refuses(ValueError, ["NUL"], call, "a\0b")

    def test_a_wrong_call_makes_no_folder(self):
        wrong = {**SMALL, "traffic": {"requests": "many"}}
        os.mkdir("old")
        for out in ("new", os.path.join("x", "y", "z"), "old"):
            self.refuses(pagedkv.Error, ["many"], pagedkv.run, wrong, out=out)
            self.refuses(pagedkv.Error, ["many"], pagedkv.compare, wrong, {"kv.num_blocks": [8, 9]}, out=out)
        self.assertEqual(os.listdir("."), ["old"])


# What YAML takes for something else than a text, or ends a text at, and signs that JSON writes as they are.
TEXTS = [
    *"""null Null NULL ~ true True false yes no on off y 1 -1 +1 1.5 .5 1e3 0x1f 0o17 012 1_000 .inf -.inf .nan
    2001-01-01 1:30 - -a ? : :a a: a:b a::b # #b a#b & &a * *a ! !a !!str % %a @ @a ` `a | > |- >- ' " 'a' "a"
    'a "a a' '' "" [ ] { } [a] {a} [a {a a] a} , ,a a,b << = . .. ... --- --a \\ \\n \\u0041 $a ~a 40GiB 1ms a/b
    ./a""".split(),
    "a: b", "a :b", "a #b", "- a", "? a", ": a", "--- a", "!!str a", "a, b", "[a, b]", "{a: b}", " a", "a ",
    "null ", " null", "a\nb", "a\n", "\n", "a\r\nb", "a\tb", "\t", "a\x01b", "a\x1bb", "a\x7fb", "a\x80b",
    "a\x85b", "a\xa0b", "a\u2028b", "a\u2029b", "a\ufeffb", "\ufeff", "caf\u00e9", "\U0001f600",
]


class Texts(Case):
    """A text in a dict is that text, whatever YAML would make of it."""

    @staticmethod
    def resolved(run, key):
        """The value of a key on the outermost level of scenario.yaml, which writes texts as JSON does."""
        line, = [line for line in run.scenario_yaml.split("\n") if line.startswith(key + ": ")]
        return json.loads(line.split(": ", 1)[1])

    def test_titles(self):
        for text in TEXTS:
            with self.subTest(repr(text)):
                run = pagedkv.run({**SMALL, "title": text})
                self.assertEqual(self.resolved(run, "title"), text)

    def test_inside(self):
        """In a list of maps: the names of tenants come out in requests.csv."""
        for text in TEXTS:
            with self.subTest(repr(text)):
                tenants = [{"name": text, "weight": 1}]
                run = pagedkv.run({**SMALL, "traffic": {**SMALL["traffic"], "tenants": tenants}})
                self.assertEqual(run.requests["tenant"].tolist(), [text] * 5)

    def test_null(self):
        """None is no value; the word of four letters is a text, which no number is."""
        pool = {"block_size": 4, "num_blocks": 8}
        self.refuses(pagedkv.Error, ["kv.num_blocks", "no value"], pagedkv.run,
                     {**SMALL, "kv": {**pool, "num_blocks": None}})
        self.refuses(pagedkv.Error, ["kv.num_blocks", "text"], pagedkv.run,
                     {**SMALL, "kv": {**pool, "num_blocks": "null"}})

    def test_quantities(self):
        """A word may be a number with its unit, or a switch."""
        said = {"kv": {"block_size": "4", "num_blocks": 8, "prefix_cache": "false"}, "step_time": "fixed:2.5ms"}
        run = pagedkv.run({**SMALL, **said})
        self.assertEqual(set(run.steps["dur_ns"].tolist()), {2_500_000})
        self.assertEqual(run.summary["blocks"]["block_size"], 4)
        self.assertEqual(run.summary["tokens"]["queried"], 0)

    def test_no_text(self):
        for text in ("\ud800", "a\udfff"):
            self.refuses(ValueError, ["surrogate", "title"], pagedkv.run, {**SMALL, "title": text})
        self.refuses(ValueError, ["surrogate"], pagedkv.run, SMALL, {"title": "\ud800"})


class Folders(Case):
    """compare(out=): each combination has a folder of its own there, named after what it varies."""

    def test_each_has_its_own(self):
        vary = {"kv.num_blocks": [8, 12], "traffic.seed": [1, 2]}
        runs = pagedkv.compare(SMALL, vary, out="grid", jobs=4)
        self.assertEqual([run.out for run in runs],
                         [os.path.join("grid", f"kv.num_blocks={blocks},traffic.seed={seed}")
                          for blocks in (8, 12) for seed in (1, 2)])
        for run in runs:
            self.assertEqual(self.tree(run.out), sorted(FILES))
            self.assertEqual(self.summary(run.out), run.summary)
            self.assertEqual(int(self.summary(run.out)["blocks"]["num_blocks"]), run.varied["kv.num_blocks"])
            alone = pagedkv.run(SMALL, run.varied, out="alone")
            self.assertEqual(alone.out, "alone")
            self.assertEqual(self.read("alone", "steps.csv"), self.read(run.out, "steps.csv"))
        self.assertEqual(len(self.tree("grid")), 4 * len(FILES))
        self.assertIsNone(pagedkv.run(SMALL).out)
        self.assertIsNone(pagedkv.run(SMALL, events=True).out)

    def test_options_are_of_each(self):
        runs = pagedkv.compare(SMALL, {"kv.num_blocks": [8, 9, 10]}, out=pathlib.Path("a") / "b",
                               files=iter(["summary"]), events=True)
        for run in runs:
            self.assertEqual(self.tree(run.out), ["events.jsonl", "summary.json"])
            self.assertEqual(len(run.events), len(self.read(run.out, "events.jsonl").splitlines()))

    def names(self, vary):
        runs = pagedkv.compare(SMALL, vary, out="names", files=["summary"], steps=False)
        names = [os.path.relpath(run.out, "names") for run in runs]
        for run, name in zip(runs, names):
            self.assertEqual(self.summary(run.out), run.summary)
            self.assertNotIn("/", name)
            self.assertLess(len(os.fsencode(name)), 256)
        self.assertEqual(len(set(names)), len(runs))
        return names

    def test_names(self):
        self.assertEqual(self.names({}), ["."])
        self.assertEqual(self.names({"kv.prefix_cache": [True, np.bool_(False)]}),
                         ["kv.prefix_cache=true", "kv.prefix_cache=false"])
        steps = [{"model": "fixed", "ms": 1}, "fixed:2"]
        self.assertEqual(self.names({"step_time": steps}),
                         ["step_time=_model_fixed_ms_1_", "step_time=fixed_2"])
        # The same twice, also when it only looks so in a name.
        self.assertEqual(self.names({"kv.num_blocks": [8, 8]}), ["0-kv.num_blocks=8", "1-kv.num_blocks=8"])
        self.assertEqual(self.names({"title": ["a/b", "a:b", "c"]}), ["0-title=a_b", "1-title=a_b", "2-title=c"])
        self.assertEqual(len(self.names({"title": ["\u00e9" * 400, "\u00e9" * 401]})), 2)

    def test_an_earlier_folder_stays(self):
        os.mkdir("grid")
        self.write("grid/mine", "")
        pagedkv.compare(SMALL, {"kv.num_blocks": [8]}, out="grid", files=["summary"])
        self.refuses(pagedkv.Error, ["many"], pagedkv.compare, SMALL, {"kv.num_blocks": ["many"]},
                     out="grid")
        self.assertEqual(self.tree("grid"), ["kv.num_blocks=8/summary.json", "mine"])

    def test_no_folder_can_be_made(self):
        self.write("file", "")
        self.refuses(pagedkv.Error, ["file", "directory"], pagedkv.compare, SMALL, {"kv.num_blocks": [8, 9]},
                     out="file")


def copies(value):
    return copy.copy(value), copy.deepcopy(value), *(pickle.loads(pickle.dumps(value, protocol))
                                                     for protocol in range(pickle.HIGHEST_PROTOCOL + 1))


def in_another_process(seed):
    if seed == 0:
        return pagedkv.run(SMALL, {"kv.num_blocks": "many"})
    return pagedkv.run(SMALL, {"traffic.seed": seed}, extra=True, events=True)


class Copies(Case):
    WHOLE = {"extra": True, "gaps": True, "events": True}

    def assert_same(self, copied, run):
        for name in ("summary_json", "summary", "scenario_yaml", "diagnosis", "outcome", "events", "settings",
                     "varied", "out"):
            self.assertEqual(getattr(copied, name), getattr(run, name))
        for name in ("steps", "requests", "extra", "gaps"):
            ours, theirs = getattr(copied, name), getattr(run, name)
            self.assertEqual(list(ours), list(theirs))
            for column, values in theirs.items():
                self.assertEqual((ours[column].tolist(), ours[column].dtype), (values.tolist(), values.dtype))
                self.assertIs(type(ours[column]), type(values))
        self.assertEqual(repr(copied), repr(run))

    def test_a_run(self):
        # Without requests, with those nobody has looked at, with those that were.
        for look, options in ((False, {"requests": False}), (False, self.WHOLE), (True, self.WHOLE)):
            run, = pagedkv.compare(SMALL, {"kv.num_blocks": [4]}, {"kv.prefix_cache": False}, **options)
            expected = pagedkv.run(SMALL, {"kv.num_blocks": 4, "kv.prefix_cache": False}, **options)
            expected.varied, expected.summary_json = run.varied, run.summary_json
            expected.summary = run.summary
            if look:
                self.assertGreater(len(run.requests), 0)
            for copied in copies(run):
                self.assert_same(copied, expected)
        self.assertGreater(int(expected.requests["preemptions"].sum()), 0)

    def test_a_copy_stands_alone(self):
        run = pagedkv.run(SMALL)
        free, finish = run.steps["free_blocks"].tolist(), run.requests["finish_ns"].tolist()
        for copied in copies(run)[1:]:      # the first one shares the arrays
            for ours, theirs in ((copied.steps, run.steps), (copied.requests, run.requests)):
                self.assertFalse(any(np.shares_memory(ours[name], theirs[name]) for name in theirs
                                     if theirs[name].dtype == np.int64))
        shared, deep = copy.copy(run), copy.deepcopy(run)
        deep.steps["time_ns"][:] = -1
        del run, copied
        gc.collect()
        pagedkv.run(SMALL, {"kv.num_blocks": 4})
        for left in (shared, deep):
            self.assertEqual(left.steps["free_blocks"].tolist(), free)
            self.assertEqual(left.requests["finish_ns"].tolist(), finish)

    def test_an_error(self):
        error = self.refuses(pagedkv.Error, ["'many'"], pagedkv.run, "kv:\n  num_blocks: many\n")
        self.assertEqual((error.line, error.column), (2, 15))
        for copied in copies(error):
            self.assertIs(type(copied), pagedkv.Error)
            self.assertEqual((str(copied), copied.code, copied.path, copied.line, copied.column, copied.text),
                             (str(error), "input", "<text>", 2, 15, error.text))

    def test_other_processes(self):
        """Runs and errors come back from them."""
        expected = [pagedkv.run(SMALL, {"traffic.seed": seed}) for seed in (1, 2, 3)]
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            for run, alone in zip(pool.map(in_another_process, (1, 2, 3)), expected):
                for name, values in alone.steps.items():
                    self.assertEqual(run.steps[name].tolist(), values.tolist())
            error = pool.submit(in_another_process, 0).exception(timeout=60)
        self.assertIsInstance(error, pagedkv.Error)
        self.assertEqual(error.path, "settings")

    def test_nothing_is_said(self):
        """No exception that Python can only print, as one in a __del__."""
        said, theirs = io.StringIO(), sys.stderr
        sys.stderr = said
        try:
            sim = pagedkv.run(SMALL)._sim
            for call in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaises(TypeError):
                    call(sim)
            copies(pagedkv.run(SMALL))
            del sim
            gc.collect()
        finally:
            sys.stderr = theirs
        self.assertEqual(said.getvalue(), "")


class Closed(Case):
    """The library's run after its memory is gone: an error, never a look at that memory."""

    def test_every_call(self):
        run = pagedkv.run(SMALL, extra=True)
        sim = run._sim
        run.steps = run.extra = None
        sim.close()
        sim.close()
        sim.stop()
        sim.has_run = False
        for call in (sim.go, lambda: run.requests, lambda: pagedkv.Run(sim, (True,) * 4, None),
                     lambda: pagedkv._columns(sim, 0), lambda: pagedkv._texts(sim)):
            self.refuses(ValueError, ["closed"], call)
        # A copy wants the requests, which nobody had looked at.
        self.refuses(ValueError, ["closed"], copy.copy, run)

    def test_no_run_runs_twice(self):
        run = pagedkv.run(SMALL)
        self.refuses(ValueError, ["has run"], run._sim.go)
        self.assertEqual(len(run.requests["id"]), 5)

    def test_before_it_begins(self):
        sim = pagedkv._Sim()
        self.refuses(ValueError, ["closed"], lambda: sim.address)
        self.refuses(ValueError, ["closed"], sim.go)
        sim.stop()
        sim.close()


class Interrupts(Case):
    """Whatever ends the wait for a run ends the run, and no thread is left."""

    def tearDown(self):
        deadline = time.monotonic() + 60
        while threading.active_count() > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(threading.enumerate(), [threading.main_thread()])

    def after(self, seconds, call, *args):
        timer = threading.Timer(seconds, call, args)
        timer.start()
        self.addCleanup(timer.join)

    def test_files_of_what_was_done(self):
        self.after(0.5, os.kill, os.getpid(), signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt) as caught:
            pagedkv.run(ENDLESS, out="out", files="steps,summary", events=True)
        run = caught.exception.run
        self.assertEqual((run.outcome, self.summary("out")["outcome"]), ("interrupted", "interrupted"))
        rows = self.rows("out", "steps.csv")
        self.assertGreater(len(rows), 0)
        self.assertEqual([int(row["free_blocks"]) for row in rows], run.steps["free_blocks"].tolist())
        self.assertEqual(sum(event["kind"] == "arrive" for event in run.events),
                         run.summary["requests"]["arrived"])

    def test_a_handler_that_raises(self):
        """As a time limit in a notebook does."""
        def handler(_signal, _frame):
            raise TimeoutError("enough")
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, handler))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        caught = self.refuses(TimeoutError, ["enough"], pagedkv.run, ENDLESS, events=True)
        self.assertEqual(caught.run.outcome, "interrupted")
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        self.refuses(TimeoutError, ["enough"], pagedkv.compare, ENDLESS, {"traffic.seed": range(4)},
                     steps=False, jobs=2)

    def test_before_the_wait_begins(self):
        start = threading.Thread.start

        def started_and_interrupted(thread):
            start(thread)
            raise KeyboardInterrupt

        def interrupted(_thread):
            raise KeyboardInterrupt

        for instead in (started_and_interrupted, interrupted):
            with mock.patch.object(threading.Thread, "start", instead), self.assertRaises(KeyboardInterrupt):
                pagedkv.run(ENDLESS, steps=False)

    def test_while_tasks_are_handed_out(self):
        submit, calls = concurrent.futures.ThreadPoolExecutor.submit, []

        def interrupted(*args):
            calls.append(args)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return submit(*args)

        with (mock.patch.object(concurrent.futures.ThreadPoolExecutor, "submit", interrupted),
              self.assertRaises(KeyboardInterrupt)):
            pagedkv.compare(ENDLESS, {"traffic.seed": range(4)}, steps=False, jobs=2)

    def test_at_any_time(self):
        """Ctrl-C, once or twice, at whatever it is doing, ends the program soon, and as Python does it."""
        calls = {"run": "pagedkv.run(endless, events=True)",
                 "out": "pagedkv.run(endless, out='out', every=100)",
                 "compare": "pagedkv.compare(endless, {'traffic.seed': range(6)}, jobs=2, steps=False)"}
        for name, call in calls.items():
            for number, delay in enumerate((0.0, 0.001, 0.01, 0.05, 0.2)):
                with self.subTest(f"{name} {delay}"):
                    self.interrupt_program(call, delay, 1 + number % 2)

    def interrupt_program(self, call, delay, times):
        code = (f"import pagedkv, sys\nendless = {ENDLESS!r}\n"
                f"sys.stdout.write('.'); sys.stdout.flush()\n{call}")
        with subprocess.Popen([sys.executable, "-c", code], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            program.stdout.read(1)
            for _ in range(times):
                time.sleep(delay)
                program.send_signal(signal.SIGINT)
            try:
                said = program.communicate(timeout=60)[1]
            except subprocess.TimeoutExpired:
                program.kill()
                raise
        self.assertEqual(program.returncode, -signal.SIGINT, said)
        self.assertIn("KeyboardInterrupt", said)
        self.assertNotIn("Fatal", said)


class Threads(Case):
    def test_others_go_on_meanwhile(self):
        """While one thread is in a long run the others run, and so does Python."""
        sim, ended = pagedkv._Sim(), threading.Event()
        options = pagedkv._options("run", {"steps": False, "requests": False})

        def work():
            pagedkv._run_here(sim, ENDLESS, [], **options)
            ended.set()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            first = pagedkv.run(SMALL).steps["free_blocks"].tolist()
            for _ in range(20):
                self.assertEqual(pagedkv.run(SMALL).steps["free_blocks"].tolist(), first)
            self.assertEqual(len(pagedkv.compare(SMALL, {"kv.num_blocks": range(8, 16)}, jobs=4)), 8)
            self.assertFalse(ended.is_set())
        finally:
            sim.stop()
            thread.join()
        self.assertTrue(ended.is_set())

    def test_many_at_once(self):
        """Runs that end, that get stuck, that are refused, from eight threads: each as when alone."""
        load = {**SMALL, "traffic": {**SMALL["traffic"], "requests": 200}}
        kinds = [{"traffic.seed": 1}, {"traffic.seed": 2, "kv.prefix_cache": False}, {"kv.num_blocks": "many"},
                 {"kv.num_blocks": 4, "scheduler.preempt": "never"}, {"traffic.seed": 3, "horizon": "20ms"}]

        def state(settings):
            try:
                run = pagedkv.run(load, settings, gaps=True, extra=True)
            except pagedkv.Error as error:
                return str(error)
            run.summary["wall_ns"] = 0
            tables = (run.steps, run.requests, run.gaps, run.extra)
            columns = [values.tolist() for table in tables for values in table.values()]
            return run.summary, run.diagnosis, columns

        alone = [state(settings) for settings in kinds]
        ends = [told if isinstance(told, str) else told[0]["outcome"] for told in alone]
        self.assertIn("'many'", ends.pop(2))
        self.assertEqual(ends, ["done", "done", "stuck", "horizon"])
        barrier = threading.Barrier(8)

        def work(first):
            barrier.wait()
            order = [number % len(kinds) for number in range(first, first + 20)]
            return [(kind, state(kinds[kind])) for kind in order]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for told in pool.map(work, range(8)):
                for kind, what in told:
                    self.assertEqual(what, alone[kind])


class Lacking(Case):
    """What is not installed is told in a sentence that says how to get it."""
    EXAMPLE = ("tools", "python", "example.py")

    def python(self, *args):
        return subprocess.run([sys.executable, *args], cwd=self.folder, check=False, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def last_line(self, *args):
        result = self.python(*args)
        self.assertEqual(result.returncode, 1)
        return result.stderr.rstrip("\n").split("\n")[-1]

    def check_sentence(self, said, package):
        for word in (package, sys.executable, "/usr/bin/python3"):
            self.assertIn(word, said)

    def test_no_numpy(self):
        # Without its site packages, and with one that is not there.
        for args in (("-S", "-c", "import pagedkv"),
                     ("-c", "import sys; sys.modules['numpy'] = None; import pagedkv")):
            said = self.last_line(*args)
            self.assertTrue(said.startswith("ImportError: pagedkv needs NumPy"), said)
            self.check_sentence(said, "python3-numpy")

    def test_a_broken_numpy(self):
        """What it says itself is more to the point."""
        os.mkdir("numpy")
        self.write("numpy/__init__.py", "import no_such_part\n")
        said = self.last_line("-c", "import sys; sys.path.insert(0, '.'); import pagedkv")
        self.assertIn("no_such_part", said)

    def test_no_pandas(self):
        for call in ("run.steps_frame()", "run.requests_frame()", "run.gaps_frame()", "pagedkv.table([run])"):
            said = self.last_line("-c", f"import sys; sys.modules['pandas'] = None; import pagedkv\n"
                                        f"run = pagedkv.run({SMALL!r}, gaps=True)\n{call}")
            self.assertTrue(said.startswith("ImportError: frames need pandas"), said)
            self.check_sentence(said, "python3-pandas")

    def example(self, *args):
        """One line on stderr, and nothing else."""
        code = ("import runpy, sys; sys.modules.update({sys.argv[1]: None} if sys.argv[1] else {})\n"
                "del sys.argv[0:2]; runpy.run_path(sys.argv[0], run_name='__main__')")
        result = self.python("-c", code, args[0], os.path.join(SOURCE_ROOT, *self.EXAMPLE), *args[1:])
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        said, rest = result.stderr.split("\n", 1)
        self.assertEqual(rest, "")
        self.assertTrue(said.startswith("example.py: "), said)
        return said

    def test_example(self):
        scenario = os.path.join(SOURCE_ROOT, "scenarios", "victims.yaml")
        self.check_sentence(self.example("matplotlib", scenario, "a.png"), "python3-matplotlib")
        self.check_sentence(self.example("numpy", scenario, "a.png"), "python3-numpy")
        if not has_matplotlib():
            self.skipTest("no matplotlib here")
        self.assertNotIn("matplotlib", self.example("numpy", scenario, "a.png"))
        self.assertIn("none.yaml: ", self.example("", "none.yaml", "a.png"))
        self.assertIn("kv.num_block", self.example("", scenario, "a.png", "kv.num_block=3"))
        self.assertIn("none/a.png", self.example("", scenario, "none/a.png"))
        self.assertIn("xyz", self.example("", scenario, "a.xyz"))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    ProgramCase.program, SOURCE_ROOT, LIBRARY = map(os.path.abspath, sys.argv[1:])
    begin_again(SOURCE_ROOT, LIBRARY)
    import pagedkv     # noqa: F811
    tap.main(__name__)
