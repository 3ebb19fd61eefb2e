#!/usr/bin/env python3
"""pagedkv report: which page of a former run may be taken over, and what it must not write over.

usage: test_former.py PROGRAM
"""
import json
import os
import re
import shutil
import sys

import tap
from program import ProgramCase

LOGS = "steps,requests,summary,scenario"


class Former(ProgramCase):
    def islands(self, *names):
        page = self.read(*names).decode()
        return dict(re.findall(r'<script type="[a-z/]+" id="pkv-([a-z0-9_-]+)">([^<]*)</script>', page))

    def steps_in(self, *names):
        return json.loads(self.islands(*names)["summary"])["steps"]

    def test_a_page_that_was_cut_off_is_not_used(self):
        """Wherever it was cut: the files beside it tell the run."""
        self.small()
        self.done("run", "scenario.yaml", "-q", "-o", "out")
        page = self.read("out", "report.html")
        last = page.rindex(b"</script>", 0, page.index(b'id="pkv-timeline') if b'id="pkv-timeline' in page
                           else len(page))
        os.remove(self.path("out", "report.html"))
        self.done("report", "out", "-o", "files")
        expected = self.islands("files", "report.html")
        self.assertIn("steps", expected)
        self.assertNotIn("hist-itl", expected)     # which a whole page has
        for length in (0, 100, page.index(b'id="pkv-steps"'), last, len(page) - 20, len(page) - 1):
            with self.subTest(length=length):
                self.write("out/report.html", page[:length])
                self.done("report", "out", "-o", "again")
                self.assertEqual(self.islands("again", "report.html"), expected)
        for broken in (page[:-5000] + bytes(5000), page[:last] + bytes(100) + page[last + 100:]):
            self.write("out/report.html", broken)
            self.done("report", "out", "-o", "again")
            self.assertEqual(self.islands("again", "report.html"), expected)
        self.write("out/report.html", page)
        self.done("report", "out", "-o", "again")
        self.assertIn("hist-itl", self.islands("again", "report.html"))

    def test_a_cut_page_alone(self):
        self.small()
        self.done("run", "scenario.yaml", "-q", "-o", "out", "--files", "report")
        page = self.read("out", "report.html")
        self.write("out/report.html", page[:len(page) // 2])
        result = self.call("report", "out", "-o", "again")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"\Aout/report\.html: is cut off")
        self.assertFalse(os.path.exists(self.path("again")))

    def test_a_page_of_another_run(self):
        self.small()
        self.done("run", "scenario.yaml", "-q", "-o", "out")
        former = self.steps_in("out", "report.html")
        self.done("run", "scenario.yaml", "-q", "-o", "out", "--files", LOGS, "--set",
                  "scheduler.max_num_seqs=1")
        now = self.summary("out")["steps"]
        self.assertNotEqual(now, former)
        self.done("report", "out")
        self.assertEqual(self.steps_in("out", "report.html"), now)

    def test_a_character_that_a_page_writes_otherwise(self):
        """A "<" in summary.json is \\u003c in the page: the same run, and another one all the same."""
        self.small()
        self.done("run", "scenario.yaml", "-q", "-o", "out")
        page, summary = self.read("out", "report.html"), self.read("out", "summary.json")
        self.assertEqual(page.count(summary), 1)
        noted = summary.replace(b"{", b'{"note": "1 < 2 <", ', 1)
        self.write("out/summary.json", noted)
        self.done("report", "out", "-o", "again")
        self.assertNotIn("hist-itl", self.islands("again", "report.html"))
        self.write("out/report.html", page.replace(summary, noted.replace(b"<", b"\\u003c")))
        self.done("report", "out", "-o", "again")
        self.assertIn("hist-itl", self.islands("again", "report.html"))

    def test_spares_the_pages_that_it_reads(self):
        """Several runs on one page: not in the place of one of theirs."""
        self.small()
        self.done("run", "scenario.yaml", "-q", "-o", "one")
        self.done("run", "scenario.yaml", "-q", "-o", "two", "--set", "kv.num_blocks=9")
        os.symlink("two", self.path("link"))
        for out in ("one", "./two/", "link"):
            before = {name: self.contents(name) for name in ("one", "two")}
            result = self.call("report", "one", "two", "-o", out)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertRegex(result.stderr, r"report\.html: this would write over the input \(")
            self.assertEqual({name: self.contents(name) for name in ("one", "two")}, before)
        self.done("report", "one", "two", "-o", "both")
        shutil.copytree(self.path("one"), self.path("copy"))
        self.done("report", "one", "-o", "./one")      # one run in its place, as without -o
        self.done("report", "one")


if __name__ == "__main__":
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
