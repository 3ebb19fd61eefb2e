#!/usr/bin/env python3
"""The requests over time of report.html: every phase is that of the Perfetto trace of the same run, and what
the mouse and the keyboard show is what requests.csv says.

usage: test_timeline.py PROGRAM SOURCE_ROOT
"""
import json
import os
import re
import sys

import browser
import tap
from chrome_trace import Trace
from program import ProgramCase
from test_perfetto import TROUBLE, troubled

SOURCE_ROOT = None      # set by main

# Of each request: id, arrival, end, and its phases that last some time.
PHASES = """
const {data} = pagedkv.timeline;
return data.requests.map((r) => [r.id, r.begin, r.end, Array.from({length: r.num}, (_, k) => {
  const i = r.first + k, more = k + 1 < r.num, whom = data.phases.for[i];
  return [data.names[data.phases.phase[i]], data.phases.begin_ns[i],
    more ? data.phases.begin_ns[i + 1] : r.end, whom > 0 ? data.byCame.get(whom - 1)?.id ?? "?" : null];
})]);"""

# More requests than there is room for, and a pool that is short now and then.
MANY = """\
kv: {block_size: 16, num_blocks: 200}
scheduler: {max_num_seqs: 40}
step_time: {model: fixed, ms: 1}
traffic:
  requests: 60000
  arrivals: {law: poisson, rate_per_s: 1400}
  prompt_tokens: {law: lognormal, mean: 60, cv: 1, max: 400}
  output_tokens: {law: lognormal, mean: 20, cv: 1, min: 1, max: 200}
"""


class TimelineCase(ProgramCase, browser.BrowserCase):
    def opened(self, *args, name="out"):
        self.done(*args, "-q", "-o", name, "--perfetto", "t.json")
        self.browser.open(self.path(name, "report.html"))
        self.browser.run("document.querySelector('.timeline').scrollIntoView({behavior: 'instant', "
                         "block: 'center'})")

    def trouble(self, num=120):
        self.write("scenario.yaml", TROUBLE)
        self.write("trace.jsonl", troubled(num))
        self.opened("run", "scenario.yaml")

    def check_phases(self, trace):
        """All of the page's against all of the trace's."""
        want = [[r.id, r.begin_ns, r.end_ns,
                 [[p.name, p.begin_ns, p.end_ns, p.args.get("for")] for p in r.phases]]
                for r in trace.requests.values()]
        self.assertEqual(self.browser.run(PHASES), want)

    def order(self, word):
        self.browser.run("""
          const select = document.querySelector('.timeline-tools select');
          select.value = arguments[0];
          select.dispatchEvent(new Event('change'));""", word)

    def hover(self, request_id, ns):
        """Move the mouse to a request's row at a moment. What the page then says, and the moment."""
        from selenium.webdriver.common.action_chains import ActionChains
        canvas, x, y = self.browser.run("""
          const t = pagedkv.timeline, row = t.shown.findIndex((r) => r.id === arguments[0]);
          t.box.scrollTop = Math.max(0, 16 * row - 100);
          const area = t.canvas.getBoundingClientRect();
          return [t.canvas, t.xOf(arguments[1]) - area.width / 2, 22 + 16 * row + 8 - t.box.scrollTop -
            area.height / 2];""", request_id, ns)
        ActionChains(self.browser.driver).move_to_element_with_offset(canvas, round(x), round(y)).perform()
        return self.browser.run("""
          const d = pagedkv.timeline.detail;
          return [{...d.dataset}, d.innerText, pagedkv.time.at];""")


def seconds(ns):
    return f"{int(ns) // 10**9:,}.{int(ns) % 10**9:09d} s"


