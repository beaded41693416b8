"""BIC (Xu, Harfoush and Rhee, INFOCOM 2004): a binary search for the window of the last loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import WindowControl, at_least, share_kept

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

_LOW_WINDOW: Final = 14.0
"""Segments up to which it is Reno."""

_DIVISOR: Final = 4.0
"""B of Linux: a round goes this part of the way to the window of the last loss."""

_SLOWEST: Final = 0.2
"""Segments per round near the window of the last loss."""

_SEARCH: Final = 0.05
"""Share of the window by which it grows at least before the first loss."""


class Bic(WindowControl):
    """Additive increase far from the window of the last loss, small steps near it, growing steps beyond."""

    def __init__(
        self,
        start: Start,
        *,
        s_max: float = 16,
        beta: float = 0.8,
        fast_convergence: float = 1,
        segments_per_ack: float = 1,
        **window: Unpack[WindowParameters],
    ) -> None:
        """Set the largest growth in segments per round (S_max), and the factor of the window after a loss.

        The paper has S_max = 32, Linux 16; both keep 0.8 (819/1024) after a loss. Linux multiplies the
        growth by the segments of an acknowledgement, as if it counted acknowledgements.
        """
        super().__init__(start, **window)
        if fast_convergence not in (0, 1):
            raise ValueError("fast_convergence is 0 or 1")
        self._s_max = at_least("s_max", s_max, 1.0)
        self._beta = share_kept("beta", beta)
        self._converges_fast = bool(fast_convergence)
        self._segments_per_ack = at_least("segments_per_ack", segments_per_ack, 1.0)
        self._last_max = 0.0

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        self.cwnd += self._increase() * share

    def _increase(self) -> float:
        """Return the growth in segments per round."""
        if self.cwnd <= _LOW_WINDOW:
            return 1.0
        below = self._last_max - self.cwnd
        if below > 0:
            step = below // _DIVISOR
            found = _SLOWEST if step <= 1 else min(step, self._s_max)
        elif -below < _DIVISOR:
            found = _SLOWEST
        else:
            found = min(-below / (_DIVISOR - 1), self._s_max)
        found = max(found, _SEARCH * self.cwnd) if self._last_max == 0 else found
        return found * self._segments_per_ack

    def after_loss(self) -> float:
        """Return beta times the window, half of a small one; lower the aim if it was not reached again."""
        falls = self._converges_fast and self.cwnd < self._last_max
        self._last_max = self.cwnd * (1 + self._beta) / 2 if falls else self.cwnd
        return self.cwnd * (0.5 if self.cwnd <= _LOW_WINDOW else self._beta)

    def after_timeout(self) -> float:
        """Return what a loss leaves."""
        return self.after_loss()
