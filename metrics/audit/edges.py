"""When a change began or ended, by events that are good or bad: flows, each at its own time.

Between two states of which the shares of bad events are known, each time between two events is as likely as
the events before and after it are in these states (A. F. M. Smith, "A Bayesian approach to inference about a
change-point in a sequence of random variables", Biometrika 62(2), 1975), if no time is likelier beforehand.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_TAIL: Final = 0.025
"""Probability beyond either end of what is said."""
_LEAST_DIFFERENCE: Final = 0.2
"""Shares of bad events that are nearer to each other say little of single ones."""
_LEAST_GAIN: Final = 3.0
"""Log-likelihood that a change must explain on either side of it."""


@dataclass(frozen=True, slots=True)
class Edge:
    """When something changed: most likely, and between which times with 95 %."""

    at_ns: int
    span_ns: tuple[int, int]


def share_of(bad: Sequence[bool]) -> float:
    """Return the share of bad events, of which none is certain (Laplace's rule of succession)."""
    return (sum(bad) + 1) / (len(bad) + 2)


def change_between(times_ns: Sequence[int], bad: Sequence[bool], before: float, after: float) -> Edge | None:
    """Return when the share of bad events changed from one to another; None if these events do not show it.

    Times are in order. A change before the first or after the last event is not seen.
    """
    if abs(after - before) < _LEAST_DIFFERENCE or len(times_ns) < 2:
        return None
    gains = (math.log(after / before), math.log((1 - after) / (1 - before)))
    # how much more likely events so far are in the state afterwards
    sums = [0.0, *accumulate(gains[0] if one else gains[1] for one in bad)]
    lowest = min(sums)
    if lowest > -_LEAST_GAIN or sums[-1] - lowest < _LEAST_GAIN:
        return None
    masses = [
        math.exp(lowest - one) * (until_ns - since_ns)
        for one, (since_ns, until_ns) in zip(sums[1:], pairwise(times_ns), strict=False)
    ]
    upto = [0.0, *accumulate(masses)]

    def quantile_ns(share: float) -> int:
        place = max(bisect_left(upto, share * upto[-1]), 1)
        within = (share * upto[-1] - upto[place - 1]) / masses[place - 1]
        return times_ns[place - 1] + round(within * (times_ns[place] - times_ns[place - 1]))

    if not upto[-1]:
        return None
    return Edge(quantile_ns(0.5), (quantile_ns(_TAIL), quantile_ns(1 - _TAIL)))
