"use strict";
// Starts what the page holds.

document.documentElement.classList.add("js");
document.querySelectorAll("table[data-sortable]").forEach(sortable);
document.querySelectorAll("input[data-filters]").forEach(filterable);
document.querySelectorAll("[data-switch]").forEach(group => {
  const parts = document.querySelectorAll(`[data-part="${group.dataset.switch}"]`);
  const show = () => parts.forEach(part => { part.hidden = part.dataset.of !== group.value; });
  group.addEventListener("change", show);
  show();
});
const root = document.getElementById("timeline");
const embedded = document.getElementById("timeline-data");
if (root && embedded) {
  try {
    window.gammachi = new Timeline(root, new EmbeddedSource(JSON.parse(embedded.textContent)));
    root.hidden = false;
    const strip = document.getElementById("iterations");
    if (strip && window.gammachi.source.iterations.length) window.gammachi.iterations = new Iterations(strip, window.gammachi);
  } catch (error) {
    root.hidden = false;
    root.querySelector("[data-detail]").textContent = `the timeline cannot be drawn here: ${error.message}`;
    console.error(error);
  }
}
