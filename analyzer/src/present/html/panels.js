"use strict";
// The panels below the timeline. A click on a row selects what it shows; rows outside the selection are hidden, and cells
// show the sums of the selection instead of the run's.

class Panels {
  constructor(root, source, selection, timeline) {
    Object.assign(this, { root, source, selection, timeline, figures: new Figures(source) });
    this.bar = document.getElementById("selection");
    root.querySelectorAll("table[data-sortable]").forEach(sortable);
    root.querySelectorAll("[data-switch]").forEach(switchable);
    this.matrices = [...root.querySelectorAll("svg[data-places]")].map(svg => new MatrixMarks(svg, source, selection));
    this.table = id => root.querySelector(`#${id}`);
    this.makeChoosable();
    const flame = root.querySelector("[aria-labelledby=flame]");
    this.flame = flame && new Flame(flame, source, selection);
    source.hasSamples = Boolean(this.flame);
    this.bar.querySelector("[data-do=clear-selection]").addEventListener("click", () => selection.clear());
    this.bar.querySelector("[data-do=zoom-selection]").addEventListener("click", () => timeline?.zoomToSelection());
    selection.onchange(() => this.update());
  }

  rows(id) {
    const table = this.table(id);
    return table ? [...table.tBodies[0].rows].filter(row => row.cells.length > 1) : [];
  }

  // Puts a button into the first cell of a row that selects what the row shows; so does a click anywhere in the row.
  choosable(row, choose) {
    const cell = row.cells[0], button = document.createElement("button");
    button.type = "button";
    button.className = "pick";
    button.setAttribute("aria-pressed", "false");
    button.append(...cell.childNodes);
    cell.append(button);
    row.classList.add("choosable");
    row.addEventListener("click", event => {
      if (getSelection().toString() && !event.target.closest("button")) return;
      choose(event);
    });
  }

  makeChoosable() {
    const { selection } = this;
    for (const row of this.rows("rank-table")) {
      this.choosable(row, event => this.chooseRank(Number(row.dataset.rank), event));
    }
    for (const row of this.rows("wait-table")) this.choosable(row, () => this.chooseCause(Number(row.dataset.group)));
    document.querySelectorAll("button[data-cause]").forEach(button =>
      button.addEventListener("click", () => this.chooseCause(Number(button.dataset.cause))));
    for (const row of this.rows("region-table")) this.choosable(row, () => selection.toggle("region", row.dataset.region));
    for (const row of this.rows("code-part-table")) {
      if (row.dataset.region !== undefined) this.choosable(row, () => selection.toggle("region", row.dataset.region));
    }
    for (const id of ["call-table", "site-table"]) {
      for (const row of this.rows(id)) this.choosable(row, () => selection.toggle("fn", row.dataset.function));
    }
    for (const id of ["longest-table", "slow-table"]) {
      for (const row of this.rows(id)) this.choosable(row, () => this.chooseTime(row));
    }
    for (const row of this.rows("pair-table")) {
      this.choosable(row, () => {
        const ranks = ranksOf(row.dataset.ranks);
        selection.set({ ranks: sameRanks(ranks, selection.ranks) ? null : ranks });
      });
    }
  }

  chooseRank(rank, event) {
    const { selection } = this;
    if (event.shiftKey && this.lastRank !== undefined) {
      const [low, high] = [Math.min(rank, this.lastRank), Math.max(rank, this.lastRank)];
      selection.set({ ranks: ranksOf(`${low}-${high}`) });
    } else {
      selection.toggleRank(rank, event.ctrlKey || event.metaKey);
      this.lastRank = rank;
    }
  }

  chooseCause(group) {
    const row = this.table("wait-table")?.querySelector(`tr[data-group="${group}"]`);
    const ranks = row ? ranksOf(row.dataset.ranks) : null;
    if (ranks && row.dataset.delayed_by !== undefined) ranks.add(Number(row.dataset.delayed_by));
    this.selection.causeRanks = ranks;
    this.selection.delayingRank = row?.dataset.delayed_by === undefined ? null : Number(row.dataset.delayed_by);
    this.selection.causeWords = row ? `${cellOf(row, "state").textContent} in ${cellOf(row, "place").textContent}` : "cause";
    this.selection.toggle("cause", group);
  }

