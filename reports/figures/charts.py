"""Charts of repeated runs: lines with intervals, bars, boxes, cumulative shares, and curves over time.

A chart is drawn by `draw` in the colours that it is given: those of a page (`drawing.py`) or of a journal
(`publication.py`). Every series differs from the others in more than colour.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

ChartKind = Literal["line", "bars", "stacks", "box", "cdf", "time series"]

MAX_SERIES: Final = 12
"""Series of one chart; more could not be distinguished."""

_DASHES: Final = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (5, 1.5, 1.2, 1.5)),
    (0, (8, 2)),
    (0, (3, 1, 1, 1)),
)
_MARKERS: Final = ("o", "s", "^", "D", "v", "P")
_HATCHES: Final = ("", "///", "...", "\\\\\\", "xxx", "+++")
_PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_PREFIXED: Final = frozenset({"bit/s", "bytes", "B"})
_AXIS_SHARE: Final = 0.75
"""Share of the width of a drawing that the names below its x axis may take together."""

_HEADROOM: Final = 1.05
"""Height of an axis over the highest value, at least."""

_SWATCH_CHARACTERS: Final = 8
"""Width, in characters, of the line and the gap of a legend entry."""

GROUP_SHARE: Final = 0.8
"""Share of the width of a category that its bars or boxes fill."""


REST: Final = -1
"""Number of the colour of what is left over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, or one bar or box in each category; values in the unit of the chart, None where unknown."""

    label: str
    x: tuple[float, ...]
    """Positions on the axis: numbers of categories from 0, or the values of a cdf."""
    values: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    samples: tuple[tuple[float, ...], ...] = ()
    """All values at each position, for boxes."""
    reference_of: int | None = None
    """Number of the series for which these are reported values of another author; drawn as hollow marks."""
    colour: int | None = None
    """Number of its colour, where the same name has it in all charts; None for that of its place."""
    category_colours: tuple[int, ...] = ()
    """The same of each of its bars, where categories have colours and the series has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One drawing; `categories` are the names of whole numbers on the x axis, if it has no numbers."""

    key: str
    title: str
    description: str
    """Text alternative for people who cannot see the chart."""
    caption: str
    kind: ChartKind
    x_label: str
    y_label: str
    unit: str
    series: tuple[Series, ...]
    categories: tuple[str, ...] = ()
    is_stepped: bool = False
    """Whether a value of a time series holds until the next one, as a window does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartStyle:
    """Colours and sizes (pt) of a drawing; `colours` of series, which begin again after the last.

    `rest` is the colour of the curve that sums up everything without a curve of its own, `bad` that of the
    stretches in which an objective was violated.
    """

    ink: str
    grid: str
    paper: str
    colours: tuple[str, ...]
    rest: str
    text_pt: float
    line_pt: float
    bad: str = "#c8102e"


def draw(axes: Axes, chart: Chart, look: ChartStyle) -> None:
    """Draw a chart on empty axes."""
    chart = _with_plain_texts(chart)
    scale, unit = chart_scale(chart)
    _style_axes(axes, look)
    _DRAWN[chart.kind](axes, chart, look, scale)
    label = f"{chart.y_label} ({unit})" if unit else chart.y_label
    is_share = chart.kind == "cdf"
    axes.set_xlabel(label if is_share else chart.x_label, color=look.ink, fontsize=look.text_pt)
    axes.set_ylabel("share of values" if is_share else label, color=look.ink, fontsize=look.text_pt)
    if chart.categories:
        axes.set_xticks(range(len(chart.categories)), chart.categories)
        if sum(map(len, chart.categories)) > _characters(axes, look):
            axes.tick_params(axis="x", labelrotation=30)
            for name in axes.get_xticklabels():
                name.set_horizontalalignment("right")
                name.set_rotation_mode("anchor")
        axes.set_xlim(-0.5, len(chart.categories) - 0.5)
    elif chart.kind == "line" and all(float(x).is_integer() for one in chart.series for x in one.x):
        # whole numbers only: there is no half flow
        axes.locator_params(axis="x", integer=True)
    if is_share:
        axes.set_ylim(0, 1)
    elif min(numbers := _numbers(chart), default=0.0) >= 0:
        # keep nearly equal values off the edge
        axes.set_ylim(0, max(axes.get_ylim()[1], _HEADROOM * max(numbers, default=0.0) / scale))
    if len(chart.series) > 1:
        _name_series(axes, look)


def _name_series(axes: Axes, look: ChartStyle) -> None:
    """Put the legend above the axes, where it hides no curve, in as many columns as fit."""
    handles, labels = axes.get_legend_handles_labels()
    room = _characters(axes, look) / _AXIS_SHARE
    columns = int(room // (max(map(len, labels)) + _SWATCH_CHARACTERS))
    axes.figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=min(max(columns, 1), len(labels)),
        fontsize=look.text_pt - 1,
        frameon=False,
        labelcolor=look.ink,
    )


