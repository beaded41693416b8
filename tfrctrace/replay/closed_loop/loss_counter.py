"""Turn the losses of a fluid into whole packets deterministically; fractions are carried over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LostPackets:
    """Number of lost packets, and the time of the first loss."""

    at_s: float
    packets: int


@dataclass(slots=True)
class LossCounter:
    """Accumulates fractions of lost packets: a deterministic loss rate."""

    part: float = 0.0

    def lose(self, begins_s: float, ends_s: float, packets_per_s: float) -> LostPackets | None:
        """Lose at a rate for a span of time; return the whole packets lost by its end."""
        before = self.part
        total = before + packets_per_s * (ends_s - begins_s)
        packets = int(total)
        self.part = total - packets
        return LostPackets(begins_s + (1 - before) / packets_per_s, packets) if packets else None
