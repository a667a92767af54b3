"use strict";
// What a server finds while the timeline is looked at already: causes of waits, then summary and panels.

function openSource(data) {
  return new TileSource(data);
}

async function laterParts(source, { causes, panels }) {
  const answer = async path => {
    const found = await fetch(path);
    if (!found.ok) throw new Error(`status ${found.status}`);
    return found.json();
  };
  try {
    readCauses(source, await answer("causes"));
    source.hasCauses = true;
    causes();
    const parts = await answer("parts"), found = new DOMParser().parseFromString(parts.html, "text/html");
    source.computing = parts.computing;
    for (const id of ["summary", "panels"]) document.getElementById(id).replaceWith(document.adoptNode(found.getElementById(id)));
    source.hasParts = true;
    panels();
  } catch (error) {
    source.fail(error);
    const wait = document.getElementById("parts-wait");
    if (wait) wait.textContent = `No verdict and tables: ${error.message}. In a terminal: gammachi report.`;
  }
}
