"""Observed windows, and those that the two most likely congestion controls predict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.reports.elements import Curve
from tfrctrace.reports.units import counted

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.elements import Figure


def predicted_windows_figure(trace: DrawnTrace, windows: pl.DataFrame | None) -> Figure | None:
    """Return the windows of the drawn direction of `trace`; None if none was predicted."""
    import polars as pl

    own = None if windows is None else trace.of(windows)
    if own is None or own.is_empty():
        return None
    flow, direction = own.select("flow", "direction").row(0)
    own = own.filter((pl.col("flow") == flow) & (pl.col("direction") == direction))
    names = own["congestion_control"].unique(maintain_order=True).to_list()
    by_name = [own.filter(pl.col("congestion_control") == name).sort("time_ns") for name in names]
    times_s = trace.seconds(by_name[0]["time_ns"].to_list())
    curves = [Curve("observed", 1, times_s, tuple(by_name[0]["cwnd_bytes"]))]
    curves += [
        Curve(f"as {name} predicts", style, times_s, tuple(rows["predicted_bytes"]), form="dots")
        for style, (name, rows) in enumerate(zip(names, by_name, strict=True), start=2)
    ]
    return trace.over_time(
        "predicted-windows",
        f"Congestion window of flow {flow}, observed and predicted",
        curves,
        unit="B",
        caption=f"{counted(len(times_s), 'window')} that show how the congestion window grew, or what a loss "
        "left of it. Each dot is predicted from the window observed before, by the two likeliest congestion "
        "controls.",
    )
