"use strict";
// Tables that sort by their heads and filter by a field; without JavaScript they are plain tables.

function sortable(table) {
  table.querySelectorAll("th[data-sort]").forEach(head => {
    const column = head.cellIndex, button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
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
      [...body.rows].sort(compare).forEach(row => body.append(row));
    });
  });
}

function filterable(field) {
  const table = document.getElementById(field.dataset.filters);
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
