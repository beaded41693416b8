"""TFRC over UDP for the tests: datagrams, and the connection of the DCCP sample in them."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dccp_packets import ELAPSED_TIME, LOSS_EVENT_RATE, RECEIVE_RATE, RTT_ESTIMATE, Kind, Packet
from ip_packets import udp

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sample_traces"))

from tfrc_connection import END_NS, SIZE, START_NS, Connection

if TYPE_CHECKING:
    from collections.abc import Iterable

PORT: Final = 9000
SENDER: Final = ("192.0.2.1", 40_000)
RECEIVER: Final = ("198.51.100.7", PORT)
DATA, REPORT, HELLO = 1, 2, 3

LAYOUT: Final = """
[data]
when = { offset = 0, width = 1, is = 1 }
sequence = { offset = 1, width = 6 }
send_time = { offset = 7, width = 5, order = "little", unit = "us" }
rtt = { offset = 12, width = 3, unit = "us" }

[feedback]
when = { offset = 0, width = 1, is = 2 }
sequence = { offset = 1, width = 6 }
time_echo = { offset = 7, width = 5, order = "little" }
elapsed = { offset = 12, width = 4, unit = 1e-5 }
receive_rate = { offset = 16, width = 4, unit = "B/s" }
loss_event_rate = { offset = 20, width = 4, form = "inverse" }
"""
"""Where `data` and `report` have their fields."""


def datagram(payload: bytes, *, back: bool = False, ttl: int = 64, ecn: int = 0) -> bytes:
    """Return an IP packet from `SENDER` to `RECEIVER` or back."""
    src, dst = (RECEIVER, SENDER) if back else (SENDER, RECEIVER)
    return udp(src, dst, payload, ttl=ttl, tos=ecn)


def data(number: int, sent_us: int, rtt_us: int, size: int = SIZE) -> bytes:
    """Return the payload of a data packet."""
    head = struct.pack("!B", DATA) + (number % (1 << 48)).to_bytes(6, "big")
    head += (sent_us % (1 << 40)).to_bytes(5, "little") + rtt_us.to_bytes(3, "big")
    return head + bytes(size - len(head))


def report(number: int, echo_us: int, elapsed_10us: int, x_recv: int, inverse_p: int) -> bytes:
    """Return the payload of a report."""
    head = struct.pack("!B", REPORT) + (number % (1 << 48)).to_bytes(6, "big")
    head += (echo_us % (1 << 40)).to_bytes(5, "little")
    return head + struct.pack("!III", elapsed_10us, x_recv, inverse_p)


def options(of: Packet) -> dict[int, int]:
    """Return the options of a DCCP packet as numbers."""
    found, rest = {}, of.options
    while rest and rest[0] >= 32:
        found[rest[0]] = int.from_bytes(rest[2 : rest[1]], "big")
        rest = rest[rest[1] :]
    return found


class UdpConnection(Connection):
    """The simulated connection, whose packets a capture shows as datagrams of `LAYOUT`."""

    def __init__(self, *, at_sender: bool) -> None:
        self.sent_us: dict[int, int] = {}
        self.datagrams: list[tuple[int, bytes]] = []
        super().__init__(at_sender=at_sender)

    def capture(self, sent_ns: int, arrived_ns: int | None, what: Packet, *, back: bool = False) -> None:
        """Keep a datagram instead of a DCCP packet, if it is data or a report."""
        payload = self.payload_of(what, options(what), sent_ns)
        time_ns = sent_ns if self.at_sender != back else arrived_ns
        if payload is not None and time_ns is not None:
            self.datagrams.append((time_ns, datagram(payload, back=back)))

    def payload_of(self, header: Packet, options: dict[int, int], sent_ns: int) -> bytes | None:
        """Return the datagram for a DCCP packet, if it is data or a report."""
        if header.kind == Kind.Data:
            self.sent_us[header.seq] = sent_ns // 1000
            return data(header.seq, sent_ns // 1000, options[RTT_ESTIMATE])
        if header.kind != Kind.Ack or RECEIVE_RATE not in options:
            return None
        echo_us = self.sent_us[header.ack]
        return report(
            header.ack, echo_us, options[ELAPSED_TIME], options[RECEIVE_RATE], options[LOSS_EVENT_RATE]
        )

    def run(self) -> list[tuple[int, bytes]]:
        """Return what the capture shows, in order of time."""
        self.clock.run(END_NS)
        return sorted(self.datagrams, key=lambda entry: entry[0])


def write(path: Path, captured: Iterable[tuple[int, bytes]]) -> Path:
    """Write a pcap of raw IP with nanoseconds since the beginning of the simulation."""
    content = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 101))
    for time_ns, frame in captured:
        seconds, rest = divmod(START_NS + time_ns, 1_000_000_000)
        content += struct.pack("<IIII", seconds, rest, len(frame), len(frame)) + frame
    path.write_bytes(content)
    return path
