// A switch between the colours of the system, light and dark ones: it changes when the dark rules apply.
"use strict";

(() => {
  const NAMES = { system: "Colours: system", light: "Colours: light", dark: "Colours: dark" };
  const QUERIES = { system: "(prefers-color-scheme: dark)", light: "not all", dark: "screen" };
  const dark = Array.from(document.styleSheets).flatMap((sheet) => Array.from(sheet.cssRules))
    .filter((rule) => rule.media && rule.media.mediaText === QUERIES.system);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "theme";

  function apply(name) {
    button.dataset.theme = name;
    button.textContent = NAMES[name];
    for (const rule of dark) rule.media.mediaText = QUERIES[name];
    document.documentElement.style.colorScheme = name === "system" ? "" : name;
    dispatchEvent(new Event("themechange"));
  }

  // a page opened from a disk may not be allowed to remember anything
  const remembered = (work) => { try { return work(); } catch { return null; } };
  button.addEventListener("click", () => {
    const names = Object.keys(NAMES);
    const next = names[(names.indexOf(button.dataset.theme) + 1) % names.length];
    apply(next);
    remembered(() => localStorage.setItem("tfrctrace-colours", next));
  });
  const before = remembered(() => localStorage.getItem("tfrctrace-colours"));
  apply(before in NAMES ? before : "system");
  document.querySelector("header").append(button);
})();
