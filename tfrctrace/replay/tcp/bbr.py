"""BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): send at the rate of the bottleneck."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.controller import Allowed
from tfrctrace.replay.tcp.timer import INITIAL_RTO_S
from tfrctrace.replay.tcp.window import at_least, rfc3390_window

if TYPE_CHECKING:
    from tfrctrace.replay.controller import Report, Start

_HIGH_GAIN: Final = 2 / math.log(2)
"""Doubles the rate in each round (section 4.3.2.1)."""

_CYCLE: Final = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""Pacing gains, each for a base round-trip time (section 4.3.4.2)."""

_WINDOW_GAIN: Final = 2.0
"""Base paths in flight at most (section 4.2.3.1)."""

_FULL_GROWTH: Final = 1.25
_FULL_ROUNDS: Final = 3
"""The pipe is full after so many rounds in which the bandwidth grew by less (section 4.3.2.2)."""

_BANDWIDTH_ROUNDS: Final = 10
"""Rounds of which the highest bandwidth counts (section 4.1.1.4)."""

BASE_RTT_S: Final = 10.0
"""After so long without a shorter round-trip time it is measured anew (section 4.1.2.1)."""

PROBE_SEGMENTS: Final = 4.0
"""Segments in flight while the base round-trip time is measured."""

PROBE_S: Final = 0.2
"""For so long, and a round at least (section 4.3.5)."""


class Bbr:
    """Highest bandwidth times a gain that probes for more; four segments for 200 ms in every 10 s.

    Losses change nothing.
    """

    def __init__(self, start: Start, *, initial_window: float | None = None) -> None:
        """Set the segments of the first window (default: RFC 3390's)."""
        self._segment_bytes = start.segment_bytes
        first = rfc3390_window(start.segment_bytes) if initial_window is None else initial_window
        self._first_bytes = at_least("initial_window", first, 1.0) * start.segment_bytes
        self._bandwidths: deque[float] = deque(maxlen=_BANDWIDTH_ROUNDS)
        self._base_rtt_s = start.handshake_rtt_s or math.inf
        self._base_since_s = start.time_s
        self._round_s = self._round_bytes = 0.0
        """Time since the round began, and what was delivered since."""
        self._full_bandwidth = 0.0
        self._slow_rounds = 0
        self._mode = "startup"
        self._phase = 0
        self._phase_since_s = start.time_s

    def on_feedback(self, report: Report) -> Allowed:
        """Take bandwidth and round-trip time of a report; return the rate of the state it leads to."""
        self._measure(report)
        # to the nearest report
        lasted_s = report.time_s - self._phase_since_s + report.interval_s / 2
        match self._mode:
            case "startup" if self._slow_rounds >= _FULL_ROUNDS:
                self._begin("drain", report.time_s)
            case "drain":
                self._begin("probe_bandwidth", report.time_s)
            case "probe_bandwidth" if lasted_s >= self._base_rtt_s:
                self._phase = (self._phase + 1) % len(_CYCLE)
                self._phase_since_s = report.time_s
            case "probe_rtt" if lasted_s >= max(PROBE_S, self._base_rtt_s):
                self._base_since_s = report.time_s
                is_full = self._slow_rounds >= _FULL_ROUNDS
                self._begin("probe_bandwidth" if is_full else "startup", report.time_s)
        if self._mode != "probe_rtt" and report.time_s - self._base_since_s > BASE_RTT_S:
            self._begin("probe_rtt", report.time_s)
            self._base_rtt_s = report.rtt_s or self._base_rtt_s
        return self._allowed(report.time_s)

    def on_nofeedback(self, time_s: float, *, is_idle: bool) -> Allowed:
        """Go on: the bandwidth that was measured holds."""
        del is_idle
        return self._allowed(time_s)

    def _begin(self, mode: str, time_s: float) -> None:
        self._mode, self._phase, self._phase_since_s = mode, 0, time_s

    def _measure(self, report: Report) -> None:
        if report.rtt_s is not None and report.rtt_s < self._base_rtt_s:
            self._base_rtt_s, self._base_since_s = report.rtt_s, report.time_s
        self._round_s += report.interval_s
        self._round_bytes += report.x_recv * report.interval_s
        if self._bandwidths and self._round_s < (report.rtt_s or self._base_rtt_s):
            return
        # a part of a round delivers bursts (section 4.1.1.2: over the flight of a packet)
        self._bandwidths.append(self._round_bytes / self._round_s if self._round_s > 0 else report.x_recv)
        self._round_s = self._round_bytes = 0.0
        if self._mode != "startup" or report.is_data_limited:
            return
        bandwidth = max(self._bandwidths)
        if bandwidth >= _FULL_GROWTH * self._full_bandwidth:
            self._full_bandwidth, self._slow_rounds = bandwidth, 0
        else:
            self._slow_rounds += 1

    def _allowed(self, time_s: float) -> Allowed:
        """Return the paced rate, at most a window in each base round-trip time."""
        round_s = self._base_rtt_s if self._base_rtt_s < math.inf else INITIAL_RTO_S
        bandwidth = max(max(self._bandwidths, default=0.0), self._first_bytes / round_s)
        gain = {"startup": _HIGH_GAIN, "drain": 1 / _HIGH_GAIN, "probe_bandwidth": _CYCLE[self._phase]}
        rate = bandwidth * min(gain.get(self._mode, 1.0), _HIGH_GAIN)
        most = PROBE_SEGMENTS * self._segment_bytes / round_s
        if self._mode != "probe_rtt":
            most = max(most, bandwidth * (_HIGH_GAIN if self._mode == "startup" else _WINDOW_GAIN))
        return Allowed(
            x=min(rate, most),
            timer_s=time_s + max(INITIAL_RTO_S, 2 * round_s),
            mode=self._mode,
            reason="gain",
            r_s=None if self._base_rtt_s == math.inf else self._base_rtt_s,
            flight_bytes=most * round_s,
        )
