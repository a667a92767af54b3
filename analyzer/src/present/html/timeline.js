"use strict";
// The interactive timeline: buttons, keys, and what is in view. It lets the painter draw, and describes in words what
// the reader chose. `walk.js`, `pointers.js` and `computing.js` add methods to it.

// Size of the timeline on A4, in CSS pixels; at most so high that the text around it fits the same sheet.
const PAPER = { width: 720, height: 760 };

class Timeline {
  constructor(root, source, selection) {
    Object.assign(this, { root, source, selection });
    this.moves = [];
    this.canvas = root.querySelector("canvas");
    this.status = root.querySelector("[data-detail]");
    this.where = root.querySelector("[data-where]");
    this.painter = new Painter(this.canvas, source);
    this.frames = [];
    this.all = source.rows.map((row, index) => ({ ...row, index }));
    this.view = { from: 0, to: source.length_s, rows: this.all, rowHeight: 18, scroll: 0,
      hidden: new Set(), selected: null, focus: 0, time: null, ranks: null, cause: null, fn: null };
    this.arrange();
    this.controls();
    this.pointers();
    source.onchange = () => this.refresh();
    selection.onchange(() => this.showSelection());
    new ResizeObserver(() => this.resize()).observe(root);
    // Drawn anew for paper, so that its text is as large as the text around it.
    const print = onPaper => {
      this.onPaper = onPaper;
      this.resize();
    };
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    this.resize();
  }

  // More data have arrived: the chosen call may now be there with its details.
  refresh() {
    const chosen = this.view.selected;
    if (chosen && !("open" in chosen)) {
      const nearby = this.source.events(chosen.row, chosen.begin - 1e-8, chosen.begin + 1e-8);
      const call = nearby.find(event => event.fn === chosen.fn && Math.abs(event.begin - chosen.begin) < 2e-9);
      if (call) return this.choose(call);
    }
    this.redraw();
  }

  showSelection() {
    const { time, effectiveRanks, cause, fn } = this.selection;
    Object.assign(this.view, { time, ranks: effectiveRanks, cause, fn });
    this.redraw();
  }

  zoomToSelection() {
    const stretches = this.selection.stretches(), { time } = this.selection;
    // No chosen rank may have run at the chosen time.
    if (!stretches.length) return time && this.move(...time);
    const from = stretches.reduce((least, [, at]) => Math.min(least, at), Infinity);
    const to = stretches.reduce((most, [, , at]) => Math.max(most, at), 0), margin = (to - from) * 0.04;
    this.move(from - margin, to + margin);
    this.reveal(stretches[0][0]);
  }

  recolour() {
    this.painter.readColours();
    // At once: a printer does not wait for the next frame.
    if (this.painter.width) this.paint();
  }

  resize() {
    const width = this.onPaper ? PAPER.width : this.canvas.parentElement.clientWidth;
    if (!width) return;
    const rows = this.view.rows.length;
    const most = this.onPaper ? PAPER.height : Math.max(160, Math.min(620, innerHeight * 0.65));
    this.view.rowHeight = Math.max(3, Math.min(26 + 8 * this.painter.lanes.lanes.length, Math.floor((most - RULER - BAND) / Math.max(1, rows))));
    const height = Math.min(most, RULER + BAND + Math.max(1, rows) * this.view.rowHeight + 4);
    this.painter.resize(width, height);
    // Resizing empties the canvas: draw before the browser shows it.
    this.paint();
  }

