/*
 * charts.js - the run over time: charts with one time axis, one zoom and one cursor.
 *
 * What is drawn is reduced to the smallest and largest value a pixel (reduce.js); what is read off at the
 * cursor is the row itself. Of several runs each chart shows one figure, a line for each run.
 */
"use strict";

(() => {
  const {element, count, duration, percent, reduce} = pagedkv;
  const DASHES = [null, [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 4]];
  const HEIGHT = 150, LEFT = 64, RIGHT = 64;

  /* ---- what is drawn ---- */

  const number = (value) => count(value);
  const share = (value) => percent(value);
  const time = (value) => duration(value);
  const plain = (label, column, more = {}) => ({label, columns: [column], of: (v) => v[column],
    format: number, ...more});

  /* Of all the slots of the pool. */
  function slotShare(values, run) {
    const slots = run.words.num_blocks * run.words.block_size;
    return values.stored_tokens.map((tokens) => tokens / slots);
  }
  const heldShare = (values, run) => values.used_blocks.map((blocks) => blocks / run.words.num_blocks);

  /* Found, of all that was found or computed for prompts up to and with a row. */
  function hitsSoFar(values) {
    const out = new Float64Array(values.hit_tokens.length);
    let hit = 0, all = 0;
    for (let row = 0; row < out.length; row++) {
      hit += values.hit_tokens[row];
      all += values.hit_tokens[row] + values.prefill_tokens[row];
      out[row] = all > 0 ? hit / all : NaN;
    }
    return out;
  }

  /* main: the figure of several runs on one page. right: it has the axis on the right. rare: nearly always
   * 0, so a peak is a stick. */
  const CHARTS = [
    {name: "chart-blocks", title: "Blocks", top: (run) => run.words.num_blocks,
     series: [plain("used", "used_blocks"), plain("free", "free_blocks", {main: true, bin: "free"}),
              plain("cached, of those free", "cached_blocks")]},
    {name: "chart-requests", title: "Requests waiting and running",
     series: [plain("waiting", "waiting", {main: true, bin: "waiting"}),
              plain("running", "running", {main: true, bin: "running"})]},
    {name: "chart-preemptions", title: "Preemptions and rejections",
     series: [plain("preempted in the step", "preempted", {rare: true}),
              plain("rejected in the step", "rejected", {rare: true}),
              plain("preemptions so far", "preemptions_total",
                {right: true, main: true, bin: "preemptions_total"})]},
    {name: "chart-tokens", title: "Tokens scheduled a step",
     series: [plain("prefill", "prefill_tokens", {main: true}),
              plain("of it recomputed", "recomputed_tokens"),
              plain("decode", "decode_tokens", {right: true})]},
    {name: "chart-slots", title: "Use of the pool's slots", top: () => 1,
     series: [{label: "filled with stored tokens", columns: ["stored_tokens"], of: slotShare, format: share,
               main: true},
              {label: "held", columns: ["used_blocks"], of: heldShare, format: share}]},
    {name: "chart-hits", title: "Prefix hits, those of resumed requests included", top: () => 1,
     series: [{label: "found, of all prompt tokens found or computed so far", main: true,
               columns: ["hit_tokens", "prefill_tokens"], of: hitsSoFar, format: share},
              plain("tokens found in the step", "hit_tokens", {right: true})]},
    {name: "chart-gaps", title: "Gaps between streamed tokens, beside free blocks",
     series: [{...plain("largest gap closed in the step", "max_gap_ns", {main: true}), format: time},
              plain("free blocks", "free_blocks", {right: true})]},
  ];

  /* ---- where the numbers come from ---- */

  /* The step log of a run, or the stretches that a comparison keeps of it. */
  async function source(run) {
    const bins = !run.has("steps");
    const table = await run.table(bins ? "bins" : "steps");
    if (table === null)
      return null;
    const names = bins ? ["begin_ns", "end_ns"] : ["time_ns", "dur_ns", "step"];
    const t = await run.columns(bins ? "bins" : "steps", names);
    return {run, bins, table, rows: t.rows, step: t.step, time: bins ? t.begin_ns : t.time_ns,
      dur: bins ? t.end_ns.map((end, i) => end - t.begin_ns[i]) : t.dur_ns};
  }

  /* {low, high} of one series, or null where the source has no such column. */
  async function values(src, series) {
    if (src.bins) {
      if (!series.bin)
        return null;
      const both = await src.run.columns("bins", ["min_" + series.bin, "max_" + series.bin]);
      return {low: both["min_" + series.bin], high: both["max_" + series.bin]};
    }
    if (!series.columns.every((name) => src.table.has(name)))
      return null;
    const one = series.of(await src.run.columns("steps", series.columns), src.run);
    return {low: one, high: one};
  }

  /* ---- the axis of time ---- */

  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

  function tickStep(span, most) {
    const wanted = span / most / 1e9;
    if (wanted >= 1)
      return (STEPS.find((step) => step >= wanted) || Math.ceil(wanted / 86400) * 86400) * 1e9;
    const power = 10 ** Math.floor(Math.log10(wanted * 1e9));
    return Math.max(1, [1, 2, 5, 10].find((step) => step * power >= wanted * 1e9 * (1 - 1e-9)) * power);
  }

  function clock(ns, step) {
    if (ns === 0)
      return "0";
    if (step < 1e9 || ns < 60e9)
      return step < 1e9 ? duration(ns, step) : duration(ns, 1e9);
    const s = Math.round(ns / 1e9), two = (n) => String(n).padStart(2, "0");
    const minutes = Math.floor(s / 60) % 60, hours = Math.floor(s / 3600);
    return (hours > 0 ? hours + " h " + two(minutes) + " min" : minutes + " min") +
      (s % 60 > 0 ? " " + two(s % 60) + " s" : "");
  }
  pagedkv.clock = clock;
  /* A time by itself, to the millisecond in runs of seconds. */
  pagedkv.moment = (ns) => ns < 60e9 ? duration(ns) : clock(ns, 1e9);

  function ticks(from, to, pixels) {
    const step = tickStep(to - from, Math.max(2, Math.floor(pixels / 110)));
    const out = [];
    for (let i = Math.ceil(from / step); i * step <= to; i++)
      out.push({v: i * step, label: clock(i * step, step)});
    return out;
  }

  /* The row at the cursor; -1 = it begins later. */
  function rowOf(src, t) {
    let row = reduce.rowAt(src.time, t.at);
    const last = row;
    if (t.step === null || !src.step)
      return row;
    while (row > 0 && src.step[row] !== t.step && src.time[row - 1] === src.time[last])
      row--;
    return src.step[row] === t.step ? row : last;
  }

  /* ---- one chart ---- */

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function swatch(i) {
    const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg");
    const line = document.createElementNS(ns, "line");
    svg.setAttribute("width", 34);
    svg.setAttribute("height", 10);
    svg.setAttribute("aria-hidden", "true");
    const style = `stroke: var(--c${i % 6 + 1}); stroke-width: 2;` +
      (DASHES[i % 6] ? `stroke-dasharray: ${DASHES[i % 6].join(" ")};` : "");
    for (const [key, value] of Object.entries({x1: 0, x2: 34, y1: 5, y2: 5, style}))
      line.setAttribute(key, value);
    svg.append(line);
    return svg;
  }
  pagedkv.swatch = swatch;
  pagedkv.ticks = ticks;

  /* From the smallest to the largest value of each pixel. One rectangle a pixel: as a single outline of a
   * thousand corners it takes seconds. */
  function drawBand({drawingContext: pen, points, plotArea: area, color}) {
    const width = points.length > 1 ? (points[points.length - 1].canvasx - points[0].canvasx) /
      (points.length - 1) : 1;
    pen.save();
    pen.fillStyle = color;
    pen.globalAlpha = 0.3;
    for (const point of points) {
      const top = area.y + area.h * Math.min(point.y_top, point.y_bottom);
      const height = area.h * Math.abs(point.y_top - point.y_bottom);
      if (height > 0)
        pen.fillRect(point.canvasx - width / 2, top, width, height);
    }
    pen.restore();
  }

  function drawSticks({drawingContext: pen, points, plotArea: area, color}) {
    pen.save();
    pen.fillStyle = color;
    for (const point of points) {
      const height = area.h * (1 - point.y_top);
      if (point.yval_plus > 0 || height > 0.5)
        pen.fillRect(point.canvasx - 1, area.y + area.h - height, 2, height);
    }
    pen.restore();
  }

  class Chart {
    constructor(spec, lines, time, parent) {
      Object.assign(this, {spec, lines, time});
      this.keys = element("div", {class: "keys"});
      this.draw = element("div", {class: "draw"});
      this.cursor = element("div", {class: "cursor"});
      this.selection = element("div", {class: "selection"});
      this.plot = element("div", {class: "plot", tabindex: "0", role: "group", "aria-label": spec.title +
        ", over time. Arrows move the cursor, plus and minus zoom, 0 shows the whole run."},
        this.draw, this.cursor, this.selection);
      this.box = element("div", {class: "chart", id: spec.name}, element("h3", {}, spec.title), this.keys,
        this.plot);
      parent.append(this.box);
      this.lines.forEach((line, i) => {
        line.value = element("b", {}, "");
        line.range = element("i", {}, "");
        const axis = line.right ? " (right)" : "";
        this.keys.append(element("span", {}, swatch(i), line.label + axis + " ", line.value, line.range));
      });
      this.listen();
    }

    width() {
      return Math.max(50, this.plot.clientWidth - LEFT - RIGHT - 4);
    }

    /* Reduced to what can be seen: rows for dygraphs, one a pixel, [least, mean, most] of each line. */
    reduced() {
      const {from, to} = this.time, pixels = Math.floor(this.width());
      for (const line of this.lines) {
        const cuts = line.src.cuts;
        if (!cuts || cuts.from !== from || cuts.to !== to || cuts.pixels !== pixels)
          line.src.cuts = reduce.cut(line.src.time, line.src.dur, from, to, pixels);
        line.reduced = reduce.column(line.src.cuts, line.values.low, line.values.high);
      }
      const rows = new Array(pixels), width = (to - from) / pixels;
      for (let p = 0; p < pixels; p++) {
        rows[p] = [from + (p + 0.5) * width];
        for (const {reduced: {low, mean, high}} of this.lines)
          rows[p].push(Number.isNaN(low[p]) ? [null, null, null] : [low[p], mean[p], high[p]]);
      }
      return rows;
    }

    options() {
      const right = this.lines.find((line) => line.right);
      const left = this.lines.find((line) => !line.right) || right;
      const series = {};
      this.lines.forEach((line, i) => {
        series["s" + i] = {axis: line.right && left !== line ? "y2" : "y", color: css("--c" + (i % 6 + 1)),
          strokePattern: DASHES[i % 6], ...(line.rare ? {plotter: drawSticks} : {})};
      });
      const axis = (line, width) => ({axisLabelWidth: width - 4, drawGrid: line === left,
        includeZero: true, independentTicks: true,
        axisLabelFormatter: (value) => this.axisLabel(line, value)});
      const axes = {x: {ticker: (a, b, pixels) => ticks(a, b, pixels), axisLabelWidth: 104, drawGrid: true},
        y: axis(left, LEFT)};
      if (right && right !== left)
        axes.y2 = axis(right, RIGHT);
      const tops = this.spec.top ? this.lines.map((line) => this.spec.top(line.src.run)) : [];
      const top = Math.max(0, ...tops);
      if (top > 0)
        axes.y.valueRange = [0, top * 1.04];
      return {labels: ["t", ...this.lines.map((line, i) => "s" + i)], series, axes, legend: "never",
        gridLineColor: css("--grid"), axisLineColor: css("--rule"), interactionModel: {},
        animatedZooms: false, highlightCircleSize: 0, strokeWidth: 1.4, customBars: true,
        plotter: [drawBand, Dygraph.Plotters.linePlotter], includeZero: true, yRangePad: 3, xRangePad: 0,
        dateWindow: [this.time.from, this.time.to], rightGap: right && right !== left ? 0 : RIGHT + 2};
    }

    axisLabel(line, value) {
      if (line.format === share)
        return Math.round(100 * value) + " %";
      if (line.format === time)
        return value === 0 ? "0" : duration(value).replace(/\.0+ /, " ");
      return Number.isInteger(value) ? count(value) : "";     /* there are no halves of a count */
    }

    update() {
      const file = this.reduced();
      if (this.graph)
        this.graph.updateOptions({...this.options(), file});
      else
        this.graph = new Dygraph(this.draw, file, {...this.options(), height: HEIGHT});
      this.showCursor();
    }

    /* ---- the cursor: the row itself ---- */

    showCursor() {
      const at = this.time.at, area = this.graph.getArea();
      const x = at === null ? -1 : this.graph.toDomXCoord(at);
      const seen = at !== null && x >= area.x - 0.5 && x <= area.x + area.w + 0.5;
      this.cursor.style.cssText = seen
        ? `display: block; left: ${x}px; top: ${area.y}px; height: ${area.h}px` : "";
      for (const line of this.lines)
        this.showValue(line, seen ? Math.min(Math.max(0, x - area.x), area.w - 1e-6) / area.w : null);
    }

    showValue(line, part) {
      const {src, values} = line;
      const row = this.time.at === null ? -1 : rowOf(src, this.time);
      const gone = row < 0 || this.time.at >= src.time[row] + Math.max(1, src.dur[row]);
      if (part === null || row < 0) {
        line.value.textContent = line.range.textContent = "";
        return;
      }
      const low = values.low[row], high = values.high[row];
      line.value.textContent = gone ? "–" : Number.isNaN(low) ? "–"
        : low === high ? line.format(low) : line.format(low) + " … " + line.format(high);
      const p = Math.floor(part * src.cuts.pixels), {low: least, high: most} = line.reduced;
      const several = src.cuts.first[p + 1] - src.cuts.first[p] > 1 && least[p] !== most[p];
      line.range.textContent = several && !src.bins
        ? ` (${line.format(least[p])} … ${line.format(most[p])} in this pixel)` : "";
    }

    /* ---- mouse, touch and keys ---- */

    nsAt(event) {
      const area = this.graph.getArea(), x = event.clientX - this.plot.getBoundingClientRect().left;
      const part = Math.min(1, Math.max(0, (x - area.x) / area.w));
      return this.time.from + part * (this.time.to - this.time.from);
    }

    listen() {
      let begin = null;
      const on = (name, call) => this.plot.addEventListener(name, call);
      on("pointermove", (event) => {
        if (begin !== null)
          this.showSelection(begin, event);
        this.time.setCursor(Math.round(this.nsAt(event)));
      });
      on("pointerdown", (event) => {
        if (event.button !== 0)
          return;
        begin = this.nsAt(event);
        if (event.pointerType === "mouse")
          this.plot.setPointerCapture(event.pointerId);
      });
      on("pointerup", (event) => {
        const end = this.nsAt(event), from = begin;
        begin = null;
        this.selection.style.display = "none";
        if (from === null)
          return;
        const pixel = (this.time.to - this.time.from) / this.width();
        if (Math.abs(end - from) > 3 * pixel)
          this.time.setZoom(Math.min(from, end), Math.max(from, end));
      });
      on("pointercancel", () => {
        begin = null;
        this.selection.style.display = "none";
      });
      on("dblclick", () => this.time.setZoom(this.time.begin, this.time.end));
      on("wheel", (event) => {
        if (!event.ctrlKey)
          return;
        event.preventDefault();
        zoomBy(this.time, event.deltaY < 0 ? 0.5 : 2, this.nsAt(event));
      });
      on("keydown", (event) => {
        if (!event.ctrlKey && !event.altKey && !event.metaKey && this.key(event))
          event.preventDefault();
      });
    }

    showSelection(begin, event) {
      const area = this.graph.getArea(), a = this.graph.toDomXCoord(begin);
      const b = this.graph.toDomXCoord(this.nsAt(event));
      this.selection.style.cssText = `display: block; left: ${Math.min(a, b)}px; top: ${area.y}px; ` +
        `width: ${Math.abs(a - b)}px; height: ${area.h}px`;
    }

    key(event) {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (step && event.shiftKey)
        moveBy(this.time, step / 4);
      else if (step)
        this.moveCursor(step);
      else if (event.key === "+" || event.key === "=")
        zoomBy(this.time, 0.5);
      else if (event.key === "-")
        zoomBy(this.time, 2);
      else if (event.key === "0" || event.key === "Escape")
        this.time.setZoom(this.time.begin, this.time.end);
      else if (event.key === "Home" || event.key === "End")
        this.time.setCursor(event.key === "Home" ? this.time.from : this.time.to - 1);
      else
        return false;
      return true;
    }

    /* To the next row, and the view with it; of many rows a pixel to the next pixel. */
    moveCursor(step) {
      const t = this.time, src = this.lines[0].src;
      const pixel = (t.to - t.from) / this.width();
      let row = t.at === null ? reduce.rowAt(src.time, (t.from + t.to) / 2) : rowOf(src, t);
      if (t.at !== null) {
        const next = reduce.rowAt(src.time, src.time[Math.max(0, row)] + step * pixel);
        row = step > 0 ? Math.max(row + 1, next) : Math.min(row - 1, next);
      }
      row = Math.min(src.rows - 1, Math.max(0, row));
      const ns = src.time[row];
      if (ns < t.from || ns > t.to)
        moveBy(t, (ns - (t.from + t.to) / 2) / (t.to - t.from));
      t.setCursor(ns, src.step ? src.step[row] : null);
    }
  }

  /* ---- moving through time ---- */

  function zoomBy(t, factor, around = null) {
    const inside = t.at !== null && t.at >= t.from && t.at <= t.to;
    const middle = around !== null ? around : inside ? t.at : (t.from + t.to) / 2;
    const part = (middle - t.from) / (t.to - t.from), span = (t.to - t.from) * factor;
    if (span >= 10)
      t.setZoom(middle - part * span, middle + (1 - part) * span);
  }

  function moveBy(t, part) {
    const span = t.to - t.from;
    const from = Math.min(Math.max(t.begin, t.from + part * span), t.end - span);
    t.setZoom(from, from + span);
  }

  function tools(t, src, runs) {
    const shown = element("output", {class: "faint", "data-shown": ""});
    const at = element("output", {"aria-live": "polite", "data-cursor": ""});
    const button = (label, title, call) => element("button", {type: "button", title, onclick: call}, label);
    const tell = () => {
      const span = t.to - t.from, step = tickStep(span, 100);
      shown.textContent = t.from === t.begin && t.to === t.end ? "the whole run"
        : clock(t.from, step) + " to " + clock(t.to, step);
    };
    const point = (ns) => {
      const row = ns === null ? -1 : rowOf(src, t);
      const over = row < 0 || ns >= src.time[row] + Math.max(1, src.dur[row]);
      at.textContent = ns === null ? "" : runs.length > 1 || !src.step ? "at " + duration(ns, 1e6)
        : over ? `no step at ${duration(ns, 1000)}` : `step ${count(src.step[row])}, from ${duration(src.time[row], 1000)} for ` +
          duration(src.dur[row]);
    };
    t.onZoom(tell);
    t.onCursor(point);
    tell();
    return element("div", {class: "tools", role: "toolbar", "aria-label": "time shown"},
      button("Zoom in", "key +", () => zoomBy(t, 0.5)), button("Zoom out", "key -", () => zoomBy(t, 2)),
      button("◀", "earlier; shift and left arrow", () => moveBy(t, -0.5)),
      button("▶", "later; shift and right arrow", () => moveBy(t, 0.5)),
      button("Whole run", "key 0, or a double click", () => t.setZoom(t.begin, t.end)), shown, at);
  }

  /* ---- the panel ---- */

  async function linesOf(spec, sources) {
    const lines = [];
    for (const src of sources)
      for (const series of spec.series) {
        if (sources.length > 1 && !series.main)
          continue;
        const found = await values(src, series);
        if (found !== null)
          lines.push({...series, src, values: found, right: series.right && sources.length === 1,
            label: sources.length > 1 ? src.run.name : series.label});
      }
    return lines;
  }

  /* Of several runs each figure has a chart of its own. */
  function chartsFor(runs) {
    if (runs.length === 1)
      return CHARTS;
    return CHARTS.flatMap((spec) => spec.series.filter((series) => series.main).map((series) => ({...spec,
      name: spec.name + "-" + series.columns[0], title: spec.title + ": " + series.label,
      series: [series]})));
  }

  const HINT = "Drag over a stretch to zoom in, double click for the whole run. In a chart the arrow keys " +
    "move the cursor row by row, + and - zoom, shift with an arrow moves on, 0 shows everything. Lines " +
    "are means; the shade around a line reaches from the smallest to the largest value in each pixel. ";
  const WHOLE = "So no peak is hidden, and figures at the cursor are those of the row itself.";
  const THINNED = "Figures at the cursor are those of the last row that was kept.";

  async function draw(body, run, t, runs) {
    const sources = (await Promise.all(runs.map(source))).filter((src) => src !== null && src.rows > 0);
    if (sources.length === 0) {
      body.append(element("p", {class: "absent"}, "No step was logged."));
      return;
    }
    for (const one of runs)
      if (one.head.thinned)
        body.append(element("p", {class: "warning"},
          (runs.length > 1 ? one.name + ": " : "") + one.head.thinned));
    if (sources.some((src) => src.bins))
      body.append(element("p", {class: "hint"}, "A comparison keeps each run in at most 1,000 stretches of " +
        "time, each with its smallest and largest value; pagedkv run -o shows every step of one " +
        "configuration."));
    body.append(element("p", {class: "hint"}, HINT + (runs.some((one) => one.head.thinned) ? THINNED : WHOLE)),
      tools(t, sources[0], runs));
    const charts = [];
    for (const spec of chartsFor(runs)) {
      const lines = await linesOf(spec, sources);
      if (lines.length > 0)
        charts.push(new Chart(spec, lines, t, body));
    }
    const update = () => charts.forEach((chart) => chart.update());
    update();
    t.onZoom(update);
    t.onCursor(() => charts.forEach((chart) => chart.showCursor()));
    let width = body.clientWidth;
    new ResizeObserver(() => {
      if (body.clientWidth !== width) {
        width = body.clientWidth;
        charts.forEach((chart) => chart.graph.resize());
        update();
      }
    }).observe(body);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
    addEventListener("beforeprint", update);
    addEventListener("afterprint", update);
    pagedkv.charts = charts;
  }

  pagedkv.panel({name: "over-time", order: 30, title: "Over time", draw});
})();
