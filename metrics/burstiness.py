"""Burstiness: how much the rate of a flow varies, in windows of one or of several widths.

All work on a windowed frame (see `tfrctrace.metrics.windows`), whose windows are whole and whose zeros count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.metrics.windows import joined, power_sums

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl


def rate_variation(windowed: pl.DataFrame, count: int) -> pl.DataFrame:
    """Return how the bytes of each flow vary over `count` windows, in one row for each `flow`.

    `mean` and `std` are in bytes of one window; `std` is the population's. `burstiness` is std/mean (De Cicco
    and Mascolo, sigma(r)/E[r]) and has no unit; `cov_sample` the same with n - 1, null for one window. A flow
    without bytes has no row: its burstiness is not defined.
    """
    import polars as pl

    # n sum(x^2) - (sum x)^2 is n^2 times the variance, and a whole number
    spread = (count * pl.col("squares") - pl.col("sum") * pl.col("sum")).cast(pl.Float64).sqrt()
    total = pl.col("sum").cast(pl.Float64)
    burstiness = spread / total
    sample = burstiness * (count / (count - 1)) ** 0.5 if count > 1 else pl.lit(None, dtype=pl.Float64)
    return power_sums(windowed, "flow").select(
        "flow",
        (total / count).alias("mean"),
        (spread / count).alias("std"),
        burstiness.alias("burstiness"),
        sample.alias("cov_sample"),
    )


def cov_by_timescale(windowed: pl.DataFrame, count: int, factors: Iterable[int]) -> pl.DataFrame:
    """Return CoV(tau), population sigma over mean, of each flow in windows that are `factors` times as wide.

    Columns are `flow`, `factor`, `windows` (how many there are) and `cov` (S. Floyd et al., SIGCOMM
    2000). What does not fill the last window is left out; a factor that leaves no window has no row.
    """
    import polars as pl

    frames = {1: windowed}
    found = []
    for factor in sorted(factors):
        if not count // factor:
            break
        # windows of 10 are made of those of 5, which are fewer than those of 1
        finer = max(known for known in frames if factor % known == 0)
        frames[factor] = joined(frames[finer], factor // finer, count // finer)
        found.append(
            rate_variation(frames[factor], count // factor).select(
                "flow",
                pl.lit(factor, dtype=pl.Int64).alias("factor"),
                pl.lit(count // factor, dtype=pl.Int64).alias("windows"),
                pl.col("burstiness").alias("cov"),
            )
        )
    empty = pl.DataFrame(
        schema={"flow": windowed.schema["flow"], "factor": pl.Int64, "windows": pl.Int64, "cov": pl.Float64}
    )
    return pl.concat([empty, *found])
