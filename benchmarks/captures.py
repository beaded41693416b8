"""Make captures of any size: many TCP connections side by side, as a sender's capture shows them.

Every connection follows the same script, each with its own ports, sequence numbers and turn: handshake;
rounds of two full segments and one acknowledgement, the acknowledgement `FLIGHT` rounds behind the data;
now and then a lost segment, repeated after its duplicate acknowledgements (with SACK); FIN from both sides.
All of it is arithmetic on the number of the packet, so that numpy makes millions of packets a second and
the same arguments always give the same bytes.

`captures.py FILE PACKETS FLOWS SNAP_LENGTH pcap|pcapng` writes one.
"""

from __future__ import annotations

import os
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from plan import FLIGHT, HANDSHAKE, Plan

if TYPE_CHECKING:
    from typing import BinaryIO

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

SEGMENT: Final = 1448
LOSS_EVERY: Final = 256
"""One of so many rounds loses its first segment, ..."""
LOSS_AT: Final = 8
"""... the ninth of them."""
REPAIR_AFTER: Final = FLIGHT + 2
"""Rounds from the loss to the retransmission: three duplicate acknowledgements have come by then."""
START_S: Final = 1_700_000_000
FLOWS_PER_CLIENT: Final = 20_000

ETHERNET: Final = 14
IP: Final = 20
HEADERS: Final = ETHERNET + IP + 20
TIMESTAMP_OPTION: Final = 12
SACK_OPTION: Final = 12
SYN_OPTIONS: Final = 20

FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10

PCAP_RECORD: Final = 16
PCAPNG_HEAD: Final = 28
PCAPNG_TAIL: Final = 4


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


def segments_sent(rounds: Ints) -> Ints:
    """Return how many new segments the first `rounds` rounds hold: two each, one where a loss is repaired."""
    repaired = (np.maximum(rounds, 0) + LOSS_EVERY - 1 - LOSS_AT - REPAIR_AFTER) // LOSS_EVERY
    segments: Ints = 2 * np.maximum(rounds, 0) - np.maximum(repaired, 0)
    return segments


@dataclass(frozen=True, slots=True)
class Places:
    """Where packets stand in the script of their connection."""

    number: Ints
    flow: Ints
    step: Ints
    turn: Ints
    """Round of data, from 0; before and behind the rounds it means nothing."""
    place: Ints
    """In the round: 0 and 1 are data, 2 is the acknowledgement."""
    closing: Ints
    """Steps since the last round; negative before its end."""

    @classmethod
    def of(cls, plan: Plan, number: Ints) -> Places:
        """Find the places of the packets with these numbers (from 0)."""
        flow, step = number % plan.flows, number // plan.flows
        turn, place = np.divmod(step - HANDSHAKE, 3)
        return cls(number, flow, step, turn, place, closing=step - HANDSHAKE - 3 * plan.rounds)

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
    def at(cls, places: Places) -> Received:
        """Data take half a round trip and their acknowledgement the other half: FLIGHT rounds together."""
        seen = places.turn - FLIGHT
        since_loss = (seen - LOSS_AT) % LOSS_EVERY
        hole_turn = seen - since_loss
        hole_open = places.is_ack & (seen >= LOSS_AT) & (since_loss < REPAIR_AFTER)
        return cls(hole_open, segments_sent(hole_turn), hole_turn, segments_sent(seen + 1))


def script(plan: Plan, number: Ints) -> Packets:
    """Return the packets with these numbers (from 0) of the capture that `plan` describes."""
    places = Places.of(plan, number)
    received = Received.at(places)
    server, closing, step = places.from_server, places.closing, places.step
    end = 1 + segments_sent(np.full_like(step, plan.rounds)) * SEGMENT
    return Packets(
        number=number,
        since_start_ns=number * plan.interval_ns,
        echoed_ns=np.maximum(echoed_packet(plan, places, received), 0) * plan.interval_ns,
        flow=places.flow,
        from_server=server,
        flags=flags_of(places),
        seq=np.where(server, (step != 1).astype(np.int64), client_seq(places, end)),
        ack=np.where(server, server_ack(places, received, end), np.where(step == 0, 0, 1 + (closing == 2))),
        payload=np.where(places.is_data, SEGMENT, 0),
        options=np.where(step < 2, SYN_OPTIONS, TIMESTAMP_OPTION) + SACK_OPTION * received.hole_open,
        sack_left=1 + (received.hole + 1) * SEGMENT,
        sack_right=1 + received.arrived * SEGMENT,
    )


