"""NewReno (RFC 6582): one segment more per round, half the window after a loss, one repair per round."""

from __future__ import annotations

from tfrctrace.replay.tcp.window import WindowControl


class NewReno(WindowControl):
    """Additive increase by one segment, multiplicative decrease to one half."""

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        self.cwnd += share

    def after_loss(self) -> float:  # noqa: D102
        return self.cwnd / 2

    def recovery_rounds(self, lost_packets: int) -> int:
        """Return a round for each lost segment: each partial acknowledgement repairs one (section 3.2)."""
        return lost_packets
