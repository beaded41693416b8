"""Scalable TCP (Kelly, CCR 2003): a hundredth of the window more per round, an eighth less after a loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import WindowControl, at_least, share_kept

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

_LEAST_INCREASE: Final = 1.0
"""Segments per round: below a hundred segments it grows as Reno does."""


class Scalable(WindowControl):
    """Multiplicative increase, so that a loss is recovered from in the same number of rounds at any rate."""

    def __init__(
        self, start: Start, *, a: float = 0.01, gamma: float = 7 / 8, **window: Unpack[WindowParameters]
    ) -> None:
        """Set the share of the window by which it grows in a round, and its factor after a loss."""
        super().__init__(start, **window)
        self._a = at_least("a", a, 0.0)
        self._gamma = share_kept("gamma", gamma)

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        self.cwnd += max(_LEAST_INCREASE, self._a * self.cwnd) * share

    def after_loss(self) -> float:
        """Return the window less an eighth of it, in whole segments."""
        return self.cwnd - math.floor((1 - self._gamma) * self.cwnd)