  redraw() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.paint();
    });
  }

  paint() {
    const start = performance.now(), { from, to } = this.view, { source } = this;
    this.painter.draw(this.view);
    this.frames.push(performance.now() - start);
    if (this.frames.length > 5000) this.frames.shift();
    const step = this.painter.arrowStep;
    const single = () => ["single calls", step > 1 ? `about one in ${step} messages has an arrow` : "", source.messagesNote];
    this.where.textContent = `${seconds(from)} to ${seconds(to)} (${seconds(to - from)}) · `
      + (source.covers(from, to) ? single().filter(Boolean).join(" · ") : source.hint);
  }

  move(from, to) {
    const least = Math.max(1e-9, this.source.length_s * 1e-9), length = this.source.length_s;
    const span = Math.min(length, Math.max(least, to - from));
    const start = Math.min(Math.max(0, from), length - span);
    Object.assign(this.view, { from: start, to: start + span });
    this.moves.forEach(listener => listener());
    this.redraw();
  }

  zoom(factor, at) {
    const { from, to } = this.view, middle = at ?? (from + to) / 2;
    this.move(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  pan(share) {
    const step = (this.view.to - this.view.from) * share;
    this.move(this.view.from + step, this.view.to + step);
  }

  scrollBy(pixels) {
    const room = this.view.rows.length * this.view.rowHeight - (this.painter.height - RULER - BAND);
    this.view.scroll = Math.max(0, Math.min(Math.max(0, room), this.view.scroll + pixels));
    this.redraw();
  }

  // Applies order, filter and folding to the rows.
  arrange() {
    const order = this.order ?? "rank", filter = this.filter ?? null;
    let rows = this.all.filter(row => !filter || filter(row));
    const mpi = row => {
      const shares = new Float32Array(this.source.kinds.length);
      this.source.shares(row.index, 0, this.source.length_s, 1, shares);
      return shares.reduce((sum, share, kind) => kind > 1 ? sum + share : sum, 0);
    };
    if (order === "mpi") rows = rows.map(row => [mpi(row), row]).sort((a, b) => b[0] - a[0]).map(([, row]) => row);
    if (order === "host" || order === "fold") {
      rows = [...rows].sort((a, b) => a.host < b.host ? -1 : a.host > b.host ? 1 : a.index - b.index);
    }
    if (order === "fold") {
      const hosts = new Map();
      for (const row of rows) hosts.set(row.host, [...(hosts.get(row.host) ?? []), row]);
      rows = [...hosts].map(([host, fold]) => ({ fold, name: `${host} (${fold.length})`, index: -1 }));
    }
    Object.assign(this.view, { rows, scroll: 0, focus: 0 });
  }

  controls() {
    const on = (name, event, action) =>
      this.root.querySelectorAll(`[data-do="${name}"]`).forEach(el => el.addEventListener(event, () => action(el)));
    on("in", "click", () => this.zoom(0.5));
    on("out", "click", () => this.zoom(2));
    on("whole", "click", () => this.move(0, this.source.length_s));
    on("longest", "click", () => this.longest());
    on("next", "click", () => this.step(1));
    on("previous", "click", () => this.step(-1));
    on("window", "click", () => this.nextWindow());
    on("waits", "click", () => this.nextWait());
    on("delayer", "click", () => this.toDelayer());
    on("path", "click", el => {
      this.view.path = !this.view.path;
      el.setAttribute("aria-pressed", String(this.view.path));
      this.moves.forEach(listener => listener());
      this.redraw();
    });
    on("kind", "click", el => {
      const kind = Number(el.dataset.kind), { hidden } = this.view;
      hidden.has(kind) ? hidden.delete(kind) : hidden.add(kind);
      el.setAttribute("aria-pressed", String(!hidden.has(kind)));
      this.redraw();
    });
    on("order", "change", el => {
      this.order = el.value;
      this.arrange();
      this.resize();
      this.moves.forEach(listener => listener());
    });
    on("filter", "input", el => {
      this.filter = rankFilter(el.value);
      this.arrange();
      this.resize();
      this.say(`${this.view.rows.length} of ${this.all.length} rows shown`);
    });
  }

  reveal(index) {
    const position = this.view.rows.findIndex(row => row.index === index);
    if (position < 0) return;
    this.view.focus = position;
    const top = position * this.view.rowHeight, room = this.painter.height - RULER - BAND - this.view.rowHeight;
    if (top < this.view.scroll || top > this.view.scroll + room) this.scrollBy(top - this.view.scroll - room / 2);
  }

  choose(event) {
    this.view.selected = event;
    this.view.wait = this.waitAt(event.row, event.begin, event.end);
    this.describe(event);
    this.redraw();
  }

  say(text) {
    this.status.textContent = text;
  }

  describe(event) {
    const row = this.source.rows[event.row];
    const parts = [this.source.functions[event.fn], rowName(row), `begin ${event.begin.toFixed(9)} s`,
      event.open ? "did not return" : `duration ${seconds(event.duration)}`];
    if (event.peer !== undefined) parts.push(`peer ${event.peer}`);
    if (event.tag !== undefined) parts.push(`tag ${event.tag}`);
    if (event.bytes !== undefined) parts.push(`${event.bytes} bytes`);
    if (event.received !== undefined) parts.push(`${event.received} bytes received`);
    if (event.comm !== undefined) parts.push(this.source.communicators[event.comm]);
    if (event.site !== undefined) parts.push(event.site);
    if (event.polls !== undefined) parts.push(`${event.polls} polls, ${seconds(event.inside)} inside`);
    parts.push(`host ${row.host}`);
    if (this.view.wait) parts.push(this.describeWait(this.view.wait));
    for (const m of this.source.messages(event.begin - 1e-9, event.end + 1e-9).filter(m => this.painter.belongs(m, event)).slice(0, 4)) {
      const [a, b] = [rowName(this.source.rows[m.fromRow]), rowName(this.source.rows[m.toRow])];
      parts.push(`message ${a} → ${b}, ${m.bytes} bytes, tag ${m.tag}, sent ${m.sendEnd.toFixed(9)} s, complete ${m.end.toFixed(9)} s`);
    }
    this.say(parts.join(" · "));
  }

  // Chooses what is under a point.
  pick(x, y) {
    const position = this.painter.rowAt(this.view, y);
    if (position < 0 || x < GUTTER) return;
    this.view.focus = position;
    const row = this.view.rows[position], at = this.painter.time(this.view, x);
    const pixel = (this.view.to - this.view.from) / (this.painter.width - GUTTER);
    const beside = this.painter.lanes.at(this.view, position, y, at, pixel);
    if (beside) {
      this.view.selected = this.view.wait = null;
      this.say(beside);
      return this.redraw();
    }
    if (!row.fold && this.source.windows.some(([a, b]) => a <= at && at <= b)) {
      const near = this.source.events(row.index, at - 2 * pixel, at + 2 * pixel);
      const distance = e => at < e.begin ? e.begin - at : at > e.end ? at - e.end : 0;
      near.sort((a, b) => distance(a) - distance(b) || a.duration - b.duration);
      if (near.length) return this.choose(near[0]);
    }
    const wait = row.fold ? null : this.waitAt(row.index, at - pixel, at + pixel);
    if (wait) return this.chooseWait(wait);
    if (!row.fold && this.chooseComputing(row.index, at)) return;
    this.view.selected = this.view.wait = null;
    const shares = new Float32Array(this.source.kinds.length);
    this.painter.rowShares(row, { from: at - pixel / 2, to: at + pixel / 2 }, 1, shares);
    const words = [...shares].map((share, kind) => [share, this.source.kinds[kind]]).filter(([share]) => share > 0)
      .sort((a, b) => b[0] - a[0]).map(([share, kind]) => `${kind} ${(share * 100).toPrecision(2)} %`);
    this.say(`${rowName(row)} · near ${at.toFixed(6)} s · ${words.join(", ") || "not recorded"}`);
    this.redraw();
  }

  // The action of a key. Letters work wherever the focus is, other keys only while the timeline has it.
  action(key, focused) {
    const { view, selection } = this, row = view.rows[view.focus];
    const letters = {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      "0": () => this.move(0, this.source.length_s),
      n: () => this.step(1), p: () => this.step(-1), l: () => this.longest(), w: () => this.nextWindow(),
      a: () => this.nextWait(), c: () => this.toDelayer(), z: () => this.zoomToSelection(),
      s: () => selection.set({ time: [view.from, view.to] }),
      r: () => row && !row.fold && selection.toggleRank(row.rank, true),
      Escape: () => { view.selected = view.wait = null; this.say(""); selection.clear(); this.redraw(); },
    };
    const others = {
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
      ArrowUp: () => this.focusRow(-1), ArrowDown: () => this.focusRow(1),
      Home: () => this.move(0, this.source.length_s),
      PageDown: () => this.scrollBy(this.painter.height / 2), PageUp: () => this.scrollBy(-this.painter.height / 2),
      Enter: () => view.selected && this.move(view.selected.begin - view.selected.duration, view.selected.end + view.selected.duration),
    };
    return letters[key] ?? (focused ? others[key] : undefined);
  }

  focusRow(step) {
    const position = Math.max(0, Math.min(this.view.rows.length - 1, this.view.focus + step));
    this.view.focus = position;
    const row = this.view.rows[position];
    if (row && !row.fold) this.reveal(row.index);
    this.say(row ? rowName(row) : "no row");
    this.redraw();
  }
}
