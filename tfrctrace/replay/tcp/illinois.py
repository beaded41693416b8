"""Illinois (Liu, Basar and Srikant, Performance Evaluation 2008): AIMD by the queueing delay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import WindowControl

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

_ALPHA: Final = (0.3, 10.0)
"""Growth in segments per round with a full and with an empty queue."""

_BETA: Final = (1 / 8, 1 / 2)
"""Part of the window that a loss takes with an empty and with a full queue."""

_EMPTY: Final = 0.01
"""Share of the largest queueing delay up to which the queue is empty for the growth."""

_FLAT: Final = (0.1, 0.8)
"""Shares of it below and above which a loss takes the least and the most."""

_LEAST_WINDOW: Final = 15.0
"""Segments below which it is Reno."""

_ROUNDS_TO_TRUST: Final = 5.0
"""theta: rounds without a queue until the growth is the largest again."""


class Illinois(WindowControl):
    """Grow by 10 segments per round while there is no queue, by 0.3 as it fills; cut by 1/8 to 1/2."""

    def __init__(self, start: Start, **window: Unpack[WindowParameters]) -> None:
        super().__init__(start, **window)
        self._longest_s = 0.0
        self._alpha = 1.0
        self._was_queued = False
        self._empty_rounds = 0.0

    def sample_rtt(self, rtt_s: float) -> None:
        """Keep the largest round-trip time, too."""
        super().sample_rtt(rtt_s)
        self._longest_s = max(self._longest_s, rtt_s)

    @property
    def _delay(self) -> float:
        """d_a: the queueing delay as a share of d_m, the largest one."""
        largest_s = self._longest_s - self.base_rtt_s
        return (self.rtt_s - self.base_rtt_s) / largest_s if self.rtt_s and largest_s > 0 else 0.0

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        self._choose_alpha(share)
        self.cwnd += (self._alpha if self.cwnd >= _LEAST_WINDOW else 1.0) * share

    def _choose_alpha(self, share: float) -> None:
        """Set alpha = k1 / (k2 + d_a), which joins both ends (eq. 6)."""
        least, most = _ALPHA
        if self._delay > _EMPTY:
            self._was_queued, self._empty_rounds = True, 0.0
            queued = (self._delay - _EMPTY) / (1 - _EMPTY)
            self._alpha = max(most / (1 + queued * (most - least) / least), least)
            return
        self._empty_rounds += share
        if not self._was_queued or self._empty_rounds >= _ROUNDS_TO_TRUST:
            self._was_queued, self._alpha = False, most

    def after_loss(self) -> float:
        """Return the window less beta of it, which rises with the queueing delay (eq. 7)."""
        (least, most), (low, high) = _BETA, _FLAT
        position = min(max((self._delay - low) / (high - low), 0.0), 1.0)
        part = least + (most - least) * position if self.cwnd >= _LEAST_WINDOW else most
        return self.cwnd * (1 - part)

    def time_out(self) -> None:
        """Start as Reno again."""
        super().time_out()
        self._alpha, self._was_queued, self._empty_rounds = 1.0, False, 0.0
