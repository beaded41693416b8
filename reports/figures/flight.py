"""The flight of a TCP sender over time, and the windows that bound it."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.conversations import largest_directions, of_direction
from tfrctrace.reports.elements import Curve, Figure
from tfrctrace.reports.units import counted, format_bytes

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.flow_rows import FlowRow

_MOST_POINTS: Final = 240
"""Points of a curve: of more rounds, the largest in each stretch of time is drawn."""

_FEWEST_ROUNDS: Final = 5
"""Rounds of a flow whose growth can be seen."""

_OUT_OF_SIGHT: Final = 4
"""A receive window this many times the largest flight is not drawn: other curves would be flat."""


def flight_figure(trace: DrawnTrace, rounds: pl.DataFrame, variables: pl.DataFrame) -> Figure | None:
    """Return flight and windows of the TCP direction with most data, in bytes; None without enough rounds."""
    row = _largest(trace.flows)
    if row is None:
        return None
    own = of_direction(rounds, row).sort("time_ns")
    if own.height < _FEWEST_ROUNDS:
        return None
    first_ns = int(own["time_ns"][0])
    origin_ns = trace.origin_ns(first_ns)
    points = _points(own)
    times_s = tuple((time_ns - origin_ns) / 1e9 for time_ns in points["time_ns"].to_list())
    curves = [
        Curve(
            "flight of each round",
            1,
            times_s,
            tuple(points["flight_bytes"].cast(float).to_list()),
            marked=tuple(i for i, repairs in enumerate(points["repairs"].to_list()) if repairs),
        )
    ]
    highest = max(points["flight_bytes"].to_list())
    window = points["window_bytes"].cast(float)
    usual_window = window.median()
    is_near = isinstance(usual_window, float) and usual_window < _OUT_OF_SIGHT * highest
    if is_near:
        curves.append(Curve("receive window", 2, times_s, tuple(window.to_list())))
    logged = _logged_windows(variables, row)
    if logged:
        times_ns, values = zip(*logged, strict=True)
        since_s = tuple((time_ns - origin_ns) / 1e9 for time_ns in times_ns)
        curves.append(Curve("congestion window in the sender's log", 3, since_s, values))
    return Figure(
        key=trace.key("windows"),
        title=trace.titled("Flight and windows over time"),
        linked=trace.linked,
        description=f"Line chart, {counted(len(curves), 'curve')}; largest flight {format_bytes(highest)}.",
        caption=_caption(row, own, window if not is_near else None),
        unit="B",
        curves=tuple(curves),
        lasted_s=max(trace.lasted_s, *(curve.x[-1] for curve in curves)),
    )


def _largest(flows: pl.DataFrame) -> FlowRow | None:
    import polars as pl

    return next(iter(largest_directions(flows, pl.col("rounds") > 0, "unique_bytes", 1)), None)


def _points(rounds: pl.DataFrame) -> pl.DataFrame:
    """Return largest flight, smallest window and whether data was repaired, for each stretch of time."""
    import polars as pl

    first_ns, last_ns = int(rounds["time_ns"][0]), int(rounds["time_ns"][-1])
    width_ns = max((last_ns - first_ns) // _MOST_POINTS, 1)
    stretch = (pl.col("time_ns") - first_ns) // width_ns
    return rounds.group_by(stretch.alias("stretch"), maintain_order=True).agg(
        pl.col("time_ns").first(),
        pl.col("flight_bytes").max(),
        pl.col("window_bytes").min(),
        pl.col("repair").is_not_null().any().alias("repairs"),
    )


def _logged_windows(variables: pl.DataFrame, row: FlowRow) -> list[tuple[int, float]]:
    """Return time in ns and congestion window in bytes from the sender's own log."""
    import polars as pl

    own = of_direction(variables, row)
    segment_bytes = own.filter(pl.col("name") == "mss")["value"].max()
    windows = own.filter(pl.col("name") == "cwnd").sort("time_ns")
    sizes = {"bytes": 1.0, "packets": segment_bytes}
    return [
        (time_ns, value * size)
        for time_ns, unit, value in windows.select("time_ns", "unit", "value").iter_rows()
        if isinstance(size := sizes.get(unit), float)
    ]


def _caption(row: FlowRow, rounds: pl.DataFrame, far_window: pl.Series | None) -> str:
    rings = " A ring marks recoveries." if row.recovery_episodes or row.rto_episodes else ""
    far = ""
    if far_window is not None and far_window.count():
        usual = format_bytes(statistics.median(far_window.drop_nulls().to_list()))
        far = f" The receive window (median {usual}) is far above."
    return (
        f"Data outstanding in each of {counted(rounds.height, 'round')} of {row.legend}, as seen "
        f"at the capture point.{rings}{far}"
    )
