#!/usr/bin/env python3
"""The built program from outside: commands, options, exit codes, files, interruptions.

usage: test_program.py PROGRAM SOURCE_ROOT
"""
import bz2
import fcntl
import gzip
import json
import lzma
import os
import pty
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

import tap
from program import FILES, SCENARIO, TRACE, ProgramCase

COMMANDS = ("run", "replay", "compare", "report", "explain", "conform", "diff", "waste", "trace", "size", "policies",
            "presets", "models", "gpus", "formats", "gen", "synth", "help")
RUN_FLAGS = ("--output", "--files", "--every", "--on-change", "--set", "--seed", "--check", "--step",
             "--live", "--pace", "--openmetrics", "--scrape-interval", "--quiet",
             "--perfetto", "--warm")
REPLAY_FLAGS = RUN_FLAGS + (
    "--block-size", "--num-blocks", "--num-gpu-blocks", "--preset", "--max-num-seqs",
    "--max-num-batched-tokens", "--no-prefix-cache", "--max-model-len", "--step-time", "--format",
    "--after", "--until", "--columns", "--time-unit", "--hash-block-size", "--speedup", "--limit", "--sort",
    "--lenient-ids", "--kv-budget", "--model", "--kv-dtype", "--tp", "--pp", "--pp-layers")

# Takes minutes to end, so that it can be interrupted: one request at a time.
ENDLESS = """\
kv: {block_size: 16, num_blocks: 64}
scheduler: {max_num_seqs: 1}
step_time: {model: fixed, ms: 1}
traffic:
  requests: 1000000000
  arrivals: {law: constant, rate_per_s: 100}
  prompt_tokens: 16
  output_tokens: 4
"""


SOURCE_ROOT = None      # set by main


