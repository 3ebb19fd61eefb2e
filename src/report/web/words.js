/*
 * words.js - what a reader asks first, in words and figures: what was run, how it went, what limited it and
 * when, which requests paid for it.
 */
"use strict";

(() => {
  const {element, count, duration, percent, reduce} = pagedkv;

  const ms = (value) => duration(value * 1e6);
  const several = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");

  /* ---- head ---- */

  function drawHead(runs) {
    const words = runs[0].words, s = runs[0].summary;
    const head = document.getElementById("head");
    head.append(element("h1", {}, document.title));
    if (words.question)
      head.append(element("p", {class: "question"}, words.question));
    if (runs.length === 1)
      head.append(element("p", {class: "faint"}, `${several(s.requests.arrived, "request")}, ` +
        `${several(s.steps, "scheduler step")}, ${pagedkv.moment(s.makespan_ns)} of virtual time; ` +
        `pagedkv ${s.version}, seed ${s.seed}`));
  }

  pagedkv.stretch = ([from, to]) => pagedkv.moment(from) + " to " + (to ? pagedkv.moment(to) : "the end");

  /* ---- the figures that matter ---- */

  function tile(value, label) {
    return element("div", {class: "tile"}, element("b", {}, value), element("span", {}, label));
  }

  function tiles(s, words) {
    const l = s.latency_ms, r = s.requests;
    const out = element("div", {class: "tiles"},
      tile(`${count(r.completed)} of ${count(r.arrived)}`, "requests completed"));
    if (r.rejected + r.aborted + r.unfinished > 0)
      out.append(tile([r.rejected && count(r.rejected) + " rejected", r.aborted && count(r.aborted) +
        " aborted", r.unfinished && count(r.unfinished) + " unfinished"].filter(Boolean).join(", "),
        "of the others"));
    if (l.ttft.count > 0)
      out.append(tile(ms(l.ttft.p50), `to the first token in the median; p99 ${ms(l.ttft.p99)}`));
    if (l.tpot.count > 0)
      out.append(tile(ms(l.tpot.p50), `a token after it in the median; p99 ${ms(l.tpot.p99)}`));
    if (l.itl.count > 0)
      out.append(tile(ms(l.itl.max), "the longest gap between two tokens of a request"));
    out.append(tile(count(s.preemptions), "preemptions; " + percent(s.tokens.scheduled > 0
      ? s.tokens.recomputed / s.tokens.scheduled : 0) + " of the work done twice"));
    out.append(tile(percent(s.mean.used_frac), "of the pool held on average; at most " +
      percent(s.peak.used_blocks / s.blocks.num_blocks)));
    if (words.no_hits)
      out.append(tile("no prefix hits", words.no_hits.replace(/^none: /, "")));
    else if (s.tokens.queried > 0)
      out.append(tile(percent(s.tokens.hit / s.tokens.queried), "of prompt tokens found in the cache"));
    out.append(tile(s.throughput.output_tokens_per_s.toLocaleString("en-US", {maximumFractionDigits: 1}),
      "output tokens a second"));
    return out;
  }

  /* ---- what limited it, and when ---- */

  const CELLS = 240;

  /* For each cause the share of each cell of time that it took, and its longest stretch, in the window. */
  async function causesOverTime(run, t) {
    const [first, until] = run.words.window || [t.begin, 0], last = until || t.end;
    const steps = await run.columns("steps", ["time_ns", "dur_ns", "limit"]);
    const shares = run.words.limit_names.map(() => new Float64Array(CELLS));
    const longest = run.words.limit_names.map(() => ({from: 0, to: 0}));
    const width = (t.end - t.begin) / CELLS;
    let begin = 0;
    for (let row = 0; row < steps.rows; row++) {
      const limit = steps.limit[row], from = Math.max(first, steps.time_ns[row]);
      const end = Math.min(last, steps.time_ns[row] + steps.dur_ns[row]);
      for (let at = from; at < end;) {
        const cell = Math.min(CELLS - 1, Math.floor((at - t.begin) / width));
        const to = cell === CELLS - 1 ? end : Math.min(end, Math.max(at + 1, t.begin + (cell + 1) * width));
        shares[limit][cell] += (to - at) / width;
        at = to;
      }
      if (row > 0 && (steps.limit[row - 1] !== limit ||
                      steps.time_ns[row - 1] + steps.dur_ns[row - 1] < steps.time_ns[row]))
        begin = row;
      const start = Math.max(first, steps.time_ns[begin]);
      if (end - start > longest[limit].to - longest[limit].from)
        longest[limit] = {from: start, to: end};
    }
    return {shares, longest};
  }

  function strip(share, label) {
    const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg");
    svg.setAttribute("viewBox", `0 0 ${CELLS} 18`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    share.forEach((part, i) => {
      if (part <= 0)
        return;
      const bar = document.createElementNS(ns, "rect"), height = Math.max(1.5, 18 * Math.min(1, part));
      for (const [key, value] of Object.entries({x: i, width: 1.02, y: 18 - height, height,
        style: "fill: var(--c2)"}))
        bar.setAttribute(key, value);
      svg.append(bar);
    });
    return svg;
  }

  async function drawLimits(body, run, t) {
    const causes = run.words.limits.filter((cause) => cause.frac > 0);
    if (run.summary.steps === 0)
      return;
    body.append(element("h3", {}, "What the first in line waited for, and when"));
    if (causes.length === 0) {
      body.append(element("p", {}, "Nobody waited, but for the step under way."));
      return;
    }
    const {shares, longest} = run.has("steps") && !run.head.thinned ? await causesOverTime(run, t) : {};
    const grid = element("div", {class: "when"});
    for (const {limit, frac, reason} of causes) {
      const text = element("span", {}, reason);
      if (longest && longest[limit].to > longest[limit].from) {
        const {from, to} = longest[limit];
        text.append(element("br"), element("button", {type: "button", title: "show this stretch",
          onclick: () => show(t, from, to)}, `longest: ${duration(to - from)} from ` +
          pagedkv.moment(from)));
      }
      grid.append(text, element("span", {class: "share"}, percent(frac)),
        shares ? strip(shares[limit], `when: ${reason}`) : element("span"));
    }
    body.append(grid, element("p", {class: "hint"}, (run.words.window ? "Shares are of the window that is measured"
      : "Shares are of the whole time") + (shares ? "; each strip is the run from begin to end, a bar as high as " +
      "the share of its stretch." : run.head.thinned ? ". When that was cannot be told from a thinned steps.csv."
        : ".")));
  }

  function show(t, from, to) {
    const room = Math.max((to - from) / 4, 1000);
    t.setZoom(from - room, to + room);
    t.setCursor(Math.round(from));
    document.getElementById("over-time").scrollIntoView();
  }

  /* ---- which requests paid ---- */

  const WORST = 6;

  function worst(by, num) {
    const rows = [];
    for (let row = 0; row < by.length; row++)
      if (by[row] > 0 && (rows.length < num || by[row] > by[rows[rows.length - 1]])) {
        let at = rows.length;
        while (at > 0 && by[rows[at - 1]] < by[row])
          at--;
        rows.splice(at, 0, row);
        if (rows.length > num)
          rows.pop();
      }
    return rows;
  }

  function table(title, heads, rows) {
    return element("div", {}, element("h3", {}, title), element("div", {class: "wide"},
      element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head, i) =>
        element("th", i === 0 ? {class: "id", scope: "col"} : {scope: "col"}, head)))),
      element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell, i) =>
        i === 0 ? element("td", {class: "id", title: typeof cell === "string" ? cell : ""}, cell)
          : element("td", {}, cell))))))));
  }

  async function drawPaid(body, run, t) {
    if (!run.has("requests") || run.summary.steps === 0)
      return;
    const q = await run.columns("requests", ["arrival_ns", "admitted_ns", "first_token_ns", "finish_ns",
      "preemptions", "recomputed_tokens", "max_gap_ns", "prompt_tokens", "output_tokens", "status"]);
    const ids = await run.texts("requests-id"), is = (i, status) => run.words.statuses[q.status[i]] === status;
    /* Of one that was never admitted to its abort, or to the end of the run. */
    const wait = q.admitted_ns.map((at, i) => (at >= 0 ? at : is(i, "rejected") ? q.arrival_ns[i]
      : q.finish_ns[i] >= 0 ? q.finish_ns[i] : t.end) - q.arrival_ns[i]);
    const began = (i) => q.admitted_ns[i] >= 0 ? "" : is(i, "aborted") ? "until its abort" : "never began";
    const hit = q.preemptions.reduce((n, times) => n + (times > 0), 0);
    const median = (keep) => {
      const all = q.finish_ns.map((end, i) => is(i, "completed") && keep(i) ? end - q.arrival_ns[i] : -1)
        .filter((ns) => ns >= 0).sort();
      return all.length > 0 ? all[Math.floor((all.length - 1) / 2)] : null;
    };
    body.append(element("h3", {}, "Which requests paid" + (run.summary.whole ? ", in the whole run" : "")));
    const paid = median((i) => q.preemptions[i] > 0), others = median((i) => q.preemptions[i] === 0);
    body.append(element("p", {}, hit === 0 ? "None was preempted." :
      `${several(hit, "request")} of ${count(q.rows)} (${percent(hit / q.rows)}) ` +
      `${hit === 1 ? "was" : "were"} preempted` + (paid !== null && others !== null ?
        `; those completed took ${duration(paid)} from arrival to end in the median, the others ` +
        `${duration(others)}; a long request is also more likely to be hit.` : ".")));
    const where = (row) => element("button", {type: "button", onclick: () => show(t, q.arrival_ns[row],
      q.finish_ns[row] >= 0 ? q.finish_ns[row] : t.end)}, "show");
    const side = element("div", {class: "side"}), rows = (by) => worst(by, WORST);
    const preempted = rows(q.preemptions), waited = rows(wait), silent = rows(q.max_gap_ns);
    if (waited.length > 0)
      side.append(table("Waited longest to begin", ["request", "waited", "", "prompt", ""], waited.map((row) =>
        [ids[row], duration(wait[row]), began(row), count(q.prompt_tokens[row]), where(row)])));
    if (preempted.length > 0)
      side.append(table("Preempted most", ["request", "times", "recomputed", ""], preempted.map((row) =>
        [ids[row], count(q.preemptions[row]), several(q.recomputed_tokens[row], "token"), where(row)])));
    if (silent.length > 0)
      side.append(table("Silent longest between two tokens", ["request", "gap", "output", ""],
        silent.map((row) => [ids[row], duration(q.max_gap_ns[row]), count(q.output_tokens[row]),
          where(row)])));
    body.append(side);
  }

  async function drawWords(body, run, t) {
    const words = run.words;
    for (const text of [words.warning, words.diagnosis])
      if (text)
        body.append(element("p", {class: "warning"}, text));
    if (words.window)
      body.append(element("p", {"data-window": ""}, `Figures and distributions cover what is measured, ` +
        `${pagedkv.stretch(words.window)}; the charts, the timeline and which requests paid are ` +
        "of the whole run."));
    if (words.step_ns > 0)
      body.append(element("p", {class: "hint"}, `Every step takes ${duration(words.step_ns)}, which the ` +
        "scenario chose: read times as numbers of steps."));
    body.append(tiles(run.summary, words));
    await drawLimits(body, run, t);
    if (words.next)
      body.append(element("p", {}, element("strong", {}, "Try next: "), words.next + "."));
    await drawPaid(body, run, t);
    if (words.ask)
      body.append(element("pre", {}, words.ask.trimEnd()));
  }

  pagedkv.panel({name: "what-happened", order: 10, title: "What happened",
    async draw(body, run, t, runs) {
      drawHead(runs);
      if (runs.length === 1)
        await drawWords(body, run, t);
      else
        await pagedkv.drawComparison(body, runs);
    }});

  /* ---- all figures ---- */

  const LATENCIES = {queue: "waited to begin", ttft: "to the first token", tpot: "per token after it",
    itl: "each gap", max_gap: "largest gap of a request", e2e: "from arrival to end"};
  pagedkv.latencies = LATENCIES;

  function latencyTable(s) {
    const figures = ["mean", "p50", "p90", "p95", "p99", "max"];
    const told = Object.keys(LATENCIES).filter((name) => s.latency_ms[name].count > 0);
    if (told.length === 0)
      return element("p", {class: "absent"}, "No request got far enough for a latency.");
    const rows = told.map((name) =>
      [LATENCIES[name], count(s.latency_ms[name].count), ...figures.map((f) => ms(s.latency_ms[name][f]))]);
    return element("div", {}, table("Latencies", ["", "count", ...figures], rows),
      element("p", {class: "hint"}, "Means and maxima are exact; percentiles are nearest rank, at most " +
        "0.1 % above."));
  }

  function shown(key, value) {
    if (typeof value !== "number")
      return String(value);
    return key.endsWith("_frac") ? percent(value) : key.endsWith("_ns") ? duration(value)
      : Number.isInteger(value) ? count(value) : value.toLocaleString("en-US", {maximumFractionDigits: 3});
  }

  const word = (key) => key.replace(/_(frac|ns)$/, "").replace(/_/g, " ");

  function group(title, pairs) {
    return element("div", {}, element("h3", {}, title), element("table", {}, element("tbody", {},
      ...pairs.map(([key, value]) => element("tr", {}, element("th", {scope: "row"}, word(key)),
        element("td", {}, shown(key, value)))))));
  }

  function drawFigures(body, run) {
    const s = run.summary, names = run.words.limit_names;
    const whole = element("div", {class: "columns"}), single = [];
    body.append(latencyTable(s));
    for (const [key, value] of Object.entries(s)) {
      if (key === "latency_ms" || key === "schema")
        continue;
      if (value === null || typeof value !== "object")
        single.push([key, value]);
      else
        whole.append(group(key === "limit_frac" ? "share of time per cause" : word(key),
          Object.entries(value).filter(([, v]) => v === null || typeof v !== "object")
            .map(([k, v]) => [key === "limit_frac" ? (names[k] || k) + "_frac" : k, v])));
    }
    whole.append(group("run", single.filter(([key]) => key !== "scenario_sha256")));
    body.append(whole);
  }

  pagedkv.panel({name: "figures", order: 80, title: "All figures", when: (runs) => runs.length === 1,
    async draw(body, run) { drawFigures(body, run); }});

  pagedkv.panel({name: "scenario", order: 90, title: "What was run",
    async draw(body, run, t, runs) {
      for (const one of runs) {
        if (runs.length > 1)
          body.append(element("h3", {}, one.name));
        body.append(element("pre", {}, one.words.setup.trimEnd()));
        if (one.words.unused)
          body.append(element("pre", {}, one.words.unused.trimEnd()));
        body.append(element("details", {},
          element("summary", {}, "The scenario as it ran, every key written out"),
          element("pre", {"data-scenario": ""}, one.scenario)));
      }
    }});
})();
