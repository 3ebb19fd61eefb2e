#!/usr/bin/env python3
"""`pagedkv explain` from outside: lives told by hand, the worst in their order, errors, and the
request that the summary names.

usage: test_explain.py PROGRAM SOURCE_ROOT

The first three lives are public cases: head-of-line blocking, equal priorities, and a preempted
request that finds its own blocks. Blocks of 16 tokens, steps of 1 ms, so a tick is a step.
"""
import json
import os
import re
import shutil
import sys

import tap
from program import ProgramCase

SCENARIO = """\
kv: {{block_size: 16, num_blocks: {blocks}, prefix_cache: {cache}}}
scheduler: {{{scheduler}}}
step_time: {{model: fixed, ms: 1}}
traffic: {{trace: trace.jsonl}}
"""
HEAD_OF_LINE = ((0, 64, 20), (1, 128, 1), (1, 16, 1))
TWINS = ((0, 30, 8), (0, 30, 8))
PRIORITY = "order: priority, preempt: priority, requeue: by_order"


SOURCE_ROOT = None      # set by main


class Readme(ProgramCase):
    def test_shown_life(self):
        """The life in the README is what its command prints after the replay at its top."""
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            text = file.read()
        replay = re.search(r"\$ build/tools/pagedkv (replay [^\n]*)\n", text)[1].split()
        shown = re.search(r"```\n\$ pagedkv (explain [^\n]*)\n(.*?)```", text, re.S)
        replay[1] = os.path.join(SOURCE_ROOT, replay[1])
        self.done(*replay, "-q", "-o", "out")
        self.assertEqual(self.done(*shown[1].split()).stdout, shown[2])

    def test_way_to_the_life(self):
        """The commands before it lead there: the summary names one request, and --worst that and the one
        that is shown."""
        with open(os.path.join(SOURCE_ROOT, "README.md"), encoding="utf-8") as file:
            text = file.read().split("\n## Why was it slow: the life of a request\n")[1]
        text, _, shown = text.partition("\n```\n$ pagedkv explain out ")
        replay, asked, worst = (re.sub(" +#.*", "", line).split()
                                for line in re.findall(r"(?m)^    pagedkv (.*)$", text))
        self.assertEqual((replay[0], replay[-2:]), ("replay", ["-o", "out"]))
        replay[1] = os.path.join(SOURCE_ROOT, replay[1])
        self.assertIn("\nask         pagedkv " + " ".join(asked) + "  (", self.done(*replay).stdout)
        late = self.done(*worst).stdout.split("\n\n")[0]
        self.assertEqual(re.findall(r"(?m)^  (\d+) ", late), [asked[-1], shown.split("\n")[0]])
        self.assertNotIn("preempted for", self.done(*asked).stdout)
        self.assertIn("preempted for", shown)


class ExplainCase(ProgramCase):
    def run_case(self, rows, blocks, cache="false", scheduler="preset: vllm", ids="ABC", code=0):
        """Rows of (arrival in ms, prompt, output[, more fields])."""
        self.write("scenario.yaml", SCENARIO.format(blocks=blocks, cache=cache, scheduler=scheduler))
        lines = []
        for name, row in zip(ids, rows):
            line = {"id": name, "timestamp": row[0], "input_length": row[1], "output_length": row[2]}
            lines.append(json.dumps({**line, **(row[3] if len(row) > 3 else {})}) + "\n")
        self.write("trace.jsonl", "".join(lines))
        result = self.call("run", "scenario.yaml", "-o", "out")
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def life(self, name, folder="out"):
        """What is told, in one line an item: {label: text} of the foot, and the moments in order."""
        text = self.done("explain", folder, name).stdout
        head, told, foot = text.split("\n\n")
        return self.items(head), self.items(told), dict(self.items(foot))

    def items(self, text):
        items = []
        for line in text.splitlines():
            if line.startswith(" " * 12):
                items[-1][1] += " " + line.strip()
            else:
                items.append([line[:12].strip(), line[12:].strip()])
        return [tuple(item) for item in items]

    def data(self, name):
        return json.loads(self.done("explain", "out", name, "--json").stdout)

    def refused(self, says, *args):
        result = self.call("explain", *args)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertRegex(result.stderr, says)
        self.assertEqual(result.stdout, "")


