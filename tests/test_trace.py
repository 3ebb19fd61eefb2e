#!/usr/bin/env python3
"""`pagedkv trace` as a user has it: what it prints, what it writes, and wrong use.

usage: test_trace.py PROGRAM SOURCE_ROOT
"""
import json
import os
import re
import subprocess
import sys

import tap
from program import ProgramCase

SOURCE_ROOT = None      # set by main

LOG = """\
when,who,in,out
10.5,a,100,7
10.75,b,30,1
12.5,a,30,2
"""
TOLD = ("--columns", "arrival=when,prompt=in,output=out,tenant=who", "--time-unit", "s")


class Info(ProgramCase):
    def test_page(self):
        self.write("log.csv", LOG)
        text = self.done("trace", "info", "log.csv", *TOLD).stdout
        self.assertIn("log.csv: 3 rows, format csv\n", text)
        self.assertRegex(text, r"(?m)^arrivals +from 10\.50 s to 12\.50 s; 1\.500 a second$")
        # Gaps of 0.25 and 1.75 s: mean 1, deviation 0.75.
        self.assertRegex(text, r"(?m)^burstiness +cv of the gaps 0\.75 ")
        self.assertRegex(text, r"(?m)^prompts +160 tokens; mean 53\.33, p50 30, p90 100, ")
        self.assertRegex(text, r"(?m)^sharing +none")
        self.assertRegex(text, r"(?m)^tenants +2$")
        self.assertRegex(text, r"(?m)^quirks +none$")
        self.assertIn("arrivals a column", text)

    def test_json(self):
        self.write("log.csv", LOG)
        info = json.loads(self.done("trace", "info", "log.csv", *TOLD, "--json").stdout)
        self.assertEqual((info["rows"], info["format"], info["tenants"]), (3, "csv", 2))
        self.assertEqual(info["arrivals"]["first_ms"], 10500)
        self.assertEqual(sum(info["arrivals"]["bins"]), 3)
        self.assertEqual(info["arrivals"]["gap_cv"], 0.75)
        # All three at once; 100 and 7, 30 and 1, 30 and 2, each without its last token, but the
        # second has gone when the third comes.
        self.assertEqual(info["unlimited"]["peak_running"], 2)

    def test_rows_that_follow(self):
        """Two rows with a time in 4 s, and two that follow the first."""
        row = '"input_length": 4, "output_length": 2, "session": "a"}\n'
        self.write("chat.jsonl", '{"timestamp": 0, ' + row + ('{"delay_ms": 7, ' + row) * 2 +
                   '{"timestamp": 4000, "input_length": 4, "output_length": 2}\n')
        text = " ".join(self.done("trace", "info", "chat.jsonl").stdout.split())
        self.assertIn("arrivals from 0 ns to 4.00 s; 0.5000 a second; arrivals, burstiness and peak are "
                      "of the 2 rows with a time, not of those that follow others", text)
        self.assertIn("2 different times, at most 1 row at one", text)
        self.assertIn(", 1 request at once,", text)
        arrivals = json.loads(self.done("trace", "info", "chat.jsonl", "--json").stdout)["arrivals"]
        self.assertEqual((arrivals["timed_rows"], arrivals["rate_per_s"], arrivals["gap_mean_ms"]),
                         (2, 0.5, 4000))
        self.assertEqual(sum(arrivals["bins"]), 2)

    def test_standard_input(self):
        told = self.call("trace", "info", "-", *TOLD, stdin=None, input=LOG)
        self.assertIn("standard input: 3 rows", told.stdout)

    def test_quirks(self):
        self.write("t.csv", b"arrived_at,num_prefill_tokens,num_decode_tokens\r\n\r\n"
                   b"0.30000000000000004,3,1\r\n1,3,0\r\n1,4,4")
        text = " ".join(self.done("trace", "info", "t.csv").stdout.split())
        self.assertIn("quirks 1 row without output left out; 1 empty line; lines end with CR LF; "
                      "no end of line behind the last row", text)

    def test_wrong_use(self):
        self.write("log.csv", LOG)
        for args, words in (
                (("trace",), "info|convert is missing"),
                (("trace", "show", "log.csv"), "'show' is neither info nor convert"),
                (("trace", "info", "log.csv", "--to", "native"), "--to and --output are for convert"),
                (("trace", "convert", "log.csv"), "--to FORMAT is missing"),
                (("trace", "info", "log.csv"), "log.csv:1: the format is unknown (known: native, "),
                (("trace", "info", "log.csv", "--columns", "prompt=in"), ": output=NAME is missing"),
                (("trace", "convert", "log.csv", *TOLD, "--to", "csv"), "'csv' is no format to write"),
                (("trace", "info", "log.csv", *TOLD, "--block-size", "9999999"), "--block-size")):
            with self.subTest(args=args):
                result = self.call(*args)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(words, result.stderr)


