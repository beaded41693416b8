"""The receiver of the model: which losses are loss events, for losses counted and not seen one by one.

Loss intervals and p are those of the core (RFC 5348 sections 5.3 to 5.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfrctrace.parsers._native import ChosenSender


MOST_INTERVALS: Final = 64
"""Loss intervals that a receiver keeps at most (`n`)."""


class LossHistory:
    """Packets since the last loss event began, and the loss intervals before that."""

    def __init__(self, chosen: ChosenSender) -> None:
        """Begin without losses, as the receiver of such a sender."""
        from tfrctrace.parsers._native import LossIntervals

        self._intervals = LossIntervals(chosen)
        self._segment_bytes = chosen["segment_bytes"]
        # ns-2's sink begins no second event in one run of losses
        self._is_run_one_event = chosen["profile"] == "ns2"
        self._open_packets = 0.0
        self._event_s: float | None = None

    def sent(self, packets: float) -> None:
        """Count packets, lost ones too: a loss interval counts sequence numbers."""
        self._open_packets += packets

    def lost(self, time_s: float, rtt_s: float, arriving_pps: float) -> bool:
        """Take in a loss; return whether it begins a loss event: more than R after the last one began.

        `arriving_pps` is what arrived in packets/s, of which the interval before the first event is made.
        """
        if self._event_s is not None and time_s - self._event_s <= rtt_s:
            return False
        if self._event_s is None:
            self._intervals.begin(arriving_pps * self._segment_bytes, rtt_s)
        else:
            self._intervals.close(max(self._open_packets, 1.0))
        self._open_packets = 0.0
        self._event_s = time_s
        return True

    def lost_run(self, packets: int, span_s: tuple[float, float], rtt_s: float, arriving_pps: float) -> int:
        """Take in packets lost between two that arrived; return how many loss events begin.

        Their times are interpolated (RFC 5348 section 5.2).
        """
        from_s, until_s = span_s
        spacing_s = (until_s - from_s) / (packets + 1)
        in_event = packets if self._is_run_one_event else min(packets, int(rtt_s / spacing_s) + 1)
        events = 0
        for before in range(0, packets, in_event)[-MOST_INTERVALS:]:
            events += self.lost(from_s + (before + 1) * spacing_s, rtt_s, arriving_pps)
            self.sent(min(in_event, packets - before))
        return events

    @property
    def p(self) -> float:
        """Loss event rate: one over the mean interval, with the open one where that makes it longer."""
        return self._intervals.p(self._open_packets)
