"use strict";
// Dark, light, or as the system says; the choice is remembered where the browser lets a page remember.

const THEMES = ["auto", "light", "dark"];

class Theme {
  constructor(button, onchange) {
    Object.assign(this, { button, onchange });
    let kept = null;
    try {
      kept = localStorage.getItem("gammachi-theme");
    } catch {
      // A page from a file may have no storage.
    }
    this.set(THEMES.includes(kept) ? kept : "auto");
    button.addEventListener("click", () => this.next());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onchange);
    // Paper is light; the canvas has to be drawn for it.
    addEventListener("beforeprint", () => this.show("light"));
    addEventListener("afterprint", () => this.show(this.name));
  }

  next() {
    this.set(THEMES[(THEMES.indexOf(this.name) + 1) % THEMES.length]);
    try {
      localStorage.setItem("gammachi-theme", this.name);
    } catch {
      // As above.
    }
  }

  set(name) {
    this.name = name;
    this.button.setAttribute("aria-label", `Colours: ${name === "auto" ? "as the system" : name}`);
    this.button.title = `${this.button.getAttribute("aria-label")} (T)`;
    this.button.textContent = { auto: "◐", light: "☀", dark: "☾" }[name];
    this.show(name);
  }

  show(name) {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    this.onchange();
  }
}
