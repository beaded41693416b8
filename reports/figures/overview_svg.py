"""An overview as SVG, written by hand: lanes and cells, in the classes of the page's colours."""

from __future__ import annotations

import html
import math
import re
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.figures.svg import Place
from tfrctrace.reports.safe_text import plain_text
from tfrctrace.reports.time_axis import ticks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.reports.elements import Curve, HeatMap, Lane, Overview

OVERVIEW_PX: Final = 1170
"""Width of a wide drawing: what a window of 1,300 pixels leaves."""

_LEFT_PX: Final = 118
"""Width of the names of hosts, in a drawing of either width."""

_RIGHT_PX: Final = {True: 112, False: 6}
"""Width of what stands behind rows, in a wide drawing and in a narrow one."""

_WIDE_FROM_PX: Final = 600
_LANE_PX: Final = {"ms": 86, "": 40, "bit/s": 52}
_TITLE_PX: Final = 15
_GAP_PX: Final = 5
_ROW_PX: Final = 12
_AXIS_PX: Final = 18
_TEXT_PX: Final = 10
_LEVELS: Final = 6
_VERDICTS: Final = ("f-met", "h4", "h6")
_LONGEST_NAME: Final = 19
_TIMES: Final = {True: 10, False: 4}
"""Times of day below a drawing."""

_PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))

_HEAT: Final = ("#dfe7ea", "#fde3c8", "#fbc08a", "#f09050", "#d9602c", "#b03218", "#7a120e")
_CURVES: Final = ("#0072b2", "#d55e00", "#00835f", "#b0478c", "#8c6a00", "#2f8fc4")

_COLOURS: Final = {
    "ink": "#566069",
    "grid": "#dfe3e6",
    "rail": "#f7f8f9",
    "other": "#7a848c",
    "bad": "#c8102e",
    "met": "#9fcfb8",
    **dict(zip(("c1", "c2", "c3", "c4", "c5", "c6"), _CURVES, strict=True)),
    **dict(zip(("h0", "h1", "h2", "h3", "h4", "h5", "h6"), _HEAT, strict=True)),
}
"""Colours of a file of its own."""


def height_px(overview: Overview) -> int:
    """Return how high a drawing is."""
    lanes = sum(_LANE_PX[lane.unit] + _TITLE_PX + _GAP_PX for lane in overview.lanes)
    maps = sum(_ROW_PX * len(heat_map.rows) + _TITLE_PX + _GAP_PX for heat_map in overview.heat_maps)
    return lanes + maps + _AXIS_PX


def overview_svg(overview: Overview, place: Place) -> str:
    """Return the overview as an `<svg>` element for a page."""
    return _svg(overview, place)


def overview_file(overview: Overview) -> bytes:
    """Return the overview as an SVG file that needs no style sheet."""
    place = Place(width_px=OVERVIEW_PX, height_px=height_px(overview), key=overview.key)
    drawn = _svg(overview, place, ' xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"')
    return re.sub(r'class="(?:([fs])-)?(\w*)"', _attribute, drawn).encode()


def _attribute(found: re.Match[str]) -> str:
    """Return the colour of a class as an attribute."""
    kind, role = found.groups()
    return f'{"stroke" if kind == "s" else "fill"}="{_COLOURS[role]}"' if role else ""


def _svg(overview: Overview, place: Place, namespace: str = "") -> str:
    is_wide = place.width_px >= _WIDE_FROM_PX
    right = place.width_px - _RIGHT_PX[is_wide]
    scale = _Scale(overview, _LEFT_PX, right)
    end = height_px(overview) - _AXIS_PX
    lanes = sum(_LANE_PX[lane.unit] + _TITLE_PX + _GAP_PX for lane in overview.lanes)
    parts = [
        *_stretches(overview, scale, lanes - _GAP_PX),
        *_times(overview, scale, end, _TIMES[is_wide]),
    ]
    y = 0.0
    for lane in overview.lanes:
        parts += _lane(lane, scale, y)
        y += _LANE_PX[lane.unit] + _TITLE_PX + _GAP_PX
    for heat_map in overview.heat_maps:
        parts += _heat_map(heat_map, scale, y, is_wide=is_wide)
        y += _ROW_PX * len(heat_map.rows) + _TITLE_PX + _GAP_PX
    key = _text(place.key)
    return (
        f'<svg{namespace} viewBox="0 0 {place.width_px} {height_px(overview)}" class="{place.css}" '
        f'role="img" '
        f'aria-labelledby="{key}-title {key}-desc" data-left="{_LEFT_PX}" data-right="{right}">'
        f'<title id="{key}-title">{_text(overview.title)}</title>'
        f'<desc id="{key}-desc">{_text(overview.description)}</desc>{"".join(parts)}</svg>'
    )


