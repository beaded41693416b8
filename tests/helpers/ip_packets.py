"""Frames byte by byte: scapy takes a millisecond for each, and captures have thousands.

`tests/parsers/capture/test_ip_packets.py` holds them to those of scapy.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address
from typing import Final

IPV4: Final = 0x0800
TCP: Final = 6
UDP: Final = 17

Socket = tuple[str, int]
"""An address and a port."""


def checksum(content: bytes) -> int:
    """Return the Internet checksum (RFC 1071): 2^16 is 1 in the arithmetic of ones' complement."""
    padded = content + bytes(len(content) % 2)
    return 0xFFFF - (int.from_bytes(padded, "big") % 0xFFFF or 0xFFFF)


def transport_checksum(protocol: int, src: str, dst: str, content: bytes) -> int:
    """Return the checksum of a header and its payload behind the pseudo header of IPv4."""
    ends = IPv4Address(src).packed + IPv4Address(dst).packed
    return checksum(ends + struct.pack("!HH", protocol, len(content)) + content)


def ipv4(protocol: int, src: str, dst: str, payload: bytes, *, ttl: int = 64, tos: int = 0) -> bytes:
    """Return an IPv4 packet without options."""
    ends = IPv4Address(src).packed + IPv4Address(dst).packed
    fields = struct.pack("!BBHHHBB", 0x45, tos, 20 + len(payload), 1, 0, ttl, protocol)
    return fields + struct.pack("!H", checksum(fields + ends)) + ends + payload


def udp(src: Socket, dst: Socket, payload: bytes, *, ttl: int = 64, tos: int = 0) -> bytes:
    """Return an IPv4 packet with a datagram."""
    header = struct.pack("!HHH", src[1], dst[1], 8 + len(payload))
    found = transport_checksum(UDP, src[0], dst[0], header + bytes(2) + payload)
    # 0 says that there is none
    datagram = header + struct.pack("!H", found or 0xFFFF) + payload
    return ipv4(UDP, src[0], dst[0], datagram, ttl=ttl, tos=tos)


def tcp(
    src: Socket,
    dst: Socket,
    flags: str,
    *,
    seq: int,
    ack: int = 0,
    options: bytes = b"",
    payload: bytes = b"",
) -> bytes:
    """Return an IPv4 packet with a segment whose flags have their first letters; options are whole words."""
    bits = sum(1 << "FSRPAUEC".index(flag) for flag in flags)
    words = 5 + len(options) // 4
    header = struct.pack("!HHIIBBH", src[1], dst[1], seq, ack, words << 4, bits, 8192)
    rest = bytes(2) + options + payload
    found = transport_checksum(TCP, src[0], dst[0], header + bytes(2) + rest)
    return ipv4(TCP, src[0], dst[0], header + struct.pack("!H", found) + rest)


def maximum_segment_size(size: int) -> bytes:
    """Return the option of TCP (RFC 9293 section 3.7.1)."""
    return struct.pack("!BBH", 2, 4, size)


def ethernet(
    packet: bytes, *, src: str = "02:00:00:00:00:01", dst: str = "02:00:00:00:00:02", kind: int = IPV4
) -> bytes:
    """Return a frame with an IPv4 packet in it, or with what has another EtherType."""
    return bytes.fromhex((dst + src).replace(":", "")) + struct.pack("!H", kind) + packet
