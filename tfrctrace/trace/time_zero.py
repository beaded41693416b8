"""Time 0 of a trace, for times given by users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

YEAR_NS: Final = 365 * 86_400 * 1_000_000_000
"""Times below this are from a simulation, which starts at 0; captures count from 1970."""


def time_zero_ns() -> pl.Expr:
    """Return time 0 in ns of the trace of each row of a flow table.

    This is the start of a simulation, else the first packet of the source.
    """
    import polars as pl

    first = pl.col("start_ns").min().over("source")
    return pl.when(first > YEAR_NS).then(first).otherwise(0)
