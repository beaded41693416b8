"""The receiver of the model: which losses are loss events, and p of the intervals between them.

RFC 5348 section 5, for losses that are counted and not seen one by one; without history discounting (section
5.5, an option), which only matters while the newest interval is the longest by far.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from tfrctrace.replay.tcp.steady import aimd_pps

WEIGHTS: Final = (1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2)
"""Of the loss intervals, the newest first (RFC 5348 section 5.4)."""

_HALVINGS: Final = 60
"""Steps of the bisection for the first interval: as many as a float has bits that matter."""


@dataclass(slots=True)
class LossHistory:
    """Loss intervals in packets, the newest first, and the packets since the last loss event began."""

    open_packets: float = 0.0
    closed: deque[float] = field(default_factory=lambda: deque(maxlen=len(WEIGHTS)))
    event_s: float | None = None
    """When the last loss event began."""

    def sent(self, packets: float) -> None:
        """Count packets, lost ones too: a loss interval counts sequence numbers."""
        self.open_packets += packets

    def lost(self, time_s: float, rtt_s: float, arriving_pps: float) -> bool:
        """Take in a loss; return whether it begins a loss event: more than R after the last one began.

        `arriving_pps` is what arrived in packets/s, of which the interval before the first event is made.
        """
        if self.event_s is not None and time_s - self.event_s <= rtt_s:
            return False
        if self.event_s is None:
            self.closed.appendleft(1 / rate_to_p(arriving_pps, rtt_s))
        else:
            self.closed.appendleft(max(self.open_packets, 1.0))
        self.open_packets = 0.0
        self.event_s = time_s
        return True

    @property
    def p(self) -> float:
        """Loss event rate: one over the mean interval, with the open one where that makes it longer."""
        if not self.closed:
            return 0.0
        total = sum(WEIGHTS[: len(self.closed)])
        without_open = sum(map(_product, self.closed, WEIGHTS))
        with_open = sum(map(_product, (self.open_packets, *self.closed), WEIGHTS[: len(self.closed)]))
        return min(1.0, total / max(without_open, with_open))


def _product(packets: float, weight: float) -> float:
    return packets * weight


def rate_to_p(rate_pps: float, rtt_s: float) -> float:
    """Return the loss event rate at which TFRC sends `rate_pps` packets/s (RFC 5348 section 6.3.1)."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rate = aimd_pps(middle, rtt_s) if middle > 0 else None
        if rate is None or rate > rate_pps:
            low = middle
        else:
            high = middle
    return high
