"""Figures as SVG for a page, in the classes of its colours: what `drawing.py` draws for paper by matplotlib.

Drawn by hand, as matplotlib takes half a second to start and as long for the figures of a report.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.figures.drawing import (
    BAD_ALPHA,
    DASHES,
    MOST_TIMES,
    band_alpha,
    colour_of,
    drawn_values,
    has_logarithmic_values,
    in_order,
    is_wide,
    lone_points,
    value_range,
    value_scale,
    x_range,
)
from tfrctrace.reports.figures.svg import PAGE, ROLES
from tfrctrace.reports.figures.svg_axes import Box, Scale, line, with_margin
from tfrctrace.reports.time_axis import ticks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tfrctrace.reports.elements import Curve, Figure, Span
    from tfrctrace.reports.figures.svg import Place

_CURVE_MARGINS_PX: Final = (62, 24, 8, 42)
"""Margins left, right, above and below the axes: room for numbers of seven digits; equal to `plot.js`."""

_SPAN_MARGINS_PX: Final = (16, 24, 4, 42)

_ROUND: Final = ' stroke-linecap="square"'


def figure_svgs(figure: Figure, places: Iterable[Place]) -> list[str]:
    """Return `figure` as one `<svg>` element for each of `places`."""
    return [_spans_svg(figure, place) if figure.spans else _curves_svg(figure, place) for place in places]


def swatch_svg(style: int) -> str:
    """Return a piece of the line that is drawn in `style`, for a legend."""
    dashes = f' stroke-dasharray="{" ".join(map(str, DASHES[style]))}"' if style in DASHES else ""
    return (
        '<svg viewBox="0 0 24 10" aria-hidden="true">'
        f'<path class="s-{_role(style)}" d="M0 5H24" stroke-width="3"{dashes}></path></svg>'
    )


def _role(style: int) -> str:
    return ROLES[colour_of(style, PAGE)]


def _curves_svg(figure: Figure, place: Place) -> str:
    box = Box.within(place, _CURVE_MARGINS_PX)
    factor, unit = value_scale(figure)
    x = Scale(*x_range(figure), box.left, box.right, figure.axis.logarithmic)
    y = _value_scale(figure, factor, box)
    clock = figure.axis.clock
    names = [(float(level), name) for level, name in enumerate(figure.levels, start=1)]
    return box.element(
        figure,
        "".join(
            [
                *_bad_stretches(figure, x, box),
                box.below(x, x.ticks() if clock is None else ticks(clock, x.low, x.high, MOST_TIMES)),
                box.beside(y, names or y.ticks(), PAGE.text_pt - 1 if names else PAGE.text_pt),
                f"<g{box.clip}>",
                *(
                    part
                    for curve in in_order(figure.curves)
                    for part in _curve(curve, x, y, factor, band_alpha(figure))
                ),
                "</g>",
                box.named(figure.axis.label, unit or figure.value_label),
            ]
        ),
    )


def _value_scale(figure: Figure, factor: float, box: Box) -> Scale:
    is_log = has_logarithmic_values(figure)
    ends = None if is_log else value_range(figure)
    # three dB more than a wrong number of a log may be the same number
    if ends is None or ends[0] >= ends[1]:
        low, high = with_margin([value / factor for value in drawn_values(figure.curves)], is_log=is_log)
        ends = (low if is_log or high <= 0 else 0.0, high)
    return Scale(*ends, box.bottom, box.top, is_log)


def _bad_stretches(figure: Figure, x: Scale, box: Box) -> Iterator[str]:
    for begin_s, end_s in figure.bad_s:
        if begin_s < x.high and end_s > x.low:
            left, right = x.place(max(begin_s, x.low)), x.place(min(end_s, x.high))
            yield (
                f'<rect class="f-bad" opacity="{BAD_ALPHA}" x="{left:.2f}" y="{box.top:g}" '
                f'width="{right - left:.2f}" height="{box.bottom - box.top:g}"></rect>'
            )


def _curve(curve: Curve, x: Scale, y: Scale, factor: float, alpha: float) -> Iterator[str]:
    role = _role(curve.style)
    xs = [x.place(value) for value in curve.x]
    values = _places(curve.values, y, factor)
    if curve.low:
        band = _band(xs, _places(curve.low, y, factor), _places(curve.high, y, factor))
        yield f'<path class="f-{role}" fill-opacity="{alpha:g}" d="{band}"></path>'
    if curve.form != "dots":
        dashes = DASHES.get(curve.style)
        lengths = ",".join(f"{PAGE.line_pt * length:g}" for length in dashes or ())
        course = _course(xs, values, is_stepped=curve.form == "steps")
        yield line(course, role, PAGE.line_pt, f' stroke-dasharray="{lengths}"' if dashes else _ROUND)
    radius = 1.3 if curve.form == "dots" else 1.7
    for points, size, face in ((lone_points(curve), radius, role), (curve.marked, 2.2, "paper")):
        marks = "".join(
            f'<circle cx="{xs[at]:.2f}" cy="{value:.2f}" r="{size}"></circle>'
            for at in points
            if (value := values[at]) is not None
        )
        if marks:
            yield f'<g class="f-{face} s-{role}" stroke-width="1.1">{marks}</g>'


def _places(values: Sequence[float | None], y: Scale, factor: float) -> list[float | None]:
    return [None if value is None else y.place(value / factor) for value in values]


def _course(xs: Sequence[float], ys: Sequence[float | None], *, is_stepped: bool) -> str:
    """Return a line through all values, which unknown ones break; a step goes on to the next x."""
    points: list[str] = []
    before: float | None = None
    for x, y in zip(xs, ys, strict=True):
        if before is not None and is_stepped:
            points.append(f"L {x:.2f} {before:.2f}")
        if y is not None:
            points.append(f"{'M' if before is None else 'L'} {x:.2f} {y:.2f}")
        before = y
    return " ".join(points)


def _band(xs: Sequence[float], lows: Sequence[float | None], highs: Sequence[float | None]) -> str:
    """Return the area between two lines, in parts where both are known."""
    parts: list[str] = []
    above: list[str] = []
    below: list[str] = []
    for x, low, high in [*zip(xs, lows, highs, strict=True), (0.0, None, None)]:
        if low is not None and high is not None:
            above.append(f"{x:.2f} {high:.2f}")
            below.append(f"{x:.2f} {low:.2f}")
        elif above:
            parts.append(f"M {' L '.join((*above, *reversed(below)))} z")
            above, below = [], []
    return " ".join(parts)


def _spans_svg(figure: Figure, place: Place) -> str:
    box = Box.within(place, _SPAN_MARGINS_PX)
    spans = figure.spans
    is_log = is_wide([value for span in spans for value in (span.median, span.high)])
    values = [value for span in spans for value in (span.low, span.median, span.high, span.top)]
    low, high = with_margin([value for value in values if value is not None], is_log=is_log)
    x = Scale(low if is_log else 0.0, high, box.left, box.right, is_log)
    marks = x.ticks()
    up_and_down = (f"M {x.place(at):.2f} {box.bottom:g} L {x.place(at):.2f} {box.top:g}" for at, _ in marks)
    row = (box.bottom - box.top) / len(spans)
    drawn = (_span(span, x, box.top + (number + 0.5) * row) for number, span in enumerate(spans))
    return box.element(
        figure,
        "".join(
            [
                *(line(course, "grid", 0.6) for course in up_and_down),
                box.below(x, marks),
                *drawn,
                box.named("ms", ""),
            ]
        ),
    )


def _span(span: Span, x: Scale, y: float) -> str:
    role = _role(span.style)
    thin = "" if span.low is None or span.top is None else _level(x, y, span.low, span.top)
    median = f"{x.place(span.median):.2f}"
    return (
        (line(thin, role, 1.2, _ROUND) if thin else "")
        + line(_level(x, y, span.median, span.high), role, 7)
        + f'<circle class="f-paper s-{role}" stroke-width="2" cx="{median}" cy="{y:.2f}" r="4"></circle>'
    )


def _level(x: Scale, y: float, *ends: float) -> str:
    return " ".join(
        f"M {x.place(first):.2f} {y:.2f} L {x.place(last):.2f} {y:.2f}" for first, last in pairwise(ends)
    )
