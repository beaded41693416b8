"""How much a flow suffers beside another: harm (R. Ware et al., Beyond Jain's Fairness Index, HotNets 2019).

Of what one wants more, such as throughput, harm is (alone - beside)/alone; of what one wants less, such as
delay or loss, (beside - alone)/beside. It is 0 for no harm, 1 for the most, and negative where the flow does
better beside the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrctrace.metrics.statistics.contrasts import contrast
from tfrctrace.metrics.statistics.distributions import t_quantile
from tfrctrace.metrics.statistics.significance import mean_and_variance

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Harm:
    """Harm of the means of repeated runs, with its interval; bounds are None where runs do not show them."""

    value: float
    low: float | None
    high: float | None


def harm(
    alone: Sequence[float], beside: Sequence[float], *, more_is_better: bool, level: float = 0.95
) -> Harm | None:
    """Return the harm to a flow that has these values alone and beside another, a run each.

    None without values, or if what they are divided by is 0.
    """
    top, bottom = (beside, alone) if more_is_better else (alone, beside)
    (mean, _), (divisor, _) = mean_and_variance(top), mean_and_variance(bottom)
    if not top or not bottom or not divisor:
        return None
    low, high = ratio_interval(top, bottom, level)
    return Harm(1 - mean / divisor, None if high is None else 1 - high, None if low is None else 1 - low)


def ratio_interval(
    top: Sequence[float], bottom: Sequence[float], level: float = 0.95
) -> tuple[float | None, float | None]:
    """Return the interval of the ratio of two means (E. C. Fieller, 1954), with Welch's degrees of freedom.

    It is all r for which the mean of `top` less r times that of `bottom` may be 0. Both bounds are None with
    fewer than two runs, or if the divisor may be 0.
    """
    (above, above_variance), (below, below_variance) = mean_and_variance(top), mean_and_variance(bottom)
    if above_variance is None or below_variance is None or not below:
        return None, None
    if not above_variance and not below_variance:
        return above / below, above / below
    found = contrast([top, bottom], [1.0, -above / below])
    if found is None:
        return None, None
    quantile = t_quantile((1 + level) / 2, found.degrees)
    a = below**2 - quantile**2 * below_variance / len(bottom)
    b = above * below
    c = above**2 - quantile**2 * above_variance / len(top)
    if a <= 0:
        return None, None
    spread = math.sqrt(max(b**2 - a * c, 0.0))
    return (b - spread) / a, (b + spread) / a
