"""Whole packets of what a fluid loses, the same in each run: what is no packet yet is kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LostPackets:
    """Packets that were lost, and when the first of them was."""

    at_s: float
    packets: int


@dataclass(slots=True)
class LossCounter:
    """Parts of packets that are lost, until they are one: the deterministic form of a loss rate."""

    part: float = 0.0

    def lose(self, begins_s: float, ends_s: float, packets_per_s: float) -> LostPackets | None:
        """Lose at a rate for a span of time; return the packets that are complete by its end."""
        before = self.part
        total = before + packets_per_s * (ends_s - begins_s)
        packets = int(total)
        self.part = total - packets
        return LostPackets(begins_s + (1 - before) / packets_per_s, packets) if packets else None
