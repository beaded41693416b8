"""Packets as a capture on Ethernet stores them, headers and at most a few bytes of payload."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

SNAP_BYTES: Final = 96
PCAP_HEADER: Final = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP_BYTES, 1)
"""Times in nanoseconds."""
ETHERNET: Final = bytes.fromhex("02000000000202000000000108 00")
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


@dataclass(slots=True)
class Packet:
    """A packet at the capture; `head` begins with IPv4."""

    time_s: float
    head: bytes
    length: int
    """Of the IP packet."""


@lru_cache(maxsize=4096)
def _address(text: str) -> bytes:
    return ip_address(text).packed


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


@lru_cache(maxsize=65_536)
def _header(ends: tuple[str, str], protocol: int, length: int) -> bytes:
    """Return a header of IPv4, of which a link has few different ones: their identification is 0."""
    fixed = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0x4000, 64, protocol, 0)
    addresses = b"".join(map(_address, ends))
    return fixed[:10] + struct.pack(">H", _checksum(fixed + addresses)) + addresses


def ipv4(time_s: float, ends: tuple[str, str], protocol: int, head: bytes, payload_bytes: int = 0) -> Packet:
    """Return a packet with this transport header, and so many bytes behind it that are not stored."""
    length = 20 + len(head) + payload_bytes
    return Packet(time_s, _header(ends, protocol, length) + head, length)


def tcp(
    time_s: float,
    ends: tuple[str, int, str, int],
    numbers: tuple[int, int],
    flags: int,
    *,
    payload_bytes: int,
    options: bytes,
) -> Packet:
    """Return a segment of `ends` (address and port of both) with sequence and acknowledgement number."""
    src, src_port, dst, dst_port = ends
    offset = (5 + len(options) // 4) << 4
    seq, ack = (number & 0xFFFF_FFFF for number in numbers)
    head = struct.pack(">HHIIBBHHH", src_port, dst_port, seq, ack, offset, flags, 0xFFFF, 0, 0) + options
    return ipv4(time_s, (src, dst), 6, head, payload_bytes)


def udp(time_s: float, ends: tuple[str, int, str, int], payload: bytes) -> Packet:
    """Return a datagram."""
    src, src_port, dst, dst_port = ends
    header = struct.pack(">HHHH", src_port, dst_port, 8 + len(payload), 0)
    return ipv4(time_s, (src, dst), 17, header + payload)


def echo(time_s: float, src: str, dst: str, kind: int, number: int) -> Packet:
    """Return an ICMP echo request (8) or reply (0)."""
    rest = struct.pack(">HH", 7, number & 0xFFFF) + bytes(48)
    checksum = _checksum(bytes((kind, 0, 0, 0)) + rest)
    return ipv4(time_s, (src, dst), 1, struct.pack(">BBH", kind, 0, checksum) + rest)


def write_packets(file: BinaryIO, packets: Iterable[Packet], begin_s: int) -> None:
    """Append packets whose times count from `begin_s`."""
    for packet in packets:
        seconds, fraction = divmod(round(packet.time_s * 1e9), 10**9)
        stored = (ETHERNET + packet.head)[:SNAP_BYTES]
        file.write(struct.pack("<IIII", begin_s + seconds, fraction, len(stored), 14 + packet.length))
        file.write(stored)
