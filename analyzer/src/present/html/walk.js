"use strict";
// Steps through the timeline: from call to call, from wait to wait, from a wait to its delaying rank.

Object.assign(Timeline.prototype, {
  nextWindow() {
    const { windows } = this.source;
    if (!windows.length) return;
    this.windowAt = ((this.windowAt ?? -1) + 1) % windows.length;
    this.move(...windows[this.windowAt]);
  },

  longest() {
    const { longest } = this.source;
    if (!longest.length) return this.say("no call that waits");
    this.longestAt = ((this.longestAt ?? -1) + 1) % longest.length;
    const call = longest[this.longestAt];
    this.reveal(call.row);
    this.move(call.begin - call.duration * 0.2, call.begin + call.duration * 1.2);
    const known = this.source.events(call.row, call.begin - 1e-8, call.begin + 1e-8).find(e => Math.abs(e.begin - call.begin) < 2e-9);
    this.choose(known ?? { ...call, end: call.begin + call.duration });
  },

  // The wait of a row that overlaps a time; the shortest if there are several.
  waitAt(row, from, to) {
    const found = (this.source.waitsByRow.get(row) ?? []).filter(wait => wait.begin <= to && wait.until >= from);
    return found.sort((a, b) => (a.until - a.begin) - (b.until - b.begin))[0] ?? null;
  },

  nextWait() {
    const waits = this.chosenWaits();
    if (!waits.length) return this.say(this.source.waits.length ? "no wait in the selection" : "no waits are known");
    this.waitNumber = ((this.waitNumber ?? -1) + 1) % waits.length;
    const wait = waits[this.waitNumber], length = wait.until - wait.begin;
    this.reveal(wait.row);
    this.move(wait.begin - length * 0.3, wait.until + length * 0.3);
    this.chooseWait(wait);
  },

  // The waits of the selection, longest first.
  chosenWaits() {
    const { selection, source } = this;
    if (!selection || selection.isEmpty) return source.waits;
    return source.waits.filter(wait => selection.touches(wait.begin, wait.until)
      && (selection.cause === null || wait.group === selection.cause)
      && (!selection.ranks || [wait.row, wait.delayed_by].some(row => row >= 0 && selection.ranks.has(source.rows[row].rank))));
  },

  chooseWait(wait) {
    Object.assign(this.view, { wait, selected: null });
    this.say(this.describeWait(wait));
    this.redraw();
  },

  describeWait(wait) {
    const { rows } = this.source, length = seconds(wait.until - wait.begin);
    const delayed_by = wait.delayed_by < 0 ? "" : ` for ${rowName(rows[wait.delayed_by])}`;
    const parts = [`${rowName(rows[wait.row])} waits ${length}${delayed_by} (${wait.state})`];
    if (wait.reason) parts.push(`delay: ${wait.reason}`);
    if (wait.delayed_by >= 0) parts.push("press C to go there");
    return parts.join(" · ");
  },

  // Goes to what the delaying rank was doing while others waited for it.
  toDelayer() {
    const { wait } = this.view;
    if (!wait || wait.delayed_by < 0) return this.say("choose a wait with a known delayed_by first");
    const length = wait.until - wait.begin;
    this.reveal(wait.delayed_by);
    this.move(wait.ended - length * 1.3, wait.ended + length * 0.3);
    const inner = this.waitAt(wait.delayed_by, wait.ended - length, wait.ended);
    this.say([this.describeWait(wait), inner ? this.describeWait(inner) : ""].filter(Boolean).join(" · before that "));
    if (inner) this.view.wait = inner;
    this.redraw();
  },

  // Goes to the next or previous single call of the focused row.
  step(direction) {
    const row = this.view.rows[this.view.focus];
    if (!row || row.fold) return;
    const events = this.source.byRow ? this.source.byRow[row.index] : this.source.events(row.index, this.view.from, this.view.to);
    if (!events.length) return this.say(`${rowName(row)}: no single calls here`);
    let at = events.indexOf(this.view.selected);
    if (at < 0) {
      at = events.findIndex(event => event.begin >= this.view.from);
      if (at < 0) at = events.length - 1;
    } else {
      at = Math.max(0, Math.min(events.length - 1, at + direction));
    }
    const event = events[at], { from, to } = this.view;
    if (event.begin < from || event.end > to) {
      const span = Math.max(to - from, event.duration * 1.5);
      this.move(event.begin + event.duration / 2 - span / 2, event.begin + event.duration / 2 + span / 2);
    }
    this.choose(event);
  }
});
