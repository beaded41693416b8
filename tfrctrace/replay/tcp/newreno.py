"""NewReno (RFC 6582): one segment more per round, half the window after a loss, one repair per round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.replay.tcp.sack import Sack
from tfrctrace.replay.tcp.window import MIN_WINDOW

if TYPE_CHECKING:
    from tfrctrace.replay.controller import Report


class NewReno(Sack):
    """The same window, but without SACK a round for each repair."""

    def recovery_rounds(self, lost_packets: int) -> int:
        """Return a round for each lost segment: each partial acknowledgement repairs one (section 3.2)."""
        return lost_packets

    def recover(self, report: Report) -> None:
        """Send a segment for each that arrives (section 3.2 step 3), and so go on (step 5 option 1)."""
        super().recover(report)
        if report.acked_bytes is not None and self.rtt_s and report.interval_s > 0:
            arriving = report.acked_bytes / report.interval_s * self.rtt_s / self.segment_bytes
            self.cwnd = max(min(self.cwnd, arriving), MIN_WINDOW)