class Readme(ProgramCase):
    """What the README says is what the program says."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            self.text = file.read()

    def test_flags(self):
        tables = set(re.findall(r"`(?:-\w`, `)?(--[\w-]+)(?: [A-Z=]+)?`", self.text))
        for command in ("run", "replay", "conform"):
            named = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", self.done(command, "--help").stdout,
                               re.M)
            self.assertLessEqual(set(named) - {"--help"}, tables)

    def test_outcomes(self):
        """README, manual page and header name the same."""
        with open(os.path.join(SOURCE_ROOT, "include", "pagedkv", "engine.h"), encoding="utf-8") as file:
            words = re.findall(r'X\(PKV_OUTCOME_\w+, "(\w+)"\)', file.read())
        self.assertGreater(len(words), 4)
        listed = re.search(r"`outcome` \((.*?)\)", self.text, re.S)[1].split(": all but")[0]
        self.assertEqual(sorted(re.findall(r"`(\w+)`", listed)), sorted(words))
        page = re.search(r"outcome\\fR\n(.*)", self.done("--man", "files").stdout)[1]
        for word in words:
            self.assertRegex(page, rf"\b{word}\b")

    def test_example(self):
        with open(os.path.join(SOURCE_ROOT, "tests", "example.c"), encoding="utf-8") as file:
            self.assertTrue(f"```c\n{file.read()}```" in self.text, "it differs from tests/example.c")

    def test_scenario(self):
        """The scenario shown loads, with its trace and with the synthetic traffic it offers."""
        text = re.search(r"```yaml\n(.*?)```", self.text, re.S)[1]
        self.write("trace.jsonl", TRACE)
        self.write("trace.yaml", text.replace("trace: path", "trace: trace.jsonl"))
        text = re.sub(r"  trace: path.*\n.*\n", "", text).replace("requests: 1000", "requests: 20")
        self.write("synthetic.yaml", re.sub(r"(?m)^  # (?=[a-z])", "  ", text))
        for name, num in (("trace", 3), ("synthetic", 20)):
            self.done("run", f"{name}.yaml", "-o", name)
            self.assertEqual(self.summary(name)["requests"]["arrived"], num)

    def test_shown_output(self):
        """The picture at the top is what its command prints."""
        shown = re.search(r"```\n\$ build/tools/pagedkv (replay [^\n]*)\n(.*?)```", self.text, re.S)
        result = subprocess.run([self.program, *shown[1].split()], cwd=SOURCE_ROOT, text=True,
                                capture_output=True, check=True, timeout=self.timeout,
                                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
        self.assertEqual(result.stdout, shown[2])


class Help(ProgramCase):
    def test_no_command(self):
        result = self.call()
        self.assertEqual(result.returncode, 2)
        self.assertIn("usage: pagedkv COMMAND", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_program(self):
        for args in (["--help"], ["-h"], ["help"]):
            text = self.done(*args).stdout
            for command in COMMANDS:
                self.assertRegex(text, rf"(?m)^  {command} ")

    def test_version(self):
        self.assertRegex(self.done("--version").stdout, r"^pagedkv \d+\.\d+\.\d+\n$")

    def test_commands(self):
        for command in COMMANDS:
            with self.subTest(command):
                text = self.done(command, "--help").stdout
                self.assertEqual(text, self.done("help", command).stdout)
                self.assertEqual(text, self.done(command, "-h").stdout)
                self.assertTrue(text.startswith(f"usage: pagedkv {command}"))
                self.assertIn("examples:\n  pagedkv " + command, text)
                self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_examples(self):
        """What a help says about the shipped scenarios can be typed as it is, where these lie."""
        os.symlink(os.path.join(SOURCE_ROOT, "scenarios"), self.path("scenarios"))
        shown = {command: re.findall(r"^  pagedkv (.* scenarios/.*)$",
                                     self.done(command, "--help").stdout, re.M) for command in COMMANDS}
        for example in sum(shown.values(), []):
            with self.subTest(example):
                self.done(*example.split())
        self.assertEqual([command for command in COMMANDS if shown[command]], ["run", "compare", "gen"])
        self.assertEqual(len(self.read("thousand.jsonl").splitlines()), 1000)

    def test_flags(self):
        for command, flags in (("run", RUN_FLAGS), ("replay", REPLAY_FLAGS)):
            text = self.done(command, "--help").stdout
            named = set(re.findall(r"^  (?:-\w, |    )(--[\w-]+)", text, re.M)) - {"--help"}
            self.assertEqual(named, set(flags))

    def test_defaults(self):
        text = " ".join(self.done("replay", "--help").stdout.split())
        for flag, value in (("block-size", "16"), ("max-num-seqs", "256"), ("preset", "vllm"),
                            ("max-num-batched-tokens", "8192"), ("hash-block-size", "512"),
                            ("step-time", "affine:10,0.025,0,0"), ("speedup", "1")):
            self.assertRegex(text, rf"--{flag} \w+ [^()]*\(default: {re.escape(value)}\)")

    def test_man_pages(self):
        for page in ("pagedkv",) + COMMANDS:
            with self.subTest(page):
                text = self.done("--man", page).stdout
                self.assertTrue(text.startswith(".TH PAGEDKV"))
                for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS"):
                    self.assertIn(f".SH {section}\n", text)

    @unittest.skipUnless(shutil.which("man"), "no man here")
    def test_man_renders(self):
        for page in ("pagedkv", "files", "scenario") + COMMANDS:
            with self.subTest(page):
                self.write("page.1", self.done("--man", page).stdout)
                result = subprocess.run(
                    ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", self.path("page.1")],
                    capture_output=True, text=True, check=False,
                    env={**os.environ, "LC_ALL": "C.UTF-8", "MANPAGER": "cat", "MANWIDTH": "80"})
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn("SEE ALSO" if page in ("files", "scenario") else "EXIT STATUS", re.sub(r".\x08|\x1b\[\d*m", "", result.stdout))

    def facts(self, page):
        """Words in bold that begin a paragraph, by section."""
        text = self.done("--man", page).stdout.replace("\\-", "-")
        parts = re.split(r"(?m)^\.SH (.*)$", text)
        return {parts[i]: re.findall(r"(?m)^\.TP\n\\fB(.*)\\fR$", parts[i + 1])
                for i in range(1, len(parts), 2)}

    def test_man_files(self):
        """Its names are those in files of a run."""
        self.small()
        self.write("scenario.yaml", SCENARIO + "targets: {ttft_ms: 5}\n")
        self.done("run", "scenario.yaml", "-o", "out", "--set", "kv.host_blocks=5")
        facts = self.facts("files")
        for name in ("steps.csv", "requests.csv"):
            self.assertEqual(",".join(facts[name.upper()]),
                             self.read("out", name).decode().splitlines()[0])
        self.assertEqual([key for key in facts["SUMMARY.JSON"]
                          if key not in ("waste", "speculation", "samples", "whole", "sessions",
                                         "warm")],
                         list(self.summary("out")))
        kinds = ",".join(facts["EVENTS.JSONL"][1:]).replace(" ", "").split(",")
        events = [json.loads(line) for line in self.read("out", "events.jsonl").splitlines()]
        self.assertLessEqual({event["kind"] for event in events}, set(kinds))
        text = self.done("--man", "files").stdout.replace("\\fB", " ")
        for key in {key for event in events for key in event}:
            self.assertRegex(text, rf"\b{key}\b")

    def test_man_scenario(self):
        """Its names are those that the program offers for an unknown one."""
        self.small()
        facts = self.facts("scenario")
        for section, prefix in (("POOL", "kv."), ("LINK", "link."), ("SCHEDULER", "scheduler."),
                                ("STEP TIME", "step_time."), ("TRAFFIC", "traffic."),
                                ("TARGETS", "targets."), ("SPECULATION", "speculation."),
                                ("MEASURE", "measure.")):
            error = self.call("run", "scenario.yaml", "--set", prefix + "colour=1").stderr
            known = set(re.search(r"known in \S+: (.*)\n", error)[1].split(", "))
            named = {name.removeprefix("kv.") for name in facts[section]}
            self.assertEqual(named - {"title", "question"}, known)

    def test_completion(self):
        self.write("words", self.done("--completion", "bash").stdout)
        ask = "source ./words; COMP_WORDS=(pagedkv {}); COMP_CWORD={}; _pagedkv; echo ${{COMPREPLY[*]}}"

        def complete(words, at):
            return subprocess.run(["bash", "-c", ask.format(words, at)], cwd=self.folder,
                                  capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(complete("rep", 1), ["replay", "report"])
        self.assertEqual(complete("replay --num-g", 2), ["--num-gpu-blocks"])
        self.assertEqual(complete("diff --n", 2), [])
        self.assertEqual(complete("replay --preset vllm-2", 3), ["vllm-2025-09"])
        self.assertEqual(complete("run x --files sc", 4), ["scenario"])
        self.assertEqual(complete("replay x --format burst", 4), ["burstgpt"])
        self.assertEqual(complete("trace con", 2), ["convert"])
        self.assertEqual(complete("trace convert x --to bai", 5), ["bailian"])
        self.assertEqual(complete("help form", 2), ["formats"])


class Quickstart(ProgramCase):
    def test_path(self):
        """The last line it prints can be pasted, whatever the folder is called, and the README has it."""
        root = self.path('a "strange" $HOME `folder`')
        os.makedirs(os.path.join(root, "tools"))
        os.makedirs(os.path.join(root, "build", "tools"))
        shutil.copy(os.path.join(SOURCE_ROOT, "tools", "quickstart"), os.path.join(root, "tools"))
        # Nothing is installed or built: what is asked here is what comes after.
        for name, text in (("tools/install-deps", "#!/bin/sh\n"), ("tools/meson-path", "meson=true\n"),
                           ("build/build.ninja", ""), ("build/tools/pagedkv", "#!/bin/sh\necho run $1\n")):
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(root, name), 0o755)
        ran = subprocess.run([os.path.join(root, "tools", "quickstart")], cwd=self.folder,
                             capture_output=True, text=True, timeout=60, check=True)
        shown = ran.stdout
        self.assertEqual(ran.stderr, "")
        line = shown.splitlines()[-1]
        self.assertIn("\nrun replay\n", shown)
        for paste, folder in ((line, "/"), ('export PATH="$PWD/build/tools:$PATH"', root)):
            ran = subprocess.run(["/bin/sh", "-c", paste + "; pagedkv help"], cwd=folder, timeout=60,
                                 capture_output=True, text=True, check=True)
            self.assertEqual(ran.stdout, "run help\n")
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            self.assertIn("\n    " + paste + "\n", file.read())


    def test_first_time(self):
        """It says what takes so long, in one line that is not part of what the README shows."""
        os.makedirs(self.path("tools"))
        shutil.copy(os.path.join(SOURCE_ROOT, "tools", "quickstart"), self.path("tools"))
        build = "#!/bin/sh\nmkdir -p build/tools\nprintf '#!/bin/sh\\necho run $1\\n' >build/tools/pagedkv\n" \
                "chmod +x build/tools/pagedkv\n"
        for name, text in (("tools/install-deps", "#!/bin/sh\n"), ("tools/build", build),
                           ("tools/meson-path", "meson=tools/build\n")):
            self.write(name, text)
            os.chmod(self.path(name), 0o755)
        for said in ("quickstart: installs what is missing and builds in build/; this takes a moment\n", ""):
            ran = subprocess.run([self.path("tools", "quickstart")], capture_output=True, text=True,
                                 timeout=60, check=True)
            self.assertEqual(ran.stderr, said)
            self.assertTrue(ran.stdout.startswith("$ build/tools/pagedkv replay "))


class Listings(ProgramCase):
    def test_policies(self):
        rows = json.loads(self.done("policies", "--json").stdout)
        names = {(row["choice"], row["name"]) for row in rows}
        for pair in (("order", "fcfs"), ("order", "priority"), ("admit", "whole_prompt"),
                     ("admit", "first_chunk"), ("admit", "reserve_max"), ("on_blocked", "stop"),
                     ("on_blocked", "skip"), ("publish", "alloc"), ("publish", "computed"),
                     ("preempt", "newest"), ("preempt", "priority"), ("evict", "lru")):
            self.assertIn(pair, names)
        text = self.done("policies").stdout
        flowing = " ".join(text.split())
        for row in rows:
            self.assertTrue(row["summary"] and row["source"])
            longest = max(len(r["name"]) for r in rows if r["choice"] == row["choice"])
            said = f"{row['name']:{longest}}  {row['summary']} [{row['source']}]"
            self.assertIn(" ".join(said.split()), flowing)
            for param in row["params"]:
                self.assertRegex(text, rf"(?m)^ {{{longest + 4}}}{param['name']} \(")

    def test_one(self):
        """By its name; the others are left out."""
        rows = json.loads(self.done("policies", "preempt", "--json").stdout)
        self.assertEqual({row["choice"] for row in rows}, {"preempt"})
        self.assertIn("newest", {row["name"] for row in rows})
        self.assertTrue(self.done("policies", "preempt").stdout.startswith("preempt: "))
        self.assertNotIn("whole_prompt", self.done("policies", "preempt").stdout)
        for command, name, other in (("presets", "orca-max", "vllm"), ("formats", "azure", "native")):
            rows = json.loads(self.done(command, name, "--json").stdout)
            self.assertEqual([row["name"] for row in rows], [name])
            text = self.done(command, name).stdout
            self.assertTrue(text.startswith(name + " "), text)
            self.assertNotIn(f"\n{other} ", text)
        for command, given, near in (("policies", "premept", "preempt"), ("presets", "vlm", "vllm"),
                                     ("formats", "azrue", "azure")):
            result = self.call(command, given)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"'{given}'; the nearest is '{near}'", result.stderr)

    def test_width(self):
        """Lines are broken at the width of the terminal, 80 columns in a pipe, never over 100; what goes
        on stands below the text, right of every name."""
        for listing in ("policies", "presets", "formats"):
            for columns, most in ((None, 80), ("79", 79), ("100", 100), ("300", 100)):
                env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
                env.update({"COLUMNS": columns} if columns else {})
                lines = self.done(listing, env=env).stdout.splitlines()
                with self.subTest(listing, columns=columns):
                    self.assertLessEqual(max(map(len, lines)), most)
                    self.assertGreater(max(map(len, lines)), most - 15)
                    if listing != "policies":     # its columns begin choice by choice
                        text = {"presets": 16, "formats": 15}[listing]
                        for line in lines:
                            self.assertRegex(line, rf"^(\S.{{{text - 2}}} | {{{text}}}( {{2}})?)\S")

    def test_presets(self):
        rows = {row["name"]: row for row in json.loads(self.done("presets", "--json").stdout)}
        self.assertLessEqual({"vllm", "vllm-0.19", "vllm-2025-09"}, rows.keys())
        self.assertLessEqual({"orca-max", "orca-pow2", "orca-oracle"}, rows.keys())
        self.assertIn("48ebd6f2f", rows["vllm"]["source"])
        self.assertIn("2026-07-26", rows["vllm"]["source"])
        self.assertIn("67f3fb084", rows["vllm-2025-09"]["source"])
        for name in ("lightllm", "mc-sf"):
            self.assertIn("not checked against a run", rows[name]["source"])
        text = self.done("presets").stdout
        for name in rows:
            self.assertRegex(text, rf"(?m)^{re.escape(name)} ")

    def test_formats(self):
        rows = json.loads(self.done("formats", "--json").stdout)
        self.assertLessEqual({"native", "mooncake", "dynamo", "azure", "burstgpt", "vidur", "splitwise",
                              "blis", "llmservingsim", "bailian", "tokens", "csv"},
                             {row["name"] for row in rows})


class Waste(ProgramCase):
    """Runs of blocks, and what they waste, counted by hand."""

    # 8 blocks of 4. a holds a run of 4 for 13 positions in steps 0 to 5; b one of 2 for 6 positions in
    # steps 0 and 1; c wants 4 for 12 positions, and meanwhile the last 2 blocks are of no use.
    TRACE = """\
{"id": "a", "timestamp": 0, "input_length": 8, "output_length": 6, "max_tokens": 40}
{"id": "b", "timestamp": 0, "input_length": 5, "output_length": 2, "max_tokens": 40}
{"id": "c", "timestamp": 0, "input_length": 9, "output_length": 4, "max_tokens": 40}
"""

    def test_counted_apart(self):
        self.write("scenario.yaml", SCENARIO.replace("preset: vllm", "preset: orca-oracle")
                   .replace("title: eight", "title: runs of eight") + "  limit: 3\n")
        self.write("trace.jsonl", self.TRACE)
        text = self.done("run", "scenario.yaml", "--check", "-o", "out").stdout
        rows = self.rows("out", "steps.csv")
        self.assertEqual([row["used_blocks"] for row in rows], ["6", "6", "8", "8", "8", "8"])
        self.assertEqual([row["limit"] for row in rows], ["2", "2", "1", "0", "0", "0"])
        self.assertEqual([row["stored_tokens"] for row in rows],
                         ["13", "15", "19", "21", "23", "25"])
        # Positions promised: 19, 19, 25, 25, 25, 25 of 24, 24, 32, 32, 32, 32 held; 8 are free and of
        # no use in steps 0 and 1. Of 6 x 32.
        self.assertEqual(self.summary("out")["waste"], {
            "reserved_frac": 0.114583333,    # 22 / 192
            "internal_frac": 0.197916666,    # 38 / 192
            "external_frac": 0.083333333})   # 16 / 192
        self.assertEqual(list(self.summary("out"))[-1], "waste")
        self.assertRegex(text, r"(?m)^waste +11\.5 % of the pool reserved for later tokens, 19\.8 %")
        self.assertIn("no run of them is long enough", text)
        self.assertIn("prefix_cache: false", self.read("out", "scenario.yaml").decode())

    def test_paged_has_none(self):
        self.small()
        self.assertNotIn("waste", self.done("run", "scenario.yaml", "-o", "out").stdout)
        self.assertNotIn("waste", self.summary("out"))

    def test_traffic_without_limits(self):
        self.write("trace.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                "2023-11-16 18:00:00.0000000,3,3\n"
                                "2023-11-16 18:00:00.0100000,4,1\n"
                                "2023-11-16 18:00:00.0200000,7,2\n")
        flags = ("waste", "trace.csv", "--token-time", "10ms,1s", "--block-size", "4", "--fixed-max",
                 "6")
        figures = json.loads(self.done(*flags, "--json").stdout)
        self.assertEqual((figures["rows"], figures["last_arrival_us"]), (3, 20_000))
        self.assertEqual(figures["longer_than_fixed_max"], 1)
        self.assertEqual(figures["tbt_10ms"]["peak_tokens_at_us"], 20_000)
        self.assertEqual(figures["tbt_10ms"]["peak_tokens"], 12)
        self.assertEqual(figures["tbt_10ms"]["mean_running"], 1.5)
        self.assertEqual(figures["tbt_1s"]["peak_running"], 3)
        text = self.done(*flags).stdout
        self.assertRegex(text, r"(?m)^a token takes +10ms +1s$")
        self.assertRegex(text, r"(?m)^requests at once, most +2 +3$")
        self.assertRegex(text, r"(?m)^  reserved, true length +88\.57 %$")    # 31 / 35
        plain = json.loads(self.done("waste", "trace.csv", "--json").stdout)
        self.assertEqual([key for key in plain if key.startswith("tbt")],
                         ["tbt_20ms", "tbt_50ms", "tbt_100ms"])
        self.assertNotIn("reserve_fixed_max_used_fraction", plain["tbt_20ms"])

    def test_refused(self):
        self.small()
        for args, words in (
                (("trace.jsonl", "--token-time", "0"), "--token-time: '0' is not within 1 ns .. 1 h"),
                (("trace.jsonl", "--token-time", "20ms,"), "--token-time: ''"),
                (("trace.jsonl", "--token-time", "soon"), "--token-time: 'soon'"),
                (("trace.jsonl", "--token-time", ",".join("1" * 17)), "more than 16 times"),
                (("trace.jsonl", "--block-size", "2000000"), "--block-size: is not within"),
                (("trace.jsonl", "--fixed-max", "5000000000"), "--fixed-max: is not within"),
                (("nothing.csv",), "nothing.csv: "), ((), "TRACE is missing")):
            with self.subTest(args):
                result = self.call("waste", *args)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(words, result.stderr)


class Refused(ProgramCase):
    """Exit 2, one line on stderr that says what is wrong, nothing on stdout, nothing left behind."""

    def setUp(self):
        super().setUp()
        self.small()

    def wrong(self, *args, says):
        before = sorted(os.listdir(self.folder))
        result = self.call(*args)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, r"\A[^\n]+\n\Z")
        self.assertRegex(result.stderr, says)
        self.assertEqual(sorted(os.listdir(self.folder)), before)


class WrongUse(Refused):
    def test_unknown_command(self):
        self.wrong("repaly", "trace.jsonl", says="unknown command 'repaly'; the nearest is 'replay'")

    def test_unknown_option(self):
        self.wrong("replay", "trace.jsonl", "--num-block", "8", "-o", "out",
                   says="unknown option --num-block; the nearest is --num-blocks")
        self.wrong("run", "scenario.yaml", "-z", says="unknown option -z")
        self.wrong("--quiet", "run", says="unknown option --quiet")

    def test_nearest(self):
        """The beginning of a word first; none when nothing is near."""
        for given, near in (("--num", "--num-blocks"), ("--max-num", "--max-num-seqs"),
                            ("--prset", "--preset")):
            self.wrong("replay", "trace.jsonl", given, says=f"option {given}; the nearest is {near} ")
        self.wrong("replay", "trace.jsonl", "--colour", says=r"option --colour \(see")
        self.wrong("run", "scenario.yaml", "--set", "scheduler.premept=newest",
                   says="the nearest is 'scheduler.preempt'|the nearest is scheduler.preempt")
        self.wrong("run", "scenario.yaml", "--set", "scheduler.order=lmp", says="the nearest is 'lpm'")
        self.wrong("help", "explian", says="unknown command 'explian'; the nearest is 'explain'")
        self.wrong("xyz", says=r"unknown command 'xyz' \(see")

    def test_options_of_other_commands(self):
        for flag, says in (("--num-blocks", "replay, here say --set kv.num_blocks=N "),
                           ("--no-prefix-cache", "replay, here say --set kv.prefix_cache=false "),
                           ("--jobs", r"compare \(see")):
            self.wrong("run", "scenario.yaml", flag,
                       says=f"unknown option {flag}; it is one of pagedkv {says}")
        self.wrong("diff", "a", "b", "--set", "x", says=r"unknown option --set; .* pagedkv run \(see")

    def test_flags_of_engines(self):
        """What operators know from vllm serve and its kin, and how it is said here."""
        for flag, says in (("--tensor-parallel-size", "here it is --tp N "),
                           ("--tensor_parallel_size=2", "here it is --tp N "),
                           ("--num-gpu-blocks-override", "here it is --num-gpu-blocks N "),
                           ("--kv-cache-dtype", "here it is --kv-dtype TYPE "),
                           ("--no-enable-prefix-caching", "here it is --no-prefix-cache "),
                           ("--enable-prefix-caching", "here say --set kv.prefix_cache=true; .* on unless"),
                           ("--context-length", "here it is --max-model-len N "),
                           ("--scheduling-policy", r"here say --set scheduler.policy=fcfs\|priority "),
                           ("--request-rate", "--speedup X"),
                           ("--data-parallel-size", "one engine is simulated"),
                           ("--gpu-memory-utilization", "--kv-budget.* pagedkv size MODEL --gpu NAME "
                            "--utilisation X")):
            with self.subTest(flag):
                self.wrong("replay", "trace.jsonl", flag, says=f"option {flag.split('=')[0]}; .*{says}")
        self.wrong("run", "scenario.yaml", "--tensor-parallel-size", "2", says="here say --set kv.tp=N ")
        self.wrong("size", "llama-3.1-8b", "--gpu-memory-utilization", "0.9",
                   says="unknown option --gpu-memory-utilization; here it is --utilisation X ")
        self.wrong("size", "llama-3.1-8b", "--tensor-parallel-size=2", says="here it is --tp N ")

    def test_flags_of_engines_lead_somewhere(self):
        """What the table names is an option of ours, or a key of a scenario; what it answers is none."""
        with open(os.path.join(SOURCE_ROOT, "tools", "foreign.c"), encoding="utf-8") as file:
            rows = re.findall(r'^    \{"([a-z-]+)", (?:NULL|"([a-z-]+)"), (?:NULL|"([^"]+)"), ', file.read(), re.M)
        self.assertGreater(len(rows), 35)
        helps = " ".join(self.call(command, "--help").stdout for command in ("replay", "size"))
        keys = self.call("--man", "scenario").stdout.replace("\\-", "-")
        for foreign, option, key in rows:
            with self.subTest(foreign):
                self.assertEqual(foreign == option, f"--{foreign} " in helps or f"--{foreign}\n" in helps)
                self.assertRegex(helps, rf"--{option}\b" if option else "--help")
                for path in re.findall(r"(?:^|--set )[a-z]*\.?([a-z_]+)=", key):
                    self.assertIn(path, keys)

    def test_values(self):
        self.wrong("run", "scenario.yaml", "--quiet=3", says="--quiet takes no value")
        self.wrong("run", "scenario.yaml", "-o", says="-o needs a value")
        self.wrong("run", "scenario.yaml", "-qo", says="-qo needs a value: -qo DIR")
        self.wrong("run", "scenario.yaml", "-qz", says="unknown option -z")
        self.wrong("run", "scenario.yaml", "--set", says="--set needs a value")
        self.wrong("run", "scenario.yaml", "--fil", says="unknown option --fil;")

    def test_arguments(self):
        self.wrong("run", says="SCENARIO.yaml is missing")
        self.wrong("diff", "a", says="B is missing")
        self.wrong("run", "scenario.yaml", "more", says="'more' is one argument too many")

    def test_files(self):
        self.wrong("run", "scenario.yaml", "-o", "out", "--files", "steps,html", says="unknown file 'html'")
        self.wrong("run", "scenario.yaml", "-o", "out", "--files", "step",
                   says="unknown file 'step'; the nearest is 'steps'")
        self.wrong("run", "scenario.yaml", "-o", "out", "--files", "", says="--files: a name is empty")
        self.wrong("run", "scenario.yaml", "--files", "steps", says="--files .* -o DIR")

    def test_numbers(self):
        for value in ("0", "-1", "x", "1.5", ""):
            self.wrong("run", "scenario.yaml", "-o", "out", "--every", value, says="--every: ")
        self.wrong("replay", "trace.jsonl", "--num-blocks", "8", "--limit", "0", says="--limit: .*0")
        for flag in ("--block-size", "--num-blocks", "--max-num-seqs", "--limit"):
            for value in ("-3", "four", "99999999999999999999"):
                with self.subTest(f"{flag} {value}"):
                    self.wrong("replay", "trace.jsonl", "--num-blocks", "8", flag, value,
                               says=f"{flag}.*{value}")

    def test_set(self):
        self.wrong("run", "scenario.yaml", "--set", "kv.num_blocks", says="--set: .*KEY=VALUE")
        self.wrong("run", "scenario.yaml", "--set", "kv.num_block=9", says="--set.*num_block")
        self.wrong("run", "scenario.yaml", "--set", "kv.num_blocks=many", says="--set.*many")
        self.wrong("run", "scenario.yaml", "--set", "step_time=fixed:",
                   says="--set: step_time.*fixed:")

    def test_pool(self):
        self.wrong("replay", "trace.jsonl",
                   says="--num-blocks N, --num-gpu-blocks N or --kv-budget BYTES is required")
        self.wrong("replay", "trace.jsonl", "--num-blocks", "8", "--num-gpu-blocks", "9",
                   says="--num-gpu-blocks|--num-blocks")

    def test_step_time(self):
        for law in ("fixed", "fixed:", "fixed:1,2", "affine:1,2,3", "affine:1,2,3,4,5", "slow:1",
                    "fixed:1}", "fixed:-1", "fixed:0", "fixed:0.0000001"):
            with self.subTest(law):
                self.wrong("replay", "trace.jsonl", "--num-blocks", "8", "--step-time", law,
                           says="--step-time")

    def test_output(self):
        self.write("taken", "a file")
        self.wrong("run", "scenario.yaml", "-o", "taken", says="taken")
        self.wrong("run", "scenario.yaml", "-o", "taken/below", says="taken")
        self.wrong("run", "scenario.yaml", "-o", "", says="-o: .*empty")


class WrongInput(Refused):
    """What a file says is wrong; the place is named."""

    def scenario(self, text, says):
        self.write("scenario.yaml", text)
        self.wrong("run", "scenario.yaml", "-o", "new/out", says=r"\Ascenario\.yaml:" + says)

    def trace(self, text, says, *flags, name="trace.jsonl"):
        self.write(name, text)
        self.wrong("replay", name, "--num-blocks", "8", "-o", "new/out", *flags,
                   says=rf"\A{re.escape(name)}:" + says)

    def test_scenario_keys(self):
        self.scenario(SCENARIO.replace("block_size", "block_sise"), r"3:\d+: .*block_sise")
        self.scenario(SCENARIO.replace("num_blocks: 8", "num_blocks: eight"), r"4:\d+: .*eight")
        self.scenario(SCENARIO.replace("num_blocks: 8", "num_blocks: -8"), r"4:\d+: .*-8")
        self.scenario(SCENARIO.replace("num_blocks: 8", "num_blocks: [8]"), r"4:\d+: ")
        self.scenario(SCENARIO.replace("preset: vllm", "preset: vllmm"), r"6:\d+: .*vllmm")
        self.scenario(SCENARIO.replace("  num_blocks: 8", "  num_blocks: 8\n  num_gpu_blocks: 9"),
                      r"\d+:\d+: ")
        self.scenario(SCENARIO + "  requests: 3\n", r"\d+:\d+: ")
        self.scenario(SCENARIO.replace("kv:", "kv: ["), r"\d+:\d+: ")

    def test_large_scenario(self):
        """Time that grows with the square of the size would take minutes."""
        keys = "".join(f"key{i}: {i}\n" for i in range(100_000))
        self.scenario(SCENARIO + keys, r"10:1: unknown key 'key0'")
        levels = ",".join(map(str, range(200_000)))
        self.scenario(SCENARIO.replace("trace: trace.jsonl", "requests: 2") +
                      f"  prompt_tokens: 3\n  output_tokens: 3\n  priorities: [{levels},x]\n",
                      r"12:\d+: .*'x'")

    def test_scenario_file(self):
        self.scenario("", " .*empty")
        os.mkdir(self.path("folder"))
        self.wrong("run", "folder", says=r"\Afolder: ")
        self.wrong("run", "missing.yaml", says=r"\Amissing\.yaml: ")

    def test_trace_file(self):
        self.trace("", " .*empty")
        os.mkdir(self.path("folder"))
        self.wrong("replay", "folder", "--num-blocks", "8", "-o", "new/out", says=r"\Afolder: ")
        self.wrong("replay", "none.jsonl", "--num-blocks", "8", "-o", "new/out",
                   says=r"\Anone\.jsonl: ")

    def test_unreadable(self):
        os.chmod(self.path("trace.jsonl"), 0)
        os.chmod(self.folder, 0o755)
        nobody = {"user": 65534} if os.geteuid() == 0 else {}    # root reads everything
        try:
            result = self.call("replay", "trace.jsonl", "--num-blocks", "8", **nobody)
        except PermissionError:
            self.skipTest("the program lies where only root can start it")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"\Atrace\.jsonl: [^\n]*\n\Z")

    def test_place_of_a_missing_trace(self):
        self.scenario(SCENARIO.replace("trace.jsonl", "none.jsonl"),
                      r"9:10: traffic.trace: 'none.jsonl' cannot be opened")

    def test_two_values(self):
        self.scenario('{"kv": 1}\n{"kv": 2}\n', "2:1: a second value begins here")

    def test_trace_for_a_scenario(self):
        for command in ("run", "compare"):
            self.wrong(command, "trace.jsonl",
                       says=r"\Atrace\.jsonl: is a trace \(native\).*pagedkv replay")

    def test_scenario_for_a_trace(self):
        for flags in (("replay", "scenario.yaml", "--num-blocks", "8"), ("waste", "scenario.yaml")):
            self.wrong(*flags, says=r"\Ascenario\.yaml: is a scenario, not a trace: use pagedkv run\n")

    def test_a_pipe_is_read_once(self):
        """A broken scenario from a pipe, which has nothing more to give for a second look."""
        self.write("trace.jsonl", TRACE)
        os.mkfifo(self.path("pipe"))
        feed = subprocess.Popen(["cp", "trace.jsonl", "pipe"], cwd=self.folder)
        result = self.call("run", "pipe", "-o", "out")
        feed.wait(timeout=self.timeout)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"\Apipe:[^\n]*\n\Z")
        silent, write_end = os.pipe()
        self.addCleanup(os.close, write_end)
        self.addCleanup(os.close, silent)
        result = self.call("run", "-", stdin=silent)     # not a name for standard input here
        self.assertEqual(result.returncode, 2, result.stderr)

    def test_unknown_format(self):
        self.trace("when,what\n1,2\n", "1: .*unknown.*native, mooncake,.*pagedkv formats.*--columns arrival=")
        self.trace(bz2.compress(TRACE.encode()), " is packed with bzip2, which is not read")
        self.trace(b"PK\3\4rest of it", " is packed with zip, which is not read")

    def test_unknown_key(self):
        """The keys of the section are offered."""
        self.scenario(SCENARIO + "  colour: 1\n", r"10:3: .*known in traffic: trace, ")
        self.scenario(SCENARIO.replace("num_blocks: 8", "num_blocks: 8\n  colour: 1"),
                      r"5:3: .*known in kv: block_size, ")

    def test_forbidden_output(self):
        if os.geteuid() != 0:
            self.skipTest("root is needed to become somebody else")
        os.chmod(self.folder, 0o755)
        try:
            result = self.call("run", "scenario.yaml", "-o", "new/out", user=65534)
        except PermissionError:
            self.skipTest("the program lies where only root can start it")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"\Anew: .*: Permission denied\n\Z")

    def test_trace_rows(self):
        first = '{"timestamp": 5, "input_length": 8, "output_length": 6}\n'
        self.trace(first + '{"timestamp": 6, "input_le', r"2:\d+: ")
        self.trace(first + first.replace("8", '"8k"'), r"2:\d+: .*whole number.*string")
        self.trace(first + first.replace("8", "-8"), r"2:\d+: .*-8")
        self.trace(first + first.replace("5", "4"), r"2\b.*")
        self.trace(first + '{"timestamp": 6, "output_length": 6}\n', r"2\b.*input_length")
        self.trace(first + first.replace("}", ', "abort_ms": 4}'), r"2\b.*abort")
        self.trace(first + first.replace("}", ', "salt": ""}'), r"2\b.*salt")
        self.trace(first + first.replace("}", ', "colour": 1}'), r"2\b.*colour")

    def test_hash_ids(self):
        self.trace('{"timestamp": 0, "input_length": 1025, "output_length": 1, "hash_ids": [1, 2]}\n',
                   r"1\b.*\b2\b")
        self.trace('{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]}\n',
                   r"1\b.*\b2\b")

    def test_missing_column(self):
        self.trace("TIMESTAMP,ContextTokens\n2023-11-16 18:17:03.9799600,4808\n",
                   "1: column 'GeneratedTokens' is missing", "--format", "azure", name="azure.csv")

    def test_broken_at_row_500(self):
        row = '{"timestamp": %d, "input_length": 8, "output_length": 2}\n'
        text = "".join(row % i for i in range(499)) + '{"timestamp": 499, "input_length": x}\n'
        os.mkdir(self.path("kept"))
        self.write("kept/steps.csv", "of an earlier run")
        self.trace(text, r"500:\d+: ")
        self.wrong("replay", "trace.jsonl", "--num-blocks", "8", "-o", "kept", says=":500:")
        self.assertEqual(os.listdir(self.path("kept")), ["steps.csv"])
        self.assertEqual(self.read("kept", "steps.csv"), b"of an earlier run")

    def test_damaged_packing(self):
        text = "".join(f'{{"timestamp": {i}, "input_length": {8 + i % 7}, "output_length": 2}}\n'
                       for i in range(300)).encode()
        packed = {"gz": gzip.compress(text, mtime=0), "xz": lzma.compress(text)}
        if shutil.which("zstd"):
            packed["zst"] = subprocess.run(["zstd", "--check", "-c"], input=text, check=True,
                                           capture_output=True).stdout
        for ending, data in packed.items():
            for at in [8, *range(11, len(data), len(data) // 10), len(data) - 1]:
                damaged = {"cut": data[:at]}
                if at > 10:    # before it are dates and flags that nobody needs
                    damaged["flipped"] = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]
                for kind, content in damaged.items():
                    with self.subTest(f"{ending} {kind} at {at} of {len(data)}"):
                        self.trace(content, r" [a-z][^\n]{8,}\n", name=f"trace.jsonl.{ending}")


class Runs(ProgramCase):
    def setUp(self):
        super().setUp()
        self.small()

    def test_files(self):
        result = self.done("run", "scenario.yaml", "-o", "new/out")
        self.assertEqual(sorted(os.listdir(self.path("new/out"))), sorted(FILES))
        self.assertEqual(result.stderr, "")
        self.assertIn("8", result.stdout)
        # By hand: a takes 2 blocks, then a third for its ninth position (step 1), when b comes with
        # 2; in step 2 b takes its third, and c, which needs 4 of the 2 left, waits.
        rows = self.rows("new/out/steps.csv")
        self.assertEqual([int(row["used_blocks"]) for row in rows[:3]], [2, 5, 6])
        self.assertEqual([int(row["waiting"]) for row in rows[:3]], [0, 0, 1])
        self.assertEqual(self.summary("new/out")["requests"]["completed"], 3)

    def test_chosen_files(self):
        self.done("run", "scenario.yaml", "-o", "all")
        self.done("run", "scenario.yaml", "-o", "some", "--files", "steps,scenario", "--quiet")
        self.assertEqual(sorted(os.listdir(self.path("some"))), ["scenario.yaml", "steps.csv"])
        for name in ("steps.csv", "scenario.yaml"):
            self.assertEqual(self.read("some", name), self.read("all", name))

    def test_files_of_an_earlier_run(self):
        self.done("run", "scenario.yaml", "-o", "out")
        result = self.done("run", "scenario.yaml", "-o", "out", "--files", "steps,summary")
        self.assertEqual(result.stderr, "pagedkv: out: left from an earlier run: requests.csv, "
                         "events.jsonl, scenario.yaml, report.html, cache.csv\n")
        result = self.done("run", "scenario.yaml", "-o", "out", "--files", "steps", "-q")
        self.assertEqual(result.stderr, "")
        self.done("run", "scenario.yaml", "-o", "\x1b[2J")
        result = self.done("run", "scenario.yaml", "-o", "\x1b[2J", "--files",
                           "steps,requests,events,summary")
        self.assertEqual(result.stderr, "pagedkv: \\x1b[2J: left from an earlier run: scenario.yaml, "
                         "report.html, cache.csv\n")

    def test_numbers_as_people_write_them(self):
        self.write("synth.yaml", "kv: {num_blocks: 64}\ntraffic: {requests: 5, arrivals: {law: "
                   "poisson, rate_per_s: 600}, prompt_tokens: {law: lognormal, mean: 1200.5, cv: "
                   "0.1}, output_tokens: 8, aborts: {share: 0.000001, min: 250ms, max: 20s}}\n")
        self.done("run", "synth.yaml", "-o", "out", "-q")
        text = self.read("out", "scenario.yaml").decode()
        for line in ("rate_per_s: 600", "mean: 1200.5", "cv: 0.1", "share: 0.000001", "min: 250ms",
                     "max: 20s"):
            self.assertRegex(text, rf"(?m)^ +{re.escape(line)}$")

    def test_no_content(self):
        self.assertIn("the trace has no prompt content", self.done("run", "scenario.yaml").stdout)
        self.write("trace.jsonl", TRACE.replace('"input_length": 8', '"prompt": [["a", 8]]'))
        self.assertNotIn("no prompt content", self.done("run", "scenario.yaml").stdout)
        self.write("trace.jsonl", TRACE.replace('"input_length": 8', '"prompt": [[null, 8]]'))
        self.assertRegex(self.done("run", "scenario.yaml").stdout,
                         r"prefix hits none: no two prompts have text in common\n")

    def test_all_rejected(self):
        text = self.done("replay", "trace.jsonl", "--num-blocks", "1", "--block-size", "4").stdout
        # The longest: 16 + 2 tokens, of which 17 are stored, are 5 blocks of 4.
        self.assertIn("rejected    3 could never run; the longest: needs 5 blocks, the pool has 1\n",
                      text)
        self.assertIn("try next    room for what was rejected", text)
        self.assertTrue(text.startswith("NOTHING RAN: every request was rejected"), text)

    def test_plain_presets(self):
        """Nothing is told to differ from a preset where nothing does."""
        def once(pairs):
            self.assertEqual(len(pairs), len(dict(pairs)), pairs)
            return dict(pairs)
        for preset in json.loads(self.done("presets", "--json").stdout, object_pairs_hook=once):
            text = self.done("replay", "trace.jsonl", "--num-blocks", "64", "--max-model-len", "64",
                             "--preset", preset["name"]).stdout
            self.assertIn(f"\nscheduler   preset {preset['name']}; at most 256 sequences and", text)

    def test_step_time_in_words(self):
        for law, said in (("affine:20,0,0,0", "20.0 ms"),
                          ("affine:20,0,0.05,0", "20.0 ms + 50.0 us a decode"),
                          ("affine:10,0.025,0,0", "the larger of 10.0 ms and 25.0 us a prefill token")):
            self.assertIn(f"\nstep time   {said}\n",
                          self.done("run", "scenario.yaml", "--set", f"step_time={law}").stdout)

    def test_no_files(self):
        before = sorted(os.listdir(self.folder))
        self.done("run", "scenario.yaml")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_quiet(self):
        result = self.done("run", "scenario.yaml", "--quiet", "-o", "out")
        self.assertEqual((result.stdout, result.stderr), ("", ""))

    def test_same_bytes(self):
        self.done("run", "scenario.yaml", "-o", "one")
        self.done("run", "scenario.yaml", "-o", "two", "--check")
        self.same_contents("one", "two")

    def test_replaced(self):
        os.mkdir(self.path("out"))
        self.write("out/steps.csv", "old")
        self.write("out/other", "mine")
        self.done("run", "scenario.yaml", "-o", "out")
        self.assertTrue(self.read("out", "steps.csv").startswith(b"step,time_ns,"))
        self.assertEqual(self.read("out", "other"), b"mine")

    def test_resolved_scenario(self):
        self.done("run", "scenario.yaml", "-o", "one", "--set", "scheduler.admit=first_chunk")
        self.done("run", "one/scenario.yaml", "-o", "two")
        self.same_contents("one", "two")

    def test_flags_are_keys(self):
        self.done("replay", "trace.jsonl", "--block-size", "4", "--num-gpu-blocks", "9",
                  "--step-time", "fixed:1", "-o", "flags")
        self.done("run", "scenario.yaml", "-o", "keys")
        self.assertEqual(self.read("flags", "steps.csv"), self.read("keys", "steps.csv"))

    def test_set_wins(self):
        self.done("replay", "trace.jsonl", "--num-blocks", "8", "--block-size", "4", "--set",
                  "kv.block_size=16", "--step-time", "fixed:1", "-o", "out")
        self.assertEqual(self.summary("out")["blocks"]["block_size"], 16)

    def test_every(self):
        self.done("run", "scenario.yaml", "-o", "all")
        self.done("run", "scenario.yaml", "-o", "some", "--every", "3")
        rows, kept = self.rows("all", "steps.csv"), self.rows("some", "steps.csv")
        self.assertEqual(kept, rows[::3])

    def test_on_change(self):
        self.done("run", "scenario.yaml", "-o", "all")
        self.done("run", "scenario.yaml", "-o", "some", "--on-change")
        rows, kept = self.rows("all", "steps.csv"), self.rows("some", "steps.csv")
        self.assertLess(len(kept), len(rows))
        self.assertEqual([row for row in rows if row in kept], kept)

    def test_limit_and_speedup(self):
        self.done("replay", "trace.jsonl", "--num-blocks", "9", "--limit", "2", "--speedup", "0.5",
                  "--step-time", "fixed:1", "-o", "out")
        self.assertEqual([int(row["arrival_ns"]) for row in self.rows("out", "requests.csv")],
                         [0, 2_000_000])

    def test_sort(self):
        lines = TRACE.splitlines(keepends=True)
        self.write("trace.jsonl", lines[1] + lines[0] + lines[2])
        self.assertEqual(self.call("run", "scenario.yaml").returncode, 2)
        self.done("replay", "trace.jsonl", "--num-blocks", "8", "--sort", "-o", "out")
        arrivals = {row["id"]: row["arrival_ns"] for row in self.rows("out", "requests.csv")}
        self.assertEqual(arrivals, {"a": "0", "b": "1000000", "c": "2000000"})

    def test_stdin(self):
        flags = ("--num-blocks", "8", "--block-size", "4", "--step-time", "fixed:1")
        self.done("replay", "trace.jsonl", *flags, "-o", "file")
        with open(self.path("trace.jsonl"), "rb") as file:
            self.done("replay", "-", *flags, "-o", "pipe", stdin=file)
        self.assertEqual(self.read("file", "steps.csv"), self.read("pipe", "steps.csv"))

    def test_packed(self):
        flags = ("--num-blocks", "8", "--block-size", "4", "--step-time", "fixed:1")
        self.done("replay", "trace.jsonl", *flags, "-o", "plain")
        self.write("packed.gz", gzip.compress(TRACE.encode()))
        self.write("packed.xz", lzma.compress(TRACE.encode()))
        names = ["packed.gz", "packed.xz"]
        if shutil.which("zstd"):
            subprocess.run(["zstd", "-q", "trace.jsonl", "-o", "packed.zst"], cwd=self.folder,
                           check=True)
            names.append("packed.zst")
        for name in names:
            self.done("replay", name, *flags, "-o", name + ".out")
            self.assertEqual(self.read(name + ".out", "steps.csv"), self.read("plain", "steps.csv"))

    def test_strange_names(self):
        name = "a: 'b' \"c\" #d [e]\tü.jsonl"
        self.write(name, TRACE)
        self.done("replay", name, "--num-blocks", "8", "-o", "out")
        self.assertEqual(self.summary("out")["requests"]["completed"], 3)
        self.write("-dash.jsonl", TRACE)
        self.done("replay", "--num-blocks", "8", "--", "-dash.jsonl")

    def test_synthetic_seed(self):
        self.write("synth.yaml", "kv: {num_blocks: 64}\nstep_time: {model: fixed, ms: 1}\n"
                   "traffic: {requests: 50, arrivals: {law: poisson, rate_per_s: 20}, "
                   "prompt_tokens: {law: lognormal, mean: 60, cv: 1}, output_tokens: 8}\n")
        for name, seed in (("one", "7"), ("two", "7"), ("three", "8")):
            self.done("run", "synth.yaml", "--seed", seed, "-o", name)
        self.same_contents("one", "two")
        self.assertNotEqual(self.read("one", "steps.csv"), self.read("three", "steps.csv"))
        self.assertEqual(self.summary("three")["seed"], 8)


class Unfinished(ProgramCase):
    """Exit 3: what was done is kept."""

    def stuck(self, *flags):
        self.write("scenario.yaml", SCENARIO)
        self.write("trace.jsonl",
                   '{"id": "huge", "timestamp": 0, "input_length": 40, "output_length": 2}\n')
        result = self.call("run", "scenario.yaml", "-o", "out", "--set", "scheduler.oversized=wait",
                           *flags)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(self.rows("out", "requests.csv")[0]["status"], "unfinished")
        self.assertEqual(self.summary("out")["requests"]["unfinished"], 1)
        return result

    def test_stuck(self):
        result = self.stuck()
        self.assertIn("huge", result.stderr)
        self.assertRegex(result.stderr, r"\b1[01]\b")     # blocks it needs; of 8
        self.assertTrue(result.stdout.startswith("NOT FINISHED: "))
        self.assertEqual(self.summary("out")["outcome"], "stuck")

    def test_stuck_quiet(self):
        result = self.stuck("--quiet")
        self.assertRegex(result.stderr, r"\A[^\n]*huge[^\n]*\n\Z")
        self.assertEqual(result.stdout, "")

    def begin(self, *args, **kwargs):
        return subprocess.Popen([self.program, *args], cwd=self.folder, stdout=subprocess.PIPE,
                                text=kwargs.pop("text", True), **kwargs)

    def interrupt(self, which):
        self.write("scenario.yaml", ENDLESS)
        run = self.begin("run", "scenario.yaml", "-o", "out", stderr=subprocess.PIPE)
        partial = self.path("out", "steps.csv.partial")
        deadline = time.monotonic() + 60
        while not (os.path.exists(partial) and os.path.getsize(partial)):
            self.assertLess(time.monotonic(), deadline, "the run wrote nothing for a minute")
            time.sleep(0.02)
        run.send_signal(which)
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 3, err)
        self.assertRegex(err, r"interrupted after \d+ steps.*kept in out\n")
        self.assertEqual(sorted(os.listdir(self.path("out"))), sorted(FILES))
        self.assertTrue(out.startswith("NOT FINISHED: the run was interrupted"))
        self.assertEqual(self.summary("out")["outcome"], "interrupted")
        steps, counts = self.rows("out", "steps.csv"), self.summary("out")["requests"]
        self.assertEqual([int(row["step"]) for row in steps], list(range(len(steps))))
        self.assertEqual(counts["arrived"], sum(n for key, n in counts.items() if key != "arrived"))
        self.assertGreater(counts["completed"], 0)

    def test_interrupted(self):
        self.interrupt(signal.SIGINT)

    def test_terminated(self):
        self.interrupt(signal.SIGTERM)

    def test_terminal_closed(self):
        self.interrupt(signal.SIGHUP)

    def test_interrupted_before_the_first_byte(self):
        run = self.begin("replay", "-", "--num-blocks", "8", "-o", "out", stdin=subprocess.PIPE,
                         stderr=subprocess.PIPE)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        run.wait(timeout=60)
        self.assertEqual((run.returncode, run.stderr.read()),
                         (3, "pagedkv: interrupted before the first step\n"))
        self.assertFalse(os.path.exists(self.path("out")))
        for pipe in (run.stdin, run.stdout, run.stderr):
            pipe.close()

    def test_interrupted_on_a_silent_pipe(self):
        run = self.begin("replay", "-", "--num-blocks", "8", "-o", "out", stdin=subprocess.PIPE,
                         stderr=subprocess.PIPE)
        run.stdin.write(TRACE)
        run.stdin.flush()
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        run.wait(timeout=60)
        self.assertEqual(run.returncode, 3)
        self.assertEqual(sorted(os.listdir(self.path("out"))), sorted(FILES))
        for pipe in (run.stdin, run.stdout, run.stderr):
            pipe.close()

    def test_progress(self):
        """On a terminal, after a second; a second signal is not needed."""
        self.write("scenario.yaml", ENDLESS)
        master, slave = pty.openpty()
        run = self.begin("run", "scenario.yaml", stderr=slave)
        os.close(slave)
        seen, deadline = b"", time.monotonic() + 60
        while b"of virtual time" not in seen:
            self.assertTrue(select.select([master], [], [], deadline - time.monotonic())[0])
            seen += os.read(master, 4096)
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
        self.assertEqual(run.returncode, 3)
        os.close(master)

    def test_diagnosis_once(self):
        """A terminal shows the summary, which has it, and errors."""
        self.write("trace.jsonl", TRACE)
        for quiet in (False, True):
            master, slave = pty.openpty()
            run = subprocess.Popen([self.program, "replay", "trace.jsonl", "--num-blocks", "1",
                                    "--block-size", "4", "--set", "scheduler.oversized=wait",
                                    *(["-q"] if quiet else [])],
                                   cwd=self.folder, stdout=slave, stderr=slave, stdin=subprocess.DEVNULL)
            os.close(slave)
            text = b""
            try:
                while part := os.read(master, 4096):
                    text += part
            except OSError:      # Linux says so when the other side is closed
                pass
            os.close(master)
            self.assertEqual(run.wait(timeout=60), 3)
            self.assertEqual(" ".join(text.decode().split()).count("can never go on"), 1)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_full_stdout(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([self.program, "presets"], stdout=full, stderr=subprocess.PIPE,
                                    text=True, check=False)
        self.assertEqual(result.returncode, 3)
        self.assertIn("standard output", result.stderr)

    def test_closed_pipe(self):
        run = self.begin("policies", stderr=subprocess.PIPE)
        run.stdout.close()
        err = run.stderr.read()
        run.wait(timeout=60)
        run.stderr.close()
        self.assertEqual(err, "")


# A pool that is too small, so that counts change now and then.
THINNED = """\
kv: {block_size: 4, num_blocks: 48}
step_time: {model: fixed, ms: 1}
traffic:
  requests: 60
  arrivals: {law: poisson, rate_per_s: 60}
  prompt_tokens: {law: uniform, min: 4, max: 60}
  output_tokens: {law: uniform, min: 2, max: 60}
