"""Smoothness of a flow's rate, and how alike the rates of two flows are, window by window.

Both are of S. Floyd, M. Handley, J. Padhye and J. Widmer, "Equation-based congestion control for unicast
applications" (SIGCOMM 2000). All work on a windowed frame (see `tfrctrace.metrics.windows`).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


def rate_changes(windowed: pl.DataFrame, count: int) -> pl.DataFrame:
    """Return how the bytes of each flow change from one of `count` windows to the next, a row for each flow.

    `mean_relative_change` is the mean of |r' - r|/r over the `changes` with r > 0; `worst_ratio` the largest
    max/min of neighbours that both have bytes; `zero_pairs` counts neighbours of which one or both have none.
    Null where nothing is left to take it of; a flow without bytes has no row.
    """
    import polars as pl

    this, following = (
        pl.col("bytes").cast(pl.Float64),
        pl.col("bytes").shift(-1).over("flow").cast(pl.Float64),
    )
    has_next = (pl.col("window").shift(-1).over("flow") == pl.col("window") + 1).fill_null(value=False)
    # what follows a window without a row is 0, except after the last
    change = pl.when(has_next).then((following - this).abs() / this).otherwise(1.0)
    ratio = pl.when(has_next).then(pl.max_horizontal(this, following) / pl.min_horizontal(this, following))
    return (
        windowed.with_columns(
            change.alias("change"), ratio.alias("ratio"), (pl.col("window") < count - 1).alias("counts")
        )
        .group_by("flow", maintain_order=True)
        .agg(
            pl.col("change").filter("counts").mean().alias("mean_relative_change"),
            pl.col("ratio").max().alias("worst_ratio"),
            pl.col("counts").sum().cast(pl.Int64).alias("changes"),
            (count - 1 - pl.col("ratio").count().cast(pl.Int64)).alias("zero_pairs"),
        )
    )


def equivalence_ratios(windowed: pl.DataFrame, flows: Sequence[int]) -> pl.DataFrame:
    """Return the mean equivalence ratio of each pair of `flows`, as `a`, `b`, `windows` and `ratio`.

    In each window it is min(R_a/R_b, R_b/R_a), and 0 if only one of them is 0; windows in which both are 0
    are not counted. Null if that leaves none.
    """
    import polars as pl

    wide = pl.DataFrame({"window": windowed["window"].unique().sort()})
    for flow in flows:
        own = windowed.filter(pl.col("flow") == flow).select("window", pl.col("bytes").alias(str(flow)))
        wide = wide.join(own, on="window", how="left", maintain_order="left")
    pairs = list(combinations(flows, 2))
    schema = {"a": pl.UInt32, "b": pl.UInt32, "windows": pl.Int64, "ratio": pl.Float64}
    if not pairs:
        return pl.DataFrame(schema=schema)
    found = wide.select(
        expression
        for place, (a, b) in enumerate(pairs)
        for expression in _mean_ratio(pl.col(str(a)), pl.col(str(b)), f"{place}")
    )
    row = found.row(0)
    rows = [(a, b, row[2 * place], row[2 * place + 1]) for place, (a, b) in enumerate(pairs)]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _mean_ratio(a: pl.Expr, b: pl.Expr, name: str) -> tuple[pl.Expr, pl.Expr]:
    """Return the number of windows with bytes of one or both, and the mean of their ratios."""
    import polars as pl

    is_defined = a.is_not_null() | b.is_not_null()
    windows = is_defined.sum()
    # null where one has no bytes, which adds 0
    ratios = (pl.min_horizontal(a, b) / pl.max_horizontal(a, b)).filter(a.is_not_null() & b.is_not_null())
    mean_ratio = pl.when(windows > 0).then(ratios.sum() / windows)
    return windows.cast(pl.Int64).alias(f"windows {name}"), mean_ratio.alias(f"ratio {name}")
