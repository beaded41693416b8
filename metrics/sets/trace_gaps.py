"""Gaps: stretches of time in which no flow has a packet, though flows continue after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

_SHORTEST_NS: Final = 1_000_000_000
"""A second is longer than most round trips and most timers of a transport."""

_USUAL: Final = 20
"""How many times longer than the mean distance of two packets a hole is: with a few packets a minute nothing
is one."""


@dataclass(frozen=True, slots=True)
class TraceGap:
    """A stretch without a packet, in ns, and how many flows have packets on both sides of it."""

    start_ns: int
    end_ns: int
    flows: int


def trace_gaps(bins: pl.DataFrame) -> list[TraceGap]:
    """Return the holes of one trace, the longest first, to within a bin.

    `bins` has the columns of `bins` in `tfrctrace.parsers.schema.TABLES`. Time between flows is no gap.
    """
    import polars as pl

    if bins.is_empty():
        return []
    ends = pl.col("time_ns") + pl.col("width_ns")
    times = bins.group_by("time_ns").agg(ends.max().alias("end_ns"), pl.col("packets").sum()).sort("time_ns")
    packets = int(times["packets"].sum())
    span_ns = int(times["end_ns"][-1]) - int(times["time_ns"][0])
    least_ns = max(_SHORTEST_NS, _USUAL * span_ns // max(packets, 1))
    silent = (
        times.select(pl.col("end_ns").alias("start_ns"), pl.col("time_ns").shift(-1).alias("end_ns"))
        .drop_nulls()
        .filter(pl.col("end_ns") - pl.col("start_ns") >= least_ns)
    )
    if silent.is_empty():
        return []
    lives = bins.group_by("flow").agg(pl.col("time_ns").min().alias("first"), ends.max().alias("last"))
    holes = [
        TraceGap(start_ns, end_ns, int(((lives["first"] < start_ns) & (lives["last"] > end_ns)).sum()))
        for start_ns, end_ns in silent.iter_rows()
    ]
    return sorted(
        (hole for hole in holes if hole.flows), key=lambda hole: (hole.start_ns - hole.end_ns, hole.start_ns)
    )
