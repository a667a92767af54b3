"use strict";
// A timeline that people steer: wheel, drag, touch, keys and the buttons around it. Owns the view,
// asks the painter to draw it, says in words what is chosen.

class Timeline {
  constructor(root, source) {
    this.root = root;
    this.source = source;
    this.canvas = root.querySelector("canvas");
    this.said = root.querySelector("[data-detail]");
    this.where = root.querySelector("[data-where]");
    this.painter = new Painter(this.canvas, source);
    this.frames = [];
    this.all = source.rows.map((row, index) => ({ ...row, index }));
    this.view = { from: 0, to: source.length_s, rows: this.all, rowHeight: 18, scroll: 0,
      hidden: new Set(), selected: null, focus: 0 };
    this.arrange();
    this.controls();
    this.pointers();
    this.canvas.addEventListener("keydown", event => this.key(event));
    source.onchange = () => this.refresh();
    new ResizeObserver(() => this.resize()).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    this.resize();
  }

  // Data have come: what was chosen from afar may be known as a single call now.
  refresh() {
    const chosen = this.view.selected;
    if (chosen && !("open" in chosen)) {
      const near = this.source.events(chosen.row, chosen.begin - 1e-8, chosen.begin + 1e-8);
      const known = near.find(event => event.fn === chosen.fn && Math.abs(event.begin - chosen.begin) < 2e-9);
      if (known) return this.choose(known);
    }
    this.redraw();
  }

  recolour() {
    this.painter.readColours();
    this.redraw();
  }

