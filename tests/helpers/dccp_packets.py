"""DCCP packets for the tests: headers as RFC 4340 section 5.1 draws them, options as bytes."""

from __future__ import annotations

import struct
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from typing import Final

from ip_packets import ipv4, transport_checksum


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


DCCP: Final = 33
"""The protocol's number."""


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


@dataclass(frozen=True)
class Packet:
    """A packet of the conversation between `CLIENT` and `SERVER`, from the latter if `back`."""

    kind: Kind
    _: KW_ONLY
    back: bool = False
    seq: int = 0
    ack: int = 0
    short: bool = False
    """Whether its sequence number has 24 bits; only packets without an acknowledgement do here."""
    ccval: int = 0
    cscov: int = 0
    service: int = 0
    code: int = 0
    options: bytes = b""
    payload: bytes = b""
    ecn: int = 2

    def __bytes__(self) -> bytes:
        """Return the IP packet."""
        (src, _), (dst, _) = self._ends()
        return ipv4(DCCP, src, dst, self.datagram(), tos=self.ecn)

    def datagram(self) -> bytes:
        """Return header and payload."""
        (src, sport), (dst, dport) = self._ends()
        rest = self._numbers() + self.options
        rest += bytes(-len(rest) % 4)
        words = 2 + len(rest) // 4
        start = struct.pack("!HHBB", sport, dport, words, self.ccval << 4 | self.cscov)
        rest += self.payload
        found = transport_checksum(DCCP, src, dst, start + bytes(2) + rest)
        return start + struct.pack("!H", found) + rest

    def _ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        return (SERVER, CLIENT) if self.back else (CLIENT, SERVER)

    def _numbers(self) -> bytes:
        """Return the header from its type on, without options."""
        if self.short:
            return bytes([self.kind << 1]) + self.seq.to_bytes(3, "big")
        numbers = bytes([self.kind << 1 | 1, 0]) + self.seq.to_bytes(6, "big")
        if self.kind not in {Kind.Request, Kind.Data}:
            numbers += bytes(2) + self.ack.to_bytes(6, "big")
        if self.kind in {Kind.Request, Kind.Response}:
            numbers += struct.pack("!I", self.service)
        if self.kind == Kind.Reset:
            numbers += struct.pack("!I", self.code)
        return numbers


def handshake() -> list[Packet]:
    """Return Request, Response and Ack, which agree on CCID 3 both ways."""
    change = option(CHANGE_L, b"\x01\x03") + option(CHANGE_R, b"\x01\x03")
    confirm = option(CONFIRM_L, b"\x01\x03\x03\x02") + option(CONFIRM_R, b"\x01\x03\x03\x02")
    return [
        Packet(Kind.Request, seq=FIRST, service=SERVICE, options=change),
        Packet(Kind.Response, back=True, seq=100, ack=FIRST, service=SERVICE, options=confirm),
        Packet(Kind.Ack, seq=FIRST + 1, ack=100, options=confirm),
    ]
