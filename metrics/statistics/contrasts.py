"""Weighted sums of means of repeated runs, and how sure it is that such a sum is above or below 0.

With weights 1 and -1 this is Welch's test of two means, with one weight Student's of one, with several a
trend. Of runs that belong together the sums are taken first, which gives the paired test. Where runs of
several settings belong together, clusters of them are what varies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrctrace.metrics.statistics.distributions import t_tail
from tfrctrace.metrics.statistics.significance import cluster_deviations, mean_and_variance

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


@dataclass(frozen=True, slots=True)
class Contrast:
    """A weighted sum of means, its standard error, and the degrees of freedom of that."""

    estimate: float
    error: float
    degrees: float

    def p_above(self, threshold: float = 0.0) -> float:
        """Return the one-sided p value of the sum being above `threshold`; 0 or 1 if no run varies."""
        return _p(self.estimate - threshold, self.error, self.degrees)

    def p_below(self, threshold: float = 0.0) -> float:
        """Return the one-sided p value of the sum being below `threshold`."""
        return _p(threshold - self.estimate, self.error, self.degrees)


def contrast(groups: Sequence[Sequence[float]], weights: Sequence[float]) -> Contrast | None:
    """Return the sum of the groups' means times `weights`, with Welch and Satterthwaite's degrees of freedom.

    None if a group has fewer than two values.
    """
    estimates, parts = [], []
    for runs, weight in zip(groups, weights, strict=True):
        mean, variance = mean_and_variance(runs)
        if variance is None:
            return None
        estimates.append(weight * mean)
        parts.append((weight**2 * variance / len(runs), len(runs) - 1))
    squares = math.fsum(part for part, _ in parts)
    shares = [(part / squares, degrees) for part, degrees in parts] if squares else []
    degrees = 1 / math.fsum(share**2 / own for share, own in shares) if shares else math.inf
    return Contrast(math.fsum(estimates), math.sqrt(squares), degrees)


def paired_contrast(rows: Sequence[Sequence[float]], weights: Sequence[float]) -> Contrast | None:
    """Return the same of runs that belong together: each of `rows` has one value for each weight."""
    sums = [math.fsum(weight * value for weight, value in zip(weights, row, strict=True)) for row in rows]
    return contrast([sums], [1.0])


def clustered_contrast(
    groups: Sequence[Sequence[tuple[Hashable, float]]], weights: Sequence[float], *, of_logs: bool = False
) -> Contrast | None:
    """Return the sum of the groups' means times `weights`, or of the logarithms of the means.

    Each value stands after its cluster, such as a seed; those of one cluster may depend on each other, in
    one group or in several. The error is that of Liang and Zeger (1986), with the correction G/(G-1) for G
    clusters and G-1 degrees of freedom; by the delta method for logarithms. A group of one value without a
    cluster (None) is a number, without an error. None below two clusters, or for the logarithm of a mean
    that is not above 0.
    """
    estimates: list[float] = []
    influences: dict[Hashable, list[float]] = {}
    fewest = math.inf
    for group, weight in zip(groups, weights, strict=True):
        clusters, values = zip(*group, strict=True)
        mean = math.fsum(values) / len(values)
        if of_logs and mean <= 0:
            return None
        estimates.append(weight * (math.log(mean) if of_logs else mean))
        if clusters == (None,) or not weight:
            continue
        slope = weight / len(values) / (mean if of_logs else 1.0)
        deviations = cluster_deviations(values, clusters)
        fewest = min(fewest, len(deviations))
        for cluster, deviation in deviations.items():
            influences.setdefault(cluster, []).append(slope * deviation)
    if not 1 < fewest < math.inf:
        return None
    squares = math.fsum(math.fsum(own) ** 2 for own in influences.values()) * fewest / (fewest - 1)
    return Contrast(math.fsum(estimates), math.sqrt(squares), fewest - 1)


def trend_weights(levels: int) -> list[float]:
    """Return weights of `levels` in a row whose contrast is above 0 if means rise: by rank, their sum 0."""
    return [place - (levels - 1) / 2 for place in range(levels)]


def _p(distance: float, error: float, degrees: float) -> float:
    if not error:
        return 0.0 if distance > 0 else 1.0
    half = t_tail(distance / error, degrees) / 2
    return half if distance > 0 else 1 - half