  chooseTime(row) {
    const time = [Number(row.dataset.from), Number(row.dataset.to)], now = this.selection.time;
    if (now && now[0] === time[0] && now[1] === time[1]) return this.selection.set({ time: null });
    this.selection.set({ time });
    const margin = (time[1] - time[0]) * 0.3, rank = row.dataset.ranks ? Number(row.dataset.ranks) : null;
    this.timeline?.move(time[0] - margin, time[1] + margin);
    if (rank !== null) this.timeline?.reveal(this.source.rows.findIndex(of => of.rank === rank && !of.thread));
  }

  update() {
    const { selection, source } = this;
    const time = selection.isEmpty ? null : this.figures.time(selection);
    // For the whole run the table knows more than the single calls: MPI_Init comes before them.
    const part = selection.cutsTime || selection.effectiveRanks;
    const calls = part ? this.figures.calls(selection) : null;
    const waits = selection.isEmpty ? null : this.figures.waits(selection);
    const pairs = selection.isEmpty ? null : this.figures.pairs(selection);
    this.ranks(time);
    this.causes(waits);
    this.byTime();
    this.regions();
    this.calls(calls);
    this.pairs(pairs);
    this.code();
    this.flame?.update();
    this.matrices.forEach(matrix => matrix.update());
    for (const table of this.root.querySelectorAll("table")) {
      const sorting = sortingOf(table);
      if (sorting) sortTable(table, ...sorting);
    }
    showSelection(this.bar, selection, source, { time, calls, waits, pairs }, this.figures);
  }

  press(row, pressed) {
    row.classList.toggle("chosen", pressed);
    row.querySelector(".pick")?.setAttribute("aria-pressed", String(pressed));
  }

  // Shows a value of the selection in a cell: undefined restores the run's, null means not known.
  setCell(cell, value, format) {
    const shown = cell.querySelector(".pick") ?? cell;
    cell.ofRun ??= { value: cell.dataset.value, text: shown.textContent };
    const { ofRun } = cell;
    cell.dataset.value = value === undefined ? ofRun.value : value ?? "";
    shown.textContent = value === undefined ? ofRun.text : value === null ? "–" : format(value);
  }

  // Says above a table what its figures are for.
  scope(id, text) {
    const note = this.table(id)?.closest("section").querySelector("[data-scope]");
    if (note) note.textContent = text;
  }

  ranks(time) {
    const { selection, source } = this, cut = selection.cutsTime;
    const rowOf = new Map(source.rows.flatMap((row, index) => row.thread ? [] : [[row.rank, index]]));
    for (const row of this.rows("rank-table")) {
      const rank = Number(row.dataset.rank), chosen = selection.hasRank(rank);
      this.press(row, Boolean(selection.ranks?.has(rank)));
      row.classList.toggle("faded", !chosen);
      const kinds = cut ? time.rows.get(rowOf.get(rank)) : undefined;
      const parts = kinds && this.figures.parts(kinds), all = kinds?.reduce((sum, value) => sum + value, 0);
      const ofPart = value => !cut || !chosen ? undefined : parts ? value(parts) : null, unknown = ofPart(() => null);
      const known = {
        compute_s: ofPart(p => p.computing), lost_s: ofPart(p => p.computing === null ? null : all - p.computing),
        mpi_s: ofPart(p => p.mpi), recorder_s: ofPart(p => p.recorder),
        other_s: ofPart(p => p.computing === null ? null : p.other) };
      for (const cell of row.cells) {
        const { key } = cell.dataset;
        if (!/_s$|^events$/.test(key ?? "")) continue;
        this.setCell(cell, key in known ? known[key] : unknown, seconds);
      }
      drawBar(row.querySelector(".bar"), cut && chosen ? kinds ?? [] : null, source.kinds);
    }
    this.scope("rank-table", !cut ? "" : `In the selection${time.final ? "" : " (still reading)"}; a dash: known only for the whole run.`);
  }

