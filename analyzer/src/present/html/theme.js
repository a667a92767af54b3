"use strict";
// Dark, light, or the system's colours. The choice is stored if the browser lets the page store something.

const THEMES = ["auto", "light", "dark"];

class Theme {
  constructor(button, onchange) {
    Object.assign(this, { button, onchange });
    let stored = null;
    try {
      stored = localStorage.getItem("gammachi-theme");
    } catch {
      // A page opened from a file may have no storage.
    }
    this.set(THEMES.includes(stored) ? stored : "auto");
    button.addEventListener("click", () => this.next());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onchange);
    // Print in light colours; the canvas has to be redrawn for that.
    addEventListener("beforeprint", () => this.show("light"));
    addEventListener("afterprint", () => this.show(this.name));
  }

  next() {
    this.set(THEMES[(THEMES.indexOf(this.name) + 1) % THEMES.length]);
    try {
      localStorage.setItem("gammachi-theme", this.name);
    } catch {
      // No storage: the choice holds for this visit.
    }
  }

  set(name) {
    this.name = name;
    this.button.setAttribute("aria-label", `Colours: ${name === "auto" ? "same as the system" : name}`);
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
