"""Captures of calls without their media."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MEDIA = 42 + 12 + 8 + 4
"""Ethernet, IP, UDP, RTP with an extension of eight bytes, and the beginning of the media."""


def records(capture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Give headers and data of a pcap file's records."""
    at = 24
    while at < len(capture):
        length = struct.unpack_from("<I", capture, at + 8)[0]
        yield capture[at : at + 16], capture[at + 16 : at + 16 + length]
        at += 16 + length


def without_media(capture: bytes) -> bytes:
    """Cut the packets of RTP, and leave those of RTCP whole."""
    out = bytearray(capture[:24])
    for header, data in records(capture):
        is_rtcp = 192 <= data[43] <= 223
        kept = data if is_rtcp else data[:MEDIA]
        out += header[:8] + struct.pack("<I", len(kept)) + header[12:] + kept
    return bytes(out)
