"use strict";
// Keeps the state of the page in its address: the part after # restores selection, zoom, order of rows and sorting.

class Link {
  constructor({ source, selection, timeline }) {
    Object.assign(this, { source, selection, timeline, written: null });
    const later = () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.write(), 200);
    };
    selection.onchange(later);
    timeline?.moves.push(later);
    document.addEventListener("sorted", later);
    addEventListener("hashchange", () => {
      if (location.hash !== this.written) this.read();
    });
  }

  write() {
    // Until the tables have arrived, the address keeps what it says about them.
    if (!this.panels) return;
    const state = new URLSearchParams(), { selection, timeline, source } = this;
    const digits = value => String(Number(value.toPrecision(12)));
    const put = (name, value) => value !== null && value !== undefined && value !== "" && state.set(name, value);
    if (timeline && timeline.view.to - timeline.view.from < source.length_s * 0.9999) {
      put("view", `${digits(timeline.view.from)},${digits(timeline.view.to)}`);
    }
    put("time", selection.time?.map(digits).join(","));
    put("ranks", selection.ranks && rankList(selection.ranks));
    put("region", selection.region);
    put("cause", selection.cause);
    put("function", selection.fn);
    if (timeline?.order && timeline.order !== "rank") put("order", timeline.order);
    if (timeline?.view.path) put("path", 1);
    const sorted = [...document.querySelectorAll("table[data-sortable]")].flatMap(table => {
      const sorting = sortingOf(table);
      return sorting ? [`${table.id}.${sorting[0]}.${sorting[1] ? "up" : "down"}`] : [];
    });
    put("sort", sorted.join(" "));
    const text = state.toString();
    if (!text && (this.written === null || !this.written)) return;
    this.written = text ? `#${text}` : "";
    // With nothing to keep, the address loses its hash.
    history.replaceState(null, "", this.written || location.href.split("#")[0]);
  }

  // Returns whether the address held a state to restore.
  read() {
    if (!location.hash.includes("=")) return false;
    const state = new URLSearchParams(location.hash.slice(1)), { selection, timeline, source } = this;
    const pair = name => {
      const values = (state.get(name) ?? "").split(",").map(Number);
      return values.length === 2 && values.every(Number.isFinite) && values[0] < values[1] ? values : null;
    };
    for (const one of (state.get("sort") ?? "").split(" ").filter(Boolean)) {
      const [id, column, direction] = one.split("."), table = document.getElementById(id);
      if (table?.matches("table[data-sortable]")) sortTable(table, Number(column), direction === "up");
    }
    if (timeline) {
      const order = timeline.root.querySelector("[data-do=order]"), wanted = state.get("order");
      if (wanted && [...order.options].some(option => option.value === wanted)) {
        order.value = wanted;
        order.dispatchEvent(new Event("change"));
      }
      if (state.get("path") && !timeline.view.path) timeline.root.querySelector("[data-do=path]")?.click();
      timeline.move(...(pair("view") ?? [0, source.length_s]));
    }
    const change = Selection.nothing(), cause = state.get("cause");
    change.time = pair("time");
    change.ranks = state.get("ranks") ? ranksOf(state.get("ranks"), 1e6) : null;
    change.region = state.get("region");
    change.fn = state.get("function");
    selection.set(change);
    if (cause !== null && this.panels) this.panels.chooseCause(Number(cause));
    if (change.ranks) timeline?.reveal(source.rows.findIndex(row => change.ranks.has(row.rank)));
    return true;
  }
}
