"use strict";
// Draws over the rows of the timeline: the selection, calls that never returned, and which part of the run is in view.

// Opacity of the veil over rows and times that are not selected.
const VEIL = 0.68;
// Width in pixels that the tick of a sample needs on average.
const TICK_ROOM = 4;

class MarkPainter {
  constructor(painter) {
    this.painter = painter;
    this.source = painter.source;
  }

  clipToPlot(action) {
    const { painter } = this, c = painter.context;
    c.save();
    c.beginPath();
    c.rect(GUTTER, RULER + BAND, painter.width - GUTTER, painter.height);
    c.clip();
    action(c);
    c.restore();
  }

  // A tick at the lower edge of its row for each sample of the code, where there is room and its time is known to two pixels.
  samples(view, first, last) {
    const { painter, source } = this, samples = source.hasSamples ? source.samplesIn(null) : null;
    const room = painter.width - GUTTER, scale = room / (view.to - view.from);
    if (!samples || view.rowHeight < 9 || samples.step_s * scale > 2) return;
    this.clipToPlot(c => {
      c.fillStyle = painter.ink;
      for (let position = first; position < last; position++) {
        const { rank, thread: number, fold } = view.rows[position];
        const thread = fold ? null : samples.threads.find(of => of.rank === rank && of.thread === number);
        if (!thread) continue;
        const [from, to] = samples.cellsBetween(thread, view.from, view.to), bottom = painter.rowTop(view, position) + view.rowHeight - 1;
        if ((to - from) * TICK_ROOM > room) continue;
        for (let cell = from; cell < to; cell++) {
          c.fillRect(painter.x(view, samples.from_s + (thread.bins[cell] + 0.5) * samples.step_s) - 0.5, bottom - 4, 1, 4);
        }
      }
    });
  }

  // The visible calls that never returned, with their rectangles.
  *openCalls(view, first, last) {
    const { painter, source } = this, positions = source.open.length ? painter.positions(view) : new Map();
    for (const call of source.open) {
      const position = positions.get(call.row);
      if (position === undefined || position < first || position >= last) continue;
      yield { call, begin: Math.max(GUTTER, painter.x(view, call.begin)), end: painter.x(view, source.length_s),
        top: painter.rowTop(view, position) + 1, height: Math.max(1, view.rowHeight - 2) };
    }
  }

  // Calls that never returned last to the end of the job; they are pale after the last sign of life of their rank.
  open(view, first, last) {
    const { painter, source } = this;
    this.clipToPlot(c => {
      for (const { call, begin, end, top, height } of this.openCalls(view, first, last)) {
        const seen = Math.max(begin, painter.x(view, source.rows[call.row].end_s));
        if (end - seen < 1) continue;
        c.globalAlpha = 0.35;
        c.fillStyle = painter.colours[source.functionKinds[call.fn]];
        c.fillRect(seen, top, end - seen, height);
        c.globalAlpha = 1;
      }
    });
  }

  openNotes(view, first, last) {
    const { painter, source } = this;
    this.clipToPlot(c => {
      for (const { call, begin, end, top, height } of this.openCalls(view, first, last)) {
        c.setLineDash([4, 3]);
        c.strokeStyle = painter.ink;
        c.lineWidth = 1;
        c.strokeRect(begin + 0.5, top + 0.5, Math.max(2, end - begin - 1), height - 1);
        c.setLineDash([]);
        if (view.rowHeight >= 13) this.note(c, `${source.functions[call.fn]} never returned`, begin + 5, end, top + height / 2 + 0.5);
      }
    });
  }

  // Text on its own background, so that it can be read on any colour and hatch.
  note(c, text, x, end, y) {
    const { painter } = this;
    c.font = "11px system-ui, sans-serif";
    const width = c.measureText(text).width;
    if (width + 10 > end - x) return;
    c.fillStyle = painter.ground;
    c.fillRect(x - 3, y - 7, width + 6, 14);
    c.fillStyle = painter.ink;
    c.fillText(text, x, y);
  }

  // A veil over everything that is not selected, and lines at the ends of the selected time.
  chosen(view, first, last) {
    const { painter } = this, { time, ranks } = view;
    if (!time && !ranks) return;
    this.clipToPlot(c => {
      c.fillStyle = painter.ground;
      c.globalAlpha = VEIL;
      if (ranks) {
        for (let index = first; index < last; index++) {
          if (!this.isChosen(ranks, view.rows[index])) {
            c.fillRect(GUTTER, painter.rowTop(view, index), painter.width - GUTTER, view.rowHeight);
          }
        }
      }
      if (!time) return;
      const [x0, x1] = time.map(at => painter.x(view, at));
      const bottom = painter.height;
      if (x0 > GUTTER) c.fillRect(GUTTER, 0, Math.min(x0, painter.width) - GUTTER, bottom);
      if (x1 < painter.width) c.fillRect(Math.max(GUTTER, x1), 0, painter.width, bottom);
      c.globalAlpha = 1;
      c.strokeStyle = painter.accent;
      c.lineWidth = 1.5;
      c.beginPath();
      for (const x of [x0, x1]) {
        c.moveTo(x, RULER + BAND);
        c.lineTo(x, bottom);
      }
      c.stroke();
    });
  }

  isChosen(ranks, row) {
    return (row.fold ?? [row]).some(member => ranks.has(member.rank));
  }

  // A bar in front of the name of a selected row.
  label(view, row, index) {
    if (!view.ranks || !this.isChosen(view.ranks, row)) return;
    const { painter } = this, c = painter.context;
    c.fillStyle = painter.accent;
    c.fillRect(0, painter.rowTop(view, index) + 1, 3, Math.max(1, view.rowHeight - 2));
  }

  // A frame around a call of the selected function.
  call(x, top, width, height) {
    const { painter } = this, c = painter.context;
    c.strokeStyle = painter.accent;
    c.lineWidth = 2;
    c.strokeRect(x + 1, top + 1, Math.max(1, width - 2), height - 2);
  }

  // The selected time on the ruler; when zoomed in, also which part of the run is in view.
  ruler(view) {
    const { painter, source } = this, c = painter.context, { width } = painter;
    if (view.time) {
      const [x0, x1] = view.time.map(at => Math.max(GUTTER, Math.min(width, painter.x(view, at))));
      c.fillStyle = painter.accent;
      c.globalAlpha = 0.22;
      c.fillRect(x0, 0, x1 - x0, RULER);
      c.globalAlpha = 1;
    }
    if (view.to - view.from > source.length_s * 0.999) return;
    const at = time => GUTTER + time / source.length_s * (width - GUTTER);
    c.fillStyle = painter.faint;
    c.fillRect(GUTTER, 0, width - GUTTER, 3);
    c.fillStyle = painter.ink;
    c.fillRect(at(view.from), 0, Math.max(2, at(view.to) - at(view.from)), 3);
  }
}
