"use strict";
// The bar that names the selection and gives its sums.

function showSelection(bar, selection, source, { time, calls, waits, pairs }, figures) {
  bar.hidden = selection.isEmpty;
  const chips = bar.querySelector("[data-chips]"), status = bar.querySelector("[data-figures]");
  if (selection.isEmpty) {
    chips.replaceChildren();
    status.textContent = "";
    return;
  }
  const chip = (part, text) => {
    const button = document.createElement("button"), cross = document.createElement("span");
    button.type = "button";
    button.className = "chip";
    button.setAttribute("aria-label", `Deselect ${text}`);
    cross.textContent = "×";
    cross.setAttribute("aria-hidden", "true");
    button.append(text, cross);
    button.addEventListener("click", () => selection.set({ [part]: null }));
    return button;
  };
  chips.replaceChildren(...selectedParts(selection).map(([part, words]) => chip(part, words)));

  const parts = [], rows = time.rows.size;
  if (!time.final) parts.push("still reading");
  const span = selection.time ? `${seconds(selection.time[1] - selection.time[0])}, ` : "";
  parts.push(`${span}${plural(rows, "row")}, ${seconds(time.time)} in total`);
  const share = value => `${seconds(value)} (${percent(value / (time.time || 1))})`;
  const { computing, mpi } = figures.parts(time.kinds);
  if (computing !== null) parts.push(`computing (γ) ${share(computing)}`);
  parts.push(`in MPI ${share(mpi)}`);
  const waiting = waits.reduce((sum, [, seconds]) => sum + seconds, 0);
  if (source.waits.length) parts.push(`waiting ${source.waitsLeftOut ? "at least " : ""}${share(waiting)}, ${plural(waits.length, "wait")}`);
  if (selection.fn !== null) {
    const sums = calls?.get(selection.fn);
    if (calls) parts.push(`${selection.fn}: ${plural(sums?.count ?? 0, "call")}, ${seconds(sums?.time ?? 0)}`);
  } else if (calls) {
    parts.push(plural([...calls.values()].reduce((sum, entry) => sum + entry.count, 0), "call"));
  }
  if (pairs) {
    const all = [...pairs.values()];
    parts.push(`${plural(all.reduce((sum, entry) => sum + entry.count, 0), "message")}, ${bytes(all.reduce((sum, entry) => sum + entry.bytes, 0))}`);
  }
  const text = parts.join(" · ");
  if (status.textContent !== text) status.textContent = text;
}

// What is selected: each part with its words.
function selectedParts(selection) {
  const { time, ranks, region, cause, causeWords, fn } = selection, parts = [];
  if (time) parts.push(["time", `${moment(time[0], time[1] - time[0])} to ${moment(time[1], time[1] - time[0])}`]);
  if (ranks) parts.push(["ranks", `rank${ranks.size > 1 ? "s" : ""} ${shortList(ranks)}`]);
  if (region !== null) parts.push(["region", `region ${region}`]);
  if (cause !== null) parts.push(["cause", causeWords ?? "cause"]);
  if (fn !== null) parts.push(["fn", fn]);
  return parts;
}

// A moment, with as many digits as the length of the time around it needs.
function moment(at, length) {
  const [scale, unit] = at >= 0.9995 ? [1, "s"] : at >= 0.9995e-3 ? [1e3, "ms"] : [1e6, "µs"];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.max(length, 1e-9) * scale)) + 2));
  return `${(at * scale).toFixed(digits)} ${unit}`;
}

function shortList(ranks) {
  const text = rankList(ranks);
  return text.length > 40 ? `${text.slice(0, 38)}… (${ranks.size})` : text;
}
