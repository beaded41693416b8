"""The data of the interactive plots: the curves of a figure as packed numbers.

`plot.js` draws them with the library uPlot in place of the figure's SVG, with more points when zoomed in.
"""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.flow.causes import CAUSES
from tfrctrace.reports.figures.drawing import (
    DASHES,
    has_logarithmic_values,
    value_range,
    value_scale,
    x_range,
)
from tfrctrace.reports.figures.sequence_tiles import SEGMENT_CLASSES
from tfrctrace.reports.figures.thinning import thinned
from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.reports.elements import Curve, Figure, Overview, SequenceGraph, TimeOfDay
    from tfrctrace.reports.figures.sequence_tiles import Tile

MOST_POINTS: Final = 4000
"""Points of a curve in a plot; the core keeps at most 3,000 bins of a direction."""

_TICKS_PER_UNIT: Final = 1_000_000
"""x goes into the page in whole millionths: microseconds, or ns of an axis in ms."""

_VERDICTS: Final = ("met", "violated", "severely violated")

_DIGITS: Final = 5
"""Significant digits of a value, more than a pixel shows."""


@cache
def library() -> tuple[str, ...]:
    """Return uPlot's script and its style sheet, which the build puts beside this file."""
    folder = resources.files(__package__)
    return tuple(
        folder.joinpath(name).read_text("utf-8").strip() for name in ("uPlot.iife.js", "uPlot.min.css")
    )


def packed(value: object) -> str:
    """Return `value` as JSON, compressed with gzip, in base64."""
    # JSON has no NaN; without a time stamp the same value gives the same text
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def plot_data(figure: Figure) -> dict[str, object]:
    """Return the curves of `figure` in the form that `plot.js` reads."""
    scale, unit = value_scale(figure)
    low, high = x_range(figure)
    return {
        "title": plain_text(figure.title),
        "unit": unit,
        "valueLabel": unit or figure.value_label,
        "levels": figure.levels,
        "axisLabel": figure.axis.label,
        "axisIsLogarithmic": figure.axis.logarithmic,
        "clock": clock_data(figure.axis.clock),
        "isLogarithmic": has_logarithmic_values(figure),
        "valueRange": value_range(figure),
        "from": low,
        "to": high,
        "linked": figure.linked,
        "bad": figure.bad_s,
        "curves": [_curve(curve, scale) for curve in figure.curves],
        "detail": [_curve(curve, scale) for curve in figure.detail],
    }


def graph_data(figure: Figure, graph: SequenceGraph) -> dict[str, object]:
    """Return what `sequence.js` needs besides the tiles of a graph, whose times are ns on the axis."""
    low, high = x_range(figure) if figure.curves else _time_span_s(graph)
    levels: dict[int, list[tuple[int, int, int]]] = {}
    for _, tile in keyed_tiles(graph):
        times = (tile.start_ns - graph.origin_ns, tile.end_ns - graph.origin_ns)
        levels.setdefault(tile.level, []).append((*times, tile.count))
    return {
        "key": graph.key,
        "title": plain_text(figure.title),
        "axisLabel": figure.axis.label,
        "clock": clock_data(figure.axis.clock),
        "from": low,
        "to": high,
        "linked": figure.linked,
        "bad": figure.bad_s,
        "classes": SEGMENT_CLASSES,
        "causeNames": CAUSES,
        "causes": list(_cause_steps(graph)),
        "levels": [{"level": level, "tiles": tiles} for level, tiles in levels.items()],
    }


def _cause_steps(graph: SequenceGraph) -> Iterator[tuple[int, int, int]]:
    """Yield ns since the end of the one before, mostly 0, ns that it held, and the number of the cause."""
    before_ns = 0
    for start_s, end_s, cause in graph.causes:
        start_ns, end_ns = round(start_s * 1e9), round(end_s * 1e9)
        yield start_ns - before_ns, end_ns - start_ns, CAUSES.index(cause)
        before_ns = end_ns


def _time_span_s(graph: SequenceGraph) -> tuple[float, float]:
    start_ns = min(tile.start_ns for tile in graph.tiles) - graph.origin_ns
    end_ns = max(tile.end_ns for tile in graph.tiles) - graph.origin_ns
    return start_ns / 1e9, max(end_ns, start_ns + 1) / 1e9


def keyed_tiles(graph: SequenceGraph) -> Iterator[tuple[str, Tile]]:
    """Yield the tiles of a graph, level by level, with the keys of their blocks."""
    places: dict[int, int] = {}
    for tile in graph.tiles:
        place = places[tile.level] = places.get(tile.level, -1) + 1
        yield f"{graph.key}-{tile.level}-{place}", tile


def _curve(curve: Curve, scale: float) -> dict[str, object]:
    shown = thinned(curve, MOST_POINTS)
    data: dict[str, object] = {
        "name": plain_text(shown.label),
        "style": shown.style,
        "dash": DASHES.get(shown.style, ()),
        "form": shown.form,
        "x": _steps(shown.x),
        "y": _rounded(shown.values, scale),
    }
    if shown.low:
        data |= {"low": _rounded(shown.low, scale), "high": _rounded(shown.high, scale)}
    if shown.marked:
        data["marked"] = shown.marked
    return data


def overview_data(overview: Overview) -> dict[str, object]:
    """Return the values of an overview in the form that `overview.js` and `saving.js` read."""
    return {
        "starts": [round(start_s, 6) for start_s in overview.starts_s],
        "width": overview.width_s,
        "linked": overview.linked,
        "clock": clock_data(overview.axis.clock),
        "lines": list(_overview_lines(overview)),
    }


def _overview_lines(overview: Overview) -> Iterator[dict[str, object]]:
    """Yield all lines and rows with their values; shares are in percent."""
    for lane in overview.lanes:
        for curve in lane.curves:
            median = ", median" if curve.high else ""
            yield _line(f"{curve.label}{median}", lane.unit, curve.values)
            if curve.high:
                yield _line(f"{curve.label}, 95th percentile", lane.unit, curve.high)
    for heat_map in overview.heat_maps:
        for row in heat_map.rows:
            if heat_map.is_verdict:
                verdicts = [None if value is None else _VERDICTS[int(value)] for value in row.values]
                name = plain_text(f"{row.label}, {heat_map.label}")
                yield {"name": name, "unit": "", "values": verdicts, "isRow": True}
                continue
            yield _line(f"{row.label}, {heat_map.label}", heat_map.unit, row.values) | {"isRow": True}


def _line(name: str, unit: str, values: Sequence[float | None]) -> dict[str, object]:
    scale = 1.0 if unit else 0.01
    return {"name": plain_text(name), "unit": unit or "%", "values": _rounded(values, scale)}


def clock_data(clock: TimeOfDay | None) -> dict[str, object] | None:
    """Return what `clock.js` makes times of day of; None for other axes."""
    if clock is None:
        return None
    return {"day": clock.day, "since": clock.since_midnight_s, "zone": clock.zone, "shifts": clock.shifts}


def _steps(x: Sequence[float]) -> list[int]:
    """Return the distances from one x to the next in millionths, the first from 0: even steps pack well."""
    ticks = [round(value * _TICKS_PER_UNIT) for value in x]
    return [after - before for before, after in zip([0, *ticks[:-1]], ticks, strict=True)]


def _rounded(values: Sequence[float | None], scale: float) -> list[float | None]:
    return [None if value is None else float(f"{value / scale:.{_DIGITS}g}") for value in values]
