"""Write captures of any kind and size (`plan.py`, `script.py`): millions of packets a second by numpy.

`captures.py FILE KIND PACKETS [SEED [pcap|pcapng]]` writes one; a number as KIND stands for so many
connections in turns.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import TYPE_CHECKING, Final

import numpy as np
from plan import KINDS, Kind, Plan
from script import ACK, SYN, Mix, Packets, Script

if TYPE_CHECKING:
    from typing import BinaryIO

    from script import Ints

START_S: Final = 1_700_000_000
FLOWS_PER_CLIENT: Final = 20_000
LONGEST_TCP: Final = 20 + 24
SHOWN_PAYLOAD: Final = 64
"""Bytes of datagrams that are written; zeros follow."""
TCP, UDP = 6, 17

PCAP_RECORD: Final = 16
PCAPNG_HEAD: Final = 28
PCAPNG_TAIL: Final = 4


class Frames:
    """Bytes of a run of frames, one row each, written column by column in network byte order."""

    def __init__(self, count: int, width: int) -> None:
        self.rows = np.zeros((count, width), np.uint8)

    def put(self, offset: int, width: int, values: Ints | int, *, little: bool = False) -> None:
        """Write `values` as integers of `width` bytes at `offset` of every row."""
        wide = np.broadcast_to(np.asarray(values, np.int64), (len(self.rows),))
        code = f"{'<' if little else '>'}u{width}"
        self.rows[:, offset : offset + width] = wide.astype(code).view(np.uint8).reshape(-1, width)


def link_length(kind: Kind) -> int:
    """Bytes of Ethernet and VLAN headers."""
    return 18 if kind.has_vlan else 14


def network_length(kind: Kind) -> int:
    """Bytes of the IP header."""
    return 20 if kind.ip_version == 4 else 40


def wire_length(kind: Kind, packets: Packets) -> Ints:
    """Bytes of frames on the wire."""
    transport = 20 + packets.options if kind.transport == "tcp" else 8
    return link_length(kind) + network_length(kind) + transport + packets.payload


def write_headers(frames: Frames, at: int, kind: Kind, packets: Packets, seed: int) -> None:
    """Write all headers of `packets` from column `at` on."""
    ethertype = "0800" if kind.ip_version == 4 else "86dd"
    link = bytes.fromhex("020000000001020000000002" + ("8100002a" if kind.has_vlan else "") + ethertype)
    frames.rows[:, at : at + len(link)] = np.frombuffer(link, np.uint8)
    at += len(link)
    length = wire_length(kind, packets) - len(link)
    server = packets.from_server
    client_address = 0x0A000001 + packets.flow // FLOWS_PER_CLIENT
    source = np.where(server, 0xC0000201, client_address)
    destination = np.where(server, client_address, 0xC0000201)
    protocol = TCP if kind.transport == "tcp" else UDP
    if kind.ip_version == 4:
        frames.put(at, 2, 0x4500)
        frames.put(at + 2, 2, length)
        frames.put(at + 4, 2, packets.number & 0xFFFF)
        frames.put(at + 6, 2, 0x4000)
        frames.put(at + 8, 2, 0x4000 | protocol)
        frames.put(at + 12, 4, source)
        frames.put(at + 16, 4, destination)
    else:
        frames.put(at, 1, 0x60)
        frames.put(at + 4, 2, length - network_length(kind))
        frames.put(at + 6, 2, protocol << 8 | 64)
        for place, address in ((at + 8, source), (at + 24, destination)):
            frames.put(place, 4, 0x20010DB8)
            frames.put(place + 12, 4, address)
    at += network_length(kind)
    client_port = 20_000 + packets.flow % FLOWS_PER_CLIENT
    frames.put(at, 2, np.where(server, 5201, client_port))
    frames.put(at + 2, 2, np.where(server, client_port, 5201))
    if kind.transport == "tcp":
        write_tcp(frames, at, packets)
    else:
        frames.put(at + 4, 2, 8 + packets.payload)
        write_payload(frames, at + 8, kind, packets, np.random.default_rng([seed, int(packets.number[0])]))


def write_tcp(frames: Frames, at: int, packets: Packets) -> None:
    """Write what follows the ports of a TCP header: timestamps everywhere, SACK while a hole is open."""
    server = packets.from_server
    # Any spread will do; two large odd factors make every connection start elsewhere.
    client_isn, server_isn = (packets.flow * factor % (1 << 32) for factor in (2_654_435_761, 2_246_822_519))
    acknowledged = (packets.ack + np.where(server, client_isn, server_isn)) & 0xFFFF_FFFF
    frames.put(at + 4, 4, (packets.seq + np.where(server, server_isn, client_isn)) & 0xFFFF_FFFF)
    frames.put(at + 8, 4, np.where(packets.flags & ACK != 0, acknowledged, 0))
    frames.put(at + 12, 1, (20 + packets.options) // 4 << 4)
    frames.put(at + 13, 1, packets.flags)
    frames.put(at + 14, 2, 502)
    at += 20
    clock_ms = 1 + packets.since_start_ns // 1_000_000
    echo = np.where(packets.flags == SYN, 0, 1 + packets.echoed_ns // 1_000_000)
    handshake = packets.flags & SYN != 0
    frames.put(at, 4, np.where(handshake, 0x020405B4, 0x0101080A))
    frames.put(at + 4, 4, np.where(handshake, 0x0402080A, clock_ms))
    frames.put(at + 8, 4, np.where(handshake, clock_ms, echo))
    frames.put(at + 12, 4, np.where(handshake, echo, 0x0101050A))
    frames.put(at + 16, 4, np.where(handshake, 0x01030307, (packets.sack_left + client_isn) & 0xFFFF_FFFF))
    frames.put(at + 20, 4, np.where(handshake, 0, (packets.sack_right + client_isn) & 0xFFFF_FFFF))
    frames.rows[packets.options == 12, at + 12 : at + 24] = 0


def write_payload(frames: Frames, at: int, kind: Kind, packets: Packets, random: np.random.Generator) -> None:
    """Write the begin of datagrams: of RTP a header, of QUIC a short header, and what looks like noise."""
    noise = random.integers(0, 256, (len(frames.rows), SHOWN_PAYLOAD), np.uint8)
    shown = noise[:, : frames.rows.shape[1] - at]
    frames.rows[:, at : at + shown.shape[1]] = shown
    end = 2 * packets.flow + packets.from_server
    if kind.transport == "rtp":
        frames.put(at, 2, 0x8060)
        frames.put(at + 2, 2, packets.nth & 0xFFFF)
        frames.put(at + 4, 4, 160 * packets.nth & 0xFFFF_FFFF)
        frames.put(at + 8, 4, 0x5EED_0000 + end)
    elif kind.transport == "quic":
        frames.put(at, 1, 0x40 | noise[:, 0].astype(np.int64) & 0x3F)
        frames.put(at + 1, 8, end * 0x1234_5678_9ABC + 0x0102_0304_0506_0708)


def encode(plan: Plan, packets: Packets) -> bytes:
    """Return the records of these packets in the plan's file form."""
    kind = plan.kind
    wire = wire_length(kind, packets)
    captured = np.minimum(wire, kind.snap_length)
    time_ns = START_S * 1_000_000_000 + packets.since_start_ns
    head = PCAP_RECORD if plan.form == "pcap" else PCAPNG_HEAD
    # Headers are written whole and cut afterwards, so a row is never narrower than the longest of them.
    transport = LONGEST_TCP if kind.transport == "tcp" else 8 + SHOWN_PAYLOAD
    room = max(kind.snap_length, link_length(kind) + network_length(kind) + transport)
    room += -room % 4
    frames = Frames(len(wire), head + room + PCAPNG_TAIL)
    write_headers(frames, head, kind, packets, plan.seed)
    column = np.arange(frames.rows.shape[1])[None, :]
    if plan.form == "pcap":
        frames.put(0, 4, time_ns // 1_000_000_000, little=True)
        frames.put(4, 4, time_ns % 1_000_000_000 // 1_000, little=True)
        frames.put(8, 4, captured, little=True)
        frames.put(12, 4, wire, little=True)
        kept = column < head + captured[:, None]
    else:
        padded = captured + -captured % 4
        length = head + padded + PCAPNG_TAIL
        stamp_us = time_ns // 1_000
        columns = (6, length, 0, stamp_us >> 32, stamp_us & 0xFFFF_FFFF, captured, wire)
        for place, values in enumerate(columns):
            frames.put(4 * place, 4, values, little=True)
        frames.put(head + room, PCAPNG_TAIL, length, little=True)
        kept = (column < head + padded[:, None]) | (column >= head + room)
        frames.rows[:, head : head + room][column[:, :room] >= captured[:, None]] = 0
    if kind.missed_every:
        missed = np.random.default_rng([plan.seed, int(packets.number[0])]).integers(
            0, kind.missed_every, len(wire)
        )
        kept &= (missed != 0)[:, None]
    return bytes(frames.rows[kept])


def file_header(plan: Plan) -> bytes:
    """Return what stands before the first record."""
    snap_length = plan.kind.snap_length
    if plan.form == "pcap":
        return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap_length, 1)
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    return section + struct.pack("<IIHHII", 1, 20, 1, 0, snap_length, 20)


def write(plan: Plan, file: BinaryIO) -> None:
    """Write the whole capture."""
    chunk = max(1_000, 32_000_000 // (plan.kind.snap_length + 64))
    script = Script(plan, Mix(plan))
    file.write(file_header(plan))
    for start in range(0, plan.sent, chunk):
        number = np.arange(start, min(start + chunk, plan.sent), dtype=np.int64)
        file.write(encode(plan, script.packets(number)))


def main(path: str, kind: str, packets: str, seed: str = "1", form: str = "pcap") -> None:
    """Write the capture that the arguments describe; it has its name only when it is whole."""
    described = Kind(int(kind)) if kind.isdigit() else KINDS[kind]
    plan = Plan(described, int(packets), int(seed), "pcapng" if form == "pcapng" else "pcap")
    unfinished = f"{path}.part"
    with open(unfinished, "wb") as file:
        write(plan, file)
    os.replace(unfinished, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
