"""Delay and delivery over time, where a trace shows both ends of a path: a simulation, or two captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.metrics.flow.bins import time_span_ns
from tfrctrace.reports.conversations import distinct_directions, of_direction
from tfrctrace.reports.elements import Curve, Figure
from tfrctrace.reports.figures.throughput_and_rtt import (
    DELAYS,
    bin_middles_s,
    bin_width,
    drawn_bins,
    sample_curve,
)
from tfrctrace.reports.units import counted, format_ms, format_share

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.flow_rows import FlowRow


def most_delivered(flows: pl.DataFrame) -> list[FlowRow]:
    """Return the directions with delays of which most arrived, as many as have distinct styles."""
    import polars as pl

    return distinct_directions(flows, pl.col("delay_p50_ms").is_not_null(), "received_packets")


def delay_figure(trace: DrawnTrace) -> Figure | None:
    """Return the one-way delay over time: mean in a band from min to max; None without delays."""
    import polars as pl

    sampled = trace.bins.filter(pl.col("delay_samples") > 0)
    rows = _with_bins(trace, sampled)
    if not rows:
        return None
    wide = drawn_bins(trace.bins, trace.window_ns)
    origin_ns = _origin_ns(trace, wide)
    curves = tuple(
        sample_curve(row.legend, style, of_direction(wide, row), origin_ns, DELAYS, rings="lost_packets")
        for style, row in enumerate(rows, start=1)
    )
    low_ms, high_ms = sampled.select(pl.col("delay_min_ms").min(), pl.col("delay_max_ms").max()).row(0)
    left_out = sampled.unique(["flow", "direction"]).height - len(rows)
    rest = f" Not drawn: {counted(left_out, 'direction')} with fewer packets." if left_out else ""
    rings = " A ring marks a bin with a loss." if any(curve.marked for curve in curves) else ""
    samples = sum(int(of_direction(sampled, row)["delay_samples"].sum()) for row in rows)
    return Figure(
        key=trace.key("delay"),
        title=trace.titled("One-way delay over time"),
        description=(
            f"Line chart of {counted(len(curves), 'curve')}; delays from {format_ms(low_ms)} to "
            f"{format_ms(high_ms)}."
        ),
        caption=(
            "Mean delay of the packets of each bin as a line, the smallest to largest as a band; "
            f"{counted(samples, 'packet')} in bins of {bin_width(wide)}, at the time of sending.{rings}{rest}"
        ),
        unit="ms",
        curves=curves,
        lasted_s=_lasted_s(wide, origin_ns),
        linked=trace.linked,
    )


def delivered_figure(trace: DrawnTrace) -> Figure | None:
    """Return the packet delivery ratio over time; None without known losses."""
    import polars as pl

    known = trace.bins.filter(pl.col("delay_samples").is_not_null())
    rows = [row for row in _with_bins(trace, known) if row.lost_packets]
    if not rows:
        return None
    wide = drawn_bins(known, trace.window_ns)
    origin_ns = _origin_ns(trace, wide)
    return Figure(
        key=trace.key("pdr"),
        title=trace.titled("Packets delivered over time"),
        description=f"Line chart of {counted(len(rows), 'curve')}; {', '.join(map(_in_all, rows))}.",
        caption=(
            f"Share of the packets sent in each bin of {bin_width(wide)} that arrived (packet delivery "
            "ratio), at the time of sending, for directions with losses. Packets in flight at the end are "
            "in no bin; the line breaks where nothing was sent."
        ),
        unit="",
        is_share=True,
        value_label="share of the packets",
        curves=tuple(
            _delivered(f"{row.legend} ({_in_all(row)})", style, of_direction(wide, row), origin_ns)
            for style, row in enumerate(rows, start=1)
        ),
        lasted_s=_lasted_s(wide, origin_ns),
        linked=trace.linked,
    )


def _with_bins(trace: DrawnTrace, bins: pl.DataFrame) -> list[FlowRow]:
    """Return the directions to draw: those with bins, not only totals."""
    return [row for row in most_delivered(trace.flows) if of_direction(bins, row).height]


def _delivered(label: str, style: int, bins: pl.DataFrame, origin_ns: int) -> Curve:
    import polars as pl

    sent = pl.col("delay_samples") + pl.col("lost_packets")
    shares = bins.select(pl.when(sent > 0).then(pl.col("delay_samples") / sent))
    return Curve(label, style, bin_middles_s(bins, origin_ns), tuple(shares.to_series().to_list()))


def _in_all(row: FlowRow) -> str:
    return f"{format_share(row.pdr)} overall"


def _origin_ns(trace: DrawnTrace, bins: pl.DataFrame) -> int:
    return trace.origin_ns(time_span_ns(bins)[0])


def _lasted_s(bins: pl.DataFrame, origin_ns: int) -> float:
    return (time_span_ns(bins)[1] - origin_ns) / 1e9
