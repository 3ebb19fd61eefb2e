/*
 * reduce.js - millions of rows on a thousand pixels, without hiding a peak.
 *
 * A column is a step function: a row's value holds from its time to that of the next row, or to its own
 * end where nothing ran for a while after it. Each pixel keeps the smallest and the largest value that
 * held at any moment of it, so that whatever stood out in one row of a million is drawn as high as it was.
 */
"use strict";

pagedkv.reduce = (() => {
  /* The first row at or after ns. */
  function rowFrom(time, ns) {
    let low = 0, high = time.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (time[middle] < ns)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  /* The row that holds at ns, the last one that has begun; -1 = before the first. */
  const rowAt = (time, ns) => rowFrom(time, ns + 1) - 1;

  /* Where the rows of each pixel begin: pixel p has rows first[p] .. first[p + 1] - 1. Worked out once
   * for all columns. end(row) = when the row's value holds no more. */
  function cut(time, dur, from, to, pixels) {
    const first = new Int32Array(pixels + 1), held = new Uint8Array(pixels);
    const width = (to - from) / pixels;
    let row = rowFrom(time, from);
    for (let p = 0; p < pixels; p++) {
      first[p] = row;
      const before = row - 1;
      held[p] = before >= 0 && time[before] + dur[before] > from + p * width ? 1 : 0;
      const edge = from + (p + 1) * width;
      while (row < time.length && time[row] < edge)
        row++;
    }
    first[pixels] = row;
    return {first, held, from, to, pixels, width, time, dur};
  }

  /* {low, high, mean}: [pixels], NaN where nothing ran; the mean is weighted by time. lows and highs may be
   * one and the same column. */
  function column(cuts, lows, highs) {
    const {first, held, pixels, time, dur} = cuts;
    const low = new Float64Array(pixels), high = new Float64Array(pixels), mean = new Float64Array(pixels);
    for (let p = 0; p < pixels; p++) {
      const begin = cuts.from + p * cuts.width, end = begin + cuts.width;
      let least = NaN, most = NaN, sum = 0, whole = 0;
      for (let row = first[p] - held[p]; row < first[p + 1]; row++) {
        if (Number.isNaN(lows[row]))
          continue;
        if (!(lows[row] >= least))
          least = lows[row];
        if (!(highs[row] <= most))
          most = highs[row];
        const weight = Math.min(end, time[row] + dur[row]) - Math.max(begin, time[row]);
        if (weight > 0) {
          sum += weight * (lows[row] + highs[row]) / 2;
          whole += weight;
        }
      }
      low[p] = least;
      high[p] = most;
      mean[p] = least === most ? least : whole > 0 ? Math.min(most, Math.max(least, sum / whole))
        : (least + most) / 2;
    }
    return {low, high, mean};
  }

  return {cut, column, rowAt, rowFrom};
})();
