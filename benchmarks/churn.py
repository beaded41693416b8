"""Write a capture of short flows that come and go to standard output, as a stream of any length.

`python benchmarks/churn.py 50000000 100000 | tfrctrace flows -`: 50 million flows, of which at most 100,000
are known at a time. A connection opens, carries one segment, closes, and counts until it was quiet for two
maximum segment lifetimes; a query over UDP has one answer and counts until it was idle for 124 minutes.
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
QUIET_NS: Final = {"tcp": 120_000_000_000, "udp": 7_440_000_000_000}
SYN, ACK, FIN = 2, 16, 1
TCP_SCRIPT: Final = (
    # From the server, flags, number, acknowledgement, payload.
    (False, SYN, 0, 0, 0),
    (True, SYN | ACK, 0, 1, 0),
    (False, ACK, 1, 1, 0),
    (False, ACK, 1, 1, SEGMENT),
    (True, FIN | ACK, 1, 1 + SEGMENT, 0),
    (False, FIN | ACK, 1 + SEGMENT, 2, 0),
    (True, ACK, 2, 2 + SEGMENT, 0),
)
UDP_SCRIPT: Final = ((False, 0, 0, 0, SEGMENT), (True, 0, 0, 0, SEGMENT))
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
TCP: Final = np.dtype(
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
UDP: Final = np.dtype([*COMMON, ("udp_length", ">u2"), ("udp_checksum", ">u2"), ("payload", f"V{SEGMENT}")])
RECORD_HEAD: Final = 16


def write_churn(flows: int, at_once: int, transport: str) -> None:
    """Write the packets of `flows` flows, at most `at_once` of which are known at a time."""
    script = TCP_SCRIPT if transport == "tcp" else UDP_SCRIPT
    layout = TCP if transport == "tcp" else UDP
    # A flow begins in each step of time; its packets are some steps apart, an eighth of its quiet in all.
    step_ns = max(QUIET_NS[transport] * 9 // 8 // at_once, 1_000)
    apart = max(QUIET_NS[transport] // 8 // step_ns // len(script), 1)
    sys.stdout.buffer.write(PCAP_HEADER)
    end = flows + apart * (len(script) - 1)
    for start in range(0, end, SLOTS):
        steps = np.arange(start, min(start + SLOTS, end))[:, None]
        numbers = steps - apart * np.arange(len(script))
        is_there = (numbers >= 0) & (numbers < flows)
        rows = np.zeros(numbers.shape, layout)
        times = START_NS + steps * step_ns + np.arange(len(script))
        rows["seconds"], rows["ns"] = times // 1_000_000_000, times % 1_000_000_000
        rows["version"], rows["ttl"], rows["fragment"], rows["id"] = 0x4500, 64, 0x4000, numbers
        rows["ethernet"] = np.void(bytes.fromhex("0200000000010200000000020800"))
        rows["protocol"] = 6 if transport == "tcp" else 17
        client, port = 0x0A000000 + numbers // PORTS, 1_024 + numbers % PORTS
        for at, (from_server, flags, seq, ack, payload) in enumerate(script):
            row = rows[:, at]
            row["src"], row["dst"] = (
                (0xC0000201, client[:, at]) if from_server else (client[:, at], 0xC0000201)
            )
            row["src_port"], row["dst_port"] = (443, port[:, at]) if from_server else (port[:, at], 443)
            headers = 40 if transport == "tcp" else 28
            row["total"], row["length"] = headers + payload, 14 + headers + payload
            row["captured"] = layout.itemsize - RECORD_HEAD
            if transport == "tcp":
                row["seq"], row["ack"] = (
                    seq + (1_000 if from_server else 0),
                    ack + (0 if from_server else 1_000),
                )
                row["offset"], row["flags"], row["window"] = 0x50, flags, 65_535
            else:
                row["udp_length"] = 8 + payload
        sys.stdout.buffer.write(rows[is_there].tobytes())


def main() -> None:
    """Write what the arguments describe."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("flows", type=int)
    parser.add_argument("at_once", type=int)
    parser.add_argument("--transport", choices=("tcp", "udp"), default="tcp")
    arguments = parser.parse_args()
    write_churn(arguments.flows, arguments.at_once, arguments.transport)


if __name__ == "__main__":
    main()
