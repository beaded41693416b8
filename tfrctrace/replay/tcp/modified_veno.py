"""The Veno that Lillis et al. propose for wireless ISPs, which they describe in words alone.

Read here as: slow start ends when a segment waits in the queue; the window grows by 1 / cwnd at every fourth
acknowledgement; a loss without a queue leaves 4/5 of it, one with a queue 3/4, and 3/4 again if a round
later the queue is still there. Taken literally, "expand every four acknowledged packets" would be a segment
for each four acknowledgements, which is faster than Reno where the paper wants it to be much slower; `growth`
can say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.replay.tcp.veno import AFTER_RANDOM_LOSS, Veno

if TYPE_CHECKING:
    from tfrctrace.replay.controller import Report, Start

Growth = Literal["per_window", "literal"]

_STRIDE: Final = 4
"""Acknowledgements for each step of growth."""

_AFTER_CONGESTION: Final = 3 / 4


class ModifiedVeno(Veno):
    """Veno with an early end of slow start, slow growth, and two smaller cuts in place of one half."""

    def __init__(self, start: Start, *, leave_queued: float = 1, growth: Growth = "per_window") -> None:
        """Take the segments in the queue that end slow start, and how growth is to be read."""
        super().__init__(start)
        self._leave_queued = leave_queued
        self._growth = growth
        self._may_cut_again = False

    def slow_start(self, share: float) -> None:
        """Double until data waits: until the actual rate is below the expected one by a segment."""
        if self.queued > self._leave_queued:
            self.ssthresh = self.cwnd
            self._reason = "queue"
        else:
            super().slow_start(share)

    def avoid_congestion(self, share: float) -> None:
        """Grow by a segment in four rounds; taken literally, by a quarter of the window in each."""
        self.cwnd += share / _STRIDE if self._growth == "per_window" else share * self.cwnd / _STRIDE

    def after_loss(self) -> float:  # noqa: D102
        self._may_cut_again = self.is_congested
        return self.cwnd * (_AFTER_CONGESTION if self.is_congested else AFTER_RANDOM_LOSS)

    def recover(self, report: Report, share: float) -> None:
        """Cut once more if the round after a cut still finds a queue, or another loss."""
        super().recover(report, share)
        if self._may_cut_again and (self.is_congested or report.loss_events):
            self.cwnd = self.ssthresh = self.cwnd * _AFTER_CONGESTION
            self._reason = "queue"
        self._may_cut_again = False
