/*
 * blockmap.js - the panel of the block map: a frame as a grid, controls, and what is told in words.
 *
 * All that is seen can be read: the frame's counts and what is known of the block under the pointer or
 * the keyboard's cursor stand as text, which screen readers are told of while nothing plays.
 */
"use strict";

(() => {
  const {element, count, duration} = pagedkv;
  const F = blockmapFrames;

  const STATES = [
    [F.OWN, "own", "held by one request"],
    [F.SHARED, "shared", "shared: reference count above 1"],
    [F.RESERVED, "reserved", "reserved for later tokens"],
    [F.UNUSED, "unused", "reserved, will never be used"],
    [F.LINK, "link", "on the link to the host"],
    [F.CACHED, "cached", "free, content cached"],
    [F.FREE, "free", "free, nothing cached"],
    [F.EXTERNAL, "external", "free, in runs too short for the first in line"],
  ];
  const SPEEDS = [1, 2, 5, 10, 30];
  const TIP = 340;               /* pixels; of what is told at the pointer */
  const LABELS = 58;             /* pixels of the numbers left of the grid */
  const HEIGHT = 560, MOST = 44, LEAST = 6;   /* pixels: of the grid at most, of a cell */
  const KEYS = [
    [", .", "one frame back, one forward"], ["[ ]", "ten frames back, ten forward"],
    ["b e", "first frame, last frame"], ["p", "play, pause"],
    ["arrows", "in the grid: to another block"], ["Home End", "in the grid: to the first block, the last"],
    ["Enter", "in the grid: highlight the block's request; of a shared block the next one each time"],
    ["Escape", "highlight nothing"],
  ];
  const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
  const ordinal = (n) => {
    const rest = n % 100, last = n % 10;
    return count(n) + (rest > 10 && rest < 14 ? "th" : ["th", "st", "nd", "rd"][last] || "th");
  };

  class Panel {
    constructor(body, frames, time) {
      Object.assign(this, {frames, time, head: frames.head, at: 0, cursor: null, hover: null, chosen: null,
                           timer: null});
      this.cells = Math.ceil(this.head.blocks / this.head.cell_blocks);
      this.build(body);
      this.bind();
      this.resize();
      this.show(frames.fullest());
    }

    /* ---- what there is ---- */

    build(body) {
      const button = (name, text, title) => this[name] = element("button", {type: "button", title}, text);
      button("first", "|◀", "First frame (b)");
      button("back", "◀", "One frame back (,)");
      button("play", "Play", "Play or pause (p)");
      button("forward", "▶", "One frame forward (.)");
      button("last", "▶|", "Last frame (e)");
      for (const name of ["first", "back", "forward", "last"])
        this[name].setAttribute("aria-label", this[name].title);
      this.range = element("input", {type: "range", min: 0, max: this.frames.num - 1, step: 1, value: 0,
                                     "aria-label": "Frame"});
      this.tick = element("input", {type: "number", min: 0, max: Math.max(0, this.head.ticks - 1), step: 1});
      this.speed = element("select", {}, ...SPEEDS.map((n) =>
        element("option", {value: n}, plural(n, "frame") + " a second")));
      this.speed.value = 5;
      this.choice = element("select", {});
      this.figures = element("p", {class: "figures", role: "status", "aria-live": "polite"});
      this.legend = element("ul", {class: "legend", "aria-label": "Blocks of this frame by state"});
      this.canvas = element("canvas", {tabindex: 0, role: "application", "aria-roledescription": "block map",
        "aria-label": "Blocks of the pool; arrows move from block to block"});
      this.tip = element("div", {class: "tip", "aria-hidden": "true", hidden: ""});
      this.grid = element("div", {class: "grid"}, this.canvas);
      this.detail = element("p", {class: "detail", role: "status", "aria-live": "polite"});
      this.table = element("div", {class: "table"});
      body.classList.add("blockmap");
      body.append(element("p", {class: "sampling"}, this.wordsOfSampling()),
        element("div", {class: "controls", role: "group", "aria-label": "Frames"},
          this.first, this.back, this.play, this.forward, this.last, this.range,
          element("label", {}, "tick", this.tick), element("label", {}, "speed", this.speed),
          element("label", {}, "highlight", this.choice)),
        this.figures, this.legend, element("div", {class: "picture"}, this.grid, this.tip), this.detail, this.table, this.helpOnKeys());
      this.body = body;
      this.shapes = new Map(this.statesThatMayBe().map((row) => this.addToLegend(...row)));
    }

    helpOnKeys() {
      const list = element("dl", {});
      for (const [keys, what] of KEYS)
        list.append(element("dt", {}, ...keys.split(" ").flatMap((key, i) =>
          [i > 0 ? " " : "", element("kbd", {}, key)])), element("dd", {}, what));
      return element("details", {}, element("summary", {}, "Keys, while the focus is in this panel"), list);
    }

    wordsOfSampling() {
      const {stride, ticks, cell_blocks: size} = this.head, num = this.frames.num;
      const which = stride === 1 ? `Every tick of the run has a frame: ${count(num)}.`
        : `Sampled: every ${stride === 2 ? "second" : ordinal(stride)} tick has a frame, ${count(num)} ticks of ${count(ticks)}.`;
      const cells = size === 1 ? "" : ` The pool has ${count(this.head.blocks)} blocks, so that a ` +
        `cell is ${count(size)} of them: filled from below as far as they are held, barred where nothing ` +
        "is stored yet, dotted as far as the others are cached. Which block is whose is not kept.";
      return which + " A frame is the pool right after the scheduling of its tick, exactly." + cells;
    }

    statesThatMayBe() {
      const runs = this.head.takes_runs, may = new Map([
        [F.LINK, this.frames.tables.holder.includes(F.ON_LINK)],
        [F.RESERVED, runs || this.head.looks_ahead], [F.UNUSED, runs], [F.EXTERNAL, runs],
        [F.SHARED, !runs], [F.CACHED, this.frames.counts.cached_blocks.some((n) => n > 0)]]);
      return STATES.filter(([state]) => may.get(state) !== false).map((row) =>
        row[0] === F.FREE && !may.get(F.CACHED) ? [F.FREE, "free", "free"] : row);
    }

    addToLegend(state, name, words) {
      const picture = element("canvas", {width: 36, height: 36, "aria-hidden": "true"});
      const number = element("b", {}, "0");
      const item = element("li", {"data-state": name}, picture, number, " " + words);
      this.legend.append(item);
      return [state, {picture, number, item}];
    }

    /* ---- what is done to it ---- */

    bind() {
      const go = (by) => () => { this.pause(); this.step(by); };
      this.first.onclick = go(-Infinity);
      this.back.onclick = go(-1);
      this.forward.onclick = go(1);
      this.last.onclick = go(Infinity);
      this.play.onclick = () => this.togglePlay();
      this.range.oninput = () => { this.pause(); this.go(Number(this.range.value)); };
      this.tick.onchange = () => {
        const wanted = Number(this.tick.value), frame = this.frames.at(wanted, "step");
        this.pause();
        this.go(frame);
        const found = this.frames.counts.step[frame];
        if (found !== wanted)
          this.figures.prepend(`Tick ${count(wanted)} has no frame; the last one before it: `);
      };
      this.speed.onchange = () => { if (this.timer) { this.pause(); this.togglePlay(); } };
      this.choice.onchange = () => this.highlight(this.choice.value === "" ? null : Number(this.choice.value));
      this.body.addEventListener("keydown", (event) => this.key(event));
      this.canvas.addEventListener("keydown", (event) => this.keyInGrid(event));
      this.canvas.onpointermove = (event) => this.look(this.cursor, this.blockAt(event));
      this.canvas.onpointerleave = () => this.look(this.cursor, null);
      this.canvas.onblur = () => this.look(null, this.hover);
      this.canvas.onclick = (event) => { this.look(this.blockAt(event), null); this.highlightBlock(); };
      this.time.onCursor((ns) => this.follow(ns));
      new ResizeObserver(() => this.later("resize")).observe(this.body);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.later("draw"));
    }

    /* Once a picture, however often it is asked for. */
    later(what) {
      this.due = this.due || new Set();
      if (this.due.size === 0)
        requestAnimationFrame(() => {
          const due = this.due;
          this.due = new Set();
          due.forEach((name) => this[name]());
        });
      this.due.add(what);
    }

    key(event) {
      const by = {",": -1, ".": 1, "[": -10, "]": 10, b: -Infinity, e: Infinity}[event.key];
      const isTyping = event.target === this.tick || event.target.tagName === "SELECT";
      if (isTyping || event.ctrlKey || event.altKey || event.metaKey)
        return;
      if (by !== undefined) {
        this.pause();
        this.step(by);
      } else if (event.key === "p") {
        this.togglePlay();
      } else if (event.key === "Escape") {
        this.highlight(null);
      } else {
        return;
      }
      event.preventDefault();
    }

    keyInGrid(event) {
      const last = this.cells - 1, from = this.cursor === null ? 0 : this.cursor;
      const to = {ArrowLeft: from - 1, ArrowRight: from + 1, ArrowUp: from - this.columns,
                  ArrowDown: from + this.columns, Home: 0, End: last}[event.key];
      if (event.key === "Enter") {
        this.highlightBlock();
      } else if (to !== undefined) {
        this.look(this.cursor === null ? 0 : to < 0 || to > last ? from : to, null);
        this.scrollTo(this.cursor);
      } else {
        return;
      }
      event.preventDefault();
    }

    step(by) {
      this.go(Math.min(this.frames.num - 1, Math.max(0, this.at + by)));
    }

    /* Whoever goes to a frame takes the charts along. */
    go(frame) {
      this.show(frame);
      this.leads = true;
      this.time.setCursor(this.frames.counts.time_ns[frame], this.frames.counts.step[frame]);
      this.leads = false;
    }

    follow(ns) {
      if (this.leads || ns === null || ns === undefined)
        return;
      this.pause();
      const frame = this.frames.at(ns);
      if (frame !== this.at)
        this.show(frame);
    }

    togglePlay() {
      if (this.timer)
        return this.pause();
      if (this.at === this.frames.num - 1)
        this.go(0);
      this.play.textContent = "Pause";
      this.figures.setAttribute("aria-live", "off");
      this.timer = setInterval(() => {
        if (this.at === this.frames.num - 1)
          this.pause();
        else
          this.step(1);
      }, 1000 / Number(this.speed.value));
    }

    pause() {
      if (!this.timer)
        return;
      clearInterval(this.timer);
      this.timer = null;
      this.play.textContent = "Play";
      this.figures.setAttribute("aria-live", "polite");
    }

    /* ---- a frame ---- */

    show(frame) {
      const f = this.frames;
      this.at = frame;
      this.blocks = this.head.cell_blocks === 1 ? f.blocks(frame) : null;
      this.several = this.blocks ? null : f.cellsOf(frame);
      this.counts = f.countStates(frame, this.blocks);
      this.range.value = frame;
      if (document.activeElement !== this.tick)
        this.tick.value = f.counts.step[frame];
      this.range.setAttribute("aria-valuetext", `tick ${count(f.counts.step[frame])}`);
      this.body.dataset.frame = frame;
      this.body.dataset.step = f.counts.step[frame];
      this.figures.textContent = this.wordsOfFrame();
      this.fillChoice();
      this.tellTable();
      this.tellBlock();
      this.later("draw");
    }

    wordsOfFrame() {
      const c = (name) => this.frames.counts[name][this.at];
      const cached = this.counts[F.CACHED], free = this.counts[F.FREE] + cached + this.counts[F.EXTERNAL];
      const step = c("step"), used = this.head.blocks - free;
      let text = `Tick ${count(step)} at ${duration(c("time_ns"))}, for ${duration(c("dur_ns"))}: ` +
        `${count(used)} of ${plural(this.head.blocks, "block")} used, ${count(free)} free` +
        (cached > 0 ? `, ${count(cached)} of these cached` : "") +
        `; ${plural(c("running"), "request")} running, ${count(c("waiting"))} waiting.`;
      if (this.head.takes_runs)
        text += ` Positions: ${count(c("stored_tokens"))} stored, ${count(c("reserved_slots"))} reserved ` +
          `for later tokens, ${count(c("internal_slots"))} in runs that nothing will ever be stored in ` +
          `(internal waste), ${count(c("external_slots"))} free in runs too short for the first in line ` +
          "(external waste).";
      return text;
    }

    /* Who may be highlighted: those that run, and the chosen one wherever it is. */
    fillChoice() {
      const here = this.frames.requestsOf(this.at);
      const listed = this.chosen === null || here.includes(this.chosen) ? here : [this.chosen, ...here];
      const option = (request) => element("option", {value: request}, this.wordsOfRequest(request) +
        (here.includes(request) ? "" : ", not running here"));
      this.choice.replaceChildren(element("option", {value: ""}, "no request"), ...listed.map(option));
      this.choice.value = this.chosen === null ? "" : this.chosen;
    }

    wordsOfRequest(request) {
      return `${this.frames.letterOf(request)}: request ${this.frames.nameOf(request)}`;
    }

    highlight(request) {
      this.chosen = request;
      this.body.dataset.highlight = request === null ? "" : this.frames.nameOf(request);
      this.fillChoice();
      this.tellTable();
      this.later("draw");
    }

    /* The request of the block at the cursor; of several holders the next one each time. */
    highlightBlock() {
      if (this.block === null || !this.blocks)
        return;
      const holders = this.frames.holdersOf(this.at, this.block)
        .map((holder) => this.frames.tables.request[holder.table]).filter((request) => request >= 0);
      const place = holders.indexOf(this.chosen);
      if (holders.length === 0 || (place >= 0 && holders.length === 1))
        this.highlight(null);
      else
        this.highlight(holders[(place + 1) % holders.length]);
    }

    tellTable() {
      const f = this.frames, tables = this.chosen === null ? [] : f.tablesOf(this.at, this.chosen);
      this.marked = new Set();
      this.table.replaceChildren();
      if (this.chosen !== null && tables.length === 0)
        this.table.append(element("p", {}, `${this.wordsOfRequest(this.chosen)} holds no block in this frame.`));
      for (const table of tables) {
        f.placesOf(table).forEach((block) => this.marked.add(block));
        this.table.append(element("p", {}, this.wordsOfTable(table)));
      }
    }

    wordsOfTable(table) {
      const f = this.frames, t = f.tables, group = this.head.groups[t.group[table]];
      const name = this.head.groups.length > 1 ? ` of KV group ${t.group[table]}, ${group.name}` : "";
      const what = `${this.wordsOfRequest(t.request[table])}, table${name}: ` +
        `${plural(t.blocks[table], "block")}, ${plural(f.computed[table], "position")} computed` +
        (this.head.takes_runs ? ` of ${count(t.end[table])} it will store` : "") +
        (t.holder[table] === F.RUNNING ? "" : ", being copied in");
      const nulls = t.nulls[table] > 0 ? [`${count(t.nulls[table])} null`] : [];
      return this.blocks ? `${what}: ${[...nulls, ...this.runsOf(f.placesOf(table))].join(" ")}` : what + ".";
    }

    /* 3 7..9 12 */
    runsOf(places) {
      const out = [];
      for (let i = 0; i < places.length;) {
        let end = i + 1;
        while (end < places.length && places[end] === places[end - 1] + 1)
          end++;
        if (end - i < 3)
          end = i + 1;
        out.push(end - i > 1 ? `${places[i]}..${places[end - 1]}` : String(places[i]));
        i = end;
      }
      return out;
    }

    /* ---- one block ---- */

    /* What is under the pointer goes before what the keyboard's cursor is at. */
    get block() {
      return this.hover === null ? this.cursor : this.hover;
    }

    look(cursor, hover) {
      if (cursor === this.cursor && hover === this.hover)
        return;
      this.cursor = cursor;
      this.hover = hover;
      this.tellBlock();
      this.later("draw");
    }

    tellBlock() {
      const text = this.block === null ? "" : this.blocks ? this.wordsOfBlock(this.block)
        : this.wordsOfCell(this.block);
      this.detail.textContent = this.tip.textContent = text;
      this.tip.hidden = text === "";
      if (text === "")
        return;
      const [x, top] = this.corner(this.block), y = top - this.grid.scrollTop;
      const room = this.grid.clientWidth, wide = Math.min(TIP, room), below = y < this.grid.clientHeight / 2;
      this.tip.style.width = wide + "px";
      this.tip.style.left = Math.max(0, Math.min(x + this.size + 6, room - wide)) + "px";
      this.tip.style.top = below ? y + this.size + 6 + "px" : "auto";
      this.tip.style.bottom = below ? "auto" : this.grid.clientHeight - y + 6 + "px";
    }

    wordsOfBlock(block) {
      const f = this.frames, state = this.blocks.state[block];
      const words = STATES.find(([known]) => known === state)[2].replace(/:.*/, "");
      const text = `Block ${count(block)}: ${words}, reference count ${this.blocks.refs[block]}`;
      const holders = f.holdersOf(this.at, block).filter((holder) => f.tables.holder[holder.table] !== F.ON_LINK);
      if (holders.length === 0)
        return text + ".";
      const size = this.head.groups[f.tables.group[holders[0].table]].block_size;
      const stored = Math.round(this.blocks.filled[block] * size);
      return `${text}, ${count(stored)} of ${plural(size, "position")} stored; ` +
        holders.slice(0, 8).map((holder) => this.wordsOfHolder(holder)).join("; ") +
        (holders.length > 8 ? ` and ${count(holders.length - 8)} more` : "") + ".";
    }

    wordsOfHolder({table, place}) {
      const t = this.frames.tables;
      return `${this.wordsOfRequest(t.request[table])}, ${ordinal(place + 1)} of ` +
        `${plural(t.blocks[table], "block")} of its table` +
        (this.head.groups.length > 1 ? ` of group ${t.group[table]}` : "");
    }

    wordsOfCell(cell) {
      const c = this.several[cell], first = cell * this.head.cell_blocks;
      return `Blocks ${count(first)} to ${count(first + c.blocks - 1)}: ${count(c.used)} used, of these ` +
        `${count(c.shared)} shared, ${count(c.reserved)} reserved for later tokens, ${count(c.unused)} never ` +
        `used; ${count(c.cached)} cached, ${count(c.blocks - c.used - c.cached)} free with nothing cached.`;
    }

    /* ---- the picture ---- */

    /* The largest cells with which all fits, columns in eights; else the smallest, and it scrolls. */
    resize() {
      const width = Math.max(120, this.grid.clientWidth - LABELS - 2);
      let size = MOST, columns;
      for (;; size--) {
        columns = Math.floor(width / size);
        columns = columns > 8 ? columns - columns % 8 : columns;
        if (size <= LEAST || Math.ceil(this.cells / columns) * size <= HEIGHT)
          break;
      }
      this.size = size;
      this.columns = Math.min(columns, this.cells);
      const scale = window.devicePixelRatio || 1, rows = Math.ceil(this.cells / this.columns);
      const wide = LABELS + this.columns * size + 2, high = rows * size + 2;
      this.canvas.width = Math.round(wide * scale);
      this.canvas.height = Math.round(high * scale);
      this.canvas.style.width = wide + "px";
      this.canvas.style.height = high + "px";
      this.later("draw");
    }

    corner(cell) {
      return [LABELS + (cell % this.columns) * this.size, 1 + Math.floor(cell / this.columns) * this.size];
    }

    blockAt(event) {
      const box = this.canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left - LABELS) / this.size);
      const row = Math.floor((event.clientY - box.top - 1) / this.size);
      const cell = row * this.columns + column;
      return column < 0 || column >= this.columns || row < 0 || cell >= this.cells ? null : cell;
    }

    scrollTo(cell) {
      const y = this.corner(cell)[1], grid = this.grid;
      if (y < grid.scrollTop)
        grid.scrollTop = y - 1;
      else if (y + this.size > grid.scrollTop + grid.clientHeight)
        grid.scrollTop = y + this.size - grid.clientHeight + 1;
    }

    draw() {
      const c = this.canvas.getContext("2d"), scale = window.devicePixelRatio || 1;
      const inks = this.inks = blockmapPaint.inksOf(this.body);
      c.setTransform(scale, 0, 0, scale, 0, 0);
      c.clearRect(0, 0, this.canvas.width, this.canvas.height);
      this.drawLabels(c, inks);
      const inner = this.size - (this.size >= 14 ? 2 : 1);
      for (let cell = 0; cell < this.cells; cell++) {
        const [x, y] = this.corner(cell);
        c.globalAlpha = this.chosen === null || this.marked.has(cell) || !this.blocks ? 1 : 0.25;
        if (this.blocks)
          blockmapPaint.block(c, x, y, inner, this.cellOf(cell), inks);
        else
          blockmapPaint.several(c, x, y, inner, this.several[cell], inks);
      }
      c.globalAlpha = 1;
      this.drawCursor(c, inner, inks);
      this.drawLegend();
    }

    cellOf(block) {
      const table = this.blocks.table[block], request = table < 0 ? -1 : this.frames.tables.request[table];
      const owner = this.chosen !== null && this.marked.has(block) ? this.chosen : request;
      return {state: this.blocks.state[block], refs: this.blocks.refs[block],
              filled: this.blocks.filled[block], label: owner < 0 ? "" : this.frames.letterOf(owner),
              colour: blockmapPaint.colourOf(this.inks, owner < 0 ? -1 : this.frames.letter[owner])};
    }

    drawLabels(c, inks) {
      const rows = Math.ceil(this.cells / this.columns), every = Math.ceil(14 / this.size);
      c.fillStyle = inks.dot;
      c.font = "11px system-ui, sans-serif";
      c.textAlign = "right";
      c.textBaseline = "middle";
      for (let row = 0; row < rows; row += every)
        c.fillText(count(row * this.columns * this.head.cell_blocks), LABELS - 8,
                   1 + row * this.size + this.size / 2);
    }

    drawCursor(c, inner, inks) {
      if (this.block === null)
        return;
      const [x, y] = this.corner(this.block);
      c.strokeStyle = inks.paper;
      c.lineWidth = 4;
      c.strokeRect(x - 0.5, y - 0.5, inner + 1, inner + 1);
      c.strokeStyle = inks.text;
      c.lineWidth = 2;
      c.strokeRect(x - 0.5, y - 0.5, inner + 1, inner + 1);
    }

    drawLegend() {
      for (const [state, {picture, number, item}] of this.shapes) {
        const c = picture.getContext("2d");
        c.setTransform(2, 0, 0, 2, 0, 0);
        c.clearRect(0, 0, 18, 18);
        blockmapPaint.block(c, 0, 0, 18, {state, refs: 2, filled: 1, label: "A",
          colour: blockmapPaint.colourOf(this.inks, 0)}, this.inks);
        number.textContent = count(this.counts[state]);
        item.dataset.count = this.counts[state];
      }
    }
  }

  const MOST_MAPS = 4;
  const hasMap = (run) => run.has("blockmap") && run.json("blockmap").ticks > 0;

  /* Of several runs each has a map; they are at one time, as the charts are. */
  async function draw(body, run, time, runs) {
    const shown = runs.filter(hasMap);
    for (const one of shown.slice(0, MOST_MAPS)) {
      const part = element("div", {});
      if (runs.length > 1)
        body.append(element("h3", {}, one.name));
      body.append(part);
      new Panel(part, await blockmapFrames.load(one), time);
    }
    if (shown.length > MOST_MAPS)
      body.append(element("p", {class: "absent"}, `These are the maps of ${MOST_MAPS} of ${shown.length} runs.`));
  }

  pagedkv.panel({
    name: "block-map",
    order: 60,
    title: "Block map",
    when: (runs) => runs.some(hasMap) || (runs.length > 1 ? false
      : runs[0].summary.steps === 0 ? "No step ran, so the pool was free throughout."
        : "States of the pool are kept while a run goes on; this page was made from what it left."),
    draw,
  });
})();
