"use strict";
// Mouse, pen and touch on the timeline. A drag selects a time, or ranks in the margin; with Shift, on the ruler, or with
// a finger it moves the view.

Object.assign(Timeline.prototype, {
  pointers() {
    const { canvas } = this, down = new Map();
    const pointOf = event => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      if (event.shiftKey) return this.scrollBy(event.deltaY);
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.pan(event.deltaX / this.painter.width);
      this.zoom(2 ** (event.deltaY / 300), this.painter.time(this.view, pointOf(event)[0]));
    }, { passive: false });
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      const at = pointOf(event);
      down.set(event.pointerId, at);
      this.drag = { kind: this.dragKind(event, at), from: at, moved: 0, event };
    });
    canvas.addEventListener("pointermove", event => {
      const before = down.get(event.pointerId), now = pointOf(event);
      if (!before) {
        canvas.style.cursor = now[0] < GUTTER ? "pointer" : now[1] < RULER || event.shiftKey ? "grab" : "crosshair";
        return;
      }
      const others = [...down].filter(([id]) => id !== event.pointerId);
      this.drag.moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      down.set(event.pointerId, now);
      if (others.length) this.pinch(before, now, others[0][1]);
      else this.dragged(before, now);
    });
    const up = event => {
      if (!down.delete(event.pointerId) || event.type !== "pointerup" || down.size) return;
      this.dropped(pointOf(event), event);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", event => {
      up(event);
      this.showSelection();
    });
    canvas.addEventListener("dblclick", event => {
      const [x] = pointOf(event);
      // Two quick clicks in the margin select a rank and deselect it.
      if (x >= GUTTER) this.zoom(0.25, this.painter.time(this.view, x));
    });
  },

  dragKind(event, [x, y]) {
    if (event.shiftKey && x >= GUTTER || event.button === 1 || event.pointerType === "touch" && x >= GUTTER) return "move";
    return x < GUTTER ? "ranks" : y < RULER ? "move" : "time";
  },

  pinch(before, now, [other]) {
    this.drag.kind = "move";
    const spread = Math.max(8, Math.abs(now[0] - other)), was = Math.max(8, Math.abs(before[0] - other));
    this.zoom(was / spread, this.painter.time(this.view, (now[0] + other) / 2));
  },

  // While a drag goes on, draws what it would select.
  dragged(before, now) {
    const { kind, from, moved } = this.drag;
    if (kind === "move") {
      this.pan((before[0] - now[0]) / (this.painter.width - GUTTER));
      this.scrollBy(before[1] - now[1]);
    } else if (moved >= 4 && kind === "time") {
      this.view.time = this.timeBetween(from[0], now[0]);
      this.redraw();
    } else if (moved >= 4) {
      this.view.ranks = this.ranksBetween(from[1], now[1]) ?? this.view.ranks;
      this.redraw();
    }
  },

  dropped(now, event) {
    const { kind, from, moved } = this.drag;
    if (kind === "ranks") return this.chooseRows(from[1], now[1], event);
    if (moved < 4) return this.pick(...now);
    if (kind === "time") this.selection.set({ time: this.timeBetween(from[0], now[0]) });
  },

  timeBetween(a, b) {
    const { view, painter, source } = this, at = x => painter.time(view, Math.max(GUTTER, Math.min(painter.width, x)));
    const [from, to] = [Math.min(at(a), at(b)), Math.max(at(a), at(b))];
    return [Math.max(0, from), Math.min(source.length_s, to)];
  },

  // Ranks of the rows between two heights, including those of folded hosts; null if there is no row.
  ranksBetween(a, b) {
    const { view, painter } = this, ranks = new Set();
    const [first, last] = [painter.rowAt(view, Math.min(a, b)), painter.rowAt(view, Math.max(a, b))];
    if (first < 0 && last < 0) return null;
    for (const row of view.rows.slice(Math.max(0, first), (last < 0 ? view.rows.length - 1 : last) + 1)) {
      for (const member of row.fold ?? [row]) ranks.add(member.rank);
    }
    return ranks;
  },

  chooseRows(a, b, event) {
    const { selection } = this, ranks = this.ranksBetween(a, b);
    if (!ranks) return this.showSelection();
    const position = this.painter.rowAt(this.view, b);
    if (position >= 0) this.view.focus = position;
    const [rank] = ranks;
    if (event.shiftKey && this.lastRank !== undefined && ranks.size === 1) {
      const [low, high] = [Math.min(rank, this.lastRank), Math.max(rank, this.lastRank)];
      return selection.set({ ranks: ranksOf(`${low}-${high}`) });
    }
    this.lastRank = rank;
    if (ranks.size === 1) return selection.toggleRank(rank, event.ctrlKey || event.metaKey);
    const adding = event.ctrlKey || event.metaKey;
    selection.set({ ranks: adding ? new Set([...(selection.ranks ?? []), ...ranks])
      : sameRanks(ranks, selection.ranks) ? null : ranks });
  },
});