class Shown(TimelineCase):
    def test_phases_are_those_of_the_trace(self):
        self.trouble()
        self.check_phases(Trace(self.path("t.json")))
        self.check_silent()

    def test_swapping_samples_and_a_cut(self):
        for name, *sets in (("swap_vs_recompute", "scheduler.on_preempt=auto", "kv.host_blocks=200",
                             "traffic.requests=200"),
                            ("samples_and_beams", "traffic.requests=30", "kv.num_blocks=300"),
                            ("sample", "kv.num_blocks=400", "horizon=5s")):
            with self.subTest(name):
                self.opened("run", os.path.join(SOURCE_ROOT, "scenarios", name + ".yaml"),
                            *(w for s in sets for w in ("--set", s)))
                self.check_phases(Trace(self.path("t.json")))
                self.check_silent()
                self.browser.screenshot("timeline-" + name)

    def test_mouse(self):
        """In the middle of each phase of some requests, and behind their ends."""
        self.trouble()
        self.order("arrival")
        rows = {row["id"]: row for row in self.rows("out", "requests.csv")}
        trace = Trace(self.path("t.json"))
        pixel = self.browser.run("return (pagedkv.time.to - pagedkv.time.from) / 1000")
        seen = set()
        for request_id in ("r6", "r14", "r19", "r28", "r40", "r66"):
            row, request = rows[request_id], trace.requests[request_id]
            for phase in request.phases:
                if phase.end_ns - phase.begin_ns < 3 * pixel:
                    continue
                data, text, at = self.hover(request_id, (phase.begin_ns + phase.end_ns) // 2)
                self.assertEqual((data["id"], data["phase"], int(data["begin"]), int(data["end"])),
                                 (request_id, phase.name, phase.begin_ns, phase.end_ns))
                self.assertTrue(phase.begin_ns <= at < phase.end_ns)
                self.assertIn(f"from {seconds(phase.begin_ns)} to {seconds(phase.end_ns)}", text)
                admitted = seconds(row["admitted_ns"]) if row["admitted_ns"] else "never"
                self.assertIn(f"arrived {seconds(row['arrival_ns'])}, admitted {admitted}, first token", text)
                if phase.name == "preempted":
                    whom = phase.args["for"]
                    self.assertIn(", as it was short of blocks itself from" if whom == request_id
                                  else f"for request {whom} from", text)
                if phase.name == "waiting":
                    self.assertEqual((data["begin"], data["end"]),
                                     (row["arrival_ns"], row["admitted_ns"] or row["finish_ns"]))
                seen.add(phase.name)
            if request.end_ns + 9 * pixel < self.browser.run("return pagedkv.time.to"):
                data, text, _ = self.hover(request_id, request.end_ns + 4 * pixel)
                self.assertEqual((data["id"], data["phase"]), (request_id, ""))
        self.assertLessEqual({"waiting", "prefill", "decode", "preempted"}, seen)
        self.check_silent()

    def test_decode_begins_with_the_first_token(self):
        """Zoomed in so far that a nanosecond is wider than a pixel, the mouse finds the very one."""
        self.trouble()
        row = next(r for r in self.rows("out", "requests.csv") if r["id"] == "r20")
        first = int(row["first_token_ns"])
        self.browser.run("pagedkv.time.setZoom(arguments[0] - 20, arguments[0] + 20)", first)
        for ns, phase in ((first - 1, "prefill"), (first, "decode")):
            data, _, at = self.hover("r20", ns)
            self.assertEqual((at, data["phase"]), (ns, phase))

    def test_zoom_is_shared(self):
        from selenium.webdriver.common.action_chains import ActionChains
        self.trouble()
        self.order("arrival")
        self.hover("r14", 60_000_000)
        ActionChains(self.browser.driver).click_and_hold().perform()
        self.hover("r14", 100_000_000)
        ActionChains(self.browser.driver).release().perform()
        shown = self.browser.run("return [pagedkv.time.from, pagedkv.time.to]")
        pixel = self.browser.run("return (pagedkv.time.end - pagedkv.time.begin) / 1000")
        self.assertAlmostEqual(shown[0], 60e6, delta=2 * pixel)
        self.assertAlmostEqual(shown[1], 100e6, delta=2 * pixel)
        self.assertEqual(self.browser.run("return pagedkv.charts[0].graph.xAxisRange()"), shown)
        inside = [row["id"] for row in self.rows("out", "requests.csv")
                  if int(row["arrival_ns"]) <= shown[1] and
                  int(row["finish_ns"] or row["arrival_ns"]) >= shown[0]]
        rows = self.browser.run("return pagedkv.timeline.shown.map((r) => r.id)")
        self.assertEqual(rows, sorted(inside, key=lambda id: int(id[1:])))
        self.browser.screenshot("timeline-zoomed")

    def test_keys(self):
        from selenium.webdriver.common.keys import Keys
        self.trouble()
        self.order("queue")
        box = self.browser.run("return document.querySelector('.timeline')")
        waits = sorted((row for row in self.rows("out", "requests.csv") if row["queue_ns"]),
                       key=lambda row: (-int(row["queue_ns"]), int(row["id"][1:])))
        longest = self.browser.run("return pagedkv.timeline.shown.map((r) => [r.id, r.queued])")
        self.assertEqual([pair for pair in longest if pair[0] in {row["id"] for row in waits[:20]}][:5],
                         [[row["id"], int(row["queue_ns"])] for row in waits[:5]])
        self.browser.run("arguments[0].focus({preventScroll: true})", box)
        said = lambda: self.browser.run("return {...pagedkv.timeline.detail.dataset}")
        self.browser.wait("return pagedkv.timeline.detail.dataset.id")
        self.assertEqual(said()["id"], longest[0][0])
        box.send_keys(Keys.ARROW_DOWN)
        self.assertEqual(said()["id"], longest[1][0])
        trace = Trace(self.path("t.json"))
        request = trace.requests[longest[1][0]]
        lasting = [p for p in request.phases if p.end_ns > p.begin_ns]
        for phase in lasting[1:]:
            box.send_keys(Keys.ARROW_RIGHT)
            data = said()
            self.assertEqual((data["phase"], int(data["begin"]), int(data["end"])),
                             (phase.name, phase.begin_ns, phase.end_ns))
            self.assertEqual(self.browser.run("return pagedkv.time.at"), phase.begin_ns)
        box.send_keys(Keys.ENTER)
        shown = self.browser.run("return [pagedkv.time.from, pagedkv.time.to]")
        self.assertTrue(shown[0] <= request.begin_ns and shown[1] >= request.end_ns)
        self.assertLess(shown[1] - shown[0], 1.2 * (request.end_ns - request.begin_ns))
        box.send_keys("0")
        self.assertEqual(self.browser.run("return [pagedkv.time.from, pagedkv.time.to]"),
                         self.browser.run("return [pagedkv.time.begin, pagedkv.time.end]"))
        box.send_keys(Keys.END)
        self.assertEqual(said()["id"], longest[-1][0])
        self.check_silent()

    def test_find(self):
        self.trouble()
        self.browser.run("pagedkv.time.setZoom(0, 1e6)")
        field = self.browser.run("return document.querySelector('.timeline-tools input[type=text]')")
        field.send_keys("r99\n")
        self.assertEqual(self.browser.run("return pagedkv.timeline.detail.dataset.id"), "r99")
        self.assertEqual(self.browser.run("return pagedkv.timeline.chosen.id"), "r99")
        field.clear()
        field.send_keys("nobody\n")
        self.assertIn("No request here is called nobody", self.browser.run(
            "return pagedkv.timeline.detail.textContent"))

    def test_several_runs(self):
        """One at a time; a run without report.html is told by its other files, which do not say this."""
        self.trouble(40)
        self.done("run", "scenario.yaml", "-q", "-o", "more", "--set", "kv.num_blocks=40")
        self.done("report", "out", "more", "-o", "both")
        self.browser.open(self.path("both", "report.html"))
        count = "return pagedkv.timeline.data.requests.reduce((sum, r) => sum + r.preemptions, 0)"
        for name, choose in (("out", None), ("more", 1), ("out", 0)):
            if choose is not None:
                self.browser.run_async("""
                  const select = document.querySelector('.timeline-run select'), before = pagedkv.timeline;
                  select.value = arguments[0];
                  select.dispatchEvent(new Event('change'));
                  const wait = () => pagedkv.timeline === before ? setTimeout(wait, 5) : done();
                  wait();""", choose)
            self.assertEqual(self.browser.run(count), self.summary(name)["preemptions"])
        self.assertEqual(self.browser.run("return document.querySelectorAll('.timeline').length"), 1)
        self.browser.run("pagedkv.time.setZoom(10e6, 50e6)")
        self.check_silent()
        os.remove(self.path("out", "report.html"))
        self.done("report", "out", "-o", "one")
        self.browser.open(self.path("one", "report.html"))
        self.assertIn("where the run itself wrote report.html", self.browser.run(
            "return document.querySelector('#timeline').parentElement.textContent"))
        self.check_silent()

    def test_dark(self):
        """Other colours, the same patterns; nothing on the console."""
        self.trouble()
        light = self.browser.run("return pagedkv.timeline.inks.decode.fill")
        self.browser.screenshot("timeline-light")
        self._browser.close()
        self._browser = browser.Browser(dark=True)
        self.addCleanup(self._browser.close)
        self.browser.open(self.path("out", "report.html"))
        self.browser.run("document.querySelector('.timeline').scrollIntoView({behavior: 'instant', "
                         "block: 'center'})")
        self.assertNotEqual(self.browser.run("return pagedkv.timeline.inks.decode.fill"), light)
        self.browser.screenshot("timeline-dark")
        self.check_silent()


class Many(TimelineCase):
    def test_sample_has_the_worst(self):
        """More than fit: every second one in the order of arrival, and the worst whatever their place."""
        self.write("scenario.yaml", MANY)
        self.opened("run", "scenario.yaml")
        rows = self.rows("out", "requests.csv")
        shown = [int(one[0]) for one in self.browser.run(PHASES)]
        about = self.browser.run("return pagedkv.timeline.data.about")
        self.assertEqual(about["requests"], 60000)
        self.assertGreater(about["stride"], 1)
        self.assertEqual(shown, sorted(set(shown)))
        self.assertLessEqual(set(range(0, 60000, about["stride"])), set(shown))
        by = lambda key: sorted(rows, key=key)[:50]
        queued = by(lambda row: (-int(row["queue_ns"]), int(row["id"])))
        preempted = by(lambda row: (-int(row["preemptions"]), -int(row["queue_ns"]), int(row["id"])))
        worst = {int(row["id"]) for row in queued + preempted}
        self.assertEqual(set(shown), set(range(0, 60000, about["stride"])) | worst)
        self.assertGreater(len([n for n in worst if n % about["stride"]]), 20)
        note = self.browser.run("return document.querySelector('#timeline').parentElement.textContent")
        self.assertIn(f"{len(shown):,} of 60,000 requests are drawn: every {about['stride']}th", note)
        self.check_size()
        wanted = Trace(self.path("t.json")).requests
        for request_id, begin, end, phases in self.browser.run(PHASES)[::997]:
            request = wanted[request_id]
            self.assertEqual((begin, end), (request.begin_ns, request.end_ns))
            self.assertEqual([phase[:3] for phase in phases],
                             [[p.name, p.begin_ns, p.end_ns] for p in request.phases])
        self.check_silent()

    def check_size(self):
        page = self.read("out", "report.html").decode()
        islands = re.findall(r'<script [^>]*id="pkv-timeline[^>]*>.*?</script>', page, re.S)
        self.assertEqual(len(islands), 3)
        print(f"# timeline: {sum(map(len, islands)):,} bytes", flush=True)
        self.assertLess(sum(map(len, islands)), 800_000)

    def test_one_preempted_for_ever(self):
        """One whose prompt finds no room beside another, and begins again and again: its first thousand
        phases, and the rest as one."""
        self.write("trace.jsonl", '{"id": "a", "timestamp": 0, "input_length": 8, "output_length": 4000}\n'
                   '{"id": "b", "timestamp": 1100, "input_length": 3000, "output_length": 10}\n')
        self.opened("replay", "trace.jsonl", "--num-blocks", "1010", "--block-size", "4", "--step-time",
                    "fixed:1", "--no-prefix-cache", "--max-num-batched-tokens", "512", "--set",
                    "scheduler.admit=first_chunk")
        trace = Trace(self.path("t.json"))
        for request_id, begin, end, phases in self.browser.run(PHASES):
            request = trace.requests[request_id]
            self.assertEqual((begin, end), (request.begin_ns, request.end_ns))
            self.assertEqual(sum(p[2] - p[1] for p in phases), end - begin)
            num = len(phases) - (request_id == "b")
            self.assertEqual([p[:3] for p in phases[:num]],
                             [[p.name, p.begin_ns, p.end_ns] for p in request.phases[:num]])
            if request_id == "b":
                self.assertGreater(len(request.phases), 1000)
                self.assertEqual((len(phases), phases[-1][0]), (1000, "more"))
        self.check_silent()


if __name__ == "__main__":
    browser.skip_without_browser()
    ProgramCase.program = os.path.abspath(sys.argv[1])
    SOURCE_ROOT = os.path.abspath(sys.argv[2])
    tap.main(__name__)