def client_seq(places: Places, end: Ints) -> Ints:
    """Sequence numbers of the client. The repairing round sends the lost segment first, then one new one."""
    turn, place = places.turn, places.place
    since_loss = turn - LOSS_AT - REPAIR_AFTER
    repairs = (since_loss >= 0) & (since_loss % LOSS_EVERY == 0)
    fresh = segments_sent(turn) + place - repairs
    segment = np.where(repairs & (place == 0), segments_sent(turn - REPAIR_AFTER), fresh)
    seq = np.where(places.is_data, 1 + segment * SEGMENT, np.where(places.step == 0, 0, 1))
    return np.where(places.closing >= 0, end + (places.closing == 2), seq)


def server_ack(places: Places, received: Received, end: Ints) -> Ints:
    """Acknowledgement numbers of the server: up to the hole while it is open."""
    segments = np.where(received.hole_open, received.hole, received.arrived)
    ack = np.where(places.is_ack, 1 + segments * SEGMENT, 1)
    return np.where(places.closing >= 0, end + 1, ack)


def echoed_packet(plan: Plan, places: Places, received: Received) -> Ints:
    """Number of the packet whose timestamp is echoed (RFC 7323 section 4.3).

    Data echo the latest acknowledgement; an acknowledgement echoes the first segment that it acknowledges,
    and while a hole is open the last segment before it.
    """
    data_age = np.where(places.is_data, 1 + places.place, 1)
    age = np.where(places.is_ack, 3 * FLIGHT + 2, data_age)
    before_hole = (HANDSHAKE + 3 * received.hole_turn - 2) * plan.flows + places.flow
    return np.where(received.hole_open, before_hole, places.number - age * plan.flows)


def flags_of(places: Places) -> Ints:
    """TCP flags."""
    flags = np.full_like(places.step, ACK)
    flags[places.step == 0] = SYN
    flags[places.step == 1] = SYN | ACK
    flags[places.is_data & (places.place == 1)] = PSH | ACK
    flags[(places.closing == 0) | (places.closing == 1)] = FIN | ACK
    return flags


class Frames:
    """Bytes of a run of frames, one row each, written column by column in network byte order."""

    def __init__(self, count: int, width: int) -> None:
        self.rows = np.zeros((count, width), np.uint8)

    def put(self, offset: int, width: int, values: Ints | int, *, little: bool = False) -> None:
        """Write `values` as integers of `width` bytes at `offset` of every row."""
        wide = np.broadcast_to(np.asarray(values, np.int64), (len(self.rows),))
        code = f"{'<' if little else '>'}u{width}"
        self.rows[:, offset : offset + width] = wide.astype(code).view(np.uint8).reshape(-1, width)


