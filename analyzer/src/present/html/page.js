"use strict";
// Starts the page: connects the data source, the selection and the parts that show them.

function start() {
  const byId = id => document.getElementById(id), root = byId("timeline");
  const source = openSource(JSON.parse(byId("timeline-data").textContent)), selection = new Selection(source);
  selection.onchange(() => source.setSumRange?.(selection.time));
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
    root?.querySelectorAll("[data-do=waits], [data-do=delayed_by], [data-do=path]").forEach(button => { button.hidden = !source.waits.length; });
    if (strip && source.iterations.length) timeline.iterations = new Iterations(strip, timeline);
    timeline?.resize();
  };
  const panels = () => {
    const created = new Panels(byId("panels"), source, selection, timeline);
    window.gammachi.panels = link.panels = created;
    const changed = source.onchange;
    let waiting = null;
    source.onchange = () => {
      changed();
      if (!selection.isEmpty || created.flame?.isWaiting) waiting ??= requestAnimationFrame(() => { waiting = null; created.update(); });
    };
    if (!link.read()) selection.isEmpty ? created.flame?.update() : created.update();
  };
  causes();
  if (byId("panels").children.length) panels();
  else link.read();
  loadLaterParts(source, { causes, panels, link });
}

document.documentElement.classList.add("js");
try {
  start();
} catch (error) {
  const root = document.getElementById("timeline"), status = root?.querySelector("[data-detail]");
  if (status) {
    root.hidden = false;
    status.textContent = `The timeline cannot be drawn: ${error.message}`;
  }
  console.error(error);
}
