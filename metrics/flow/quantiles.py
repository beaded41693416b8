"""Many samples in few: their quantiles, and the outline of how they went over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

SHARES: Final = (*(place / 200 for place in range(200)), 0.996, 0.997, 0.998, 0.999, 0.9995, 0.9999, 1.0)
"""Steps of half a percent, and closer ones in the tail."""


def sample_quantiles(frame: pl.DataFrame, value: str) -> pl.DataFrame:
    """Return the quantiles of the column `value` of each flow and direction, one row for each of `SHARES`.

    Nearest rank: each is a sample, and `share` of all samples are at or below it; the first is the smallest.
    What has no sample has no row.
    """
    import polars as pl

    shares = pl.Series("share", SHARES)
    rank = (pl.len() * shares).ceil().cast(pl.Int64).clip(1)
    return (
        frame.select("flow", "direction", value)
        .drop_nulls(value)
        .group_by("flow", "direction", maintain_order=True)
        .agg(pl.lit(shares).alias("share"), pl.col(value).sort().gather(rank - 1))
        .explode("share", value)
        # without samples there was nothing to take the type from
        .cast({value: frame.schema[value]})
    )


def bucket_quantiles(
    buckets: pl.DataFrame, shares: Sequence[float], by: Sequence[str] = ("flow", "direction")
) -> pl.DataFrame:
    """Return the percentiles of `rtt_buckets`: `rtt_ns` for each of `shares` (0 to 1) and each of `by`.

    The buckets of several flows or traces are taken together where `by` does not tell them apart: counts add
    up. Nearest rank, within 1/128 (0.8 %) of the sample of that rank; what has no sample has no row.
    """
    import polars as pl

    together = buckets.group_by(*by, "from_ns", "to_ns").agg(pl.col("samples").sum()).sort("from_ns")
    middle = pl.col("from_ns") + (pl.col("to_ns") - pl.col("from_ns") + 1) // 2
    found = []
    for share in shares:
        rank = (pl.col("samples").sum() * share).ceil().clip(1)
        value = middle.filter(pl.col("samples").cum_sum() >= rank).first().alias("rtt_ns")
        one = together.group_by(by, maintain_order=True).agg(value) if by else together.select(value)
        found.append(one.with_columns(share=pl.lit(float(share))))
    return pl.concat(found).select(*by, "share", "rtt_ns").drop_nulls("rtt_ns")


def envelope(frame: pl.DataFrame, by: tuple[str, ...], value: str, most: int) -> pl.DataFrame:
    """Return at most `most` rows for each combination of the columns `by`, in the order that they have.

    Of each stretch of rows those with the smallest and the largest `value` stay, so no spike disappears.
    """
    import polars as pl

    stretches = max(most // 2, 1)
    stretch = pl.int_range(pl.len()).over(by) * stretches // pl.len().over(by).clip(stretches)
    extremes = pl.concat([pl.col(value).arg_min(), pl.col(value).arg_max()]).unique().sort()
    return (
        frame.with_columns(stretch.alias("_stretch"))
        .group_by(*by, "_stretch", maintain_order=True)
        .agg(pl.exclude(*by, "_stretch").gather(extremes))
        .drop("_stretch")
        .explode([name for name in frame.columns if name not in by])
        .select(pl.col(name).cast(kind) for name, kind in frame.schema.items())
    )
