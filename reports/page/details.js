// The details of a flow: drawn when its row is opened, from a block that is unpacked then.
"use strict";

for (const table of document.querySelectorAll("table[data-details]")) {
  const blocks = new Map();

  const unpacked = (key) => {
    if (!blocks.has(key)) blocks.set(key, Plots.unpacked(key));
    return blocks.get(key);
  };

  const element = (tag, css, ...content) => {
    const made = document.createElement(tag);
    if (css) made.className = css;
    made.append(...content);
    return made;
  };

  const isolated = (text) => element("bdi", "", text);

  function facts({ directions, known }) {
    const head = element("tr", "", element("th", "", "Column"), ...directions.map((direction) => element("th", "number", isolated(direction))));
    for (const cell of head.cells) cell.scope = "col";
    const rows = known.map(([name, meaning, values]) => {
      const named = element("th", "", name);
      named.scope = "row";
      named.title = meaning;
      return element("tr", "", named, ...values.map((value) => element("td", "number", value)));
    });
    const caption = element("caption", "", element("span", "", "Columns of the flow, without those that are 0 or unknown in both directions."));
    return element("table", "known", caption, element("thead", "", head), element("tbody", "", ...rows));
  }

  function figure({ key, caption, data }) {
    const curves = data.curves || []; // a time-sequence graph names its parts itself
    const legend = element("ul", "legend", ...curves.map((curve) => {
      const mark = element("span", "mark");
      mark.style.background = `var(--c${curve.style})`;
      return element("li", "", mark, isolated(curve.name));
    }));
    const place = element("div", "plot");
    place.tabIndex = 0;
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", data.title);
    place.setAttribute("aria-describedby", "plot-keys");
    const made = element("figure", "live", element("h3", "", data.title), legend, place, element("figcaption", "", caption));
    made.id = key;
    made.dataset.plot = "";
    return made;
  }

  async function open(row, key) {
    const details = (await unpacked(row.dataset.details))[key];
    const figures = details.figures.map(figure);
    const cell = element("td", "", element("div", "opened", ...figures, facts(details)));
    cell.colSpan = row.cells.length;
    row.details = element("tr", "details", cell);
    row.after(row.details);
    figures.forEach((made, n) => {
      const { data } = details.figures[n];
      (data.curves ? Plots : Sequence).make(made, data);
      if (!data.curves) addSaving(made);
    });
  }

  async function toggle(row, button) {
    const isOpen = () => button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen()));
    // a second click may come before the first has unpacked what it shows
    row.opening ??= open(row, row.id);
    await row.opening;
    row.details.hidden = !isOpen();
  }

  if ("DecompressionStream" in window) {
    for (const row of table.tBodies[0].rows) {
      if (!row.dataset.details) continue;
      const head = row.cells[0];
      const button = element("button", "open", ...head.childNodes);
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      button.title = "Show the details of this flow";
      button.addEventListener("click", () => toggle(row, button));
      head.append(button);
    }
  }
}
