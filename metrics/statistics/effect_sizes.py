"""How large a difference between two groups of runs is, beside the test whether there is one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfrctrace.metrics.statistics.distributions import t_quantile
from tfrctrace.metrics.statistics.significance import finite, mean_and_variance, welch_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


def difference_interval(a: pl.Series, b: pl.Series, *, level: float = 0.95) -> tuple[float, float] | None:
    """Return Welch's interval of mean(a) - mean(b), in the unit of the values.

    None below two values in either group, or if neither varies.
    """
    test = welch_test(a, b)
    if test is None:
        return None
    (mean_a, variance_a), (mean_b, variance_b) = mean_and_variance(finite(a)), mean_and_variance(finite(b))
    error = math.sqrt((variance_a or 0.0) / a.count() + (variance_b or 0.0) / b.count())
    half = t_quantile((1 + level) / 2, test.degrees) * error
    return mean_a - mean_b - half, mean_a - mean_b + half


def hedges_g(a: pl.Series, b: pl.Series) -> float | None:
    """Return (mean(a) - mean(b))/s, corrected for few values (L. V. Hedges, 1981, equation 6e).

    s is the pooled standard deviation, the correction 1 - 3/(4 N - 9) with N values in all; no unit. None
    below two values in either group, or if neither varies.
    """
    (mean_a, variance_a), (mean_b, variance_b) = mean_and_variance(finite(a)), mean_and_variance(finite(b))
    if variance_a is None or variance_b is None or not variance_a + variance_b:
        return None
    number = a.count() + b.count()
    pooled = ((a.count() - 1) * variance_a + (b.count() - 1) * variance_b) / (number - 2)
    return (mean_a - mean_b) / math.sqrt(pooled) * (1 - 3 / (4 * number - 9))


def epsilon_squared(h: float, groups: Sequence[pl.Series]) -> float:
    """Return H/(N - 1), the share of the variation of N ranks that the groups explain, from 0 to 1.

    `h` is the statistic of Kruskal and Wallis, which there is only with two values or more.
    """
    return h / (sum(group.count() for group in groups) - 1)