"""


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


class Memory(ProgramCase):
    """On a build without sanitizers, which need memory of their own."""

    def setUp(self):
        super().setUp()
        fast = os.environ.get("PKV_FAST_PROGRAM", "")
        if os.access(fast, os.X_OK):
            self.program = fast
        if self.call("--version", preexec_fn=limit_memory).returncode != 0:
            self.skipTest("a sanitizer needs the address space")

    def test_out_of_memory(self):
        self.write("trace.jsonl", TRACE)
        result = self.call("replay", "trace.jsonl", "--num-blocks", "2000000000", "-o", "out",
                           preexec_fn=limit_memory)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("memory", result.stderr)
        self.assertFalse(os.path.exists(self.path("out")))

    def peak_kib(self, num_requests):
        self.write("scenario.yaml", ENDLESS.replace("1000000000", str(num_requests)))
        run = subprocess.Popen([self.program, "run", "scenario.yaml", "--quiet"], cwd=self.folder)
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(run.returncode, 0)
        return usage.ru_maxrss

    def test_does_not_grow_with_requests(self):
        self.assertLess(self.peak_kib(1_000_000), self.peak_kib(10_000) + 2048)


class Picture(ProgramCase):
    def setUp(self):
        super().setUp()
        self.small()

    def picture(self, **env):
        return self.done("run", "scenario.yaml", env={"PATH": os.environ["PATH"], **env}).stdout

    def test_width(self):
        for columns in (60, 80, 120):
            text = self.picture(COLUMNS=str(columns), LANG="C.UTF-8")
            self.assertLessEqual(max(map(len, text.splitlines())), columns)
        self.assertLessEqual(max(map(len, self.picture(COLUMNS="x").splitlines())), 80)

    def test_locale(self):
        self.assertTrue(self.picture(LANG="C").isascii())
        self.assertFalse(self.picture(LANG="C.UTF-8").isascii())
        self.assertTrue(self.picture(LANG="C.UTF-8", LC_ALL="POSIX").isascii())

    def test_colour(self):
        def on_terminal(**env):
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
            run = subprocess.Popen([self.program, "run", "scenario.yaml"], cwd=self.folder,
                                   stdout=slave, stdin=subprocess.DEVNULL,
                                   env={"PATH": os.environ["PATH"], "TERM": "xterm", **env})
            os.close(slave)
            text = b""
            try:
                while part := os.read(master, 4096):
                    text += part
            except OSError:      # Linux says so when the other side is closed
                pass
            os.close(master)
            self.assertEqual(run.wait(timeout=60), 0)
            return text.decode()
        self.assertIn("\x1b[", on_terminal())
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            plain = on_terminal(**env)
            self.assertNotIn("\x1b", plain)
            self.assertLessEqual(max(map(len, plain.splitlines())), 72)
        self.assertNotIn("\x1b", self.picture(TERM="xterm"))


class Comparing(ProgramCase):
    """A recording made by hand: 4 usable blocks of 4 tokens, one prompt of 5, two tokens out."""
    CONFIG = {"name": "one", "block_size": 4, "num_blocks": 5, "max_num_seqs": 4,
              "max_num_batched_tokens": 64, "enable_prefix_caching": True,
              "enable_chunked_prefill": True, "policy": "fcfs", "long_prefill_token_threshold": 0,
              "watermark": 0.0, "reserve_full_isl": True, "max_model_len": 1024,
              "groups": [{"type": "full", "block_size": 4}], "spec": None,
              "async_scheduling": False, "log_blocks": True, "max_steps": 100, "stuck_steps": 3,
              "prefix_match_unit": None}
    REQUESTS = [{"id": "a", "arrival_step": 1, "prompt": [[7, 5]], "max_tokens": 2}]
    STEPS = [
        {"step": 1, "new": [["a", 0]], "resumed": [], "sched": [["a", 5]], "preempted": [],
         "aborted": [], "finished": [], "gen": 1, "free_sched": 2, "free": 2, "waiting": [],
         "running": ["a"], "n_waiting": 0, "n_running": 1, "preempt_total": 0, "cached_blocks": 1,
         "blocks": {"a": [[1, 2]]}, "evicted": []},
        {"step": 2, "new": [], "resumed": [], "sched": [["a", 1]], "preempted": [], "aborted": [],
         "finished": ["a"], "gen": 1, "free_sched": 2, "free": 4, "waiting": [], "running": [],
         "n_waiting": 0, "n_running": 0, "preempt_total": 0, "cached_blocks": 1, "blocks": {},
         "evicted": []}]

    def setUp(self):
        super().setUp()
        self.write("one.config.json", json.dumps(self.CONFIG))
        self.lines("one.requests.jsonl", self.REQUESTS)
        self.lines("one.steps.jsonl", self.STEPS)

    def lines(self, name, rows):
        self.write(name, "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))

    def conform(self, *flags, steps="one.steps.jsonl"):
        return self.call("conform", "one.config.json", "one.requests.jsonl", steps, *flags)

    def test_equal(self):
        result = self.conform("--check", "--emit", "ours.jsonl")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(list(map(json.loads, self.read("ours.jsonl").splitlines())), self.STEPS)
        self.assertEqual(self.conform("--quiet").stdout, "")

    def test_interrupted(self):
        """A long recording: millions of steps of one request."""
        self.write("one.config.json", json.dumps(dict(self.CONFIG, num_blocks=1000000,
                                                      max_model_len=4000000, max_steps=100000000)))
        self.lines("one.requests.jsonl", [dict(self.REQUESTS[0], max_tokens=3000000)])
        run = subprocess.Popen([self.program, "conform", "one.config.json", "one.requests.jsonl",
                                "one.steps.jsonl", "--emit", "ours.jsonl"], cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path("ours.jsonl.partial")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 3, err)
        found = re.search(r"\Apagedkv: interrupted after (\d+) steps; ours\.jsonl has them\n\Z", err)
        self.assertTrue(found, err)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("ours")], ["ours.jsonl"])
        kept = self.read("ours.jsonl").splitlines(True)
        self.assertEqual([json.loads(row)["step"] for row in kept],
                         list(range(1, int(found[1]) + 1)))

    def test_one_number_changed(self):
        for step, field, value in ((0, "free_sched", 3), (1, "gen", 2), (0, "sched", [["a", 4]]),
                                   (0, "blocks", {"a": [[1, 3]]}), (1, "evicted", [1])):
            with self.subTest(field):
                rows = [dict(row) for row in self.STEPS]
                rows[step][field] = value
                self.lines("changed.jsonl", rows)
                result = self.conform(steps="changed.jsonl")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stdout, rf"step {step + 1}\b")
                self.assertIn(field, result.stdout)

    def test_packed(self):
        self.write("one.steps.jsonl.gz", gzip.compress(self.read("one.steps.jsonl")))
        self.assertEqual(self.conform(steps="one.steps.jsonl.gz").returncode, 0)

    def test_one_row_missing(self):
        self.lines("short.jsonl", self.STEPS[:1])
        self.assertEqual(self.conform(steps="short.jsonl").returncode, 1)

    def test_wrong_input(self):
        self.write("broken.jsonl", '{"step":1,\n')
        for steps, says in (("broken.jsonl", r"\Abroken\.jsonl:1:"), ("none.jsonl", r"\Anone\.jsonl: ")):
            result = self.conform("--emit", "ours.jsonl", steps=steps)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertRegex(result.stderr, says)
            self.assertFalse(os.path.exists(self.path("ours.jsonl")))
        self.assertEqual(self.conform("--preset", "nothing").returncode, 2)

    def test_diff(self):
        self.lines("other.jsonl", [self.STEPS[0], dict(self.STEPS[1], free=3)])
        self.assertEqual(self.call("diff", "one.steps.jsonl", "one.steps.jsonl").returncode, 0)
        result = self.call("diff", "one.steps.jsonl", "other.jsonl")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("free", result.stdout)
        self.assertEqual(self.call("diff", "one.steps.jsonl", "none").returncode, 2)

    def test_diff_of_thinned_runs(self):
        """However a run is thinned out it is the same run, and another one is another."""
        self.write("scenario.yaml", THINNED)
        ways = {"all": (), "every": ("--every", "5"), "change": ("--on-change",),
                "both": ("--every", "2", "--on-change")}
        for name, flags in ways.items():
            self.done("run", "scenario.yaml", "-q", "-o", name, *flags)
            self.done("run", "scenario.yaml", "-q", "-o", "other-" + name, *flags,
                      "--set", "kv.num_blocks=40")
        for a in ways:
            for b in ways:
                with self.subTest(a=a, b=b):
                    result = self.call("diff", f"{a}/steps.csv", f"{b}/steps.csv")
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                    result = self.call("diff", f"{a}/steps.csv", f"other-{b}/steps.csv")
                    self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        rows = self.read("all", "steps.csv").splitlines(True)
        for name, less in (("hole", rows[:40] + rows[50:]), ("head", rows[:60])):
            self.write(name, b"".join(less))
            for a in ways:
                with self.subTest(name, a=a):
                    self.assertEqual(self.call("diff", f"{a}/steps.csv", name).returncode, 1)
        for name, which in (("odd", rows[2::2]), ("even", rows[1::2])):
            self.write(name, rows[0] + b"".join(which))
        result = self.call("diff", "odd", "even")
        self.assertEqual((result.returncode, result.stderr),
                         (2, "even: has no step in common with odd\n"))

    def test_diff_of_runs(self):
        self.small()
        self.done("run", "scenario.yaml", "-o", "a")
        self.done("run", "scenario.yaml", "-o", "b", "--set", "kv.num_blocks=9")
        for name in ("steps.csv", "requests.csv"):
            self.assertEqual(self.call("diff", f"a/{name}", f"a/{name}").returncode, 0)
        result = self.call("diff", "a/steps.csv", "b/steps.csv")
        self.assertEqual(result.returncode, 1)
        self.assertIn("free_blocks", result.stdout)
        self.assertEqual(self.call("diff", "a/steps.csv", "a/requests.csv").returncode, 2)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SOURCE_ROOT = os.path.abspath(sys.argv.pop(2))
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
