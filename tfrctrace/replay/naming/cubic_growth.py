"""C of CUBIC (RFC 9438), by the growth of the windows that were observed.

C only shows outside of the Reno-friendly region (section 4.3): inside, the window grows as Reno's does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import fmean, median
from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.metrics.statistics.distributions import t_quantile
from tfrctrace.replay.naming.observations import Cut, Growth
from tfrctrace.replay.naming.predict import predictions
from tfrctrace.replay.tcp.cubic import CUBIC_BETA, CUBIC_C, Cubic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.naming.observations import Observation

_LEAST_EPOCHS: Final = 3
"""Epochs outside of the Reno-friendly region from which C is told."""

_WIDEST: Final = 8.0
_STEPS: Final = 80
"""C is looked for in so many steps, from a part of RFC 9438's to so many times of it."""

_MODEL_ERROR: Final = 0.08
"""Of C: rounds are no clock, and kernels with a known C came out 4 to 8 % too high."""


class GrowthConstant(NamedTuple):
    """C in segments/s^3, and its interval of 95 %."""

    c: float
    low: float
    high: float


class _Epochs(NamedTuple):
    """What a C says of each epoch, which begins with a cut."""

    log_likelihoods: defaultdict[int, float]
    beyond: frozenset[int]
    """Those in which the window grew beyond Reno's."""


def growth_constant(observed: Sequence[Observation], start: Start) -> GrowthConstant | None:
    """Return the likeliest C; None with less than three epochs that show it, or if they do not agree.

    Errors within an epoch are not independent: the interval is of a jackknife over epochs.
    """
    cuts = [seen for seen in observed if isinstance(seen, Cut) and seen.before and seen.after]
    left = [seen.after[0] / seen.before[0] for seen in cuts if not seen.is_mark]
    beta = median(left) if left else CUBIC_BETA
    if not 0 < beta < 1:
        return None
    logs = [math.log(CUBIC_C) + (2 * step / _STEPS - 1) * math.log(_WIDEST) for step in range(_STEPS + 1)]
    tried = [_epochs(Cubic(start, c=math.exp(log), beta=beta), observed) for log in logs]
    likely = [math.fsum(one.log_likelihoods.values()) for one in tried]
    best = likely.index(max(likely))
    beyond = tried[best].beyond
    if len(beyond) < _LEAST_EPOCHS or not 0 < best < _STEPS:
        return None
    without = [
        _highest(logs, [total - one.log_likelihoods[epoch] for total, one in zip(likely, tried, strict=True)])
        for epoch in beyond
    ]
    mean = fmean(without)
    share = (len(without) - 1) / len(without)
    error = math.sqrt(share * math.fsum((place - mean) ** 2 for place in without))
    c, reach = _highest(logs, likely), math.hypot(t_quantile(0.975, len(without) - 1) * error, _MODEL_ERROR)
    if reach > math.log(_WIDEST):
        # the interval has all that was looked for
        return None
    return GrowthConstant(math.exp(c), math.exp(c - reach), math.exp(c + reach))


def _epochs(control: Cubic, observed: Sequence[Observation]) -> _Epochs:
    epoch = 0
    likely = defaultdict[int, float](float)
    beyond = set[int]()
    for seen in observed:
        epoch += isinstance(seen, Cut)
        for made in predictions(control, [seen]):
            likely[epoch] += made.log_likelihood
        if isinstance(seen, Growth) and not control.is_reno_friendly:
            beyond.add(epoch)
    return _Epochs(likely, frozenset(beyond))


def _highest(places: Sequence[float], values: Sequence[float]) -> float:
    """Return the place of the highest value, by the parabola through it and its neighbours."""
    best = max(range(1, len(values) - 1), key=values.__getitem__)
    before, here, after = values[best - 1 : best + 2]
    bend = before - 2 * here + after
    shift = (before - after) / (2 * bend) if bend < 0 else 0.0
    return places[best] + shift * (places[best + 1] - places[best])
