"use strict";
// Draws the timeline on a canvas: columns of shares first, then names, arrows and bands where there is
// room. Knows nothing of keys, pointers or the rest of the page.

const GUTTER = 92, RULER = 22, BAND = 16;
// Width in pixels that each message arrow needs.
const ARROW_ROOM = 24;

class Painter {
  constructor(canvas, source) {
    this.canvas = canvas;
    this.source = source;
    this.context = canvas.getContext("2d", { alpha: false });
    this.waits = new WaitPainter(this);
    this.marks = new MarkPainter(this);
    this.lanes = new LanePainter(this);
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = name => style.getPropertyValue(name).trim();
    this.colours = this.source.kinds.map((_, kind) => read(`--kind-${kind}`));
    this.laneColours = { teams: read("--lane-teams"), files: read("--lane-files") };
    this.ground = read("--panel");
    this.soft = read("--soft");
    this.ink = read("--ink");
    this.faint = read("--faint");
    this.accent = read("--accent");
    const word = colour => {
      const value = parseInt(colour.slice(1), 16);
      return 0xff000000 | (value & 0xff) << 16 | value & 0xff00 | value >> 16;
    };
    this.words = Uint32Array.from(this.colours, word);
    this.groundWord = word(this.ground);
    this.hiddenWord = word(this.faint);
  }

  resize(width, height) {
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.canvas.style.height = `${height}px`;
  }

  x(view, time) {
    return GUTTER + (time - view.from) / (view.to - view.from) * (this.width - GUTTER);
  }

  time(view, x) {
    return view.from + (x - GUTTER) / (this.width - GUTTER) * (view.to - view.from);
  }

  rowTop(view, index) {
    return RULER + BAND + index * view.rowHeight - view.scroll;
  }

  rowAt(view, y) {
    const index = Math.floor((y - RULER - BAND + view.scroll) / view.rowHeight);
    return y >= RULER + BAND && index >= 0 && index < view.rows.length ? index : -1;
  }

  // view: {from, to, rows: [row or fold], rowHeight, scroll, hidden: Set of kinds, selected,
  //        time, ranks, cause, fn: the selection}
  draw(view) {
    const c = this.context;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = this.ground;
    c.fillRect(0, 0, this.width, this.height);
    const first = Math.max(0, Math.floor(view.scroll / view.rowHeight));
    const last = Math.min(view.rows.length, Math.ceil((view.scroll + this.height) / view.rowHeight));
    this.shares(view, first, last);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.marks.open(view, first, last);
    const waits = this.waits.draw(view, first, last);
    this.lanes.draw(view, first, last);
    this.arrowStep = 1;
    if (this.source.covers(view.from, view.to)) {
      this.bands(view);
      this.names(view, first, last);
      this.arrows(view);
    }
    this.marks.samples(view, first, last);
    this.marks.openNotes(view, first, last);
    this.waits.path(view);
    this.waits.arrows(view, waits);
    this.marks.chosen(view, first, last);
    this.selection(view);
    this.labels(view, first, last);
    this.ruler(view);
    this.regions(view);
    this.marks.ruler(view);
  }

  // Stacked shares, one pixel column each. Every kind that occurs gets at least one pixel.
  shares(view, first, last) {
    const K = this.source.kinds.length, ratio = this.ratio;
    const left = Math.round(GUTTER * ratio), columns = this.canvas.width - left;
    if (columns <= 0) return;
    const out = new Float32Array(columns * K);
    const gap = view.rowHeight >= 8 ? 2 : view.rowHeight >= 4 ? 1 : 0;
    const height = Math.max(1, Math.round((view.rowHeight - gap - this.lanes.room(view)) * ratio));
    if (!this.image || this.image.width !== columns || this.image.height !== height) {
      this.image = new ImageData(columns, height);
    }
    const pixels = new Uint32Array(this.image.data.buffer);
    for (let index = first; index < last; index++) {
      this.rowShares(view.rows[index], view, columns, out);
      pixels.fill(this.groundWord);
      for (let column = 0; column < columns; column++) {
        let total = 0, largest = -1;
        for (let kind = 0; kind < K; kind++) {
          const share = out[column * K + kind];
          total += share;
          if (kind > 0 && share > 0 && !view.hidden.has(kind) && (largest < 0 || share > out[column * K + largest])) largest = kind;
        }
        if (total <= 0) continue;
        let y = height, sum = 0;
        const room = Math.max(1, Math.round(Math.min(1, total) * height));
        for (let kind = 0; kind < K; kind++) {
          const share = out[column * K + kind];
          if (share <= 0) continue;
          sum += share;
          const top = height - Math.round(sum / total * room);
          const word = view.hidden.has(kind) ? this.hiddenWord : this.words[kind];
          for (; y > top; y--) pixels[(y - 1) * columns + column] = word;
        }
        if (largest > 0 && out[column * K + largest] / total * room < 0.5) {
          pixels[(height - room) * columns + column] = this.words[largest];
        }
      }
      this.context.putImageData(this.image, left, Math.round((this.rowTop(view, index) + gap / 2) * ratio));
    }
  }

