#!/usr/bin/env python3
"""--step from outside: commands through a pipe, what each goes on to, and that nothing else changes.

usage: test_step.py PROGRAM SOURCE_ROOT
"""
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import tap
from program import FILES, ProgramCase

SOURCE_ROOT = None      # set by main

# Four blocks of two tokens. b is given up for a in step 2, refused for want of blocks in step 3 and
# let in again in step 4 (worked out in test_stepper.c); c comes when both have gone.
RIVALS = """\
kv: {block_size: 2, num_blocks: 4, prefix_cache: false}
step_time: {model: fixed, ms: 1}
traffic: {trace: trace.jsonl}
"""
TRACE = """\
{"id": "a", "timestamp": 0, "input_length": 3, "output_length": 4}
{"id": "b", "timestamp": 0, "input_length": 3, "output_length": 3}
{"id": "c", "timestamp": 9, "input_length": 3, "output_length": 1}
"""
LAST_STEP = 5           # steps are numbered as they are taken: 0..4, and c's


class StepCase(ProgramCase):
    def setUp(self):
        super().setUp()
        self.write("scenario.yaml", RIVALS)
        self.write("trace.jsonl", TRACE)

    def step(self, commands, *flags, code=0, command=("run", "scenario.yaml")):
        result = self.call(*command, "--step", *flags, stdin=None, input=commands)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def pages(self, commands, **kwargs):
        """The numbers of the steps shown."""
        out = self.step(commands, **kwargs).stdout
        return [int(number) for number in re.findall(r"^Step (\d+) at ", out, re.M)]

    def complaint(self, commands, says):
        """One is made, and the run goes on behind it."""
        result = self.step(commands)
        self.assertRegex(result.stderr, says)
        self.assertEqual(result.stdout.count("\nStep "), 1)
        self.assertIn("3 arrived, 3 completed", result.stdout)


class Commands(StepCase):
    def test_end_of_input(self):
        """One page, then the run as ever."""
        out = self.step("").stdout
        self.assertTrue(out.startswith("\nStep 0 at 0 ms for 1 ms: 6 tokens, 6 prefill, 0 decode\n"))
        plain = self.done("run", "scenario.yaml").stdout
        self.assertTrue(out.endswith(plain), out)
        self.assertEqual(out.count("\nStep "), 1)

    def test_next(self):
        self.assertEqual(self.pages("\n" * 3), [0, 1, 2, 3])
        self.assertEqual(self.pages("\n" * 50), list(range(LAST_STEP + 1)))
        self.assertEqual(self.pages("\n  \n\t\n\r\n"), [0, 1, 2, 3, 4])

    def test_last_line_without_newline(self):
        self.assertEqual(self.pages("2"), [0, 2])

    def test_number(self):
        self.assertEqual(self.pages("3\n1\n"), [0, 3, 4])
        self.assertEqual(self.pages("100\n"), [0])
        self.assertEqual(self.pages("18446744073709551615\n"), [0])

    def test_goto(self):
        self.assertEqual(self.pages("g 2\nstep 4\n\n"), [0, 2, 4, 5])

    def test_events(self):
        self.assertEqual(self.pages("p\np\n"), [0, 2])
        self.assertEqual(self.pages("a\na\na\n"), [0, 4, 5])
        self.assertEqual(self.pages("b\nb\n"), [0, 3])

    def test_continue(self):
        self.assertEqual(self.pages("\nc\n\n\n"), [0, 1])

    def test_one_request(self):
        """It is shown at once, and on the pages that follow, until all are wanted again."""
        result = self.step("r b\n\nr\n")
        pages = result.stdout.split("\nStep ")[1:]
        self.assertEqual([page[0] for page in pages], list("0011"))
        self.assertEqual([("only        request b" in page) for page in pages],
                         [False, True, True, False])
        self.assertEqual([bool(re.search(r"^  a  a ", page, re.M)) for page in pages],
                         [True, False, False, True])
        self.assertIn("\n         0  +  +  b  b\n", pages[1])

    def test_given_up_while_the_queue_is_shut(self):
        """c wants 3 blocks in step 1 and shuts the queue. In step 2 nobody is looked at, then a wants a third
        block and b is given up: that is what b, back at the front, waits for."""
        self.write("scenario.yaml", RIVALS + "scheduler: {on_blocked: latch, mix: prefill_first}\n")
        self.write("trace.jsonl", TRACE.replace('9, "input_length": 3', '1, "input_length": 5'))
        pages = self.step("\n\n\n").stdout.split("\nStep ")[1:]
        self.assertIn("waits       c, first in line: blocks: its next chunk did not fit", pages[1])
        self.assertIn("preempted   b for a", pages[2])
        self.assertIn("waits       b, first in line: preempted: running requests gave up blocks", pages[2])
        self.assertNotIn("latch", pages[2])

    def test_name_with_blanks(self):
        self.write("trace.jsonl", TRACE.replace('"b"', '"b  and more"'))
        self.assertIn("only        request b  and more\n", self.step("r b  and more \n").stdout)

    def test_help(self):
        for word in ("h", "?"):
            result = self.step(f"{word}\n")
            for left in ("Enter", "N", "g, step N", "p", "a", "b", "r ID", "c", "q", "h, ?"):
                self.assertRegex(result.stderr, rf"(?m)^  {re.escape(left)} +\w")
            self.assertEqual(result.stdout.count("\nStep "), 1)

    def test_prompt(self):
        """On stderr, with the step it is about; pages alone are on stdout."""
        result = self.step("\n")
        self.assertEqual(result.stderr,
                         "step 0, Enter = next, h = help> \nstep 1, Enter = next, h = help> \n")
        self.assertNotIn(">", result.stdout.split("traffic ")[0])


