"""What 0 s of a trace is, for times that users give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

YEAR_NS: Final = 365 * 86_400 * 1_000_000_000
"""Times below are those of a simulation, which counts from 0; captures count from 1970."""


def time_zero_ns() -> pl.Expr:
    """Return for each row of a table of flows what 0 s of its trace is, in ns.

    That is the start of a simulation, else the first packet of any flow of the same source.
    """
    import polars as pl

    first = pl.col("start_ns").min().over("source")
    return pl.when(first > YEAR_NS).then(first).otherwise(0)
