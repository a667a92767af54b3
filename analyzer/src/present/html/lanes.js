"use strict";
// Lanes below each row: parallel regions of OpenMP, filled as high as their threads work, and calls on files, filled as
// high as they take of the time.

function readLanes(source, data) {
  const rows = packed => {
    const byRow = source.rows.map(() => []);
    for (const [row, begin, length, count, part] of packed) {
      byRow[row].push({ begin: begin * 1e-9, end: (begin + length) * 1e-9, count, part: part / 1000 });
    }
    return byRow;
  };
  const named = { teams: data?.teams ?? [], files: data?.files ?? [] };
  source.lanes = Object.entries(named).filter(([, packed]) => packed.length).map(([name, packed]) => ({ name, rows: rows(packed) }));
}

class LanePainter {
  constructor(painter) {
    this.painter = painter;
  }

  get lanes() {
    return this.painter.source.lanes ?? [];
  }

  // Height of one lane, and of all of them.
  height(view) {
    return view.rowHeight >= 12 ? Math.max(4, Math.round(view.rowHeight * 0.24)) : 0;
  }

  room(view) {
    return this.lanes.length * this.height(view);
  }

  draw(view, first, last) {
    const { painter } = this, c = painter.context, height = this.height(view);
    if (!height) return;
    for (let index = first; index < last; index++) {
      const row = view.rows[index];
      if (row.fold) continue;
      this.lanes.forEach((lane, number) => {
        const top = this.top(view, index, number);
        c.fillStyle = painter.ground;
        c.fillRect(GUTTER, top, painter.width - GUTTER, height);
        c.fillStyle = painter.laneColours[lane.name];
        for (const one of lane.rows[row.index]) {
          if (one.end < view.from || one.begin > view.to) continue;
          const x0 = Math.max(GUTTER, painter.x(view, one.begin));
          const width = Math.max(1, Math.min(painter.width, painter.x(view, one.end)) - x0);
          c.globalAlpha = 0.35;
          c.fillRect(x0, top, width, height - 1);
          c.globalAlpha = 1;
          const filled = Math.max(1, one.part * (height - 1));
          c.fillRect(x0, top + height - 1 - filled, width, filled);
        }
      });
    }
  }

  top(view, index, lane) {
    return this.painter.rowTop(view, index) + view.rowHeight - 1 - (this.lanes.length - lane) * this.height(view);
  }

  // What is at a point of a row's lanes, in words; null if that is none.
  at(view, index, y, time, pixel) {
    const row = view.rows[index], height = this.height(view);
    if (!height || row.fold) return null;
    const lane = this.lanes.find((_, number) => {
      const top = this.top(view, index, number);
      return y >= top && y < top + height;
    });
    const one = lane?.rows[row.index].find(of => of.begin - 2 * pixel <= time && time <= of.end + 2 * pixel);
    if (!one) return null;
    const many = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`, part = `${(100 * one.part).toPrecision(2)} %`;
    const words = lane.name === "teams"
      ? [many(one.count, "parallel region"), `threads work ${part} of the time`]
      : [`${many(one.count, "call")} on files`, `${part} of the time inside them`];
    return [rowName(row), ...words, `${one.begin.toFixed(9)} s to ${one.end.toFixed(9)} s`].join(" · ");
  }
}
