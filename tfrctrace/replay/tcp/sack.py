"""Reno with SACK (RFC 6675): as NewReno, but all losses of a window repaired in one round."""

from __future__ import annotations

from tfrctrace.replay.tcp.window import WindowControl


class Sack(WindowControl):
    """Additive increase by one segment, multiplicative decrease to one half."""

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        self.cwnd += share

    def after_loss(self) -> float:  # noqa: D102
        return self.cwnd / 2
