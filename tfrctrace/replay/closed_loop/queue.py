"""The queue of the bottleneck as a fluid: dq/dt = what comes - what goes, between empty and full."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfrctrace.replay.closed_loop.disciplines import DISCIPLINES

if TYPE_CHECKING:
    from tfrctrace.replay.closed_loop.disciplines import Discipline
    from tfrctrace.replay.closed_loop.path import Path


@dataclass(frozen=True, slots=True)
class Dropped:
    """What the queue dropped or marked in a span: a share of what was sent from `begins_s` to its end."""

    begins_s: float
    share: float
    """Bytes for each that the senders sent from then on."""
    rtt_s: float
    """The round-trip time of what passed beside them."""
    are_marks: bool = False
    """Whether they passed, with a congestion mark."""


@dataclass(slots=True)
class Queue:
    """What waits at `time_s`."""

    path: Path
    time_s: float = 0.0
    queued_bytes: float = 0.0
    _discipline: Discipline = field(init=False)

    def __post_init__(self) -> None:
        self._discipline = DISCIPLINES[self.path.discipline](self.path)

    @property
    def next_s(self) -> float:
        """When the discipline decides anew, in seconds."""
        return self.time_s + self._discipline.step_s

    def lose_all(self, until_s: float, sent: float) -> list[Dropped]:
        """Let time pass to `until_s` while nothing that is sent gets through and what waited leaves."""
        begins_s, self.time_s = self.time_s, until_s
        self.queued_bytes = max(self.queued_bytes - self.path.capacity * (until_s - begins_s), 0.0)
        return [Dropped(begins_s, 1.0, self.path.full_rtt_s)] if sent else []

    def advance(
        self, until_s: float, sent: float, background: float = 0.0, *, segment_bytes: float = 1.0
    ) -> list[Dropped]:
        """Let time pass to `until_s` while senders and others send so many bytes/s; return what was dropped.

        The background is what got through in the trace, so that the senders alone lose.
        """
        begins_s, self.time_s = self.time_s, until_s
        duration_s = until_s - begins_s
        arriving_pps = (sent + background) / segment_bytes
        early = self._discipline.share(duration_s, self.queued_bytes, arriving_pps)
        dropped = []
        if early and sent:
            rtt_s = self.path.rtt_s(self.queued_bytes)
            dropped.append(Dropped(begins_s, early, rtt_s, self.path.has_ecn))
        admitted = sent if self.path.has_ecn else sent * (1 - early)
        surplus = admitted + background - self.path.capacity
        level = self.queued_bytes + surplus * duration_s
        room = self.path.buffer_bytes - self.queued_bytes
        self.queued_bytes = min(max(level, 0.0), self.path.buffer_bytes)
        if surplus > 0 and level > self.path.buffer_bytes and admitted:
            overflow = Dropped(begins_s + room / surplus, min(1.0, surplus / sent), self.path.full_rtt_s)
            dropped.append(overflow)
        return dropped
