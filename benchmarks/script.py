"""What every packet of a generated capture holds, as arithmetic on its number.

Every connection follows the same script, each with its own ports and sequence numbers: handshake; rounds of
two full segments and one acknowledgement, the acknowledgement `flight` rounds behind the data; now and then
a lost segment, repeated after its duplicate acknowledgements (with SACK); FIN from both sides. Datagrams
take the places of the segments. The same plan always gives the same packets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from plan import EXCHANGE, HANDSHAKE, Plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

SEGMENT: Final = 1448
DATAGRAMS: Final = {"udp": (1000, 60), "rtp": (160, 160), "quic": (1200, 40)}
"""Payload of a client's and of a server's datagram."""
LOSS_AT: Final = 8
"""Of the rounds of a period, the ninth loses a segment."""
TIMESTAMP_OPTION: Final = 12
SACK_OPTION: Final = 12
SYN_OPTIONS: Final = 20

FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10


@dataclass(frozen=True, slots=True)
class Packets:
    """Columns of a run of packets; sequence numbers count from 0 at the SYN of their side."""

    number: Ints
    since_start_ns: Ints
    echoed_ns: Ints
    flow: Ints
    from_server: Flags
    flags: Ints
    seq: Ints
    ack: Ints
    payload: Ints
    options: Ints
    sack_left: Ints
    sack_right: Ints
    nth: Ints
    """Number of a datagram among those of its sender."""


class Mix:
    """The order in which the packets of the connections stand in the capture."""

    def __init__(self, plan: Plan) -> None:
        kind = plan.kind
        self.flows = kind.flows
        self.flow: NDArray[np.int32] | None = None
        if kind.order == "turns":
            return
        together = EXCHANGE if kind.order == "exchanges" else 1
        flows = np.repeat(np.arange(kind.flows, dtype=np.int32), plan.packets_per_flow // together)
        np.random.default_rng(plan.seed).shuffle(flows)
        self.flow = np.repeat(flows, together)
        # where the packets of each connection are, and which of its packets each is
        self.places = np.argsort(self.flow, kind="stable").reshape(kind.flows, -1)
        self.steps = np.empty(len(self.flow), np.int32)
        self.steps[self.places] = np.arange(plan.packets_per_flow, dtype=np.int32)

    def of(self, number: Ints) -> tuple[Ints, Ints]:
        """Return the connections of these packets, and which of its packets each is, from 0."""
        if self.flow is None:
            step, flow = np.divmod(number, self.flows)
            return flow, step
        return self.flow[number].astype(np.int64), self.steps[number].astype(np.int64)

    def number(self, flow: Ints, step: Ints) -> Ints:
        """Return the numbers of packets by connection and step; steps before the first take the first."""
        step = np.maximum(step, 0)
        return step * self.flows + flow if self.flow is None else self.places[flow, step]


@dataclass(frozen=True, slots=True)
class Script:
    """The script of a plan's connections."""

    plan: Plan
    mix: Mix

    @property
    def repair_after(self) -> int:
        """Rounds from a loss to the retransmission: its duplicate acknowledgements have come by then."""
        return self.plan.kind.flight + 2

    def segments_sent(self, rounds: Ints) -> Ints:
        """Return how many new segments the first `rounds` rounds hold: two, one where a loss is repaired."""
        rounds, every = np.maximum(rounds, 0), self.plan.kind.loss_every
        repaired = (
            (rounds + every - 1 - LOSS_AT - self.repair_after) // every if every else np.zeros_like(rounds)
        )
        segments: Ints = 2 * rounds - np.maximum(repaired, 0)
        return segments

    def packets(self, number: Ints) -> Packets:
        """Return the packets with these numbers (from 0)."""
        places = Places.of(self, number)
        received = Received.at(self, places)
        kind = self.plan.kind
        server, closing, step = places.from_server, places.closing, places.step
        end = 1 + self.segments_sent(np.full_like(step, self.plan.rounds)) * SEGMENT
        answers = np.clip(places.turn, 0, self.plan.rounds) * SEGMENT * kind.answers
        answered = 1 + answers + (closing == 2)
        server_seq = np.where(step == 1, 0, 1 + answers)
        payload = np.where(places.is_data | (places.is_ack & kind.answers), SEGMENT, 0)
        if kind.transport != "tcp":
            payload = np.where(server, *reversed(DATAGRAMS[kind.transport]))
        return Packets(
            number=number,
            since_start_ns=number * self.plan.interval_ns,
            echoed_ns=self.echoed_packet(places, received) * self.plan.interval_ns,
            flow=places.flow,
            from_server=server,
            flags=flags_of(places),
            seq=np.where(server, server_seq, self.client_seq(places, end)),
            ack=np.where(server, self.server_ack(places, received, end), np.where(step == 0, 0, answered)),
            payload=payload,
            options=np.where(step < 2, SYN_OPTIONS, TIMESTAMP_OPTION) + SACK_OPTION * received.hole_open,
            sack_left=1 + (received.hole + 1) * SEGMENT,
            sack_right=1 + received.arrived * SEGMENT,
            nth=np.where(server, step // EXCHANGE, step - (step + 1) // EXCHANGE),
        )

    def client_seq(self, places: Places, end: Ints) -> Ints:
        """Sequence numbers of the client. A repairing round sends the lost segment, then a new one."""
        turn, place, every = places.turn, places.place, self.plan.kind.loss_every
        since_loss = turn - LOSS_AT - self.repair_after
        repairs = (since_loss >= 0) & (since_loss % every == 0) if every else np.zeros_like(turn, bool)
        fresh = self.segments_sent(turn) + place - repairs
        segment = np.where(repairs & (place == 0), self.segments_sent(turn - self.repair_after), fresh)
        seq = np.where(places.is_data, 1 + segment * SEGMENT, np.where(places.step == 0, 0, 1))
        return np.where(places.closing >= 0, end + (places.closing == 2), seq)

    def server_ack(self, places: Places, received: Received, end: Ints) -> Ints:
        """Acknowledgement numbers of the server: up to the hole while it is open."""
        segments = np.where(received.hole_open, received.hole, received.arrived)
        ack = np.where(places.is_ack, 1 + segments * SEGMENT, 1)
        return np.where(places.closing >= 0, end + 1, ack)

    def echoed_packet(self, places: Places, received: Received) -> Ints:
        """Number of the packet whose timestamp is echoed (RFC 7323 section 4.3).

        Data echo the latest acknowledgement; an acknowledgement echoes the first segment that it
        acknowledges, and while a hole is open the last segment before it.
        """
        data_age = np.where(places.is_data, 1 + places.place, 1)
        age = np.where(places.is_ack, EXCHANGE * self.plan.kind.flight + 2, data_age)
        before_hole = HANDSHAKE + EXCHANGE * received.hole_turn - 2
        return self.mix.number(places.flow, np.where(received.hole_open, before_hole, places.step - age))


@dataclass(frozen=True, slots=True)
class Places:
    """Where packets stand in the script of their connection."""

    flow: Ints
    step: Ints
    turn: Ints
    """Round of data, from 0; before and behind the rounds it means nothing."""
    place: Ints
    """In the round: 0 and 1 are data, 2 is the acknowledgement."""
    closing: Ints
    """Steps since the last round; negative before its end."""

    @classmethod
    def of(cls, script: Script, number: Ints) -> Places:
        """Find the places of the packets with these numbers (from 0)."""
        flow, step = script.mix.of(number)
        turn, place = np.divmod(step - HANDSHAKE, EXCHANGE)
        return cls(flow, step, turn, place, closing=step - HANDSHAKE - EXCHANGE * script.plan.rounds)

    @property
    def is_data(self) -> Flags:
        data: Flags = (self.step >= HANDSHAKE) & (self.closing < 0) & (self.place < 2)
        return data

    @property
    def is_ack(self) -> Flags:
        ack: Flags = (self.step >= HANDSHAKE) & (self.closing < 0) & (self.place == 2)
        return ack

    @property
    def from_server(self) -> Flags:
        server: Flags = (self.step == 1) | self.is_ack | (self.closing == 1)
        return server


@dataclass(frozen=True, slots=True)
class Received:
    """What the server had received when it sent: all up to `arrived`, but for the hole if it is open."""

    hole_open: Flags
    hole: Ints
    """Segment that is missing."""
    hole_turn: Ints
    """Round in which it was sent."""
    arrived: Ints
    """Segments sent until then."""

    @classmethod
    def at(cls, script: Script, places: Places) -> Received:
        """Data take half a round trip and their acknowledgement the other half: `flight` rounds together."""
        kind = script.plan.kind
        seen = places.turn - kind.flight
        arrived = script.segments_sent(seen + 1)
        if not kind.loss_every:
            return cls(np.zeros_like(seen, bool), arrived, seen, arrived)
        since_loss = (seen - LOSS_AT) % kind.loss_every
        hole_turn = seen - since_loss
        hole_open = places.is_ack & (seen >= LOSS_AT) & (since_loss < script.repair_after)
        return cls(hole_open, script.segments_sent(hole_turn), hole_turn, arrived)


def flags_of(places: Places) -> Ints:
    """TCP flags."""
    flags = np.full_like(places.step, ACK)
    flags[places.step == 0] = SYN
    flags[places.step == 1] = SYN | ACK
    flags[places.is_data & (places.place == 1)] = PSH | ACK
    flags[(places.closing == 0) | (places.closing == 1)] = FIN | ACK
    return flags
