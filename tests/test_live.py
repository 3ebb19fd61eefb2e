#!/usr/bin/env python3
"""--live on a terminal: frames in one place, the last of which stays and says what the summary says.

usage: test_live.py PROGRAM SOURCE_ROOT
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import tap
from program import ProgramCase

SPIKE = """\
kv: {block_size: 16, num_blocks: 300, prefix_cache: false}
step_time: {model: fixed, ms: 10}
traffic:
  requests: 200
  arrivals: {law: constant, rate_per_s: 20}
  prompt_tokens: 300
  output_tokens: 80
"""
ENDLESS = SPIKE.replace("requests: 200", "requests: 100000000")


class Screen:
    """What a terminal would show: the few sequences that frames are drawn with, and no others."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines, self.row, self.column, self.top = [""], 0, 0, 0

    def line_feed(self):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")
        self.top = max(self.top, self.row - self.rows + 1)

    def feed(self, text):
        for part in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b.|[\r\n]|[^\x1b\r\n]+", text):
            if part == "\n":
                self.line_feed()
            elif part == "\r":
                self.column = 0
            elif part.startswith("\x1b"):
                self.control(part)
            else:
                line = self.lines[self.row].ljust(self.column)
                assert self.column + len(part) <= self.columns, part
                self.lines[self.row] = line[:self.column] + part + line[self.column + len(part):]
                self.column += len(part)

    def control(self, part):
        up = re.fullmatch(r"\x1b\[(\d+)A", part)
        if up:
            assert self.row - int(up[1]) >= self.top, "above the screen"
            self.row -= int(up[1])
        elif part == "\x1b[K":
            self.lines[self.row] = self.lines[self.row][:self.column]
        elif part == "\x1b[J":
            self.lines[self.row] = self.lines[self.row][:self.column]
            del self.lines[self.row + 1:]
        elif part == "\x1b[H":
            self.row, self.column = self.top, 0
        elif part == "\x1b[2J":
            self.lines[self.top:] = [""]
            self.row = min(self.row, self.top)
        else:
            assert re.fullmatch(r"\x1b\[[0-9;]*m", part), repr(part)


