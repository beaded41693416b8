"""Contents of the captures of the benchmarks. Without numpy, so that the measuring process stays small."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

Form = Literal["pcap", "pcapng"]
Order = Literal["turns", "exchanges", "random"]
Transport = Literal["tcp", "udp", "rtp", "quic"]

HANDSHAKE: Final = 3
GOODBYE: Final = 3
EXCHANGE: Final = 3
"""Packets of a round: two of the client, one of the server."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of traffic: connections of one script, and the order in which their packets mix."""

    flows: int
    order: Order = "turns"
    """One packet of each connection in turn, whole exchanges at random, or packets at random."""
    flight: int = 10
    """Rounds between data and its acknowledgement; with 0 it covers all that is outstanding."""
    loss_every: int = 256
    """One of so many rounds loses the first of its two segments; 0 loses none."""
    answers: bool = False
    """Whether the server sends data too."""
    missed_every: int = 0
    """The capture misses one of so many packets; 0 misses none."""
    transport: Transport = "tcp"
    ip_version: Literal[4, 6] = 4
    has_vlan: bool = False
    snap_length: int = 96
    round_trip_ns: int = 40_000_000
    """From data to its acknowledgement, whatever the number of connections."""
    share: int = 1
    """The capture has a `share`-th of the packets asked for."""


FEW: Final = Kind(flows=8)
MANY: Final = Kind(flows=100_000)
KINDS: Final[dict[str, Kind]] = {
    "turns-8": FEW,
    "turns-100000": MANY,
    "random-8": Kind(flows=8, order="random", flight=0),
    "random-200": Kind(flows=200, order="random", flight=0),
    "random-5000": Kind(flows=5_000, order="random", flight=0),
    "random-100000": Kind(flows=100_000, order="random", flight=0),
    "lan": Kind(flows=32, order="exchanges", flight=0, loss_every=0, round_trip_ns=200_000),
    "loss": Kind(flows=128, order="exchanges", loss_every=25),
    "holes": replace(FEW, missed_every=100),
    "both-ways": Kind(flows=128, order="exchanges", loss_every=0, answers=True),
    "ipv6": replace(FEW, ip_version=6, snap_length=112),
    "vlan": replace(FEW, has_vlan=True),
    "udp": replace(FEW, transport="udp"),
    "rtp": replace(FEW, transport="rtp"),
    "quic": replace(FEW, transport="quic"),
    "full-size": replace(FEW, snap_length=1514, share=10),
}
"""Kinds that are generated; `real` is captured in network namespaces (`real.py`)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A capture of one kind; `packets` is rounded down to whole connections, and up to one round of each."""

    kind: Kind
    packets: int
    seed: int = 1
    form: Form = "pcap"

    @property
    def rounds(self) -> int:
        """Rounds of data in one connection."""
        return max((self.packets // self.kind.flows - HANDSHAKE - GOODBYE) // EXCHANGE, 1)

    @property
    def packets_per_flow(self) -> int:
        """Packets of one connection."""
        return HANDSHAKE + EXCHANGE * self.rounds + GOODBYE

    @property
    def sent(self) -> int:
        """Packets on the wire: those in the capture, and those that it missed."""
        return self.packets_per_flow * self.kind.flows

    @property
    def interval_ns(self) -> int:
        """Time from one packet to the next."""
        in_round_trip = EXCHANGE * max(self.kind.flight, 1) * self.kind.flows
        return max(self.kind.round_trip_ns // in_round_trip, 1)

    @property
    def name(self) -> str:
        """Name of the file: the same plan, the same name."""
        kind = next(
            (name for name, kind in KINDS.items() if kind == self.kind), f"{self.kind.flows}-in-turns"
        )
        return f"{kind}-{self.packets}-packets-seed{self.seed}.{self.form}"


@dataclass(frozen=True, slots=True)
class RealPlan:
    """A capture of real connections, of so many packets (`real.py`)."""

    packets: int

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"real-{self.packets}-packets.pcap"


@dataclass(frozen=True, slots=True)
class TextPlan:
    """An ns-2 trace of so many lines, or what tcpdump prints of a capture."""

    kind: Literal["ns2", "tcpdump"]
    packets: int
    """Lines of the trace."""
    source: str
    """What it is made from: the number of lines, or the name of a capture."""

    @property
    def name(self) -> str:
        """Name of the file: the same plan, the same name."""
        return f"{self.kind}-{self.packets}-lines.txt"


@dataclass(frozen=True, slots=True)
class FarPlan:
    """The capture at the other end of the path of `near`."""

    near: Plan

    @property
    def packets(self) -> int:
        """Packets on the path."""
        return self.near.packets

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"far-{self.near.name}"


AnyPlan = Plan | RealPlan | TextPlan | FarPlan
