/*
 * distributions.js - how latencies are spread: from the exact histograms of the run, with their percentiles.
 *
 * Time is drawn on a logarithmic axis. Bars are counts in equal parts of it, the line is the share of all
 * that took at most so long. Of several runs there are lines only.
 */
"use strict";

(() => {
  const {element, count, duration, percent} = pagedkv;
  const WIDTH = 560, HEIGHT = 204, LEFT = 50, RIGHT = 14, TOP = 48, BOTTOM = 24, BARS = 72;
  const DASHES = ["", "7 3", "2 2", "9 3 2 3", "4 4", "12 4"];
  const MARKS = [["p50", 0.5], ["p90", 0.9], ["p99", 0.99]];

  function svg(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes))
      made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  /* {upper, counts, sums, total}: sums[i] = how many are at most upper[i]. */
  async function histogram(run, name) {
    if (!run.has("hist-" + name))
      return null;
    const h = await run.columns("hist-" + name, ["upper_ns", "count"]);
    const sums = new Float64Array(h.rows);
    let total = 0;
    for (let i = 0; i < h.rows; i++) {
      total += h.count[i];
      sums[i] = total;
    }
    return total > 0 ? {upper: h.upper_ns, counts: h.count, sums, total, run} : null;
  }

  /* Nearest rank, as summary.json has it. */
  function quantile(h, q) {
    const rank = Math.ceil(q * h.total - 1e-9);
    return h.upper[h.sums.findIndex((sum) => sum >= rank)];
  }

  /* Values of 0 stand in a place of their own, left of the logarithmic axis. */
  function scaleOf(all) {
    let least = Infinity, most = 1, zeros = false;
    for (const h of all) {
      zeros = zeros || h.upper[0] === 0;
      const first = h.upper[0] === 0 ? h.upper[1] : h.upper[0];
      least = Math.min(least, first === undefined ? Infinity : first);
      most = Math.max(most, h.upper[h.upper.length - 1]);
    }
    if (!(least < Infinity))
      least = most;
    let low = Math.log10(least), high = Math.log10(most);
    const pad = Math.max(0.04, (high - low) * 0.02);
    low -= pad;
    high += pad;
    const zero = zeros ? 26 : 0, from = LEFT + zero, width = WIDTH - RIGHT - from;
    const x = (ns) => ns <= 0 ? LEFT + 6 : from + (Math.log10(ns) - low) / (high - low) * width;
    return {x, low, high, from, width, zeros};
  }

  function axis(scale) {
    const group = svg("g", {}), y = HEIGHT - BOTTOM;
    const place = (at, label) => group.append(svg("line", {class: "axis", x1: at, x2: at, y1: y, y2: y + 4}),
      svg("text", {class: "faint", x: at, y: y + 17, "text-anchor": "middle"}, label));
    group.append(svg("line", {class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y}));
    const span = scale.high - scale.low, parts = span > 2.2 ? [1] : span > 0.9 ? [1, 2, 5]
      : [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
    let last = -100;
    for (let power = Math.floor(scale.low); power <= scale.high; power++)
      for (const part of parts) {
        const ns = part * 10 ** power, at = scale.x(ns);
        if (at < scale.from || at > WIDTH - RIGHT - 14 || at - last < 58)
          continue;
        place(at, duration(ns).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " "));
        last = at;
      }
    if (scale.zeros)
      place(LEFT + 6, "0");
    return group;
  }

  function bars(h, scale) {
    const counts = new Float64Array(BARS), group = svg("g", {});
    let zeros = 0;
    h.upper.forEach((ns, i) => {
      if (ns <= 0)
        zeros += h.counts[i];
      else
        counts[Math.min(BARS - 1, Math.max(0, Math.floor((scale.x(ns) - scale.from) / scale.width *
          BARS)))] += h.counts[i];
    });
    const most = Math.max(zeros, ...counts), room = HEIGHT - BOTTOM - TOP;
    const bar = (x, width, n) => {
      if (n > 0) {
        const height = Math.max(1, n / most * room);
        group.append(svg("rect", {x, width, y: HEIGHT - BOTTOM - height, height,
          style: "fill: var(--c1); opacity: .45"}, svg("title", {}, count(n))));
      }
    };
    counts.forEach((n, i) => bar(scale.from + i / BARS * scale.width, scale.width / BARS - 0.6, n));
    bar(LEFT, 12, zeros);
    return group;
  }

  function line(h, scale, i) {
    const y = (part) => HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP);
    const path = [`M${scale.x(h.upper[0]).toFixed(1)},${y(0)}`];
    let last = -1;
    h.upper.forEach((ns, k) => {
      const x = Math.round(2 * scale.x(ns)) / 2, point = `V${y(h.sums[k] / h.total).toFixed(1)}`;
      if (x === last)
        path[path.length - 1] = point;
      else
        path.push(`H${x}`, point);
      last = x;
    });
    return svg("path", {d: path.join("") + `H${WIDTH - RIGHT}`, fill: "none", "stroke-width": 1.6,
      "stroke-dasharray": DASHES[i % 6], style: `stroke: var(--c${i % 6 + 1})`});
  }

  function shares() {
    const group = svg("g", {}), y = (part) => HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP);
    for (const part of [0, 0.5, 1])
      group.append(svg("line", {class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(part), y2: y(part)}),
        svg("text", {class: "faint", x: LEFT - 6, y: y(part) + 4, "text-anchor": "end"}, 100 * part + " %"));
    return group;
  }

  /* Names above the picture, on several lines where they would touch. */
  function marks(h, scale) {
    const group = svg("g", {});
    const ends = [-100, -100, -100];    /* of the lines, from the lowest up */
    const places = new Map();         /* ns -> names; in order, as quantiles rise */
    for (const [name, q] of [...MARKS, ["max", 1]]) {
      const ns = quantile(h, q);
      places.set(ns, [...(places.get(ns) || []), name]);
    }
    for (const [ns, names] of places) {
      const x = scale.x(ns), text = `${names.join(", ")} ${duration(ns)}`;
      const width = 6.4 * text.length, half = width / 2;
      const wanted = Math.min(Math.max(x, LEFT + half), WIDTH - RIGHT - half);
      const free = ends.findIndex((end) => end <= wanted - half);
      const row = free >= 0 ? free : ends.indexOf(Math.min(...ends));
      const at = Math.max(wanted, ends[row] + half), up = 14 * row;
      ends[row] = at + half + 4;
      group.append(svg("line", {x1: x, x2: x, y1: TOP - 5 - up, y2: HEIGHT - BOTTOM,
        "stroke-dasharray": "2 3", style: "stroke: var(--ink); opacity: .6"}),
        svg("text", {x: at, y: TOP - 8 - up, "text-anchor": "middle"}, text));
    }
    return group;
  }

  function picture(title, all) {
    const scale = scaleOf(all), single = all.length === 1;
    const said = all.map((h) => `${single ? "" : h.run.name + ": "}median ${duration(quantile(h, 0.5))}, ` +
      `p99 ${duration(quantile(h, 0.99))}`).join("; ");
    const drawn = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
      "aria-label": `${title}: ${said}`}, shares());
    if (single)
      drawn.append(bars(all[0], scale), marks(all[0], scale));
    all.forEach((h, i) => drawn.append(line(h, scale, i)));
    drawn.append(axis(scale));
    const heading = single ? `${title} (${count(all[0].total)})` : title;
    return element("figure", {}, element("h3", {}, heading), drawn);
  }

  async function draw(body, run, t, runs) {
    const side = element("div", {class: "side"});
    body.append(element("p", {class: "hint"}, runs.length > 1
      ? "Lines: the share of all that took at most so long, a line for each run."
      : "Bars: how many took so long. Line: the share of all that took at most so long. Time is " +
        "logarithmic."));
    if (runs.length > 1)
      body.append(element("div", {class: "keys"}, ...runs.map((one, i) =>
        element("span", {}, pagedkv.swatch(i), one.name))));
    for (const [name, title] of Object.entries(pagedkv.latencies)) {
      const all = (await Promise.all(runs.map((one) => histogram(one, name)))).filter((h) => h !== null);
      if (all.length > 0)
        side.append(picture(title[0].toUpperCase() + title.slice(1), all));
    }
    body.append(side);
    if (runs.some((one) => !one.has("hist-itl") && one.summary.latency_ms.itl.count > 0))
      body.append(element("p", {class: "absent"}, "The distribution of single gaps is known to the run " +
        "itself only: run it again with -o and look at its own report.html."));
  }

  pagedkv.panel({name: "distributions", order: 40, title: "Distributions",
    when: (runs) => runs.some((run) => Object.values(run.summary.latency_ms).some((l) => l.count > 0))
      ? runs.some((run) => run.has("hist-ttft")) : "No request got far enough for a latency.", draw});
})();
