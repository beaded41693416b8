"""The few header fields that the corpus needs, from bytes and from pcap files."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIN, SYN, RST, ACK = 1, 2, 4, 16
END_OF_OPTIONS, NO_OPERATION, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 0, 1, 3, 4, 5, 8
ETHERNET_BYTES = 14
ETHERNET_IPV4 = bytes.fromhex("02000000000202000000000108 00")
"""The link header that simulated packets get."""
LINK_BYTES = {1: ETHERNET_BYTES, 9: 2, 113: 16, 276: 20}
"""Length of the link header: Ethernet, ns-3's PPP, Linux cooked v1 and v2."""

PCAP_MAGIC = 0xA1B2C3D4
PCAP_HEADER = struct.Struct("<IHHiIII")
RECORD_HEADER = struct.Struct("<IIII")


@dataclass(frozen=True)
class Header:
    """What the headers of one TCP packet say."""

    ip_id: int
    ttl: int
    sport: int
    seq: int
    ack: int
    flags: int
    window: int
    payload: int
    tsval: int
    """0 without the timestamps option."""
    tsecr: int
    """The timestamp that it echoes; 0 likewise."""
    scale: int
    """Window scale of a SYN; 0 without that option."""
    sack_permitted: bool
    sack: tuple[tuple[int, int], ...]
    """The blocks of a SACK option."""

    @property
    def key(self) -> tuple[int, ...]:
        """What distinguishes a packet from all others of its connection, wherever it is seen."""
        return (self.sport, self.ip_id, self.seq, self.ack, self.flags, self.payload, self.tsval)

    @property
    def space(self) -> int:
        """How many sequence numbers the packet takes (RFC 9293 section 3.4)."""
        return self.payload + bool(self.flags & SYN) + bool(self.flags & FIN)


def header(data: bytes, link_bytes: int = ETHERNET_BYTES) -> Header | None:
    """Read IPv4 or IPv6 without extension headers, and TCP; None for anything else."""
    if len(data) < link_bytes + 40:
        return None
    version, ip = data[link_bytes] >> 4, link_bytes
    if version == 4 and data[ip + 9] == socket.IPPROTO_TCP:
        tcp, ttl = ip + (data[ip] & 15) * 4, data[ip + 8]
        total, ip_id = struct.unpack_from("!HH", data, ip + 2)
        end = ip + total
    elif version == 6 and data[ip + 6] == socket.IPPROTO_TCP:
        tcp, ip_id, ttl = ip + 40, 0, data[ip + 7]
        end = tcp + int(struct.unpack_from("!H", data, ip + 4)[0])
    else:
        return None
    sport, _, seq, ack, offset, flags, window = struct.unpack_from("!HHIIBBH", data, tcp)
    payload = end - tcp - (offset >> 4) * 4
    options = dict(options_of(data[tcp + 20 : tcp + (offset >> 4) * 4]))
    stamps = options.get(TIMESTAMPS, b"")
    tsval, tsecr = int.from_bytes(stamps[:4]), int.from_bytes(stamps[4:8])
    scale = int.from_bytes(options.get(WINDOW_SCALE, b""))
    sack_permitted = SACK_PERMITTED in options
    sack = tuple(struct.iter_unpack("!II", options.get(SACK, b"")))
    return Header(
        ip_id, ttl, sport, seq, ack, flags, window, payload, tsval, tsecr, scale, sack_permitted, sack
    )  # fmt: skip


def options_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Give kind and value of each TCP option."""
    at = 0
    while at + 1 < len(data) and data[at] != END_OF_OPTIONS:
        length = 1 if data[at] == NO_OPERATION else max(2, data[at + 1])
        yield data[at], data[at + 2 : at + length]
        at += length


def pcap_start(snap_bytes: int, link_type: int = 1) -> bytes:
    """Return the header of a pcap file with microseconds."""
    return PCAP_HEADER.pack(PCAP_MAGIC, 2, 4, 0, 0, snap_bytes, link_type)


def pcap_record(time_ns: int, data: bytes, wire_bytes: int) -> bytes:
    """Return one record."""
    seconds, rest = divmod(time_ns, 10**9)
    return RECORD_HEADER.pack(seconds, rest // 1000, len(data), wire_bytes) + data


def records(path: Path) -> Iterator[tuple[float, bytes, bytes]]:
    """Give each record of a little-endian pcap file: its time, its header and its bytes."""
    content = path.read_bytes()
    at = PCAP_HEADER.size
    while at < len(content):
        seconds, microseconds, kept, _ = RECORD_HEADER.unpack_from(content, at)
        data = at + RECORD_HEADER.size
        yield seconds + microseconds / 1e6, content[at:data], content[data : data + kept]
        at = data + kept


def packets(path: Path) -> Iterator[tuple[int, float, Header]]:
    """Give number (from 1), time and header of each TCP packet of a capture."""
    link_type = PCAP_HEADER.unpack(path.read_bytes()[: PCAP_HEADER.size])[-1]
    for number, (time, _, data) in enumerate(records(path), 1):
        if (seen := header(data, LINK_BYTES[link_type])) is not None:
            yield number, time, seen
