"""Losses over time: how many packets were sent again, late or doubled by then, by what explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.parts import OTHER, STYLES, Curve, Figure
from tfrctrace.reports.traces import drawn_traces
from tfrctrace.reports.units import counted, format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.reports.results import Results
    from tfrctrace.reports.traces import DrawnTrace

_MOST_POINTS: Final = 1000
"""Of one curve: it only rises, so that what is between two of its points is between their counts."""


def loss_figures(results: Results, losses: pl.DataFrame) -> list[Figure]:
    """Return a figure for each trace in which something was sent again, late or doubled.

    `losses` is the table of that name in `tfrctrace.parsers.schema`.
    """
    starts_ns: dict[str, int] = {
        source["source"]: source["start_ns"] for source in results.sources if source["start_ns"] is not None
    }
    joined = results.joined or results.clock is not None
    traces = drawn_traces(results.flows, results.bins, results.sources, starts_ns, joined=joined)
    return [_figure(trace, own) for trace in traces if len(own := trace.of(losses))]


def _figure(trace: DrawnTrace, losses: pl.DataFrame) -> Figure:
    curves = tuple(_curves(trace, losses))
    return Figure(
        key=trace.key("losses"),
        title=trace.titled("Losses and repairs over time"),
        description=f"{counted(len(curves), 'curve')} of rising steps, {counted(len(losses), 'packet')}.",
        caption=(
            f"Packets that were sent again, late or doubled, counted up to each time by their class; "
            f"{counted(len(losses), 'packet')} in all."
        ),
        unit="",
        value_label="packets",
        curves=curves,
        lasted_s=trace.lasted_s,
        linked=trace.linked,
    )


def _curves(trace: DrawnTrace, losses: pl.DataFrame) -> Iterator[Curve]:
    """Give the counts of the most frequent classes, and of all others together."""
    import polars as pl

    counts = losses["class"].value_counts().sort("count", "class", descending=[True, False])
    drawn = counts["class"].to_list()[:STYLES]
    for style, name in enumerate(drawn, start=1):
        times_ns = losses.filter(pl.col("class") == name)["time_ns"]
        yield _curve(trace, f"{str(name).replace('_', ' ')}: {format_count(len(times_ns))}", style, times_ns)
    rest = losses.filter(~pl.col("class").is_in(drawn))["time_ns"]
    if len(rest):
        yield _curve(trace, f"all others: {format_count(len(rest))}", OTHER, rest)


def _curve(trace: DrawnTrace, label: str, style: int, times_ns: pl.Series) -> Curve:
    ordered = times_ns.sort().to_list()
    places = _places(len(ordered))
    seconds = trace.seconds([ordered[place] for place in places])
    # from nothing at the beginning to the whole count at the end
    return Curve(
        label,
        style,
        (0.0, *seconds, max(trace.lasted_s, seconds[-1])),
        (0.0, *(float(place + 1) for place in places), float(len(ordered))),
        form="steps",
    )


def _places(number: int) -> Sequence[int]:
    """Return which of so many points are drawn: all, or evenly many with the first and the last."""
    if number <= _MOST_POINTS:
        return range(number)
    return [place * (number - 1) // (_MOST_POINTS - 1) for place in range(_MOST_POINTS)]
