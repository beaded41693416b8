"""Contents of the captures of the benchmarks. Without numpy, so that the measuring process stays small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Form = Literal["pcap", "pcapng"]

FLIGHT: Final = 10
"""Rounds between data and its acknowledgement: 20 segments are outstanding."""
HANDSHAKE: Final = 3
GOODBYE: Final = 3
ROUND_TRIP_NS: Final = 40_000_000
"""From data to its acknowledgement, whatever the number of flows."""


@dataclass(frozen=True, slots=True)
class TextPlan:
    """An ns-2 trace of so many lines, or what tcpdump prints of a capture."""

    kind: Literal["ns2", "tcpdump"]
    written: int
    """Lines of the trace."""
    source: str
    """What it is made from: the number of lines, or the name of a capture."""

    @property
    def name(self) -> str:
        """Name of the file: the same plan, the same name."""
        return f"{self.kind}-{self.written}-lines.txt"


@dataclass(frozen=True, slots=True)
class Plan:
    """Contents of a capture; `packets` is rounded down to whole connections."""

    packets: int
    flows: int
    snap_length: int = 96
    form: Form = "pcap"

    @property
    def packets_per_flow(self) -> int:
        """Packets of one connection."""
        return max(self.packets // self.flows, HANDSHAKE + GOODBYE + 3)

    @property
    def rounds(self) -> int:
        """Rounds of data in one connection."""
        return (self.packets_per_flow - HANDSHAKE - GOODBYE) // 3

    @property
    def written(self) -> int:
        """Packets in the capture."""
        return (HANDSHAKE + 3 * self.rounds + GOODBYE) * self.flows

    @property
    def interval_ns(self) -> int:
        """Time from one packet of the capture to the next."""
        return max(ROUND_TRIP_NS // (3 * FLIGHT * self.flows), 1)

    @property
    def name(self) -> str:
        """Name of the file: the same plan, the same name."""
        return f"{self.flows}-flows-{self.packets}-packets-snap{self.snap_length}.{self.form}"


@dataclass(frozen=True, slots=True)
class FarPlan:
    """The capture at the other end of the path of `near`."""

    near: Plan

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"far-{self.near.name}"
