"use strict";
// Makes the message matrix clickable: a click on a cell selects sender and receiver; selected ranks are framed.

class MatrixMarks {
  constructor(svg, source, selection) {
    Object.assign(this, { svg, source, selection });
    const { left, top, edge, places, of } = svg.dataset;
    Object.assign(this, { left: Number(left), top: Number(top), edge: Number(edge), places: Number(places), of });
    const hosts = [...new Set(source.rows.map(row => row.host))];
    this.indexOf = new Map(source.rows.map(row => [row.rank, of === "rank" ? row.rank : hosts.indexOf(row.host)]));
    this.marks = document.createElementNS(svg.namespaceURI, "g");
    this.marks.setAttribute("class", "marks");
    svg.append(this.marks);
    svg.addEventListener("click", event => this.click(event));
  }

  // The sender's and the receiver's index at a point, or null.
  at(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const [x, y] = [point.x - this.left, point.y - this.top];
    const cell = this.edge / this.places;
    return x >= 0 && y >= 0 && x < this.edge && y < this.edge ? [Math.floor(y / cell), Math.floor(x / cell)] : null;
  }

  click(event) {
    const cell = this.at(event);
    if (!cell) return;
    const ranks = new Set([...this.indexOf].filter(([, index]) => cell.includes(index)).map(([rank]) => rank));
    this.selection.set({ ranks: sameRanks(ranks, this.selection.ranks) ? null : ranks });
  }

  update() {
    const ranks = this.selection.effectiveRanks, cell = this.edge / this.places;
    const indices = new Set([...(ranks ?? [])].map(rank => this.indexOf.get(rank)).filter(index => index !== undefined));
    const frame = (x, y, width, height) => {
      const rect = document.createElementNS(this.svg.namespaceURI, "rect");
      for (const [name, value] of Object.entries({ x, y, width, height })) rect.setAttribute(name, value);
      return rect;
    };
    // More frames than this would hide the matrix.
    const framed = indices.size <= 16 ? [...indices] : [];
    this.marks.replaceChildren(...framed.flatMap(index => [
      frame(this.left, this.top + index * cell, this.edge, cell), frame(this.left + index * cell, this.top, cell, this.edge)]));
  }
}
