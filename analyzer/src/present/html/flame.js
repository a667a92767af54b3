"use strict";
// The flame graph: the call paths of the selection, callers above what they call, as wide as their time. A frame is an
// element of the page, so that names are cut, printed and read out like other text.

// Frames narrower than this many pixels are drawn as one, and have a name if they are as wide as that.
const NARROW = 2, NAMED = 16;

class Flame {
  constructor(root, source, selection) {
    Object.assign(this, { root, source, selection, back: [], kept: null });
    this.tree = null;
    this.part = name => root.querySelector(`[data-flame=${name}]`);
    this.drawing = this.part("frames");
    this.detail = this.part("detail");
    this.controls();
    this.drawing.addEventListener("click", event => this.zoom(event.target.closest("[data-frame]")));
    this.drawing.addEventListener("keydown", event => this.key(event));
    for (const name of ["pointerover", "focusin"]) {
      this.drawing.addEventListener(name, event => this.tell(event.target.closest("[data-frame]")));
    }
    new ResizeObserver(() => {
      if (this.tree && Math.abs(this.drawing.clientWidth - this.drawn) > 1) this.draw();
    }).observe(this.drawing);
  }

  controls() {
    this.part("back").addEventListener("click", () => this.goBack());
    this.part("whole").addEventListener("click", () => this.show(this.tree.top));
    this.part("find").addEventListener("input", () => this.mark());
    this.part("keep").addEventListener("click", () => {
      this.kept = this.selection.copy();
      this.keptWords = this.selection.isEmpty ? "everything" : selectedParts(this.selection).map(([, words]) => words).join(", ");
      this.part("against").value = "kept";
      this.shown = null;
      this.update();
    });
    this.part("against").addEventListener("change", () => this.update());
  }

  // The selection has changed, or more data have arrived.
  update() {
    const { choices, words } = this.choices(), select = this.part("against"), chosen = choices[select.value] ? select.value : "";
    for (const option of select.options) {
      option.disabled = option.value !== "" && !choices[option.value];
      if (words[option.value]) option.textContent = words[option.value];
    }
    select.value = chosen;
    const sides = (choices[chosen] ?? [[this.selection, undefined]]).map(([selection, ranks]) => {
      const samples = this.source.samplesIn(selection.time);
      return samples && { samples, selection, ranks };
    });
    this.isWaiting = sides.some(side => !side);
    if (this.isWaiting) return this.say("Samples are being read.");
    // More data of the timeline change nothing here.
    const shown = [this.selection.changes, chosen, ...sides.map(({ samples }) => samples)];
    if (this.shown?.every((part, number) => part === shown[number]) && this.shown.length === shown.length) return;
    this.shown = shown;
    for (const side of sides) side.sums = side.samples.sums(partOf(side.selection, side.ranks));
    this.scale(sides);
    const zoomed = this.zoomed, before = this.tree;
    this.tree = new CodeTree(sides);
    this.back = [];
    this.detail.textContent = "";
    this.zoomed = before ? this.tree.find(zoomed) : this.tree.top;
    this.say(this.summary());
    this.draw();
  }

  // What the selection, B, can be compared with: by name, A and B with their ranks.
  choices() {
    const { selection, source, kept } = this, choices = {}, words = {}, ranks = selection.effectiveRanks;
    const { delayingRank } = selection, isCause = selection.cause !== null && !selection.ranks && delayingRank !== null;
    if (ranks) {
      const of = isCause ? new Set([delayingRank]) : ranks, among = isCause ? ranks : new Set(source.rows.map(row => row.rank));
      const others = new Set([...among].filter(rank => !of.has(rank)));
      if (others.size) choices.others = [[selection, others], [selection, of]];
    }
    words.others = isCause ? `rank ${delayingRank} with those that wait` : "with the other ranks";
    if (kept) choices.kept = [[kept, undefined], [selection, undefined]];
    if (kept) words.kept = `with what was kept: ${this.keptWords}`;
    return { choices, words };
  }