class Errors(StepCase):
    def test_commands(self):
        self.complaint("x\n", r"pagedkv: unknown command 'x'; h lists them\n")
        self.complaint("gg 3\n", "unknown command 'gg 3'")
        self.complaint("p 3\n", "p takes no argument")
        self.complaint("g\n", r"which step\? g N goes to step N")
        self.complaint("g two\n", "'two' is not a whole number")
        self.complaint("g -1\n", "'-1' ")
        self.complaint("3x\n", "'3x' is not a whole number")
        self.complaint("0\n", "0 steps on is here")
        self.complaint("99999999999999999999\n", "is larger than")
        self.complaint("g 0\n", "this is step 0, and a run only goes forward")
        self.complaint("r c\n", "no request 'c' runs or waits in this step")
        self.complaint("\x1b[31m\n", r"unknown command '\\x1b\[31m'")
        self.complaint("\0\0x\n", "unknown command 'x'")
        self.complaint("x" * 100000 + "\n", "unknown command 'xxx")

    def test_no_two_readers(self):
        """The trace, or the scenario, and the commands cannot come from one place."""
        for args in (("replay", "-", "--num-blocks", "4"),
                     ("run", "scenario.yaml", "--set", "traffic.trace=-")):
            result = self.call(*args, "--step", "-o", "out", stdin=None, input=TRACE)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, r"\Apagedkv: --step reads its commands from standard "
                             r"input, so the trace cannot come from there\n\Z")
            self.assertEqual(result.stdout, "")
            self.assertFalse(os.path.exists(self.path("out")))

    def test_quiet(self):
        result = self.call("run", "scenario.yaml", "--step", "-q")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--step shows every step, and --quiet nothing", result.stderr)

    def test_nobody_reads(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([self.program, "run", "scenario.yaml", "--step", "-o", "out"],
                                    cwd=self.folder, stdout=full, stderr=subprocess.PIPE, text=True,
                                    input="\n\n\n", timeout=self.timeout, check=False)
        self.assertEqual(result.returncode, 3)
        self.assertIn("standard output", result.stderr)
        self.assertEqual(self.summary("out")["steps"], 1)


class Results(StepCase):
    def test_quit(self):
        """As an interruption: what was done is kept, and begins as the whole run does."""
        self.done("run", "scenario.yaml", "-q", "-o", "whole")
        result = self.step("\n\nq\n\n", "-o", "out", code=3)
        self.assertIn("interrupted after 3 steps; what was done until then is kept in out\n", result.stderr)
        self.assertEqual(sorted(os.listdir(self.path("out"))), sorted(set(FILES) - {"cache.csv"}))
        self.assertTrue(self.read("whole", "steps.csv").startswith(self.read("out", "steps.csv")))
        self.assertEqual(len(self.rows("out", "steps.csv")), 3)
        self.assertEqual(self.summary("out")["outcome"], "interrupted")
        self.assertEqual(self.summary("out")["requests"]["unfinished"], 2)
        self.assertIn("NOT FINISHED: the run was interrupted", result.stdout)

    def test_quit_in_the_last_step(self):
        """Nothing is left to be stopped."""
        result = self.step("g 5\nq\n", "-o", "out")
        self.assertEqual(self.summary("out")["outcome"], "done")
        self.assertIn("3 arrived, 3 completed", result.stdout)

    def same(self, args, commands):
        self.done(*args, "-q", "-o", "plain")
        self.step(commands, "-o", "stepped", command=args)
        self.same_contents("plain", "stepped")

    def test_same_bytes(self):
        """Whatever is looked at, and wherever the pauses are."""
        for commands in ("", "\n" * 10, "r b\np\na\nb\nc\n"):
            self.same(("run", "scenario.yaml"), commands)

    def test_same_bytes_of_traffic(self):
        """With sharing, preemptions, steps that stand for a stretch, a queue and steady decodes."""
        trace = os.path.join(SOURCE_ROOT, "scenarios", "traces", "sample_1000.jsonl")
        args = ("replay", trace, "--num-blocks", "256", "--limit", "60", "--max-num-seqs", "6")
        self.same(args, "\n" * 1500 + "p\na\nb\n" * 40)
        args += ("--preset", "orca-pow2", "--no-prefix-cache", "--max-model-len", "4096")
        self.same(args, "\n" * 200 + "a\nb\n" * 20)

    def test_pages_agree_with_the_logs(self):
        self.agree_with_the_logs()

    def test_pages_of_groups_agree_with_the_logs(self):
        """Three block tables a request; a step's budget so small that windows let go on the way."""
        groups = "[{type: full}, {type: sliding, window: 64}, {type: chunked, chunk: 128, block_size: 8}]"
        out = self.agree_with_the_logs("--set", f"kv.groups={groups}",
                                       "--set", "scheduler.max_num_batched_tokens=128")
        self.assertRegex(out, r" \d+/16  sliding  \d+ null \d+")
        self.assertRegex(out, r" \d+/8  chunked  \d+ null \d+")

    def agree_with_the_logs(self, *flags):
        """Every page of a run against its row of steps.csv and against events.jsonl."""
        trace = os.path.join(SOURCE_ROOT, "scenarios", "traces", "sample_1000.jsonl")
        out = self.step("\n" * 1000 + "c\n", "-o", "out", command=(
            "replay", trace, "--num-blocks", "256", "--limit", "40", "--max-num-seqs", "6",
            *flags)).stdout
        rows = self.rows("out", "steps.csv")
        events = {}
        for line in self.read("out", "events.jsonl").decode().splitlines():
            event = json.loads(line)
            events.setdefault((event["step"], event["kind"]), []).append(event)
        pages = out.split("\nStep ")[1:]
        self.assertEqual(len(pages), 1001)
        for page, row in zip(pages, rows):
            self.check_page(page.split("\ntraffic ")[0], row, events)
        return out

    def check_page(self, page, row, events):
        number = int(row["step"])
        self.assertTrue(page.startswith(f"{number} at "), page)
        self.assertIn(f": {int(row['sched_tokens']):,} token", page.split("\n")[0])
        pool = " ".join(re.search(r"^pool (.*?)^ +0  ", page, re.M | re.S)[1].split())
        self.assertIn(f": {row['used_blocks']} held", pool)
        self.assertIn(f"; {row['free_blocks']} free", pool)
        if row["cached_blocks"] != "0":
            self.assertIn(f"free, {row['cached_blocks']} of them cached", pool)
        self.assertRegex(page, rf"(?m)^running     {row['running']} of at most 6")
        self.assertRegex(page, rf"(?m)^waiting     {row['waiting']}\b")
        cells = "".join(re.findall(r"^ +\d+  ((?:[A-Za-z.:][* ] ? ?)+[A-Za-z.:]?\*?)$", page, re.M))
        self.assertEqual(len(re.findall(r"[.:]", cells)), int(row["free_blocks"]), page)
        self.assertEqual(cells.count(":"), int(row["cached_blocks"]))
        self.assertEqual(len(re.findall(r"[A-Za-z]", cells)), int(row["used_blocks"]))
        for kind, word in (("preempt", "preempted"), ("admit", "admitted"), ("resume", "resumed"),
                           ("finish", "finished"), ("arrive", "arrived")):
            told = events.get((number, kind), [])
            self.assertEqual(bool(told), bool(re.search(rf"^{word} ", page, re.M)), (kind, page))
            for event in told[:6]:
                self.assertRegex(page, rf"(?m)^(?:{word}|  ) +{event['id']}\b")
        self.assertEqual(bool(re.search(r"^waits ", page, re.M)), row["limit"] not in "01")
        for event in events.get((number, "blocked"), []):
            waits = " ".join(re.search(r"^waits (.*?)^pool ", page, re.M | re.S)[1].split())
            self.assertIn(f"needs {event['need_blocks']} block", waits)
            self.assertIn(f", {event['free_blocks']} free", waits)


class Terminal(StepCase):
    """Where standard input, output and errors are one terminal."""

    def talk(self, answers, env=None):
        """Each answer is given when there is a prompt; bytes are sent as they are."""
        master, slave = pty.openpty()
        env = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "80", **(env or {})}
        process = subprocess.Popen([self.program, "run", "scenario.yaml", "--step", "-o", "out"],
                                   cwd=self.folder, stdin=slave, stdout=slave, stderr=slave, env=env,
                                   start_new_session=True)
        self.addCleanup(os.close, master)
        os.close(slave)
        text, deadline = b"", time.monotonic() + self.timeout
        answers = list(answers)
        while time.monotonic() < deadline:
            ready = select.select([master], [], [], 0.1)[0]
            try:
                more = os.read(master, 65536) if ready else b""
            except OSError:
                break
            if ready and not more:
                break
            text += more
            if answers and text.endswith(b"help> "):
                answer = answers.pop(0)
                if isinstance(answer, bytes):
                    os.write(master, answer)
                else:
                    time.sleep(0.2)     # it is in its read by then, or will find the flag
                    process.send_signal(answer)
                text += b"|"
        return process.wait(timeout=self.timeout), text.decode()

    def test_colours(self):
        status, text = self.talk([b"\n", b"c\n"])
        self.assertEqual(status, 0)
        self.assertRegex(text, "\x1b\\[1;3\\dma")
        status, text = self.talk([b"\n", b"c\n"], {"NO_COLOR": "1"})
        self.assertEqual(status, 0)
        self.assertNotIn("\x1b[", text)
        self.assertIn("a  a  b  b", text)

    def test_end_of_file_key(self):
        status, text = self.talk([b"\n", b"\x04"])
        self.assertEqual(status, 0)
        self.assertIn("3 arrived, 3 completed", text)

    def test_interrupted_at_the_prompt(self):
        status, text = self.talk([b"\n", signal.SIGINT])
        self.assertEqual(status, 3)
        self.assertIn("interrupted after 2 steps", text)
        self.assertEqual(self.summary("out")["steps"], 2)


class Readme(ProgramCase):
    def test_shown_steps(self):
        """What the README shows is what the program prints."""
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            text = file.read()
        shown = re.search(r"```\n\$ pagedkv (run [^\n]* --step)\n(.*?)```", text, re.S)
        command = [os.path.join(SOURCE_ROOT, word) if word.startswith("scenarios/") else word
                   for word in shown[1].split()]
        commands = re.findall(r"^step \d+, Enter = next, h = help> ?(.*)$", shown[2], re.M)
        self.assertEqual(commands, ["", "p", ""])
        printed = self.call(*command, stdin=None, input="\n".join(commands) + "\n").stdout
        pages = re.split(r"^step \d+, Enter = next, h = help>[^\n]*\n", shown[2], flags=re.M)
        # The blank line that parts pages stands behind what was typed, or before the first.
        self.assertTrue(printed.startswith("\n" + "\n".join(page.lstrip("\n") for page in pages)),
                        printed)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SOURCE_ROOT = os.path.abspath(sys.argv.pop(2))
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
