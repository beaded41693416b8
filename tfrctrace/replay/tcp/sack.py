"""Reno with SACK (RFC 6675): one segment more per round, half the window after a loss, one-round recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.replay.tcp.window import WindowControl, at_least, share_kept

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters


class Sack(WindowControl):
    """Additive increase by one segment, multiplicative decrease to one half (RFC 5681 section 3)."""

    def __init__(
        self,
        start: Start,
        *,
        increase: float = 1,
        gamma: float = 0.5,
        segments_per_ack: float = 1,
        **window: Unpack[WindowParameters],
    ) -> None:
        """Set the growth in segments per round, and the factor of the window after a loss.

        A sender may count acknowledgements (eq. 3): where each is for two segments, it grows half as fast.
        """
        super().__init__(start, **window)
        self._increase = at_least("increase", increase, 0.0) / at_least(
            "segments_per_ack", segments_per_ack, 1.0
        )
        self._gamma = share_kept("gamma", gamma)

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        self.cwnd += self._increase * share

    def after_loss(self) -> float:  # noqa: D102
        return self._gamma * self.cwnd
