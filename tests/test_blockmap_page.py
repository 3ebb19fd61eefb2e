#!/usr/bin/env python3
"""The block map of report.html: its frames unpacked here, by another program than the page's, and held
against steps.csv; and the map as a user has it, in a headless Chromium, by mouse and by keyboard.

usage: test_blockmap_page.py PROGRAM SOURCE_ROOT

Traces that are not part of the product are looked for in ../shared beside the checkout, or the folder
that PKV_SHARED names. Screenshots are kept, see browser.py.
"""
import base64
import csv
import gzip
import json
import os
import random
import re
import sys
import unittest

import browser
import tap
from program import ProgramCase

SOURCE_ROOT = SHARED = None     # set by main
ON_LINK = 2

# Three of five requests begin alike, on a pool with room for all: complete, with sharing and caching.
SHARERS = """\
kv: {block_size: 4, num_blocks: 40}
step_time: {model: fixed, ms: 1}
traffic:
  requests: 12
  arrivals: {law: poisson, rate_per_s: 200}
  prompt_tokens: 24
  output_tokens: {law: uniform, min: 4, max: 20}
  prefixes: {num: 2, tokens: 16, share: 1}
"""


# ---- islands, unpacked ----

def island(page, name):
    """The text of one, or None."""
    match = re.search(rf'<script type="[a-z/]+" id="pkv-{name}">(.*?)</script>', page, re.S)
    return match and match[1]


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def differences(data):
    """Zigzags of each value's difference to the one above; zeros are counted."""
    numbers = varints(data)
    for number in numbers:
        if number == 0:
            yield from (0 for _ in range(next(numbers)))
        else:
            yield -(number + 1) // 2 if number & 1 else number // 2


def table(page, name):
    """A table's columns as lists, of plain columns alone; None where there is no such table."""
    text = island(page, name)
    if text is None:
        return None
    head, *lines = text.rstrip("\n").split("\n")
    head, out = json.loads(head), {}
    if head["linear"] or head["less"] or head["plus"]:
        raise AssertionError(name + " has columns that are told by others")
    for column, line in zip(head["columns"], lines):
        last, values = 0, []
        for step in differences(gzip.decompress(base64.b64decode(line))):
            last += step
            values.append(last)
        if len(values) != head["rows"]:
            raise AssertionError(f"{name}.{column}: {len(values)} of {head['rows']} rows")
        out[column] = values
    return out


def rows_of(columns):
    names = list(columns)
    return [dict(zip(names, values)) for values in zip(*columns.values())]


