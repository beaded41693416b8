"""Hybla (Caini and Firrincieli, IJSCN 2004): the growth in time of a path with a short round-trip time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import MIN_WINDOW, WindowControl, at_least

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

REFERENCE_RTT_S: Final = 0.025
"""RTT_0: a path with at most this round-trip time grows as Reno does."""

_SMOOTHING: Final = 1 / 8
"""Weight of a sample (RFC 6298 section 2.3)."""

_MOST_DOUBLINGS: Final = 16.0
"""Of a round of slow start, so that 2^rho is a number at any round-trip time."""


class Hybla(WindowControl):
    """Grow by rho^2 segments per round, where rho is the base round-trip time over that of the reference."""

    def __init__(
        self,
        start: Start,
        *,
        rtt0: float = REFERENCE_RTT_S,
        segments_per_ack: float = 1,
        smoothed: float = 0,
        **window: Unpack[WindowParameters],
    ) -> None:
        """Set RTT_0 in seconds, and the segments of an acknowledgement.

        The rule counts acknowledgements: where each is for two segments, the window grows half as fast. With
        `smoothed`, rho is of the shortest smoothed round-trip time (RFC 6298), as in Linux.
        """
        super().__init__(start, **window)
        if not rtt0 > 0:
            raise ValueError(f"rtt0 is {rtt0:g}, and above 0")
        self._rtt0_s = rtt0
        self._segments_per_ack = at_least("segments_per_ack", segments_per_ack, 1.0)
        if smoothed not in (0, 1):
            raise ValueError("smoothed is 0 or 1")
        self._is_smoothed = bool(smoothed)
        self._smoothed_s: float | None = None
        self._least_smoothed_s = math.inf

    def sample_rtt(self, rtt_s: float) -> None:
        """Smooth the round-trip time, too, as if each acknowledgement of a round had this one."""
        super().sample_rtt(rtt_s)
        acknowledgements = max(self.cwnd / self._segments_per_ack, 1.0)
        kept = (1 - _SMOOTHING) ** acknowledgements
        before_s = rtt_s if self._smoothed_s is None else self._smoothed_s
        smoothed_s = kept * before_s + (1 - kept) * rtt_s
        self._smoothed_s = smoothed_s
        self._least_smoothed_s = min(self._least_smoothed_s, smoothed_s)

    @property
    def _rho(self) -> float:
        if self.rtt_s is None:
            return 1.0
        shortest_s = self._least_smoothed_s if self._is_smoothed else min(self.base_rtt_s, self.rtt_s)
        return max(1.0, shortest_s / self._rtt0_s)

    def slow_start(self, share: float) -> None:
        """Grow by 2^rho - 1 segments per acknowledged segment (eq. 8), up to `ssthresh`."""
        growth = (2 ** min(self._rho, _MOST_DOUBLINGS) - 1) / self._segments_per_ack
        self.cwnd = min(self.cwnd * (1 + growth * share), max(self.ssthresh, self.cwnd))

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        self.cwnd += self._rho**2 / self._segments_per_ack * share

    def after_loss(self) -> float:  # noqa: D102
        return max(self.cwnd / 2, MIN_WINDOW)