  rowShares(row, view, columns, out) {
    if (!row.fold) return this.source.shares(row.index, view.from, view.to, columns, out);
    const one = new Float32Array(out.length);
    out.fill(0);
    for (const member of row.fold) {
      this.source.shares(member.index, view.from, view.to, columns, one);
      for (let i = 0; i < out.length; i++) out[i] += one[i] / row.fold.length;
    }
  }

  // Outlines and names of the calls that are wide enough.
  names(view, first, last) {
    if (view.rowHeight < 9) return;
    const c = this.context;
    c.font = "11px system-ui, sans-serif";
    for (let index = first; index < last; index++) {
      const row = view.rows[index];
      if (row.fold) continue;
      const top = this.rowTop(view, index) + 1, height = view.rowHeight - 2 - this.lanes.room(view);
      for (const event of this.source.events(row.index, view.from, view.to)) {
        const x0 = Math.max(GUTTER, this.x(view, event.begin)), x1 = Math.min(this.width, this.x(view, event.end));
        if (x1 - x0 < 4) continue;
        c.strokeStyle = this.ground;
        c.lineWidth = 1;
        c.strokeRect(x0, top, x1 - x0, height);
        const full = this.source.functions[event.fn], name = full.replace("MPI_", "");
        if (view.fn !== null && full === view.fn) this.marks.call(x0, top, x1 - x0, height);
        if (x1 - x0 > 24 && view.rowHeight >= 13 && c.measureText(name).width < x1 - x0 - 6) {
          c.fillStyle = this.textOn(this.colours[this.source.functionKinds[event.fn]]);
          c.fillText(name, x0 + 3, top + height / 2 + 0.5);
        }
      }
    }
  }

  textOn(colour) {
    const value = parseInt(colour.slice(1), 16);
    const light = 0.3 * (value >> 16) + 0.59 * (value >> 8 & 255) + 0.11 * (value & 255);
    return light > 140 ? "#111111" : "#ffffff";
  }

  // Each row's position among the rows shown.
  positions(view) {
    const positions = new Map();
    view.rows.forEach((row, index) => { if (!row.fold) positions.set(row.index, index); });
    return positions;
  }

  middle(view, index) {
    return this.rowTop(view, index) + view.rowHeight / 2;
  }

  arrows(view) {
    const positions = this.positions(view), c = this.context;
    const shown = this.source.messages(view.from, view.to)
      .filter(m => positions.has(m.fromRow) && positions.has(m.toRow));
    const drawn = this.sampleArrows(view, shown);
    this.arrowStep = Math.max(1, Math.round(shown.length / Math.max(1, drawn.size)));
    for (const m of shown) {
      const chosen = view.selected && this.belongs(m, view.selected);
      if (!drawn.has(m) && !chosen) continue;
      const x0 = this.x(view, m.sendEnd), y0 = this.middle(view, positions.get(m.fromRow));
      const x1 = this.x(view, m.end), y1 = this.middle(view, positions.get(m.toRow));
      c.strokeStyle = c.fillStyle = chosen ? this.accent : this.ink;
      c.globalAlpha = chosen ? 1 : 0.6;
      c.lineWidth = chosen ? 2 : 1;
      this.clippedLine([[x0, y0], [x1, y1]]);
      const angle = Math.atan2(y1 - y0, x1 - x0);
      if (x1 >= GUTTER && x1 <= this.width) {
        c.beginPath();
        c.moveTo(x1, y1);
        c.lineTo(x1 - 6 * Math.cos(angle - 0.4), y1 - 6 * Math.sin(angle - 0.4));
        c.lineTo(x1 - 6 * Math.cos(angle + 0.4), y1 - 6 * Math.sin(angle + 0.4));
        c.fill();
      }
      // Dashed: from the call that posted the receive to the one that completed it.
      if (chosen) {
        c.setLineDash([3, 3]);
        this.clippedLine([[this.x(view, m.postBegin), y1], [x1, y1]]);
        c.setLineDash([]);
      }
    }
    c.globalAlpha = 1;
  }

