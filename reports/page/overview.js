// The picture of a link: values of the interval below the pointer, and zooming of the plots on its time axis.
"use strict";

for (const figure of document.querySelectorAll("figure.overview")) {
  if (!("DecompressionStream" in window)) break;
  Plots.unpacked(`data-${figure.id}`).then((data) => followPointer(figure, data));
}

function followPointer(figure, data) {
  const tip = document.createElement("div");
  const bar = document.createElement("div");
  const chosen = document.createElement("div");
  const place = figure.querySelector(".drawn");
  tip.className = "tip";
  tip.setAttribute("aria-live", "polite");
  bar.className = "cursor";
  chosen.className = "chosen";
  tip.hidden = bar.hidden = chosen.hidden = true;
  place.append(chosen, bar, tip);
  const last = data.starts.length - 1;
  const end = data.starts[last] + data.width;
  let now = -1;
  let pressed = null;

  // where the intervals are drawn, in pixels of the page
  function frame() {
    const svg = Array.from(place.querySelectorAll("svg")).find((one) => one.clientWidth);
    const scale = svg.clientWidth / svg.viewBox.baseVal.width;
    return [Number(svg.dataset.left) * scale, Number(svg.dataset.right) * scale, svg.clientHeight];
  }

  // values of the link, and those of the row that the pointer is on
  function shown(y) {
    const rows = Array.from(place.querySelectorAll("svg .f-rail")).filter((rail) => rail.getBoundingClientRect().width);
    const row = rows.findIndex((rail) => { const { top, bottom } = rail.getBoundingClientRect(); return y >= top && y < bottom; });
    const own = data.lines.filter((line) => line.isRow);
    return data.lines.filter((line) => !line.isRow || line === own[row]);
  }

  function show(interval, y) {
    now = interval;
    tip.hidden = bar.hidden = interval < 0;
    if (interval < 0) return;
    const [left, right] = frame();
    const at = left + ((interval + 0.5) / (last + 1)) * (right - left);
    bar.style.left = `${at}px`;
    const head = document.createElement("p");
    head.textContent = data.clock ? Clock.at(data.clock, data.starts[interval], data.width) : `${Number(data.starts[interval].toPrecision(6))} s`;
    tip.replaceChildren(head, ...shown(y).filter(({ values }) => values[interval] != null).map(({ name, unit, values }) => {
      const line = document.createElement("p");
      const label = document.createElement("bdi");
      label.textContent = name;
      line.append(label, ` ${written(values[interval])} ${unit}`);
      return line;
    }));
    tip.style.left = at > place.clientWidth / 2 ? "" : `${at + 12}px`;
    tip.style.right = at > place.clientWidth / 2 ? `${place.clientWidth - at + 12}px` : "";
  }

  const written = (value) => (typeof value === "string" ? value : Number(value.toPrecision(3)).toLocaleString("en-US"));

  const intervalAt = (event) => {
    const [left, right] = frame();
    const x = event.clientX - place.getBoundingClientRect().left;
    const share = (x - left) / (right - left);
    return share < 0 || share >= 1 ? -1 : Math.floor(share * (last + 1));
  };

  function select(from, to) {
    const [left, right, height] = frame();
    const perInterval = (right - left) / (last + 1);
    chosen.hidden = false;
    chosen.style.left = `${left + Math.min(from, to) * perInterval}px`;
    chosen.style.width = `${(Math.abs(to - from) + 1) * perInterval}px`;
    chosen.style.height = `${height}px`;
  }

  place.addEventListener("mousemove", (event) => {
    const interval = intervalAt(event);
    show(interval, event.clientY);
    if (pressed !== null && interval >= 0 && interval !== pressed) select(pressed, interval);
  });
  place.addEventListener("mouseleave", () => { show(-1); pressed = null; });
  place.addEventListener("mousedown", (event) => {
    const interval = intervalAt(event);
    pressed = interval < 0 || !data.linked ? null : interval;
  });
  place.addEventListener("mouseup", (event) => {
    const interval = intervalAt(event);
    if (pressed !== null && interval >= 0) {
      chosen.hidden = interval === pressed;
      const [first, after] = [Math.min(pressed, interval), Math.max(pressed, interval) + 1];
      Plots.show(data.linked, interval === pressed ? null : [data.starts[first], after > last ? end : data.starts[after]]);
    }
    pressed = null;
  });
  place.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined && event.key !== "Escape") return;
    event.preventDefault();
    show(step === undefined ? -1 : Math.min(Math.max(now < 0 ? last >> 1 : now + step, 0), last));
  });
}