class Map:
    """The frames of a page: each has `counts`, `tables` (places, None = null) and `cached`."""
    def __init__(self, page):
        self.head = json.loads(island(page, "blockmap"))
        self.rows = table(page, "blockmap-requests")["row"]
        ids = island(page, "blockmap-ids")
        self.ids = ids and gzip.decompress(base64.b64decode(ids.split("\n")[1])).decode().split("\n")
        self.places = iter((table(page, "blockmap-places") or {"block": []})["block"])
        self.bits = iter((table(page, "blockmap-cached") or {"bits": []})["bits"])
        self.tables = iter(rows_of(table(page, "blockmap-tables")))
        self.frames, before, words = [], {}, []
        for counts in rows_of(table(page, "blockmap-frames")):
            tables = [self._table(before) for _ in range(counts["tables"])]
            words = self._words(words, counts["cached_blocks"])
            before = {(t["request"], t["group"]): t for t in tables if t["holder"] != ON_LINK}
            self.frames.append({"counts": counts, "tables": tables, "cached": {
                32 * w + b for w, word in enumerate(words) for b in range(32) if word >> b & 1}})
        for left in (self.places, self.bits, self.tables):
            if next(left, None) is not None:
                raise AssertionError("islands have more than their frames")

    def _table(self, before):
        t = next(self.tables)
        former = before.get((t["request"], t["group"]))
        t["computed"] += former["computed"] if former else 0
        begin = t["nulls"]
        kept = former["places"][begin:begin + t["kept"]] if t["kept"] else []
        new = [next(self.places) for _ in range(t["blocks"] - begin - len(kept))]
        t["places"] = [None] * begin + kept + new
        return t

    def _words(self, before, num_cached):
        if num_cached == 0:
            return []
        num = (self.head["blocks"] + 31) // 32
        return [next(self.bits) ^ (before[w] if before else 0) for w in range(num)]

    def holders(self, frame):
        """Block -> the tables it stands in, as (request, place)."""
        out = {}
        for t in self.frames[frame]["tables"]:
            for place, block in enumerate(t["places"]):
                if block is not None:
                    out.setdefault(block, []).append((t["request"], place))
        return out

    def states(self, frame):
        """How many blocks are in each state, as the page words them."""
        f, head = self.frames[frame], self.head
        held = self.holders(frame)
        out = dict.fromkeys(("own", "shared", "reserved", "unused", "link", "cached", "free"), 0)
        out["cached"] = len(f["cached"])
        out["free"] = head["blocks"] - len(held) - len(f["cached"])
        out["shared"] = sum(len(tables) > 1 for tables in held.values())
        for t in f["tables"]:
            size = head["groups"][t["group"]]["block_size"]
            for place, block in enumerate(t["places"]):
                if block is None or len(held[block]) > 1:
                    continue
                is_state = head["groups"][t["group"]]["name"] == "state"
                filled = t["holder"] == ON_LINK or is_state or place * size < t["computed"]
                wanted = not head["takes_runs"] or place * size < t["end"]
                out["link" if t["holder"] == ON_LINK else "own" if filled
                    else "reserved" if wanted else "unused"] += 1
        return out


class MapCase(ProgramCase):
    def page(self, *names):
        return self.read(*names, "report.html").decode()

    def steps(self, *names):
        """steps.csv by step, of the columns that are looked at."""
        with open(self.path(*names, "steps.csv"), newline="", encoding="utf-8") as file:
            return {int(row["step"]): row for row in csv.DictReader(file)}

    def run_scenario(self, name, *flags):
        self.done("run", os.path.join(SOURCE_ROOT, "scenarios", name + ".yaml"), "-q", "-o", "out",
                  "--files", "steps,requests,report", *flags)

    def replay_conversations(self):
        trace = os.path.join(SHARED, "data", "traces", "azure2023_conv.csv")
        if not os.path.exists(trace):
            self.skipTest(f"{trace} is not there")
        self.done("replay", trace, "--block-size", "16", "--num-blocks", "2000", "-q", "-o", "out",
                  "--files", "steps,report")

    def check_frame(self, found, frame, step):
        counts, held = found.frames[frame]["counts"], found.holders(frame)
        self.assertTrue(found.frames[frame]["cached"].isdisjoint(held))
        self.assertEqual(len(held), int(step["used_blocks"]))
        self.assertEqual(len(found.frames[frame]["cached"]), int(step["cached_blocks"]))
        self.assertEqual(found.head["blocks"] - len(held), int(step["free_blocks"]))
        for name in ("time_ns", "dur_ns", "waiting", "running", "used_blocks", "free_blocks",
                     "cached_blocks", "stored_tokens"):
            self.assertEqual(counts[name], int(step[name]), name)

    def check_map(self, frames=None):
        """Of all frames, or so many drawn ones, everything that steps.csv has of it, too."""
        found, steps = Map(self.page("out")), self.steps("out")
        stride = found.head["stride"]
        self.assertEqual(found.head["ticks"], len(steps))
        self.assertEqual([frame["counts"]["step"] for frame in found.frames],
                         list(range(0, len(steps), stride)))
        for frame in sorted(random.Random(7).sample(range(len(found.frames)), frames)
                            if frames else range(len(found.frames))):
            self.check_frame(found, frame, steps[frame * stride])
        return found


