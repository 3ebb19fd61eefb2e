/*
 * comparison.js - several runs on one page: a table of their figures with the differences to the first.
 *
 * A comparison brings its own table, with intervals over its seeds. Of former runs it is made of their
 * summaries.
 */
"use strict";

(() => {
  const {element, count, duration, percent} = pagedkv;
  const LOWER = -1, HIGHER = 1, NEITHER = 0;

  /* Name in compare.json, heading, what is better, and where it stands in a summary. */
  const FIGURES = [
    ["completed", "completed", HIGHER, (s) => s.requests.completed],
    ["rejected", "rejected", LOWER, (s) => s.requests.rejected],
    ["aborted", "aborted", NEITHER, (s) => s.requests.aborted],
    ["unfinished", "unfinished", LOWER, (s) => s.requests.unfinished],
    ["preemptions", "preemptions", LOWER, (s) => s.preemptions],
    ["recomputed_frac", "work done twice", LOWER,
      (s) => s.tokens.scheduled > 0 ? s.tokens.recomputed / s.tokens.scheduled : null],
    ["makespan_ns", "makespan", LOWER, (s) => s.makespan_ns],
    ["requests_per_s", "requests a second", HIGHER, (s) => s.throughput.requests_per_s],
    ["output_tokens_per_s", "output tokens a second", HIGHER, (s) => s.throughput.output_tokens_per_s],
    ["good_frac", "within targets", HIGHER, () => null],
    ["good_requests_per_s", "good requests a second", HIGHER,
      (s) => s.goodput ? s.goodput.requests_per_s : null],
    ...[["ttft", "mean"], ["ttft", "p99"], ["tpot", "mean"], ["itl", "mean"], ["itl", "p99"],
      ["max_gap", "p99"], ["e2e", "mean"], ["e2e", "p99"], ["queue", "p99"]].map(([name, figure]) =>
      [`${name}_${figure}_ms`, `${pagedkv.latencies[name]}, ${figure}`, LOWER,
        (s) => s.latency_ms[name].count > 0 ? s.latency_ms[name][figure] : null]),
    ["running_mean", "running on average", NEITHER, (s) => s.mean.running],
    ["used_frac", "blocks held", NEITHER, (s) => s.mean.used_frac],
    ["slot_use_frac", "slots filled", NEITHER, (s) => s.mean.slot_use_frac],
    ["hit_frac", "prefix hits", HIGHER, (s) => s.tokens.queried > 0 ? s.tokens.hit / s.tokens.queried : null],
    ["swapped_bytes", "bytes moved", NEITHER, () => null],
    ["jain_service", "Jain's index of service", HIGHER, () => null],
    ["jain_ttft", "Jain's index of first tokens", HIGHER, () => null],
  ];

  function shown(name, value) {
    return name.endsWith("_ms") ? duration(value * 1e6) : name.endsWith("_ns") ? duration(value)
      : name.endsWith("_frac") ? percent(value) : Number.isInteger(value) ? count(value)
        : value.toLocaleString("en-US", {maximumFractionDigits: 3});
  }

  /* {value, half, diff (in %), open, best} of each configuration. */
  function cellsOf(figure, runs, table) {
    const [name, , , read] = figure;
    if (table)
      return table.configurations.map(({figures: {[name]: cell}}) => cell.value === null ? null
        : {value: cell.value, half: cell.half95, diff: cell.diff_percent, best: cell.best,
          open: cell.diff !== null && cell.diff_half95 > 0 && Math.abs(cell.diff) <= cell.diff_half95});
    const values = runs.map((run) => read(run.summary));
    return values.map((value) => value === null ? null : {value, half: 0, open: false, best: false,
      diff: values[0] ? 100 * (value - values[0]) / values[0] : null});
  }

  function cell(name, better, one, first) {
    if (one === null)
      return element("td", {}, "–");
    const out = element("td", {}, shown(name, one.value));
    if (one.half > 0)
      out.append(element("span", {class: "diff"}, "± " + shown(name, one.half)));
    if (!first && one.diff !== null && Math.abs(one.diff) >= 0.05) {
      out.append(element("span", {class: "diff"}, (one.open ? "~ " : "") + (one.diff > 0 ? "+" : "−") +
        Math.abs(one.diff).toFixed(1) + " %"));
      if (!one.open && better !== NEITHER)
        out.className = one.diff * better > 0 ? "better" : "worse";
    }
    if (one.best)
      out.append(element("b", {title: "the best"}, " *"));
    return out;
  }

  const keyOf = (set) => Object.entries(set).map(([key, value]) => `${key}=${value}`).join(", ");

  pagedkv.drawComparison = (body, runs) => {
    const island = document.getElementById("pkv-compare");
    const table = island === null ? null : JSON.parse(island.textContent);
    const names = table ? table.configurations.map((one) => keyOf(one.set)) : runs.map((run) => run.name);
    const drawn = new Map(runs.map((run, i) => [run.name, i]));
    const rows = FIGURES.map((figure) => [figure, cellsOf(figure, runs, table)])
      .filter(([, cells]) => cells.some((one) => one !== null && one.value !== 0));
    body.append(element("div", {class: "wide"}, element("table", {"data-comparison": ""},
      element("thead", {}, element("tr", {}, element("th", {scope: "col"}, "figure"),
        ...names.map((name) => element("th", {scope: "col"},
          drawn.has(name) ? pagedkv.swatch(drawn.get(name)) : "", name)))),
      element("tbody", {}, ...rows.map(([[name, heading, better], cells]) => element("tr", {},
        element("th", {scope: "row"}, heading),
        ...cells.map((one, i) => cell(name, better, one, i === 0))))))));
    const hint = ["Differences are to the first; ▲ is better, ▼ worse."];
    if (table && (table.seeds > 1 || table.batches > 1))
      hint.push("± is a 95 % interval, ~ a difference that may be noise.");
    if (table)
      hint.push("* is the best.");
    if (table && table.seeds > 1)
      hint.push(`Figures are means of ${table.seeds} seeds, charts show the first.`);
    body.append(element("p", {class: "hint"}, hint.join(" ")));
    if (table && names.length > runs.length)
      body.append(element("p", {class: "absent"}, `Charts show ${runs.length} of ${names.length} ` +
        "configurations: of the first twelve those that came to their end."));
    for (const run of runs)
      for (const text of [run.words.warning, run.words.window && "its figures cover only what is measured, " +
        `${pagedkv.stretch(run.words.window)}`])
        if (text)
          body.append(element("p", {class: "warning"}, `${run.name}: ${text}`));
    body.append(element("h3", {}, "What the first in line waited for, by share of time"),
      element("div", {class: "wide"}, causes(runs)));
  };

  function causes(runs) {
    const limits = [...new Set(runs.flatMap((run) => run.words.limits.map((one) => one.limit)))].sort();
    return element("table", {}, element("thead", {}, element("tr", {}, element("th", {}, "cause"),
      ...runs.map((run, i) => element("th", {scope: "col"}, pagedkv.swatch(i), run.name)))),
    element("tbody", {}, ...limits.map((limit) => element("tr", {},
      element("th", {scope: "row"}, runs[0].words.limit_names[limit]), ...runs.map((run) => {
        const found = run.words.limits.find((one) => one.limit === limit);
        return element("td", {}, found ? percent(found.frac) : "–");
      })))));
  }
})();
