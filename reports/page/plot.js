// Plots to look into: drawn with uPlot in the place of a figure's SVG when it comes into view.
// Without this script, in print, and in a browser without DecompressionStream the SVG stays.
"use strict";

const Plots = (() => {
  const TICKS_PER_UNIT = 1e6;
  const CLOSER = 0.35; // of the whole width: from here on the curves with more points are drawn
  const FINEST = 1e-11; // of the whole width: the address has 12 digits
  const SOLID = 1e-3; // of the whole width: closer up, dashes of lines from far outside would take a second
  const PAN = 0.25;
  const ZOOM = 2;
  const NEARBY_PX = 24;
  const linked = new Map(); // name of the time axis -> the plots on it and what they show

  async function inflating(id, format) {
    // the end of a large page comes after its scripts have begun
    if (!document.getElementById(id)) await new Promise((resolve) => addEventListener("DOMContentLoaded", resolve));
    const text = atob(document.getElementById(id).textContent);
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
    const { readable, writable } = new DecompressionStream(format);
    // a blob would be kept by another process
    const writer = writable.getWriter();
    writer.write(bytes);
    writer.close();
    return new Response(readable);
  }

  async function inflated(id, format) {
    return new Uint8Array(await (await inflating(id, format)).arrayBuffer());
  }

  async function unpacked(id) {
    return (await inflating(id, "gzip")).json();
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function curveColour(style) {
    return colour(style ? `--c${style}` : "--other");
  }

  function withAlpha(hex, alpha) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${r},${g},${b},${alpha})`;
  }

  // One table of uPlot for curves with times of their own: x, value, and if there are any band and rings.
  function tableOf(curves, isLogarithmic) {
    const drawable = (y) => (isLogarithmic && y <= 0 ? null : y);
    const tables = curves.map((curve) => {
      let ticks = 0;
      const x = curve.x.map((step) => (ticks += step) / TICKS_PER_UNIT);
      const columns = [x, curve.y.map(drawable)];
      if (curve.low) columns.push(curve.low.map(drawable), curve.high.map(drawable));
      if (curve.marked) {
        const rings = x.map(() => undefined);
        for (const at of curve.marked) rings[at] = drawable(curve.y[at]);
        columns.push(rings);
      }
      return columns;
    });
    const EXPAND = 2; // a break stays one between the times of other curves
    const modes = tables.map((columns) => columns.map((_, at) => (at === 1 ? EXPAND : 1)));
    return uPlot.join(tables, modes);
  }

  function seriesOf(curves) {
    const series = [{}];
    const bands = [];
    const places = [];
    // many bands lie on one another
    const bandAlpha = Math.max(0.3 / Math.max(curves.length, 1), 0.07);
    for (const curve of curves) {
      const stroke = () => curveColour(curve.style);
      const value = series.length;
      series.push({
        label: curve.name,
        stroke,
        width: 1.5,
        dash: curve.dash.length ? curve.dash.map((part) => part * 1.5) : undefined,
        paths: curve.form === "dots" ? () => null : curve.form === "steps" ? uPlot.paths.stepped({ align: 1 }) : undefined,
        points: { show: true, size: curve.form === "dots" ? 4 : 5, stroke, fill: stroke, filter: curve.form === "dots" ? undefined : lonePoints },
      });
      const own = [value];
      if (curve.low) {
        own.push(series.length, series.length + 1);
        bands.push({ series: [series.length + 1, series.length], fill: () => withAlpha(curveColour(curve.style), bandAlpha) });
        for (let edge = 0; edge < 2; edge += 1) series.push({ stroke: "transparent", width: 0, points: { show: false } });
      }
      if (curve.marked) {
        own.push(series.length);
        series.push({ stroke, paths: () => null, points: { show: true, size: 7, width: 1.5, stroke, fill: () => colour("--raised") } });
      }
      places.push(own);
    }
    return { series, bands, places };
  }

  function lonePoints(plot, place) {
    const values = plot.data[place];
    const known = [];
    values.forEach((y, at) => { if (y !== undefined) known.push(at); });
    return known.filter((at, n) => values[at] !== null && values[known[n - 1]] == null && values[known[n + 1]] == null);
  }

  function number(value) {
    return value.toLocaleString("en-US", { maximumSignificantDigits: 5 });
  }

  function axes(data) {
    const font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif';
    const common = {
      font, labelFont: font, labelGap: 0, labelSize: 20,
      stroke: () => colour("--soft"),
      ticks: { show: false },
      values: (_, splits) => splits.map((value) => (value == null ? "" : number(value))),
    };
    // of many decades only whole ones
    const shown = (splits) => (splits[splits.length - 1] / splits[0] > 1e4 ? "1" : "125");
    const round = (_, splits) => splits.map((value) => (shown(splits).includes(value.toExponential()[0]) ? value : null));
    // as far apart as the words at the end of the axis are long
    const space = (_, axis, low, high) => Math.max(60, 8 * number(high).length);
    const times = data.clock && {
      splits: (plot, _, low, high) => Clock.ticks(data.clock, low, high, Math.max(2, plot.over.clientWidth / 90)).map(([at]) => at),
      values: (plot, splits) => {
        const { min, max } = plot.scales.x;
        const named = new Map(Clock.ticks(data.clock, min, max, Math.max(2, plot.over.clientWidth / 90)));
        return splits.map((at) => named.get(at) || "");
      },
    };
    const named = data.levels.length && {
      splits: () => data.levels.map((_, at) => at + 1),
      values: () => data.levels,
      font: font.replace("12px", "11px"), label: null, size: 70,
    };
    const [along, up] = [data.axisIsLogarithmic, data.isLogarithmic].map((is) => (is ? { filter: round } : {}));
    return [
      { ...common, ...along, ...times, label: data.axisLabel, size: 34, space, grid: { show: false } },
      { ...common, ...up, label: data.valueLabel, size: 50, ...named, grid: { stroke: () => colour("--grid"), width: 1 } },
    ];
  }

  function make(figure, data) {
    const place = figure.querySelector(".plot");
    const { series, bands, places } = seriesOf(data.curves);
    const levels = [tableOf(data.curves, data.isLogarithmic)];
    // a curve with rings only in the detail would need other series
    if (data.detail.length) levels.push(tableOf(aligned(data.detail, data.curves), data.isLogarithmic));
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("aria-live", "polite");
    tip.hidden = true;
    const whole = [data.from, data.to];
    const plot = new uPlot({
      width: place.clientWidth,
      height: place.clientHeight,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      focus: { alpha: 1 },
      series, bands,
      axes: axes(data),
      scales: {
        x: { time: false, distr: data.axisIsLogarithmic ? 3 : 1, range: (_, low, high) => [low, high] },
        y: data.isLogarithmic ? { distr: 3 } : { range: (_, low, high) => data.valueRange || [0, high > 0 ? high * 1.06 : 1] },
      },
      cursor: {
        points: { size: 8 },
        y: false,
        drag: { x: true, y: false, setScale: false, dist: 5 },
        bind: { dblclick: () => () => view.show(null), mousedown: (u, _, select) => (event) => (event.shiftKey ? pan(event) : select(event)) },
        // only where the mouse is goes to the other plots: their widths may differ while one is zoomed
        sync: data.linked ? { key: data.linked, scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } } : undefined,
      },
      hooks: {
        drawClear: [(drawn) => shade(drawn, data.bad)],
        setSelect: [() => zoomToSelection()],
        setCursor: [() => describe()],
      },
    }, levels[0], place);
    plot.over.append(tip);

    function describe() {
      const at = plot.cursor.idx;
      const left = plot.cursor.left;
      tip.hidden = at == null || left == null || left < 0;
      if (tip.hidden) return;
      const lines = data.curves.flatMap((curve, n) => {
        if (!plot.series[places[n][0]].show) return [];
        const y = valueAt(curve, plot.data[places[n][0]], at, plot.data[0], left);
        return y == null ? [] : [line(curve, y)];
      });
      const head = document.createElement("p");
      const x = plot.posToVal(left, "x");
      const perPixel = (plot.scales.x.max - plot.scales.x.min) / plot.over.clientWidth;
      head.textContent = data.clock ? Clock.at(data.clock, x, perPixel) : `${number(x)}${data.axisLabel.startsWith("seconds") ? " s" : ""}`;
      tip.replaceChildren(head, ...lines);
      const room = plot.over.clientWidth;
      tip.style.left = left > room / 2 ? "" : `${left + 12}px`;
      tip.style.right = left > room / 2 ? `${room - left + 12}px` : "";
    }

    // Curves have values at times of their own: inside a curve the closest counts, of steps the one before; outside
    // only one nearby.
    function valueAt(curve, values, at, times, left) {
      const found = [-1, 1].map((step) => {
        let index = at;
        while (index >= 0 && index < values.length && values[index] === undefined) index += step;
        return index;
      }).filter((index) => values[index] != null);
      const away = (index) => Math.abs(plot.valToPos(times[index], "x") - left);
      found.sort((a, b) => away(a) - away(b));
      if (found.length < 2 && !(found.length && away(found[0]) < NEARBY_PX)) return null;
      if (curve.form !== "steps") return values[found[0]];
      let held = at;
      while (held >= 0 && (values[held] === undefined || plot.valToPos(times[held], "x") > left + 0.5)) held -= 1;
      return held < 0 ? null : values[held];
    }

    function line(curve, y) {
      const words = document.createElement("p");
      const mark = document.createElement("span");
      const name = document.createElement("bdi");
      mark.className = "mark";
      mark.style.background = curveColour(curve.style);
      name.textContent = curve.name;
      words.append(mark, name, ` ${data.levels[y - 1] ?? number(y)}${data.unit ? ` ${data.unit}` : ""}`);
      return words;
    }

    let level = 0;
    const dashes = series.map(({ dash }) => dash);
    const view = viewOf({
      figure, whole, name: data.linked,
      // logarithmic axes are cut in the middle of what is seen, too
      across: (share) => plot.posToVal(share * plot.over.clientWidth, "x"),
      draw(low, high) {
        const part = (high - low) / (whole[1] - whole[0]);
        const wanted = levels[1] && part < CLOSER ? 1 : 0;
        plot.series.forEach((one, n) => { one.dash = part < SOLID ? [] : dashes[n]; });
        plot.batch(() => {
          if (wanted !== level) plot.setData(levels[(level = wanted)], false);
          plot.setScale("x", { min: low, max: high });
        });
      },
    });
    plot.setScale("x", { min: whole[0], max: whole[1] });
    view.apply();

    function zoomToSelection() {
      const { left, width } = plot.select;
      if (width < 5) return;
      plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      view.show([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
    }

    function pan(event) {
      const [low, high] = view.range();
      const perPixel = (high - low) / plot.over.clientWidth;
      const drag = (moved) => {
        const by = (event.clientX - moved.clientX) * perPixel;
        view.show(view.clamped(low + by, high + by));
      };
      addEventListener("mousemove", drag);
      addEventListener("mouseup", () => removeEventListener("mousemove", drag), { once: true });
    }

    legend(figure, places.length, (n, shows) => plot.batch(() => { for (const at of places[n]) plot.setSeries(at, { show: shows }); }));
    keys(place, plot, view);
    tools(figure, data.title, view);
    new ResizeObserver(() => {
      if (place.clientWidth) plot.setSize({ width: place.clientWidth, height: place.clientHeight });
    }).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot.redraw(false));
    addEventListener("themechange", () => plot.redraw(false));
    figure.plot = plot;
    return plot;
  }

  // The stretches in which an objective was violated, behind the curves.
  function shade(plot, stretches) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = withAlpha(colour("--bad"), 0.16);
    for (const ends of stretches) {
      const [left, right] = ends.map((at) => Math.min(Math.max(plot.valToPos(at, "x", true), bbox.left), bbox.left + bbox.width));
      if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.restore();
  }

  // Curves with the bands and rings of others, so that one set of series draws both.
  function aligned(curves, others) {
    return curves.map((curve, n) => {
      const wanted = { ...curve };
      if (others[n].low && !curve.low) Object.assign(wanted, { low: curve.y, high: curve.y });
      if (!others[n].low) { delete wanted.low; delete wanted.high; }
      if (others[n].marked) wanted.marked = curve.marked || [];
      else delete wanted.marked;
      return wanted;
    });
  }

  // The plots on one axis and the range that they show, which stands in the address: what of that is on the axis.
  function linkedBy(name, whole) {
    if (!linked.has(name)) {
      const given = (Address.get(name) || "").split(",").map(Number);
      const [low, high] = [Math.max(given[0], whole[0]), Math.min(given[1], whole[1])];
      const isRange = given.length === 2 && high - low >= FINEST * (whole[1] - whole[0]);
      linked.set(name, { name, views: [], range: isRange ? [low, high] : null });
    }
    return linked.get(name);
  }

  function showRange(group, range) {
    group.range = range;
    if (group.name) Address.set(group.name, range && range.map((at) => Number(at.toPrecision(12))).join(","));
    for (const one of group.views) one.apply();
  }

  // What part of the x axis is shown, in this plot and in those on the same time axis.
  function viewOf({ figure, whole, name, across, draw }) {
    const group = name ? linkedBy(name, whole) : { name: "", views: [], range: null };
    const view = {
      range: () => group.range || whole,
      apply() {
        draw(...this.range());
        figure.classList.toggle("zoomed", group.range !== null);
        for (const button of figure.querySelectorAll(".tools .all")) button.disabled = group.range === null;
      },
      show(range) {
        if (range && !(range[1] - range[0] >= FINEST * (whole[1] - whole[0]))) return;
        showRange(group, range && range[1] - range[0] < whole[1] - whole[0] ? range : null);
      },
      across,
      zoom(factor) { this.show(this.clamped(this.across(0.5 - 0.5 / factor), this.across(0.5 + 0.5 / factor))); },
      move(share) { this.show(this.clamped(this.across(share), this.across(1 + share))); },
      clamped(low, high) {
        const width = high - low;
        if (width >= whole[1] - whole[0]) return null;
        if (low < whole[0]) return [whole[0], whole[0] + width];
        return high > whole[1] ? [whole[1] - width, whole[1]] : [low, high];
      },
    };
    group.views.push(view);
    return view;
  }

  // Names in the legend switch their curves off and on.
  function legend(figure, names, show) {
    Array.from(figure.querySelectorAll(".legend li")).slice(0, names).forEach((item, n) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        const shows = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shows));
        show(n, shows);
      });
    });
  }

  function keys(place, plot, view) {
    const point = (step) => {
      const times = plot.data[0];
      const [low, high] = [plot.valToIdx(plot.scales.x.min), plot.valToIdx(plot.scales.x.max)];
      const now = plot.cursor.idx == null ? (low + high) >> 1 : plot.cursor.idx;
      const stride = Math.max(1, Math.round((high - low) / 100));
      const next = Math.min(Math.max(now + step * stride, low), high);
      plot.setCursor({ left: plot.valToPos(times[next], "x"), top: 0 });
    };
    const actions = {
      ArrowLeft: (event) => (event.shiftKey ? view.move(-PAN) : point(-1)),
      ArrowRight: (event) => (event.shiftKey ? view.move(PAN) : point(1)),
      "+": () => view.zoom(ZOOM),
      "=": () => view.zoom(ZOOM),
      "-": () => view.zoom(1 / ZOOM),
      0: () => view.show(null),
      Escape: () => view.show(null),
    };
    listen(place, actions);
  }

  function listen(place, actions) {
    place.addEventListener("keydown", (event) => {
      const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
      if (!action) return;
      event.preventDefault();
      action(event);
    });
  }

  function tools(figure, title, view) {
    const bar = document.createElement("div");
    bar.className = "tools";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", `Zoom: ${title}`);
    for (const [sign, name, action] of [
      ["+", "Zoom in", () => view.zoom(ZOOM)],
      ["\u2212", "Zoom out", () => view.zoom(1 / ZOOM)],
      ["\u2190", "Earlier", () => view.move(-PAN)],
      ["\u2192", "Later", () => view.move(PAN)],
      ["All", "Show all", () => view.show(null)],
    ]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = sign;
      button.title = name;
      button.setAttribute("aria-label", name);
      if (sign === "All") { button.className = "all"; button.disabled = true; }
      button.addEventListener("click", action);
      bar.append(button);
    }
    figure.querySelector("h3, h4").after(bar);
  }

  async function draw(figure) {
    const data = await unpacked(`data-${figure.id}`);
    figure.classList.add("live");
    (figure.dataset.plot === "graph" ? Sequence : { make }).make(figure, data);
  }

  if ("DecompressionStream" in window) {
    const watcher = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        watcher.unobserve(target);
        draw(target);
      }
    }, { rootMargin: "300px" });
    for (const figure of document.querySelectorAll("figure[data-plot]")) watcher.observe(figure);
  }

  return { make, unpacked, inflated, viewOf, tools, legend, listen, colour, show: (name, range) => showRange(linkedBy(name), range) };
})();
