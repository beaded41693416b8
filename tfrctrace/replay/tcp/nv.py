"""NV, "New Vegas" (Brakmo, Linux 4.8): no more than ten segments above what the path holds at its rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import MIN_WINDOW, WindowControl, at_least

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Report, Start
    from tfrctrace.replay.tcp.window import WindowParameters

_PAD_BUFFER: Final = 2.0
"""Segments below the most that it wants from which on it grows (`nv_pad_buffer`)."""

_DECREASE: Final = 38 / 128
"""Share of the surplus that a decision takes (`nv_cong_dec_mult`), two segments at least."""

_LEFT: Final = 819 / 1024
"""Share of the window that a loss leaves (`nv_loss_dec_factor`)."""

_FIRST_PERIOD_S: Final = 2.0
_PERIOD_S: Final = 5.0
"""So long the shortest round-trip time counts (`nv_reset_period`, from which Linux draws by a quarter)."""

_ACKS_TO_SHRINK: Final = 60.0
_ACKS_TO_END_START: Final = 30.0
_ACKS_TO_GROW: Final = 20.0
"""Acknowledgements since the last decision that one needs (`nv_dec_eval_min_calls` and others)."""

_ROUNDS_TO_SHRINK: Final = 2.0
"""Rounds likewise (`nv_rtt_min_cnt`)."""

_ROUNDS_TO_STOP: Final = 10.0
"""Rounds with a surplus, but too few acknowledgements, after which it grows no more (`nv_stop_rtt_cnt`)."""

_DECISIONS_TO_RECOVER: Final = 8
"""Decisions without a surplus after which it doubles a growth that timeouts halved."""

_MOST_HALVINGS: Final = 8


class Nv(WindowControl):
    """Once per round the window is compared with rate times shortest round-trip time, plus a pad.

    Above, it shrinks; below, it may grow as Reno. After a loss it measures the round-trip time anew, and
    does not grow until a round is below.
    """

    def __init__(
        self,
        start: Start,
        *,
        pad: float = 10,
        segments_per_ack: float = 1,
        **window: Unpack[WindowParameters],
    ) -> None:
        """Set the segments that it lets wait (`nv_pad`), and those that an acknowledgement is for."""
        super().__init__(start, **window)
        self._pad = at_least("pad", pad, _PAD_BUFFER)
        self._segments_per_ack = at_least("segments_per_ack", segments_per_ack, 1.0)
        self._shortest_s = math.inf
        self._next_shortest_s = math.inf
        """Of the time since the last period ended."""
        self._period_ends_s = start.time_s + _FIRST_PERIOD_S
        self._may_grow = True
        self._halvings = 0
        self._decisions_below = 0
        self._begin_decision()

    def _begin_decision(self) -> None:
        self._rate = self._acks = self._rounds = 0.0

    def measure(self, report: Report) -> None:
        """Take the shortest round-trip time of a period, and the highest rate since the last decision."""
        super().measure(report)
        if not report.rtt_s:
            return
        self._shortest_s = min(self._shortest_s, report.rtt_s)
        self._next_shortest_s = min(self._next_shortest_s, report.rtt_s)
        self._rate = max(self._rate, self.cwnd / report.rtt_s)
        if report.time_s >= self._period_ends_s:
            self._shortest_s, self._next_shortest_s = self._next_shortest_s, math.inf
            self._period_ends_s = report.time_s + _PERIOD_S

    def slow_start(self, share: float) -> None:  # noqa: D102
        if self._may_grow:
            super().slow_start(share)
        self._decide(share)

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        if self._may_grow:
            self.cwnd += share / 2**self._halvings
        self._decide(share)

    def _decide(self, share: float) -> None:
        """Compare the window with what the path holds, if enough was acknowledged since the last time."""
        self._acks += self.cwnd * share / self._segments_per_ack
        self._rounds += share
        if not 0 < self._rate * self._shortest_s < math.inf:
            return
        most = math.floor(self._rate * self._shortest_s) + self._pad
        if self.cwnd > most:
            needed = _ACKS_TO_SHRINK if self.ssthresh < math.inf else _ACKS_TO_END_START
            if self._acks < needed or self._rounds < _ROUNDS_TO_SHRINK:
                self._may_grow = self._may_grow and self._rounds <= _ROUNDS_TO_STOP
                return
            surplus = self.cwnd - most
            self._may_grow = False
            self.ssthresh = most
            self.cwnd -= max(2.0, math.floor(_DECREASE * surplus)) if surplus > _PAD_BUFFER else surplus
            self._reason = "queue"
            self._decisions_below = 0
        elif self.cwnd <= most - _PAD_BUFFER:
            if self._acks < _ACKS_TO_GROW:
                return
            self._may_grow = True
            self._decisions_below += 1
            if self._halvings and self._decisions_below > _DECISIONS_TO_RECOVER:
                self._halvings -= 1
                self._decisions_below = 0
        else:
            return
        self._begin_decision()

    def _measure_anew(self) -> None:
        self._shortest_s = math.inf
        self._may_grow = False
        self._begin_decision()

    def after_loss(self) -> float:  # noqa: D102
        self._measure_anew()
        return max(self.cwnd * _LEFT, MIN_WINDOW)

    def after_timeout(self) -> float:  # noqa: D102
        self._measure_anew()
        self._halvings = min(self._halvings + 1, _MOST_HALVINGS)
        return self.cwnd * _LEFT
