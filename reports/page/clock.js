// Times of day on an axis of seconds: what `time_axis.py` does, for plots that are zoomed.
"use strict";

const Clock = (() => {
  const DAY_S = 86400;
  const STEPS_S = [
    ...[-6, -5, -4, -3, -2, -1].flatMap((power) => [1, 2, 5].map((factor) => Number(`${factor}e${power}`))),
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
    ...[1, 2, 7, 14, 28, 91, 182, 364, 1820, 7280].map((days) => days * DAY_S),
  ];

  // how far clocks are ahead of those at 0 s, after they were changed
  function shift(clock, at) {
    let ahead = 0;
    for (const [since, by] of clock.shifts) if (since <= at) ahead = by;
    return ahead;
  }

  function date(clock, days, step) {
    const options = step < 300 * DAY_S ? { month: "short", day: "numeric" } : { month: "short", year: "numeric" };
    return new Date(Date.parse(clock.day) + days * DAY_S * 1000).toLocaleDateString("en-US", { ...options, timeZone: "UTC" });
  }

  function hours(rest, step) {
    const two = (value) => String(value).padStart(2, "0");
    const minutes = Math.floor(rest / 60);
    const text = `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
    if (step >= 60) return text;
    const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    return `${text}:${(rest - minutes * 60).toFixed(decimals).padStart(decimals ? 3 + decimals : 2, "0")}`;
  }

  function words(clock, local, step) {
    const days = Math.floor(Number(local.toFixed(6)) / DAY_S);
    const rest = Number((local - days * DAY_S).toFixed(6));
    return rest === 0 || step >= DAY_S ? date(clock, days, step) : hours(rest, step);
  }

  function ticks(clock, low, high, most) {
    const step = STEPS_S.find((one) => high - low <= one * most) || STEPS_S[STEPS_S.length - 1];
    const found = [];
    for (let number = Math.ceil((low + clock.since + shift(clock, low)) / step - 1e-9); ; number += 1) {
      const local = number * step;
      const guess = local - clock.since;
      const at = guess - shift(clock, guess);
      if (at > high + 1e-9 * (high - low)) return found;
      if (at >= low - 1e-9 * (high - low)) found.push([at, words(clock, local, step)]);
    }
  }

  // date and time of day, as exact as a pixel of so many seconds
  function at(clock, seconds, exact) {
    const local = seconds + clock.since + shift(clock, seconds);
    const days = Math.floor(local / DAY_S);
    const step = exact >= 30 ? 60 : STEPS_S.filter((one) => one <= Math.max(exact, 1e-6)).pop();
    return `${date(clock, days, DAY_S)}, ${hours(local - days * DAY_S, step)} ${clock.zone}`;
  }

  return { ticks, at };
})();
