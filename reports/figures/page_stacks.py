"""Stacked bars as SVG for a page, in the classes of its colours: what `charts.py` draws for paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.elements import STYLES
from tfrctrace.reports.figures.charts import GROUP_SHARE, REST, chart_scale, heights
from tfrctrace.reports.figures.svg import PAGE
from tfrctrace.reports.figures.svg_axes import POINTS_PER_PIXEL, Box, Scale, escaped, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrctrace.reports.figures.charts import Chart, Series
    from tfrctrace.reports.figures.svg import Place

_MARGINS_PX: Final = (62, 24, 16, 42)
_LEGEND_PT: Final = PAGE.text_pt - 1
_ROW_PT: Final = 1.5 * _LEGEND_PT
_SWATCH_PT: Final = (2 * _LEGEND_PT, 0.7 * _LEGEND_PT)
_CHARACTER: Final = 0.55
"""Width of a character, of the size of a text."""

_HATCHES: Final = (
    "",
    "M0 6L6 0M-1 1L1 -1M5 7L7 5",
    "M2 3a1 1 0 1 0 2 0a1 1 0 1 0 -2 0",
    "M0 0L6 6M-1 5L1 7M5 -1L7 1",
    "M0 6L6 0M0 0L6 6",
    "M3 0V6M0 3H6",
)
"""What is drawn over a bar whose colour another one has, too."""


def stacks_svg(chart: Chart, place: Place) -> str:
    """Return a chart of stacked bars as an `<svg>` element."""
    factor, unit = chart_scale(chart)
    legend = _legend(chart, place)
    left, right, top, bottom = _MARGINS_PX
    is_turned = sum(map(len, chart.categories)) * _CHARACTER * PAGE.text_pt > _width_pt(place)
    below = max(map(len, chart.categories), default=0) * _CHARACTER * PAGE.text_pt / 2 if is_turned else 0.0
    rows = len(chart.series) / max(_columns(chart, place), 1)
    above = top + math.ceil(rows) * _ROW_PT / POINTS_PER_PIXEL
    box = Box.within(place, (left, right, above, bottom + below / POINTS_PER_PIXEL))
    x = Scale(-0.5, len(chart.categories) - 0.5, box.left, box.right)
    tops = [sum(values) for values in zip(*(heights(one, factor) for one in chart.series), strict=True)]
    y = Scale(0.0, max(tops, default=0.0) or 1.0, box.bottom, box.top)
    names = list(enumerate(chart.categories))
    return box.element(
        chart,
        "".join(
            [
                *_patterns(chart, place),
                *legend,
                box.beside(y, y.ticks()),
                *_bars(chart, x, y, factor, place),
                _turned(box, x, chart)
                if is_turned
                else box.below(x, [(float(at), name) for at, name in names]),
                box.named(chart.x_label, f"{chart.y_label} ({unit})" if unit else chart.y_label),
            ]
        ),
    )


def _width_pt(place: Place) -> float:
    return (place.width_px - _MARGINS_PX[0] - _MARGINS_PX[1]) * POINTS_PER_PIXEL


def _columns(chart: Chart, place: Place) -> int:
    """Return how many columns of names fit above the bars."""
    return max(int(_width_pt(place) / _column_pt(chart)), 1)


def _column_pt(chart: Chart) -> float:
    longest = max((len(one.label) for one in chart.series), default=0)
    return _SWATCH_PT[0] + (longest + 3) * _CHARACTER * _LEGEND_PT


def _legend(chart: Chart, place: Place) -> Iterator[str]:
    columns, start = _columns(chart, place), _MARGINS_PX[0] * POINTS_PER_PIXEL
    wide, high = _SWATCH_PT
    for number, series in enumerate(chart.series):
        x = start + number % columns * _column_pt(chart)
        y = (number // columns + 1) * _ROW_PT
        yield from _filled(
            series, number, f'x="{x:.2f}" y="{y - high:.2f}" width="{wide:g}" height="{high:g}"', place
        )
        yield words(series.label, x + wide + 4, y, size_pt=_LEGEND_PT, anchor="start")


def _bars(chart: Chart, x: Scale, y: Scale, factor: float, place: Place) -> Iterator[str]:
    base = [0.0] * len(chart.categories)
    width = x.place(GROUP_SHARE) - x.place(0.0)
    for number, series in enumerate(chart.series):
        for at, value in enumerate(heights(series, factor)):
            if value:
                top, foot = y.place(base[at] + value), y.place(base[at])
                left = x.place(series.x[at] - GROUP_SHARE / 2)
                where = f'x="{left:.2f}" y="{top:.2f}" width="{width:.2f}" height="{foot - top:.2f}"'
                yield from _filled(series, number, where, place)
                base[at] += value


def _filled(series: Series, number: int, where: str, place: Place) -> Iterator[str]:
    """Yield a bar at a place, and the hatch over it."""
    colour = _colour(series, number)
    role = "other" if colour == REST else f"c{colour % STYLES + 1}"
    yield f'<rect class="f-{role} s-paper" stroke-width="0.4" {where}></rect>'
    if hatch := _hatch(colour):
        yield f'<rect fill="url(#{escaped(place.key)}-hatch-{hatch})" {where}></rect>'


def _colour(series: Series, number: int) -> int:
    return number if series.colour is None else series.colour


def _hatch(colour: int) -> int:
    return max(colour, 0) // STYLES % len(_HATCHES)


def _patterns(chart: Chart, place: Place) -> Iterator[str]:
    """Yield the hatches that are used."""
    for hatch in sorted({_hatch(_colour(one, number)) for number, one in enumerate(chart.series)} - {0}):
        yield (
            f'<pattern id="{escaped(place.key)}-hatch-{hatch}" width="6" height="6" '
            f'patternUnits="userSpaceOnUse">'
            f'<path class="f-paper s-paper" d="{_HATCHES[hatch]}" stroke-width="0.8"></path></pattern>'
        )


def _turned(box: Box, x: Scale, chart: Chart) -> str:
    """Return names below the bars that have no room beside each other."""
    y = box.bottom + PAGE.text_pt
    return "".join(
        words(name, x.place(float(at)), y, anchor="end", turned=-30)
        for at, name in enumerate(chart.categories)
    )
