"""H-TCP (Leith and Shorten, PFLDnet 2004; draft-leith-tcp-htcp-06): growth by the time since a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import WindowControl, at_least, in_ticks

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

_RENO_S: Final = 1.0
"""Delta_L: so long after a loss it grows as Reno does."""

_LEAST_KEPT: Final = 0.5
_MOST_KEPT: Final = 0.8

_STEADY: Final = 0.2
"""Delta_B: a throughput that changed by more makes the next loss halve the window."""

_LEAST_RTT_S: Final = 0.01
"""Linux: a shorter base round-trip time does not tell how full a queue is."""

_REFERENCE_RTT_S: Final = 0.1
_SCALES: Final = (0.5, 10.0)
"""Bounds of the reference over the base round-trip time, by which Linux divides the growth."""

_RTT_STEP_S: Final = 0.02
"""Linux: a largest round-trip time further above the one before is not believed."""

_REMEMBERED: Final = 0.95
"""Share of the largest queueing delay that is left at each loss."""


class Htcp(WindowControl):
    """AIMD that grows faster the longer it is since a loss, and keeps R_min / R_max of its window."""

    def __init__(
        self, start: Start, *, uncounted: float = 0, tick: float = 0, **window: Unpack[WindowParameters]
    ) -> None:
        """Set the acknowledged segments that do not count at each step of a segment: about 3 in Linux.

        `tick` is that of the clock in seconds by which round-trip times are measured (Linux: 1 / HZ).
        """
        super().__init__(start, **window)
        self._uncounted = at_least("uncounted", uncounted, 0.0)
        self._tick_s = at_least("tick", tick, 0.0)
        self._beta = _LEAST_KEPT
        self._adapts = False
        self._elapsed_s = 0.0
        self._longest_s = 0.0
        self._throughput = 0.0
        self._throughput_before = 0.0

    def sample_rtt(self, rtt_s: float) -> None:
        """Keep the largest round-trip time, too."""
        rtt_s = in_ticks(rtt_s, self._tick_s)
        super().sample_rtt(rtt_s)
        self._longest_s = max(self._longest_s, self.base_rtt_s)
        if rtt_s <= self._longest_s + _RTT_STEP_S:
            self._longest_s = max(self._longest_s, rtt_s)

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        if self.rtt_s:
            self._elapsed_s += share * self.rtt_s
            self._throughput = max(self._throughput, self.cwnd / self.rtt_s)
        counted = self.cwnd / (self.cwnd + self._uncounted)
        self.cwnd += 2 * (1 - self._beta) * self._factor() * counted * share

    def _factor(self) -> float:
        """Return alpha: 1 + 10 (t - 1) + ((t - 1) / 2)^2 from a second on, scaled by the round-trip time."""
        beyond_s = self._elapsed_s - _RENO_S
        if beyond_s <= 0:
            return 1.0
        least, most = _SCALES
        scale = min(max(_REFERENCE_RTT_S / max(self.base_rtt_s, 1e-3), least), most)
        return max(1.0, (1 + 10 * beyond_s + (beyond_s / 2) ** 2) / scale)

    def after_loss(self) -> float:
        """Return the base over the largest round-trip time, of the window; half if the throughput moved."""
        before, now = self._throughput_before, self._throughput
        is_steady = before > 0 and abs(now - before) <= _STEADY * before
        knows = self._adapts and self.base_rtt_s > _LEAST_RTT_S and self._longest_s > 0
        kept = self.base_rtt_s / self._longest_s if is_steady and knows else _LEAST_KEPT
        self._beta = min(max(kept, _LEAST_KEPT), _MOST_KEPT)
        self._adapts = is_steady
        self._longest_s -= (1 - _REMEMBERED) * max(self._longest_s - self.base_rtt_s, 0.0)
        self._throughput_before, self._throughput = now, 0.0
        self._elapsed_s = 0.0
        return self.cwnd * self._beta

    def after_timeout(self) -> float:
        """Return what a loss leaves."""
        return self.after_loss()