def _with_plain_texts(chart: Chart) -> Chart:
    """Return `chart` with names that every drawing can show; a study may use any characters."""
    return replace(
        chart,
        x_label=plain_text(chart.x_label),
        # the name of a quantity is one word in a file
        y_label=plain_text(chart.y_label).replace("_", " "),
        series=tuple(replace(one, label=_in_legend(one.label)) for one in chart.series),
        categories=tuple(map(plain_text, chart.categories)),
    )


def _in_legend(label: str) -> str:
    """Return a name that matplotlib shows: it leaves names with a leading `_` out of the legend."""
    shown = plain_text(label)
    return f" {shown}" if shown.startswith("_") else shown


def _characters(axes: Axes, look: ChartStyle) -> float:
    """Return how many characters fit below the x axis, each half as wide as it is high."""
    figure = axes.get_figure(root=True)
    width_in = 0.0 if figure is None else figure.get_figwidth()
    return _AXIS_SHARE * width_in * 72 / (look.text_pt * 0.55)


def _style_axes(axes: Axes, look: ChartStyle) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(look.ink)
    axes.tick_params(colors=look.ink, labelsize=look.text_pt - 0.5, which="both")
    axes.grid(visible=True, axis="y", color=look.grid, linewidth=0.5)
    axes.set_axisbelow(True)


def _draw_lines(axes: Axes, chart: Chart, look: ChartStyle, scale: float) -> None:
    for place, series in enumerate(chart.series):
        values, errors = _scaled(series.values, scale), _errors(series, scale)
        is_reference = series.reference_of is not None
        own = place if series.reference_of is None else series.reference_of
        axes.errorbar(
            series.x,
            values,
            yerr=errors,
            label=series.label,
            color=_colour(chart, own, look),
            linestyle="none" if is_reference else _DASHES[own % len(_DASHES)],
            marker=_MARKERS[own % len(_MARKERS)],
            markersize=look.line_pt * (4.2 if is_reference else 3.2),
            markerfacecolor=look.paper if is_reference else _colour(chart, own, look),
            linewidth=look.line_pt,
            elinewidth=look.line_pt * 0.7,
            capsize=look.line_pt * 1.6,
        )


def _offset(place: int, of: int) -> float:
    """Return the offset of the bar or box at `place` from the middle of its category."""
    return (place - (of - 1) / 2) * GROUP_SHARE / of


def _draw_bars(axes: Axes, chart: Chart, look: ChartStyle, scale: float) -> None:
    bars = [series for series in chart.series if series.reference_of is None]
    width = GROUP_SHARE / max(len(bars), 1)
    for place, series in enumerate(bars):
        offset = _offset(place, len(bars))
        axes.bar(
            [x + offset for x in series.x],
            _scaled(series.values, scale),
            width=width * 0.92,
            yerr=_errors(series, scale),
            label=series.label,
            color=[_colour_number(number, look) for number in series.category_colours]
            or _colour(chart, place, look),
            edgecolor=look.paper,
            hatch=_HATCHES[place % len(_HATCHES)],
            linewidth=0.4,
            ecolor=look.ink,
            capsize=look.line_pt * 1.6,
            error_kw={"elinewidth": look.line_pt * 0.7},
        )
    _mark_references(axes, chart, look, scale)


