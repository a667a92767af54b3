"use strict";
// Where the timeline's data come from. The page embeds them (EmbeddedSource); the viewer serves them in tiles
// (TileSource in tiles.js). The drawing code knows only this interface:
//
//   length_s, kinds[], functions[], rows[{rank, thread, host, begin_s, end_s}], windows[[from, to]],
//   regions[{row, name, from, to}], longest[{row, kind, fn, begin, duration}]
//   shares(row, from_s, to_s, columns, out)   fills out[columns * kinds] with the share of each kind
//                                             in each column; true if these are final
//   events(row, from_s, to_s)                 single calls that overlap this time
//   messages(from_s, to_s), collectives(from_s, to_s)
//   sums(row, from_s, to_s)                   seconds by kind, or null while they load
//   knows(from_s, to_s)                       whether all single calls between are loaded; requests nothing
//   open[{row, fn, begin}]                    calls that never returned
//   computing                                 kinds that count as computing; null if regions decide that
//   waits[{row, delaying rank, begin, until, ended, state, reason, group}], path[{row, from, to}],
//   iterations[{index, begin, length, waiting, delaying rank}]   rows; -1 if unknown
//   lanes[{name, rows[[{begin, end, count, part}]]}]   what lies beside the rows
//   samplesIn([from_s, to_s] or null)         its samples between two moments or of the whole run (Samples); null while
//                                             they load
//   hint                                      text for where no single calls are loaded
//   onchange                                  called when more data have arrived

const NS = 1e-9;

class EmbeddedSource {
  constructor(data) {
    this.length_s = data.length_s;
    this.kinds = data.kinds;
    this.functions = data.functions;
    this.functionKinds = data.function_kinds;
    this.communicators = data.communicators;
    this.windows = data.windows;
    this.bins = data.bins;
    this.onchange = () => {};
    this.hint = "shares of time per column; bars on the ruler mark where single calls are";
    this.rows = data.rows.map(([rank, thread, host, begin_s, end_s]) =>
      ({ rank, thread, host: data.hosts[host], begin_s, end_s }));
    this.regions = data.regions.map(([row, name, from, to]) =>
      ({ row, name: data.region_names[name], from, to }));
    this.longest = data.longest.map(([row, kind, fn, begin, duration]) =>
      ({ row, kind, fn, begin, duration }));
    this.open = data.open.map(([row, fn, begin]) => ({ row, fn, begin }));
    this.computing = data.computing;
    this.summed = data.summed;
    this.samples = data.samples && new Samples(data.samples);
    readCauses(this, data.causes);
    readLanes(this, data.lanes);
    this.unpack(data.packed);
    this.readEvents(data.events);
    const m = data.messages;
    this.allMessages = m.map(([fromRow, toRow, sendBegin, sendEnd, postBegin, end, bytes, tag, comm]) => ({
      fromRow, toRow, sendBegin: sendBegin * NS, sendEnd: (sendEnd ?? sendBegin) * NS,
      postBegin: postBegin * NS, end: end === null ? null : end * NS, bytes, tag, comm }));
    this.allCollectives = data.collectives.map(([fn, comm, number, members]) => ({ fn, comm, number,
      members: members.map(([row, begin, end]) => ({ row, begin: begin * NS, end: (end ?? begin) * NS })),
      from: Math.min(...members.map(([, begin]) => begin)) * NS,
      to: Math.max(...members.map(([, begin, end]) => end ?? begin)) * NS }));
  }

  // The format of the bins is explained in packed.rs.
  unpack(text) {
    const K = this.kinds.length, n = this.bins;
    const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    const base = new Float32Array(this.rows.length * n * K);
    let at = 0;
    for (let row = 0; row < this.rows.length; row++) {
      for (let bin = 0; bin < n;) {
        const word = bytes[at] | bytes[at + 1] << 8;
        at += 2;
        const cell = (row * n + bin) * K;
        if (word & 0x8000) {
          const times = word & 0x7fff;
          for (let r = 0; r < times; r++) base.copyWithin(cell + r * K, cell - K, cell);
          bin += times;
          continue;
        }
        for (let kind = 0; kind < K; kind++) {
          if (word & 1 << kind) base[cell + kind] = word & 0x4000 ? 1 : bytes[at++] / 255;
        }
        bin++;
      }
    }
    // Each coarser level holds the means of pairs.
    this.levels = [{ bins: n, data: base }];
    while (this.levels.at(-1).bins > 1) {
      const { bins, data } = this.levels.at(-1);
      const half = Math.ceil(bins / 2);
      const next = new Float32Array(this.rows.length * half * K);
      for (let row = 0; row < this.rows.length; row++) {
        for (let bin = 0; bin < bins; bin++) {
          const from = (row * bins + bin) * K, to = (row * half + (bin >> 1)) * K;
          for (let kind = 0; kind < K; kind++) next[to + kind] += data[from + kind] / 2;
        }
      }
      this.levels.push({ bins: half, data: next });
    }
  }

  readEvents(packed) {
    this.byRow = this.rows.map(() => []);
    let row = 0, left = 0, run = 0, begin = 0;
    for (let i = 0; i < packed.fn.length; i++) {
      while (left === 0) {
        [row, left] = packed.rows[run++];
        begin = 0;
      }
      left--;
      begin += packed.begin[i];
      const event = { row, fn: packed.fn[i], begin: begin * NS, open: packed.dur[i] < 0,
        duration: Math.max(packed.dur[i], -packed.dur[i] - 1) * NS };
      const more = packed.more[i];
      if (more) Object.assign(event, more);
      event.end = event.begin + event.duration;
      this.byRow[row].push(event);
    }
    this.eventCount = packed.fn.length;
  }

