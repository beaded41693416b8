"""Repeated runs: confidence intervals of means, and tests whether groups of runs differ.

Written out instead of taken from scipy, which is larger than all that tfrctrace needs together; the tests
hold it to what scipy gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.statistics.distributions import chi_squared_tail, t_quantile, t_tail

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

RESAMPLES: Final = 10_000
_DRAWS_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean of `n` runs with its confidence interval, all in the unit of the values."""

    n: int
    mean: float
    std: float | None
    """Of the sample (n - 1); None for one run."""
    low: float | None
    """None for one run, which shows no spread."""
    high: float | None

    def within(self, bounds: tuple[float, float]) -> Interval:
        """Return the interval without values outside `bounds`; it always includes the mean."""
        if self.low is None or self.high is None:
            return self
        least, most = bounds
        low, high = max(self.low, min(least, self.mean)), min(self.high, max(most, self.mean))
        return replace(self, low=low, high=high)


@dataclass(frozen=True, slots=True)
class Difference:
    """A test whether groups differ; `p_value` is the probability of such a `statistic` if they do not."""

    statistic: float
    degrees: float
    p_value: float


def mean_interval(
    values: pl.Series, *, level: float = 0.95, clusters: Sequence[Hashable] | None = None
) -> Interval | None:
    """Return mean and Student's interval, mean +- t s/sqrt(n). None without values.

    `clusters` names for each value what it shares with others, such as the seed of several settings: the
    standard error is then robust to that (K.-Y. Liang and S. L. Zeger, 1986), with t for one degree of
    freedom less than there are clusters. There is no interval of one cluster.
    """
    runs = finite(values)
    if not runs:
        return None
    mean, variance = mean_and_variance(runs)
    if variance is None:
        return Interval(1, mean, None, None, None)
    sums = cluster_deviations(runs, range(len(runs)) if clusters is None else clusters)
    if len(sums) < 2:
        return Interval(len(runs), mean, math.sqrt(variance), None, None)
    squares = math.fsum(one**2 for one in sums.values()) * len(sums) / (len(sums) - 1)
    half = t_quantile((1 + level) / 2, len(sums) - 1) * math.sqrt(squares) / len(runs)
    return Interval(len(runs), mean, math.sqrt(variance), mean - half, mean + half)


def cluster_deviations(values: Sequence[float], clusters: Iterable[Hashable]) -> dict[Hashable, float]:
    """Return for each cluster the sum of what its values differ from the mean of all."""
    mean = math.fsum(values) / len(values)
    deviations: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        deviations.setdefault(cluster, []).append(value - mean)
    return {cluster: math.fsum(own) for cluster, own in deviations.items()}


def bootstrap_interval(
    values: pl.Series,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    clusters: Sequence[Hashable] | None = None,
) -> Interval | None:
    """Return mean and percentile bootstrap interval. None without values.

    The same values give the same interval, in any order. Values of one of the `clusters` are drawn together.
    """
    runs = finite(values)
    if not runs:
        return None
    mean, variance = mean_and_variance(runs)
    if variance is None:
        return Interval(1, mean, None, None, None)
    parts: dict[Hashable, list[float]] = {}
    for value, cluster in zip(runs, range(len(runs)) if clusters is None else clusters, strict=True):
        parts.setdefault(cluster, []).append(value)
    if len(parts) < 2:
        return Interval(len(runs), mean, math.sqrt(variance), None, None)
    means = _resampled_means(sorted((math.fsum(part), len(part)) for part in parts.values()), resamples)
    cut = max(math.ceil((1 - level) / 2 * resamples), 1)
    low, high = means[[cut - 1, resamples - cut]].tolist()
    return Interval(len(runs), mean, math.sqrt(variance), low, high)