class Frames(MapCase):
    def test_sharing_and_caching(self):
        self.write("scenario.yaml", SHARERS)
        self.done("run", "scenario.yaml", "-q", "-o", "out")
        found = self.check_map()
        self.assertEqual(found.head["stride"], 1)
        states = [found.states(i) for i in range(len(found.frames))]
        self.assertGreater(max(s["shared"] for s in states), 0)
        self.assertGreater(max(s["cached"] for s in states), 0)

    def test_cells_of_several_blocks(self):
        """Of a pool too large for a cell each, sums over the cells."""
        self.write("scenario.yaml", SHARERS)
        self.done("run", "scenario.yaml", "-q", "-o", "out", "--set", "kv.num_blocks=40000")
        page, steps = self.page("out"), self.steps("out")
        head, counts = json.loads(island(page, "blockmap")), table(page, "blockmap-frames")
        cells = table(page, "blockmap-cells")
        self.assertEqual(head["cell_blocks"], 16)
        num, sums = 40000 // 16, {name: 0 for name in cells}
        for frame, step in enumerate(counts["step"]):
            for name, column in cells.items():
                sums[name] += sum(column[frame * num:(frame + 1) * num])
            self.assertEqual(sums["used"], int(steps[step]["used_blocks"]))
            self.assertEqual(sums["cached"], int(steps[step]["cached_blocks"]))
        self.assertIsNone(island(page, "blockmap-places"))

    def test_small_run_is_complete(self):
        self.run_scenario("six_blocks")
        found = self.check_map()
        self.assertEqual(found.head["stride"], 1)
        self.assertEqual([found.ids[i] for i in range(len(found.rows))], ["a", "b", "c"])

    def test_reservations(self):
        """Of each request's run the parts, from the requests' own lengths."""
        self.run_scenario("paging_vs_reservation", "--set", "scheduler.preset=orca-pow2", "--set",
                          "traffic.requests=60")
        found = self.check_map()
        rows = {int(row["id"]): row for row in self.rows("out", "requests.csv")}
        self.assertTrue(found.head["takes_runs"])
        for frame in found.frames:
            for t in frame["tables"]:
                row = rows[found.rows[t["request"]]]
                self.assertEqual(t["end"], int(row["prompt_tokens"]) + int(row["output_tokens"]) - 1)
                self.assertEqual(t["blocks"] & t["blocks"] - 1, 0)
                self.assertEqual(t["places"], list(range(t["places"][0], t["places"][-1] + 1)))
            counts = frame["counts"]
            self.assertEqual(counts["reserved_slots"], sum(t["end"] - t["computed"] for t in frame["tables"]))
            self.assertEqual(counts["internal_slots"],
                             16 * counts["used_blocks"] - sum(t["end"] for t in frame["tables"]))

    def test_the_link(self):
        self.run_scenario("swap_vs_recompute", "--set", "scheduler.on_preempt=swap")
        found = self.check_map(100)
        links = [t for frame in found.frames for t in frame["tables"] if t["holder"] == ON_LINK]
        self.assertGreater(len(links), 0)

    def test_windows(self):
        self.run_scenario("gemma_windows")
        found = self.check_map(20)
        self.assertGreater(max(t["nulls"] for frame in found.frames for t in frame["tables"]), 0)

    def test_samples(self):
        self.run_scenario("samples_and_beams")
        self.check_map(50)

    def test_three_hundred_thousand_ticks(self):
        self.replay_conversations()
        found = self.check_map(40)
        page = self.page("out")
        size = sum(len(text) for text in re.findall(r'<script[^>]* id="pkv-blockmap.*?</script>', page, re.S))
        print(f"# the map takes {size} of {len(page)} bytes: {len(found.frames)} frames, every "
              f"{found.head['stride']}th of {found.head['ticks']} ticks")
        self.assertGreater(len(found.frames), 200)
        self.assertLess(size, 1_500_000)
        self.assertLess(len(page), 5_000_000)


# ---- in a browser ----