  // The level whose bins are no wider than a column, or the finest.
  level(column_s) {
    let chosen = this.levels[0];
    for (const [depth, level] of this.levels.entries()) {
      if (this.length_s / this.bins * 2 ** depth <= column_s) chosen = level;
    }
    return chosen;
  }

  shares(row, from_s, to_s, columns, out) {
    const K = this.kinds.length, column_s = (to_s - from_s) / columns;
    out.fill(0);
    const { bins, data } = this.level(column_s);
    const depth = this.levels.findIndex(level => level.bins === bins);
    const bin_s = this.length_s / this.bins * 2 ** depth;
    const scale = 1 / bin_s, step = column_s * scale;
    // The bins at the ends of a row count only where the row exists.
    const begin = this.rows[row].begin_s * scale, end = this.rows[row].end_s * scale;
    let at = from_s * scale;
    for (let column = 0; column < columns; column++, at += step) {
      const first = Math.max(0, Math.floor(at)), last = Math.min(bins - 1, Math.ceil(at + step) - 1);
      for (let bin = first; bin <= last; bin++) {
        const left = Math.max(bin, begin), right = Math.min(bin + 1, end);
        const length = Math.max(right - left, 1e-9);
        const part = (Math.min(right, at + step) - Math.max(left, at)) / length / step;
        if (!(part > 0)) continue;
        const cell = (row * bins + bin) * K;
        for (let kind = 0; kind < K; kind++) out[column * K + kind] += data[cell + kind] * part;
      }
    }
    if (bin_s > column_s * 1.001) this.exactShares(row, from_s, to_s, columns, out);
    return true;
  }

  // Columns are narrower than half a bin, so that inside the windows single calls are counted.
  sums(row, from_s, to_s) {
    const K = this.kinds.length, bin_s = this.length_s / this.bins;
    const columns = Math.max(1, Math.min(8192, Math.ceil(2.1 * (to_s - from_s) / bin_s)));
    const out = new Float32Array(columns * K), sums = new Float64Array(K), column_s = (to_s - from_s) / columns;
    this.shares(row, from_s, to_s, columns, out);
    for (let i = 0; i < out.length; i++) sums[i % K] += out[i] * column_s;
    return sums;
  }

  // Inside the windows whose single calls are embedded, shares are computed from these.
  exactShares(row, from_s, to_s, columns, out) {
    const K = this.kinds.length, column_s = (to_s - from_s) / columns, { begin_s, end_s } = this.rows[row];
    for (const [a, b] of this.windows) {
      const from = Math.max(a, from_s), to = Math.min(b, to_s);
      const first = Math.ceil((from - from_s) / column_s - 1e-9);
      const end = Math.floor((to - from_s) / column_s + 1e-9);
      if (end <= first) continue;
      out.fill(0, first * K, end * K);
      const add = (kind, x0, x1) => {
        const c0 = (Math.max(x0, from) - from_s) / column_s, c1 = (Math.min(x1, to) - from_s) / column_s;
        for (let c = Math.max(first, Math.floor(c0)); c < Math.min(end, Math.ceil(c1)); c++) {
          out[c * K + kind] += Math.max(0, Math.min(c + 1, c1) - Math.max(c, c0));
        }
      };
      let cursor = Math.max(from, begin_s);
      const last = Math.min(to, end_s);
      for (const event of this.events(row, from, to)) {
        const x0 = Math.max(event.begin, cursor), x1 = Math.min(event.begin + (event.inside ?? event.duration), last);
        if (x1 <= cursor && event.duration > 0) continue;
        add(0, cursor, Math.min(x0, last));
        if (x1 > x0) add(this.functionKinds[event.fn], x0, x1);
        // A call of zero length shows all the same.
        else if (x0 <= last) add(this.functionKinds[event.fn], x0, x0 + column_s * 1e-3);
        cursor = Math.max(cursor, x1);
      }
      add(0, cursor, last);
    }
  }

  // Whether all single calls between two moments are embedded.
  covers(from_s, to_s) {
    return this.windows.some(([a, b]) => a <= Math.max(0, from_s) && Math.min(to_s, this.length_s) <= b);
  }

  knows(from_s, to_s) {
    return !this.summed && this.covers(from_s, to_s);
  }

  events(row, from_s, to_s) {
    const list = this.byRow[row];
    let low = 0, high = list.length;
    while (low < high) {
      const middle = low + high >> 1;
      if (list[middle].begin < from_s) low = middle + 1; else high = middle;
    }
    // Calls that began earlier and still run; calls do not nest deeply.
    let first = low;
    for (let back = low - 1; back >= 0 && back >= low - 64; back--) {
      if (list[back].end >= from_s) first = back;
    }
    const found = [];
    for (let i = first; i < list.length && list[i].begin <= to_s; i++) {
      if (list[i].end >= from_s) found.push(list[i]);
    }
    return found;
  }

  samplesIn() {
    return this.samples;
  }

  messages(from_s, to_s) {
    return this.allMessages.filter(m => m.end !== null && m.sendEnd <= to_s && m.end >= from_s);
  }

  collectives(from_s, to_s) {
    return this.allCollectives.filter(c => c.from <= to_s && c.to >= from_s);
  }
}

function openSource(data) {
  return new EmbeddedSource(data);
}

// The page embeds everything: nothing is left to load.
function loadLaterParts() {}
