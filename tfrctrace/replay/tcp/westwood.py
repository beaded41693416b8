"""Westwood+ (Grieco and Mascolo, CCR 2004): after a loss, set the window from the measured bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import MIN_WINDOW, WindowControl, at_least, in_ticks

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Report, Start
    from tfrctrace.replay.tcp.window import WindowParameters

_LEAST_WINDOW_S: Final = 0.05
"""Minimum duration of a bandwidth sample, which otherwise takes a round-trip time."""

_KEPT: Final = 7 / 8
"""Weight of the previous value in both filters."""


class Westwood(WindowControl):
    """Reno's growth; after a loss bandwidth times R_min. In open loop both are the recorded flow's."""

    def __init__(
        self, start: Start, *, late: float = 0, tick: float = 0, **window: Unpack[WindowParameters]
    ) -> None:
        """Set whether a recovery halves the window, and its end sets it by the bandwidth, as in Linux.

        `tick` is that of the clock in seconds by which R_min is measured (Linux: 1 / HZ).
        """
        super().__init__(start, **window)
        if late not in (0, 1):
            raise ValueError("late is 0 or 1")
        self._is_late = bool(late)
        self._tick_s = at_least("tick", tick, 0.0)
        self._first_filter: float | None = None
        self._bandwidth = 0.0
        self._sampled_bytes = 0.0
        self._sampled_s = 0.0

    def measure(self, report: Report) -> None:
        """Add received data to the sample, and pass a complete sample through two filters in a row."""
        super().measure(report)
        self._sampled_bytes += report.x_recv * report.interval_s
        self._sampled_s += report.interval_s
        if self._sampled_s < max(_LEAST_WINDOW_S, self.rtt_s or 0.0):
            return
        sample = self._sampled_bytes / self._sampled_s
        if self._first_filter is None:
            self._first_filter = self._bandwidth = sample
        else:
            self._first_filter = _KEPT * self._first_filter + (1 - _KEPT) * sample
            self._bandwidth = _KEPT * self._bandwidth + (1 - _KEPT) * self._first_filter
        self._sampled_bytes = self._sampled_s = 0.0

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        self.cwnd += share

    def after_loss(self) -> float:  # noqa: D102
        return self.cwnd / 2 if self._is_late else self._of_bandwidth()

    def after_mark(self) -> float:
        """Return what a loss and the end of its recovery leave: a mark has no recovery to be seen."""
        self.cwnd = self.after_loss()
        return self.after_recovery()

    def after_recovery(self) -> float:  # noqa: D102
        return max(self._of_bandwidth(), MIN_WINDOW) if self._is_late else self.cwnd

    def _of_bandwidth(self) -> float:
        """Return bandwidth times R_min; without samples of both, half the window as Reno does."""
        if self._first_filter is None or self.rtt_s is None:
            return self.cwnd / 2
        return self._bandwidth * in_ticks(self.base_rtt_s, self._tick_s) / self.segment_bytes
