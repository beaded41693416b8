"""Burstiness: how much the rate of a flow varies, in windows of one or of several widths.

All work on a windowed frame (see `tfrctrace.metrics.windows`), whose windows are whole and whose
zeros count.
"""

from __future__ import annotations

import math
from itertools import repeat
from typing import TYPE_CHECKING, Any

from tfrctrace.metrics.windows import joined, matrix, power_sums, row_sums, wider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

    from tfrctrace.metrics.windows import Dense


def rate_variation(windowed: pl.DataFrame, count: int) -> pl.DataFrame:
    """Return how the bytes of each flow vary over `count` windows, in one row for each `flow`.

    `mean` and `std` are in bytes of one window; `std` is the population's. `burstiness` is std/mean (De Cicco
    and Mascolo, sigma(r)/E[r]) and has no unit; `cov_sample` the same with n - 1, null for one window. A flow
    without bytes has no row: its burstiness is not defined.
    """
    import polars as pl

    sums = power_sums(windowed, "flow")
    totals = sums["sum"].to_list()
    spread_of = spreads(totals, sums["squares"].to_list(), repeat(count))
    burstiness = [spread / total for spread, total in zip(spread_of, totals, strict=True)]
    sample = [value * (count / (count - 1)) ** 0.5 if count > 1 else None for value in burstiness]
    return pl.DataFrame(
        {
            "flow": sums["flow"],
            "mean": [total / count for total in totals],
            "std": [spread / count for spread in spread_of],
            "burstiness": burstiness,
            "cov_sample": sample,
        },
        schema_overrides=dict.fromkeys(("mean", "std", "burstiness", "cov_sample"), pl.Float64),
    )


def spreads(totals: Sequence[int], squares: Sequence[int], counts: Iterable[int]) -> list[float]:
    """Return n sigma of each flow, of the sums of its bytes and of their squares over n windows.

    n sum(x^2) - (sum x)^2 is n^2 times the variance, and a whole number.
    """
    return [
        math.sqrt(count * square - total * total)
        for total, square, count in zip(totals, squares, counts, strict=False)
    ]


def cov_by_timescale(
    windowed: pl.DataFrame, count: int, factors: Iterable[int], *, dense: Dense | None = None
) -> pl.DataFrame:
    """Return CoV(tau), population sigma over mean, of each flow in windows that are `factors` times as wide.

    Columns are `flow`, `factor`, `windows` (how many there are) and `cov` (S. Floyd et al., SIGCOMM
    2000). What does not fill the last window is left out; a factor that leaves no window has no row.
    `dense` is the result of `matrix` for `windowed`, if it was computed before.
    """
    import polars as pl

    rows: list[tuple[int, int, int, float]] = []
    possible = [factor for factor in sorted(factors) if factor <= count]
    for factor, flows, totals, squares in _sums_by_timescale(windowed, count, possible, dense):
        windows = count // factor
        spread_of = spreads(totals, squares, repeat(windows))
        rows += (
            (flow, factor, windows, spread / total)
            for flow, spread, total in zip(flows, spread_of, totals, strict=True)
            if total
        )
    flow_type = windowed.schema["flow"]
    schema: Any = {"flow": flow_type, "factor": pl.Int64, "windows": pl.Int64, "cov": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _sums_by_timescale(
    windowed: pl.DataFrame, count: int, factors: Sequence[int], dense: Dense | None
) -> Iterator[tuple[int, list[int], list[int], list[int]]]:
    """Give for each of `factors`, in order, the flows with the sums of their bytes and of the squares.

    Windows of 10 are made of those of 5, which are fewer than those of 1.
    """
    if (found := dense or matrix(windowed, count)) is None:
        frames = {1: windowed}
        for factor in factors:
            finer = max(known for known in frames if factor % known == 0)
            frames[factor] = joined(frames[finer], factor // finer, count // finer)
            sums = power_sums(frames[factor], "flow")
            yield factor, sums["flow"].to_list(), sums["sum"].to_list(), sums["squares"].to_list()
        return
    flows, rows = found
    rows_of = {1: rows}
    for factor in factors:
        finer = max(known for known in rows_of if factor % known == 0)
        rows_of[factor] = rows_of[finer] if factor == finer else wider(rows_of[finer], factor // finer)
        totals, squares = row_sums(rows_of[factor])
        yield factor, flows.tolist(), totals, squares