  // The messages to draw, so that their arrows do not overlap: on each row, at most one arrow begins or ends per width of
  // an arrow head, and no more arrows in all than there is room for. They are a pseudo-random sample, because every n-th
  // message might show one direction only.
  sampleArrows(view, messages) {
    const taken = new Set(), room = 2 * (this.width - GUTTER) / ARROW_ROOM;
    const slot = (row, time) => `${row}/${Math.floor(this.x(view, time) / ARROW_ROOM)}`;
    const sample = (all, step) => all.filter((_, number) => (Math.imul(number + 1, 0x9e3779b1) >>> 8) % step === 0);
    const separate = sample(messages, Math.ceil(messages.length / (8 * room))).filter(m => {
      const slots = [slot(m.fromRow, m.sendEnd), slot(m.toRow, m.end)];
      if (slots.some(one => taken.has(one))) return false;
      slots.forEach(one => taken.add(one));
      return true;
    });
    return new Set(sample(separate, Math.max(1, Math.ceil(separate.length / room))));
  }

  clippedLine(points) {
    const c = this.context;
    c.save();
    c.beginPath();
    c.rect(GUTTER, RULER + BAND, this.width - GUTTER, this.height);
    c.clip();
    c.beginPath();
    points.forEach(([x, y], i) => i ? c.lineTo(x, y) : c.moveTo(x, y));
    c.stroke();
    c.restore();
  }

  belongs(message, event) {
    const near = (a, b) => Math.abs(a - b) < 2e-9;
    return message.fromRow === event.row && near(message.sendBegin, event.begin)
      || message.toRow === event.row && (near(message.postBegin, event.begin) || near(message.end, event.end));
  }

  bands(view) {
    const positions = this.positions(view), c = this.context;
    const shown = this.source.collectives(view.from, view.to);
    if (shown.length > 400) return;
    c.save();
    c.beginPath();
    c.rect(GUTTER, RULER + BAND, this.width - GUTTER, this.height);
    c.clip();
    for (const collective of shown) {
      const members = collective.members.filter(m => positions.has(m.row))
        .map(m => ({ ...m, position: positions.get(m.row) })).sort((a, b) => a.position - b.position);
      if (members.length < 2) continue;
      c.beginPath();
      const edge = (m, time, y) => [this.x(view, time), this.rowTop(view, m.position) + y];
      for (const m of members) {
        c.lineTo(...edge(m, m.begin, 0));
        c.lineTo(...edge(m, m.begin, view.rowHeight));
      }
      for (const m of members.reverse()) {
        c.lineTo(...edge(m, m.end, view.rowHeight));
        c.lineTo(...edge(m, m.end, 0));
      }
      c.closePath();
      c.globalAlpha = 0.14;
      c.fillStyle = this.ink;
      c.fill();
      c.globalAlpha = 0.5;
      c.strokeStyle = this.ink;
      c.lineWidth = 1;
      c.stroke();
    }
    c.restore();
  }

  selection(view) {
    if (!view.selected) return;
    const index = view.rows.findIndex(row => row.index === view.selected.row);
    if (index < 0) return;
    const c = this.context;
    const x0 = Math.max(GUTTER, this.x(view, view.selected.begin));
    const x1 = Math.min(this.width, this.x(view, view.selected.end));
    if (x1 < GUTTER) return;
    c.strokeStyle = this.accent;
    c.lineWidth = 2;
    c.strokeRect(x0 - 1, this.rowTop(view, index), Math.max(2, x1 - x0) + 2, view.rowHeight);
  }

