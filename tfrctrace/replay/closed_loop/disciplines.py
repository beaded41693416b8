"""Disciplines of a queue: the share of what arrives that each drops, or marks, before the queue is full."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfrctrace.replay.closed_loop.path import Path


class Discipline(Protocol):
    """What decides on packets, in steps of time."""

    step_s: float
    """Longest time for which a decision holds."""

    def share(self, duration_s: float, queued_bytes: float, packets_per_s: float) -> float:
        """Return the share to be dropped in a span that begins with so much in the queue."""
        ...


class TailDrop:
    """Drops what does not fit, and nothing before."""

    step_s: float = math.inf

    def __init__(self, path: Path) -> None:
        del path

    def share(self, duration_s: float, queued_bytes: float, packets_per_s: float) -> float:  # noqa: D102
        del duration_s, queued_bytes, packets_per_s
        return 0.0


class Red:
    """Random early detection (Floyd and Jacobson 1993), with the parameters that Floyd recommends.

    Thresholds are a sixth and a half of the buffer; above the larger one everything is dropped.
    """

    step_s: float = 0.01
    weight: Final = 0.002
    most: Final = 0.1
    """max_p"""

    def __init__(self, path: Path) -> None:
        """Begin with an empty queue."""
        self.low_bytes, self.high_bytes = path.buffer_bytes / 6, path.buffer_bytes / 2
        self.average_bytes = 0.0

    def share(self, duration_s: float, queued_bytes: float, packets_per_s: float) -> float:
        """Return 2 p / (1 + p), as gaps between drops are uniform up to 1 / p packets (section 7)."""
        packets = packets_per_s * duration_s
        self.average_bytes += (1 - (1 - self.weight) ** packets) * (queued_bytes - self.average_bytes)
        if self.average_bytes >= self.high_bytes:
            return 1.0
        above = (self.average_bytes - self.low_bytes) / max(self.high_bytes - self.low_bytes, 1.0)
        p = self.most * max(above, 0.0)
        return 2 * p / (1 + p)


class Codel:
    """CoDel (RFC 8289): drops ever faster as long as packets wait for more than the target."""

    step_s: float = 0.01
    target_s: Final = 0.005
    interval_s: Final = 0.1

    def __init__(self, path: Path) -> None:
        """Begin with an empty queue."""
        self._capacity = path.capacity
        self._above_s: float | None = None
        self._count = 0.0
        self._since_dropping_s = math.inf

    def share(self, duration_s: float, queued_bytes: float, packets_per_s: float) -> float:
        """Return sqrt(count) / interval over the rate (sections 5.3 and 5.5)."""
        if queued_bytes / self._capacity < self.target_s:
            self._above_s = None
            self._since_dropping_s += duration_s
            return 0.0
        was_dropping = self._above_s is not None and self._above_s >= self.interval_s
        self._above_s = (self._above_s or 0.0) + duration_s
        if self._above_s < self.interval_s:
            self._since_dropping_s += duration_s
            return 0.0
        if not was_dropping:
            # section 5.4: near the drop rate that sufficed before
            is_recent = self._since_dropping_s < 16 * self.interval_s
            self._count = max(self._count - 2, 1.0) if is_recent else 1.0
        self._since_dropping_s = 0.0
        drops_per_s = math.sqrt(self._count) / self.interval_s
        self._count += drops_per_s * duration_s
        return min(drops_per_s / packets_per_s, 1.0) if packets_per_s else 0.0


class Pie:
    """PIE (RFC 8033): a controller of the delay, which sets the drop probability every 15 ms."""

    step_s: float = 0.015
    target_s: Final = 0.015
    alpha: Final = 1 / 8
    beta: Final = 1 + 1 / 4
    burst_s: Final = 0.15
    """Allowance at the beginning (section 4.4)."""

    _SCALES: Final = ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (0.1, 2))
    """Below each probability, the divisor of a change (section 5.2)."""

    def __init__(self, path: Path) -> None:
        """Begin with an empty queue."""
        self._capacity = path.capacity
        self.p = 0.0
        self._delay_s = 0.0
        self._burst_s = self.burst_s

    def share(self, duration_s: float, queued_bytes: float, packets_per_s: float) -> float:
        """Update the probability by the delay and its change (section 4.2), and return it."""
        del packets_per_s
        delay_s, before_s, self._delay_s = (
            queued_bytes / self._capacity,
            self._delay_s,
            queued_bytes / self._capacity,
        )
        change = self.alpha * (delay_s - self.target_s) + self.beta * (delay_s - before_s)
        change /= next((divisor for below, divisor in self._SCALES if self.p < below), 1)
        if self.p >= 0.1:
            change = min(change, 0.02)
        if delay_s > 0.25:
            change += 0.02
        self.p = min(max(self.p + change * duration_s / self.step_s, 0.0), 1.0)
        if not delay_s and not before_s:
            self.p *= 0.98
        self._burst_s = max(self._burst_s - duration_s, 0.0)
        is_calm = delay_s < self.target_s / 2 and before_s < self.target_s / 2
        if is_calm and not self.p:
            self._burst_s = self.burst_s
        # section 4.1: safeguards
        is_safe = before_s < self.target_s / 2 and self.p < 0.2
        return 0.0 if self._burst_s or is_safe else self.p


DISCIPLINES: Final[Mapping[str, Callable[[Path], Discipline]]] = {
    "tail_drop": TailDrop,
    "red": Red,
    "codel": Codel,
    "pie": Pie,
}