class Lives(ExplainCase):
    maxDiff = None

    def test_behind_the_head(self):
        """Case 3: B needs 8 of 5 free blocks until A's come back at the end of tick 19; C behind it."""
        self.run_case(HEAD_OF_LINE, 10)
        _, told, foot = self.life("C")
        self.assertEqual(told, [
            ("step 1", "arrived"),
            ("step 1", "waited 19 steps to be admitted. For 19 steps B was first in line, refused for "
             "blocks: its next chunk did not fit (8 blocks needed, 5 free; A held 5). It ended when "
             "A finished, and B was let in before it"),
            ("step 20", "admitted: took 1 of 2 free blocks; 16 tokens scheduled"),
            ("step 20", "first token, 20 steps after its arrival"),
            ("step 20", "finished with 1 token, 20 steps after its arrival")])
        self.assertEqual(foot, {"time": "20 steps: waiting 19 steps (95.0 %), prefill 1 step (5.0 %), "
                                        "decoding 0 steps, preempted 0 steps"})
        _, told, _ = self.life("B")
        self.assertEqual(told[1], (
            "step 1", "waited 19 steps to be admitted. First in line at step 1, refused for blocks: its "
            "next chunk did not fit (8 blocks needed, 5 free; A held 5). It ended when A finished"))

    def test_preempted(self):
        """Case 6: the later twin falls at tick 3 with 32 stored tokens and resumes at 8."""
        rows = [(*row, {"priority": 1}) for row in TWINS]
        self.run_case(rows, 4, scheduler=PRIORITY)
        head, told, foot = self.life("B")
        self.assertEqual(head[1:], [("tokens", "30 prompt tokens, 8 tokens came out; priority 1"),
                                    ("blocks", "3 blocks held at most")])
        self.assertEqual(told, [
            ("step 0", "arrived"),
            ("step 0", "admitted: took 2 of 2 free blocks; 30 tokens scheduled"),
            ("step 0", "first token, 1 step after its arrival"),
            ("step 3", "preempted for A, which was short of a block (preempt: priority); gave up 2 "
             "blocks with 32 computed tokens; computed again 5 steps later"),
            ("step 3", "waited 5 steps to be resumed. First in line at step 4, refused for blocks: its "
             "next chunk did not fit (3 blocks needed, 1 free; A held 3). It ended when A finished"),
            ("step 8", "resumed: took 3 of 4 free blocks; 33 tokens scheduled, 32 of them for the "
             "second time"),
            ("step 12", "finished with 8 tokens, 13 steps after its arrival")])
        self.assertEqual(foot, {
            "largest gap": "6 steps between two tokens: it was preempted at step 3, away for 5 steps, "
                           "and had to compute again",
            "time": "13 steps: waiting 0 steps, prefill 1 step (7.7 %), decoding 7 steps (53.8 %), "
                    "preempted 5 steps (38.5 %)",
            "cost": "1 preemption, 32 tokens computed again"})

    def test_finds_its_own_blocks(self):
        """Case 16: one of its two blocks survives: 16 found, 17 scheduled, 16 of them again."""
        self.run_case(TWINS, 4, cache="true")
        _, told, foot = self.life("B")
        self.assertIn(("step 8", "resumed: took 3 of 4 free blocks; 16 tokens found in the prefix "
                       "cache; 17 tokens scheduled, 16 of them for the second time"), told)
        self.assertEqual(foot["cost"], "1 preemption, 16 tokens computed again")

    def test_data(self):
        self.run_case(TWINS, 4, cache="true")
        life = self.data("B")
        self.assertEqual(life["time_ns"], {"waiting": 0, "prefill": 1000000, "decoding": 7000000,
                                           "preempted": 5000000})
        self.assertEqual([(e["kind"], e["step"]) for e in life["life"]], [
            ("arrive", 0), ("admit", 0), ("first_token", 0), ("preempt", 3), ("wait", 3),
            ("resume", 8), ("finish", 12)])
        wait = life["life"][4]
        self.assertEqual(wait["causes"], [{
            "id": "B", "time_ns": 4000000, "step": 4, "limit": "blocks", "need_blocks": 3,
            "free_blocks": 1, "holders": [["A", 3]]}])
        self.assertEqual(wait["ended_by"], [{"id": "A", "kind": "finish", "time_ns": 8000000,
                                             "step": 7}])
        self.assertEqual(life["largest_gap"], {"ns": 6000000, "cause": "preemption",
                                               "time_ns": 3000000, "step": 3})

    def test_hit(self):
        """32 of 40 prompt tokens are shared with a request that is there."""
        rows = [(t, 40, o, {"prompt": [["g", 32], [None, 8]]}) for t, o in ((0, 4), (1, 2))]
        for row in rows:
            row[3]["input_length"] = 40
        self.run_case(rows, 8, cache="true")
        _, told, _ = self.life("B")
        self.assertEqual(told[1], ("step 1", "admitted: took 1 of 5 free blocks; 32 tokens found in the "
                                   "prefix cache, 80.0 % of the prompt; 8 tokens scheduled"))

    def test_aborted(self):
        """Case 9: cancelled at tick 5, two ticks after its preemption."""
        self.run_case((TWINS[0], (0, 30, 8, {"abort_ms": 5})), 4)
        _, told, foot = self.life("B")
        self.assertEqual(told[-1], ("step 5", "aborted while it was preempted; gave up 0 blocks; 3 tokens "
                                    "had come out; 5 steps after its arrival"))
        self.assertIn("waited 2 steps, and was not let in any more.", told[-2][1])
        self.assertEqual(foot["time"], "5 steps: waiting 0 steps, prefill 1 step (20.0 %), decoding 2 "
                                       "steps (40.0 %), preempted 2 steps (40.0 %)")

    def test_rejected(self):
        self.run_case(((0, 1002, 50), (0, 5, 50)), 50)
        head, told, _ = self.life_without_foot("A")
        self.assertTrue(head.startswith("Request A: rejected: needs 66 blocks, the pool has 50"))
        self.assertEqual(told[-1], ("step 0", "rejected: needs 66 blocks, the pool has 50"))

    def life_without_foot(self, name):
        text = self.done("explain", "out", name).stdout
        head, told = text.rstrip("\n").split("\n\n")
        return head, self.items(told), {}

    def test_unfinished(self):
        """A prompt larger than the pool waits for ever, and the one behind it."""
        self.run_case(((0, 1002, 50), (0, 5, 50)), 50, scheduler="oversized: wait", code=3)
        _, told, _ = self.life("B")
        self.assertEqual(told[1][1], "waited 1 step, and was not let in any more. For 1 step A was first "
                         "in line, refused for blocks: its next chunk did not fit (63 blocks needed, "
                         "50 free)")
        self.assertEqual(told[2], ("the end", "the run ended; it was not finished"))

    def test_milliseconds(self):
        """Where steps differ, times are times; a long step is named as the largest gap."""
        self.write("trace.jsonl", '{"id": "a", "timestamp": 0, "input_length": 16, "output_length": 9}\n'
                   '{"id": "b", "timestamp": 25, "input_length": 3000, "output_length": 1}\n')
        self.done("replay", "trace.jsonl", "--num-blocks", "512", "-q", "-o", "out")
        _, told, foot = self.life("a")
        self.assertEqual(told[0][0], "0.000 s")
        # Step 3 begins at 30 ms with the 3,000 tokens of b, 75 ms, beside the token of a.
        self.assertEqual(foot["largest gap"], "75.0 ms between two tokens: the step at 0.030 s, with 3,000 "
                         "prompt tokens of all requests in it and 1 decode")
        os.remove(self.path("out", "steps.csv"))
        _, _, foot = self.life("a")
        self.assertIn("or steps.csv is not there whole", foot["largest gap"])


