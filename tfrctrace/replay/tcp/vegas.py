"""Vegas (Brakmo and Peterson, JSAC 1995): keep between alpha and beta segments in the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import MIN_WINDOW, WindowControl, at_least

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

_AFTER_LOSS: Final = 3 / 4
"""Factor of the window after a fast retransmission, as a single loss does not indicate much congestion."""


class Vegas(WindowControl):
    """Delay-based: diff = cwnd (R - R_min) / R is compared with alpha and beta once per round."""

    def __init__(
        self,
        start: Start,
        *,
        alpha: float = 2,
        beta: float = 4,
        gamma: float = 1,
        **window: Unpack[WindowParameters],
    ) -> None:
        """Set alpha, beta and gamma in segments; ns-2's agent has 1, 3 and 1, Linux 2, 4 and 1."""
        super().__init__(start, **window)
        self._alpha = alpha
        self._beta = at_least("beta", beta, alpha)
        self._gamma = gamma
        self._rounds = 0.0

    def slow_start(self, share: float) -> None:
        """Double in every other round, so that the queue can be measured in the rounds between."""
        self._rounds += share
        if self.queued > self._gamma and self.rtt_s is not None:
            # no more than the path holds without a queue, and one segment
            self.cwnd = max(min(self.cwnd, self.cwnd * self.base_rtt_s / self.rtt_s + 1), MIN_WINDOW)
            self.ssthresh = self.cwnd
            self._reason = "queue"
        elif self._rounds % 2 < 1:
            super().slow_start(share)

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        if self.queued < self._alpha:
            self.cwnd += share
        elif self.queued > self._beta:
            self.cwnd = max(self.cwnd - share, MIN_WINDOW)
            self._reason = "queue"

    def after_loss(self) -> float:  # noqa: D102
        return self.cwnd * _AFTER_LOSS
