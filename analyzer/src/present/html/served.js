"use strict";
// Parts that the viewer computes while the reader already sees the timeline: causes of waits, then summary and panels.

function openSource(data) {
  return new TileSource(data);
}

async function loadLaterParts(source, { causes, panels, link }) {
  const get = async path => {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  };
  try {
    readLanes(source, await get("lanes"));
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
  followRun(link);
}

// While the run goes on, loads the page again and again, and a last time when it has ended. The address keeps selection and
// zoom; nothing is loaded while the reader is at something.
function followRun(link) {
  const KEY = "gammachi-scrolled", scrolled = sessionStorage.getItem(KEY);
  if (scrolled !== null) {
    sessionStorage.removeItem(KEY);
    scrollTo(0, Number(scrolled));
  }
  const mark = document.getElementById("live");
  if (!mark) return;
  let down = false;
  addEventListener("pointerdown", () => { down = true; }, true);
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => { down = false; }, true);
  const isBusy = () => down || document.hidden || document.querySelector("dialog[open]") || document.activeElement?.matches("input, select");
  const again = async () => {
    if (isBusy()) return void setTimeout(again, 500);
    // Without the viewer there is nothing newer, and the page stays.
    try {
      await fetch("live");
    } catch {
      mark.textContent = `${mark.textContent} (gammachi view has ended)`;
      return;
    }
    link.write();
    sessionStorage.setItem(KEY, String(scrollY));
    location.reload();
  };
  setTimeout(again, 1000 * Number(mark.dataset.every));
}
