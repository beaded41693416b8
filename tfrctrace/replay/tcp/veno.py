"""Veno (Fu and Liew, JSAC 2003): Reno that judges by the queue whether congestion caused a loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import WindowControl, at_least

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

QUEUED_IF_CONGESTED: Final = 3.0
"""beta: queued segments above which the path counts as congested."""

AFTER_RANDOM_LOSS: Final = 4 / 5
"""Factor of the window after a loss with a short queue."""


class Veno(WindowControl):
    """Grows half as fast while N >= beta, and keeps four fifths of the window after a loss with N < beta."""

    def __init__(
        self,
        start: Start,
        *,
        beta: float = QUEUED_IF_CONGESTED,
        uncounted: float = 0,
        **window: Unpack[WindowParameters],
    ) -> None:
        """Set beta in segments, and the acknowledged ones that do not count at each step while congested.

        Linux counts those of an acknowledgement less in each round: 2 or more.
        """
        super().__init__(start, **window)
        self._beta = beta
        self._uncounted = at_least("uncounted", uncounted, 0.0)

    @property
    def is_congested(self) -> bool:
        """Whether the queue is long enough to attribute a loss to congestion."""
        return self.queued >= self._beta

    def avoid_congestion(self, share: float) -> None:
        """Grow by one segment per round, or per two rounds while the path is congested."""
        self.cwnd += self.cwnd / (self.cwnd + self._uncounted) / 2 * share if self.is_congested else share

    def before_loss(self, rtt_s: float) -> None:
        """Judge by it: N is of the last acknowledgement, not of a round."""
        self.sample_rtt(rtt_s)

    def after_loss(self) -> float:  # noqa: D102
        return self.cwnd / 2 if self.is_congested else self.cwnd * AFTER_RANDOM_LOSS

    def time_out(self) -> None:
        """Reset R_min, as the path may have changed."""
        super().time_out()
        self.base_rtt_s = math.inf
