"""The bottleneck of the model, and what others send through it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal

DisciplineName = Literal["tail_drop", "red", "codel", "pie"]


@dataclass(frozen=True, slots=True)
class Background:
    """What others send: a rate that holds from each of `times_s` on, and none before. It does not react."""

    times_s: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    """Bytes/s, as many as there are times."""

    def at(self, time_s: float) -> float:
        """Return the rate at a time, in bytes/s."""
        place = bisect_right(self.times_s, time_s)
        return self.rates[place - 1] if place else 0.0

    def changes_after(self, time_s: float) -> float:
        """Return when the rate changes next, in seconds; infinite if it never does."""
        place = bisect_right(self.times_s, time_s)
        return self.times_s[place] if place < len(self.times_s) else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One bottleneck with a queue, and a path without loss but by chance."""

    capacity: float
    """Bytes/s of payload."""
    base_rtt_s: float
    """R_min: round-trip time without a queue, the flow's own packet included."""
    buffer_bytes: float
    """What may wait, in bytes of payload."""
    random_loss: float = 0.0
    """Share of packets that are lost whatever waits."""
    background: Background = field(default_factory=Background)
    outages_s: tuple[tuple[float, float], ...] = ()
    """When nothing gets through, in order of time."""
    window_bytes: float | None = None
    """What the receiver takes without acknowledgement; None is no limit."""
    discipline: DisciplineName = "tail_drop"
    """How its queue drops."""
    has_ecn: bool = False
    """Whether the discipline marks what it would drop before the queue is full."""

    def is_down(self, time_s: float) -> bool:
        """Return whether what is sent at a time gets lost, all of it."""
        return self._edges_until(time_s) % 2 == 1

    def up_after(self, time_s: float) -> float:
        """Return when the outage ends that lasts at a time, in seconds; the time itself without one."""
        return self.outages_s[self._edges_until(time_s) // 2][1] if self.is_down(time_s) else time_s

    def changes_after(self, time_s: float) -> float:
        """Return when the background or the path changes next, in seconds; infinite if neither does."""
        outage, is_end = divmod(self._edges_until(time_s), 2)
        edge_s = self.outages_s[outage][is_end] if outage < len(self.outages_s) else float("inf")
        return min(self.background.changes_after(time_s), edge_s)

    def _edges_until(self, time_s: float) -> int:
        """Return how many beginnings and ends of outages lie at a time or before it."""
        begun = bisect_right(self.outages_s, (time_s, float("inf")))
        is_over = begun > 0 and self.outages_s[begun - 1][1] <= time_s
        return 2 * begun - (0 if is_over or not begun else 1)

    def rtt_s(self, queued_bytes: float) -> float:
        """Return the round-trip time of what arrives while so much waits, in seconds."""
        return self.base_rtt_s + queued_bytes / self.capacity

    @property
    def full_rtt_s(self) -> float:
        """The round-trip time of what just fits into the queue, in seconds."""
        return self.rtt_s(self.buffer_bytes)
