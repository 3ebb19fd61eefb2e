/*
 * blockmap_frames.js - the states of the pool that a run kept, unpacked; see src/report/blockmap_write.c.
 *
 * Frame f has the tables tableAt[f] .. tableAt[f + 1] - 1. Table t is of request[t], -1 being the link's;
 * its places behind the null ones are the blocks places[placeAt[t]] .. places[placeAt[t + 1] - 1].
 */
"use strict";

const blockmapFrames = (() => {
  /* What a block is in a frame. */
  const FREE = 0, CACHED = 1, OWN = 2, SHARED = 3, RESERVED = 4, UNUSED = 5, LINK = 6, EXTERNAL = 7;
  const RUNNING = 0, ON_LINK = 2;      /* holders of tables; 1 is resuming */
  const NO_LETTER = 65535;
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

  const sums = (counts) => {
    const out = new Uint32Array(counts.length + 1);
    for (let i = 0; i < counts.length; i++)
      out[i + 1] = out[i] + counts[i];
    return out;
  };

  class Frames {
    constructor(head, ids, parts) {
      Object.assign(this, {head, ids}, parts);
      this.num = this.counts.rows;
      this.rows = this.requests.row;
      this.tableAt = sums(this.counts.tables);
      this.unpackTables();
      if (head.cell_blocks === 1)
        this.unpackWords();
      this.giveLetters();
    }

    /* ---- unpacking ---- */

    unpackTables() {
      const t = this.tables, held = new Uint32Array(t.rows);
      for (let i = 0; i < t.rows; i++)
        held[i] = this.head.cell_blocks === 1 ? t.blocks[i] - t.nulls[i] : 0;
      this.placeAt = sums(held);
      this.places = new Uint32Array(this.placeAt[t.rows]);
      this.computed = new Float64Array(t.rows);
      let next = 0, before = new Map();
      for (let f = 0; f < this.num; f++) {
        const now = new Map();
        for (let i = this.tableAt[f]; i < this.tableAt[f + 1]; i++) {
          const key = t.request[i] * 16 + t.group[i], former = before.get(key);
          next = this.unpackTable(i, former, next);
          if (t.holder[i] !== ON_LINK)
            now.set(key, i);
        }
        before = now;
      }
    }

    unpackTable(i, former, next) {
      const t = this.tables;
      this.computed[i] = t.computed[i] + (former === undefined ? 0 : this.computed[former]);
      let at = this.placeAt[i];
      const end = this.placeAt[i + 1], from = former === undefined ? 0
        : this.placeAt[former] + t.nulls[i] - t.nulls[former];
      for (let k = 0; k < t.kept[i]; k++)
        this.places[at++] = this.places[from + k];
      while (at < end)
        this.places[at++] = this.newPlaces.block[next++];
      return next;
    }

    unpackWords() {
      const num = Math.ceil(this.head.blocks / 32);
      this.words = new Uint32Array(this.cached.rows);
      this.wordAt = new Int32Array(this.num).fill(-1);
      let at = 0;
      for (let f = 0; f < this.num; f++) {
        if (this.counts.cached_blocks[f] === 0)
          continue;
        const before = f > 0 ? this.wordAt[f - 1] : -1;
        this.wordAt[f] = at;
        for (let w = 0; w < num; w++, at++)
          this.words[at] = this.cached.bits[at] ^ (before < 0 ? 0 : this.words[before + w]);
      }
    }

    /* A request keeps its letter while it has tables; one that is called by a letter has that one. When
     * all are taken, pairs of letters follow. */
    giveLetters() {
      this.letter = new Uint16Array(this.requests.rows).fill(NO_LETTER);
      const owner = new Int32Array(LETTERS.length * (LETTERS.length + 1)).fill(-1);
      let turn = 0, before = new Set();
      for (let f = 0; f < this.num; f++) {
        const now = new Set(this.requestsOf(f));
        for (const r of before)
          if (!now.has(r) && this.letter[r] < NO_LETTER)
            owner[this.letter[r]] = -1;
        for (const r of now)
          if (!before.has(r))
            turn = this.giveLetter(r, owner, turn);
        before = now;
      }
    }

    giveLetter(r, owner, turn) {
      const own = this.ids && this.ids[r].length === 1 ? LETTERS.indexOf(this.ids[r]) : -1;
      let place = own;
      if (own < 0 || owner[own] >= 0) {
        const num = LETTERS.length;
        place = [...Array(num).keys()].map((i) => (turn + i) % num).find((i) => owner[i] < 0);
        if (place === undefined)
          place = owner.indexOf(-1);
        else
          turn = (place + 1) % num;
      }
      if (place >= 0) {
        owner[place] = r;
        this.letter[r] = place;
      }
      return turn;
    }

    /* ---- reading ---- */

    requestsOf(f) {
      const out = [];
      for (let i = this.tableAt[f]; i < this.tableAt[f + 1]; i++)
        if (this.tables.group[i] === 0 && this.tables.holder[i] !== ON_LINK)
          out.push(this.tables.request[i]);
      return out;
    }

    tablesOf(f, request) {
      const out = [];
      for (let i = this.tableAt[f]; i < this.tableAt[f + 1]; i++)
        if (this.tables.request[i] === request && this.tables.holder[i] !== ON_LINK)
          out.push(i);
      return out;
    }

    /* Null ones are not in it. */
    placesOf(table) {
      return this.places.subarray(this.placeAt[table], this.placeAt[table + 1]);
    }

    nameOf(request) {
      return this.ids && this.ids[request] !== "" ? this.ids[request] : String(this.rows[request]);
    }

    letterOf(request) {
      const place = this.letter[request], num = LETTERS.length;
      return place === NO_LETTER ? "?" : place < num ? LETTERS[place]
        : LETTERS[Math.floor(place / num) - 1] + LETTERS[place % num];
    }

    /* The last frame whose tick begins at or before ns; the first one when there is none. */
    at(ns, column = "time_ns") {
      const times = this.counts[column];
      let low = 0, high = this.num - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (times[middle] <= ns)
          low = middle;
        else
          high = middle - 1;
      }
      return low;
    }

    fullest() {
      let best = 0;
      for (let f = 1; f < this.num; f++)
        if (this.counts.used_blocks[f] > this.counts.used_blocks[best])
          best = f;
      return best;
    }

    /* ---- a frame by blocks ---- */

    isCached(f, block) {
      const at = this.wordAt[f];
      return at >= 0 && (this.words[at + (block >> 5)] >>> (block & 31) & 1) === 1;
    }

    /* Positions stored in place k of a table that has any; a state has all of its block. */
    storedIn(table, k) {
      const size = this.head.groups[this.tables.group[table]].block_size;
      return Math.min(size, Math.max(0, this.computed[table] - k * size));
    }

    hasState(table) {
      return this.head.groups[this.tables.group[table]].name === "state";
    }

    /* {state, table, refs, stored}: of each block what it is, its first table (-1 = none), how many
     * tables it stands in, and the share of it that is filled. */
    blocks(f) {
      const num = this.head.blocks, waits = this.counts.external_slots[f] > 0;
      const out = {state: new Uint8Array(num), table: new Int32Array(num).fill(-1),
                   place: new Uint32Array(num), refs: new Uint32Array(num),
                   filled: new Float32Array(num)};
      for (let block = 0; block < num; block++)
        out.state[block] = this.isCached(f, block) ? CACHED : waits ? EXTERNAL : FREE;
      for (let i = this.tableAt[f]; i < this.tableAt[f + 1]; i++)
        this.addTable(out, i);
      return out;
    }

    addTable(out, i) {
      const t = this.tables, size = this.head.groups[t.group[i]].block_size;
      const isLink = t.holder[i] === ON_LINK, isWhole = this.hasState(i);
      const wanted = this.head.takes_runs ? Math.ceil(t.end[i] / size) : Infinity;
      for (let at = this.placeAt[i]; at < this.placeAt[i + 1]; at++) {
        const block = this.places[at], k = at - this.placeAt[i] + t.nulls[i];
        if (out.refs[block]++ > 0) {
          out.state[block] = SHARED;
          continue;
        }
        const stored = isLink || isWhole ? size : this.storedIn(i, k);
        out.table[block] = i;
        out.place[block] = k;
        out.filled[block] = stored / size;
        out.state[block] = isLink ? LINK : stored > 0 ? OWN : k < wanted ? RESERVED : UNUSED;
      }
    }

    holdersOf(f, block) {
      const out = [];
      for (let i = this.tableAt[f]; i < this.tableAt[f + 1]; i++) {
        const k = this.placesOf(i).indexOf(block);
        if (k >= 0)
          out.push({table: i, place: k + this.tables.nulls[i]});
      }
      return out;
    }

    /* How many blocks are in each state, told from the picture and not from the tick's row. */
    countStates(f, blocks) {
      const out = new Array(8).fill(0);
      if (this.head.cell_blocks === 1) {
        for (const state of blocks.state)
          out[state]++;
        return out;
      }
      let num = this.head.blocks;
      for (const cell of this.cellsOf(f)) {
        out[SHARED] += cell.shared;
        out[CACHED] += cell.cached;
        out[RESERVED] += cell.reserved;
        out[UNUSED] += cell.unused;
        out[OWN] += cell.used - cell.shared - cell.reserved - cell.unused;
        num -= cell.used + cell.cached;
      }
      out[this.counts.external_slots[f] > 0 ? EXTERNAL : FREE] = num;
      return out;
    }

    /* ---- a frame by cells of several blocks ---- */

    unpackCells() {
      const num = Math.ceil(this.head.blocks / this.head.cell_blocks);
      this.cellSums = {};
      for (const name of ["used", "shared", "cached", "reserved", "unused"]) {
        const column = Uint32Array.from(this.cells[name], (value) => value >>> 0);
        for (let i = num; i < column.length; i++)
          column[i] = column[i - num] + this.cells[name][i];
        this.cellSums[name] = column;
      }
    }

    cellsOf(f) {
      if (!this.cellSums)
        this.unpackCells();
      const size = this.head.cell_blocks, num = Math.ceil(this.head.blocks / size), out = [];
      for (let c = 0; c < num; c++) {
        const cell = {blocks: Math.min(size, this.head.blocks - c * size)};
        for (const [name, column] of Object.entries(this.cellSums))
          cell[name] = column[f * num + c];
        out.push(cell);
      }
      return out;
    }
  }

  const COUNTS = ["step", "time_ns", "dur_ns", "waiting", "running", "free_blocks", "used_blocks",
    "cached_blocks", "stored_tokens", "reserved_slots", "internal_slots", "external_slots", "tables"];
  const TABLES = ["request", "holder", "group", "blocks", "nulls", "kept", "computed", "end"];

  /* A promise of the frames of a run that has some. */
  async function load(run) {
    const head = run.json("blockmap"), isCells = head.cell_blocks > 1;
    const [requests, ids, counts, tables, first, second] = await Promise.all([
      run.columns("blockmap-requests", ["row"]), run.texts("blockmap-ids"),
      run.columns("blockmap-frames", COUNTS), run.columns("blockmap-tables", TABLES),
      isCells ? run.columns("blockmap-cells", ["used", "shared", "cached", "reserved", "unused"])
        : run.columns("blockmap-places", ["block"]),
      isCells ? null : run.columns("blockmap-cached", ["bits"])]);
    return new Frames(head, ids, isCells ? {requests, counts, tables, cells: first}
      : {requests, counts, tables, newPlaces: first, cached: second});
  }

  return {load, RUNNING, ON_LINK, FREE, CACHED, OWN, SHARED, RESERVED, UNUSED, LINK, EXTERNAL};
})();
