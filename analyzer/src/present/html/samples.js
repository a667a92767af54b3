"use strict";
// The samples of the program's code: how many of each thread lie in which call path, by bin of time; samples.rs packs
// them. Their sums are those of the table of functions, as metrics::code counts them.

// In place of a function: outer functions are not known; several paths together.
const CUT_STACKS = -1, MERGED = -2;

class Samples {
  constructor(data) {
    const { from_s, to_s, bins, callers, frames } = data;
    Object.assign(this, { from_s, to_s, callers, frames, step_s: (to_s - from_s) / bins, merged: new Map(data.merged) });
    this.functions = data.functions.map(([number, name, where, origin]) => ({ number, name, where, origin }));
    this.ranks = new Map(data.ranks.map(([rank, kernel_s, lost_s]) => [rank, { kernel_s, lost_s }]));
    // Of a function that calls itself, the total time counts once.
    this.isOutermost = frames.map((frame, path) => {
      for (let at = callers[path]; at >= 0; at = callers[at]) if (frames[at] === frame) return false;
      return true;
    });
    this.threads = data.threads.map(([rank, thread, period_s]) => ({ rank, thread, period_s }));
    this.unpack(data.cells);
  }

  unpack(text) {
    const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    let at = 0;
    const take = () => {
      let value = 0, scale = 1;
      for (;;) {
        const byte = bytes[at++];
        value += (byte & 0x7f) * scale;
        if (byte < 0x80) return value;
        scale *= 128;
      }
    };
    for (const thread of this.threads) {
      const cells = take();
      Object.assign(thread, { bins: new Uint32Array(cells), paths: new Uint32Array(cells), counts: new Uint32Array(cells) });
      for (let cell = 0, bin = 0; cell < cells; cell++) {
        const word = take();
        bin += Math.floor(word / 2);
        thread.bins[cell] = bin;
        thread.paths[cell] = take();
        thread.counts[cell] = word % 2 ? take() : 1;
      }
    }
  }

  // The cells of a thread between two moments: those of bins whose middle lies between them.
  cellsBetween({ bins }, from_s, to_s) {
    return [from_s, to_s].map(moment => {
      const bin = Math.ceil((moment - this.from_s) / this.step_s - 0.5);
      let low = 0, high = bins.length;
      while (low < high) {
        const middle = low + high >> 1;
        if (bins[middle] < bin) low = middle + 1; else high = middle;
      }
      return low;
    });
  }

  // The samples of a part of the run, a `Map` from ranks to their stretches (null: all of a rank's time). By path: samples
  // and seconds in it, and in it or what it calls, and the variance of the latter; by function the same, and of itself.
  sums(part) {
    const paths = this.callers.length, own = new Float64Array(paths), total = new Float64Array(paths);
    const column = () => new Float64Array(paths);
    const sums = { own: column(), own_s: column(), total: column(), total_s: column(), variance: column(),
      functions: new Map(), samples: 0, sampled_s: 0, kernel_s: 0, lost_s: 0, ranks: new Set() };
    for (const thread of this.threads) {
      if (!part.has(thread.rank)) continue;
      sums.ranks.add(thread.rank);
      own.fill(0);
      const stretches = part.get(thread.rank);
      const ranges = stretches ? stretches.map(([from, to]) => this.cellsBetween(thread, from, to)) : [[0, thread.bins.length]];
      for (const [first, end] of ranges) {
        for (let cell = first; cell < end; cell++) own[thread.paths[cell]] += thread.counts[cell];
      }
      this.addThread(sums, thread.period_s, own, total);
    }
    // Known of whole ranks only.
    for (const [rank, stretches] of part) {
      const outside = stretches ? null : this.ranks.get(rank);
      sums.kernel_s += outside?.kernel_s ?? 0;
      sums.lost_s += outside?.lost_s ?? 0;
    }
    return sums;
  }

  addThread(sums, period_s, own, total) {
    const { callers, frames, isOutermost } = this, functions = new Map();
    total.set(own);
    let all = 0;
    // A caller has a smaller number.
    for (let path = callers.length - 1; path >= 0; path--) {
      all += own[path];
      if (total[path] > 0 && callers[path] >= 0) total[callers[path]] += total[path];
    }
    for (let path = 0; path < callers.length; path++) {
      if (!total[path]) continue;
      sums.own[path] += own[path];
      sums.own_s[path] += own[path] * period_s;
      sums.total[path] += total[path];
      sums.total_s[path] += total[path] * period_s;
      sums.variance[path] += varianceOf(total[path], all) * period_s ** 2;
      if (frames[path] < 0) continue;
      const entry = functions.get(frames[path]) ?? { own: 0, total: 0 };
      entry.own += own[path];
      if (isOutermost[path]) entry.total += total[path];
      functions.set(frames[path], entry);
    }
    for (const [index, { own, total }] of functions) {
      const { number } = this.functions[index], sum = sums.functions.get(number) ?? { index, self_s: 0, total_s: 0, variance: 0 };
      sum.self_s += own * period_s;
      sum.total_s += total * period_s;
      sum.variance += varianceOf(own, all) * period_s ** 2;
      sums.functions.set(number, sum);
    }
    sums.samples += all;
    sums.sampled_s += all * period_s;
  }
}

// Variance of a number of samples among others, as in metrics::code.
function varianceOf(count, all) {
  const share = (count + 1) / (all + 2);
  return all * share * (1 - share);
}

// The part of the run that is selected, for `Samples.sums`; `ranks` in place of the selected ones.
function partOf(selection, ranks = selection.effectiveRanks) {
  const part = new Map(), { source } = selection, isChosen = rank => !ranks || ranks.has(rank);
  if (!selection.cutsTime) {
    for (const { rank } of source.rows) if (isChosen(rank)) part.set(rank, null);
    return part;
  }
  // A rank is where its first thread is.
  for (const [row, from, to] of selection.stretches(isChosen)) {
    const { rank, thread } = source.rows[row];
    if (!thread) part.set(rank, [...(part.get(rank) ?? []), [from, to]]);
  }
  return part;
}