  causes(waits) {
    const { selection, source } = this, sums = new Map();
    for (const [wait, time] of waits ?? []) {
      const sum = sums.get(wait.group) ?? { count: 0, time: 0 };
      sum.count++;
      sum.time += time;
      sums.set(wait.group, sum);
    }
    const filters = selection.cutsTime || selection.ranks;
    for (const row of this.rows("wait-table")) {
      const group = Number(row.dataset.group), sum = filters ? sums.get(group) : undefined, fn = selection.fn;
      const chosen = selection.cause === group;
      this.press(row, chosen);
      const counts = selection.cause === null || chosen;
      row.hidden = Boolean(filters && counts && !sum) || Boolean(fn && !cellOf(row, "place").textContent.startsWith(fn));
      this.setCell(cellOf(row, "count"), sum?.count, integer);
      this.setCell(cellOf(row, "seconds"), sum?.time, seconds);
    }
    document.querySelectorAll("button[data-cause]").forEach(button =>
      button.setAttribute("aria-pressed", String(selection.cause === Number(button.dataset.cause))));
    this.scope("wait-table", !filters ? "" : source.waitsLeftOut
      ? `In the selection, at least: only the ${integer(source.waits.length)} longest waits are known here.` : "In the selection.");
  }

  byTime() {
    const { selection } = this, fn = selection.fn;
    for (const id of ["longest-table", "slow-table", "phase-table"]) {
      let hidden = 0;
      for (const row of this.rows(id)) {
        const ranks = row.dataset.ranks, delayed_by = row.dataset.delayed_by;
        const ofRanks = ranks === undefined || selection.hasRank(Number(ranks))
          || delayed_by !== undefined && selection.effectiveRanks?.has(Number(delayed_by));
        const from = Number(row.dataset.from), to = Number(row.dataset.to);
        const ofFunction = !fn || id !== "longest-table" || row.textContent.includes(fn);
        row.hidden = !(ofRanks && ofFunction && selection.touches(from, to));
        hidden += row.hidden;
        this.press(row, Boolean(selection.time && selection.time[0] === from && selection.time[1] === to));
      }
      if (id === "longest-table") this.scope(id, hidden ? `${plural(hidden, "wait")} outside the selection ${hidden === 1 ? "is" : "are"} hidden.` : "");
    }
  }

  regions() {
    const { selection, source } = this;
    const seen = new Set();
    for (const one of source.regions) {
      if (selection.hasRank(source.rows[one.row].rank) && selection.touches(one.from, one.to)) seen.add(one.name);
    }
    for (const row of this.rows("region-table")) {
      const name = row.dataset.region;
      this.press(row, selection.region === name);
      row.hidden = Boolean(selection.time || selection.effectiveRanks) && source.regions.length > 0 && !seen.has(name);
    }
    this.scope("region-table", selection.isEmpty ? "" : "Regions that overlap the selection; figures are for the whole run.");
  }

  calls(calls) {
    const { selection } = this;
    for (const row of this.rows("call-table")) {
      const name = row.dataset.function, sums = calls?.get(name), known = calls && !selection.isEmpty;
      this.press(row, selection.fn === name);
      row.hidden = Boolean(known && !sums?.count || selection.fn && selection.fn !== name);
      const { count, time, max, rank } = sums ?? {};
      const values = known && sums ? { count, time_s: time, mean_s: count ? time / count : null, max_s: max, max_rank: rank } : {};
      const counts = new Set(["count", "max_rank"]);
      for (const key of ["count", "time_s", "mean_s", "max_s", "max_rank"]) {
        this.setCell(cellOf(row, key), values[key], counts.has(key) ? integer : seconds);
      }
      for (const cell of [cellOf(row, "share"), cellOf(row, "bytes")]) {
        if (cell) this.setCell(cell, known && sums ? null : undefined, bytes);
      }
    }
    for (const row of this.rows("site-table")) {
      const name = row.dataset.function;
      this.press(row, selection.fn === name);
      row.hidden = Boolean(calls && !selection.isEmpty && !calls.get(name)?.count || selection.fn && selection.fn !== name);
    }
    const isWholeRun = selection.isEmpty || !selection.cutsTime && !selection.effectiveRanks;
    this.scope("call-table", isWholeRun ? "" : calls ? "Calls that overlap the selection, with their time in it."
      : "Figures for the whole run: the single calls of this selection are not loaded. Zoom in until the timeline names calls.");
    this.scope("site-table", isWholeRun ? "" : "Functions of the selection; figures are for the whole run.");
  }

