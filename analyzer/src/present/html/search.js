"use strict";
// The search field: finds functions, call sites, regions, ranks and hosts, and selects them.

const MOST_HITS = 14;

class Search {
  constructor(field, list, { source, selection, timeline }) {
    Object.assign(this, { field, list, source, selection, timeline, at: -1, hits: [] });
    field.addEventListener("input", () => this.find());
    field.addEventListener("focus", () => this.find());
    field.addEventListener("blur", () => this.close());
    field.addEventListener("keydown", event => this.key(event));
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.hits.length) {
      event.preventDefault();
      this.point((this.at + step + this.hits.length) % this.hits.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.choose(this.hits[Math.max(0, this.at)]);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      this.field.value = "";
      this.close();
      this.field.blur();
    }
  }

  // [kind, text, action] of everything that matches; matches at the beginning come first.
  candidates(text) {
    const { source, selection } = this, found = [], wanted = text.toLowerCase();
    const ranks = text.match(/^(?:ranks?\s*)?(\d[\d,\s-]*)$/i);
    if (ranks) {
      const all = new Set(source.rows.map(row => row.rank)), chosen = new Set([...ranksOf(ranks[1], 1e5)].filter(rank => all.has(rank)));
      if (chosen.size) found.push(["rank", `rank${chosen.size > 1 ? "s" : ""} ${shortList(chosen)}`, () => this.chooseRanks(chosen)]);
    }
    const add = (kind, name, action) => {
      if (name.toLowerCase().includes(wanted)) found.push([kind, name, action]);
    };
    const hosts = new Map();
    for (const row of source.rows) hosts.set(row.host, (hosts.get(row.host) ?? new Set()).add(row.rank));
    const functions = new Set([...document.querySelectorAll("#call-table tr[data-function]")].map(row => row.dataset.function));
    for (const name of functions.size ? functions : source.functions) add("function", name, () => selection.set({ fn: name }));
    for (const name of new Set(source.regions.map(region => region.name))) add("region", name, () => selection.set({ region: name }));
    for (const row of document.querySelectorAll("#site-table tr[data-function]")) {
      add("call site", `${cellOf(row, "place").textContent} · ${row.dataset.function}`, () => this.chooseSite(row));
    }
    for (const [host, ranks] of hosts) add("host", host, () => this.chooseRanks(ranks));
    const begins = ([, name]) => name.toLowerCase().replace("mpi_", "").startsWith(wanted.replace("mpi_", ""));
    return [...found.filter(begins), ...found.filter(one => !begins(one))];
  }

  chooseRanks(ranks) {
    this.selection.set({ ranks });
    this.timeline?.reveal(this.source.rows.findIndex(row => ranks.has(row.rank)));
  }

  chooseSite(row) {
    this.selection.set({ fn: row.dataset.function });
    row.scrollIntoView({ block: "center" });
    row.classList.add("found");
    setTimeout(() => row.classList.remove("found"), 2500);
  }

  find() {
    const text = this.field.value.trim();
    if (!text) return this.close();
    this.hits = this.candidates(text).slice(0, MOST_HITS);
    this.list.replaceChildren(...this.hits.map(([kind, name], number) => {
      const item = document.createElement("li"), small = document.createElement("small");
      item.id = `hit-${number}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      small.textContent = kind;
      item.append(name, " ", small);
      item.addEventListener("pointerdown", event => {
        event.preventDefault();
        this.choose(this.hits[number]);
      });
      return item;
    }));
    if (!this.hits.length) {
      const item = document.createElement("li");
      item.textContent = "nothing found";
      this.list.append(item);
    }
    this.list.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
    this.point(this.hits.length ? 0 : -1);
  }

  point(at) {
    this.at = at;
    [...this.list.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === at)));
    if (at >= 0) this.field.setAttribute("aria-activedescendant", `hit-${at}`);
    else this.field.removeAttribute("aria-activedescendant");
    this.list.children[at]?.scrollIntoView({ block: "nearest" });
  }

  choose(hit) {
    if (!hit) return;
    this.field.value = "";
    this.close();
    this.field.blur();
    hit[2]();
  }

  close() {
    this.list.hidden = true;
    this.hits = [];
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }
}
