"""Write a capture of short flows that come and go to standard output, as a stream of any length.

`python benchmarks/churn.py 50000000 100000 | tfrctrace flows -`: 50 million flows, of which at most 100,000
are known at a time. A connection opens, carries one segment, closes, and counts until it was quiet for two
maximum segment lifetimes; a query over UDP has one answer and counts until it was idle for five minutes.

`python benchmarks/churn.py 3000000 --a-second 4000 --transport mixed | tfrctrace flows -`: so many flows
begin in a second, and each ends after 120 ms. Of ten, four are connections that close, one is refused, one a
SYN without an answer, three are queries with an answer and one has none.
Everything follows from the flow's number, so the totals do, too.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

import numpy as np

START_NS: Final = 1_700_000_000_000_000_000
PCAP_HEADER: Final = bytes.fromhex("4d3cb2a1020004000000000000000000ffff000001000000")
"""Times in nanoseconds."""
PORTS: Final = 50_000
SEGMENT: Final = 100
"""Payload bytes of a connection, and of each datagram."""
SERVER: Final = 0xC0000201
QUIET_NS: Final = {"tcp": 120_000_000_000, "udp": 300_000_000_000, "mixed": 300_000_000_000}
SHORT_NS: Final = 120_000_000
"""From the first packet of a flow to its last if so many flows begin in a second."""
SYN, ACK, FIN, RST = 2, 16, 1, 4

Script = tuple[tuple[bool, int, int, int, int], ...]
"""Packets of a flow: from the server, flags (0 of UDP), number, acknowledgement, payload."""
CLOSED: Final[Script] = (
    (False, SYN, 0, 0, 0),
    (True, SYN | ACK, 0, 1, 0),
    (False, ACK, 1, 1, 0),
    (False, ACK, 1, 1, SEGMENT),
    (True, FIN | ACK, 1, 1 + SEGMENT, 0),
    (False, FIN | ACK, 1 + SEGMENT, 2, 0),
    (True, ACK, 2, 2 + SEGMENT, 0),
)
REFUSED: Final[Script] = ((False, SYN, 0, 0, 0), (True, RST | ACK, 0, 1, 0))
LONE_SYN: Final[Script] = CLOSED[:1]
ANSWERED: Final[Script] = ((False, 0, 0, 0, SEGMENT), (True, 0, 0, 0, SEGMENT))
UNANSWERED: Final[Script] = ANSWERED[:1]
MIXES: Final = {
    "tcp": (CLOSED,),
    "udp": (ANSWERED,),
    "mixed": (*(CLOSED,) * 4, REFUSED, LONE_SYN, *(ANSWERED,) * 3, UNANSWERED),
}
"""The flows that follow one another, again and again."""
SLOTS: Final = 50_000
"""Steps of time that are written at once."""

COMMON: Final = [
    ("seconds", "<u4"),
    ("ns", "<u4"),
    ("captured", "<u4"),
    ("length", "<u4"),
    ("ethernet", "V14"),
    ("version", ">u2"),
    ("total", ">u2"),
    ("id", ">u2"),
    ("fragment", ">u2"),
    ("ttl", "u1"),
    ("protocol", "u1"),
    ("checksum", ">u2"),
    ("src", ">u4"),
    ("dst", ">u4"),
    ("src_port", ">u2"),
    ("dst_port", ">u2"),
]
RECORD: Final = np.dtype(
    [
        *COMMON,
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset", "u1"),
        ("flags", "u1"),
        ("window", ">u2"),
        ("rest", ">u4"),
    ]
)
"""A header of TCP, or of UDP, whose length is where TCP has the first half of the number."""
RECORD_HEAD: Final = 16


def write_churn(flows: int, step_ns: int, lasting_ns: int, mix: tuple[Script, ...]) -> None:
    """Write the packets of `flows` flows, one of which begins every `step_ns`."""
    most = max(map(len, mix))
    apart = max(lasting_ns // step_ns // most, 1)
    # By flow and packet; what a shorter one has no packet for has a length of 0.
    scripts = np.zeros((len(mix), most, 6), np.int64)
    for kind, script in enumerate(mix):
        scripts[kind, : len(script), 0] = 1
        scripts[kind, : len(script), 1:] = script
    sys.stdout.buffer.write(PCAP_HEADER)
    end = flows + apart * (most - 1)
    for start in range(0, end, SLOTS):
        steps = np.arange(start, min(start + SLOTS, end))[:, None]
        numbers = steps - apart * np.arange(most)
        is_there, from_server, flags, seq, ack, payload = np.moveaxis(
            scripts[numbers % len(mix), np.arange(most)], 2, 0
        )
        is_there = (is_there > 0) & (numbers >= 0) & (numbers < flows)
        rows = np.zeros(numbers.shape, RECORD)
        times = START_NS + steps * step_ns + np.arange(most)
        rows["seconds"], rows["ns"] = times // 1_000_000_000, times % 1_000_000_000
        rows["version"], rows["ttl"], rows["fragment"], rows["id"] = 0x4500, 64, 0x4000, numbers
        rows["ethernet"] = np.void(bytes.fromhex("0200000000010200000000020800"))
        client, port = 0x0A000000 + numbers // PORTS, 1_024 + numbers % PORTS
        rows["src"] = np.where(from_server, SERVER, client)
        rows["dst"] = np.where(from_server, client, SERVER)
        rows["src_port"], rows["dst_port"] = (
            np.where(from_server, 443, port),
            np.where(from_server, port, 443),
        )
        is_tcp = flags > 0
        rows["protocol"] = np.where(is_tcp, 6, 17)
        rows["total"] = np.where(is_tcp, 40, 28) + payload
        rows["length"] = 14 + np.where(is_tcp, 40, 28) + payload
        rows["captured"] = RECORD.itemsize - RECORD_HEAD
        rows["seq"] = np.where(is_tcp, seq + np.where(from_server, 1_000, 0), (8 + payload) << 16)
        rows["ack"] = np.where(is_tcp & (flags != SYN), ack + np.where(from_server, 0, 1_000), 0)
        rows["offset"] = np.where(is_tcp, 0x50, 0)
        rows["flags"], rows["window"] = flags, np.where(is_tcp, 65_535, 0)
        sys.stdout.buffer.write(rows[is_there].tobytes())


def main() -> None:
    """Write what the arguments describe."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("flows", type=int)
    parser.add_argument("at_once", type=int, nargs="?", default=100_000)
    parser.add_argument("--a-second", type=int, help="flows that begin in a second, instead of AT_ONCE")
    parser.add_argument("--transport", choices=MIXES, default="tcp")
    arguments = parser.parse_args()
    if arguments.a_second:
        step_ns, lasting_ns = 1_000_000_000 // arguments.a_second, SHORT_NS
    else:
        # A flow lasts for an eighth of its quiet.
        quiet_ns = QUIET_NS[arguments.transport]
        step_ns, lasting_ns = max(quiet_ns * 9 // 8 // arguments.at_once, 1_000), quiet_ns // 8
    write_churn(arguments.flows, step_ns, lasting_ns, MIXES[arguments.transport])


if __name__ == "__main__":
    main()
