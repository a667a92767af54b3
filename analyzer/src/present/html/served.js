"use strict";
// Parts that the viewer computes while the reader already sees the timeline: causes of waits, then summary and panels.

function openSource(data) {
  return new TileSource(data);
}

async function loadLaterParts(source, { causes, panels }) {
  const get = async path => {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  };
  try {
    readCauses(source, await get("causes"));
    source.hasCauses = true;
    causes();
    const parts = await get("parts"), html = new DOMParser().parseFromString(parts.html, "text/html");
    source.computing = parts.computing;
    for (const id of ["summary", "panels"]) document.getElementById(id).replaceWith(document.adoptNode(html.getElementById(id)));
    source.hasParts = true;
    panels();
  } catch (error) {
    source.fail(error);
    const wait = document.getElementById("parts-wait");
    if (wait) wait.textContent = `No verdict or tables: ${error.message}. In a terminal: gammachi report.`;
  }
}