class Convert(ProgramCase):
    def test_hash_ids_are_told_where_there_are_some(self):
        """From a format without prompts to one with hash ids, to native, and from hash ids to native."""
        said = "a hash id stands for"
        self.write("log.csv", LOG)
        azure = self.done("trace", "convert", "log.csv", *TOLD, "--to", "azure", "-o", "azure.csv")
        self.assertNotIn(said, azure.stderr)
        native = self.done("trace", "convert", "azure.csv", "--to", "native", "-o", "native.jsonl")
        self.assertNotIn("hash_ids", self.read("native.jsonl").decode())
        self.assertNotIn(said, native.stderr)
        ids = self.done("trace", "convert", "native.jsonl", "--to", "mooncake", "--block-size", "32",
                        "-o", "ids.jsonl")
        self.assertIn(f"{said} 32 tokens: read it with --hash-block-size 32", ids.stderr)
        made_up = "each row got hash ids that no other one has, so nothing will be found shared\n"
        self.assertIn(made_up, ids.stderr)
        rows = [json.loads(line)["hash_ids"] for line in self.read("ids.jsonl").splitlines()]
        self.assertEqual([len(row) for row in rows], [4, 1, 1])          # 100, 30 and 30 tokens
        self.assertEqual(len({id for row in rows for id in row}), 6)
        self.assertLess(max(id for row in rows for id in row), 2 ** 53)
        back = self.done("trace", "convert", "ids.jsonl", "--hash-block-size", "32", "--to", "native",
                         "-o", "back.jsonl")
        self.assertIn("hash_ids", self.read("back.jsonl").decode())
        self.assertIn(f"{said} 32 tokens: read it with --hash-block-size 32", back.stderr)
        again = self.done("trace", "convert", "back.jsonl", "--hash-block-size", "32", "--to", "mooncake")
        self.assertNotIn(made_up, again.stderr)

    def test_native(self):
        self.write("log.csv", LOG)
        result = self.done("trace", "convert", "log.csv", *TOLD, "--to", "native")
        self.assertEqual([json.loads(line) for line in result.stdout.splitlines()], [
            {"timestamp": 10500, "input_length": 100, "output_length": 7, "tenant": "a"},
            {"timestamp": 10750, "input_length": 30, "output_length": 1, "tenant": "b"},
            {"timestamp": 12500, "input_length": 30, "output_length": 2, "tenant": "a"}])
        self.assertNotIn("lost", result.stderr)

    def test_a_row_is_a_line(self):
        self.write("t.jsonl", json.dumps({"timestamp": 0, "input_length": 4, "output_length": 2,
                                          "tenant": "two\nlines"}) + "\n")
        result = self.done("trace", "convert", "t.jsonl", "--to", "blis", "-o", "t.csv")
        self.assertIn("lost in 1 row: line breaks in names, written as blanks\n", result.stderr)
        back = self.done("trace", "convert", "t.csv", "--to", "native").stdout
        self.assertEqual(json.loads(back)["tenant"], "two lines")

    def test_rows_without_output_are_counted(self):
        self.write("q.csv", "ts,in,out\n1,10,0\n2,10,5\n")
        result = self.done("trace", "convert", "q.csv", "--to", "vidur", "--columns",
                           "arrival=ts,prompt=in,output=out", "-o", "q2.csv")
        self.assertIn("1 row of format csv read; written as vidur\n1 row without output left out\n",
                      result.stderr)

    def test_losses_are_counted(self):
        self.write("log.csv", LOG)
        result = self.done("trace", "convert", "log.csv", *TOLD, "--to", "azure", "-o", "azure.csv")
        self.assertEqual(result.stdout, "")
        self.assertIn("3 rows of format csv read; written as azure\n", result.stderr)
        self.assertIn("lost in 3 rows: tenants\n", result.stderr)
        self.assertIn("time 0 is written as 1970-01-01 00:00:00\n", result.stderr)
        self.assertIn("lost in 1 row: what is before the first arrival", result.stderr)
        self.assertEqual(self.read("azure.csv").splitlines()[3],
                         b"1970-01-01 00:00:12.5000000,30,2")
        quiet = self.done("trace", "convert", "log.csv", *TOLD, "--to", "azure", "-o", "azure.csv", "-q")
        self.assertEqual(quiet.stderr, "")

    def test_token_ids_beyond_2_to_the_63(self):
        """They stay apart from the ids that texts without any are given, and equal ones stay equal."""
        big = 2 ** 63 + 2 ** 32                 # the first number that a writer gives
        self.write("big.jsonl", "".join(json.dumps(
            {"input_toks": 6, "output_toks": 2, "arrival_time_ns": i, "input_tok_ids": ids}) + "\n"
            for i, ids in enumerate(([big, big + 1, 2 ** 64 - 1, 1], [big, big + 1], [2, 3], [2, 3],
                                     [big, big + 1, 2 ** 64 - 1, 1]))))
        for target in ("tokens", "llmservingsim"):
            told = self.done("trace", "convert", "big.jsonl", "--to", target, "--lenient-ids", "-o", "out.jsonl")
            self.assertNotIn("answers", told.stdout + told.stderr)
            texts = []
            for line in self.read("out.jsonl").decode().splitlines():
                row = json.loads(line)
                texts.append(row.get("input_tok_ids") or [first + k for first, num in row["prompt"]
                                                          for k in range(num)])
            self.assertEqual([len(text) for text in texts], [6] * 5)
            self.assertTrue(all(0 <= token < 2 ** 64 for text in texts for token in text))
            # The same ids where they were the same: 2 of 6 (rows 0 and 1), 2 of 6 (2 and 3), 4 of 6.
            for a, b, same in ((0, 1, 2), (2, 3, 2), (0, 4, 4), (0, 2, 0)):
                self.assertEqual(sum(x == y for x, y in zip(texts[a], texts[b])), same, (target, a, b))
                self.assertEqual(len(set(texts[a]) & set(texts[b])), same, (target, a, b))
            self.assertEqual(texts[0][3], 1)
            self.done("trace", "info", "out.jsonl", "--json")

    def test_a_broken_row_leaves_no_file(self):
        self.write("log.csv", LOG + "13,a,x,1\n")
        result = self.call("trace", "convert", "log.csv", *TOLD, "--to", "native", "-o", "out.jsonl")
        self.assertEqual(result.returncode, 2)
        self.assertIn("log.csv:5:6: in 'x' is not a whole number", result.stderr)
        self.assertEqual(os.listdir(self.folder), ["log.csv"])

    def test_replay_of_any_csv(self):
        """The converted trace runs as the log itself does."""
        self.write("log.csv", LOG)
        self.done("trace", "convert", "log.csv", *TOLD, "--to", "native", "-o", "log.jsonl")
        flags = ("--num-blocks", "10", "--files", "steps,requests")
        self.done("replay", "log.csv", *TOLD, *flags, "-o", "a")
        self.done("replay", "log.jsonl", *flags, "-o", "b")
        for name in ("steps.csv", "requests.csv"):
            self.assertEqual(self.read("a", name), self.read("b", name))


class Readme(ProgramCase):
    def test_recording(self):
        """The lines of shell that make a trace of a server's log do so, on the log that is shown."""
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            page = file.read().split("## Recording a trace")[1].split("\n## ")[0]
        found = {}
        for block in re.findall(r"```sh\n(# in: .*?)```", page, re.S):
            name = re.match(r"# in: (\S+)", block)[1]
            shown = re.search(r"```(?:json|text)\n(?:# )?" + re.escape(name) + r"\n(.*?)```", page,
                              re.S)
            self.write(name, shown[1])
            lines = [line for line in block.splitlines() if not line.startswith("pagedkv")]
            done = subprocess.run(["sh", "-c", "\n".join(lines)], cwd=self.folder,
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            words = next(line for line in block.splitlines() if line.startswith("pagedkv")).split()
            info = json.loads(self.done("trace", "info", *words[2:7], "--json").stdout)
            found[name] = (info["rows"], info["prompt_tokens"]["sum"], info["output_tokens"]["sum"],
                           info["arrivals"]["last_ms"])
        self.assertEqual(found, {"vllm.log": (2, 7, 8, 1000), "sglang.log": (2, 130, 9, 500)})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SOURCE_ROOT = os.path.abspath(sys.argv.pop(2))
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
