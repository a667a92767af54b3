"use strict";
// Keyboard shortcuts of the whole page, and the dialog that lists them.

class Keys {
  constructor({ timeline, selection, theme, search, help, opener }) {
    Object.assign(this, { timeline, selection, theme, search, help });
    opener.addEventListener("click", () => help.showModal());
    document.addEventListener("keydown", event => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || this.help.open) return;
    if (event.target.closest?.("input, select, textarea, [contenteditable]")) return;
    const focused = event.target === this.timeline?.canvas;
    const page = { "?": () => this.help.showModal(), "/": () => this.search.field.focus(), t: () => this.theme.next(),
      Escape: () => this.selection.clear() };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const action = this.timeline?.action(key, focused) ?? page[key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}
