"use strict";
// The selection: a time, ranks, a region, a cause, a function. Every part of the page shows it, and any may change it.
// Knows nothing of the page.

class Selection {
  constructor(source) {
    this.source = source;
    this.listeners = [];
    this.changes = 0;
    Object.assign(this, Selection.nothing());
  }

  static nothing() {
    return { time: null, ranks: null, region: null, cause: null, fn: null };
  }

  get isEmpty() {
    return !this.time && !this.ranks && this.region === null && this.cause === null && this.fn === null;
  }

  onchange(listener) {
    this.listeners.push(listener);
  }

  set(change) {
    Object.assign(this, change);
    this.changes++;
    if (this.ranks && !this.ranks.size) this.ranks = null;
    for (const listener of this.listeners) listener(this);
  }

  clear() {
    this.set(Selection.nothing());
  }

  // The same selection, which does not change with this one.
  copy() {
    const { source, time, ranks, region, cause, fn, causeRanks, causeWords, delayingRank } = this;
    return Object.assign(new Selection(source), { time, ranks, region, cause, fn, causeRanks, causeWords, delayingRank });
  }

  // Selects a value, or deselects it if it is selected already.
  toggle(part, value) {
    this.set({ [part]: this[part] === value ? null : value });
  }

  toggleRank(rank, adding = false) {
    const chosen = this.ranks?.has(rank);
    if (!adding) return this.set({ ranks: chosen && this.ranks.size === 1 ? null : new Set([rank]) });
    const ranks = new Set(this.ranks ?? []);
    chosen ? ranks.delete(rank) : ranks.add(rank);
    this.set({ ranks });
  }

  // The selected ranks, or else those of the selected cause.
  get effectiveRanks() {
    return this.ranks ?? (this.cause !== null ? this.causeRanks ?? null : null);
  }

  hasRank(rank) {
    const ranks = this.effectiveRanks;
    return !ranks || ranks.has(rank);
  }

  // Whether a stretch of time overlaps the selected one.
  touches(from, to) {
    return !this.time || from <= this.time[1] && to >= this.time[0];
  }

  // The selected stretches of each row: [row's index, from, to], rows ascending; of other ranks than the selected ones, if
  // a test for them is given.
  stretches(isChosen = rank => this.hasRank(rank)) {
    const { source, region } = this, [from, to] = this.time ?? [0, source.length_s];
    const isSelected = index => isChosen(source.rows[index].rank);
    if (region === null) {
      return source.rows.flatMap((row, index) => {
        const begin = Math.max(from, row.begin_s), end = Math.min(to, row.end_s);
        return isSelected(index) && end > begin ? [[index, begin, end]] : [];
      });
    }
    const found = [];
    for (const one of source.regions) {
      const begin = Math.max(from, one.from), end = Math.min(to, one.to);
      if (one.name === region && isSelected(one.row) && end > begin) found.push([one.row, begin, end]);
    }
    return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  }

  // Whether the selection is limited in time, so that a rank's figures are not those of its whole time.
  get cutsTime() {
    return Boolean(this.time) || this.region !== null;
  }
}
