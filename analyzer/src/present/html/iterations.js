"use strict";
// A strip of bars, one per iteration. A click shows the iteration in the timeline.

// A colour between light and dark blue.
function shade(part) {
  const [from, to] = [[247, 251, 255], [8, 48, 107]];
  return [...from.map((value, i) => Math.round(value + (to[i] - value) * part)), 255];
}

class Iterations {
  constructor(root, timeline) {
    this.root = root;
    this.timeline = timeline;
    this.all = timeline.source.iterations;
    this.at = -1;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const width = 1000, height = 64, step = width / this.all.length;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    const most = Math.max(...this.all.map(one => one.length));
    const colours = this.delaying_ranks();
    for (const one of this.all) {
      const bar = document.createElementNS(svg.namespaceURI, "rect");
      const high = Math.max(1, one.length / most * height);
      for (const [name, value] of Object.entries({ x: one.index * step, y: height - high, width: Math.max(step * 0.85, 0.5),
        height: high, class: colours.get(one.delayed_by) ?? "i-other" })) bar.setAttribute(name, value);
      const title = document.createElementNS(svg.namespaceURI, "title");
      title.textContent = this.describe(one);
      bar.append(title);
      bar.addEventListener("click", () => this.show(one.index));
      svg.append(bar);
    }
    root.querySelector("[data-strip]").replaceChildren(svg);
    if (timeline.source.heat.length) this.heat();
    root.tabIndex = 0;
    root.addEventListener("keydown", event => this.key(event));
    root.hidden = false;
  }

  // The four ranks that are the main delaying rank in most iterations have their own colours.
  delaying_ranks() {
    const counts = new Map();
    for (const { delayed_by } of this.all) if (delayed_by >= 0) counts.set(delayed_by, (counts.get(delayed_by) ?? 0) + 1);
    const most = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 4).map(([row]) => row);
    const colours = new Map(most.map((row, number) => [row, `i-${number}`]));
    const item = (name, text) => {
      const span = document.createElement("span"), mark = document.createElement("i");
      span.className = "item";
      mark.className = name;
      span.append(mark, text);
      return span;
    };
    const items = most.map(row => item(colours.get(row), `others waited for ${rowName(this.timeline.source.rows[row])}`));
    this.root.querySelector("[data-legend]").replaceChildren(...items, item("i-other", "another rank, or none"));
    return colours;
  }

  // A map of one row per rank and one column per iteration: the darker, the longer the rank computed.
  heat() {
    const { heat, heatRows } = this.timeline.source, columns = this.all.length, rows = heatRows.length;
    const canvas = this.root.querySelector("[data-heat]"), c = canvas.getContext("2d");
    canvas.width = columns;
    canvas.height = rows;
    canvas.style.height = `${Math.max(20, Math.min(96, rows * 10))}px`;
    const image = c.createImageData(columns, rows);
    for (let i = 0; i < heat.length; i++) image.data.set(shade(heat[i] / 100), i * 4);
    c.putImageData(image, 0, 0);
    const at = event => {
      const box = canvas.getBoundingClientRect();
      const column = Math.min(columns - 1, Math.floor((event.clientX - box.left) / box.width * columns));
      const row = Math.min(rows - 1, Math.floor((event.clientY - box.top) / box.height * rows));
      return [Math.max(0, column), Math.max(0, row)];
    };
    canvas.addEventListener("mousemove", event => {
      const [column, row] = at(event), share = heat[row * columns + column];
      canvas.title = `${rowName(this.timeline.source.rows[heatRows[row]])}, iteration ${column}: ${share} % of the longest computation`;
    });
    canvas.addEventListener("click", event => {
      const [column, row] = at(event);
      this.show(column);
      this.timeline.reveal(heatRows[row]);
      this.timeline.redraw();
    });
    this.root.querySelector("[data-heat-part]").hidden = false;
  }

  describe(one) {
    const { rows } = this.timeline.source;
    const delayed_by = one.delayed_by < 0 ? "" : ` · mostly for ${rowName(rows[one.delayed_by])}`;
    return `iteration ${one.index} · ${seconds(one.length)} · all ranks waited ${seconds(one.waiting)}${delayed_by}`;
  }

  show(index) {
    const one = this.all[index];
    if (!one) return;
    this.at = index;
    this.timeline.move(one.begin, one.begin + one.length);
    this.timeline.say(this.describe(one));
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.show(Math.max(0, Math.min(this.all.length - 1, this.at + step)));
  }
}