class _Scale:
    """Where intervals are drawn."""

    def __init__(self, overview: Overview, left: float, right: float) -> None:
        self.left, self.right = left, right
        self.low_s = overview.starts_s[0]
        self.high_s = overview.starts_s[-1] + overview.width_s
        self.edges = [self.x(start_s) for start_s in (*overview.starts_s, self.high_s)]

    def x(self, at_s: float) -> float:
        share = (at_s - self.low_s) / (self.high_s - self.low_s)
        return self.left + share * (self.right - self.left)


def _stretches(overview: Overview, scale: _Scale, bottom: float) -> Iterator[str]:
    """Yield the stretches that violated an objective, behind the lanes."""
    for begin_s, end_s in overview.bad_s:
        left, right = max(scale.x(begin_s), scale.left), min(scale.x(end_s), scale.right)
        if right > left:
            yield (
                f'<rect class="f-bad" x="{left:.1f}" y="{_TITLE_PX}" width="{max(right - left, 1.0):.1f}" '
                f'height="{bottom - _TITLE_PX:g}" fill-opacity="0.16"></rect>'
            )


def _lane(lane: Lane, scale: _Scale, top: float) -> Iterator[str]:
    base, height = top + _TITLE_PX + _LANE_PX[lane.unit], _LANE_PX[lane.unit]
    largest = max(
        (value for curve in lane.curves for value in (*curve.values, *curve.high) if value is not None),
        default=0.0,
    )
    end, factor, unit = _round_end(largest, lane.unit)
    x = scale.left
    for curve in lane.curves:
        yield f'<rect class="f-{_role(curve)}" x="{x:g}" y="{top + 4:g}" width="9" height="7"></rect>'
        yield _words(curve.label, x + 12, top + _TITLE_PX - 4)
        x += 22 + 5.6 * len(curve.label)
    for share in (0.0, 0.5, 1.0):
        y = base - share * height
        yield f'<path class="s-grid" d="M{scale.left:g} {y:g}H{scale.right:g}" fill="none"></path>'
    yield _words(f"{end / factor:g}{unit}", scale.left - 5, base - height + 4, anchor="end")
    yield _words("0", scale.left - 5, base + 1, anchor="end")
    for curve in lane.curves:
        yield from _course(curve, scale, base, height / end)


def _course(curve: Curve, scale: _Scale, base: float, per_unit: float) -> Iterator[str]:
    """Yield the steps of a curve: a band if it has one, and its line, or the area below it."""
    role = _role(curve)
    area: list[str] = []
    line: list[str] = []
    previous: float | None = None
    lows: Sequence[float | None] = curve.low or (0.0,) * len(curve.values)
    highs: Sequence[float | None] = curve.high or curve.values
    for left, right, value, low, high in zip(
        scale.edges, scale.edges[1:], curve.values, lows, highs, strict=False
    ):
        if value is not None:
            y = base - value * per_unit
            line.append(f"{'L' if previous is not None else 'M'}{left:.1f} {y:.1f}H{right:.1f}")
            if low is not None and high is not None:
                above, below = base - high * per_unit, base - low * per_unit
                area.append(f"M{left:.1f} {below:.1f}V{above:.1f}H{right:.1f}V{below:.1f}Z")
        previous = value
    yield f'<path class="f-{role}" fill-opacity="0.3" d="{"".join(area)}"></path>'
    yield f'<path class="s-{role}" fill="none" stroke-width="1.2" d="{"".join(line)}"></path>'


