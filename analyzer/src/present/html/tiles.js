"use strict";
// A source whose data the viewer computes on request. Shares come in tiles of BINS bins and BLOCK rows; the bins of each
// level are half as long as those of the level above. Single calls and messages come for the time in view once it is
// short enough. Until a tile has arrived, a coarser one is drawn.

const BINS = 256, BLOCK = 32, MOST_TILES = 160, MOST_REQUESTS = 4, MOST_ROWS = 1024, MOST_SAMPLES = 8;

class TileSource {
  constructor(data) {
    Object.assign(this, { length_s: data.length_s, kinds: data.kinds, functions: data.functions,
      functionKinds: data.function_kinds, communicators: data.communicators });
    this.rows = data.rows.map(([rank, thread, host, begin_s, end_s, totals]) =>
      ({ rank, thread, host: data.hosts[host], begin_s, end_s, totals }));
    this.regions = data.regions.map(([row, name, from, to]) => ({ row, name: data.region_names[name], from, to }));
    this.longest = data.longest.map(([row, kind, fn, begin, duration]) => ({ row, kind, fn, begin, duration }));
    this.open = data.open.map(([row, fn, begin]) => ({ row, fn, begin }));
    this.computing = null;
    this.summed = data.summed;
    this.rowSums = new Map();
    this.samples = new Map();
    this.windows = [];
    readCauses(this, data.causes);
    readLanes(this, null);
    this.hint = "shares of time per column; zoom in for single calls";
    this.onchange = () => {};
    this.tiles = new Map();
    this.wanted = new Map();
    this.running = 0;
    this.seen = new Set();
    this.calls = null;
    this.tooMany = null;
    this.errors = [];
  }

  fail(error) {
    this.errors.push(String(error));
    const status = document.querySelector("[data-where]");
    if (status) status.textContent = `gammachi view does not answer (${error.message ?? error}): is it still running?`;
  }

  // Tiles

  tileAt(level, tile, block) {
    return this.tiles.get(`${level}/${tile}/${block}`);
  }

  want(level, tile, block) {
    const key = `${level}/${tile}/${block}`;
    if (this.tiles.has(key) || this.wanted.get(key) === "running") return;
    // The newest request comes first: that is where the reader looks now.
    this.wanted.delete(key);
    this.wanted.set(key, "waiting");
    for (const [old, state] of this.wanted) {
      if (this.wanted.size <= 64) break;
      if (state === "waiting") this.wanted.delete(old);
    }
    queueMicrotask(() => this.request());
  }

  request() {
    while (this.running < MOST_REQUESTS) {
      const waiting = [...this.wanted].filter(([, state]) => state === "waiting");
      if (!waiting.length) return;
      const key = waiting.at(-1)[0];
      this.wanted.set(key, "running");
      this.running++;
      this.load(key).catch(error => this.fail(error)).finally(() => {
        this.running--;
        this.wanted.delete(key);
        this.onchange();
        this.request();
      });
    }
  }

  async load(key) {
    const [level, tile, block] = key.split("/").map(Number);
    const first = block * BLOCK, end = Math.min(this.rows.length, first + BLOCK);
    const answer = await fetch(`shares?level=${level}&tile=${tile}&rows=${first}-${end - 1}`);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const data = new Float32Array(await answer.arrayBuffer());
    if (data.length !== (end - first) * BINS * this.kinds.length) throw new Error("a tile has the wrong size");
    this.tiles.set(key, data);
    for (const old of this.tiles.keys()) {
      if (this.tiles.size <= MOST_TILES) break;
      if (!old.startsWith("0/")) this.tiles.delete(old);
    }
  }

