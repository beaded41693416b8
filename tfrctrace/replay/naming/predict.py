"""How well a congestion control predicts what was observed."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.naming.observations import Cut, Growth, Measured, Settled, SlowStart
from tfrctrace.replay.tcp.window import MIN_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfrctrace.replay.naming.observations import Observation
    from tfrctrace.replay.tcp.window import WindowControl

_ODD: Final = 0.05
"""Share of observations that no rule explains: a recovery that was undone, a burst of the path."""

_ROUNDING: Final = 0.55
"""Windows are whole segments."""

_VARIATION: Final = 0.006
"""Of a window from one round to the next."""

_GROWTH_VARIATION: Final = 0.1
"""Of a growth or a cut, as rounds begin and end with whole acknowledgements."""

_LEAST_RANGE: Final = 4.0
"""Segments over which what no rule explains is spread, at least."""

_LEARNING: Final = 0.3
"""Weight of the newest growth in the growth that is expected without a rule."""

_SETTLING: Final = (1.0, 0.05)
"""Segments, and share of the window, by which the round after a recovery has already grown."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted and an observed window, and the scale of their difference, in segments."""

    predicted: float
    observed: float
    before: float
    scale: float
    rounds: int
    """Rounds that it is about; 0 if these are those of another one."""
    is_cut: bool = False

    @property
    def is_right(self) -> bool:
        """Whether the difference is usual."""
        return abs(self.predicted - self.observed) <= 2 * self.scale

    @property
    def log_likelihood(self) -> float:
        """The logarithm of the density: Laplace's, with some observations anywhere."""
        near = math.exp(-abs(self.predicted - self.observed) / self.scale) / (2 * self.scale)
        return math.log((1 - _ODD) * near + _ODD / max(self.before, _LEAST_RANGE))


def predictions(control: WindowControl, observed: Iterable[Observation]) -> Iterator[Prediction]:
    """Give a prediction for each observation that shows the window, from the observed state before it."""
    for seen in observed:
        match seen:
            case Measured(report):
                control.measure(report)
            case SlowStart():
                yield _slow_start(control, seen)
            case Growth():
                yield _growth(control, seen)
            case Settled(before, after):
                control.cwnd = before
                yield _settled(control.after_recovery(), after, before)
            case Cut(before, after) if before:
                if seen.rtt_s is not None:
                    control.before_loss(seen.rtt_s)
                control.cwnd = before[0]
                if after:
                    prediction = _cut(control, seen)
                    yield prediction
                    control.cwnd = prediction.before
                left = _reduce(control, seen)
                if seen.is_timeout:
                    control.ssthresh = max(left, MIN_WINDOW)
                elif seen.settled is not None:
                    control = _after_several(control, seen, left, seen.settled)


def _slow_start(control: WindowControl, seen: SlowStart) -> Prediction:
    control.cwnd = seen.before
    control.measure(seen.report)
    control.slow_start(seen.share)
    return _prediction(control.cwnd, seen.after, seen.before, control.cwnd - seen.before, 1)


def _growth(control: WindowControl, seen: Growth) -> Prediction:
    control.cwnd = seen.before
    for report, share in seen.rounds:
        control.measure(report)
        control.avoid_congestion(share)
    return _prediction(control.cwnd, seen.after, seen.before, control.cwnd - seen.before, len(seen.rounds))


def _reduce(control: WindowControl, seen: Cut) -> float:
    """Return what a control leaves of its window, and let it take note of the cut."""
    if seen.is_timeout:
        return control.after_timeout()
    return control.after_mark() if seen.is_mark else control.after_loss()


def _after_several(control: WindowControl, seen: Cut, left: float, settled: float) -> WindowControl:
    """Return the state after as many losses in a row as come nearest to the window that they left."""
    while left > MIN_WINDOW:
        other = copy.copy(control)
        other.cwnd = left
        again = max(_reduce(other, seen), MIN_WINDOW)
        if abs(again - settled) >= abs(left - settled):
            break
        control, left = other, again
    return control


def _cut(control: WindowControl, seen: Cut) -> Prediction:
    """Return the prediction that is nearest: the window may have grown until the loss was seen."""
    tries = []
    for before in seen.before:
        left = _left(control, seen, before)
        most = _grown_and_left(control, seen, before) if seen.is_mark else left
        for after in seen.after:
            nearest = min(max(after, left), max(most, left))
            # Linux has whole segments, ns-2's agents have parts of one
            predicted = float(math.floor(nearest)) if after.is_integer() else nearest
            tries.append(_prediction(predicted, after, before, 0.0, 1, is_cut=True))
    return min(tries, key=lambda one: abs(one.predicted - one.observed))


def _left(control: WindowControl, seen: Cut, before: float) -> float:
    other = copy.copy(control)
    other.cwnd = before
    return max(_reduce(other, seen), MIN_WINDOW)


def _grown_and_left(control: WindowControl, seen: Cut, before: float) -> float:
    """Return the most that a mark leaves.

    The first one is echoed some time in a round, and no end of a recovery shows what it left: the window may
    have grown for a round before, and for one since.
    """
    other = copy.copy(control)
    other.cwnd = before
    other.avoid_congestion(1.0)
    other.cwnd = max(_reduce(other, seen), MIN_WINDOW)
    other.avoid_congestion(1.0)
    return other.cwnd


def _settled(predicted: float, observed: float, before: float) -> Prediction:
    segments, share = _SETTLING
    return Prediction(predicted, observed, before, segments + share * before, 0)


def _prediction(
    predicted: float, observed: float, before: float, moved: float, rounds: int, *, is_cut: bool = False
) -> Prediction:
    scale = _ROUNDING + _GROWTH_VARIATION * abs(moved) + _VARIATION * before
    return Prediction(predicted, observed, before, scale, rounds, is_cut)


def smooth_log_likelihoods(observed: Iterable[Observation]) -> list[float]:
    """Return how likely observations are without any rule: growth as it was, and any cut alike.

    A congestion control that does not beat this explains nothing.
    """
    found = []
    growth = 0.0
    for seen in observed:
        match seen:
            case Growth(rounds, before, after, _):
                shares = sum(share for _, share in rounds)
                step = growth * shares
                found.append(_prediction(before + step, after, before, step, len(rounds)).log_likelihood)
                if shares > 0:
                    growth += _LEARNING * ((after - before) / shares - growth)
            case Settled(before, after):
                found.append(_settled(before, after, before).log_likelihood)
            case Cut(before, after) if before and after:
                found.append(-math.log(max(*before, _LEAST_RANGE)))
    return found
