"use strict";
// Starts the timeline that a server stands behind.

document.documentElement.classList.add("js");
const root = document.getElementById("timeline");
const data = document.getElementById("timeline-data");
try {
  window.gammachi = new Timeline(root, new TileSource(JSON.parse(data.textContent)));
  root.hidden = false;
} catch (error) {
  root.hidden = false;
  root.querySelector("[data-detail]").textContent = `the timeline cannot be drawn here: ${error.message}`;
  console.error(error);
}
