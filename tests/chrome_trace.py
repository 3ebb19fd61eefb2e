"""A reader of the Chrome trace that --perfetto writes, which holds it to what it promises: phases that
balance and never overlap in a lane, times that never fall in a track, counters that are counters."""
import bisect
import collections
import gzip
import json

Slice = collections.namedtuple("Slice", "name begin_ns end_ns args")
PHASES = ("waiting", "prefill", "decode", "preempted", "recompute", "swapped", "swap in")
PREEMPTIONS, REJECTIONS, FIRST_LANE = 1, 2, 11      # threads of the process "requests"
COUNTERS = {"blocks free": "free_blocks", "blocks used": "used_blocks",
            "blocks cached": "cached_blocks", "requests waiting": "waiting",
            "requests running": "running", "preemptions total": "preemptions_total",
            "tokens scheduled": "sched_tokens"}


class Broken(Exception):
    pass


def need(is_so, *what):
    if not is_so:
        raise Broken(*what)


def ns(text):
    """Microseconds with three decimals, as they stand in the file."""
    whole, dot, part = text.partition(".")
    need(dot and len(part) == 3 and part.isdigit(), f"time {text}")
    return int(whole + part)


class Request:
    def __init__(self, event, args):
        self.id, self.begin_ns, self.args = event["name"], event["ts"], dict(args)
        self.end_ns, self.phases = None, []

    def total(self, *names):
        return sum(s.end_ns - s.begin_ns for s in self.phases if s.name in names)