class Live(ProgramCase):
    def begin(self, *args, rows=24, columns=80, **env):
        self.master, slave = pty.openpty()
        self.resize(rows, columns, slave)
        run = subprocess.Popen(
            [self.program, *args], cwd=self.folder, stdout=slave, stderr=slave, stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8", **env})
        os.close(slave)
        return run

    def resize(self, rows, columns, fd=None):
        fcntl.ioctl(self.master if fd is None else fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def some(self, until=None):
        """What comes, up to the end or to a text."""
        seen = b""
        try:
            while until is None or until not in seen:
                self.assertTrue(select.select([self.master], [], [], 60)[0], "nothing for a minute")
                part = os.read(self.master, 65536)
                if not part:
                    break
                seen += part
        except OSError:      # Linux says so when the other side is closed
            pass
        return seen.decode(errors="replace")

    def finish(self, run, status=0):
        text = self.some()
        os.close(self.master)
        self.assertEqual(run.wait(timeout=60), status, text)
        return text

    def frame(self, lines):
        """The figures of a frame."""
        text = "\n".join(lines)
        numbers = {}
        for key in ("used", "cached", "empty", "running", "waiting", "ended", "preemptions?", "steps?",
                    "tokens?"):
            found = re.findall(rf"([\d,]+) {key}\b", text)
            self.assertTrue(found, (key, text))
            numbers[key.rstrip("s?")] = int(found[0].replace(",", ""))
        return numbers

    def test_the_last_frame(self):
        self.write("spike.yaml", SPIKE)
        text = self.finish(self.begin("run", "spike.yaml", "--live", "-o", "out", "--pace", "10s",
                                      NO_COLOR="1"))
        self.assertNotRegex(text, r"\x1b\[[0-9;]*m")
        screen = Screen(24, 80)
        screen.feed(text)
        summary, last = self.summary("out"), self.rows("out", "steps.csv")[-1]
        begins = [i for i, line in enumerate(screen.lines) if re.match("blocks +[█▒░]", line)]
        self.assertEqual(len(begins), 1)
        at = begins[0]
        shown = self.frame(screen.lines[at:at + 22])
        self.assertEqual(shown, {
            "used": int(last["used_blocks"]), "cached": int(last["cached_blocks"]),
            "empty": int(last["free_blocks"]) - int(last["cached_blocks"]),
            "running": int(last["running"]), "waiting": int(last["waiting"]), "ended": 200,
            "preemption": summary["preemptions"], "step": summary["steps"], "token": 200 * 80})
        self.assertGreater(summary["preemptions"], 0)
        plain = self.done("run", "spike.yaml", "-o", "out", env={"LANG": "C.UTF-8", "COLUMNS": "80"})
        below = [line.rstrip() for line in screen.lines[at:]]
        expected = [line.rstrip() for line in plain.stdout.splitlines()]
        self.assertEqual(below[below.index(expected[0]) - 1:], ["", *expected, ""])

    def test_frames_on_the_way(self):
        """At most ten in a second; each is a state that the run had."""
        self.write("spike.yaml", SPIKE)
        begin = time.monotonic()
        text = self.finish(self.begin("run", "spike.yaml", "--live", "-o", "out", "--pace", "5s",
                                      NO_COLOR="1"))
        took = time.monotonic() - begin
        makespan = self.summary("out")["makespan_ns"] / 1e9
        self.assertGreaterEqual(took, makespan / 5)
        frames = text.split("\x1b[J")[:-1]
        self.assertLessEqual(len(frames), 10 * took + 2)
        self.assertGreater(len(frames), 3)
        rows = self.rows("out", "steps.csv")
        for frame in frames:
            shown = self.frame(frame.splitlines())
            row = rows[shown["step"] - 1]
            self.assertEqual((shown["used"], shown["running"], shown["waiting"], shown["preemption"]),
                             tuple(int(row[key]) for key in ("used_blocks", "running", "waiting",
                                                             "preemptions_total")))

    def test_elsewhere_nothing_changes(self):
        """Into a pipe, and on a terminal that cannot move its cursor."""
        self.write("spike.yaml", SPIKE)
        plain = self.done("run", "spike.yaml").stdout
        self.assertEqual(self.done("run", "spike.yaml", "--live", "--pace", "1us").stdout, plain)
        dumb = self.finish(self.begin("run", "spike.yaml", "--live", "--pace", "1us", TERM="dumb"))
        self.assertNotIn("\x1b", dumb)
        self.assertNotIn("times real time", dumb)

    def test_colour(self):
        self.write("spike.yaml", SPIKE)
        self.assertRegex(self.finish(self.begin("run", "spike.yaml", "--live")), r"\x1b\[\d+m")

    def test_ascii(self):
        self.write("spike.yaml", SPIKE)
        self.assertTrue(self.finish(self.begin("run", "spike.yaml", "--live", LANG="C")).isascii())

    def test_small_and_resized(self):
        """It fits the terminal, and after a change of size the screen is drawn anew."""
        self.write("endless.yaml", ENDLESS)
        run = self.begin("run", "endless.yaml", "--live", rows=10, columns=60, NO_COLOR="1")
        text = self.some(b"\x1b[J\x1b[9A")
        Screen(10, 60).feed(text[:text.rindex("\x1b[9A")])
        self.assertNotIn("\x1b[2J", text)
        self.resize(30, 44)
        self.some(b"\x1b[H\x1b[2J")
        text = self.some(b"\x1b[J\x1b[")
        frame = text[:text.index("\x1b[J")].replace("\x1b[K", "")
        self.assertLessEqual(max(map(len, frame.splitlines())), 44)
        run.send_signal(signal.SIGINT)
        self.finish(run, 3)

    def test_too_narrow(self):
        """No frame where its lines would wrap."""
        self.write("spike.yaml", SPIKE)
        text = self.finish(self.begin("run", "spike.yaml", "--live", columns=39, NO_COLOR="1"))
        self.assertNotIn("\x1b", text)
        self.assertIn("requests", text)

    def test_interrupted(self):
        self.write("endless.yaml", ENDLESS)
        for pace in ((), ("--pace", "1ms")):
            run = self.begin("run", "endless.yaml", "--live", "-o", "out", *pace)
            text = self.some(b"\x1b[J")
            run.send_signal(signal.SIGINT)
            text += self.finish(run, 3)
            self.assertNotIn("\x1b[?25l", text)    # the cursor was never hidden
            self.assertIn("interrupted after", text)
            self.assertLess(text.rindex("times real time"), text.index("NOT FINISHED"))
            self.assertGreater(self.summary("out")["steps"], 0)

    def test_the_progress_line_is_one_line(self):
        """Without --live: a line that went on in the next one could not be written over."""
        self.write("endless.yaml", ENDLESS)
        for columns in (20, 60, 80, 200):
            run = self.begin("run", "endless.yaml", columns=columns)
            text = self.some(b"\x1b[K") + self.some(b"\x1b[K")
            run.send_signal(signal.SIGINT)
            self.finish(run, 3)
            lines = re.findall(r"\r([^\r\n\x1b]+)\x1b\[K", text)
            self.assertGreaterEqual(len(lines), 2, text)
            for line in lines:
                self.assertLess(len(line), columns)
                self.assertRegex(line, r"\A\d")
                if columns == 200:
                    self.assertRegex(line, r"\d steps, .* requests ended, \d+ waiting, after ")

    def test_wrong_use(self):
        self.write("spike.yaml", SPIKE)
        for args, says in ((("--live", "--quiet"), "--live and --quiet do not go together"),
                           (("--live", "--step"), "--live and --step do not go together"),
                           (("--pace", "1s"), "--pace slows down what --live draws"),
                           (("--live", "--pace", "0s"), "--pace: '0s' is no time at all"),
                           (("--live", "--pace", "fast"), "--pace: 'fast'")):
            result = self.call("run", "spike.yaml", *args)
            self.assertEqual(result.returncode, 2)
            self.assertIn(says, result.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    del sys.argv[2]
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
