"""Causes over time: which one held a sender back for the longest part of each bin."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.metrics.flow.causes import CAUSES, cause_bins
from tfrctrace.reports.elements import Curve, Figure
from tfrctrace.reports.records import records
from tfrctrace.reports.units import format_duration_s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.results.why import Cause, FlowCauses
    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.flow_rows import FlowRow

_MOST_BINS: Final = 400
"""Bins across the life of a flow."""

_SHORT: Final[Mapping[Cause, str]] = {"shared_bottleneck": "shared"}
"""Names that fit beside an axis, where the name of the cause does not."""


class CauseBin(NamedTuple):
    """The cause of a bin of one direction."""

    flow: int
    direction: str
    first_ns: int
    width_ns: int
    place: int
    cause: Cause

    @property
    def start_ns(self) -> int:
        """When it begins."""
        return self.first_ns + self.place * self.width_ns


def bins_by_direction(causes: pl.DataFrame, widths: pl.DataFrame) -> dict[tuple[int, str], list[CauseBin]]:
    """Return the bins of `cause_bins`, in order, by flow and direction."""
    bins = records(cause_bins(causes, widths), CauseBin)
    return {key: list(own) for key, own in groupby(bins, key=lambda one: (one.flow, one.direction))}


def causes_figure(
    row: FlowRow, bins: Sequence[CauseBin], origin_ns: int, *, key: str, title: str, linked: str
) -> Figure:
    """Return the causes of one direction over time, as steps between those that it has."""
    there = {one.cause for one in bins}
    causes = [cause for cause in reversed(CAUSES) if cause in there]
    levels = {cause: float(level) for level, cause in enumerate(causes, start=1)}
    times_s: list[float] = []
    values: list[float | None] = []
    end_ns = bins[0].start_ns
    for one in bins:
        if one.start_ns > end_ns:
            times_s.append((end_ns - origin_ns) / 1e9)
            values.append(None)
        if not values or values[-1] != levels[one.cause]:
            times_s.append((one.start_ns - origin_ns) / 1e9)
            values.append(levels[one.cause])
        end_ns = one.start_ns + one.width_ns
    times_s.append((end_ns - origin_ns) / 1e9)
    values.append(values[-1])
    return Figure(
        key=key,
        title=title,
        description=f"Step chart of causes over time: {', '.join(reversed(causes))}.",
        caption=f"What held the sender back for the longest part of each bin of "
        f"{format_duration_s(bins[0].width_ns / 1e9)}.",
        unit="",
        curves=(Curve(row.legend, 1, tuple(times_s), tuple(values), form="steps"),),
        lasted_s=times_s[-1],
        levels=tuple(_SHORT.get(cause, cause).replace("_", " ") for cause in causes),
        linked=linked,
    )


def trace_causes_figure(
    trace: DrawnTrace, causes: pl.DataFrame, shown: Mapping[tuple[int, str], FlowCauses]
) -> Figure | None:
    """Return the causes of the direction of `trace` with most payload; None if none has any."""
    import polars as pl

    from tfrctrace.reports.conversations import largest_directions, of_direction

    own = trace.of(causes)
    has_causes = pl.col("flow").is_in(own["flow"].unique().implode())
    row = next(iter(largest_directions(trace.flows, has_causes, "unique_bytes", 1)), None)
    if row is None or row.key not in shown:
        return None
    of_row = of_direction(own, row)
    begin_ns, end_ns = int(of_row["start_ns"][0]), int(of_row["end_ns"][-1])
    width_ns = max(-(-(end_ns - begin_ns) // _MOST_BINS), 1)
    schema = {"flow": pl.UInt32, "first_ns": pl.Int64, "width_ns": pl.Int64}
    widths = pl.DataFrame([(row.flow, begin_ns, width_ns)], schema=schema, orient="row")
    bins = bins_by_direction(of_row, widths)[row.key]
    figure = causes_figure(
        row,
        bins,
        trace.origin_ns(begin_ns),
        key=trace.key("causes"),
        title=trace.titled("Causes over time"),
        linked=trace.linked,
    )
    return replace(figure, lasted_s=max(trace.lasted_s, figure.lasted_s))