  resize() {
    const width = this.canvas.parentElement.clientWidth;
    const rows = this.view.rows.length;
    const most = Math.max(160, Math.min(620, innerHeight * 0.65));
    this.view.rowHeight = Math.max(3, Math.min(26, Math.floor((most - RULER - BAND) / Math.max(1, rows))));
    const height = Math.min(most, RULER + BAND + Math.max(1, rows) * this.view.rowHeight + 4);
    this.painter.resize(width, height);
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      const start = performance.now();
      this.painter.draw(this.view);
      this.frames.push(performance.now() - start);
      if (this.frames.length > 5000) this.frames.shift();
      const { from, to } = this.view;
      const single = this.source.covers(from, to);
      this.where.textContent = `${seconds(from)} to ${seconds(to)} (${seconds(to - from)}) · `
        + (single ? ["single calls", this.painter.arrowStep > 1 ? `one of some ${this.painter.arrowStep} messages has an arrow` : "", this.source.messagesNote].filter(Boolean).join(" · ") : this.source.hint);
    });
  }

  move(from, to) {
    const least = Math.max(1e-9, this.source.length_s * 1e-9), length = this.source.length_s;
    const span = Math.min(length, Math.max(least, to - from));
    const start = Math.min(Math.max(0, from), length - span);
    Object.assign(this.view, { from: start, to: start + span });
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

  // Order, filter and folding of rows.
  arrange() {
    const order = this.order ?? "rank", wanted = this.wanted ?? null;
    let rows = this.all.filter(row => !wanted || wanted(row));
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
    on("culprit", "click", () => this.toCulprit());
    on("path", "click", el => {
      this.view.path = !this.view.path;
      el.setAttribute("aria-pressed", String(this.view.path));
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
    });
    on("filter", "input", el => {
      this.wanted = rankFilter(el.value);
      this.arrange();
      this.resize();
      this.say(`${this.view.rows.length} of ${this.all.length} rows shown`);
    });
  }

  nextWindow() {
    const { windows } = this.source;
    if (!windows.length) return;
    this.windowAt = ((this.windowAt ?? -1) + 1) % windows.length;
    this.move(...windows[this.windowAt]);
  }

  longest() {
    const { longest } = this.source;
    if (!longest.length) return this.say("no call that waits");
    this.longestAt = ((this.longestAt ?? -1) + 1) % longest.length;
    const call = longest[this.longestAt];
    this.reveal(call.row);
    this.move(call.begin - call.duration * 0.2, call.begin + call.duration * 1.2);
    const known = this.source.events(call.row, call.begin - 1e-8, call.begin + 1e-8).find(e => Math.abs(e.begin - call.begin) < 2e-9);
    this.choose(known ?? { ...call, end: call.begin + call.duration });
  }

  // The wait of a row around a moment; of several the shortest.
  waitAt(row, from, to) {
    const found = (this.source.waitsByRow.get(row) ?? []).filter(wait => wait.begin <= to && wait.until >= from);
    return found.sort((a, b) => (a.until - a.begin) - (b.until - b.begin))[0] ?? null;
  }

  nextWait() {
    const { waits } = this.source;
    if (!waits.length) return this.say("no wait is known");
    this.waitNumber = ((this.waitNumber ?? -1) + 1) % waits.length;
    const wait = waits[this.waitNumber], length = wait.until - wait.begin;
    this.reveal(wait.row);
    this.move(wait.begin - length * 0.3, wait.until + length * 0.3);
    this.chooseWait(wait);
  }

  chooseWait(wait) {
    Object.assign(this.view, { wait, selected: null });
    this.say(this.waitWords(wait));
    this.redraw();
  }

  waitWords(wait) {
    const { rows } = this.source, length = seconds(wait.until - wait.begin);
    const whom = wait.culprit < 0 ? "" : ` for ${rowName(rows[wait.culprit])}`;
    const parts = [`${rowName(rows[wait.row])} waits ${length}${whom} (${wait.state})`];
    if (wait.reason) parts.push(wait.reason);
    if (wait.culprit >= 0) parts.push("C goes there");
    return parts.join(" · ");
  }

  // What the culprit of the chosen wait did while it was waited for.
  toCulprit() {
    const { wait } = this.view;
    if (!wait || wait.culprit < 0) return this.say("no wait with a culprit is chosen");
    const length = wait.until - wait.begin;
    this.reveal(wait.culprit);
    this.move(wait.ended - length * 1.3, wait.ended + length * 0.3);
    const inner = this.waitAt(wait.culprit, wait.ended - length, wait.ended);
    this.say([this.waitWords(wait), inner ? this.waitWords(inner) : ""].filter(Boolean).join(" · before that "));
    if (inner) this.view.wait = inner;
    this.redraw();
  }

  reveal(index) {
    const place = this.view.rows.findIndex(row => row.index === index);
    if (place < 0) return;
    this.view.focus = place;
    const top = place * this.view.rowHeight, room = this.painter.height - RULER - BAND - this.view.rowHeight;
    if (top < this.view.scroll || top > this.view.scroll + room) this.scrollBy(top - this.view.scroll - room / 2);
  }

  // The next or previous call of the focused row whose single calls are known.
  step(direction) {
    const row = this.view.rows[this.view.focus];
    if (!row || row.fold) return;
    const events = this.source.byRow ? this.source.byRow[row.index] : this.source.events(row.index, this.view.from, this.view.to);
    if (!events.length) return this.say(`${rowName(row)}: no single calls embedded`);
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

  choose(event) {
    this.view.selected = event;
    this.view.wait = this.waitAt(event.row, event.begin, event.end);
    this.describe(event);
    this.redraw();
  }

  say(text) {
    this.said.textContent = text;
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
    if (this.view.wait) parts.push(this.waitWords(this.view.wait));
    for (const m of this.source.messages(event.begin - 1e-9, event.end + 1e-9).filter(m => this.painter.belongs(m, event)).slice(0, 4)) {
      const [a, b] = [rowName(this.source.rows[m.fromRow]), rowName(this.source.rows[m.toRow])];
      parts.push(`message ${a} → ${b}, ${m.bytes} bytes, tag ${m.tag}, sent ${m.sendEnd.toFixed(9)} s, complete ${m.end.toFixed(9)} s`);
    }
    this.say(parts.join(" · "));
  }

  // What lies under a point.
  pick(x, y) {
    const place = this.painter.rowAt(this.view, y);
    if (place < 0 || x < GUTTER) return;
    this.view.focus = place;
    const row = this.view.rows[place], at = this.painter.time(this.view, x);
    const pixel = (this.view.to - this.view.from) / (this.painter.width - GUTTER);
    if (!row.fold && this.source.windows.some(([a, b]) => a <= at && at <= b)) {
      const near = this.source.events(row.index, at - 2 * pixel, at + 2 * pixel);
      const distance = e => at < e.begin ? e.begin - at : at > e.end ? at - e.end : 0;
      near.sort((a, b) => distance(a) - distance(b) || a.duration - b.duration);
      if (near.length) return this.choose(near[0]);
    }
    const wait = row.fold ? null : this.waitAt(row.index, at - pixel, at + pixel);
    if (wait) return this.chooseWait(wait);
    this.view.selected = this.view.wait = null;
    const shares = new Float32Array(this.source.kinds.length);
    this.painter.rowShares(row, { from: at - pixel / 2, to: at + pixel / 2 }, 1, shares);
    const words = [...shares].map((share, kind) => [share, this.source.kinds[kind]]).filter(([share]) => share > 0)
      .sort((a, b) => b[0] - a[0]).map(([share, kind]) => `${kind} ${(share * 100).toPrecision(2)} %`);
    this.say(`${rowName(row)} · around ${at.toFixed(6)} s · ${words.join(", ") || "not recorded"}`);
    this.redraw();
  }

  pointers() {
    const { canvas } = this, down = new Map();
    const place = event => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      if (event.shiftKey) return this.scrollBy(event.deltaY);
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.pan(event.deltaX / this.painter.width);
      this.zoom(2 ** (event.deltaY / 300), this.painter.time(this.view, place(event)[0]));
    }, { passive: false });
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, place(event));
      this.moved = 0;
    });
    canvas.addEventListener("pointermove", event => {
      const before = down.get(event.pointerId);
      if (!before) return;
      const now = place(event), others = [...down].filter(([id]) => id !== event.pointerId);
      if (others.length) {
        const other = others[0][1][0];
        const spread = Math.max(8, Math.abs(now[0] - other)), was = Math.max(8, Math.abs(before[0] - other));
        this.zoom(was / spread, this.painter.time(this.view, (now[0] + other) / 2));
      } else {
        this.pan((before[0] - now[0]) / (this.painter.width - GUTTER));
        this.scrollBy(before[1] - now[1]);
      }
      this.moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      down.set(event.pointerId, now);
    });
    const up = event => {
      if (down.delete(event.pointerId) && event.type === "pointerup" && this.moved < 4) this.pick(...place(event));
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("dblclick", event => this.zoom(0.25, this.painter.time(this.view, place(event)[0])));
  }

  key(event) {
    const { view } = this;
    const actions = {
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
      ArrowUp: () => this.focusRow(-1), ArrowDown: () => this.focusRow(1),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      Home: () => this.move(0, this.source.length_s), "0": () => this.move(0, this.source.length_s),
      n: () => this.step(1), p: () => this.step(-1), l: () => this.longest(), w: () => this.nextWindow(),
      a: () => this.nextWait(), c: () => this.toCulprit(),
      PageDown: () => this.scrollBy(this.painter.height / 2), PageUp: () => this.scrollBy(-this.painter.height / 2),
      Enter: () => view.selected && this.move(view.selected.begin - view.selected.duration, view.selected.end + view.selected.duration),
      Escape: () => { view.selected = view.wait = null; this.say(""); this.redraw(); },
    };
    const action = !event.ctrlKey && !event.metaKey && !event.altKey && actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  focusRow(step) {
    const place = Math.max(0, Math.min(this.view.rows.length - 1, this.view.focus + step));
    this.view.focus = place;
    const row = this.view.rows[place];
    if (row && !row.fold) this.reveal(row.index);
    this.say(row ? rowName(row) : "no row");
    this.redraw();
  }
}

// "0-3,8 n12": ranks and ranges, or parts of host names; all rows when empty.
function rankFilter(text) {
  const parts = text.split(/[\s,]+/).filter(Boolean);
  if (!parts.length) return null;
  const tests = parts.map(part => {
    const range = part.match(/^(\d+)(?:-(\d+))?$/);
    if (!range) return row => row.host.includes(part);
    const [low, high] = [Number(range[1]), Number(range[2] ?? range[1])];
    return row => row.rank >= low && row.rank <= high;
  });
  return row => tests.some(test => test(row));
}
