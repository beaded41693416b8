"""Confidence limits of a median and of a share, without assuming a distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_Z: Final = 1.959963984540054
"""Quantile 0.975 of the normal distribution: limits of 95 %."""


def share_limits(part: float, whole: float) -> tuple[float, float]:
    """Return Wilson's limits of a share (Wilson 1927): `part` of `whole` trials, which may be 0."""
    if whole <= 0:
        return 0.0, 1.0
    share = part / whole
    weight = 1 + _Z**2 / whole
    center = (share + _Z**2 / (2 * whole)) / weight
    spread = _Z / weight * math.sqrt(share * (1 - share) / whole + _Z**2 / (4 * whole**2))
    low, high = max(center - spread, 0.0), min(center + spread, 1.0)
    # rounding must not exclude what was measured
    return min(low, share), max(high, share)


def median_limits(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the values at the ranks that Wilson's limits of one half give, of at least one ascending value.

    So do Fontugne et al. (IMC 2017) for medians of differential round-trip times.
    """
    n = len(ordered)
    low, high = share_limits(n / 2, n)
    return ordered[max(math.floor(n * low), 0)], ordered[min(math.ceil(n * high), n) - 1]