STATE = """
const body = document.querySelector(".blockmap"), text = (name) => body.querySelector(name).textContent;
const legend = {};
for (const item of body.querySelectorAll(".legend li"))
  legend[item.dataset.state] = Number(item.querySelector("b").textContent.replaceAll(",", ""));
return {step: Number(body.dataset.step), frame: Number(body.dataset.frame), legend,
        figures: text(".figures"), detail: text(".detail"), table: text(".table"),
        sampling: text(".sampling"), play: [...body.querySelectorAll("button")][2].textContent,
        highlight: body.dataset.highlight || "", at: pagedkv.time.at};
"""

# Each state in cells of one size with one ink, as black and white.
SHAPES = """
const size = arguments[0], F = blockmapFrames, out = {};
const inks = {outline: "#000", dot: "#000", paper: "#fff", text: "#000", mark: "#000", letter: "#fff"};
for (const name of ["FREE", "CACHED", "OWN", "SHARED", "RESERVED", "UNUSED", "LINK", "EXTERNAL"]) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size + 2;
  const c = canvas.getContext("2d");
  c.fillStyle = "#fff";
  c.fillRect(0, 0, size + 2, size + 2);
  blockmapPaint.block(c, 1, 1, size, {state: F[name], colour: "#000", label: "A", refs: 2, filled: 1}, inks);
  const data = c.getImageData(0, 0, size + 2, size + 2).data;
  out[name] = Array.from({length: data.length / 4}, (_, i) => data[4 * i]);
}
return out;
"""


