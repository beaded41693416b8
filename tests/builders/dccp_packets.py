"""DCCP packets for the tests, built with scapy, which knows the protocol's number and nothing more of it."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, Final

from scapy.fields import (
    BitEnumField,
    BitField,
    ConditionalField,
    IntField,
    ShortField,
    StrLenField,
    XShortField,
)
from scapy.layers.inet import IP
from scapy.packet import Packet, bind_layers


class Kind(IntEnum):
    """Packet types (RFC 4340 section 5.1)."""

    Request = 0
    Response = 1
    Data = 2
    Ack = 3
    DataAck = 4
    CloseReq = 5
    Close = 6
    Reset = 7
    Sync = 8
    SyncAck = 9


def _has_ack(packet: Packet) -> bool:
    return packet.kind not in {Kind.Request, Kind.Data}


def _options_bytes(packet: Packet) -> int:
    ack = (8 if packet.x else 4) if _has_ack(packet) else 0
    code = 4 if packet.kind in {Kind.Request, Kind.Response, Kind.Reset} else 0
    return packet.offset * 4 - (16 if packet.x else 12) - ack - code


class DCCP(Packet):  # type: ignore[misc] # scapy has no types
    """A DCCP header with its options as bytes, see `option`."""

    name = "DCCP"
    fields_desc: Final = [
        ShortField("sport", 0),
        ShortField("dport", 0),
        BitField("offset", None, 8),
        BitField("ccval", 0, 4),
        BitField("cscov", 0, 4),
        XShortField("checksum", None),
        BitField("reserved", 0, 3),
        BitEnumField("kind", Kind.Data, 4, {kind.value: kind.name for kind in Kind}),
        BitField("x", 1, 1),
        ConditionalField(BitField("seq_reserved", 0, 8), lambda packet: packet.x),
        ConditionalField(BitField("seq", 0, 48), lambda packet: packet.x),
        ConditionalField(BitField("short_seq", 0, 24), lambda packet: not packet.x),
        ConditionalField(BitField("ack_reserved", 0, 16), lambda packet: packet.x and _has_ack(packet)),
        ConditionalField(BitField("ack", 0, 48), lambda packet: packet.x and _has_ack(packet)),
        ConditionalField(
            BitField("short_ack_reserved", 0, 8), lambda packet: not packet.x and _has_ack(packet)
        ),
        ConditionalField(BitField("short_ack", 0, 24), lambda packet: not packet.x and _has_ack(packet)),
        ConditionalField(IntField("service", 0), lambda packet: packet.kind in {Kind.Request, Kind.Response}),
        ConditionalField(IntField("code", 0), lambda packet: packet.kind == Kind.Reset),
        StrLenField("options", b"", length_from=_options_bytes),
    ]

    def post_build(self, header: bytes, payload: bytes) -> bytes:
        """Pad the options to whole words, and fill in where they end and the checksum."""
        header += bytes(-len(header) % 4)
        if self.offset is None:
            header = header[:4] + bytes([len(header) // 4]) + header[5:]
        if self.checksum is None and isinstance(self.underlayer, IP):
            header = header[:6] + struct.pack("!H", self._checksum(header + payload)) + header[8:]
        return header + payload

    def _checksum(self, content: bytes) -> int:
        from scapy.utils import checksum, inet_aton

        ends = inet_aton(self.underlayer.src) + inet_aton(self.underlayer.dst)
        pseudo = ends + struct.pack("!BBH", 0, 33, len(content))
        return int(checksum(pseudo + content))


bind_layers(IP, DCCP, proto=33)


def option(kind: int, value: int | bytes = b"", *, bytes_of: int = 4) -> bytes:
    """Return an option of `kind` (32 and above) with its value, a number in `bytes_of` bytes."""
    data = value.to_bytes(bytes_of, "big") if isinstance(value, int) else value
    return bytes([kind, len(data) + 2]) + data


CHANGE_L: Final = 32
CONFIRM_L: Final = 33
CHANGE_R: Final = 34
CONFIRM_R: Final = 35
NDP_COUNT: Final = 37
ACK_VECTOR: Final = 38
TIMESTAMP: Final = 41
TIMESTAMP_ECHO: Final = 42
ELAPSED_TIME: Final = 43
LOSS_EVENT_RATE: Final = 192
LOSS_INTERVALS: Final = 193
RECEIVE_RATE: Final = 194
RTT_ESTIMATE: Final = 128

CLIENT: Final = ("192.0.2.1", 40_000)
SERVER: Final = ("198.51.100.7", 5001)
SERVICE: Final = 0x54465243
FIRST: Final = 0xFFFF_FFFF_FFF0
"""The client's first sequence number: it wraps after sixteen packets."""


def packet(kind: Kind, *, back: bool = False, ecn: int = 2, payload: bytes = b"", **fields: Any) -> IP:
    """Return a packet of the conversation between `CLIENT` and `SERVER`, from the latter if `back`."""
    (src, sport), (dst, dport) = (SERVER, CLIENT) if back else (CLIENT, SERVER)
    header = DCCP(sport=sport, dport=dport, kind=kind, **fields)
    return IP(src=src, dst=dst, tos=ecn, id=1) / header / payload


def handshake() -> list[IP]:
    """Return Request, Response and Ack, which agree on CCID 3 both ways."""
    change = option(CHANGE_L, b"\x01\x03") + option(CHANGE_R, b"\x01\x03")
    confirm = option(CONFIRM_L, b"\x01\x03\x03\x02") + option(CONFIRM_R, b"\x01\x03\x03\x02")
    return [
        packet(Kind.Request, seq=FIRST, service=SERVICE, options=change),
        packet(Kind.Response, back=True, seq=100, ack=FIRST, service=SERVICE, options=confirm),
        packet(Kind.Ack, seq=FIRST + 1, ack=100, options=confirm),
    ]