def _heat_map(heat_map: HeatMap, scale: _Scale, top: float, *, is_wide: bool) -> Iterator[str]:
    end = "" if heat_map.is_verdict else f", up to {_amount(heat_map.darkest, heat_map.unit)}"
    yield _words(f"{heat_map.label}{end}", scale.left, top + _TITLE_PX - 4)
    y = top + _TITLE_PX
    for row in heat_map.rows:
        name = plain_text(row.label)
        shown = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        yield _words(shown, scale.left - 5, y + _ROW_PX - 3, anchor="end")
        yield (
            f'<rect class="f-rail" x="{scale.left:g}" y="{y:g}" width="{scale.right - scale.left:g}" '
            f'height="{_ROW_PX - 2}"></rect>'
        )
        # one path for each level: a cell is too short to be an element
        cells: list[list[str]] = [[] for _ in range(_LEVELS + 1)]
        for left, right, value in zip(scale.edges, scale.edges[1:], row.values, strict=False):
            if value is not None:
                cells[_level(value, heat_map)].append(
                    f"M{left:.1f} {y:g}H{right + 0.2:.1f}v{_ROW_PX - 2}H{left:.1f}Z"
                )
        for level, drawn in enumerate(cells):
            if drawn:
                role = _VERDICTS[level] if heat_map.is_verdict else f"h{level}"
                yield f'<path class="{role}" d="{"".join(drawn)}"></path>'
        if is_wide:
            yield _words(row.detail, scale.right + 5, y + _ROW_PX - 3)
        y += _ROW_PX


def _level(value: float, heat_map: HeatMap) -> int:
    """Return the colour of a cell: 0 for nothing, then by the share of the darkest; or the verdict."""
    if heat_map.is_verdict:
        return int(value)
    share = value / heat_map.darkest if heat_map.darkest else 0.0
    return min(max(math.ceil(share * _LEVELS), 0 if value == 0 else 1), _LEVELS)


def _times(overview: Overview, scale: _Scale, top: float, most: int) -> Iterator[str]:
    """Yield the words below the drawing, and a line through all of it at each."""
    if overview.axis.clock is not None:
        yield _words(overview.axis.clock.zone, 0, top + 11)
    for at_s, words in _marks(overview, scale, most):
        x = scale.x(at_s)
        yield f'<path class="s-grid" d="M{x:.1f} {_TITLE_PX}V{top:g}" fill="none"></path>'
        yield _words(words, x, top + 11, anchor="middle")


def _marks(overview: Overview, scale: _Scale, most: int) -> list[tuple[float, str]]:
    if overview.axis.clock is not None:
        return ticks(overview.axis.clock, scale.low_s, scale.high_s, most)
    span = scale.high_s - scale.low_s
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * factor for factor in (1, 2, 5, 10) if span <= power * factor * most)
    first = math.ceil(scale.low_s / step - 1e-9)
    numbers = range(first, math.floor(scale.high_s / step + 1e-9) + 1)
    return [(number * step, f"{number * step:.12g} s") for number in numbers]


def _round_end(largest: float, unit: str) -> tuple[float, float, str]:
    """Return the end of an axis, what it is divided by, and the unit that it then has."""
    if largest <= 0:
        return 1.0, 1.0, unit
    power = 10.0 ** math.floor(math.log10(largest))
    end = next(
        power * factor for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if largest <= power * factor * 1.0001
    )
    if not unit:
        return end, 0.01, "\u00a0%"
    scale, prefix = (
        next((fit for fit in _PREFIXES if end >= fit[0]), _PREFIXES[-1]) if unit != "ms" else (1.0, "")
    )
    return end, scale, f"\u00a0{prefix}{unit}"


def _amount(value: float, unit: str) -> str:
    return f"{value:.3g} ms" if unit else f"{value * 100:.3g} %"


def _role(curve: Curve) -> str:
    return f"c{curve.style}" if curve.style else "other"


def _words(words: str, x: float, y: float, *, anchor: str = "start") -> str:
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="f-ink" x="{x:.1f}" y="{y:.1f}" font-size="{_TEXT_PX}"{at}>{_text(words)}</text>'


def _text(text: str) -> str:
    return html.escape(plain_text(text), quote=True)