  code() {
    const { selection, source } = this, rows = this.rows("code-table"), part = selection.cutsTime || selection.effectiveRanks;
    const samples = rows.length && part ? source.samplesIn(selection.time) : null, sums = samples?.sums(partOf(selection));
    for (const row of rows) {
      const { number } = row.dataset, sum = number === undefined ? undefined : sums?.functions.get(Number(number));
      row.hidden = Boolean(sums && number !== undefined && !sum);
      const known = sum ? { self_s: sum.self_s, error_s: Math.sqrt(sum.variance), total_s: sum.total_s,
        share: sum.self_s / (sums.sampled_s + sums.lost_s) } : {};
      for (const cell of row.cells) {
        const { key } = cell.dataset;
        if (key === "function" || key === "place") continue;
        this.setCell(cell, sums ? known[key] ?? null : undefined, key === "share" ? percent : seconds);
      }
    }
    for (const row of this.rows("code-part-table")) this.press(row, row.dataset.region !== undefined && selection.region === row.dataset.region);
    for (const id of ["code-part-table", "code-line-table"]) this.scope(id, part ? "Figures for the whole run." : "");
    this.scope("code-table", !part ? "" : sums ? "In the selection; a dash: known only for the whole run."
      : "Figures for the whole run: the samples of this selection are being read.");
  }

  pairs(pairs) {
    const { selection } = this, ranks = selection.effectiveRanks;
    for (const row of this.rows("pair-table")) {
      const [from, to] = [Number(row.dataset.sender), Number(row.dataset.receiver)], sums = pairs?.get(`${from}>${to}`);
      this.press(row, sameRanks(ranksOf(row.dataset.ranks), selection.ranks));
      row.hidden = pairs && !selection.isEmpty ? !sums : Boolean(ranks && !ranks.has(from) && !ranks.has(to));
      this.setCell(row.cells[2], sums?.count, integer);
      this.setCell(row.cells[3], sums?.bytes, bytes);
    }
    const isWholeRun = selection.isEmpty || !ranks && !selection.cutsTime;
    this.scope("pair-table", isWholeRun ? "" : pairs ? "In the selection."
      : "Figures for the whole run: the single messages of this selection are not loaded.");
  }
}

// The cell of a row in the column with this key, or null.
function cellOf(row, key) {
  return row.querySelector(`td[data-key="${key}"]`);
}

function sameRanks(a, b) {
  return Boolean(a && b && a.size === b.size && [...a].every(rank => b.has(rank)));
}

// Draws a bar of seconds by kind, or restores the run's bar.
function drawBar(svg, kinds, names) {
  if (!svg) return;
  svg.ofRun ??= { nodes: [...svg.childNodes], label: svg.getAttribute("aria-label") };
  if (!kinds) {
    svg.replaceChildren(...svg.ofRun.nodes);
    svg.setAttribute("aria-label", svg.ofRun.label);
    return;
  }
  const all = kinds.reduce((sum, value) => sum + value, 0) || 1, nodes = [], words = [];
  let at = 0;
  kinds.forEach((value, kind) => {
    if (!(value > 0)) return;
    const rect = document.createElementNS(svg.namespaceURI, "rect");
    for (const [name, of] of Object.entries({ class: `k${kind}`, x: at, width: value / all * 100, height: 10 })) rect.setAttribute(name, of);
    at += value / all * 100;
    nodes.push(rect);
    words.push(`${names[kind]} ${seconds(value)}`);
  });
  const title = document.createElementNS(svg.namespaceURI, "title");
  title.textContent = words.join(", ");
  svg.replaceChildren(title, ...nodes);
  svg.setAttribute("aria-label", words.join(", "));
}