  // Two sides are compared by rank, and of times of different lengths by the length of B.
  scale(sides) {
    for (const side of sides) side.scale = sides.length === 1 ? 1 : 1 / Math.max(1, side.sums.ranks.size);
    if (sides.length === 1) return;
    const [a, b] = sides.map(({ selection }) => selection.time ? selection.time[1] - selection.time[0] : this.source.length_s);
    if (Math.abs(a - b) > 1e-3 * b) sides[0].scale *= b / a;
  }

  summary() {
    const { sides, two, all } = this.tree, { cutsTime } = this.selection, [side] = sides.slice(-1), notes = [];
    const samples = sides.map(({ sums }) => integer(sums.samples));
    if (!all.samples.some(Boolean)) notes.push("No sample in the selection");
    else if (two) {
      const ranks = sides.map(({ sums }) => plural(sums.ranks.size, "rank"));
      notes.push(`A: ${ranks[0]}, ${seconds(all.total_s[0])} a rank, ${samples[0]} samples`,
        `B, the selection: ${ranks[1]}, ${seconds(all.total_s[1])} a rank, ${samples[1]} samples`);
      if (Math.abs(sides[0].scale * sides[0].sums.ranks.size - 1) > 1e-9) notes.push("A is scaled to the length of B");
    } else {
      notes.push(`${this.selection.isEmpty ? "All sampled code" : "In the selection"}: ${seconds(all.total_s[0])} in ${samples[0]} samples`);
    }
    // Samples lie in bins; a time that was asked for as such begins and ends with one.
    const isCoarse = cutsTime && side.samples.step_s > Math.min(...side.samples.threads.map(thread => thread.period_s));
    if (isCoarse) notes.push(`samples are known here in steps of ${seconds(side.samples.step_s)}`);
    if (cutsTime) notes.push("time in the kernel is known of the whole run only");
    if (side.samples.merged.size) notes.push(`paths with few samples are together under “(other paths)”`);
    return `${notes.join(" · ")}.`;
  }

  draw() {
    const { tree } = this, width = this.drawing.clientWidth || 1000, hadFocus = this.drawing.contains(document.activeElement);
    this.drawn = width;
    this.frames = tree.frames(this.zoomed, NARROW / width);
    const elements = this.frames.map((frame, number) => this.element(frame, number));
    this.drawing.replaceChildren(...elements);
    this.drawing.style.height = `calc(var(--row) * ${1 + Math.max(0, ...this.frames.map(frame => frame.depth))})`;
    const at = elements[Math.max(0, this.frames.findIndex(frame => frame.node === this.zoomed))];
    at?.setAttribute("tabindex", "0");
    if (hadFocus) at?.focus({ preventScroll: true });
    this.part("back").disabled = !this.back.length;
    this.part("whole").disabled = this.zoomed === tree.top;
    this.part("legend-one").hidden = tree.two;
    this.part("legend-two").hidden = !tree.two;
    this.mark();
  }

  element(frame, number) {
    const element = document.createElement("div"), { node, depth, left, width } = frame;
    element.className = `frame ${this.kindOf(frame)}`;
    element.classList.toggle("above", Boolean(frame.isAbove));
    element.dataset.frame = number;
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", depth + 1);
    element.tabIndex = -1;
    element.title = this.describe(frame);
    element.setAttribute("aria-label", element.title);
    if (width * this.drawn >= NAMED) element.textContent = node ? `${node.name} ${this.amount(node)}` : `${frame.merged} more`;
    Object.assign(element.style, { left: `${left * 100}%`, width: `${width * 100}%`, top: `calc(var(--row) * ${depth})` });
    return element;
  }

  kindOf({ node }) {
    if (!node) return "merged";
    if (!this.tree.two || node.origin === "special") return node.origin;
    return !node.isCertain ? "same" : node.difference > 0 ? "longer" : "shorter";
  }

  amount(node) {
    if (!this.tree.two) return this.tree.share(node) === null ? seconds(node.total_s[0]) : percent(this.tree.share(node));
    return node.isCertain ? signed(node.difference) : node.samples.some(Boolean) ? "≈" : "";
  }