  shares(row, from_s, to_s, columns, out) {
    const K = this.kinds.length, column_s = (to_s - from_s) / columns, { totals, begin_s, end_s } = this.rows[row];
    out.fill(0);
    if (columns === 1 && from_s <= begin_s && to_s >= end_s) {
      for (let kind = 0; kind < K; kind++) out[kind] = totals[kind] / column_s;
      return true;
    }
    this.seen.add(row);
    // Bins do not get shorter than a few ticks of the counter.
    const finest = Math.floor(Math.log2(this.length_s / (BINS * 4e-9)));
    const level = Math.max(0, Math.min(48, finest, Math.ceil(Math.log2(this.length_s / (BINS * column_s)) - 1e-6)));
    const tile_s = this.length_s / 2 ** level, block = Math.floor(row / BLOCK);
    const first = Math.max(0, Math.floor(from_s / tile_s));
    const last = Math.min(2 ** level - 1, Math.ceil(to_s / tile_s) - 1);
    let final = true;
    for (let tile = first; tile <= last; tile++) {
      const from = Math.max(from_s, tile * tile_s), to = Math.min(to_s, (tile + 1) * tile_s);
      let data = this.tileAt(level, tile, block), coarser = level, index = tile;
      if (data) {
        // To the end of the map: the tiles used least recently go first.
        const key = `${level}/${tile}/${block}`;
        this.tiles.delete(key);
        this.tiles.set(key, data);
      } else {
        final = false;
        this.want(level, tile, block);
        while (!data && coarser > 0) {
          coarser--;
          index = Math.floor(index / 2);
          data = this.tileAt(coarser, index, block);
        }
      }
      if (data) this.spread(data, row % BLOCK, [from, to], [index * this.length_s / 2 ** coarser, this.length_s / 2 ** coarser / BINS],
        [from_s, column_s, columns], out);
    }
    return final;
  }

  // Adds the bins of a tile that lie between two moments to the columns.
  spread(data, row, [from, to], [start, bin_s], [left, column_s, columns], out) {
    const K = this.kinds.length, base = row * BINS * K;
    const first = Math.max(0, Math.floor((from - start) / bin_s));
    const last = Math.min(BINS - 1, Math.ceil((to - start) / bin_s) - 1);
    for (let bin = first; bin <= last; bin++) {
      const x0 = (Math.max(from, start + bin * bin_s) - left) / column_s;
      const x1 = (Math.min(to, start + (bin + 1) * bin_s) - left) / column_s;
      const cell = base + bin * K;
      for (let column = Math.max(0, Math.floor(x0)); column < Math.min(columns, Math.ceil(x1)); column++) {
        const part = Math.min(column + 1, x1) - Math.max(column, x0);
        if (part > 0) for (let kind = 0; kind < K; kind++) out[column * K + kind] += data[cell + kind] * part;
      }
    }
  }

  // Sums

  // The sums of the selected time come from the server, for many rows at once; those of other stretches from tiles.
  sums(row, from_s, to_s) {
    const { begin_s, end_s, totals } = this.rows[row];
    if (from_s <= begin_s && to_s >= end_s) return Float64Array.from(totals);
    const stretch = this.sumRange, K = this.kinds.length;
    if (stretch && Math.max(stretch[0], begin_s) === from_s && Math.min(stretch[1], end_s) === to_s) {
      const block = Math.floor(row / MOST_ROWS), data = this.rowSums.get(block);
      if (!data) this.wantSums(block);
      return data ? Float64Array.from(data.subarray((row % MOST_ROWS) * K, (row % MOST_ROWS + 1) * K)) : null;
    }
    const columns = 16, out = new Float32Array(columns * K), sums = new Float64Array(K);
    const final = this.shares(row, from_s, to_s, columns, out);
    for (let i = 0; i < out.length; i++) sums[i % K] += out[i] * (to_s - from_s) / columns;
    return final ? sums : null;
  }

  // The selected time.
  setSumRange(time) {
    if (time && this.sumRange && time[0] === this.sumRange[0] && time[1] === this.sumRange[1]) return;
    this.sumRange = time;
    this.rowSums.clear();
  }

  wantSums(block) {
    const stretch = this.sumRange, first = block * MOST_ROWS, end = Math.min(this.rows.length, first + MOST_ROWS);
    if (this.rowSums.has(block)) return;
    this.rowSums.set(block, null);
    fetch(`sums?from=${stretch[0]}&to=${stretch[1]}&rows=${first}-${end - 1}`).then(async answer => {
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const data = new Float32Array(await answer.arrayBuffer());
      if (this.sumRange !== stretch) return;
      this.rowSums.set(block, data);
      this.onchange();
    }).catch(error => this.fail(error));
  }

  // Samples

  samplesIn(time) {
    const [from, to] = time ?? [0, this.length_s], key = `${from},${to}`;
    if (!this.samples.has(key)) {
      // The oldest make room.
      if (this.samples.size >= MOST_SAMPLES) this.samples.delete(this.samples.keys().next().value);
      this.samples.set(key, null);
      fetch(`samples?from=${from}&to=${to}`).then(async answer => {
        if (!answer.ok) throw new Error(`status ${answer.status}`);
        this.samples.set(key, new Samples(await answer.json()));
        this.onchange();
      }).catch(error => this.fail(error));
    }
    return this.samples.get(key);
  }

