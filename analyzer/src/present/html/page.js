"use strict";
// Starts the page: a source, what is chosen of it, and the parts that show it.

function start() {
  const byId = id => document.getElementById(id), root = byId("timeline");
  const source = openSource(JSON.parse(byId("timeline-data").textContent)), selection = new Selection(source);
  selection.onchange(() => source.sumOver?.(selection.time));
  const timeline = root && new Timeline(root, source, selection);
  const link = new Link({ source, selection, timeline });
  const theme = new Theme(byId("theme"), () => timeline?.recolour());
  const search = new Search(byId("search"), byId("search-hits"), { source, selection, timeline });
  new Keys({ timeline, selection, theme, search, help: byId("help"), opener: byId("help-open") });
  window.gammachi = timeline ?? { source, selection };
  if (root) {
    root.hidden = false;
    timeline.resize();
  }

  const causes = () => {
    const strip = byId("iterations");
    root?.querySelectorAll("[data-do=waits], [data-do=culprit], [data-do=path]").forEach(button => { button.hidden = !source.waits.length; });
    if (strip && source.iterations.length) timeline.iterations = new Iterations(strip, timeline);
    timeline?.redraw();
  };
  const panels = () => {
    const made = new Panels(byId("panels"), source, selection, timeline);
    window.gammachi.panels = link.panels = made;
    const changed = source.onchange;
    let waiting = null;
    source.onchange = () => {
      changed();
      if (!selection.isEmpty) waiting ??= requestAnimationFrame(() => { waiting = null; made.update(); });
    };
    if (!link.read() && !selection.isEmpty) made.update();
  };
  causes();
  if (byId("panels").children.length) panels();
  else link.read();
  laterParts(source, { causes, panels });
}

document.documentElement.classList.add("js");
try {
  start();
} catch (error) {
  const root = document.getElementById("timeline"), said = root?.querySelector("[data-detail]");
  if (said) {
    root.hidden = false;
    said.textContent = `the timeline cannot be drawn here: ${error.message}`;
  }
  console.error(error);
}
