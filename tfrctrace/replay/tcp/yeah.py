"""YeAH (Baiocchi, Castellani and Vacirca, PFLDnet 2007): Scalable while the queue is short, else Reno."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.scalable import Scalable
from tfrctrace.replay.tcp.window import MIN_WINDOW

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

_MOST_QUEUED: Final = 80.0
"""Q_max: segments in the queue above which it drains it."""

_LONG_QUEUE: Final = 1 / 8
"""1/phi: queueing delay over the base round-trip time from which the path counts as congested."""

_RENO_ROUNDS: Final = 16.0
"""rho: after so many congested rounds others are there, and a loss halves the window."""

_FAST_ROUNDS: Final = 50.0
"""zeta: rounds without congestion after which the window of Reno is forgotten."""

_LEAST_CUT: Final = 1 / 8

_SAMPLES: Final = 3
"""The smallest of so many stands for the smallest round-trip time of a round, as a report has one sample."""


class Yeah(Scalable):
    """Two modes by the queue; drains a long one unless Reno's window, which it estimates, is larger."""

    def __init__(self, start: Start, **window: Unpack[WindowParameters]) -> None:
        super().__init__(start, **window)
        self._reno_window = MIN_WINDOW
        self._slow_rounds = 0.0
        self._fast_rounds = 0.0
        self._recent_s: deque[float] = deque(maxlen=_SAMPLES)

    def sample_rtt(self, rtt_s: float) -> None:
        """Keep the last samples, too."""
        super().sample_rtt(rtt_s)
        self._recent_s.append(rtt_s)

    @property
    def _delay_s(self) -> float:
        """The queueing delay."""
        return min(self._recent_s) - self.base_rtt_s if self._recent_s else 0.0

    @property
    def queued(self) -> float:
        """Segments of this flow in the queue."""
        return self.cwnd * self._delay_s / (self.base_rtt_s + self._delay_s) if self._delay_s > 0 else 0.0

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        if self._slow_rounds > 0:
            self.cwnd += share
        else:
            super().avoid_congestion(share)
        queued = self.queued
        if queued > _MOST_QUEUED or self._delay_s > self.base_rtt_s * _LONG_QUEUE:
            if queued > _MOST_QUEUED and self.cwnd > self._reno_window:
                drained = self.cwnd - share * min(queued, self.cwnd / 2)
                self.cwnd = self.ssthresh = max(drained, self._reno_window)
                self._reason = "queue"
            is_first = self._reno_window <= MIN_WINDOW
            self._reno_window = max(self.cwnd / 2, MIN_WINDOW) if is_first else self._reno_window + share
            self._slow_rounds += share
            return
        self._fast_rounds += share
        if self._fast_rounds > _FAST_ROUNDS:
            self._reno_window, self._fast_rounds = MIN_WINDOW, 0.0
        self._slow_rounds = 0.0

    def after_loss(self) -> float:
        """Return the window less its queue, which is at least an eighth and at most half of it."""
        if self._slow_rounds < _RENO_ROUNDS:
            cut = max(min(self.queued, self.cwnd / 2), math.floor(self.cwnd * _LEAST_CUT))
        else:
            cut = self.cwnd / 2
        self._fast_rounds = 0.0
        self._reno_window = max(self._reno_window / 2, MIN_WINDOW)
        return max(self.cwnd - cut, MIN_WINDOW)
