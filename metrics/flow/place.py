"""What the place of a capture hides of flows, by columns of the table of flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.sets.up_down import BELIEVED

if TYPE_CHECKING:
    import polars as pl

OF_PLACE: Final = (
    "transport",
    "src",
    "dst",
    "vantage",
    "vantage_confidence",
    "lost_packets",
    "lost_before_capture",
    "reported_plr",
)
"""Columns that tell it."""


def is_near_receiver() -> pl.Expr:
    """Return whether a direction was captured at its receiver: its RTTs are the receiver's own delay."""
    import polars as pl

    near = (pl.col("vantage") == "receiver") & (pl.col("vantage_confidence") >= BELIEVED)
    return near.fill_null(value=False)


def has_lower_bound() -> pl.Expr:
    """Return whether the losses of a direction are a lower bound: those after the capture are not known.

    Its packets have numbers and were not captured where they arrive, or nobody knows where.
    """
    import polars as pl

    is_numbered = (pl.col("transport") != "tcp") & pl.col("lost_before_capture").is_not_null()
    is_within_host = (pl.col("src") == pl.col("dst")).fill_null(value=False)
    shows_all = is_near_receiver() | is_within_host | pl.col("reported_plr").is_not_null()
    return is_numbered & (pl.col("lost_packets").is_null() | ~shows_all)
