"""TCP-LP (Kuzmanovic and Knightly, INFOCOM 2003): Reno that yields as soon as a queue builds up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import WindowControl, share_kept

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

_KEPT: Final = 7 / 8
"""Weight of the past in the smoothed delay."""

_INFERENCE_ROUNDS: Final = 3.0
"""Rounds after an early congestion in which a second one leaves a window of one segment."""


class LowPriority(WindowControl):
    """Halve the window when the smoothed delay passes a threshold, and then wait; else as Reno.

    The round-trip time stands for the one-way delay of the paper.
    """

    def __init__(self, start: Start, *, delta: float = 0.15, **window: Unpack[WindowParameters]) -> None:
        """Set delta: the share of the range of delays above which there is early congestion (eq. 1)."""
        super().__init__(start, **window)
        self._delta = share_kept("delta", delta)
        self._longest_s = 0.0
        self._smoothed_s: float | None = None
        self._inference = 0.0
        """Rounds of the inference phase that are left."""

    def sample_rtt(self, rtt_s: float) -> None:
        """Smooth the delay, too."""
        super().sample_rtt(rtt_s)
        self._longest_s = max(self._longest_s, rtt_s)
        before_s = rtt_s if self._smoothed_s is None else self._smoothed_s
        self._smoothed_s = _KEPT * before_s + (1 - _KEPT) * rtt_s

    @property
    def _is_early(self) -> bool:
        range_s = self._longest_s - self.base_rtt_s
        return self._smoothed_s is not None and self._smoothed_s > self.base_rtt_s + self._delta * range_s

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        if self._is_early:
            self.cwnd = 1.0 if self._inference > 0 else max(self.cwnd / 2, 1.0)
            self._inference = _INFERENCE_ROUNDS
            self._reason = "queue"
        elif self._inference <= 0:
            self.cwnd += share
        self._inference -= share

    def after_loss(self) -> float:  # noqa: D102
        return self.cwnd / 2