class Trace:
    """requests by id, arrows (from request, to request, time), marks, counters as (name, time, value)."""

    def __init__(self, path):
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as file:
            events = json.load(file, parse_float=ns)
        self.requests, self.marks, self.counters, self.arrows = {}, [], [], []
        self.processes, self.threads = {}, {}
        self.times, self.open, self.starts, self.lane_ends = {}, {}, {}, {}
        for event in events:
            self.take(event)
        need(all(not stack for stack in self.open.values()), "a slice without an end")
        need(not self.starts, "an arrow without an end")

    def take(self, event):
        phase, pid, tid = event["ph"], event["pid"], event.get("tid")
        need(phase in "MBEisfC", f"phase {phase}")
        if phase == "M":
            self.take_name(event)
            return
        need(isinstance(event["ts"], int), "a time without three decimals")
        track = (pid, tid) if phase != "C" else (pid, event["name"], *event["args"])
        need(event["ts"] >= self.times.get(track, event["ts"]), "time falls", track, event)
        self.times[track] = event["ts"]
        if phase == "C":
            self.take_counter(event)
        else:
            need(pid == 1 and tid in self.threads, "a thread without a name", event)
            {"B": self.begin, "E": self.end, "i": self.mark, "s": self.start_arrow,
             "f": self.end_arrow}[phase](event, tid)

    def take_name(self, event):
        if event["name"] == "process_name":
            self.processes[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name":
            need(event["tid"] not in self.threads, "a thread is named again", event)
            self.threads[event["tid"]] = event["args"]["name"]
        else:
            need(event["name"] == "thread_sort_index", event)

    def begin(self, event, tid):
        stack, args = self.open.setdefault(tid, []), event.get("args", {})
        need(tid >= FIRST_LANE and len(stack) < 2, "nested too deep, or in no lane", event)
        if not stack:
            need(event["ts"] >= self.lane_ends.get(tid, event["ts"]), "overlap in a lane", event)
            need(event["name"] not in self.requests, "a request is there twice", event)
            request = self.requests[event["name"]] = Request(event, args)
            stack.append(request)
            return
        request = stack[0]
        at = request.phases[-1].end_ns if request.phases else request.begin_ns
        need(event["name"] in PHASES, event)
        need(event["ts"] == at, "a gap between two phases, or an overlap", event)
        stack.append(Slice(event["name"], event["ts"], None, args))

    def end(self, event, tid):
        need(self.open.get(tid), "an end without a begin", event)
        top = self.open[tid].pop()
        if isinstance(top, Request):
            top.end_ns = self.lane_ends[tid] = event["ts"]
            top.args.update(event["args"])
        else:
            self.open[tid][0].phases.append(top._replace(end_ns=event["ts"]))

    def mark(self, event, tid):
        need(event["s"] == "t" and tid in (PREEMPTIONS, REJECTIONS), event)
        self.marks.append((tid, event["ts"], event["name"], event["args"]))

    def enclosing(self, tid, event):
        need(len(self.open.get(tid, ())) == 2, "an arrow at no phase", event)
        return self.open[tid][0], self.open[tid][1]

    def start_arrow(self, event, tid):
        need(event["id"] not in self.starts, event)
        self.starts[event["id"]] = (self.enclosing(tid, event)[0], event["ts"])

    def end_arrow(self, event, tid):
        request, phase = self.enclosing(tid, event)
        start, at = self.starts.pop(event["id"])
        need(event["bp"] == "e" and phase.name in ("preempted", "swapped"), event)
        need(phase.begin_ns == event["ts"] == at and phase.args["for"] == start.id, event)
        self.arrows.append((start.id, request.id, at))

    def take_counter(self, event):
        (key, value), = event["args"].items()
        need(event["pid"] == 2 and isinstance(value, int) and value >= 0, event)
        self.counters.append((f"{event['name']} {key}", event["ts"], value))


def number(text):
    return int(text) if text else None


def check_request(request, row, end_of_run):
    """Its slices add up to its row of requests.csv."""
    args = request.args
    for key in ("status", "prompt_tokens", "output_tokens", "hit_tokens", "recomputed_tokens",
                "preemptions", "peak_blocks"):
        need(str(args[key]) == row[key], row["id"], key, args[key], row[key])
    need(args.get("reason", "") == row["reason"], row["id"], "reason")
    arrival, finish = int(row["arrival_ns"]), number(row["finish_ns"])
    if finish is None:
        finish = arrival if row["status"] == "rejected" else max(arrival, end_of_run)
    need((request.begin_ns, request.end_ns) == (arrival, finish), row["id"], "begin, end")
    need(request.total(*PHASES) == finish - arrival, row["id"], "sum of all phases")
    need((row["status"] == "rejected") == (not request.phases), row["id"], "phases")
    check_phases(request, row)


def check_phases(request, row):
    names = [phase.name for phase in request.phases]
    need(names.count("waiting") <= 1 and names[:1] in ([], ["waiting"]), row["id"], names)
    if row["admitted_ns"]:
        need(request.total("waiting") == int(row["queue_ns"]), row["id"], "waiting")
        need(names[1] == "prefill" and request.phases[1].begin_ns == int(row["admitted_ns"]), row["id"])
    else:
        need(set(names) <= {"waiting"}, row["id"], names)
    num = names.count("preempted") + names.count("swapped")
    need(num == int(row["preemptions"]), row["id"], "preemptions", num)
    need(bool(int(row["recomputed_tokens"])) <= ("recompute" in names), row["id"], "recompute")
    decodes = [phase.begin_ns for phase in request.phases if phase.name == "decode"]
    first = number(row["first_token_ns"])
    need(first is not None or not decodes, row["id"], "decode without a token")
    # Its last token may be its first, and under async scheduling it may come out while it waits again.
    away = any(p.name in ("preempted", "swapped") and p.begin_ns <= first <= p.end_ns
               for p in request.phases) if first is not None else True
    need(away or first == request.end_ns or decodes[0] == first, row["id"], "first decode", decodes[:1])


def moments(steps, is_done):
    """When counters are written, and what then: of steps.csv, and behind each step that no other one
    follows at once. None = steps.csv does not say."""
    for row, after in zip(steps, [*steps[1:], None]):
        begin, end = int(row["time_ns"]), int(row["time_ns"]) + int(row["dur_ns"])
        yield begin, {name: int(row[column]) for name, column in COUNTERS.items()}
        if after is not None and int(after["time_ns"]) <= end:
            continue
        free, total = int(row["free_blocks_end"]), int(row["free_blocks"]) + int(row["used_blocks"])
        nobody = 0 if after is not None or is_done else None
        yield end, {"blocks free": free, "blocks used": total - free, "blocks cached": None,
                    "requests waiting": nobody, "requests running": nobody,
                    "preemptions total": int(row["preemptions_total"]), "tokens scheduled": 0}


def check_counters(counters, steps, is_done):
    """They are those of steps.csv, written where they change and nowhere else."""
    now, at = {}, 0
    for time, want in moments(steps, is_done):
        for name in COUNTERS:
            if at < len(counters) and counters[at][:2] == (name, time):
                need(counters[at][2] != now.get(name), "written without a change", *counters[at])
                now[name] = counters[at][2]
                at += 1
            need(want[name] in (None, now.get(name)), "counter", name, time, want[name], now.get(name))
    need(at == len(counters), "counters that no step has", counters[at:at + 1])


def check(trace, requests, steps, events, is_done=True):
    """A trace against the rows of requests.csv and steps.csv and the events of events.jsonl."""
    need(trace.processes == {1: "requests", 2: "pool"}, trace.processes)
    need(set(trace.requests) == {row["id"] for row in requests}, "requests")
    end = int(steps[-1]["time_ns"]) + int(steps[-1]["dur_ns"]) if steps else 0
    for row in requests:
        check_request(trace.requests[row["id"]], row, end)
    check_counters(trace.counters, steps, is_done)
    check_marks(trace, events)
    check_returns(trace, steps, events)


def check_marks(trace, events):
    wanted, arrows = [], []
    for event in events:
        if event["kind"] == "preempt":
            wanted.append((PREEMPTIONS, event["time_ns"], event["id"],
                           {key: event[key] for key in ("for", "freed_blocks", "lost_tokens")}))
            if event["for"] != event["id"]:
                arrows.append((event["for"], event["id"], event["time_ns"]))
        elif event["kind"] == "reject":
            wanted.append((REJECTIONS, event["time_ns"], event["id"], {"reason": event["reason"]}))
    need(trace.marks == wanted, "marks")
    need(trace.arrows == arrows, "arrows")


def check_returns(trace, steps, events):
    """Who waits again does so until it is resumed; blocks come back until the first step that begins
    when the link is through; and a step computes again only what somebody in recompute had lost."""
    begins = {}
    for event in events:
        if event["kind"] in ("preempt", "resume", "swap_out", "swap_in"):
            begins.setdefault(event["id"], {}).setdefault(event["time_ns"], []).append(event)
    starts = [int(row["time_ns"]) for row in steps]
    for request in trace.requests.values():
        for phase in request.phases:
            check_return(phase, begins.get(request.id, {}), starts)
    recomputing = [p for r in trace.requests.values() for p in r.phases if p.name == "recompute"]
    for row in steps:
        at = int(row["time_ns"])
        need(row["recomputed_tokens"] == "0" or any(p.begin_ns <= at < max(p.end_ns, p.begin_ns + 1)
                                                    for p in recomputing), "recompute", row["step"])


def check_return(phase, begins, starts):
    kinds = {event["kind"]: event for event in begins.get(phase.begin_ns, ())}
    if phase.name in ("preempted", "swapped"):
        need("preempt" in kinds and ("swap_out" in kinds) == (phase.name == "swapped"), phase, kinds)
        later = sorted(at for at, found in begins.items()
                       if at >= phase.begin_ns and any(e["kind"] == "resume" for e in found))
        need(not later or phase.end_ns <= later[0], "resumed before", phase)
        need(phase.end_ns in later or not later, "resumed later", phase)
    elif phase.name == "swap in":
        need("swap_in" in kinds, phase, kinds)
        done = kinds["swap_in"]["done_ns"]
        at = bisect.bisect_left(starts, done)
        need(at == len(starts) or phase.end_ns <= starts[at], "swap in too long", phase, done)
        need(phase.end_ns >= done or phase.end_ns < starts[-1], "swap in too short", phase, done)
