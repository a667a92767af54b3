"use strict";
// The call paths of a selection as a tree, or those of two selections, A and B, in one; and where each is drawn. Knows
// nothing of the page.

// The error of all differences together, as in the verdict; fewer samples of a path than these cannot refuse chance.
const ALPHA = 0.01, LEAST_SAMPLES = 8;
// Where a frame comes from; the first three are those of samples.rs.
const ORIGINS = ["program", "library", "unknown", "special"];

class CodeTree {
  // Sides are {samples, sums, scale}: A before B if there are two. Seconds are multiplied by the scale.
  constructor(sides) {
    this.sides = sides;
    this.top = this.node(null, "", "", "special");
    this.all = this.child(this.top, "all sampled code", "", "all");
    sides.forEach((side, number) => this.grow(side, number));
    for (const node of this.nodes()) node.width = this.two ? 0 : node.total_s[0];
    if (this.two) this.compare();
    this.order(this.top);
  }

  get two() {
    return this.sides.length === 2;
  }

  node(parent, name, where, origin) {
    const column = () => this.sides.map(() => 0);
    return { parent, name, where, origin, children: new Map(), self_s: column(), total_s: column(), samples: column(),
      selfSamples: column(), variance: column(), merged: 0 };
  }

  child(parent, name, where, origin) {
    const key = `${name}\n${where}`;
    if (!parent.children.has(key)) parent.children.set(key, this.node(parent, name, where, origin));
    return parent.children.get(key);
  }

  // Adds the paths of a side.
  grow({ samples, sums, scale }, side) {
    const nodes = [];
    samples.frames.forEach((frame, path) => {
      if (!sums.total[path]) return;
      const caller = samples.callers[path], above = caller < 0 ? this.all : nodes[caller];
      const { name, where, origin } = frame === CUT_STACKS ? { name: "(callers not known)", where: "", origin: 3 }
        : frame === MERGED ? { name: "(other paths)", where: "", origin: 3 } : samples.functions[frame];
      const node = this.child(above, name, where, ORIGINS[origin]);
      nodes[path] = node;
      node.merged = Math.max(node.merged, samples.merged.get(path) ?? 0);
      node.self_s[side] += sums.own_s[path] * scale;
      node.total_s[side] += sums.total_s[path] * scale;
      node.selfSamples[side] += sums.own[path];
      node.samples[side] += sums.total[path];
      node.variance[side] += sums.variance[path] * scale ** 2;
    });
    const seconds = (parent, name, of) => {
      if (of > 0) for (const column of ["self_s", "total_s"]) this.child(parent, name, "", "special")[column][side] += of * scale;
    };
    seconds(this.all, "(samples lost)", sums.lost_s);
    seconds(this.top, "(kernel, or signals held off)", sums.kernel_s);
    this.all.total_s[side] = (sums.sampled_s + sums.lost_s) * scale;
    this.all.samples[side] = sums.samples;
    this.top.total_s[side] = this.all.total_s[side] + sums.kernel_s * scale;
  }

  // All nodes, callers first.
  nodes(from = this.top) {
    const found = [from];
    for (let at = 0; at < found.length; at++) found.push(...found[at].children.values());
    return found;
  }

  // Differences, and which of them are not chance. A path is as wide as its own times are long, the longer of both sides
  // each, so that what only one side has is seen, too.
  compare() {
    const all = this.nodes();
    for (const node of [...all].reverse()) {
      node.width += Math.max(...node.self_s);
      if (node.parent) node.parent.width += node.width;
      node.difference = node.total_s[1] - node.total_s[0];
    }
    const [a, b] = [0, 1].map(side => this.all.samples[side] ? this.all.total_s[side] / this.all.samples[side] : 0);
    const isTested = node => node.samples[0] + node.samples[1] >= LEAST_SAMPLES && !node.merged && !this.mayBeMerged(node);
    const tested = a && b ? all.filter(isTested) : [];
    // If both took equally long, a sample is one of B with this probability.
    const ofB = a / (a + b);
    const refused = holm(tested.map(({ samples }) => byChance(samples[1], samples[0] + samples[1], ofB)), ALPHA);
    tested.forEach((node, number) => { node.isCertain = refused[number]; });
  }

  // Whether a path that one side does not have may be among those that are merged there. Sides of the same samples have
  // the same paths.
  mayBeMerged(node) {
    if (this.sides[0].samples === this.sides[1].samples) return false;
    const isMerged = (at, side) => [...at.children.values()].some(child => child.merged && child.samples[side]);
    return node.samples.some((samples, side) => {
      for (let at = node.parent; !samples && at; at = at.parent) if (isMerged(at, side)) return true;
      return false;
    });
  }

  // Widest first.
  order(node) {
    node.children = [...node.children.values()].sort((x, y) => y.width - x.width);
    node.children.forEach(child => this.order(child));
  }

  // The share of a node in everything sampled; of the kernel there are no samples.
  share(node, side = this.sides.length - 1) {
    return isBelow(node, this.all) && this.all.total_s[side] ? node.total_s[side] / this.all.total_s[side] : null;
  }

  // Frames to draw, `zoomed` over the whole width and those above it: [{node, depth, left, width}], from 0 to 1. Those
  // narrower than `least` are one, with `merged` paths of `total_s` seconds.
  frames(zoomed, least) {
    const above = [], found = [];
    for (let node = zoomed; node.parent; node = node.parent) above.unshift(node);
    above.forEach((node, depth) => found.push({ node, depth, left: 0, width: 1, isAbove: node !== zoomed }));
    const place = (node, depth, left, width) => {
      const scale = node.width > 0 ? width / node.width : 0, narrow = [];
      let at = left;
      for (const child of node.children) {
        const size = child.width * scale;
        if (size < least) {
          narrow.push(child);
          continue;
        }
        found.push({ node: child, depth, left: at, width: size });
        place(child, depth + 1, at, size);
        at += size;
      }
      if (!narrow.length) return;
      const size = Math.min(Math.max(narrow.reduce((all, child) => all + child.width * scale, 0), least), left + width - at);
      const total_s = this.sides.map((_, side) => narrow.reduce((all, child) => all + child.total_s[side], 0));
      found.push({ depth, left: at, width: Math.max(size, least / 2), caller: node, total_s,
        merged: narrow.reduce((all, child) => all + this.nodes(child).length, 0) });
    };
    place(zoomed, above.length, 0, 1);
    return found;
  }

  // The node of the same path in this tree, or the last caller that it has.
  find(node) {
    if (!node?.parent) return this.top;
    const above = this.find(node.parent);
    return above.children.find(child => child.name === node.name && child.where === node.where) ?? above;
  }
}

function isBelow(node, above) {
  for (let at = node; at; at = at.parent) if (at === above) return true;
  return false;
}
