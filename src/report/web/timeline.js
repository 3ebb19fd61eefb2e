/*
 * timeline.js - requests over time: a row for each, what it was in the middle of, and for whom it gave way.
 *
 * A row has a bar for each phase. Phases differ in colour, in pattern and in height, so that they are told
 * apart without colour. Time is that of the charts above: zoom and cursor are shared. Rows that are not
 * seen are not drawn; a box as high as all of them scrolls.
 */
"use strict";

(() => {
  const {element, count, duration} = pagedkv;
  const several = (n) => `${count(n)} row${n === 1 ? "" : "s"}`;
  const ROW = 16, HEAD = 22, LEFT = 64, RIGHT = 64;

  /* How a phase looks: colour of the page, share of the row's height, pattern drawn over it. */
  const LOOKS = {
    "waiting": {colour: "--c6", height: 0.3, pattern: null, says: "not admitted yet"},
    "prefill": {colour: "--c1", height: 0.8, pattern: null, says: "until its first token"},
    "decode": {colour: "--c3", height: 0.55, pattern: null, says: "from its first token on"},
    "preempted": {colour: "--c2", height: 0.8, pattern: "cross", says: "lost its blocks, waits again"},
    "recompute": {colour: "--c5", height: 0.8, pattern: "stripes", says: "computes again what it lost"},
    "swapped": {colour: "--c4", height: 0.8, pattern: "slant", says: "its blocks are on the host"},
    "swap in": {colour: "--c4", height: 0.55, pattern: "dots", says: "its blocks are copied back"},
    "more": {colour: "--c6", height: 0.8, pattern: "slant", says: "more phases than are kept"},
  };

  /* ---- what is drawn ---- */

  const COLUMNS = ["arrival_ns", "admitted_ns", "first_token_ns", "finish_ns", "status", "prompt_tokens",
    "output_tokens", "hit_tokens", "recomputed_tokens", "preemptions", "peak_blocks"];
  const LOSES = new Set(["waiting", "preempted", "swapped", "swap in", "recompute"]);

  /* Requests in the order of their arrival, with their phases: {row, came, id, begin, end, first, num}. */
  async function load(run) {
    const about = run.json("timeline-about");
    const [own, phases, rows, ids] = await Promise.all([
      run.columns("timeline", ["row", "came", "num_phases"]),
      run.columns("timeline-phases", ["phase", "begin_ns", "for"]),
      run.columns("requests", COLUMNS), run.texts("requests-id")]);
    const names = [...about.phases, "more"], requests = [], byCame = new Map();
    for (let i = 0, at = 0; i < own.rows; at += own.num_phases[i++]) {
      const row = own.row[i], status = about.statuses[rows.status[row]];
      const end = rows.finish_ns[row] >= 0 ? rows.finish_ns[row]
        : status === "rejected" ? rows.arrival_ns[row] : Math.max(about.end_ns, rows.arrival_ns[row]);
      const request = {row, came: own.came[i], id: ids[row], status, begin: rows.arrival_ns[row], end,
        first: at, num: own.num_phases[i], preemptions: rows.preemptions[row]};
      requests.push(request);
      byCame.set(request.came, request);
    }
    requests.sort((a, b) => a.came - b.came);
    const data = {about, names, phases, rows, requests, byCame};
    for (const request of requests)
      Object.assign(request, sums(data, request));
    return data;
  }

  const phaseEnd = (data, request, i) =>
    i + 1 < request.first + request.num ? data.phases.begin_ns[i + 1] : request.end;

  /* How long it was queued before its first admission, and how much it lost in all: to that, to waiting
   * again, and to computing again. */
  function sums(data, request) {
    let queued = 0, lost = 0;
    for (let i = request.first; i < request.first + request.num; i++) {
      const name = data.names[data.phases.phase[i]];
      const span = phaseEnd(data, request, i) - data.phases.begin_ns[i];
      queued += name === "waiting" ? span : 0;
      lost += LOSES.has(name) ? span : 0;
    }
    return {queued, lost};
  }

  const SORTS = {
    "worst": ["most time lost", (a, b) => b.lost - a.lost || a.came - b.came],
    "queue": ["longest in the queue", (a, b) => b.queued - a.queued || a.came - b.came],
    "preemptions": ["most preemptions", (a, b) => b.preemptions - a.preemptions || b.lost - a.lost ||
      a.came - b.came],
    "life": ["longest in all", (a, b) => (b.end - b.begin) - (a.end - a.begin) || a.came - b.came],
    "arrival": ["by arrival", (a, b) => a.came - b.came],
  };

  /* ---- pictures of phases ---- */

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /* A tile of the page's paper on nothing, laid over a bar. */
  function tile(context, kind, colour) {
    const made = document.createElement("canvas"), c = made.getContext("2d");
    made.width = made.height = 6;
    c.strokeStyle = c.fillStyle = colour;
    c.lineWidth = 1.4;
    const line = (...points) => {
      c.beginPath();
      c.moveTo(points[0], points[1]);
      c.lineTo(points[2], points[3]);
      c.stroke();
    };
    if (kind === "slant" || kind === "cross")
      [-6, 0, 6].forEach((x) => line(x, 6, x + 6, 0));
    if (kind === "cross")
      [-6, 0, 6].forEach((x) => line(x, 0, x + 6, 6));
    if (kind === "stripes")
      line(3, 0, 3, 6);
    if (kind === "dots")
      c.fillRect(2, 2, 2.4, 2.4);
    return context.createPattern(made, "repeat");
  }

  function readInks(context) {
    const inks = {};
    for (const [name, look] of Object.entries(LOOKS))
      inks[name] = {fill: css(look.colour), height: look.height,
        over: look.pattern ? tile(context, look.pattern, css("--paper")) : null};
    return inks;
  }

  function bar(context, ink, x, top, width) {
    const height = Math.round(ink.height * ROW), y = top + Math.floor((ROW - height) / 2);
    context.fillStyle = ink.fill;
    context.fillRect(x, y, width, height);
    if (ink.over && width > 2) {
      context.fillStyle = ink.over;
      context.fillRect(x, y, width, height);
    }
  }

  function keyFor(name) {
    const canvas = element("canvas", {width: 34, height: ROW, "aria-hidden": "true"});
    const paint = () => {
      const context = canvas.getContext("2d");
      context.clearRect(0, 0, 34, ROW);
      bar(context, readInks(context)[name], 0, 0, 34);
    };
    paint();
    return {paint, box: element("span", {title: LOOKS[name].says}, canvas, name)};
  }

  const counted = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

  /* ---- exact times ---- */

  /* Nanoseconds as seconds with all their digits: "12.345678901 s". */
  function seconds(ns) {
    const whole = Math.floor(ns / 1e9);
    return `${count(whole)}.${String(ns - whole * 1e9).padStart(9, "0")} s`;
  }

  /* ---- the panel ---- */

  class Timeline {
    constructor(body, data, time) {
      Object.assign(this, {data, time, sort: "worst", inView: true, shown: [], chosen: null, phase: -1,
        hover: null});
      this.canvas = element("canvas");
      this.space = element("div");
      this.box = element("div", {class: "timeline", tabindex: "0", role: "application", "aria-label":
        "Requests over time, a row each. Up and down choose a request, left and right one of its phases, " +
        "Enter zooms to it, plus and minus zoom, 0 shows the whole run."}, this.canvas, this.space);
      this.detail = element("div", {class: "timeline-detail", "aria-live": "polite"});
      this.total = element("output", {class: "faint"});
      body.append(this.tools(), this.keys(), this.box, this.detail);
      this.listen();
      this.select();
      this.resize();
    }

    tools() {
      const sorts = element("select", {"aria-label": "order of the rows", onchange: (event) => {
        this.sort = event.target.value;
        this.box.scrollTop = 0;
        this.select();
      }}, ...Object.entries(SORTS).map(([value, [label]]) => element("option", {value}, label)));
      const inView = element("input", {type: "checkbox", onchange: (event) => {
        this.inView = event.target.checked;
        this.select();
      }});
      inView.checked = true;
      const find = element("input", {type: "text", placeholder: "id", "aria-label": "id of a request to find",
        onchange: (event) => this.find(event.target.value.trim())});
      return element("div", {class: "timeline-tools"}, element("label", {}, "Order ", sorts),
        element("label", {}, inView, " only those of the time shown"), element("label", {}, "Find ", find),
        element("button", {type: "button", onclick: () => this.time.setZoom(this.time.begin, this.time.end)},
          "Whole run"), this.total);
    }

    keys() {
      const used = new Set(this.data.phases.phase);
      this.swatches = this.data.names.filter((name, i) => used.has(i)).map(keyFor);
      return element("div", {class: "timeline-keys"}, ...this.swatches.map((key) => key.box));
    }

    /* Which rows there are, and in which order. */
    select() {
      const {from, to} = this.time, all = this.data.requests;
      this.shown = (this.inView ? all.filter((r) => r.begin <= to && r.end >= from) : all.slice())
        .sort(SORTS[this.sort][1]);
      this.total.textContent = this.shown.length === all.length ? several(all.length)
        : `${count(this.shown.length)} of ${several(all.length)}`;
      this.space.style.height = `${Math.max(0, HEAD + this.shown.length * ROW - this.box.clientHeight)}px`;
      this.draw();
    }

    find(id) {
      const request = this.data.requests.find((r) => r.id === id);
      if (!request) {
        this.detail.replaceChildren(element("p", {}, id === "" ? "" : `No request here is called ${id}.`));
        return;
      }
      if (request.end < this.time.from || request.begin > this.time.to)
        this.zoomTo(request);
      this.choose(request, request.num > 0 ? request.first : -1);
    }

    zoomTo(request) {
      const span = Math.max(1000, request.end - request.begin);
      this.time.setZoom(request.begin - 0.05 * span, request.end + 0.05 * span);
    }

    resize() {
      const ratio = window.devicePixelRatio || 1;
      this.width = Math.max(300, this.box.clientWidth);
      this.height = this.box.clientHeight;
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.canvas.style.width = this.width + "px";
      this.canvas.style.height = this.height + "px";
      this.context = this.canvas.getContext("2d");
      this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.recolour();
    }

    recolour() {
      this.inks = readInks(this.context);
      this.swatches.forEach((key) => key.paint());
      this.select();
    }

    xOf(ns) {
      const {from, to} = this.time;
      return LEFT + (ns - from) / (to - from) * (this.width - LEFT - RIGHT);
    }

    nsAt(x) {
      const {from, to} = this.time;
      return from + (x - LEFT) / (this.width - LEFT - RIGHT) * (to - from);
    }

    /* ---- drawing ---- */

    draw() {
      if (!this.inks)
        return;
      const c = this.context, top = this.box.scrollTop;
      c.clearRect(0, 0, this.width, this.height);
      c.font = "12px system-ui, 'DejaVu Sans', sans-serif";
      c.textBaseline = "middle";
      const ticked = pagedkv.ticks(this.time.from, this.time.to, this.width - LEFT - RIGHT);
      this.drawGrid(ticked);
      const first = Math.floor(top / ROW), last = Math.min(this.shown.length,
        Math.ceil((top + this.height - HEAD) / ROW));
      for (let i = first; i < last; i++)
        this.drawRow(this.shown[i], HEAD + i * ROW - top);
      this.drawAxis(ticked);
      this.drawCursor();
    }

    drawRow(request, y) {
      const c = this.context, {data} = this, {from, to} = this.time, right = this.width - RIGHT;
      c.fillStyle = css("--ink");
      c.fillText(this.label(request.id), 4, y + ROW / 2);
      c.save();
      c.beginPath();
      c.rect(LEFT, HEAD, right - LEFT, this.height - HEAD);
      c.clip();
      for (let i = request.first; i < request.first + request.num; i++) {
        const begin = data.phases.begin_ns[i], end = phaseEnd(data, request, i);
        if (end <= begin || end < from || begin > to)
          continue;
        const x = Math.max(LEFT - 1, this.xOf(begin)), width = Math.min(right + 1, this.xOf(end)) - x;
        bar(c, this.inks[data.names[data.phases.phase[i]]], x, y, Math.max(2, width));
      }
      this.drawEnd(request, y);
      c.restore();
      if (request === this.chosen)
        this.outline(y);
    }

    /* As much of an id as there is room for. */
    label(id) {
      let length = Math.min(id.length, 20);
      while (length > 1 && this.context.measureText(id.slice(0, length)).width > LEFT - 16)
        length--;
      return length < id.length ? id.slice(0, length) + "…" : id;
    }

    /* A cross: it was rejected or aborted. */
    drawEnd(request, y) {
      if (request.status !== "rejected" && request.status !== "aborted")
        return;
      const c = this.context, middle = y + ROW / 2, at = this.xOf(request.end);
      const whole = request.end >= this.time.from && request.end <= this.time.to;   /* at an edge, too */
      const x = whole ? Math.min(Math.max(at, LEFT + 5), this.xOf(this.time.to) - 5) : at;
      c.strokeStyle = css("--bad");
      c.lineWidth = 2;
      c.beginPath();
      c.moveTo(x - 4, middle - 4);
      c.lineTo(x + 4, middle + 4);
      c.moveTo(x - 4, middle + 4);
      c.lineTo(x + 4, middle - 4);
      c.stroke();
    }

    outline(y) {
      const c = this.context;
      c.strokeStyle = css("--accent");
      c.lineWidth = 1;
      c.strokeRect(1.5, y + 0.5, this.width - 3, ROW - 1);
      if (this.phase < 0)
        return;
      const left = Math.max(LEFT, this.xOf(this.data.phases.begin_ns[this.phase]));
      const right = Math.min(this.width - RIGHT, this.xOf(phaseEnd(this.data, this.chosen, this.phase)));
      c.lineWidth = 2;
      if (right >= left)
        c.strokeRect(left - 1, y + 1, right - left + 2, ROW - 2);
    }

    drawGrid(ticked) {
      const c = this.context;
      c.strokeStyle = css("--grid");
      c.lineWidth = 1;
      c.beginPath();
      for (const tick of ticked) {
        const x = Math.round(this.xOf(tick.v)) + 0.5;
        c.moveTo(x, HEAD);
        c.lineTo(x, this.height);
      }
      c.stroke();
    }

    drawAxis(ticked) {
      const c = this.context;
      c.fillStyle = css("--paper");
      c.fillRect(0, 0, this.width, HEAD);
      c.fillStyle = css("--grid");
      for (const tick of ticked)
        c.fillRect(Math.round(this.xOf(tick.v)), HEAD - 4, 1, 4);
      c.fillStyle = css("--faint");
      c.textAlign = "center";
      for (const tick of ticked)
        c.fillText(tick.label, this.xOf(tick.v), HEAD / 2 - 1);
      c.textAlign = "left";
    }

    drawCursor() {
      const {at, from, to} = this.time;
      if (at === null || at < from || at > to)
        return;
      const c = this.context, x = Math.round(this.xOf(at)) + 0.5;
      c.strokeStyle = css("--ink");
      c.globalAlpha = 0.65;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(x, HEAD);
      c.lineTo(x, this.height);
      c.stroke();
      c.globalAlpha = 1;
    }

    /* ---- telling ---- */

    tell(request, phase) {
      const {rows} = this.data, row = request.row, data = this.detail.dataset;
      const when = (name) => rows[name][row] >= 0 ? seconds(rows[name][row]) : "never";
      const head = element("p", {}, "Request ", element("b", {}, request.id));
      Object.assign(data, {id: request.id, phase: "", begin: "", end: ""});
      if (phase >= 0)
        this.tellPhase(head, request, phase);
      else
        head.append(` · ${request.status}`);
      this.detail.replaceChildren(head, element("p", {},
        `arrived ${when("arrival_ns")}, admitted ${when("admitted_ns")}, first token ` +
        `${when("first_token_ns")}, ${request.status} ${request.status === "rejected" ? "at once"
          : seconds(request.end)}; queued ${duration(request.queued)}, lost ` +
        `${duration(request.lost)} in all`), element("p", {},
        `prompt ${count(rows.prompt_tokens[row])} tokens (${count(rows.hit_tokens[row])} found), ` +
        `output ${count(rows.output_tokens[row])}; ${counted(rows.preemptions[row], "preemption")}, ` +
        `${count(rows.recomputed_tokens[row])} tokens computed again; at most ` +
        `${count(rows.peak_blocks[row])} blocks`));
    }

    tellPhase(head, request, phase) {
      const {phases, names, byCame} = this.data, name = names[phases.phase[phase]];
      const begin = phases.begin_ns[phase], end = phaseEnd(this.data, request, phase);
      Object.assign(this.detail.dataset, {phase: name, begin, end});
      head.append(" · ", element("b", {}, name));
      const whom = phases.for[phase] > 0 ? byCame.get(phases.for[phase] - 1) : null;
      if (phases.for[phase] > 0)
        head.append(whom === request ? ", as it was short of blocks itself"
          : ` for request ${whom ? whom.id : "that is not drawn here"}`);
      head.append(` from ${seconds(begin)} to ${seconds(end)}, ${duration(end - begin)}`);
    }

    /* ---- mouse and keys ---- */

    rowAt(event) {
      const y = event.clientY - this.canvas.getBoundingClientRect().top - HEAD;
      return y < 0 ? null : this.shown[Math.floor((y + this.box.scrollTop) / ROW)] || null;
    }

    /* The phase of a request at a moment; one that lasts no time is none. */
    phaseAt(request, ns) {
      if (ns < request.begin || ns >= request.end)
        return -1;
      let phase = request.first;
      while (phase + 1 < request.first + request.num && this.data.phases.begin_ns[phase + 1] <= ns)
        phase++;
      return request.num > 0 ? phase : -1;
    }

    /* Choose a request and a phase of it, and bring them into sight. */
    choose(request, phase) {
      Object.assign(this, {chosen: request, phase});
      let at = this.shown.indexOf(request);
      if (at < 0) {
        this.zoomTo(request);
        at = this.shown.indexOf(request);
      }
      const room = this.height - HEAD - ROW, y = at * ROW;
      if (y < this.box.scrollTop)
        this.box.scrollTop = y;
      else if (y > this.box.scrollTop + room)
        this.box.scrollTop = y - room;
      if (phase >= 0)
        this.time.setCursor(this.data.phases.begin_ns[phase]);
      this.tell(request, phase);
      this.draw();
    }

    /* The phases that last some time. */
    stepPhase(step) {
      const request = this.chosen, end = request.first + request.num;
      let phase = this.phase < 0 ? (step > 0 ? request.first - 1 : end) : this.phase;
      do
        phase += step;
      while (phase >= request.first && phase < end &&
             phaseEnd(this.data, request, phase) === this.data.phases.begin_ns[phase]);
      if (phase >= request.first && phase < end)
        this.choose(request, phase);
    }

    stepRow(step) {
      const at = this.shown.indexOf(this.chosen);
      const next = at < 0 ? Math.floor(this.box.scrollTop / ROW)
        : Math.min(this.shown.length - 1, Math.max(0, at + step));
      if (this.shown[next])
        this.choose(this.shown[next], this.shown[next].num > 0 ? this.shown[next].first : -1);
    }

    zoomBy(factor, around) {
      const {from, to} = this.time, part = (around - from) / (to - from), span = (to - from) * factor;
      if (span >= 10)
        this.time.setZoom(around - part * span, around + (1 - part) * span);
    }

    key(event) {
      const page = Math.max(1, Math.floor((this.height - HEAD) / ROW) - 1), {time, shown} = this;
      const inside = time.at !== null && time.at >= time.from && time.at <= time.to;
      const around = inside ? time.at : (time.from + time.to) / 2;
      const rows = {ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -shown.length,
        End: shown.length}[event.key];
      if (rows)
        this.stepRow(rows);
      else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && this.chosen)
        this.stepPhase(event.key === "ArrowLeft" ? -1 : 1);
      else if (event.key === "Enter" && this.chosen)
        this.zoomTo(this.chosen);
      else if (event.key === "+" || event.key === "=" || event.key === "-")
        this.zoomBy(event.key === "-" ? 2 : 0.5, around);
      else if (event.key === "0" || event.key === "Escape")
        time.setZoom(time.begin, time.end);
      else
        return false;
      return true;
    }

    point(event) {
      const request = this.rowAt(event), x = event.clientX - this.canvas.getBoundingClientRect().left;
      const ns = Math.round(this.nsAt(Math.min(this.width - RIGHT, Math.max(LEFT, x))));
      this.time.setCursor(ns);
      if (request)
        this.tell(request, this.phaseAt(request, ns));
    }

    listen() {
      let begin = null;
      const on = (name, call) => this.box.addEventListener(name, call);
      on("scroll", () => this.draw());
      on("pointermove", (event) => this.point(event));
      on("pointerleave", () => this.chosen && this.tell(this.chosen, this.phase));
      on("pointerdown", (event) => {
        const x = event.clientX - this.canvas.getBoundingClientRect().left;
        begin = event.button === 0 && x >= LEFT && x <= this.width - RIGHT ? this.nsAt(x) : null;
      });
      on("pointerup", (event) => {
        const from = begin, x = event.clientX - this.canvas.getBoundingClientRect().left;
        const end = this.nsAt(Math.min(this.width - RIGHT, Math.max(LEFT, x)));
        begin = null;
        if (from === null)
          return;
        if (Math.abs(this.xOf(end) - this.xOf(from)) > 4)
          this.time.setZoom(Math.min(from, end), Math.max(from, end));
        else if (this.rowAt(event))
          this.choose(this.rowAt(event), this.phaseAt(this.rowAt(event), Math.round(end)));
      });
      on("dblclick", () => this.time.setZoom(this.time.begin, this.time.end));
      on("wheel", (event) => {
        if (!event.ctrlKey)
          return;
        event.preventDefault();
        this.zoomBy(event.deltaY < 0 ? 0.5 : 2,
          this.nsAt(event.clientX - this.canvas.getBoundingClientRect().left));
      });
      on("keydown", (event) => {
        if (!event.ctrlKey && !event.altKey && !event.metaKey && this.key(event))
          event.preventDefault();
      });
      on("focus", () => this.chosen || this.stepRow(0));
      /* Of several runs another one's may have taken its place. */
      const here = (call) => () => this.box.isConnected && call.call(this);
      this.time.onZoom(here(this.select));
      this.time.onCursor(here(this.draw));
      new ResizeObserver(here(this.resize)).observe(this.box);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", here(this.recolour));
    }
  }

  /* Of so many that not all are here. */
  function missing(about, num) {
    if (about.stride === 1)
      return null;
    return element("p", {class: "warning"}, `${count(num)} of ${count(about.requests)} requests are drawn: ` +
      `every ${count(about.stride)}th in the order of arrival, the ${about.worst} that were queued longest ` +
      `and the ${about.worst} that were preempted most.`);
  }

  async function drawRun(body, run, time) {
    const data = await load(run);
    body.replaceChildren();
    if (data.requests.length === 0) {
      body.append(element("p", {class: "absent"}, "No request came."));
      return;
    }
    const note = missing(data.about, data.requests.length);
    if (note)
      body.append(note);
    pagedkv.timeline = new Timeline(body, data, time);
  }

  /* Of several runs one at a time. */
  async function draw(body, run, time, runs) {
    const told = runs.filter((one) => one.has("timeline")), holder = element("div");
    body.append(element("p", {class: "hint"},
      "Point at a bar for what the request was in the middle of, and exactly when; drag over a stretch to " +
      "zoom in. With the keyboard: up and down choose a request, left and right a phase, Enter zooms to " +
      "it. A cross ends what was rejected or aborted."));
    if (told.length > 1)
      body.append(element("label", {class: "timeline-run"}, "Run ", element("select", {
        onchange: (event) => drawRun(holder, told[event.target.value], time)},
        ...told.map((one, i) => element("option", {value: i}, one.name)))));
    body.append(holder);
    await drawRun(holder, told[0], time);
  }

  function when(runs) {
    if (runs.some((run) => run.has("timeline")))
      return true;
    return runs.length > 1 ? false : "Shown where the run itself wrote report.html: its other files do not " +
      "tell when a request had computed again what it lost.";
  }

  pagedkv.panel({name: "timeline", order: 35, title: "Requests over time", when, draw});
})();
