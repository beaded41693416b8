"""The common part of window controls: rounds, slow start, recovery and timeouts (RFC 5681, RFC 6582)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, TypedDict

from tfrctrace.replay.controller import Allowed
from tfrctrace.replay.tcp.hystart import HyStart
from tfrctrace.replay.tcp.timer import INITIAL_RTO_S, LEAST_RTO_S, RetransmissionTimer

if TYPE_CHECKING:
    from tfrctrace.replay.controller import Report, Start
    from tfrctrace.replay.tcp.hystart import Name

MIN_WINDOW: Final = 2.0
"""Minimum window after a loss, in segments (RFC 5681 eq. 4)."""

_FULL_WINDOW_BYTES: Final = 4380
"""RFC 3390 section 1: the initial window is 4380 bytes, but two segments at least and four at most."""


class WindowParameters(TypedDict, total=False):
    """Parameters of every window control."""

    initial_window: float
    min_rto_s: float
    hystart: Name


class WindowControl(ABC):
    """A congestion window in segments that is updated once per round-trip time.

    The rules per acknowledgement are summed over the acknowledgements of a round, as many as the report says.
    """

    def __init__(
        self,
        start: Start,
        *,
        initial_window: float | None = None,
        min_rto_s: float | None = None,
        hystart: Name = "none",
    ) -> None:
        """Set the initial window in segments (default: RFC 3390's), the minimum timeout in s, and HyStart.

        RFC 6928 allows 10 segments; Linux and ns-2 wait at least 0.2 s. The default minimum timeout is that
        of the recorded sender if known, else RFC 6298's.
        """
        self.segment_bytes = start.segment_bytes
        first = rfc3390_window(start.segment_bytes) if initial_window is None else initial_window
        self.cwnd = at_least("initial_window", first, 1.0)
        self.ssthresh = math.inf
        self.base_rtt_s = math.inf
        """R_min: the smallest round-trip time so far."""
        self.rtt_s = start.handshake_rtt_s
        known_s = LEAST_RTO_S if start.least_rto_s is None else start.least_rto_s
        self._timer = RetransmissionTimer(min_rto_s=known_s if min_rto_s is None else min_rto_s)
        self._recovery_rounds = 0.0
        """Rounds of recovery left, the current one included."""
        self._hystart = HyStart(hystart)
        self._mode = "slow_start"
        self._reason = "start"

    @abstractmethod
    def avoid_congestion(self, share: float) -> None:
        """Change the window after `share` of a round without loss, above `ssthresh`."""

    @abstractmethod
    def after_loss(self) -> float:
        """Return the window after a loss event, in segments."""

    def after_mark(self) -> float:
        """Return the window after a congestion mark: as after a loss (RFC 3168 section 6.1.2)."""
        return self.after_loss()

    def after_recovery(self) -> float:
        """Return the window at the end of a recovery, in segments: that which the loss left."""
        return self.cwnd

    def after_timeout(self) -> float:
        """Return the slow-start threshold after a timeout: half the window (RFC 5681 eq. 4)."""
        return self.cwnd / 2

    def slow_start(self, share: float) -> None:
        """Grow by one segment per acknowledged segment, doubling per round, up to `ssthresh`."""
        self.cwnd = min(self.cwnd * (1 + share), max(self.ssthresh, self.cwnd))

    def recovery_rounds(self, lost_packets: int) -> int:
        """Return the number of rounds that recovery takes: one with SACK."""
        del lost_packets
        return 1

    def recover(self, report: Report) -> None:
        """Process a report during recovery."""
        del report
        self._mode, self._reason = "recovery", "recovering"

    def time_out(self) -> None:
        """Restart with one segment; `ssthresh` is kept if the timer expires again (RFC 5681 section 3.1)."""
        if self._mode != "timeout":
            self.ssthresh = max(self.after_timeout(), MIN_WINDOW)
        self._mode, self._reason = "timeout", "timeout"
        self.cwnd = 1.0
        self._recovery_rounds = 0.0

    def measure(self, report: Report) -> None:
        """Take what a report measured; the window does not change."""
        if report.rtt_s is not None:
            self.sample_rtt(report.rtt_s)

    def sample_rtt(self, rtt_s: float) -> None:
        """Process a round-trip time."""
        self.rtt_s = rtt_s
        self.base_rtt_s = min(self.base_rtt_s, rtt_s)
        self._timer.sample(rtt_s)

    def before_loss(self, rtt_s: float) -> None:  # noqa: B027  most go by rounds
        """Take the last round-trip time before a loss."""

    @property
    def queued(self) -> float:
        """N: queued segments of this flow, cwnd (R - R_min) / R (Fu and Liew, JSAC 2003)."""
        if self.rtt_s is None or self.rtt_s <= self.base_rtt_s:
            return 0.0
        return self.cwnd * (self.rtt_s - self.base_rtt_s) / self.rtt_s

    def on_feedback(self, report: Report) -> Allowed:
        """Process the report of a round; return the new decision.

        What a recovery or a mark cut is not cut again by what was sent before (RFC 6582 section 3.2, RFC 3168
        section 6.1.2).
        """
        self.measure(report)
        if self._recovery_rounds > 0:
            self._repair(report)
        elif report.loss_events:
            self._lose(report.lost_packets)
        elif report.marked:
            self._mark()
        else:
            self._grow(self._acked_share(report))
        return self._allowed(report.time_s)

    def _repair(self, report: Report) -> None:
        """Advance recovery by the part of a round that a report is of."""
        share = 1.0 if self.rtt_s is None else min(1.0, report.interval_s / self.rtt_s)
        self._recovery_rounds = max(self._recovery_rounds - share, 0.0)
        self.recover(report)
        if self._recovery_rounds <= 0:
            self.cwnd = self.after_recovery()

    def _acked_share(self, report: Report) -> float:
        """Return the share of a window that was acknowledged, all of it where the report does not tell."""
        if report.acked_bytes is None:
            return 1.0
        return min(1.0, report.acked_bytes / (self.cwnd * self.segment_bytes))

    def on_nofeedback(self, time_s: float, *, is_idle: bool) -> Allowed:
        """Process the expiry of the retransmission timer."""
        if not is_idle:
            self.time_out()
            self._timer.back_off()
        return self._allowed(time_s)

    def _grow(self, share: float) -> None:
        allowed = 0.0
        if self.cwnd < self.ssthresh:
            allowed = self._hystart.growth(self.rtt_s, self.base_rtt_s, self.cwnd)
        if allowed:
            self._mode, self._reason = "slow_start", "acknowledged"
            self.slow_start(allowed * share)
        else:
            self.ssthresh = min(self.ssthresh, self.cwnd)
            self._mode, self._reason = "congestion_avoidance", "acknowledged"
            self.avoid_congestion(share)

    def _lose(self, lost_packets: int) -> None:
        self._mode, self._reason = "recovery", "loss_event"
        self.cwnd = self.ssthresh = max(self.after_loss(), MIN_WINDOW)
        self._recovery_rounds = float(self.recovery_rounds(max(lost_packets, 1)))

    def _mark(self) -> None:
        self._mode, self._reason = "recovery", "mark"
        self.cwnd = self.ssthresh = max(self.after_mark(), MIN_WINDOW)
        self._recovery_rounds = 1.0

    def _allowed(self, time_s: float) -> Allowed:
        window_bytes = self.cwnd * self.segment_bytes
        # as long as no round-trip time is known a window takes what the timer then waits
        round_s = INITIAL_RTO_S if self.rtt_s is None else self.rtt_s
        return Allowed(
            x=window_bytes / round_s,
            timer_s=time_s + self._timer.rto_s,
            mode=self._mode,
            reason=self._reason,
            r_s=self._timer.srtt_s,
            window_bytes=window_bytes,
        )


def at_least(name: str, value: float, least: float) -> float:
    """Return a parameter; raises `ValueError` if it is too small."""
    if not value >= least:
        raise ValueError(f"{name} is {value:g}, and at least {least:g}")
    return value


def share_kept(name: str, value: float) -> float:
    """Return the factor of a window after a loss; raises `ValueError` unless it is between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} is {value:g}, and between 0 and 1")
    return value


def in_ticks(time_s: float, tick_s: float) -> float:
    """Return a time in ticks of a clock, begun ones whole, as Linux counts it; 0 is a clock without."""
    ticks = time_s / tick_s if tick_s else math.inf
    return math.ceil(ticks) * tick_s if ticks < math.inf else time_s


def rfc3390_window(segment_bytes: float) -> float:
    """Return the initial window in segments: min(4, max(2, 4380 / MSS)) (RFC 3390 eq. 1)."""
    return min(4.0, max(2.0, _FULL_WINDOW_BYTES / segment_bytes))