class Worst(ExplainCase):
    def test_order(self):
        """Case 3 with more company: median per token of A 1, D 1, E 1, B 20 and C 20 steps is 1."""
        self.run_case(HEAD_OF_LINE + ((30, 16, 4), (40, 16, 4)), 10, ids="ABCDE")
        text = self.done("explain", "out", "--worst", "10").stdout
        self.assertEqual(text, (
            "Late: time to the end over the run's median a token, which is 1 step (2\nrequests)\n"
            "  B         late by 19 steps: waited 19 steps (blocks: 8 blocks needed, 5 free)\n"
            "  C         late by 19 steps: waited 19 steps, 19 steps of it behind B (blocks: 8 blocks "
            "needed, 5 free)\n"))
        data = json.loads(self.done("explain", "out", "--worst", "1", "--json").stdout)
        self.assertEqual(data["median_ns_per_token"], 1000000)
        self.assertEqual([(r["id"], r["why"], r["late_ns"]) for r in data["requests"]],
                         [("B", "late", 19000000)])

    def test_kinds(self):
        """One of each: a twin that was preempted and is late, one refused, one that is neither."""
        self.run_case(TWINS + ((50, 1000, 1),), 4)
        data = json.loads(self.done("explain", "out", "--worst", "5", "--json").stdout)
        self.assertEqual([(r["id"], r["why"]) for r in data["requests"]],
                         [("B", "late"), ("C", "rejected")])
        self.assertEqual(data["requests"][0]["cause"], "preempted 1 time, last for A, away for 5 steps "
                         "(blocks: 3 blocks needed, 1 free); 32 tokens computed again")

    def test_nothing(self):
        self.run_case(((0, 16, 2),), 4)
        self.assertIn("nothing to ask about", self.done("explain", "out", "--worst", "3").stdout)


