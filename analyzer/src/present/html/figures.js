"use strict";
// Sums over a selection: time by kind of every row, calls by function, waits, messages. Sums of single calls exist only
// where the source has these.

class Figures {
  constructor(source) {
    this.source = source;
  }

  // {rows: Map(row's index → seconds by kind), kinds, time: seconds of all rows, final}
  time(selection) {
    const { source } = this, K = source.kinds.length, kinds = new Float64Array(K), rows = new Map();
    let time = 0, final = true;
    for (const [row, from, to] of selection.stretches()) {
      const sums = source.sums(row, from, to);
      if (!sums) {
        final = false;
        continue;
      }
      const sumsOfRow = rows.get(row) ?? new Float64Array(K);
      for (let kind = 0; kind < K; kind++) {
        sumsOfRow[kind] += sums[kind];
        kinds[kind] += sums[kind];
      }
      rows.set(row, sumsOfRow);
      time += to - from;
    }
    return { rows, kinds, time, final };
  }

  // Whether all single calls of the selection are loaded.
  knowsCalls(selection) {
    const { source } = this;
    if (selection.time) return source.knows(...selection.time);
    if (selection.region === null) return source.knows(0, source.length_s);
    return selection.stretches().every(([, from, to]) => source.knows(from, to));
  }

  // Function's name → {count, time, max, rank}; null if the single calls are not loaded.
  calls(selection) {
    if (!this.knowsCalls(selection)) return null;
    const { source } = this, found = new Map();
    for (const [row, from, to] of selection.stretches()) {
      for (const event of source.events(row, from, to)) {
        const name = source.functions[event.fn], inside = event.inside ?? event.duration;
        const begin = Math.max(from, event.begin), end = Math.min(to, event.begin + inside);
        const time = Math.max(0, end - begin), entry = found.get(name) ?? { count: 0, time: 0, max: -1, rank: -1 };
        if (event.begin >= from && event.begin < to || event.begin < from && time > 0) entry.count += event.polls ?? 1;
        entry.time += time;
        const longest = event.polls ? inside / event.polls : time;
        if (longest > entry.max) Object.assign(entry, { max: longest, rank: source.rows[row].rank });
        found.set(name, entry);
      }
    }
    found.delete("recorder");
    return found;
  }

  // The waits of the selection, each with its seconds inside it: [[wait, seconds]].
  waits(selection) {
    const byRow = new Map();
    for (const [row, from, to] of selection.stretches()) byRow.set(row, [...(byRow.get(row) ?? []), [from, to]]);
    const found = [];
    for (const wait of this.source.waits) {
      if (selection.cause !== null && wait.group !== selection.cause) continue;
      let time = 0;
      for (const [from, to] of byRow.get(wait.row) ?? []) time += Math.max(0, Math.min(to, wait.until) - Math.max(from, wait.begin));
      if (time > 0) found.push([wait, time]);
    }
    return found;
  }

  // "from>to" → {count, bytes} of the messages sent or completed in the selection, from or to one of its ranks; null if
  // the single messages are not loaded.
  pairs(selection) {
    if (selection.region !== null || !this.knowsCalls(selection) || this.source.messagesNote) return null;
    const { source } = this, [from, to] = selection.time ?? [0, source.length_s], found = new Map();
    const inside = at => at >= from && at <= to;
    for (const message of source.messages(from, to)) {
      if (!inside(message.sendEnd) && !inside(message.end)) continue;
      const [sender, receiver] = [source.rows[message.fromRow].rank, source.rows[message.toRow].rank];
      const ranks = selection.effectiveRanks;
      if (ranks && !ranks.has(sender) && !ranks.has(receiver)) continue;
      const entry = found.get(`${sender}>${receiver}`) ?? { count: 0, bytes: 0 };
      entry.count++;
      entry.bytes += message.bytes;
      found.set(`${sender}>${receiver}`, entry);
    }
    return found;
  }

  // Seconds by kind summed up to four parts: computing, in MPI, recorder, other code.
  parts(kinds) {
    const { computing } = this.source;
    const sum = test => kinds.reduce((all, value, kind) => test(kind) ? all + value : all, 0);
    const mpi = sum(kind => kind >= FIRST_MPI && kind <= LAST_MPI), recorder = sum(kind => kind === RECORDER);
    if (!computing) return { computing: null, mpi, recorder, other: sum(kind => kind < FIRST_MPI) };
    return { computing: sum(kind => computing.includes(kind)), mpi, recorder,
      other: sum(kind => kind < FIRST_MPI && !computing.includes(kind)) };
  }
}

// The numbers of kinds, as in metrics::activity::Kind.
const FIRST_MPI = 2, LAST_MPI = 8, RECORDER = 9;
