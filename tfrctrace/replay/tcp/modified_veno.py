"""The Veno that Lillis et al. propose for wireless ISPs, which they describe in words alone.

Read here as: slow start ends when a segment waits in the queue; the window grows by 1 / cwnd at every fourth
acknowledgement; a loss without a queue leaves 4/5 of it, one with a queue 3/4, and 3/4 again if a round
later the queue is still there. Taken literally, "expand every four acknowledged packets" would be a segment
for each four acknowledgements, which is faster than Reno where the paper wants it to be much slower; `growth`
can say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from tfrctrace.replay.tcp.veno import AFTER_RANDOM_LOSS, QUEUED_IF_CONGESTED, Veno
from tfrctrace.replay.tcp.window import MIN_WINDOW, at_least

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Report, Start
    from tfrctrace.replay.tcp.window import WindowParameters

Growth = Literal["per_window", "literal"]
SecondCut = Literal["of_current", "of_original"]

_AFTER_CONGESTION: Final = 3 / 4


class ModifiedVeno(Veno):
    """Veno with an early end of slow start, slow growth, and two smaller cuts in place of one half."""

    def __init__(
        self,
        start: Start,
        *,
        leave_queued: float = 1,
        stride: float = 4,
        growth: Growth = "per_window",
        second_cut: SecondCut = "of_current",
        beta: float = QUEUED_IF_CONGESTED,
        **window: Unpack[WindowParameters],
    ) -> None:
        """Take the segments in the queue that end slow start, and how the paper's words are to be read.

        `stride` are the acknowledgements of a step of growth. The second cut is a quarter of the window as
        it is then, or of that before the first one, so that 9/16 or a half are left.
        """
        super().__init__(start, beta=beta, **window)
        if growth not in get_args(Growth) or second_cut not in get_args(SecondCut):
            raise ValueError("growth is per_window or literal, second_cut of_current or of_original")
        self._leave_queued = leave_queued
        self._stride = at_least("stride", stride, 1.0)
        self._growth = growth
        self._second_cut = second_cut
        self._before_cut: float | None = None

    def slow_start(self, share: float) -> None:
        """Double until data waits: until the actual rate is below the expected one by a segment."""
        if self.queued > self._leave_queued:
            self.ssthresh = self.cwnd
            self._reason = "queue"
        else:
            super().slow_start(share)

    def avoid_congestion(self, share: float) -> None:
        """Grow by a segment in four rounds; taken literally, by a quarter of the window in each."""
        self.cwnd += share / self._stride * (1.0 if self._growth == "per_window" else self.cwnd)

    def after_loss(self) -> float:  # noqa: D102
        self._before_cut = self.cwnd if self.is_congested else None
        return self.cwnd * (_AFTER_CONGESTION if self.is_congested else AFTER_RANDOM_LOSS)

    def recover(self, report: Report) -> None:
        """Cut once more if the round after a cut still finds a queue, or another loss."""
        super().recover(report)
        if self._before_cut is not None and (self.is_congested or report.loss_events):
            cut_of = self.cwnd if self._second_cut == "of_current" else self._before_cut
            # RFC 5681 eq. 4: no cut leaves less than two segments
            self.cwnd = self.ssthresh = max(self.cwnd - (1 - _AFTER_CONGESTION) * cut_of, MIN_WINDOW)
            self._reason = "queue"
        self._before_cut = None