  // A text, cut to fit a width.
  fitting(text, room) {
    const { context: c } = this;
    if (c.measureText(text).width <= room) return text;
    let length = text.length - 1;
    while (length > 1 && c.measureText(`${text.slice(0, length)}…`).width > room) length--;
    return `${text.slice(0, length)}…`;
  }

  labels(view, first, last) {
    const c = this.context;
    c.fillStyle = this.ground;
    c.fillRect(0, 0, GUTTER, this.height);
    c.font = "12px system-ui, sans-serif";
    const every = Math.max(1, Math.ceil(13 / view.rowHeight));
    for (let index = first; index < last; index++) {
      if (index % every) continue;
      const row = view.rows[index];
      this.marks.label(view, row, index);
      c.fillStyle = view.focus === index ? this.accent : this.ink;
      const name = rowName(row);
      c.fillText(this.fitting(name, GUTTER - 12), 6, this.rowTop(view, index) + Math.max(6, view.rowHeight / 2));
    }
  }

  ruler(view) {
    const c = this.context, span = view.to - view.from;
    c.fillStyle = this.ground;
    c.fillRect(0, 0, this.width, RULER);
    const rough = span / Math.max(2, (this.width - GUTTER) / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough);
    c.fillStyle = c.strokeStyle = this.ink;
    c.lineWidth = 1;
    c.font = "11px system-ui, sans-serif";
    // Zoomed in far, labels count from the last round moment before the left edge.
    const base = span < Math.abs(view.from) * 1e-3 ? Math.floor(view.from / step) * step : 0;
    c.fillText(base ? this.fitting(`${Number(base.toPrecision(12))} s +`, GUTTER - 8) : "time", 6, RULER / 2);
    for (let n = Math.ceil((view.from - base) / step); n * step + base <= view.to; n++) {
      const x = this.x(view, n * step + base);
      if (x < GUTTER) continue;
      c.globalAlpha = 0.35;
      c.beginPath();
      c.moveTo(x, RULER - 5);
      c.lineTo(x, this.height);
      c.globalAlpha = 0.12;
      c.stroke();
      c.globalAlpha = 1;
      const label = this.tick(n * step, step), room = this.width - x - 3;
      if (c.measureText(label).width <= room) c.fillText(label, x + 3, RULER / 2);
    }
    // Bars mark where single calls are.
    c.fillStyle = this.accent;
    for (const [a, b] of this.source.windows) {
      const x0 = Math.max(GUTTER, this.x(view, a)), x1 = Math.min(this.width, this.x(view, b));
      if (x1 >= GUTTER && x0 <= this.width) c.fillRect(x0, RULER - 3, Math.max(2, x1 - x0), 3);
    }
  }

  // All labels of a ruler have the same unit and as many digits as its step needs.
  tick(value, step) {
    const far = Math.max(Math.abs(value), step);
    const [scale, unit] = far >= 0.9995 ? [1, "s"] : far >= 0.9995e-3 ? [1e3, "ms"] : far >= 0.9995e-6 ? [1e6, "µs"] : [1e9, "ns"];
    const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step * scale) - 1e-9)));
    return value === 0 ? "0" : `${(value * scale).toFixed(digits)} ${unit}`;
  }

  regions(view) {
    const c = this.context, row = view.rows[Math.max(0, view.focus)];
    c.fillStyle = this.ground;
    c.fillRect(GUTTER, RULER, this.width - GUTTER, BAND);
    if (!row || row.fold) return;
    c.font = "11px system-ui, sans-serif";
    c.lineWidth = 1;
    for (const region of this.source.regions) {
      if (region.row !== row.index || region.to < view.from || region.from > view.to) continue;
      const x0 = Math.max(GUTTER, this.x(view, region.from)), x1 = Math.min(this.width, this.x(view, region.to));
      c.fillStyle = x1 - x0 < 4 ? this.soft : this.faint;
      c.fillRect(x0, RULER + 1, Math.max(1, x1 - x0), BAND - 3);
      c.strokeStyle = this.soft;
      if (x1 - x0 >= 4) c.strokeRect(x0 + 0.5, RULER + 1.5, x1 - x0 - 1, BAND - 4);
      c.fillStyle = this.ink;
      if (c.measureText(region.name).width < x1 - x0 - 6) c.fillText(region.name, x0 + 3, RULER + BAND / 2);
    }
  }
}
