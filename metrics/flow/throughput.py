"""Throughput: bytes over time in bit/s, as a mean or in bins. Bytes are summed as integers, divided once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.metrics.flow.bins import evenly_spaced
from tfrctrace.metrics.windows import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    import polars as pl


def mean_rate_bps(byte_count: int, duration_s: float) -> float:
    """Return the mean rate of a flow in bit/s.

    Equation 8 of M. Casoni and M. L. Merani, "On the performance of TCP and TFRC over 802.11b networks",
    divided by `T - t0` (printed `T`).
    """
    return BITS_PER_BYTE * byte_count / duration_s


def with_rates(bins: pl.DataFrame) -> pl.DataFrame:
    """Return `bins` with `throughput_bps` (wire bytes) and `goodput_bps` (unique bytes), both in bit/s.

    Each is the bytes of the bin over the width of the bin, so the first and the last bin of a flow, which it
    fills only in part, show less than its rate.
    """
    import polars as pl

    width = pl.col("width_ns")
    return bins.with_columns(
        _rate_bps(pl.col("wire_bytes"), width).alias("throughput_bps"),
        _rate_bps(pl.col("unique_bytes"), width).alias("goodput_bps"),
    )


def throughput_series(bins: pl.DataFrame) -> pl.DataFrame:
    """Return evenly spaced throughput and goodput of each flow and direction, in bit/s.

    `bins` has the columns of `tfrctrace.parsers.schema.BINS`. Between the first and the last packet of a
    flow and direction every bin has a row: a bin without packets is a true zero. Outside there are no rows.
    """
    return with_rates(evenly_spaced(bins))


def _rate_bps(byte_count: pl.Expr, elapsed_ns: pl.Expr) -> pl.Expr:
    """Return bytes over ns as bit/s; the multiplication is exact below 2^53 bits."""
    return byte_count * BITS_PER_BYTE * float(NS_PER_S) / elapsed_ns
