"""Figures and charts drawn by matplotlib, and what a figure's axes are, however it is drawn.

A chart on a page has the colours of `svg.py`. The same chart gives the same bytes: no date, no random
identifiers, no settings of the user.
"""

from __future__ import annotations

import io
import math
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.reports.elements import OTHER
from tfrctrace.reports.figures.charts import draw
from tfrctrace.reports.figures.svg import PAGE, page_element
from tfrctrace.reports.safe_text import plain_text
from tfrctrace.reports.time_axis import ticks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.typing import RcKeyType

    from tfrctrace.reports.elements import Curve, Figure, Span
    from tfrctrace.reports.figures.charts import Chart, ChartStyle
    from tfrctrace.reports.figures.svg import Place

_POINTS_PER_PIXEL: Final = 0.75

DASHES: Final = {OTHER: (1.5, 2), 4: (6, 2), 5: (4, 1.5, 1, 1.5), 6: (2.5, 1.5)}
"""Dashes that distinguish curves besides colour; the first three are solid."""

_PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))

_PREFIXED: Final = frozenset({"bit/s", "B"})

_LOG_FROM: Final = 20.0
"""Ratio of the largest to the smallest RTT from which the axis is logarithmic."""

_ROOM: Final = 0.08
"""Share of an axis above and below the values, if it does not begin with 0."""

_LEAST_ROOM: Final = 3.0
"""The same in the unit of the figure, so that a decibel of noise does not fill it."""

_LEVEL_ROOM: Final = 0.6
"""Room below the lowest and above the highest of values with names."""

_SHARES_END: Final = 1.05
"""Keeps a curve at 1 from being cut in half."""

_MOST_DIVIDED: Final = 1e4
"""Ratio of the ends of a logarithmic axis up to which decades are divided."""

BAD_ALPHA: Final = 0.16
"""How opaque stretches are in which an objective was violated; equal to `plot.js` and the overview."""

MOST_TIMES: Final = 8
"""Times of day below an axis."""

