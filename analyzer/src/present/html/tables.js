"use strict";
// Tables that sort by a click on a heading; without JavaScript they are plain tables.

function sortable(table) {
  table.querySelectorAll("th[data-sort]").forEach(head => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      sortTable(table, head.cellIndex, head.getAttribute("aria-sort") === "descending");
      table.dispatchEvent(new CustomEvent("sorted", { bubbles: true }));
    });
  });
}

// Sorts by a column, largest first unless `up`; cells without a value come last.
function sortTable(table, column, up) {
  const head = table.tHead?.rows[0].cells[column];
  if (!head?.hasAttribute("data-sort")) return;
  table.querySelectorAll("th[aria-sort]").forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)], [m, n] = [Number(x), Number(y)];
    if (x === "" || y === "") return (x === "") - (y === "");
    const order = Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n;
    return up ? order : -order;
  };
  const body = table.tBodies[0];
  [...body.rows].filter(row => row.cells.length > column).sort(compare).forEach(row => body.append(row));
}

// How a table is sorted, [column, up], or null.
function sortingOf(table) {
  const head = table.querySelector("th[aria-sort]");
  return head && [head.cellIndex, head.getAttribute("aria-sort") === "ascending"];
}

// A field that filters the rows of a table.
function filterable(field) {
  const table = document.getElementById(field.dataset.filters);
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}

// A menu that shows one of several parts.
function switchable(group) {
  const parts = document.querySelectorAll(`[data-part="${group.dataset.switch}"]`);
  const show = () => parts.forEach(part => { part.hidden = part.dataset.of !== group.value; });
  group.addEventListener("change", show);
  show();
}