  // Everything that is known of a frame, in words.
  describe({ node, merged, total_s, caller }) {
    const { two, sides } = this.tree, label = ["A", "B"];
    if (!node) return `${plural(merged, "path")} too narrow to draw, called by ${caller.name}: ${total_s.map(seconds).join(" and ")}`;
    const parts = [node.where && node.where !== "–" ? `${node.name} (${node.where})` : node.name];
    sides.forEach((_, side) => {
      const share = this.tree.share(node, side), error = Math.sqrt(node.variance[side]);
      const times = [`total ${seconds(node.total_s[side])}${error ? ` ± ${seconds(error)}` : ""}`, `self ${seconds(node.self_s[side])}`];
      if (share !== null) times.push(`${percent(share)} of computing`);
      if (node.samples[side]) times.push(plural(node.samples[side], "sample"));
      parts.push(`${two ? `${label[side]}: ` : ""}${times.join(", ")}`);
    });
    if (two) {
      const error = Math.sqrt(node.variance[0] + node.variance[1]);
      parts.push(`B − A: ${signed(node.difference)}${error ? ` ± ${seconds(error)}` : ""}${node.isCertain ? "" : ", may be chance"}`);
    }
    if (node.merged) parts.push(`at least ${plural(node.merged, "path")} with few samples`);
    return parts.join(" · ");
  }

  tell(element) {
    if (element) this.detail.textContent = this.describe(this.frames[element.dataset.frame]);
  }

  say(text) {
    const note = this.part("note");
    if (note.textContent !== text) note.textContent = text;
  }

  zoom(element) {
    const frame = element && this.frames[element.dataset.frame];
    if (frame) this.show(frame.node ?? frame.caller);
  }

  show(node) {
    if (node === this.zoomed) return;
    this.back.push(this.zoomed);
    this.zoomed = node;
    this.draw();
  }

  goBack() {
    if (!this.back.length) return;
    this.zoomed = this.back.pop();
    this.draw();
  }

  // Marks the functions whose names contain what is looked for, and says how much time they have.
  mark() {
    const wanted = this.part("find").value.trim().toLowerCase(), matches = node => Boolean(node?.name.toLowerCase().includes(wanted));
    for (const element of this.drawing.children) {
      const found = wanted !== "" && matches(this.frames[element.dataset.frame].node);
      element.classList.toggle("found", found);
      element.classList.toggle("faded", wanted !== "" && !found);
    }
    this.part("found").textContent = wanted && this.tree ? this.foundWords(matches) : "";
  }

  foundWords(matches) {
    // What a function calls that matches, too, counts once.
    const found = this.tree.nodes(this.tree.all).filter(matches);
    const isOuter = node => {
      for (let at = node.parent; at; at = at.parent) if (matches(at)) return false;
      return true;
    };
    const sums = this.tree.sides.map((_, side) => found.filter(isOuter).reduce((sum, node) => sum + node.total_s[side], 0));
    return `${plural(found.length, "path")}, ${sums.map(seconds).join(" and ")}`;
  }

  // Up and down go to callers and what they call, left and right to frames beside them.
  key(event) {
    const element = event.target.closest("[data-frame]"), frame = element && this.frames[element.dataset.frame];
    if (!frame || event.ctrlKey || event.metaKey || event.altKey) return;
    const beside = step => {
      const row = this.frames.filter(one => one.depth === frame.depth).sort((a, b) => a.left - b.left);
      return row[row.indexOf(frame) + step];
    };
    const below = () => this.frames.filter(one => one.depth === frame.depth + 1 && (one.node?.parent ?? one.caller) === frame.node)
      .sort((a, b) => b.width - a.width)[0];
    const above = () => this.frames.find(one => one.node && one.node === (frame.node?.parent ?? frame.caller));
    const steps = { ArrowUp: above, ArrowDown: below, ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), Home: () => this.frames[0] };
    const actions = { Enter: () => this.zoom(element), " ": () => this.zoom(element), Backspace: () => this.goBack(),
      Escape: this.zoomed === this.tree.top ? null : () => this.show(this.tree.top) };
    if (steps[event.key]) this.focus(steps[event.key]());
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  }

  focus(frame) {
    const element = frame && this.drawing.children[this.frames.indexOf(frame)];
    if (!element) return;
    this.drawing.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    element.tabIndex = 0;
    element.focus();
  }
}

function signed(value) {
  return `${value < 0 ? "−" : "+"}${seconds(Math.abs(value))}`;
}