_SETTINGS: Final[dict[RcKeyType, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tfrctrace",
    # a name from a capture must not be read as a formula
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "path.simplify": False,
    "axes.formatter.useoffset": False,
    "hatch.color": PAGE.paper,
    "hatch.linewidth": 0.8,
}


def chart_svg(chart: Chart, place: Place) -> str:
    """Return `chart` as one `<svg>` element."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with _page() as page:
        _resize(page, place)
        draw(page.add_subplot(), chart, PAGE)
        # long names of categories are turned
        ConstrainedLayoutEngine().execute(page)
        return page_element(_document(page), chart, place)


@contextmanager
def _page() -> Iterator[Canvas]:
    """Yield an empty figure, with the settings of all pages while it is drawn."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(), warnings.catch_warnings():
        # text stays text: the browser's fonts count, not those that matplotlib warns about
        warnings.simplefilter("ignore", UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        page = Canvas(facecolor="none")
        # text is measured by the backend that writes it
        FigureCanvasSVG(page)
        yield page


def _document(page: Canvas) -> bytes:
    for axes in page.axes:
        axes.patch.set_visible(False)
    written = io.BytesIO()
    # with a layout engine this would draw everything twice
    page.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()


def _resize(canvas: Canvas, place: Place) -> None:
    canvas.set_size_inches(place.width_px * _POINTS_PER_PIXEL / 72, place.height_px * _POINTS_PER_PIXEL / 72)


def draw_figure(axes: Axes, figure: Figure, look: ChartStyle) -> None:
    """Draw a figure on empty axes; curves and their marks are as wide as `look` says."""
    _style_axes(axes, look)
    if figure.curves:
        _draw_curves(axes, figure, look)
    else:
        _draw_spans(axes, figure.spans, look)


def _style_axes(axes: Axes, look: ChartStyle) -> None:
    """Remove the parts of the frame that are not needed to read a value."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(look.grid)
    axes.tick_params(colors=look.ink, labelsize=look.text_pt, length=0, which="both", pad=5)
    axes.grid(visible=True, axis="y", color=look.grid, linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_curves(axes: Axes, figure: Figure, look: ChartStyle) -> None:
    scale, unit = value_scale(figure)
    for curve in in_order(figure.curves):
        _draw_curve(axes, curve, scale, band_alpha(figure), look)
    axes.set_xlabel(figure.axis.label, color=look.ink, fontsize=look.text_pt)
    axes.set_ylabel(unit or figure.value_label, color=look.ink, fontsize=look.text_pt)
    _limit_x(axes, figure)
    low, high = x_range(figure)
    for begin_s, end_s in figure.bad_s:
        if begin_s < high and end_s > low:
            span = (max(begin_s, low), min(end_s, high))
            axes.axvspan(*span, color=look.bad, alpha=BAD_ALPHA, linewidth=0, zorder=0)
    if has_logarithmic_values(figure):
        _logarithmic(axes, "y")
    elif (ends := value_range(figure)) is not None:
        axes.set_ylim(*ends)
        if figure.levels:
            names = [plain_text(name) for name in figure.levels]
            axes.set_yticks(range(1, len(names) + 1), names, fontsize=look.text_pt - 1)
    else:
        axes.set_ylim(bottom=0)


def in_order(curves: Iterable[Curve]) -> list[Curve]:
    """Return curves as they are drawn: the largest last, which must not hide smaller ones under its band."""
    return sorted(curves, key=lambda curve: -curve.style if curve.style else -math.inf)


def band_alpha(figure: Figure) -> float:
    """Return how opaque bands are: many overlap."""
    return max(0.3 / len(figure.curves), 0.07)


def _limit_x(axes: Axes, figure: Figure) -> None:
    axes.set_xlim(*x_range(figure))
    if figure.axis.logarithmic:
        _logarithmic(axes, "x")
    elif figure.axis.clock is not None:
        marks = ticks(figure.axis.clock, *x_range(figure), MOST_TIMES)
        axes.set_xticks([at_s for at_s, _ in marks], [words for _, words in marks])


def x_range(figure: Figure) -> tuple[float, float]:
    """Return where the x axis of a figure of curves, or of nothing, begins and ends."""
    first = min((curve.x[0] for curve in figure.curves), default=0.0)
    ends = (curve.x[-1] for curve in figure.curves)
    last = figure.lasted_s if figure.axis.is_time else max(ends, default=first)
    # the first bin may begin a little before the first packet
    low = first if figure.axis.logarithmic else min(0.0, first)
    # a single value has no width of its own
    return low, last if last > low else low + 1.0


def has_logarithmic_values(figure: Figure) -> bool:
    """Return whether times (ms) differ so much that a linear axis would hide the short ones."""
    return figure.unit == "ms" and is_wide(_middle_values(figure.curves))


def value_range(figure: Figure) -> tuple[float, float] | None:
    """Return the ends of an axis of shares or of levels; None for amounts, whose axis starts at 0."""
    if figure.levels:
        return 1 - _LEVEL_ROOM, len(figure.levels) + _LEVEL_ROOM
    if figure.is_share:
        return 0.0, _SHARES_END
    if figure.unit != "dBm":
        return None
    values = drawn_values(figure.curves)
    low, high = min(values), max(values)
    room = max((high - low) * _ROOM, _LEAST_ROOM)
    return low - room, high + room


def _draw_curve(axes: Axes, curve: Curve, scale: float, alpha: float, look: ChartStyle) -> None:
    colour = colour_of(curve.style, look)
    values = _scaled(curve.values, scale)
    if curve.low:
        low, high = _scaled(curve.low, scale), _scaled(curve.high, scale)
        axes.fill_between(curve.x, low, high, color=colour, alpha=alpha, linewidth=0)
    if curve.form != "dots":
        stepping = "steps-post" if curve.form == "steps" else "default"
        (line,) = axes.plot(
            curve.x, values, color=colour, linewidth=look.line_pt, solid_joinstyle="round", drawstyle=stepping
        )
        if curve.style in DASHES:
            line.set_dashes(DASHES[curve.style])
    lone = lone_points(curve)
    marks = look.line_pt / PAGE.line_pt
    for points, size, face in (
        (lone, 2.6 if curve.form == "dots" else 3.4, colour),
        (curve.marked, 4.4, look.paper),
    ):
        if points:
            axes.plot(
                [curve.x[i] for i in points],
                [values[i] for i in points],
                color=colour,
                marker="o",
                markersize=size * marks,
                markerfacecolor=face,
                markeredgewidth=1.1 * marks,
                linestyle="none",
            )


def lone_points(curve: Curve) -> list[int]:
    """Return the indices of values through which no line goes, and that have no ring."""
    padded = (None, *curve.values, None)
    return [
        index
        for index, value in enumerate(curve.values)
        if value is not None
        and (curve.form == "dots" or (padded[index] is None and padded[index + 2] is None))
        and index not in curve.marked
    ]


def _draw_spans(axes: Axes, spans: tuple[Span, ...], look: ChartStyle) -> None:
    for place, span in enumerate(spans):
        colour = colour_of(span.style, look)
        ends = [math.nan if value is None else value for value in (span.low, span.top)]
        axes.plot(ends, [place, place], color=colour, linewidth=1.2)
        axes.plot([span.median, span.high], [place, place], color=colour, linewidth=7, solid_capstyle="butt")
        axes.plot(
            [span.median],
            [place],
            color=colour,
            marker="o",
            markersize=8,
            markerfacecolor=look.paper,
            markeredgewidth=2,
            clip_on=False,  # a median near 0 is drawn whole
        )
    axes.set_ylim(len(spans) - 0.5, -0.5)
    axes.set_yticks([])
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", color=look.grid, linewidth=0.6)
    axes.set_xlabel("ms", color=look.ink, fontsize=look.text_pt)
    if is_wide([value for span in spans for value in (span.median, span.high)]):
        _logarithmic(axes, "x")
    else:
        axes.set_xlim(left=0)


def _logarithmic(axes: Axes, name: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if name == "x":
        axes.set_xscale("log")
    else:
        axes.set_yscale("log")
    axis = axes.xaxis if name == "x" else axes.yaxis
    low, high = axes.get_xlim() if name == "x" else axes.get_ylim()
    # many decades: only whole ones have room
    steps = (1.0,) if high > _MOST_DIVIDED * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(base=10, subs=steps, numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def value_scale(figure: Figure) -> tuple[float, str]:
    """Return what values are divided by, and the unit they then have."""
    if figure.unit not in _PREFIXED:
        return 1.0, figure.unit
    largest = max(drawn_values(figure.curves), default=0.0)
    scale, prefix = next((fit for fit in _PREFIXES if largest >= fit[0]), _PREFIXES[-1])
    return scale, f"{prefix}{figure.unit}"


def drawn_values(curves: Iterable[Curve]) -> list[float]:
    """Return the values of lines and of the ends of bands."""
    series = (column for curve in curves for column in (curve.values, curve.low, curve.high))
    return [value for column in series for value in column if value is not None]


def _middle_values(curves: Iterable[Curve]) -> list[float]:
    """Return the drawn lines without their outermost 5 % at either end, which may be a few odd samples."""
    values = sorted(value for curve in curves for value in curve.values if value is not None)
    edge = len(values) // 20
    return values[edge : len(values) - edge]


def is_wide(values: list[float]) -> bool:
    """Return whether values differ so much that a linear axis would hide the small ones."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= _LOG_FROM


def _scaled(values: tuple[float | None, ...], scale: float) -> list[float]:
    return [math.nan if value is None else value / scale for value in values]


def colour_of(style: int, look: ChartStyle) -> str:
    """Return the colour of a curve or a span of this style."""
    return look.rest if style == OTHER else look.colours[style - 1]
