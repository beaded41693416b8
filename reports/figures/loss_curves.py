"""Retransmitted, late and duplicate packets over time, by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.flow.cumulative_losses import OTHERS
from tfrctrace.reports.elements import OTHER, Curve, Figure
from tfrctrace.reports.units import counted, format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace

MOST_POINTS: Final = 1000
"""Points of one curve, which never falls: values between two points lie between their counts."""

_ABBREVIATIONS: Final = frozenset({"sack", "rto", "syn", "fin"})


def loss_figure(trace: DrawnTrace, course: pl.DataFrame) -> Figure | None:
    """Return the figure of a trace; None without retransmitted, late or duplicate packets.

    `course` is that of `tfrctrace.metrics.flow.cumulative_losses`.
    """
    curves = list(_curves(trace, trace.of(course)))
    if not curves:
        return None
    packets = sum(int(curve.values[-1] or 0) for curve in curves)
    return trace.over_time(
        "losses",
        "Losses and retransmissions over time",
        curves,
        unit="",
        value_label="packets",
        caption=(
            "Cumulative number of retransmitted, late and duplicate packets by class; "
            f"{counted(packets, 'packet')} in all."
        ),
    )


def _curves(trace: DrawnTrace, course: pl.DataFrame) -> Iterator[Curve]:
    """Give the counts of each class, the most frequent one first, and of all others together."""
    import polars as pl

    totals = (
        course.group_by("class").agg(pl.col("count").max()).sort("count", "class", descending=[True, False])
    )
    named = totals.filter(pl.col("class") != OTHERS)
    for style, (name, total) in enumerate(named.select("class", "count").iter_rows(), start=1):
        yield _curve(trace, f"{_in_words(name)}: {format_count(total)}", style, course, name)
    for total in totals.filter(pl.col("class") == OTHERS)["count"].to_list():
        yield _curve(trace, f"all others: {format_count(total)}", OTHER, course, OTHERS)


def _in_words(name: str) -> str:
    return " ".join(word.upper() if word in _ABBREVIATIONS else word for word in name.split("_"))


def _curve(trace: DrawnTrace, label: str, style: int, course: pl.DataFrame, name: str) -> Curve:
    import polars as pl

    own = course.filter(pl.col("class") == name).sort("count")
    seconds = trace.seconds(own["time_ns"].to_list())
    counts = own["count"].cast(float).to_list()
    # from 0 at the start to the total at the end
    end_s = max(trace.lasted_s, seconds[-1])
    return Curve(label, style, (0.0, *seconds, end_s), (0.0, *counts, counts[-1]), form="steps")