@unittest.skipIf(browser.why_not(), browser.why_not())
class Page(MapCase, browser.BrowserCase):
    def open_page(self):
        from selenium.webdriver.common.keys import Keys
        self.keys = Keys
        self.browser.open(self.path("out", "report.html"))
        self.browser.run("document.documentElement.style.scrollBehavior = 'auto';"
                         "document.getElementById('block-map').scrollIntoView()")
        self.found, self.log = Map(self.page("out")), self.steps("out")
        self.body = self.find(".blockmap")
        self.grid = self.find(".blockmap .grid canvas")

    def find(self, selector):
        return self.browser.driver.find_element("css selector", selector)

    def state(self):
        """After what was asked for has been drawn."""
        self.browser.run_async("requestAnimationFrame(() => setTimeout(done, 0));")
        return self.browser.run(STATE)

    def button(self, title):
        self.find(f'.blockmap button[title^="{title}"]').click()
        return self.state()

    def press(self, *keys, where=None):
        (where or self.grid).send_keys(*keys)
        return self.state()

    def go_to_tick(self, tick):
        field = self.find('.blockmap input[type="number"]')
        field.clear()
        field.send_keys(str(tick), self.keys.ENTER)
        return self.state()

    def check_shown(self, state, frame):
        """The frame is shown, and its counts are those of its tick's row."""
        step = self.log[frame * self.found.head["stride"]]
        legend, wanted = state["legend"], self.found.states(frame)
        self.assertEqual(state["frame"], frame)
        self.assertEqual(state["step"], int(step["step"]))
        free = legend["free"] + legend.get("cached", 0) + legend.get("external", 0)
        self.assertEqual(free, int(step["free_blocks"]))
        self.assertEqual(legend.get("cached", 0), int(step["cached_blocks"]))
        self.assertEqual(sum(legend.values()) - free, int(step["used_blocks"]))
        for name, num in legend.items():
            if name not in ("free", "external"):
                self.assertEqual(num, wanted[name], name)
        words = (f"Tick {int(step['step']):,} at ", f"{int(step['used_blocks']):,} of ",
                 f" {int(step['free_blocks']):,} free", f"; {int(step['running']):,} request",
                 f"{int(step['waiting']):,} waiting.")
        for part in words:
            self.assertIn(part, state["figures"])

    def check_ten_frames(self):
        frames = random.Random(20).sample(range(len(self.found.frames)), min(10, len(self.found.frames)))
        for frame in frames:
            self.check_shown(self.go_to_tick(frame * self.found.head["stride"]), frame)

    def check_buttons(self):
        last = len(self.found.frames) - 1
        self.check_shown(self.button("First"), 0)
        self.check_shown(self.button("One frame forward"), 1)
        self.check_shown(self.button("One frame forward"), 2)
        self.check_shown(self.button("One frame back"), 1)
        self.check_shown(self.button("Last"), last)
        self.check_shown(self.button("One frame forward"), last)
        self.check_shown(self.button("One frame back"), last - 1)

    def check_keys(self):
        last = len(self.found.frames) - 1
        self.check_shown(self.press("b"), 0)
        self.check_shown(self.press("."), 1)
        self.check_shown(self.press("."), 2)
        self.check_shown(self.press(","), 1)
        self.check_shown(self.press("]"), min(11, last))
        self.check_shown(self.press("["), min(11, last) - 10)
        self.check_shown(self.press("e"), last)
        slider = self.find('.blockmap input[type="range"]')
        self.check_shown(self.press(self.keys.HOME, where=slider), 0)
        self.check_shown(self.press(self.keys.ARROW_RIGHT, where=slider), 1)

    def check_highlight(self, frame):
        """Choosing a request tells its table and marks its blocks."""
        from selenium.webdriver.support.ui import Select
        self.go_to_tick(frame * self.found.head["stride"])
        table = max(self.found.frames[frame]["tables"], key=lambda t: t["blocks"])
        choice = self.browser.driver.find_elements("css selector", ".blockmap select")[-1]
        Select(choice).select_by_value(str(table["request"]))
        state = self.state()
        numbers = []
        for piece in state["table"].split("computed", 1)[1].split(":", 1)[1].split():
            first, _, end = piece.partition("..")
            numbers += range(int(first), int(end or first) + 1)
        self.assertEqual(numbers, table["places"])
        self.assertIn(f"{table['blocks']:,} block", state["table"])
        self.assertIn(f"{table['computed']:,} position", state["table"])
        return state

    def test_small_run(self):
        self.run_scenario("six_blocks")
        self.open_page()
        self.assertIn("Every tick of the run has a frame: 12.", self.state()["sampling"])
        self.check_buttons()
        self.check_keys()
        for frame in range(len(self.found.frames)):
            self.check_shown(self.go_to_tick(frame), frame)
        self.check_highlight(2)
        self.browser.screenshot("blockmap-six-blocks")
        self.check_silent()

    def test_blocks_by_keyboard(self):
        """To every block; Enter highlights its holders one after the other."""
        self.run_scenario("six_blocks")
        self.open_page()
        self.go_to_tick(2)
        held = self.found.holders(2)
        self.assertIn("Block 0: ", self.press(self.keys.ARROW_RIGHT)["detail"])
        for block in range(6):
            state = self.press(*([self.keys.ARROW_RIGHT] if block else [self.keys.HOME]))
            self.assertTrue(state["detail"].startswith(f"Block {block}: "), state["detail"])
            self.assertIn(f"reference count {len(held.get(block, []))}", state["detail"])
            for request, _ in held.get(block, []):
                self.assertIn(f"request {self.found.ids[request]}, ", state["detail"])
        self.assertTrue(self.press(self.keys.END)["detail"].startswith("Block 5: "))
        shared = next(block for block, tables in held.items() if len(tables) == 2)
        self.press(self.keys.HOME, *[self.keys.ARROW_RIGHT] * shared)
        names = [self.press(self.keys.ENTER)["highlight"] for _ in range(3)]
        wanted = [self.found.ids[request] for request, _ in held[shared]]
        self.assertEqual(names, [*wanted, wanted[0]])
        self.assertEqual(self.press(self.keys.ESCAPE)["highlight"], "")
        self.check_silent()

    def test_pointer(self):
        from selenium.webdriver import ActionChains
        self.run_scenario("six_blocks")
        self.open_page()
        self.go_to_tick(2)
        width = self.grid.size["width"]
        over = ActionChains(self.browser.driver).move_to_element_with_offset(self.grid, width // 2 - 20, 0)
        over.perform()
        self.assertTrue(self.state()["detail"].startswith("Block 5: "), self.state()["detail"])
        self.assertTrue(self.find(".blockmap .tip").is_displayed())
        over.click().perform()
        self.assertEqual(self.state()["highlight"], self.found.ids[self.found.holders(2)[5][0][0]])
        self.check_silent()

    def test_play(self):
        self.run_scenario("six_blocks")
        self.open_page()
        self.press("b")
        self.assertEqual(self.press("p")["play"], "Pause")
        self.browser.run_async("const body = document.querySelector('.blockmap'); const look = () =>"
                               " Number(body.dataset.frame) >= 2 ? done() : setTimeout(look, 20); look();")
        self.assertEqual(self.press("p")["play"], "Play")
        frame = self.state()["frame"]
        self.assertGreaterEqual(frame, 2)
        self.browser.run_async("setTimeout(done, 500)")
        self.check_shown(self.state(), frame)

    def test_follows_and_leads_the_time(self):
        self.run_scenario("six_blocks")
        self.open_page()
        self.check_shown(self.go_to_tick(3), 3)
        self.assertEqual(self.state()["at"], int(self.log[3]["time_ns"]))
        for ns, frame in ((0, 0), (1_999_999, 1), (2_000_000, 2), (99_000_000, 11)):
            self.browser.run("pagedkv.time.setCursor(arguments[0])", ns)
            self.check_shown(self.state(), frame)
            self.assertEqual(self.state()["at"], ns)

    def test_reservations(self):
        self.run_scenario("paging_vs_reservation", "--set", "scheduler.preset=orca-pow2", "--set",
                          "traffic.requests=120")
        self.open_page()
        state = self.state()
        self.assertEqual(set(state["legend"]), {"own", "reserved", "unused", "free", "external"})
        self.check_shown(state, state["frame"])
        self.check_ten_frames()
        counts = self.found.frames[state["frame"]]["counts"]
        self.assertIn(f"{counts['reserved_slots']:,} reserved for later tokens", state["figures"])
        self.assertIn(f"{counts['internal_slots']:,} in runs that nothing", state["figures"])
        self.assertIn(f"{counts['external_slots']:,} free in runs too short", state["figures"])
        self.go_to_tick(state["step"])
        self.browser.screenshot("blockmap-reservations")
        self.check_silent()

    def test_cells_of_several_blocks(self):
        self.write("scenario.yaml", SHARERS)
        self.done("run", "scenario.yaml", "-q", "-o", "out", "--set", "kv.num_blocks=40000")
        self.browser.open(self.path("out", "report.html"))
        self.browser.run("document.documentElement.style.scrollBehavior = 'auto';"
                         "document.getElementById('block-map').scrollIntoView()")
        steps = self.steps("out")
        state = self.state()
        self.assertIn("a cell is 16 of them", state["sampling"])
        for _ in range(3):
            step, legend = steps[state["step"]], state["legend"]
            self.assertEqual(legend["own"] + legend["shared"], int(step["used_blocks"]))
            self.assertEqual(legend["cached"], int(step["cached_blocks"]))
            self.assertEqual(legend["free"] + legend["cached"], int(step["free_blocks"]))
            state = self.button("One frame back")
        self.grid = self.find(".blockmap .grid canvas")
        from selenium.webdriver.common.keys import Keys
        self.assertTrue(self.press(Keys.HOME)["detail"].startswith("Blocks 0 to 15: "))
        self.browser.screenshot("blockmap-cells")
        self.check_silent()

    def test_runs_side_by_side(self):
        """The maps of two runs on one page are at one time."""
        for preset in ("vllm", "orca-pow2"):
            self.done("run", os.path.join(SOURCE_ROOT, "scenarios", "paging_vs_reservation.yaml"), "-q", "-o",
                      preset, "--set", "scheduler.preset=" + preset, "--set", "traffic.requests=40")
        self.done("report", "vllm", "orca-pow2", "-o", "out")
        self.browser.open(self.path("out", "report.html"))
        self.browser.run("document.documentElement.style.scrollBehavior = 'auto';"
                         "document.getElementById('block-map').scrollIntoView()")
        times = [[int(row["time_ns"]) for row in self.steps(name).values()] for name in ("vllm", "orca-pow2")]
        stride = Map(self.page("orca-pow2")).head["stride"]
        bodies = self.browser.driver.find_elements("css selector", ".blockmap")
        self.assertEqual(len(bodies), 2)
        for tick in (0, 40, 317):
            field = bodies[0].find_element("css selector", 'input[type="number"]')
            field.clear()
            field.send_keys(f"{tick}\n")
            self.browser.run_async("requestAnimationFrame(() => setTimeout(done, 0));")
            self.assertEqual(int(bodies[0].get_attribute("data-step")), tick)
            other = max(step for step in range(0, len(times[1]), stride) if times[1][step] <= times[0][tick])
            self.assertEqual(int(bodies[1].get_attribute("data-step")), other)
        self.browser.screenshot("blockmap-side-by-side")
        self.check_silent()

    def test_a_page_from_other_files_says_so(self):
        self.run_scenario("six_blocks")
        os.remove(self.path("out", "report.html"))
        self.done("run", os.path.join(SOURCE_ROOT, "scenarios", "six_blocks.yaml"), "-q", "-o", "out",
                  "--files", "steps,requests,events,summary,scenario")
        self.done("report", "out")
        self.browser.open(self.path("out", "report.html"))
        self.assertIn("States of the pool are kept while a run goes on",
                      self.browser.run("return document.getElementById('panels').textContent"))
        self.check_silent()

    def test_shapes_tell_states_apart(self):
        """Without colour, as large as cells are, and as small."""
        self.write("scenario.yaml", SHARERS)
        self.done("run", "scenario.yaml", "-q", "-o", "out")
        self.open_page()
        for size in (5, 6, 9, 12, 16, 42):
            shapes = self.browser.run(SHAPES, size)
            names = list(shapes)
            for i, name in enumerate(names):
                for other in names[:i]:
                    apart = sum(abs(a - b) for a, b in zip(shapes[name], shapes[other]))
                    self.assertGreater(apart, 255, f"{name} and {other} in {size} pixels")

    def test_three_hundred_thousand_ticks(self):
        self.replay_conversations()
        self.open_page()
        sampling = self.state()["sampling"]
        self.assertIn(f"{len(self.found.frames):,} ticks of {len(self.log):,}", sampling)
        self.check_buttons()
        self.check_keys()
        self.check_ten_frames()
        fullest = max(range(len(self.found.frames)),
                      key=lambda i: self.found.frames[i]["counts"]["used_blocks"])
        self.check_shown(self.go_to_tick(fullest * self.found.head["stride"]), fullest)
        self.browser.screenshot("blockmap-conversations")
        self.check_highlight(fullest)
        self.browser.screenshot("blockmap-conversations-highlight")
        self.check_silent()

    def test_dark(self):
        self.replay_conversations()
        dark = browser.Browser(dark=True)
        self.addCleanup(dark.close)
        dark.open(self.path("out", "report.html"))
        dark.run("document.documentElement.style.scrollBehavior = 'auto';"
                 "document.getElementById('block-map').scrollIntoView()")
        dark.screenshot("blockmap-conversations-dark")
        self.assertEqual(dark.faults(), [])


if __name__ == "__main__":
    ProgramCase.program, SOURCE_ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    SHARED = os.environ.get("PKV_SHARED") or os.path.join(SOURCE_ROOT, os.pardir, "shared")
    ProgramCase.timeout = 300
    tap.main(__name__)
