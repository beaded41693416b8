"""Many samples reduced to few: quantiles, and the envelope over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

SHARES: Final = (*(place / 200 for place in range(200)), 0.996, 0.997, 0.998, 0.999, 0.9995, 0.9999, 1.0)
"""Steps of half a percent, and closer ones in the tail."""


def sample_quantiles(frame: pl.DataFrame, value: str) -> pl.DataFrame:
    """Return the quantiles of the column `value` of each flow and direction, one row for each of `SHARES`.

    Nearest rank: each is a sample, and `share` of all samples are at or below it; the first is the smallest.
    A direction without samples has no row.
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


def envelope(frame: pl.DataFrame, by: tuple[str, ...], value: str, most: int) -> pl.DataFrame:
    """Return at most `most` rows for each combination of the columns `by`, in the order that they have.

    The rows with the smallest and the largest `value` of each stretch are kept, so no spike disappears.
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
