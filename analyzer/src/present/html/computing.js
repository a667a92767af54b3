"use strict";
// What a row computes between two calls: a click there selects this time of its rank, so that its functions are shown.

Object.assign(Timeline.prototype, {
  // Whether there is something to show.
  chooseComputing(row, at) {
    const { source, selection } = this, stretch = source.hasSamples ? this.computingAt(row, at) : null;
    if (!stretch) return false;
    const { rank } = source.rows[row], { time, ranks } = selection, [from, to] = stretch;
    if (time?.[0] === from && time[1] === to && sameRanks(ranks, new Set([rank]))) {
      selection.set({ time: null, ranks: null });
      this.say("");
      return true;
    }
    selection.set({ time: stretch, ranks: new Set([rank]) });
    const samples = source.samplesIn(stretch);
    const functions = samples ? mainFunctions(samples, samples.sums(partOf(selection))) : "its functions are being read";
    this.say(`${rowName(source.rows[row])} computes ${seconds(to - from)} from ${moment(from, to - from)} · ${functions}`);
    return true;
  },

  // The time between the calls around a moment of a row; null inside a call, or where single calls are not known.
  computingAt(row, at) {
    const known = this.source.windows.find(([a, b]) => a <= at && at <= b);
    if (!known) return null;
    const { begin_s, end_s } = this.source.rows[row];
    let [from, to] = [Math.max(known[0], begin_s), Math.min(known[1], end_s)];
    if (!(from <= at && at <= to)) return null;
    for (const event of this.source.events(row, from, to)) {
      if (event.end <= at) from = Math.max(from, event.end);
      else if (event.begin >= at) to = Math.min(to, event.begin);
      else return null;
    }
    return from < to ? [from, to] : null;
  },
});

// The functions with most time of their own, in words.
function mainFunctions(samples, sums) {
  if (!sums.samples) return "no sample in it";
  const most = [...sums.functions.values()].sort((a, b) => b.self_s - a.self_s).filter(of => of.self_s > 0);
  const words = most.slice(0, 3).map(of => `${samples.functions[of.index].name} ${seconds(of.self_s)} ± ${seconds(Math.sqrt(of.variance))}`);
  const more = most.length > 3 ? `, and ${plural(most.length - 3, "more function")}` : "";
  return `${plural(sums.samples, "sample")}, ${seconds(sums.sampled_s)} of CPU time: ${words.join(", ")}${more}`;
}