def _draw_stacks(axes: Axes, chart: Chart, look: ChartStyle, scale: float) -> None:
    """Draw the series on one another; after the last colour the hatch changes."""
    base = [0.0] * len(chart.categories)
    for place, series in enumerate(chart.series):
        number = place if series.colour is None else series.colour
        values = heights(series, scale)
        axes.bar(
            series.x,
            values,
            bottom=base,
            width=GROUP_SHARE,
            label=series.label,
            color=_colour_number(number, look),
            edgecolor=look.paper,
            hatch=_HATCHES[max(number, 0) // len(look.colours) % len(_HATCHES)],
            linewidth=0.4,
        )
        base = [before + value for before, value in zip(base, values, strict=True)]


def heights(series: Series, scale: float) -> list[float]:
    """Return how high the bars of a stack are; what is unknown takes no room."""
    return [(value or 0.0) / scale for value in series.values]


def _mark_references(axes: Axes, chart: Chart, look: ChartStyle, scale: float) -> None:
    """Draw reported values as hollow marks over the bars and boxes of their series."""
    drawn = sum(series.reference_of is None for series in chart.series)
    for series in chart.series:
        if series.reference_of is not None:
            offset = _offset(series.reference_of, drawn)
            axes.plot(
                [x + offset for x in series.x],
                _scaled(series.values, scale),
                label=series.label,
                linestyle="none",
                marker="D",
                color=look.ink,
                markerfacecolor=look.paper,
                markersize=look.line_pt * 3.2,
                zorder=3,
            )


def _draw_boxes(axes: Axes, chart: Chart, look: ChartStyle, scale: float) -> None:
    boxes = [series for series in chart.series if series.reference_of is None]
    width = GROUP_SHARE / max(len(boxes), 1)
    for place, series in enumerate(boxes):
        colour = _colour(chart, place, look)
        offset = _offset(place, len(boxes))
        stats = [_box(samples, scale) for samples in series.samples if samples]
        places = [x + offset for x, samples in zip(series.x, series.samples, strict=True) if samples]
        if not stats:
            continue
        line = {"color": colour, "linewidth": look.line_pt * 0.8}
        axes.bxp(
            stats,
            positions=places,
            widths=width * 0.8,
            manage_ticks=False,
            patch_artist=True,
            label=series.label,
            boxprops={"facecolor": look.paper, "edgecolor": colour, "linewidth": look.line_pt * 0.8},
            medianprops={"color": colour, "linewidth": look.line_pt * 1.4},
            whiskerprops=line,
            capprops=line,
            flierprops={
                "marker": _MARKERS[place % len(_MARKERS)],
                "markersize": 3,
                "markeredgecolor": colour,
            },
        )
    _mark_references(axes, chart, look, scale)


def _box(samples: Sequence[float], scale: float) -> dict[str, Any]:
    """Return the median, quartiles by nearest rank, and whiskers to the last values within 1.5 of these."""
    ordered = [sample / scale for sample in sorted(samples)]
    low, high = (ordered[max(math.ceil(share * len(ordered)), 1) - 1] for share in (0.25, 0.75))
    reach = 1.5 * (high - low)
    inside = [value for value in ordered if low - reach <= value <= high + reach]
    outside = [value for value in ordered if not low - reach <= value <= high + reach]
    return {
        "q1": low,
        "med": statistics.median(ordered),
        "q3": high,
        "whislo": inside[0],
        "whishi": inside[-1],
        "fliers": outside,
    }


def _draw_shares(axes: Axes, chart: Chart, look: ChartStyle, scale: float) -> None:
    for place, series in enumerate(chart.series):
        ordered = sorted(series.x)
        axes.step(
            [value / scale for value in (ordered[0], *ordered)],
            [rank / len(ordered) for rank in range(len(ordered) + 1)],
            where="post",
            label=series.label,
            color=_colour(chart, place, look),
            linestyle=_DASHES[place % len(_DASHES)],
            linewidth=look.line_pt,
        )


def _draw_times(axes: Axes, chart: Chart, look: ChartStyle, scale: float) -> None:
    for place, series in enumerate(chart.series):
        axes.plot(
            series.x,
            _scaled(series.values, scale),
            label=series.label,
            color=_colour(chart, place, look),
            linestyle=_DASHES[place % len(_DASHES)],
            linewidth=look.line_pt,
            drawstyle="steps-post" if chart.is_stepped else "default",
        )


_DRAWN: Final = {
    "line": _draw_lines,
    "bars": _draw_bars,
    "stacks": _draw_stacks,
    "box": _draw_boxes,
    "cdf": _draw_shares,
    "time series": _draw_times,
}


def _colour(chart: Chart, place: int, look: ChartStyle) -> str:
    """Return the colour of the series at `place`."""
    own = chart.series[place].colour
    return _colour_number(place if own is None else own, look)


def _colour_number(number: int, look: ChartStyle) -> str:
    return look.rest if number == REST else look.colours[number % len(look.colours)]


def _scaled(values: Sequence[float | None], scale: float) -> list[float]:
    return [math.nan if value is None else value / scale for value in values]


def _errors(series: Series, scale: float) -> list[list[float]] | None:
    """Return how far each interval reaches below and above its value."""
    if not series.low:
        return None
    below: list[float] = []
    above: list[float] = []
    for value, low, high in zip(series.values, series.low, series.high, strict=True):
        if value is None or low is None or high is None:
            below.append(math.nan)
            above.append(math.nan)
        else:
            # a bootstrap interval of a skewed sample may begin above the mean
            below.append(max((value - low) / scale, 0.0))
            above.append(max((high - value) / scale, 0.0))
    return [below, above]


def chart_scale(chart: Chart) -> tuple[float, str]:
    """Return what values are divided by, and the unit they then have."""
    if chart.unit not in _PREFIXED:
        return 1.0, chart.unit
    largest = max(map(abs, _numbers(chart)), default=0.0)
    scale, prefix = next((fit for fit in _PREFIXES if largest >= fit[0]), _PREFIXES[-1])
    return scale, f"{prefix}{'B' if chart.unit == 'bytes' else chart.unit}"


def _numbers(chart: Chart) -> list[float]:
    """Return all values, in the unit of the chart."""
    if chart.kind == "cdf":
        return [value for series in chart.series for value in series.x]
    columns = [
        column
        for series in chart.series
        for column in (series.values, series.low, series.high, *series.samples)
    ]
    return [value for column in columns for value in column if value is not None]
