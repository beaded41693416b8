"""HighSpeed TCP (RFC 3649): the increase and the decrease of AIMD depend on the window."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import WindowControl, at_least

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

LOW_WINDOW: Final = 38.0
"""Segments up to which it is Reno (section 5)."""

_HIGH_WINDOW: Final = 83_000.0
_HIGH_DECREASE: Final = 0.1


def decrease(window: float) -> float:
    """Return b(w), the part of the window that a loss takes (section 5, eq. 3)."""
    position = math.log(window / LOW_WINDOW) / math.log(_HIGH_WINDOW / LOW_WINDOW)
    return min(max(0.5 + (_HIGH_DECREASE - 0.5) * position, _HIGH_DECREASE), 0.5)


def increase(window: float) -> float:
    """Return a(w) = w^2 p(w) 2 b(w) / (2 - b(w)) segments per round; p(w) = 0.078 / w^1.2 (section 5)."""
    part = decrease(window)
    return float(window**2 * 0.078 / window**1.2 * 2 * part / (2 - part))


@cache
def steps() -> tuple[float, ...]:
    """Return the low window, and those at which a(w) reaches 2, 3, ... segments (appendix B)."""
    found = [LOW_WINDOW]
    for segments in range(2, math.floor(increase(_HIGH_WINDOW)) + 1):
        low, high = found[-1], _HIGH_WINDOW
        while high - low > 1 / 2:
            middle = (low + high) / 2
            low, high = (middle, high) if increase(middle) < segments else (low, middle)
        found.append(high)
    return tuple(found)


class HighSpeed(WindowControl):
    """Reno up to 38 segments, more aggressive the larger the window, in the steps of appendix B."""

    def __init__(
        self, start: Start, *, segments_per_ack: float = 1, **window: Unpack[WindowParameters]
    ) -> None:
        """Set the segments of an acknowledgement, as the rule counts acknowledgements."""
        super().__init__(start, **window)
        self._segments_per_ack = at_least("segments_per_ack", segments_per_ack, 1.0)

    @property
    def _step(self) -> int:
        """The row of the table."""
        return min(bisect_left(steps(), self.cwnd), len(steps()) - 1)

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        self.cwnd += (self._step + 1) / self._segments_per_ack * share

    def after_loss(self) -> float:  # noqa: D102
        return self.cwnd * (1 - decrease(steps()[self._step]))
