"use strict";
// Draws why ranks waited: hatched waits, an arrow from each delaying rank to the rank that waited for it, the critical path.

// Waits narrower than this many pixels are not hatched.
const LEAST_WAIT = 3;
// If more waits are visible, only the chosen one has an arrow.
const MOST_ARROWS = 40;

// Reads waits, critical path and iterations into a source; without data all are empty.
function readCauses(source, data) {
  const row = value => value ?? -1, ns = 1e-9;
  source.waits = (data?.waits ?? []).map(([own, delayed_by, begin, until, ended, state, reason, group]) => ({
    row: own, delayed_by: row(delayed_by), begin: begin * ns, until: until * ns, ended: ended * ns,
    group, state: data.states[state], reason: data.reasons[reason] }));
  source.waitsLeftOut = data?.waits_left_out ?? 0;
  source.waitsByRow = new Map();
  for (const wait of source.waits) source.waitsByRow.set(wait.row, [...(source.waitsByRow.get(wait.row) ?? []), wait]);
  source.path = (data?.path ?? []).map(([own, from, to]) => ({ row: own, from: from * ns, to: to * ns }));
  source.heatRows = data?.heat_rows ?? [];
  source.heat = data?.heat ?? [];
  source.iterations = (data?.iterations ?? []).map(([begin, length, waiting, delayed_by], index) => ({
    index, begin: begin * ns, length: length * ns, waiting: waiting * ns, delayed_by: row(delayed_by) }));
}

class WaitPainter {
  constructor(painter) {
    this.painter = painter;
    this.source = painter.source;
  }

  // Stripes in the background colour: texture, not colour, tells waiting from transfer.
  hatch() {
    const { ground, context } = this.painter;
    if (this.hatchOf === ground) return this.pattern;
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const c = tile.getContext("2d");
    c.strokeStyle = ground;
    c.lineWidth = 1.6;
    c.beginPath();
    for (const shift of [-6, 0, 6]) {
      c.moveTo(shift, 6);
      c.lineTo(shift + 6, 0);
    }
    c.stroke();
    this.hatchOf = ground;
    this.pattern = context.createPattern(tile, "repeat");
    return this.pattern;
  }

  draw(view, first, last) {
    const { painter } = this, c = painter.context;
    if (view.rowHeight < 6) return;
    const shown = [];
    c.save();
    c.beginPath();
    c.rect(GUTTER, RULER + BAND, painter.width - GUTTER, painter.height);
    c.clip();
    c.fillStyle = this.hatch();
    for (let index = first; index < last; index++) {
      const row = view.rows[index];
      if (row.fold) continue;
      for (const wait of this.source.waitsByRow.get(row.index) ?? []) {
        if (wait.until < view.from || wait.begin > view.to) continue;
        const x0 = painter.x(view, wait.begin), x1 = painter.x(view, wait.until);
        if (x1 - x0 < LEAST_WAIT) continue;
        if (view.cause !== null && wait.group !== view.cause) continue;
        c.fillRect(x0, painter.rowTop(view, index) + 1, x1 - x0, view.rowHeight - 2);
        shown.push(wait);
      }
    }
    c.restore();
    return shown;
  }

  // Arrows run from the start of the delaying rank's call to the end of the waiting.
  arrows(view, shown) {
    const { painter } = this, positions = painter.positions(view), { wait: chosen } = view;
    const all = shown && shown.length <= MOST_ARROWS ? shown : [];
    for (const wait of chosen && !all.includes(chosen) ? [...all, chosen] : all) {
      if (!positions.has(wait.delayed_by) || !positions.has(wait.row)) continue;
      const c = painter.context, isChosen = wait === chosen;
      const from = [painter.x(view, wait.ended), painter.middle(view, positions.get(wait.delayed_by))];
      const to = [painter.x(view, wait.until), painter.middle(view, positions.get(wait.row))];
      c.strokeStyle = c.fillStyle = painter.accent;
      c.globalAlpha = isChosen ? 1 : 0.7;
      c.lineWidth = isChosen ? 2.5 : 1.2;
      painter.clippedLine([from, to]);
      if (to[0] >= GUTTER && to[0] <= painter.width) {
        c.beginPath();
        c.arc(...to, isChosen ? 4 : 2.5, 0, 7);
        c.fill();
      }
      c.globalAlpha = 1;
    }
  }

  path(view) {
    if (!view.path) return;
    const { painter } = this, positions = painter.positions(view), points = [];
    for (const stretch of this.source.path) {
      if (stretch.to < view.from || stretch.from > view.to || !positions.has(stretch.row)) continue;
      const y = painter.middle(view, positions.get(stretch.row));
      points.push([painter.x(view, stretch.from), y], [painter.x(view, stretch.to), y]);
    }
    if (!points.length) return;
    const c = painter.context;
    for (const [colour, width] of [[painter.ground, 5], [painter.accent, 2.5]]) {
      c.strokeStyle = colour;
      c.lineWidth = width;
      painter.clippedLine(points);
    }
  }
}
