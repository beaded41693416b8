"""Whether a share of packets or connections is larger than chance makes it."""

from __future__ import annotations

from typing import Final

from tfrctrace.metrics.statistics.distributions import binomial_tail

CHANCE: Final = 0.01
"""Chance stretches of time that are taken for a change, of which there may be so many."""

_MOST_USUAL: Final = 1 - 1e-9
_TOGETHER: Final = 2.0
"""Packets that are lost together, on average: losses are no independent trials."""


def usual_share(part: float, n: float) -> float:
    """Return the share of which `part` of `n` is a sample, never 0 or 1."""
    return min((max(part, 0.0) + 0.5) / (max(n, 0.0) + 1), _MOST_USUAL)


def chance_of_share(part: float, n: float, usual: float) -> float:
    """Return how likely `part` of `n` or more is with the usual share, by the exact binomial test."""
    return binomial_tail(part / _TOGETHER, n / _TOGETHER, usual)