class Errors(ExplainCase):
    def setUp(self):
        super().setUp()
        self.run_case(TWINS, 4)

    def test_use(self):
        self.refused("Give an ID", "out")
        self.refused("two questions", "out", "A", "--worst", "3")
        self.refused("at most 100", "out", "--worst", "101")

    def test_unknown_id(self):
        self.refused(r"\Aout/requests.csv: has no request 'nobody'", "out", "nobody")

    def test_missing(self):
        self.refused(r"\Anowhere/events.jsonl: .*explain reads the directory", "nowhere", "A")
        for name in ("events.jsonl", "requests.csv", "summary.json", "scenario.yaml"):
            shutil.copytree(self.path("out"), self.path("part"))
            os.remove(self.path("part", name))
            self.refused(rf"\Apart/{name}: ", "part", "A")
            shutil.rmtree(self.path("part"))

    def test_mixed(self):
        """Each file of a run beside those of another one."""
        shutil.copytree(self.path("out"), self.path("first"))
        self.run_case(TWINS + ((3, 30, 8),), 5)
        for name in ("events.jsonl", "requests.csv", "summary.json", "scenario.yaml"):
            shutil.copytree(self.path("first"), self.path("mix"))
            shutil.copy(self.path("out", name), self.path("mix", name))
            for args in (("A",), ("--worst", "3")):
                self.refused(r"\Amix/.*different runs", "mix", *args)
            shutil.rmtree(self.path("mix"))

    def test_damaged(self):
        events = self.read("out", "events.jsonl").split(b"\n")
        for line, says in ((b'{"time_ns":0', r"out/events.jsonl:3:\d+: "),
                           (b'{"time_ns":0,"step":0,"kind":"admit","id":"A"}', r"events.jsonl:3: .*lacks"),
                           (b'{"time_ns":0,"step":0,"kind":"dance","id":"A"}',
                            r"events.jsonl:3:\d+: 'dance' is no kind")):
            self.write("out/events.jsonl", b"\n".join(events[:2] + [line] + events[3:]))
            self.refused(says, "out", "A")
        self.write("out/events.jsonl", b"\n".join(events[:-3]) + b"\n")
        self.refused("finished requests: 1 here, 2 in summary.json.*cut off", "out", "A")

    def test_damaged_rows(self):
        rows = self.read("out", "requests.csv")
        self.write("out/requests.csv", rows.replace(b"completed", b"delighted", 1))
        self.refused(r"requests.csv:2:\d+: status 'delighted' is no status", "out", "A")
        self.write("out/requests.csv", rows.replace(b"id,", b"name,", 1))
        self.refused(r"requests.csv:1:1: does not begin", "out", "A")

    def test_same_id_twice(self):
        self.run_case(TWINS, 4, ids="AA")
        self.refused("requests.csv:3:1: a second request has the id 'A'", "out", "A")

    def test_strange_names(self):
        """Quotes, commas and what would steer a terminal, in a CSV field, in JSON and on the page."""
        name = 'a,"b"\x1b[31m'
        self.run_case(TWINS, 4, ids=("plain", name))
        text = self.done("explain", "out", name).stdout
        self.assertIn('Request a,"b"\\x1b[31m: completed', text)
        self.assertEqual(json.loads(self.done("explain", "out", name, "--json").stdout)["id"], name)


