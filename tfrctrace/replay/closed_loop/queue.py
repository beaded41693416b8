"""The queue of the bottleneck as a fluid: dq/dt = what comes - what goes, between empty and full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfrctrace.replay.closed_loop.path import Path


@dataclass(frozen=True, slots=True)
class Overflow:
    """What did not fit in a span of time: a share of what the senders sent from `begins_s` to its end."""

    begins_s: float
    """When the queue was full."""
    share: float
    """Lost bytes for each that they sent from then on."""


@dataclass(slots=True)
class Queue:
    """What waits at `time_s`."""

    path: Path
    time_s: float = 0.0
    queued_bytes: float = 0.0

    @property
    def rtt_s(self) -> float:
        """The round-trip time of what arrives now, in seconds."""
        return self.path.rtt_s(self.queued_bytes)

    def lose_all(self, until_s: float, sent: float) -> Overflow | None:
        """Let time pass to `until_s` while nothing that is sent gets through and what waited leaves."""
        begins_s, self.time_s = self.time_s, until_s
        self.queued_bytes = max(self.queued_bytes - self.path.capacity * (until_s - begins_s), 0.0)
        return Overflow(begins_s, 1.0) if sent else None

    def advance(self, until_s: float, sent: float, background: float = 0.0) -> Overflow | None:
        """Let time pass to `until_s` while senders and others send so many bytes/s; return what overflowed.

        The background is what got through in the trace, so that the senders alone lose.
        """
        surplus = sent + background - self.path.capacity
        begins_s, self.time_s = self.time_s, until_s
        level = self.queued_bytes + surplus * (until_s - begins_s)
        room = self.path.buffer_bytes - self.queued_bytes
        self.queued_bytes = min(max(level, 0.0), self.path.buffer_bytes)
        if surplus <= 0 or level <= self.path.buffer_bytes or not sent:
            return None
        return Overflow(begins_s + room / surplus, min(1.0, surplus / sent))
