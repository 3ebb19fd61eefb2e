/*
 * page.js - what all panels of a report stand on: the runs' islands, one time axis, panels in order.
 *
 * A panel is one file beside this one, which calls
 *
 *   pagedkv.panel({
 *     name: "blocks",          // its id in the page, and a link to it
 *     order: 30,               // smaller stands higher
 *     title: "Blocks",
 *     when(runs) {...},        // left out: always. false = no panel, a text = that sentence instead
 *     async draw(element, run, time, runs) {...},
 *   });
 *
 * run is the first of runs. Times are virtual nanoseconds as Numbers, which are exact below 2^53, 104
 * days. Text from a run goes into the page by textContent only: it is never read as HTML.
 */
"use strict";

const pagedkv = (() => {
  const panels = [];

  /* ---- islands ---- */

  const island = (id) => document.getElementById("pkv-" + id);

  async function unpack(line) {
    const text = atob(line);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++)
      bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /* Varints of zigzags of differences, and how often there is none; see src/report/packed.h. */
  function decode(bytes, rows, isLinear) {
    const out = new Float64Array(rows);
    let at = 0, last = 0, growth = 0;

    /* A varint without the lowest `drop` bits, so that it stays below 2^53. */
    function rest(byte, drop) {
      let value = (byte & 127) >> drop, scale = 128 >> drop;
      while (byte > 127) {
        byte = bytes[at++];
        value += (byte & 127) * scale;
        scale *= 128;
      }
      return value;
    }

    for (let row = 0; row < rows;) {
      const byte = bytes[at++];
      if (byte === 0) {
        for (let times = rest(bytes[at++], 0); times > 0; times--)
          out[row++] = last += growth;
        continue;
      }
      const half = rest(byte, 1), up = growth + (byte & 1 ? -1 - half : half);
      out[row++] = last += up;
      growth = isLinear ? up : 0;
    }
    return out;
  }

  /* Columns are unpacked when they are asked for, and kept. */
  class Table {
    constructor(text) {
      this.lines = text.trimEnd().split("\n");
      this.head = JSON.parse(this.lines.shift());
      this.columns = this.head.columns;
      this.rows = this.head.rows;
      this.kept = new Map();
    }

    has(name) {
      return this.columns.includes(name);
    }

    /* A promise of a Float64Array. */
    load(name) {
      const at = this.columns.indexOf(name);
      if (at < 0)
        throw new Error("no column " + name);
      if (!this.kept.has(name))
        this.kept.set(name, this.unpack(name, this.lines[at]));
      return this.kept.get(name);
    }

    async unpack(name, line) {
      const {less: {[name]: less}, plus: {[name]: plus}} = this.head;
      const out = decode(await unpack(line), this.rows, this.head.linear.includes(name));
      if (less === undefined && plus === undefined)
        return out;
      const sign = less === undefined ? -1 : 1, other = await this.load(less === undefined ? plus : less);
      for (let row = 0; row < this.rows; row++)
        out[row] += sign * other[row];
      return out;
    }
  }

  class Run {
    constructor(head) {
      this.prefix = head.prefix;
      this.head = head;
      this.kept = new Map();
      this.summary = this.json("summary");
      this.scenario = this.json("scenario");   /* its YAML, as text */
      this.words = this.json("words");
      this.name = head.name || this.words.title || "run";
    }

    has(id) {
      return island(this.prefix + id) !== null;
    }

    json(id) {
      const element = island(this.prefix + id);
      return element === null ? null : JSON.parse(element.textContent);
    }

    /* A promise of a table, or of null where this run has none: await (await run.table("steps")).load(
     * "time_ns"), or columns(id, names) for several at once. */
    async table(id) {
      if (!this.kept.has(id))
        this.kept.set(id, this.has(id) ? new Table(island(this.prefix + id).textContent) : null);
      return this.kept.get(id);
    }

    /* A promise of {rows, NAME: Float64Array, ...}. */
    async columns(id, names) {
      const table = await this.table(id), out = {rows: table.rows};
      const loaded = await Promise.all(names.map((name) => table.load(name)));
      names.forEach((name, i) => { out[name] = loaded[i]; });
      return out;
    }

    /* A promise of an array of texts; null where there is none. */
    async texts(id) {
      if (!this.has(id))
        return null;
      const lines = island(this.prefix + id).textContent.split("\n");
      const text = new TextDecoder().decode(await unpack(lines[1]));
      return text.split("\n").slice(0, -1).map((line) =>
        line.replace(/\\(.)/g, (all, c) => c === "n" ? "\n" : c));
    }
  }

  /* ---- the time that all panels over time show, and the moment that is looked at ---- */

  class Time {
    constructor(begin, end) {
      Object.assign(this, {begin, end, from: begin, to: end, at: null, step: null});
      this.zooms = [];
      this.cursors = [];
    }

    onZoom(call) { this.zooms.push(call); }
    onCursor(call) { this.cursors.push(call); }

    setZoom(from, to) {
      from = Math.max(this.begin, Math.floor(from));
      to = Math.min(this.end, Math.ceil(to));
      if (!(to > from) || (from === this.from && to === this.to))
        return;
      this.from = from;
      this.to = to;
      this.zooms.forEach((call) => call(from, to));
    }

    /* null = nowhere. Of several steps that begin then, `step` is looked at; null = the last of them. */
    setCursor(ns, step = null) {
      if (ns === this.at && step === this.step)
        return;
      this.at = ns;
      this.step = step;
      this.cursors.forEach((call) => call(ns));
    }
  }

  /* ---- words ---- */

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      if (name === "class")
        made.className = value;
      else if (name.startsWith("on"))
        made.addEventListener(name.slice(2), value);
      else
        made.setAttribute(name, value);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  const groups = new Intl.NumberFormat("en-US", {maximumFractionDigits: 0});
  const count = (n) => groups.format(n);

  /* With the unit that fits, and as many digits as `step`, the smallest difference shown, asks for. */
  const UNITS = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

  function duration(ns, step = 0) {
    const size = Math.abs(ns);
    const digitsIn = (scale) => step > 0 ? Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9))
      : size >= 100 * scale ? 1 : size >= 10 * scale ? 2 : 3;
    /* 999,999 ns are 1 ms where no more digits are shown. */
    const fits = ([scale]) => scale === 1e9 || Math.round(size / scale * 10 ** digitsIn(scale)) <
      1000 * 10 ** digitsIn(scale);
    const [scale, unit] = UNITS.find(fits), value = ns / scale, digits = digitsIn(scale);
    return value.toLocaleString("en-US", {minimumFractionDigits: scale === 1 ? 0 : Math.min(digits, 9),
      maximumFractionDigits: scale === 1 ? 0 : Math.min(digits, 9)}) + " " + unit;
  }

  /* What is there is not shown as 0. */
  const percent = (part) => part > 0 && part < 0.0005 ? "under 0.1 %" : (100 * part).toFixed(1) + " %";

  /* ---- the page ---- */

  async function spanOf(runs) {
    let begin = Infinity, end = -Infinity;
    for (const run of runs)
      if (run.head.span) {
        begin = Math.min(begin, run.head.span[0]);
        end = Math.max(end, run.head.span[1]);
      } else if (run.has("steps")) {
        const steps = await run.columns("steps", ["time_ns", "dur_ns"]);
        if (steps.rows === 0)
          continue;
        begin = Math.min(begin, steps.time_ns[0]);
        end = Math.max(end, steps.time_ns[steps.rows - 1] + steps.dur_ns[steps.rows - 1]);
      }
    return begin < end ? [begin, end] : [0, 1];
  }

  function complain(error) {
    const line = document.getElementById("trouble");
    line.hidden = false;
    line.textContent = "Something on this page could not be drawn: " + error.message;
    console.error(error);
  }

  async function drawPanel(panel, runs, time) {
    const shown = panel.when ? panel.when(runs) : true;
    if (shown === false)
      return;
    const title = element("h2", {id: panel.name}, panel.title);
    const body = element("div", {class: "body"});
    document.getElementById("panels").append(
      element("section", {class: "panel", "aria-labelledby": panel.name}, title, body));
    document.getElementById("contents").append(element("a", {href: "#" + panel.name}, panel.title));
    if (typeof shown === "string")
      body.append(element("p", {class: "absent"}, shown));
    else
      await panel.draw(body, runs[0], time, runs);
  }

  /* Runs that lie in one folder are called by what is different. */
  function shortenNames(runs) {
    const parts = runs.map((run) => run.name.replace(/\/+$/, "").split("/"));
    let same = 0;
    while (parts.every((part) => part.length > same + 1 && part[same] === parts[0][same]))
      same++;
    runs.forEach((run, i) => { run.name = parts[i].slice(same).join("/"); });
  }

  const ready = {};
  ready.promise = new Promise((resolve) => { ready.resolve = resolve; });

  async function start() {
    try {
      const runs = JSON.parse(island("runs").textContent).map((head) => new Run(head));
      if (runs.length > 1 && island("compare") === null)
        shortenNames(runs);
      const time = new Time(...await spanOf(runs));
      Object.assign(api, {runs, time});
      if (runs.length === 1 && runs[0].head.name)
        document.title = runs[0].head.name;
      for (const panel of panels.sort((a, b) => a.order - b.order))
        try {
          await drawPanel(panel, runs, time);
        } catch (error) {
          complain(error);
        }
    } catch (error) {
      complain(error);
    }
    ready.resolve();
    document.documentElement.dataset.ready = "yes";
  }

  const api = {
    panel: (description) => panels.push(description),
    start, ready: ready.promise, element, count, duration, percent, runs: [], time: null,
  };
  return api;
})();
