"""Intervals with too few samples, together: what each alone does not show, all of them may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.base.signs import SIGNS
from tfrctrace.metrics.objectives import verdicts

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.metrics.objectives import Extent, Objective


def with_thin_ones_together(objective: Objective, judged: pl.DataFrame, extent: Extent) -> pl.DataFrame:
    """Return judged intervals of a share, thin ones of a group in a row as one as soon as they have enough.

    Such an interval lasts from the first to the last of them; one that violates the objective only from the
    first to the last that does so by itself. Shares add up; percentiles would not.
    """
    import polars as pl

    if objective.unit != "%":
        return judged
    n = pl.col("n")
    violates = ~SIGNS[objective.sign](pl.col("value"), objective.bound)
    is_thin = (
        (pl.col("verdict") == "no_data") & (n > 0) & (n < objective.least) & pl.col("value").is_not_null()
    )
    thin = judged.filter(is_thin).sort("group", "start_ns")
    if thin.is_empty():
        return judged
    before = n.cum_sum().over("group") - n
    # each has less than the least: of twice as many none of those in the middle lacks one
    blocks = thin.with_columns(block=before // (2 * objective.least)).with_columns(
        whole=n.sum().over("group", "block") >= objective.least
    )
    merged = (
        blocks.filter("whole")
        .group_by("group", "block")
        .agg(
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            pl.col("direction").first(),
            first_ns=pl.col("start_ns").filter(violates).min(),
            last_ns=pl.col("end_ns").filter(violates).max(),
            value=(pl.col("value") * n).sum() / n.sum(),
            n=n.sum(),
        )
        .with_columns(verdict=verdicts(objective, extent, objective.grouping.every_ns))
        .with_columns(
            start_ns=pl.when(pl.col("verdict") == "met").then("start_ns").otherwise("first_ns"),
            end_ns=pl.when(pl.col("verdict") == "met").then("end_ns").otherwise("last_ns"),
        )
        .select(judged.columns)
        .cast(judged.schema)
    )
    rest = blocks.filter(~pl.col("whole")).select(judged.columns)
    return pl.concat([judged.filter(~is_thin), rest, merged])