def _resampled_means(parts: Sequence[tuple[float, int]], resamples: int) -> NDArray[np.float64]:
    """Return sorted means of resamples with replacement, drawn in blocks of bounded size.

    Each of `parts` is drawn as a whole: its sum, and how many values that is of.
    """
    import numpy as np

    draw, values = np.random.default_rng(1), np.array(parts)
    block = max(_DRAWS_AT_ONCE // len(parts), 1)
    means = np.empty(resamples)
    for start in range(0, resamples, block):
        end = min(start + block, resamples)
        drawn = values[draw.integers(0, len(parts), size=(end - start, len(parts)))].sum(axis=1)
        means[start:end] = drawn[:, 0] / drawn[:, 1]
    means.sort()
    return means


def welch_test(a: pl.Series, b: pl.Series) -> Difference | None:
    """Return Welch's t test of two means (two-sided). None below two values, or if neither group varies."""
    runs_a, runs_b = finite(a), finite(b)
    (mean_a, variance_a), (mean_b, variance_b) = mean_and_variance(runs_a), mean_and_variance(runs_b)
    if variance_a is None or variance_b is None or not variance_a + variance_b:
        return None
    part_a, part_b = variance_a / len(runs_a), variance_b / len(runs_b)
    t = (mean_a - mean_b) / math.sqrt(part_a + part_b)
    # Welch and Satterthwaite, in shares of the sum, which cannot underflow when squared
    share = part_a / (part_a + part_b)
    degrees = 1 / (share**2 / (len(runs_a) - 1) + (1 - share) ** 2 / (len(runs_b) - 1))
    return Difference(t, degrees, t_tail(t, degrees))


def student_test(a: pl.Series, b: pl.Series) -> Difference | None:
    """Return Student's t test of two means (two-sided), of which one may be a single value.

    Both groups are taken to vary alike. None below three values in all, or if neither group varies.
    """
    runs_a, runs_b = finite(a), finite(b)
    degrees = len(runs_a) + len(runs_b) - 2
    (mean_a, variance_a), (mean_b, variance_b) = mean_and_variance(runs_a), mean_and_variance(runs_b)
    squares = (variance_a or 0.0) * (len(runs_a) - 1) + (variance_b or 0.0) * (len(runs_b) - 1)
    if not runs_a or not runs_b or degrees < 1 or not squares:
        return None
    t = (mean_a - mean_b) / math.sqrt(squares / degrees * (1 / len(runs_a) + 1 / len(runs_b)))
    return Difference(t, degrees, t_tail(t, degrees))


def kruskal_wallis(groups: Sequence[pl.Series]) -> Difference | None:
    """Return the test of Kruskal and Wallis, corrected for ties: H against chi-squared, k - 1 degrees.

    None below two groups with values, or if all values are the same.
    """
    runs = [run for run in map(finite, groups) if run]
    ranks, ties = _midranks([value for run in runs for value in run])
    n = len(ranks)
    correction = 1 - ties / (n**3 - n) if n > 1 else 0.0
    if len(runs) < 2 or not correction:
        return None
    rank_of = iter(ranks)
    parts = [math.fsum(next(rank_of) for _ in run) ** 2 / len(run) for run in runs]
    h = (12 / (n * (n + 1)) * math.fsum(parts) - 3 * (n + 1)) / correction
    degrees = len(runs) - 1
    return Difference(h, degrees, chi_squared_tail(h, degrees))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (S. Holm, 1979), in the order given; at most 1 each."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        largest = max(largest, min((len(p_values) - rank) * p_values[place], 1.0))
        corrected[place] = largest
    return corrected


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected so that few of those that are small are so by chance, in the order given.

    Of the tests whose corrected value is at most q, a part of q is expected to be wrong (Y. Benjamini and
    Y. Hochberg, 1995); Holm's method bounds the chance of a single error, and finds less.
    """
    corrected = [0.0] * len(p_values)
    least = 1.0
    descending = sorted(range(len(p_values)), key=lambda one: p_values[one], reverse=True)
    for place, number in enumerate(descending):
        least = min(least, p_values[number] * len(p_values) / (len(p_values) - place))
        corrected[number] = least
    return corrected


def finite(values: pl.Series) -> list[float]:
    """Return the values that are not null. Raises `ValueError` for NaN and infinities."""
    runs = [float(value) for value in values.to_list() if value is not None]
    if not all(map(math.isfinite, runs)):
        raise ValueError("a run without a finite value has none: give null")
    return runs


def mean_and_variance(runs: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean, and the variance of the sample or None below two values."""
    if not runs:
        return math.nan, None
    mean = math.fsum(runs) / len(runs)
    if len(runs) < 2:
        return mean, None
    return mean, math.fsum((run - mean) ** 2 for run in runs) / (len(runs) - 1)


def _midranks(values: Sequence[float]) -> tuple[list[float], int]:
    """Return the rank of each value, the mean one for equal values, and the sum of t^3 - t over them."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    ranks, ties, start = [0.0] * len(values), 0, 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + 1 + end) / 2
        ties += (end - start) ** 3 - (end - start)
        start = end
    return ranks, ties
