"""The bottleneck of the model, and what others send through it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field


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
    """One bottleneck with a queue that drops what does not fit, and a path without loss but by chance."""

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

    def is_down(self, time_s: float) -> bool:
        """Return whether what is sent at a time gets lost, all of it."""
        return any(from_s <= time_s < until_s for from_s, until_s in self.outages_s)

    def changes_after(self, time_s: float) -> float:
        """Return when the background or the path changes next, in seconds; infinite if neither does."""
        edges = (edge_s for outage in self.outages_s for edge_s in outage if edge_s > time_s)
        return min(self.background.changes_after(time_s), *edges, float("inf"))

    def rtt_s(self, queued_bytes: float) -> float:
        """Return the round-trip time of what arrives while so much waits, in seconds."""
        return self.base_rtt_s + queued_bytes / self.capacity

    @property
    def full_rtt_s(self) -> float:
        """The round-trip time of what just fits into the queue, in seconds."""
        return self.rtt_s(self.buffer_bytes)