  // Single calls

  covers(from_s, to_s) {
    const from = Math.max(0, from_s), to = Math.min(this.length_s, to_s);
    const there = this.calls && this.calls.from <= from && to <= this.calls.to
      && this.seen.size > 0 && [...this.seen].every(row => this.calls.rows.has(row));
    if (!there) this.wantCalls(from, to);
    return Boolean(there);
  }

  // Whether the single calls of all rows are loaded.
  knows(from_s, to_s) {
    const { calls } = this;
    return Boolean(!this.summed && calls && calls.from <= from_s && to_s <= calls.to && calls.rows.size === this.rows.length);
  }

  wantCalls(from, to) {
    if (this.tooMany && to - from > 0.7 * (this.tooMany.to - this.tooMany.from)
      && from <= this.tooMany.to && this.tooMany.from <= to) return;
    this.pending = [from, to];
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.loadCalls().catch(error => this.fail(error)), 80);
  }

  async loadCalls() {
    if (this.loading) {
      this.again = true;
      return;
    }
    const [from, to] = this.pending, margin = (to - from) / 2;
    const rows = [...this.seen].sort((a, b) => a - b);
    this.seen.clear();
    const wide = rows.length > 0 && rows.at(-1) - rows[0] >= MOST_ROWS;
    if (!rows.length || wide) {
      // Too many rows were drawn on the way here: draw again and count only those in sight.
      if (wide && !this.wide) this.onchange();
      this.wide = wide;
      return;
    }
    this.wide = false;
    const stretch = [Math.max(0, from - margin), Math.min(this.length_s, to + margin)];
    this.loading = true;
    try {
      const answer = await fetch(`calls?from=${stretch[0]}&to=${stretch[1]}&rows=${rows[0]}-${rows.at(-1)}`);
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const data = await answer.json();
      if (data.too_many) {
        this.tooMany = { from: stretch[0], to: stretch[1] };
      } else {
        this.tooMany = null;
        this.storeCalls(data, stretch, rows);
      }
    } finally {
      this.loading = false;
    }
    this.onchange();
    if (this.again) {
      this.again = false;
      this.loadCalls().catch(error => this.fail(error));
    }
  }

  storeCalls(data, [from, to], rows) {
    const byRow = new Map();
    for (let row = rows[0]; row <= rows.at(-1); row++) byRow.set(row, []);
    for (const name of data.functions.slice(this.functions.length)) this.functions.push(name);
    this.functionKinds.push(...data.function_kinds.slice(this.functionKinds.length));
    this.communicators = data.communicators;
    for (const [row, events] of data.rows) {
      byRow.set(row, events.map(([fn, begin, dur, more]) => {
        const duration = Math.max(dur, -dur - 1) * 1e-9;
        return { row, fn, begin, duration, open: dur < 0, end: begin + duration, ...more };
      }));
    }
    this.calls = { from, to, rows: byRow };
    this.allMessages = data.messages.map(([fromRow, toRow, sendBegin, sendEnd, postBegin, end, bytes, tag, comm]) =>
      ({ fromRow, toRow, sendBegin, sendEnd: sendEnd ?? sendBegin, postBegin, end, bytes, tag, comm }));
    this.allCollectives = data.collectives.map(([fn, comm, number, members]) => ({ fn, comm, number,
      members: members.map(([row, begin, end]) => ({ row, begin, end: end ?? begin })),
      from: Math.min(...members.map(([, begin]) => begin)), to: Math.max(...members.map(([, begin, end]) => end ?? begin)) }));
    this.messagesNote = data.messages_note;
    this.windows = [[from, to]];
  }

  events(row, from_s, to_s) {
    const events = this.calls?.rows.get(row) ?? [];
    return events.filter(event => event.begin <= to_s && event.end >= from_s);
  }

  messages(from_s, to_s) {
    return (this.allMessages ?? []).filter(m => m.end !== null && m.sendEnd <= to_s && m.end >= from_s);
  }

  collectives(from_s, to_s) {
    return (this.allCollectives ?? []).filter(c => c.from <= to_s && c.to >= from_s);
  }
}
