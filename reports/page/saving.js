// Buttons that save the data of a figure as CSV and its drawing as SVG or PNG, out of the page itself.
"use strict";

for (const figure of document.querySelectorAll("figure[id]")) {
  if (figure.querySelector("svg.chart")) addSaving(figure);
}

function addSaving(figure) {
  const bar = document.createElement("div");
  const name = figure.querySelector("h3").textContent;
  bar.className = "saving";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", `Save: ${name}`);
  const forms = [["SVG", saveDrawing], ["PNG", saveImage]];
  if ((figure.graph || document.getElementById(`data-${figure.id}`)) && "DecompressionStream" in window) forms.unshift(["CSV", saveData]);
  for (const [form, save] of forms) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = form;
    button.setAttribute("aria-label", `Save as ${form}: ${name}`);
    button.addEventListener("click", () => save(figure));
    bar.append(button);
  }
  figure.append(bar);
}

function download(figure, suffix, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${figure.id}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function saveData(figure) {
  const data = figure.graph ? figure.graph.rows() : figureRows(await Plots.unpacked(`data-${figure.id}`));
  download(figure, "csv", new Blob([csvOf(data)], { type: "text/csv" }));
}

function figureRows(data) {
  return data.lines ? overviewRows(data) : curveRows(data);
}

function csvOf(rows) {
  // a cell that begins like a formula would be one in a spreadsheet
  const quoted = (value) => {
    const text = String(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map((value) => (value == null ? "" : quoted(value))).join(",")).join("\n") + "\n";
}

function overviewRows({ starts, width, lines, epoch }) {
  const heads = ["start_s", "width_s", ...(epoch ? ["start"] : []), ...lines.map(({ name, unit }) => (unit ? `${name} (${unit})` : name))];
  const time = (start) => (epoch ? [new Date(epoch + start * 1000).toISOString()] : []);
  return [heads, ...starts.map((start, at) => [start, width, ...time(start), ...lines.map(({ values }) => values[at])])];
}

function curveRows(data) {
  const heads = ["curve", data.axisLabel, data.valueLabel || "value", "low", "high"];
  const rows = (data.detail.length ? data.detail : data.curves).flatMap((curve) => {
    let ticks = 0;
    return curve.x.map((step, at) => [curve.name, (ticks += step) / 1e6, data.levels[curve.y[at] - 1] ?? curve.y[at], curve.low && curve.low[at], curve.high && curve.high[at]]);
  });
  return [heads, ...rows];
}

// The drawing of the page as a file: with the colours that style sheets gave it.
function standalone(figure) {
  if (figure.graph) {
    const { text, width, height } = figure.graph.svg();
    return { blob: new Blob([text], { type: "image/svg+xml" }), width, height };
  }
  const drawn = figure.querySelector("svg.wide");
  const copy = drawn.cloneNode(true);
  const { width, height } = drawn.viewBox.baseVal;
  const rules = document.documentElement;
  const colour = (name) => getComputedStyle(rules).getPropertyValue(name).trim();
  const roles = { ink: "--soft", paper: "--raised" };
  for (const part of copy.querySelectorAll("[class]")) {
    for (const css of part.classList) {
      const [, kind, role] = /^(?:([fs])-)?(\w+)$/.exec(css) || [];
      const value = role && colour(roles[role] || `--${role}`);
      if (value) part.setAttribute(kind === "s" ? "stroke" : "fill", value);
    }
    part.removeAttribute("class");
  }
  copy.removeAttribute("class");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("font-family", "sans-serif");
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["width", width], ["height", height], ["fill", colour("--raised")]]) paper.setAttribute(name, value);
  copy.querySelector("desc").after(paper);
  return { blob: new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }), width, height };
}

function saveDrawing(figure) {
  download(figure, "svg", standalone(figure).blob);
}

async function saveImage(figure) {
  const SHARPER = 2;
  const { blob, width, height } = standalone(figure);
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * SHARPER, height * SHARPER];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  canvas.toBlob((png) => download(figure, "png", png), "image/png");
}