class NotLookedAt(ExplainCase):
    """A (16 + 40) and B (16 + 30) hold two blocks of 8 each in step 2, when C (100 tokens, 7 blocks) comes.
    B ends with step 29 and A with step 39."""
    ROWS = ((0, 16, 40), (0, 16, 30), (2, 100, 4))

    def told(self, scheduler):
        text = self.run_case(self.ROWS, 8, scheduler=scheduler)
        return text, " ".join(self.done("explain", "out", "C").stdout.split())

    def test_latch(self):
        text, life = self.told("on_blocked: latch")
        self.assertIn("waited 38 steps to be admitted. First in line at step 2, refused for blocks: its "
                      "next chunk did not fit (7 blocks needed, 4 free; A held 2 and B 2); at step 3, "
                      "latch: nobody was looked at for 27 steps after it was refused, until a running "
                      "request left (7 blocks needed, 4 free; A held 2 and B 2). It ended when A finished",
                      life)
        self.assertIn("try next    on_blocked: stop", text)

    def test_latch_of_another(self):
        """D goes before C, but the queue is shut: C is refused in step 2, B ends with step 29."""
        rows = self.ROWS + ((10, 16, 1, {"priority": -1}),)
        self.run_case(rows, 8, scheduler="on_blocked: latch, order: priority", ids="ABCD")
        self.assertIn("First in line at step 10, latch: nobody was looked at for 27 steps after C was "
                      "refused, until a running request left (1 block needed, 4 free; A held 2 and B 2). "
                      "It ended when B finished", " ".join(self.done("explain", "out", "D").stdout.split()))
        wait = [entry for entry in self.data("D")["life"] if entry["kind"] == "wait"][0]
        cause = wait["causes"][0]
        self.assertEqual((cause["refused"], cause["refused_step"], cause["latched_steps"]), ("C", 2, 27))

    def test_latch_of_one_that_is_gone(self):
        """C is aborted in step 5, which opens nothing; A and B run on, and D is first in line."""
        rows = self.ROWS[:2] + ((2, 100, 4, {"abort_ms": 5}), (10, 16, 1))
        self.run_case(rows, 8, scheduler="on_blocked: latch", ids="ABCD")
        self.assertIn("First in line at step 10, latch: nobody was looked at for 27 steps after one that "
                      "is gone was refused", " ".join(self.done("explain", "out", "D").stdout.split()))

    def blocked(self, *keys):
        log = map(json.loads, self.read("out", "events.jsonl").splitlines())
        return [tuple(e.get(key) for key in keys) for e in log if e["kind"] == "blocked"]

    def test_latch_in_the_log(self):
        self.run_case(self.ROWS, 8, scheduler="on_blocked: latch")
        self.assertEqual(self.blocked("step", "limit", "refused", "refused_step"),
                         [(2, 2, None, None), (3, 6, "C", 2)])

    def test_ranking_order(self):
        """D's tenant u is lifted to t's counter when it comes in step 10; as A and B go on, t's rises, so
        D would be first from step 11 on, though nobody has been ranked since step 2 or ever."""
        rows = tuple((*row, {"tenant": "t"}) for row in self.ROWS) + ((10, 16, 1, {"tenant": "u"}),)
        self.run_case(rows, 8, scheduler="on_blocked: latch, order: vtc", ids="ABCD")
        self.assertEqual(self.blocked("step", "id", "limit", "refused", "refused_step"),
                         [(2, "C", 2, None, None), (3, "C", 6, "C", 2), (11, "D", 6, "C", 2)])
        self.run_case(rows, 8, scheduler="mix: decode_first, order: vtc", ids="ABCD")
        self.assertEqual(self.blocked("step", "id", "limit", "refused")[:2],
                         [(2, "C", 6, None), (11, "D", 6, None)])

    def test_mix(self):
        text, life = self.told("mix: decode_first")
        self.assertIn("waited 38 steps to be admitted. First in line at step 2, mix: decode_first: nobody "
                      "was looked at while others decoded (7 blocks needed, 4 free; A held 2 and B 2). It "
                      "ended when A finished", life)
        self.assertIn("try next    mix: mixed", text)

    def test_latch_or_mix(self):
        life = self.told("mix: decode_first, on_blocked: latch")[1]
        self.assertIn("until a running request left; or mix: decode_first: nobody", life)


