"""What the place of a capture hides of flows, by columns of the table of flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.sets.up_down import BELIEVED
from tfrctrace.metrics.thresholds import TIMES_SHORTER

if TYPE_CHECKING:
    import polars as pl

OF_RTTS: Final = ("vantage", "rtt_p50_ms", "handshake_rtt_ms")
"""Columns that tell whether RTTs are those of the path."""

OF_PLACE: Final = (
    "transport",
    "src",
    "dst",
    "vantage_confidence",
    "lost_packets",
    "lost_before_capture",
    "reported_plr",
    *OF_RTTS,
)
"""Columns that tell it."""


HIDDEN_RTTS: Final = {
    f"rtt_{name}ms": "captured near the receiver, where the RTT is its own delay"
    for name in ("", "min_", "mean_", "p50_", "p95_", "max_", "std_")
}
"""Samples, and columns of them, that say nothing of the path near the receiver, and why."""

HIDDEN_LOSSES: Final = dict.fromkeys(
    ("lost_packets", "received_packets", "plr", "pdr"),
    "losses after the capture are not known, unless `--vantage` places it at the receiver",
)
"""Columns that are bounds where losses after the capture are not known."""

WHY_HIDDEN: Final = {**HIDDEN_RTTS, **HIDDEN_LOSSES}


def has_receivers_rtts() -> pl.Expr:
    """Return whether RTT samples of a direction are the receiver's own delay, not that of the path.

    They are in a capture at the receiver. If the vantage is unknown, the handshake decides: it spans the
    whole path from everywhere, so samples ten times shorter cannot.
    """
    import polars as pl

    vantage, median_ms, handshake_ms = map(pl.col, OF_RTTS)
    is_short = median_ms * TIMES_SHORTER < handshake_ms
    near = pl.when(vantage.is_null()).then(is_short).otherwise(vantage == "receiver")
    return near.fill_null(value=False)


def rtt_of_path(rtt_ms: pl.Expr, *_: pl.Expr) -> pl.Expr:
    """Return a statistic of RTT samples; null where they are the receiver's own delay.

    It needs the columns `OF_RTTS`, too.
    """
    import polars as pl

    return pl.when(~has_receivers_rtts()).then(rtt_ms)


def has_lower_bound() -> pl.Expr:
    """Return whether the losses of a direction are a lower bound: those after the capture are not known.

    Its packets have numbers and were not captured where they arrive, or nobody knows where.
    """
    import polars as pl

    is_numbered = (pl.col("transport") != "tcp") & pl.col("lost_before_capture").is_not_null()
    is_within_host = (pl.col("src") == pl.col("dst")).fill_null(value=False)
    is_near = (pl.col("vantage") == "receiver") & (pl.col("vantage_confidence") >= BELIEVED)
    shows_all = is_near.fill_null(value=False) | is_within_host | pl.col("reported_plr").is_not_null()
    return is_numbered.fill_null(value=False) & (pl.col("lost_packets").is_null() | ~shows_all)
