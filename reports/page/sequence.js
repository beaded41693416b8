// The time-sequence graph of a direction down to each packet, and its flight and RTT, drawn on a canvas from the tiles
// of the core (`flow/tcp/sequence_graph`), which are unpacked as they come into view.
"use strict";

const Sequence = (() => {
  const ACKNOWLEDGEMENT = 0x10;
  const CLASS = 0x0f;
  const ELSEWHERE = 1; // an RTT that did not begin with a point of the same tile
  const CONTROLS = [[0x20, "SYN"], [0x40, "FIN"], [0x80, "RST"]];
  const RANGES = ["data", "classified", "acknowledged", "window", "sacked", "flight", "rtt"];
  const MOST = [32768, 16384]; // points, and summaries, that are drawn
  const KEPT = 96; // unpacked tiles
  const SINGLE = 4; // points for each pixel across up to which each is drawn
  const NUMBERED = 60; // segments up to which each has its number
  const EDGES = [62, 24, 20, 52]; // left, right, above and below the graph
  const STRIP = 10;
  const HATCH = 5; // px from one line to the next
  const NEARBY_PX = 14;
  const FAR = 4000; // px outside of the view that nothing is drawn beyond
  const ZOOM = 2;
  const PAN = 0.25;
  const HIGHEST = 2 ** 52; // up to here doubles tell whole numbers apart, which the steps of an axis need
  const COLOURS = { data: "--c1", classified: "--c2", acknowledged: "--c3", window: "--other", sacked: "--c4", flight: "--c1", rtt: "--c4" };
  const OF_CLASSES = ["--c2", "--c2", "--bad", "--c5", "--c6"]; // fast, SACK, timeout, tail loss probe, unexplained
  const BYTES = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
  const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  // what is drawn of the same tiles, and the parts of it in the order of the legend
  const LAYERS = {
    bytes: { label: "Bytes", units: BYTES, parts: { data: "data sent", classified: "retransmitted or late data", acknowledged: "acknowledged", window: "edge of the receive window", sacked: "SACK blocks" } },
    flight: { label: "Flight", units: BYTES, parts: { flight: "data in flight" } },
    rtt: { label: "RTT", units: TIMES, parts: { rtt: "RTT sample" } },
  };
  // causes differ by lines on light or dark, never by hue: hues are those of the curves
  const HATCHES = ["", "/", "\\", "|", "x", "-", "+", "="];
  const LEANS = { "/": [1], "\\": [-1], "|": [0], x: [1, -1], "+": [0] };
  const LEVELS = { "-": [0.5], "+": [0.5], "=": [0.25, 0.75] }; // of the height

  // Columns of variable-length integers in the bytes of a tile.
  class Columns {
    constructor(bytes, start) {
      this.bytes = bytes;
      this.at = 1;
      this.start = start;
      this.tick = bytes[0] ? 1000 : 1; // ns
    }

    number() {
      let byte = this.bytes[this.at++];
      if (byte < 0x80) return byte;
      let value = byte & 0x7f;
      for (let scale = 128; byte & 0x80; scale *= 128) {
        byte = this.bytes[this.at++];
        value += (byte & 0x7f) * scale;
      }
      return value;
    }

    signed() {
      const value = this.number();
      return value % 2 ? -(value + 1) / 2 : value / 2;
    }

    raw(count) { return this.bytes.subarray(this.at, (this.at += count)); }

    numbers(count) {
      const values = new Float64Array(count);
      for (let n = 0; n < count; n += 1) values[n] = this.number();
      return values;
    }

    jumps(count) {
      const values = new Float64Array(count);
      for (let n = 0; n < count; n += 1) values[n] = this.signed();
      return values;
    }

    steps(count) {
      const values = new Float64Array(count);
      for (let n = 0, sum = 0; n < count; n += 1) values[n] = sum += this.signed();
      return values;
    }

    times(count) {
      const values = this.steps(count);
      for (let n = 0; n < count; n += 1) values[n] = (this.start + values[n] * this.tick) / 1e9;
      return values;
    }
  }

  function pointsOf(columns, count) {
    const kind = columns.raw(count);
    const [time, packet] = [columns.times(count), columns.steps(count)];
    let acknowledgements = 0;
    for (const one of kind) if (one & ACKNOWLEDGEMENT) acknowledgements += 1;
    const segments = count - acknowledgements;
    const [jumps, lengths] = [columns.jumps(segments), columns.steps(segments)];
    const [positions, windows] = [columns.steps(acknowledgements), columns.steps(acknowledgements)];
    const blocks = columns.numbers(acknowledgements);
    const all = blocks.reduce((sum, one) => sum + one, 0);
    const [starts, sizes] = [columns.steps(all), columns.numbers(all)];
    const flight = columns.steps(count);
    const answered = columns.numbers(acknowledgements);
    const elsewhere = columns.steps(answered.reduce((sum, one) => sum + (one === ELSEWHERE ? 1 : 0), 0));
    const [low, high, sacked] = [new Float64Array(count), new Float64Array(count), new Map()];
    const [rtt, since] = [new Float64Array(count).fill(NaN), new Float64Array(count).fill(NaN)]; // ns, packet
    for (let n = 0, s = 0, a = 0, b = 0, e = 0, end = 0; n < count; n += 1) {
      if (kind[n] & ACKNOWLEDGEMENT) {
        low[n] = positions[a];
        high[n] = windows[a] ? positions[a] + windows[a] - 1 : NaN; // 0: the scale is not known
        if (blocks[a]) sacked.set(n, Array.from({ length: blocks[a] }, () => [low[n] + starts[b], low[n] + starts[b] + sizes[b++]]));
        const sent = n - (answered[a] - ELSEWHERE);
        if (answered[a] > ELSEWHERE) [rtt[n], since[n]] = [Math.round((time[n] - time[sent]) * 1e9), packet[sent]];
        else if (answered[a]) rtt[n] = elsewhere[e++] * columns.tick;
        a += 1;
      } else {
        low[n] = end + jumps[s];
        end = high[n] = low[n] + lengths[s++];
      }
    }
    return { count, kind, time, end: time, packet, low, high, sacked, flight, rtt, since };
  }

  function summariesOf(columns, count, classes) {
    const points = columns.numbers(count);
    const time = columns.times(count);
    const end = columns.numbers(count);
    for (let n = 0; n < count; n += 1) end[n] = time[n] + (end[n] * columns.tick) / 1e9;
    const packet = columns.steps(count);
    const ranges = RANGES.map(() => {
      const there = columns.raw(count);
      const known = there.reduce((sum, one) => sum + (one ? 1 : 0), 0);
      const [lows, heights] = [columns.steps(known), columns.numbers(known)];
      const [low, high] = [new Float64Array(count).fill(NaN), new Float64Array(count).fill(NaN)];
      for (let n = 0, k = 0; n < count; n += 1) {
        if (there[n]) { low[n] = lows[k]; high[n] = lows[k] + heights[k++]; }
      }
      return { low, high };
    });
    const zeroWindows = columns.numbers(count);
    const counts = classes.map(() => columns.numbers(count));
    return { count, points, time, end, packet, ranges, zeroWindows, counts };
  }

  // The tiles of a figure, level by level, of which the last used are kept unpacked.
  class Tiles {
    constructor(data) {
      this.classes = data.classes;
      this.kept = new Map();
      this.levels = data.levels.map(({ level, tiles }) => tiles.map(([start, end, count], n) => ({
        id: `${data.key}-${level}-${n}`, level, start, from: start / 1e9, to: end / 1e9, count, content: null,
      })));
    }

    // The tiles of the lowest level that has few enough points or summaries between two times, and has all of them:
    // beyond a limit there are no points, only summaries.
    between(low, high) {
      const reach = (tiles) => tiles.reduce((most, { to }) => Math.max(most, to), -Infinity);
      const last = Math.min(high, reach(this.levels[this.levels.length - 1]));
      const at = this.levels.findIndex((tiles) => {
        if (reach(tiles) < last) return false;
        let sum = 0;
        for (const { from, to, count } of tiles) {
          const shared = Math.min(to, high) - Math.max(from, low);
          if (shared >= 0) sum += to > from ? (count * shared) / (to - from) : count;
        }
        return sum <= MOST[Math.min(tiles[0].level, 1)];
      });
      return this.of(at < 0 ? this.levels.length - 1 : at, low, high);
    }

    // Those of a level, and one more before, from which lines come.
    of(at, low, high) {
      const tiles = this.levels[at];
      const first = tiles.findIndex(({ to }) => to >= low);
      const after = tiles.findLastIndex(({ from }) => from <= high) + 1;
      return { at, tiles: tiles.slice(Math.max((first < 0 ? tiles.length : first) - 1, 0), Math.max(after, first + 1)) };
    }

    unpacked(tile) {
      const loading = this.kept.get(tile) || this.load(tile);
      this.kept.delete(tile);
      this.kept.set(tile, loading);
      if (this.kept.size > KEPT) {
        const [oldest] = this.kept.keys();
        oldest.content = null;
        this.kept.delete(oldest);
      }
      return loading;
    }

    async load(tile) {
      const columns = new Columns(await Plots.inflated(tile.id, "deflate-raw"), tile.start);
      tile.content = tile.level ? summariesOf(columns, tile.count, this.classes) : pointsOf(columns, tile.count);
      return tile.content;
    }

    // What is unpacked of `wanted`, or of a higher level if not all of it is.
    ready({ at, tiles }, low, high) {
      for (let level = at; level < this.levels.length; level += 1) {
        const own = level === at ? tiles : this.of(level, low, high).tiles;
        if (own.every(({ content }) => content)) return { level: own[0].level, contents: own.map(({ content }) => content) };
      }
      return null;
    }
  }

  // Where lines are drawn: a canvas, or an SVG document of the same.
  class CanvasSurface {
    constructor(canvas, width, height) {
      const sharp = devicePixelRatio || 1;
      const [wide, tall] = [Math.round(width * sharp), Math.round(height * sharp)];
      if (canvas.width !== wide || canvas.height !== tall) [canvas.width, canvas.height] = [wide, tall];
      this.context = canvas.getContext("2d");
      this.context.setTransform(sharp, 0, 0, sharp, 0, 0);
      this.context.clearRect(0, 0, width, height);
      this.context.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif";
    }

    clip({ left, top, width, height }) {
      this.context.save();
      this.context.beginPath();
      this.context.rect(left, top, width, height);
      this.context.clip();
    }

    unclip() { this.context.restore(); }

    rects(colour, rects, opacity = 1) {
      this.context.fillStyle = colour;
      this.context.globalAlpha = opacity;
      for (const [x, y, width, height] of rects) this.context.fillRect(x, y, width, height);
      this.context.globalAlpha = 1;
    }

    // points of lines, with null between two lines
    lines(colour, points, { width = 1, dash = [] } = {}) {
      const context = this.context;
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.setLineDash(dash);
      context.beginPath();
      let begins = true;
      for (const point of points) {
        if (point && begins) context.moveTo(point[0], point[1]);
        else if (point) context.lineTo(point[0], point[1]);
        begins = !point;
      }
      context.stroke();
      context.setLineDash([]);
    }

    text(colour, x, y, words, align = "left") {
      this.context.fillStyle = colour;
      this.context.textAlign = align;
      this.context.fillText(words, x, y);
    }
  }

  class SvgSurface {
    constructor(width, height, title) {
      this.size = [width, height];
      this.title = title;
      this.parts = [];
    }

    clip({ left, top, width, height }) {
      this.parts.push(`<clipPath id="seen"><rect x="${left}" y="${top}" width="${width}" height="${height}"/></clipPath><g clip-path="url(#seen)">`);
    }

    unclip() { this.parts.push("</g>"); }

    rects(colour, rects, opacity = 1) {
      const path = rects.map(([x, y, width, height]) => `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}z`).join("");
      if (path) this.parts.push(`<path fill="${colour}" fill-opacity="${opacity}" d="${path}"/>`);
    }

    lines(colour, points, { width = 1, dash = [] } = {}) {
      let begins = true;
      let path = "";
      for (const point of points) {
        if (point) path += `${begins ? "M" : "L"}${round(point[0])} ${round(point[1])}`;
        begins = !point;
      }
      if (path) this.parts.push(`<path fill="none" stroke="${colour}" stroke-width="${width}" stroke-dasharray="${dash.join(" ") || "none"}" d="${path}"/>`);
    }

    text(colour, x, y, words, align = "left") {
      const anchor = { left: "start", right: "end", center: "middle" }[align];
      this.parts.push(`<text fill="${colour}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${escaped(words)}</text>`);
    }

    document() {
      const [width, height] = this.size;
      return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`
        + `<title>${escaped(this.title)}</title><rect width="${width}" height="${height}" fill="${Plots.colour("--raised")}"/>${this.parts.join("")}</svg>`;
    }
  }

  const round = (value) => Math.round(value * 100) / 100;
  const escaped = (text) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
  const words = (name) => name.replaceAll("_", " ");
  const milliseconds = (ns) => `${(ns / 1e6).toLocaleString("en-US", { maximumSignificantDigits: 6 })} ms`;
  const whole = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 0 });

  // From the lowest to the highest number in view: data and acknowledgements, and windows if they are not far away.
  function heightOf({ level, contents }, low, high) {
    const limits = { near: [Infinity, -Infinity], window: [Infinity, -Infinity] };
    let before = NaN; // the acknowledgement that holds where the view begins
    const include = (of, from, to) => { if (from < limits[of][0]) limits[of][0] = from; if (to > limits[of][1]) limits[of][1] = to; };
    for (const content of contents) {
      for (let n = 0; n < content.count; n += 1) {
        if (content.time[n] > high) continue;
        if (content.end[n] < low) {
          if (!level && content.kind[n] & ACKNOWLEDGEMENT) before = content.low[n];
          continue;
        }
        if (level) {
          for (const of of [0, 2]) include("near", content.ranges[of].low[n], content.ranges[of].high[n]);
          include("window", content.ranges[3].low[n], content.ranges[3].high[n]);
        } else if (content.kind[n] & ACKNOWLEDGEMENT) {
          include("near", content.low[n], content.low[n]);
          include("window", content.high[n], content.high[n]);
        } else include("near", content.low[n], content.high[n]);
      }
    }
    include("near", before, before);
    let [from, to] = limits.near;
    if (!(from <= to)) return [0, 1];
    if (limits.window[1] - from <= 2 * (to - from)) to = Math.max(to, limits.window[1]);
    const room = 0.06 * (to - from) || 1000;
    return [from - room, to + room];
  }

  // The lowest and the highest of one kind of values in a point or summary; NaN where there is none.
  function valuesAt(content, level, name, n) {
    if (!level) return [content[name][n], content[name][n]];
    const { low, high } = content.ranges[RANGES.indexOf(name)];
    return [low[n], high[n]];
  }

  // From 0 to the largest value in view; null if there is none.
  function heightOfValues({ level, contents, layer }, low, high) {
    let most = -Infinity;
    for (const content of contents) {
      for (let n = 0; n < content.count; n += 1) {
        if (content.time[n] > high || content.end[n] < low) continue;
        const [, value] = valuesAt(content, level, layer, n);
        if (value > most) most = value;
      }
    }
    return most > -Infinity ? [0, 1.06 * most || 1] : null;
  }

  // What falls into each pixel across: lowest and highest number of each kind, and the last.
  class Pixels {
    constructor(width) {
      this.kinds = RANGES.map(() => ({ low: new Float64Array(width).fill(Infinity), high: new Float64Array(width).fill(-Infinity) }));
      this.worst = new Uint8Array(width); // class that is drawn, from 1
      this.zero = new Uint8Array(width);
    }

    add(kind, x, low, high) {
      const own = this.kinds[kind];
      if (low < own.low[x]) own.low[x] = low;
      if (high > own.high[x]) own.high[x] = high;
    }
  }

  // a timeout counts more than a fast retransmission in the same pixel
  const RANKS = [0, 3, 2, 5, 4, 1];
  const rank = (number) => RANKS[number] || 0;

  function pixelsOf({ level, contents, layer }, x, width) {
    const pixels = new Pixels(width);
    const long = RANGES.map(() => []);
    const kinds = Object.keys(LAYERS[layer].parts).map((name) => RANGES.indexOf(name));
    const worse = (at, number) => { if (!pixels.worst[at] || rank(number) > rank(pixels.worst[at])) pixels.worst[at] = number; };
    for (const content of contents) {
      for (let n = 0; n < content.count; n += 1) {
        const [from, to] = [Math.floor(x(content.time[n])), Math.floor(x(content.end[n]))];
        if (to < 0 || from >= width) continue;
        const at = Math.max(from, 0);
        if (!level && layer !== "bytes") {
          pixels.add(kinds[0], at, content[layer][n], content[layer][n]);
          continue;
        }
        if (!level) {
          const number = content.kind[n] & CLASS;
          if (content.kind[n] & ACKNOWLEDGEMENT) {
            pixels.add(2, at, content.low[n], content.low[n]);
            pixels.add(3, at, content.high[n], content.high[n]);
            if (content.high[n] === content.low[n]) pixels.zero[at] = 1;
            for (const [low, high] of content.sacked.get(n) || []) pixels.add(4, at, low, high);
          } else {
            pixels.add(0, at, content.low[n], content.high[n]);
            if (number) { pixels.add(1, at, content.low[n], content.high[n]); worse(at, number); }
          }
          continue;
        }
        for (const kind of kinds) {
          const { low, high } = content.ranges[kind];
          if (Number.isNaN(low[n])) continue;
          // one that is wide is a line from its begin to its end
          if (to - from > 1) long[kind].push([from, low[n]], [to, high[n]], null);
          else pixels.add(kind, at, low[n], high[n]);
        }
        if (content.zeroWindows[n]) pixels.zero[at] = 1;
        content.counts.forEach((counts, number) => { if (counts[n]) worse(at, number + 1); });
      }
    }
    return { pixels, long };
  }

  function classColour(number) {
    return Plots.colour(OF_CLASSES[number - 1] || "--ink");
  }

  function drawPixels(surface, seen, box, y, shown) {
    const x = (time) => ((time - seen.low) / (seen.high - seen.low)) * box.width;
    const { pixels, long } = pixelsOf(seen, x, Math.ceil(box.width) + 1);
    const bars = (kind, pick = () => true) => {
      const { low, high } = pixels.kinds[kind];
      const rects = [];
      low.forEach((from, at) => {
        if (from <= high[at] && pick(at)) rects.push([box.left + at, y(high[at]) - 0.5, 1, Math.max(y(from) - y(high[at]), 0) + 1]);
      });
      return rects;
    };
    const slopes = (kind) => long[kind].map((point) => point && [box.left + point[0], y(point[1])]);
    // up to the next pixel that has any, it stays as it was
    const steps = (kind) => {
      const { low, high } = pixels.kinds[kind];
      const points = [];
      low.forEach((from, at) => {
        if (!(from <= high[at])) return;
        if (points.length) points.push([box.left + at + 0.5, points[points.length - 1][1]]);
        points.push([box.left + at + 0.5, y(from)], [box.left + at + 0.5, y(high[at])]);
      });
      return points;
    };
    if (seen.layer !== "bytes") {
      const kind = RANGES.indexOf(seen.layer);
      const colour = Plots.colour(COLOURS[seen.layer]);
      surface.rects(colour, bars(kind).concat(boxes(long[kind], box, y)));
      if (seen.layer === "flight") surface.lines(colour, steps(kind));
      return;
    }
    const names = Object.keys(LAYERS.bytes.parts).filter((one) => one !== "classified" && shown(one));
    for (const name of names.reverse()) {
      const kind = RANGES.indexOf(name);
      const colour = Plots.colour(COLOURS[name]);
      if (name === "data" || name === "sacked") surface.rects(colour, bars(kind), name === "sacked" ? 0.6 : 1);
      else surface.lines(colour, steps(kind), { width: 1.2 });
      surface.lines(colour, slopes(kind), { width: 1.2 });
    }
    if (shown("classified")) {
      for (let number = 1; number <= seen.classes; number += 1) {
        const rects = bars(1, (at) => pixels.worst[at] === number).map(([left, top, , height]) => [left - 0.5, top - 1, 2, height + 2]);
        surface.rects(classColour(number), rects);
      }
    }
    const zeros = [];
    if (shown("window")) pixels.zero.forEach((is, at) => { if (is) zeros.push([box.left + at - 1, y(pixels.kinds[2].high[at]) - 4, 3, 3]); });
    surface.rects(Plots.colour("--bad"), zeros);
  }

  // Rectangles from the begin to the end of summaries, from their lowest to their highest value.
  function boxes(points, box, y) {
    const rects = [];
    for (let n = 0; n < points.length; n += 3) {
      const [[from, low], [to, high]] = [points[n], points[n + 1]];
      rects.push([box.left + from, y(high) - 0.5, to - from, y(low) - y(high) + 1]);
    }
    return rects;
  }

  // The value after each packet as a step, or samples as squares with the numbers of their packets.
  function drawValues(surface, seen, box, y) {
    const colour = Plots.colour(COLOURS[seen.layer]);
    const x = (time) => box.left + ((time - seen.low) / (seen.high - seen.low)) * box.width;
    const [points, squares, numbers] = [[], [], []];
    for (const content of seen.contents) {
      for (let n = 0; n < content.count; n += 1) {
        const [at, value] = [x(content.time[n]), content[seen.layer][n]];
        if (Number.isNaN(value)) continue;
        if (seen.layer === "flight") step(points, at, y(value), box);
        else if (at >= box.left && at <= box.left + box.width) squares.push([at - 1.5, y(value) - 1.5, 3, 3]);
        if (at >= box.left && at <= box.left + box.width) numbers.push([at + 4, y(value) - 3, content.packet[n]]);
      }
    }
    surface.lines(colour, points, { width: 1.4 });
    surface.rects(colour, squares);
    if (numbers.length <= NUMBERED) for (const [at, up, packet] of numbers) surface.text(Plots.colour("--soft"), at, up, whole(packet));
  }

  // Of steps outside of the view only the last before it and the first after it count: long lines take long.
  function step(points, at, up, box) {
    const [first, last] = [box.left - 2, box.left + box.width + 2];
    const before = points[points.length - 1];
    if (at < first) points.length = 0;
    else if (before && before[0] >= last) return;
    else if (before) points.push([Math.min(at, last), before[1]]);
    points.push([Math.min(Math.max(at, first), last), up]);
  }

  // Each packet: data from the first to the last byte with bars as xplot has them, acknowledgements and windows as steps.
  function drawPoints(surface, seen, box, y, shown) {
    const x = (time) => box.left + ((time - seen.low) / (seen.high - seen.low)) * box.width;
    const lines = { data: [], acknowledged: [], window: [], sacked: [] };
    const classes = new Map();
    const [zeros, numbers] = [[], []];
    const bar = (points, at, from, to) => points.push([at - 2, y(from)], [at + 2, y(from)], null, [at, y(from)], [at, y(to)], null, [at - 2, y(to)], [at + 2, y(to)], null);
    for (const { count, time, kind, low, high, sacked, packet } of seen.contents) {
      for (let n = 0; n < count; n += 1) {
        const at = x(time[n]);
        if (kind[n] & ACKNOWLEDGEMENT) {
          step(lines.acknowledged, at, y(low[n]), box);
          if (!Number.isNaN(high[n])) step(lines.window, at, y(high[n]), box);
          if (at < box.left || at > box.left + box.width) continue;
          for (const [from, to] of sacked.get(n) || []) bar(lines.sacked, at, from, to);
          if (high[n] === low[n]) zeros.push([at - 3, y(low[n]) - 7, 6, 6]);
        } else if (at >= box.left && at <= box.left + box.width) {
          const number = kind[n] & CLASS;
          if (number && !classes.has(number)) classes.set(number, []);
          bar(number ? classes.get(number) : lines.data, at, low[n], high[n]);
          numbers.push([at + 4, y(high[n]) - 3, packet[n], number]);
        }
      }
    }
    for (const name of Object.keys(lines).reverse()) {
      if (shown(name)) surface.lines(Plots.colour(COLOURS[name]), lines[name], { width: name === "data" ? 1.4 : 1.1 });
    }
    if (shown("classified")) for (const [number, points] of classes) surface.lines(classColour(number), points, { width: 2.2 });
    if (shown("window")) surface.rects(Plots.colour("--bad"), zeros);
    if (numbers.length > NUMBERED || !shown("data")) return;
    for (const [at, up, packet, number] of numbers) surface.text(number ? classColour(number) : Plots.colour("--soft"), at, up, whole(packet));
  }

  function drawAxes(surface, data, { low, high, layer }, [bottom, top], box, y) {
    const { label, units } = LAYERS[layer];
    const [soft, grid] = [Plots.colour("--soft"), Plots.colour("--grid")];
    const most = Math.max(2, box.height / 45);
    const step = niceStep((top - bottom) / most);
    const [factor, unit] = units.find(([one]) => Math.max(Math.abs(top), Math.abs(bottom)) >= one) || units[units.length - 1];
    const decimals = Math.max(0, Math.ceil(-Math.log10(step / factor) - 1e-9));
    for (let n = Math.ceil(bottom / step); n * step <= top; n += 1) {
      const at = n * step || 0;
      const up = Math.round(y(at)) + 0.5;
      surface.lines(grid, [[box.left, up], [box.left + box.width, up]]);
      surface.text(soft, box.left - 6, up + 4, (at / factor).toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }), "right");
    }
    surface.text(soft, 2, 12, layer === "bytes" ? unit : `${label}, ${unit}`);
    const under = box.top + box.height + STRIP + 18;
    for (const [at, label] of timesBelow(data, low, high, box.width)) {
      surface.text(soft, box.left + ((at - low) / (high - low)) * box.width, under, label, "center");
    }
    surface.text(soft, box.left + box.width / 2, under + 17, data.axisLabel, "center");
  }

  function niceStep(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return Math.max([1, 2, 5, 10].find((factor) => factor * power >= least) * power, 1);
  }

  function timesBelow(data, low, high, width) {
    const most = Math.max(2, width / 110);
    if (data.clock) return Clock.ticks(data.clock, low, high, most);
    const power = 10 ** Math.floor(Math.log10((high - low) / most));
    const step = [1, 2, 5, 10].find((factor) => factor * power * most >= high - low) * power;
    const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, n) => [(first + n) * step, ((first + n) * step).toFixed(decimals)]);
  }

  // Violated objectives behind the graph, and causes in a strip below it: of each pixel the one that held longest.
  function drawStretches(surface, data, low, high, box) {
    const x = (time) => Math.min(Math.max(((time - low) / (high - low)) * box.width, 0), box.width);
    const bad = data.bad.map(([from, to]) => [x(from), x(to)]).filter(([from, to]) => to > from);
    surface.rects(Plots.colour("--bad"), bad.map(([from, to]) => [box.left + from, box.top, to - from, box.height]), 0.16);
    const width = Math.ceil(box.width);
    const [longest, cause] = [new Float64Array(width), new Uint8Array(width)];
    for (const [from, to, number] of data.causes) {
      if (to < low || from > high) continue;
      const [left, right] = [x(from), x(to)];
      for (let at = Math.floor(left); at < Math.min(right, width); at += 1) {
        const held = Math.min(right, at + 1) - Math.max(left, at);
        if (held > longest[at]) [longest[at], cause[at]] = [held, number];
      }
    }
    const strips = data.causeNames.map(() => []);
    for (let at = 0; at < width;) {
      let next = at + 1;
      while (next < width && cause[next] === cause[at] && longest[next] > 0 === longest[at] > 0) next += 1;
      if (longest[at] > 0) strips[cause[at]].push([box.left + at, box.top + box.height + 2, next - at, STRIP]);
      at = next;
    }
    strips.forEach((rects, number) => drawCause(surface, number, rects));
  }

  function drawCause(surface, number, rects) {
    const isDark = number < HATCHES.length;
    const [paper, ink] = [Plots.colour("--raised"), Plots.colour("--soft")];
    surface.rects(isDark ? ink : paper, rects);
    if (!isDark) surface.lines(ink, rects.flatMap(([x, y, width, height]) => [[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y], null]));
    const hatch = HATCHES[number % HATCHES.length];
    surface.lines(isDark ? paper : ink, rects.flatMap((rect) => hatchIn(hatch, ...rect)), { width: 1.2 });
  }

  // The lines of a hatch in a rectangle, at the same places wherever it begins.
  function hatchIn(hatch, x, y, width, height) {
    const lines = (LEVELS[hatch] || []).flatMap((share) => [[x, y + share * height], [x + width, y + share * height], null]);
    for (let at = Math.ceil((x - height) / HATCH) * HATCH; at < x + width; at += HATCH) {
      for (const lean of LEANS[hatch] || []) {
        // across the height, as far as it is within the width
        const ends = lean < 0 ? [[at, y], [at + height, y + height]] : [[at, y + height], [at + lean * height, y]];
        const [[from], [to]] = ends;
        if (from === to ? from < x : to <= x || from >= x + width) continue;
        const within = ([px, py]) => { const kept = Math.min(Math.max(px, x), x + width); return [kept, py + (kept - px) * -lean]; };
        lines.push(within(ends[0]), within(ends[1]), null);
      }
    }
    return lines;
  }

  // When causes held, from the distances between them in ns.
  function causesOf(steps) {
    let end = 0;
    return steps.map(([gap, length, number]) => [(end + gap) / 1e9, (end += gap + length) / 1e9, number]);
  }

  function make(figure, packed) {
    const data = { ...packed, causes: causesOf(packed.causes) };
    const place = figure.querySelector(".plot");
    const [canvas, chosen, tip] = ["canvas", "div", "div"].map((tag) => document.createElement(tag));
    chosen.className = "chosen";
    tip.className = "tip";
    tip.setAttribute("aria-live", "polite");
    chosen.hidden = tip.hidden = true;
    place.classList.add("graph");
    place.setAttribute("aria-describedby", `${figure.id}-wide-desc graph-keys`);
    place.append(canvas, chosen, tip);
    const tiles = new Tiles(data);
    const hidden = new Set();
    const height = heightChosen(figure);
    const given = Address.get(`${figure.id}.l`);
    let layer = Object.hasOwn(LAYERS, given) ? given : "bytes";
    let seen = null; // what was drawn last
    let asked = 0;

    function box() {
      const [left, right, top, bottom] = EDGES;
      return { left, top, width: Math.max(place.clientWidth - left - right, 1), height: Math.max(place.clientHeight - top - bottom, 1) };
    }

    function paint(surface, size) {
      const known = layer === "bytes" ? heightOf(seen, seen.low, seen.high) : heightOfValues(seen, seen.low, seen.high);
      const range = height.get() || (known || [0, 1]).map((end) => Math.min(Math.max(end, -HIGHEST), HIGHEST));
      const y = (value) => Math.min(Math.max(size.top + size.height - ((value - range[0]) / (range[1] - range[0])) * size.height, -FAR), FAR);
      const inView = seen.level ? Infinity : seen.contents.reduce((sum, { time }) => sum + time.reduce((n, at) => n + (at >= seen.low && at <= seen.high ? 1 : 0), 0), 0);
      Object.assign(seen, { range, y, box: size, single: inView <= SINGLE * size.width, points: inView });
      drawAxes(surface, data, seen, range, size, y);
      drawStretches(surface, data, seen.low, seen.high, size);
      surface.clip(size);
      const single = layer === "bytes" ? drawPoints : drawValues;
      (seen.single ? single : drawPixels)(surface, seen, size, y, (name) => !hidden.has(name));
      surface.unclip();
      if (!known) surface.text(Plots.colour("--soft"), size.left + size.width / 2, size.top + size.height / 2, `no ${Object.values(LAYERS[layer].parts)[0]} in view`, "center");
    }

    function show(low, high, ready) {
      seen = { low, high, layer, classes: data.classes.length, ...ready };
      paint(new CanvasSurface(canvas, place.clientWidth, place.clientHeight), box());
    }

    // Draw what is unpacked, and again when all of it is.
    async function draw(low, high) {
      const mine = (asked += 1);
      const wanted = tiles.between(low, high);
      const ready = tiles.ready(wanted, low, high);
      if (ready) show(low, high, ready);
      const loading = Promise.all(wanted.tiles.map((tile) => tiles.unpacked(tile)));
      if (ready && ready.level === wanted.tiles[0].level) return;
      await loading;
      if (mine === asked) show(low, high, { level: wanted.tiles[0].level, contents: wanted.tiles.map(({ content }) => content) });
    }

    const view = Plots.viewOf({
      figure, name: data.linked, whole: [data.from, data.to],
      across: (share) => { const [low, high] = view.range(); return low + share * (high - low); },
      draw: (low, high) => { graph.drawn = draw(low, high); },
    });
    const graph = {
      view,
      drawn: null,
      seen: () => seen,
      redraw: () => { if (seen && place.clientWidth) show(seen.low, seen.high, { level: seen.level, contents: seen.contents }); },
      svg() {
        const surface = new SvgSurface(place.clientWidth, place.clientHeight, titled());
        paint(surface, box());
        return { text: surface.document(), width: place.clientWidth, height: place.clientHeight };
      },
      rows: () => rowsOf(seen, data.classes),
      zoomHeight(factor) {
        const [low, high] = seen.range;
        const middle = (low + high) / 2;
        this.setHeight([middle - (high - low) / (2 * factor), middle + (high - low) / (2 * factor)]);
      },
      moveHeight(share) { this.setHeight(seen.range.map((end) => end + share * (seen.range[1] - seen.range[0]))); },
      setHeight(range) { height.set(range); this.redraw(); },
    };
    figure.graph = graph;
    // all at once, or the other plots on the axis would keep theirs
    const all = view.show.bind(view);
    view.show = (range) => { if (range === null) height.set(null); all(range); };
    Plots.tools(figure, data.title, view);
    layers(figure, () => layer, (name) => {
      layer = name;
      Address.set(`${figure.id}.l`, name === "bytes" ? null : name);
      height.set(null);
      named();
      graph.redraw();
    });
    named();
    keys(place, graph, (at) => describe(at));
    pointers(place, graph, box, chosen, (event) => describe(event && nearest(seen, event)));

    function titled() { return data.title.replace("Bytes", LAYERS[layer].label); }

    function named() {
      hidden.clear();
      const title = figure.querySelector("h3 bdi") || figure.querySelector("h3");
      title.textContent = titled();
      const parts = Object.keys(LAYERS[layer].parts);
      legend(figure, data, layer);
      Plots.legend(figure, parts.length, (n, shows) => { hidden[shows ? "delete" : "add"](parts[n]); graph.redraw(); });
    }

    const sized = new ResizeObserver(() => graph.redraw());
    sized.observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", graph.redraw);
    addEventListener("themechange", graph.redraw);
    addEventListener("beforeprint", () => printed(figure, graph));
    view.apply();

    function describe(found) {
      tip.hidden = !found;
      if (!found) return;
      tip.replaceChildren(...found.words(data).map((text) => { const line = document.createElement("p"); line.textContent = text; return line; }));
      const right = found.x > place.clientWidth / 2;
      tip.style.left = right ? "" : `${found.x + 12}px`;
      tip.style.right = right ? `${place.clientWidth - found.x + 12}px` : "";
      tip.style.top = `${EDGES[2]}px`;
    }
  }

  // Buttons that choose what is drawn.
  function layers(figure, chosen, choose) {
    const bar = document.createElement("div");
    bar.className = "layers";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "What is drawn");
    const buttons = Object.entries(LAYERS).map(([name, { label }]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => { choose(name); press(); });
      bar.append(button);
      return [button, name];
    });
    const press = () => buttons.forEach(([button, name]) => button.setAttribute("aria-pressed", String(name === chosen())));
    press();
    figure.querySelector(".legend").before(bar);
  }

  // The parts of a layer, then the causes in the strip below it.
  function legend(figure, data, layer) {
    const entry = (mark, text) => {
      const [item, name] = ["li", "bdi"].map((tag) => document.createElement(tag));
      name.textContent = text;
      item.append(mark, name);
      return item;
    };
    const parts = Object.entries(LAYERS[layer].parts).map(([name, text]) => {
      const mark = document.createElement("span");
      mark.className = "mark";
      mark.style.background = `var(${COLOURS[name]})`;
      return entry(mark, text);
    });
    const causes = [...new Set(data.causes.map(([, , number]) => number))].sort((a, b) => a - b);
    // once, as each mark listens to changes of the theme
    data.causeEntries ||= causes.map((number) => entry(causeMark(number), words(data.causeNames[number])));
    figure.querySelector(".legend").replaceChildren(...parts, ...data.causeEntries);
  }

  function causeMark(number) {
    const canvas = document.createElement("canvas");
    const draw = () => drawCause(new CanvasSurface(canvas, 24, STRIP + 2), number, [[1, 1, 22, STRIP]]);
    canvas.className = "cause";
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    addEventListener("themechange", draw);
    draw();
    return canvas;
  }

  const canBeDrawn = ([low, high]) => high - low >= 1 && -HIGHEST <= low && high <= HIGHEST;

  // What of the height was chosen, which stands in the address; else it fits what is in view.
  function heightChosen(figure) {
    const name = `${figure.id}.s`;
    const given = (Address.get(name) || "").split(",").map(Number);
    let range = given.length === 2 && canBeDrawn(given) ? given : null;
    return {
      get: () => range,
      set(wanted) {
        if (wanted && !canBeDrawn(wanted)) return;
        range = wanted;
        Address.set(name, wanted && wanted.map(Math.round).join(","));
      },
    };
  }

  // The drawing of what is in view for paper, in place of that of the whole.
  function printed(figure, graph) {
    const { text } = graph.svg();
    const drawn = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    drawn.setAttribute("class", "seen");
    figure.querySelector("svg.seen")?.remove();
    figure.querySelector("svg.chart")?.before(document.adoptNode(drawn));
  }

  function keys(place, graph, describe) {
    let at = null;
    const point = (step) => {
      const { low, high, contents } = graph.seen();
      const places = contents.flatMap((content, c) => Array.from({ length: content.count }, (_, n) => [c, n]).filter(([, n]) => content.end[n] >= low && content.time[n] <= high));
      if (!places.length) return;
      at = Math.min(Math.max(at === null ? places.length >> 1 : at + step, 0), places.length - 1);
      describe(found(graph.seen(), ...places[at]));
    };
    const { view } = graph;
    const actions = {
      ArrowLeft: (event) => (event.shiftKey ? view.move(-PAN) : point(-1)),
      ArrowRight: (event) => (event.shiftKey ? view.move(PAN) : point(1)),
      ArrowUp: (event) => (event.shiftKey ? graph.moveHeight(PAN) : graph.zoomHeight(ZOOM)),
      ArrowDown: (event) => (event.shiftKey ? graph.moveHeight(-PAN) : graph.zoomHeight(1 / ZOOM)),
      "+": () => view.zoom(ZOOM),
      "=": () => view.zoom(ZOOM),
      "-": () => view.zoom(1 / ZOOM),
      0: () => view.show(null),
      Escape: () => view.show(null),
    };
    Plots.listen(place, actions);
  }

  // A mouse drags a rectangle to zoom, or moves with Shift; one finger moves, two zoom.
  function pointers(place, graph, box, chosen, point) {
    const { view } = graph;
    const down = new Map();
    const within = (event) => { const { left, top } = place.getBoundingClientRect(); return [event.clientX - left, event.clientY - top]; };
    const timeAt = (x) => view.across((x - box().left) / box().width);
    const numberAt = (y) => { const { range, box: size } = graph.seen(); return range[0] + ((size.top + size.height - y) / size.height) * (range[1] - range[0]); };

    place.addEventListener("pointerdown", (event) => {
      if (event.button || !event.target.closest(".plot")) return;
      place.setPointerCapture(event.pointerId);
      down.set(event.pointerId, { from: within(event), now: within(event), range: view.range(), height: graph.seen().range });
      point(null);
    });
    place.addEventListener("pointermove", (event) => {
      const own = down.get(event.pointerId);
      if (!own) { point(event.pointerType === "touch" ? null : { x: within(event)[0], y: within(event)[1] }); return; }
      own.now = within(event);
      if (down.size === 2) pinch();
      else if (event.pointerType === "touch" || event.shiftKey) pan(own);
      else select(own);
    });
    for (const type of ["pointerup", "pointercancel"]) {
      place.addEventListener(type, (event) => {
        const own = down.get(event.pointerId);
        down.delete(event.pointerId);
        for (const other of down.values()) Object.assign(other, { from: other.now, range: view.range(), height: graph.seen().range });
        if (own && !chosen.hidden && type === "pointerup") zoom(own);
        chosen.hidden = true;
      });
    }
    place.addEventListener("pointerleave", () => point(null));
    place.addEventListener("dblclick", () => view.show(null));

    function select({ from, now }) {
      const [wide, tall] = [0, 1].map((at) => Math.abs(now[at] - from[at]));
      const { top, height } = box();
      chosen.hidden = wide < 5 && tall < 12;
      Object.assign(chosen.style, {
        left: `${Math.min(now[0], from[0])}px`, width: `${wide}px`,
        top: `${tall < 12 ? top : Math.min(now[1], from[1])}px`, height: `${tall < 12 ? height : tall}px`,
      });
    }

    function zoom({ from, now }) {
      if (Math.abs(now[1] - from[1]) >= 12) graph.setHeight([from[1], now[1]].map(numberAt).sort((a, b) => a - b));
      if (Math.abs(now[0] - from[0]) >= 5) view.show([from[0], now[0]].map(timeAt).sort((a, b) => a - b));
    }

    function pan({ from, now, range, height }) {
      const by = ((from[0] - now[0]) / box().width) * (range[1] - range[0]);
      view.show(view.clamped(range[0] + by, range[1] + by));
      const up = ((now[1] - from[1]) / box().height) * (height[1] - height[0]);
      if (Math.abs(now[1] - from[1]) >= 12) graph.setHeight(height.map((end) => end + up));
    }

    function pinch() {
      const [one, other] = down.values();
      const apart = (key) => Math.max(Math.abs(one[key][0] - other[key][0]), 10);
      const share = ((one.from[0] + other.from[0]) / 2 - box().left) / box().width;
      const [low, high] = one.range;
      const width = (high - low) * (apart("from") / apart("now"));
      const middle = low + share * (high - low);
      view.show(view.clamped(middle - share * width, middle + (1 - share) * width));
    }
  }

  // The point or summary next to a place, if one is near.
  function nearest(seen, { x, y }) {
    if (!seen) return null;
    const time = (at) => seen.box.left + ((at - seen.low) / (seen.high - seen.low)) * seen.box.width;
    let best = null;
    let least = NEARBY_PX ** 2;
    seen.contents.forEach((content, c) => {
      for (let n = 0; n < content.count; n += 1) {
        const [from, to] = [time(content.time[n]), time(content.end[n])];
        const across = Math.max(from - x, 0, x - to);
        if (across >= NEARBY_PX) continue;
        const away = across ** 2 + Math.min(...heights(seen, content, n).map(([low, high]) => Math.max(seen.y(high) - y, 0, y - seen.y(low)))) ** 2;
        if (away < least) [least, best] = [away, [c, n]];
      }
    });
    return best && found(seen, ...best);
  }

  function heights(seen, content, n) {
    if (seen.layer !== "bytes") return [valuesAt(content, seen.level, seen.layer, n)].filter(([low]) => !Number.isNaN(low));
    if (seen.level) return content.ranges.slice(0, 3).map(({ low, high }) => [low[n], high[n]]).filter(([low]) => !Number.isNaN(low));
    const own = content.kind[n] & ACKNOWLEDGEMENT ? [[content.low[n], content.low[n]]] : [[content.low[n], content.high[n]]];
    return own.concat(content.sacked.get(n) || []);
  }

  function found(seen, c, n) {
    const content = seen.contents[c];
    const x = seen.box.left + ((content.time[n] - seen.low) / (seen.high - seen.low)) * seen.box.width;
    return { x, words: (data) => (seen.level ? summaryWords(content, n, data) : pointWords(content, n, data)) };
  }

  function timeWords(data, at) {
    return data.clock ? Clock.at(data.clock, at, 1e-6) : `${at.toFixed(6)} s`;
  }

  function causeWords(data, at) {
    const held = data.causes.find(([from, to]) => from <= at && at < to);
    return held ? [`cause: ${words(data.causeNames[held[2]])}`] : [];
  }

  function pointWords(content, n, data) {
    const kind = content.kind[n];
    const controls = CONTROLS.filter(([bit]) => kind & bit).map(([, name]) => name);
    const span = ([low, high]) => `${whole(low)} to ${whole(high)}`;
    const lines = [`packet ${whole(content.packet[n])}, ${timeWords(data, content.time[n])}`];
    if (kind & ACKNOWLEDGEMENT) {
      lines.push([...controls, `acknowledges ${whole(content.low[n])}`].join(", "));
      if (!Number.isNaN(content.high[n])) lines.push(content.high[n] === content.low[n] ? "zero window" : `window ${whole(content.high[n] - content.low[n])} B, up to ${whole(content.high[n])}`);
      const sacked = content.sacked.get(n);
      if (sacked) lines.push(`SACK ${sacked.map(span).join("; ")}`);
    } else {
      lines.push([...controls, `data ${span([content.low[n], content.high[n]])}`].join(", "));
      if (kind & CLASS) lines.push(words(data.classes[(kind & CLASS) - 1]));
    }
    lines.push(`${whole(content.flight[n])} B in flight`);
    const since = Number.isNaN(content.since[n]) ? "" : ` since packet ${whole(content.since[n])}`;
    if (!Number.isNaN(content.rtt[n])) lines.push(`RTT ${milliseconds(content.rtt[n])}${since}`);
    return lines.concat(causeWords(data, content.time[n]));
  }

  function summaryWords(content, n, data) {
    const lines = [`${whole(content.points[n])} packets from packet ${whole(content.packet[n])}, ${timeWords(data, content.time[n])}`];
    const named = { data: "data", acknowledged: "acknowledged", window: "edge of the window", sacked: "SACK", flight: "bytes in flight", rtt: "RTT" };
    for (const [name, label] of Object.entries(named)) {
      const [low, high] = valuesAt(content, 1, name, n);
      const written = name === "rtt" ? milliseconds : whole;
      if (!Number.isNaN(low)) lines.push(`${label} ${written(low)} to ${written(high)}`);
    }
    content.counts.forEach((counts, number) => { if (counts[n]) lines.push(`${words(data.classes[number])}: ${whole(counts[n])}`); });
    if (content.zeroWindows[n]) lines.push(`zero windows: ${whole(content.zeroWindows[n])}`);
    return lines.concat(causeWords(data, content.time[n]));
  }

  // What is in view as rows of a table.
  function rowsOf(seen, classes) {
    const inView = (content, n) => content.end[n] >= seen.low && content.time[n] <= seen.high;
    const known = (value) => (Number.isNaN(value) ? null : value);
    const rows = seen.level
      ? [["packet", "packets", "start_s", "end_s", ...RANGES.flatMap((name) => [`${name}_low`, `${name}_high`]), "zero_windows", ...classes]]
      : [["packet", "time_s", "what", "from", "to", "class", "sacked", "flight", "rtt_ms"]];
    for (const content of seen.contents) {
      for (let n = 0; n < content.count; n += 1) {
        if (!inView(content, n)) continue;
        if (seen.level) {
          const ranges = content.ranges.flatMap(({ low, high }) => [known(low[n]), known(high[n])]);
          rows.push([content.packet[n], content.points[n], content.time[n], content.end[n], ...ranges, content.zeroWindows[n], ...content.counts.map((counts) => counts[n])]);
        } else {
          const acknowledges = content.kind[n] & ACKNOWLEDGEMENT;
          const sacked = (content.sacked.get(n) || []).map(([from, to]) => `${from}-${to}`).join(" ");
          rows.push([content.packet[n], content.time[n], acknowledges ? "acknowledgement" : "data", content.low[n], known(content.high[n]), classes[(content.kind[n] & CLASS) - 1], sacked, content.flight[n], known(content.rtt[n] / 1e6)]);
        }
      }
    }
    return rows;
  }

  return { make };
})();