class Ask(ExplainCase):
    def asked(self, text):
        return [line for line in text.splitlines() if line.startswith(("ask ", "starving "))]

    def test_starving(self):
        """B of case 3 waits for 19 of 21 steps."""
        text = self.run_case(HEAD_OF_LINE, 10)
        self.assertEqual(self.asked(text),
                         ["ask         pagedkv explain out B  (waited 19 steps, 90.5 % of the run)"])
        text = self.done("run", "scenario.yaml").stdout
        self.assertEqual(self.asked(text), ["starving    request B: waited 19 steps, 90.5 % of the run"])
        text = self.done("run", "scenario.yaml", "-o", "some", "--files", "steps,summary").stdout
        self.assertEqual(self.asked(text), ["starving    request B: waited 19 steps, 90.5 % of the run"])

    def test_often_preempted(self):
        """Case 4 without its gate: X is preempted 19 times."""
        self.run_case(((0, 64, 40), (1, 160, 2)), 12,
                      scheduler="admit: first_chunk, max_num_batched_tokens: 64")
        text = self.done("run", "scenario.yaml", "-o", "out").stdout
        self.assertEqual(self.asked(text), ["ask         pagedkv explain out B  (preempted 19 times)"])

    def test_waited_long(self):
        """Eight that do not wait, whose first tokens come after one step, and one that waits from 104 to
        130, when the 64 tokens of another one have had their 30 steps."""
        rows = [(i, 16, 1) for i in range(0, 8)] + [(100, 64, 30), (104, 160, 1)]
        text = self.run_case(rows, 10, ids=[f"r {i}" for i in range(10)])
        self.assertEqual(self.asked(text), ["ask         pagedkv explain out 'r 9'  (waited 26 steps, the "
                                            "median first token"])

    def test_unfinished(self):
        text = self.run_case(((0, 1002, 50),), 50, scheduler="oversized: wait", code=3)
        self.assertEqual(self.asked(text),
                         ["ask         pagedkv explain out A  (unfinished 1 step after its arrival)"])

    def test_nothing(self):
        self.assertEqual(self.asked(self.run_case(TWINS, 4)), [])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    SOURCE_ROOT = os.path.abspath(sys.argv.pop(2))
    ProgramCase.program = os.path.abspath(sys.argv.pop(1))
    tap.main(__name__)
