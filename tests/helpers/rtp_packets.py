"""RTP and RTCP for the tests: RTP's headers by scapy, what it does not know byte by byte from the RFCs."""

from __future__ import annotations

import struct
from typing import Any, Final

from ip_packets import ethernet, udp
from scapy.layers.rtp import RTP

SENDER: Final = ("192.0.2.1", 5004)
RECEIVER: Final = ("198.51.100.7", 5006)
SSRC: Final = 0x11223344
REPORTER: Final = 0x55667788


def frame(payload: bytes, *, back: bool = False, ports: int = 0, ecn: int = 0) -> bytes:
    """Return a frame from `SENDER` to `RECEIVER` or back, `ports` above theirs."""
    (src, sport), (dst, dport) = (RECEIVER, SENDER) if back else (SENDER, RECEIVER)
    return ethernet(udp((src, sport + ports), (dst, dport + ports), payload, tos=ecn))


def one_byte(**elements: bytes) -> bytes:
    """Return an extension of the one-byte form (RFC 8285); `_3=b".."` has the identifier 3."""
    data = b"".join(bytes([int(name[1:]) << 4 | len(value) - 1]) + value for name, value in elements.items())
    data += bytes(-len(data) % 4)
    return struct.pack("!HH", 0xBEDE, len(data) // 4) + data


def media(number: int, timestamp: int, *, extension: bytes = b"", size: int = 160, **fields: Any) -> bytes:
    """Return an RTP packet with `size` bytes of media."""
    header = RTP(
        payload_type=fields.pop("payload_type", 0),
        sequence=number % 65_536,
        timestamp=timestamp % (1 << 32),
        sourcesync=fields.pop("ssrc", SSRC),
        extension=0,
        **fields,
    )
    packed = bytearray(bytes(header))
    packed[0] |= 0x10 if extension else 0
    return bytes(packed) + extension + bytes(size)


def rtcp(packet_type: int, count: int, body: bytes) -> bytes:
    """Return one packet of a compound."""
    assert len(body) % 4 == 0
    return struct.pack("!BBH", 0x80 | count, packet_type, len(body) // 4) + body


def block(**fields: int) -> bytes:
    """Return a report block (RFC 3550 section 6.4.1)."""
    values = {"ssrc": SSRC, "fraction": 0, "lost": 0, "highest": 0, "jitter": 0, "lsr": 0, "dlsr": 0} | fields
    head = struct.pack("!IB", values["ssrc"], values["fraction"])
    lost = (values["lost"] & 0xFFFFFF).to_bytes(3, "big")
    return (
        head + lost + struct.pack("!4I", values["highest"], values["jitter"], values["lsr"], values["dlsr"])
    )


def receiver_report(*blocks: bytes, reporter: int = REPORTER) -> bytes:
    """Return an RR."""
    return rtcp(201, len(blocks), struct.pack("!I", reporter) + b"".join(blocks))


def sender_report(ntp: float, timestamp: int, *blocks: bytes, ssrc: int = SSRC, packets: int = 0) -> bytes:
    """Return an SR at `ntp` seconds of the wall clock."""
    info = struct.pack("!IQIII", ssrc, round(ntp * 2**32), timestamp % (1 << 32), packets, packets * 160)
    return rtcp(200, len(blocks), info + b"".join(blocks))


def tfrc_report(echo: int, delay: int, x_recv: int, p: float) -> bytes:
    """Return TFRC's feedback (draft-ietf-avt-tfrc-profile-10)."""
    return rtcp(205, 2, struct.pack("!6I", REPORTER, SSRC, echo, delay, x_recv, round(p * (2**32 - 1))))


def congestion_report(time: float, first: int, ages: list[float | None]) -> bytes:
    """Return RFC 8888's feedback at `time`: for each packet from `first` on its age in seconds, or None."""
    metrics = [0 if age is None else 0x8000 | round(age * 1024) for age in ages]
    packed = struct.pack(f"!{len(metrics)}H", *metrics)
    packed += bytes(-len(packed) % 4)
    head = struct.pack("!IIHH", REPORTER, SSRC, first % 65_536, len(metrics))
    return rtcp(205, 11, head + packed + struct.pack("!I", round(time * 65_536) % (1 << 32)))


def transport_wide_report(number: int, first: int, reference: int, deltas: list[int | None]) -> bytes:
    """Return transport-wide feedback: for each packet from `first` on units of 0.25 ms, or None."""
    symbols = [0 if delta is None else 1 for delta in deltas] + [0] * (-len(deltas) % 7)
    chunks = b""
    for at in range(0, len(symbols), 7):
        chunk = 0xC000
        for place, symbol in enumerate(symbols[at : at + 7]):
            chunk |= symbol << 2 * (6 - place)
        chunks += struct.pack("!H", chunk)
    data = chunks + bytes(delta for delta in deltas if delta is not None)
    data += bytes(-len(data) % 4)
    head = struct.pack("!IIHH", REPORTER, SSRC, first % 65_536, len(deltas))
    return rtcp(205, 15, head + reference.to_bytes(3, "big") + bytes([number]) + data)
