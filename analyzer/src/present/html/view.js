"use strict";
// Starts the timeline that a server stands behind.

document.documentElement.classList.add("js");
const root = document.getElementById("timeline");
const data = document.getElementById("timeline-data");
try {
  window.gammachi = new Timeline(root, new TileSource(JSON.parse(data.textContent)));
  root.hidden = false;
  fetch("causes").then(answer => answer.json()).then(causes => {
    const { source } = window.gammachi;
    readCauses(source, causes);
    source.hasCauses = true;
    window.gammachi.redraw();
    const strip = document.getElementById("iterations");
    if (source.iterations.length) window.gammachi.iterations = new Iterations(strip, window.gammachi);
  }).catch(error => window.gammachi.source.fail(error));
} catch (error) {
  root.hidden = false;
  root.querySelector("[data-detail]").textContent = `the timeline cannot be drawn here: ${error.message}`;
  console.error(error);
}