def write_headers(frames: Frames, at: int, packets: Packets) -> None:
    """Write Ethernet, IPv4 and TCP headers of `packets` from column `at` on."""
    server = packets.from_server
    client_address = 0x0A000001 + packets.flow // FLOWS_PER_CLIENT
    client_port = 20_000 + packets.flow % FLOWS_PER_CLIENT
    server_address = 0xC0000201  # 192.0.2.1
    frames.rows[:, at : at + ETHERNET] = np.frombuffer(
        bytes.fromhex("0200000000010200000000020800"), np.uint8
    )

    ip = at + ETHERNET
    frames.put(ip, 2, 0x4500)
    frames.put(ip + 2, 2, IP + 20 + packets.options + packets.payload)
    frames.put(ip + 4, 2, packets.number & 0xFFFF)
    frames.put(ip + 6, 2, 0x4000)
    frames.put(ip + 8, 2, 0x4006)
    frames.put(ip + 12, 4, np.where(server, server_address, client_address))
    frames.put(ip + 16, 4, np.where(server, client_address, server_address))

    tcp = ip + IP
    client_isn, server_isn = _initial_numbers(packets.flow)
    has_ack = packets.flags & ACK != 0
    frames.put(tcp, 2, np.where(server, 5201, client_port))
    frames.put(tcp + 2, 2, np.where(server, client_port, 5201))
    frames.put(tcp + 4, 4, (packets.seq + np.where(server, server_isn, client_isn)) & 0xFFFF_FFFF)
    acknowledged = (packets.ack + np.where(server, client_isn, server_isn)) & 0xFFFF_FFFF
    frames.put(tcp + 8, 4, np.where(has_ack, acknowledged, 0))
    frames.put(tcp + 12, 1, (20 + packets.options) // 4 << 4)
    frames.put(tcp + 13, 1, packets.flags)
    frames.put(tcp + 14, 2, 502)
    write_options(frames, tcp + 20, packets, client_isn)


def write_options(frames: Frames, at: int, packets: Packets, client_isn: Ints) -> None:
    """Write the TCP options: timestamps everywhere, SACK while a hole is open, the usual ones on SYN."""
    clock_ms = 1 + packets.since_start_ns // 1_000_000
    echo = np.where(packets.flags == SYN, 0, 1 + packets.echoed_ns // 1_000_000)
    handshake = packets.flags & SYN != 0
    frames.put(at, 4, np.where(handshake, 0x020405B4, 0x0101080A))
    frames.put(at + 4, 4, np.where(handshake, 0x0402080A, clock_ms))
    frames.put(at + 8, 4, np.where(handshake, clock_ms, echo))
    frames.put(at + 12, 4, np.where(handshake, echo, 0x0101050A))
    frames.put(at + 16, 4, np.where(handshake, 0x01030307, (packets.sack_left + client_isn) & 0xFFFF_FFFF))
    frames.put(at + 20, 4, np.where(handshake, 0, (packets.sack_right + client_isn) & 0xFFFF_FFFF))
    no_sack = ~handshake & (packets.options == TIMESTAMP_OPTION)
    frames.rows[no_sack, at + 12 : at + 24] = 0


def _initial_numbers(flow: Ints) -> tuple[Ints, Ints]:
    # Any spread will do; two large odd factors make every connection start elsewhere.
    return flow * 2_654_435_761 % (1 << 32), flow * 2_246_822_519 % (1 << 32)


def encode(plan: Plan, packets: Packets) -> bytes:
    """Return the records of these packets in the plan's file form."""
    wire = HEADERS + packets.options + packets.payload
    captured = np.minimum(wire, plan.snap_length)
    time_ns = START_S * 1_000_000_000 + packets.since_start_ns
    head = PCAP_RECORD if plan.form == "pcap" else PCAPNG_HEAD
    # Headers are written whole and cut afterwards, so a row is never narrower than the longest of them.
    room = max(plan.snap_length, HEADERS + TIMESTAMP_OPTION + SACK_OPTION)
    room += -room % 4
    frames = Frames(len(wire), head + room + PCAPNG_TAIL)
    write_headers(frames, head, packets)
    column = np.arange(frames.rows.shape[1])[None, :]
    if plan.form == "pcap":
        frames.put(0, 4, time_ns // 1_000_000_000, little=True)
        frames.put(4, 4, time_ns % 1_000_000_000 // 1_000, little=True)
        frames.put(8, 4, captured, little=True)
        frames.put(12, 4, wire, little=True)
        return bytes(frames.rows[column < head + captured[:, None]])
    padded = captured + -captured % 4
    length = head + padded + PCAPNG_TAIL
    stamp_us = time_ns // 1_000
    columns = (6, length, 0, stamp_us >> 32, stamp_us & 0xFFFF_FFFF, captured, wire)
    for place, values in enumerate(columns):
        frames.put(4 * place, 4, values, little=True)
    frames.put(head + room, PCAPNG_TAIL, length, little=True)
    kept = (column < head + padded[:, None]) | (column >= head + room)
    frames.rows[:, head : head + room][column[:, :room] >= captured[:, None]] = 0
    return bytes(frames.rows[kept])


def file_header(plan: Plan) -> bytes:
    """Return what stands before the first record."""
    if plan.form == "pcap":
        return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, plan.snap_length, 1)
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    return section + struct.pack("<IIHHII", 1, 20, 1, 0, plan.snap_length, 20)


def write(plan: Plan, file: BinaryIO) -> None:
    """Write the whole capture."""
    chunk = max(1_000, 64_000_000 // (plan.snap_length + 64))
    file.write(file_header(plan))
    for start in range(0, plan.written, chunk):
        number = np.arange(start, min(start + chunk, plan.written), dtype=np.int64)
        file.write(encode(plan, script(plan, number)))


def main(path: str, packets: str, flows: str, snap_length: str, form: str) -> None:
    """Write the capture that the arguments describe; it has its name only when it is whole."""
    plan = Plan(int(packets), int(flows), int(snap_length), "pcapng" if form == "pcapng" else "pcap")
    unfinished = f"{path}.part"
    with open(unfinished, "wb") as file:
        write(plan, file)
    os.replace(unfinished, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
