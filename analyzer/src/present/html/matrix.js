"use strict";
// The message matrix as a control: a click on a cell chooses sender and receiver; chosen ranks are framed.

class MatrixMarks {
  constructor(svg, source, selection) {
    Object.assign(this, { svg, source, selection });
    const { left, top, edge, places, of } = svg.dataset;
    Object.assign(this, { left: Number(left), top: Number(top), edge: Number(edge), places: Number(places), of });
    const hosts = [...new Set(source.rows.map(row => row.host))];
    this.place = new Map(source.rows.map(row => [row.rank, of === "rank" ? row.rank : hosts.indexOf(row.host)]));
    this.marks = document.createElementNS(svg.namespaceURI, "g");
    this.marks.setAttribute("class", "marks");
    svg.append(this.marks);
    svg.addEventListener("click", event => this.click(event));
  }

  // Sender's and receiver's place under a point, or null.
  at(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const [x, y] = [point.x - this.left, point.y - this.top];
    const cell = this.edge / this.places;
    return x >= 0 && y >= 0 && x < this.edge && y < this.edge ? [Math.floor(y / cell), Math.floor(x / cell)] : null;
  }

  click(event) {
    const places = this.at(event);
    if (!places) return;
    const ranks = new Set([...this.place].filter(([, place]) => places.includes(place)).map(([rank]) => rank));
    this.selection.set({ ranks: sameRanks(ranks, this.selection.ranks) ? null : ranks });
  }

  update() {
    const ranks = this.selection.effectiveRanks, cell = this.edge / this.places;
    const places = new Set([...(ranks ?? [])].map(rank => this.place.get(rank)).filter(place => place !== undefined));
    const frame = (x, y, width, height) => {
      const rect = document.createElementNS(this.svg.namespaceURI, "rect");
      for (const [name, value] of Object.entries({ x, y, width, height })) rect.setAttribute(name, value);
      return rect;
    };
    // Half of all places need no frames.
    const few = places.size <= 16 ? [...places] : [];
    this.marks.replaceChildren(...few.flatMap(place => [
      frame(this.left, this.top + place * cell, this.edge, cell), frame(this.left + place * cell, this.top, cell, this.edge)]));
  }
}
