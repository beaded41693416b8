"""Retransmitted, late and duplicate packets over time, added up by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

LOSS_COURSE: Final = {"flow": "uint32", "class": "string", "time_ns": "int64", "count": "int64"}
"""Columns of `cumulative_losses`: `flow` is the first flow of a trace and stands for all of them."""

OTHERS: Final = ""
"""Name for all classes that are not counted alone."""


def cumulative_losses(
    losses: pl.DataFrame, first_flows: pl.DataFrame, classes: int, most: int
) -> pl.DataFrame:
    """Return how many packets of each class a trace had up to some times, at most `most` of them for each.

    `losses` has the columns of that table in `tfrctrace.parsers.schema.TABLES`; `first_flows` maps
    each `flow` to the `first` flow of its trace. The `classes` with most packets in a trace are
    counted alone. The first and the last packet of each class are kept; a point left out
    lies between two counts.
    """
    import polars as pl

    own = losses.join(first_flows, on="flow")
    totals = own.group_by("first", "class").agg(pl.len().alias("number"))
    ranked = totals.sort("first", "number", "class", descending=[False, True, False]).with_columns(
        pl.int_range(pl.len()).over("first").alias("place")
    )
    alone = pl.when(pl.col("place") < classes).then("class").otherwise(pl.lit(OTHERS)).alias("class")
    each = ["first", "class"]
    counted = (
        own.join(ranked, on=each)
        .with_columns(alone)
        .sort("time_ns", "packet")
        .with_columns(
            pl.int_range(1, pl.len() + 1).over(each).alias("count"),
            (pl.len() - 1).over(each).cast(pl.Int64).alias("steps"),
        )
    )
    return (
        counted.filter(
            (pl.col("count") == 1)
            | (_stretch(pl.col("count") - 1, most) != _stretch(pl.col("count") - 2, most))
        )
        .select(
            pl.col("first").cast(pl.UInt32).alias("flow"), "class", "time_ns", pl.col("count").cast(pl.Int64)
        )
        .sort("flow", "class", "count")
    )


def _stretch(place: pl.Expr, most: int) -> pl.Expr:
    """Return in which of `most` equal stretches a packet is; of fewer packets each has one of its own."""
    import polars as pl

    stretches = pl.min_horizontal("steps", pl.lit(most - 1, dtype=pl.Int64))
    return (place * stretches).floordiv(pl.col("steps").clip(1))
