"""Give each command inputs made to exhaust it, and print time, peak memory, status and first message.

`python benchmarks/floods.py [--share N] [--only NAME ...] [--commands COMMAND ...]`; `--share 100` makes each
flood a hundredth as large. Peak memory is that of the largest process (`ru_maxrss`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, BinaryIO

    from numpy.typing import NDArray

    Records = NDArray[Any]

CHUNK: Final = 500_000
"""Packets or lines that are made at once."""
START_S: Final = 1_700_000_000
QUIC_VECTORS: Final = (
    Path(__file__).resolve().parent.parent / "tests" / "data" / "vectors" / "quic_initial.json"
)
PCAP_HEADER: Final = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
COMMANDS: Final = {
    "flows": ["flows"],
    "metrics": ["metrics"],
    "report": ["report", "-o", "report.html"],
    "replay": ["replay"],
    "convert": ["convert", "--what", "packets", "-o", "packets.parquet"],
}
MEMBER_BYTES: Final = 1 << 30
"""Zeros in one member of a compressed file."""

HEAD: Final = [
    ("seconds", "<u4"),
    ("us", "<u4"),
    ("captured", "<u4"),
    ("length", "<u4"),
    ("ethernet", "V14"),
    ("version", "u1"),
    ("tos", "u1"),
    ("total", ">u2"),
    ("id", ">u2"),
    ("fragment", ">u2"),
    ("ttl", "u1"),
    ("protocol", "u1"),
    ("checksum", ">u2"),
    ("src", ">u4"),
    ("dst", ">u4"),
    ("sport", ">u2"),
    ("dport", ">u2"),
]
"""A pcap record with Ethernet, IPv4 and the ports of TCP or UDP."""
TCP: Final = [
    ("seq", ">u4"),
    ("ack", ">u4"),
    ("offset", "u1"),
    ("flags", "u1"),
    ("window", ">u2"),
    ("tail", ">u4"),
]
UDP: Final = [("udp_length", ">u2"), ("udp_checksum", ">u2")]
RTP: Final = [
    *UDP,
    ("rtp", "u1"),
    ("payload_type", "u1"),
    ("rtp_seq", ">u2"),
    ("timestamp", ">u4"),
    ("ssrc", ">u4"),
]
SYN, ACK = 0x02, 0x10


def records(number: NDArray[np.int64], fields: list[tuple[str, str]], protocol: int, length: int) -> Records:
    """Return packets of one size, 10 µs apart, between two hosts; `length` is that of the IP packet."""
    made = np.zeros(len(number), dtype=np.dtype([*HEAD, *fields]))
    made["seconds"], made["us"] = START_S + number // 100_000, 10 * (number % 100_000)
    made["captured"] = made.dtype.itemsize - 16
    made["length"] = 14 + length
    made["ethernet"] = np.void(bytes(12) + b"\x08\x00")
    made["version"], made["ttl"], made["protocol"], made["total"] = 0x45, 64, protocol, length
    made["id"] = number
    made["src"], made["dst"] = 0x0A00_0001, 0xC0A8_0001
    made["sport"], made["dport"] = 40_000, 80
    return made


def syns(number: NDArray[np.int64]) -> Records:
    """SYNs, each of another host and port."""
    made = records(number, TCP, 6, 40)
    made["src"] += number.astype(np.uint32)
    made["sport"] = 1024 + number % 60_000
    made["seq"], made["offset"], made["flags"], made["window"] = number, 0x50, SYN, 1024
    return made


def datagrams(number: NDArray[np.int64]) -> Records:
    """Datagrams, each of another host: a UDP flow each."""
    made = records(number, UDP, 17, 228)
    made["src"] += number.astype(np.uint32)
    made["udp_length"] = 208
    return made


def initials(number: NDArray[np.int64]) -> Records:
    """Initial packets of QUIC that their public keys open (RFC 9001 appendix A.2), each of another host."""
    payload = bytes.fromhex(json.loads(QUIC_VECTORS.read_text())[0]["packet"])
    made = records(number, [*UDP, ("payload", f"V{len(payload)}")], 17, 28 + len(payload))
    made["src"] += number.astype(np.uint32)
    made["dport"], made["udp_length"], made["payload"] = 443, 8 + len(payload), np.void(payload)
    return made


def rtp(number: NDArray[np.int64], packets: int = 8) -> Records:
    """RTP of many sources, some packets each."""
    made = records(number, RTP, 17, 200)
    source, turn = number // packets, number % packets
    made["src"] += source.astype(np.uint32)
    made["sport"], made["dport"], made["udp_length"] = 5004, 5004, 180
    made["rtp"] = 0x80
    made["rtp_seq"], made["timestamp"], made["ssrc"] = turn, 160 * turn, source
    return made


def holes(number: NDArray[np.int64]) -> Records:
    """One connection of which every other segment is missing."""
    made = records(number, TCP, 6, 140)
    made["seq"], made["offset"], made["flags"], made["window"] = 200 * number % (1 << 32), 0x50, ACK, 1024
    return made


def capture(make: Callable[[NDArray[np.int64]], Records], packets: int) -> Callable[[Path], None]:
    """Return what writes a capture of so many packets."""

    def write(path: Path) -> None:
        with open(path, "wb") as file:
            file.write(PCAP_HEADER)
            for start in range(0, packets, CHUNK):
                file.write(make(np.arange(start, min(start + CHUNK, packets))).tobytes())

    return write


def nodes(count: int) -> Callable[[Path], None]:
    """Return what writes an ns-2 trace of so many nodes, one packet of each to the next."""

    def lines(start: int) -> Iterator[str]:
        for node in range(start, min(start + CHUNK, count), 2):
            end = f"{node} {node + 1} tcp 1040 ------- {node} {node}.0 {node + 1}.0 0 {node}\n"
            for event, later in (("+", 0), ("-", 0), ("r", 0.01)):
                yield f"{event} {node / 1e4 + later:.6f} {end}"

    def write(path: Path) -> None:
        with open(path, "w") as file:
            for start in range(0, count, CHUNK):
                file.writelines(lines(start))

    return write


def zeros(compress: Callable[[bytes], bytes], members: int) -> Callable[[Path], None]:
    """Return what writes a compressed file of a capture's header and zeros, one GiB in each member."""

    def write(path: Path) -> None:
        with open(path, "wb") as file:
            file.write(compress(PCAP_HEADER))
            member = compress(bytes(MEMBER_BYTES))
            for _ in range(members):
                file.write(member)

    return write


def zstd(data: bytes) -> bytes:
    """Compress with the program."""
    return subprocess.run(["zstd", "-q", "-1", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


@dataclass(frozen=True, slots=True)
class Flood:
    """A file made to exhaust who reads it."""

    name: str
    suffix: str
    write: Callable[[Path], None]


def floods(share: int) -> list[Flood]:
    """Return the floods, each a `share`-th of its full size."""
    million, gib = 1_000_000 // share, max(100 // share, 1)
    sources = 300_000 // share
    made = [
        Flood(f"{10 * million:,} SYNs", "pcap", capture(syns, 10 * million)),
        Flood(f"{million:,} UDP flows", "pcap", capture(datagrams, million)),
        Flood(f"{million:,} QUIC Initial packets", "pcap", capture(initials, million)),
        Flood(f"{sources:,} RTP sources", "pcap", capture(rtp, 8 * sources)),
        Flood(f"{10 * million:,} holes", "pcap", capture(holes, 10 * million)),
        Flood(f"{million:,} nodes of ns-2", "tr", nodes(million)),
        Flood(f"{gib} GiB in gzip", "pcap.gz", zeros(lambda data: gzip.compress(data, 1), gib)),
        Flood(f"{gib} GiB in xz", "pcap.xz", zeros(lambda data: lzma.compress(data, preset=0), gib)),
    ]
    if shutil.which("zstd"):
        made.append(Flood(f"{gib} GiB in zstd", "pcap.zst", zeros(zstd, gib)))
    return made


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    seconds: float
    peak_mb: float
    status: int
    message: str


def run(command: Sequence[str], folder: Path) -> Outcome:
    """Run a command in a folder; its messages are kept and its output is not."""
    with tempfile.TemporaryFile() as messages, open(os.devnull, "wb") as nothing:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=nothing, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        message = first_message(messages)
    scale = 1 if sys.platform == "darwin" else 1024
    return Outcome(seconds, usage.ru_maxrss * scale / 1e6, process.returncode, message)


def first_message(messages: BinaryIO) -> str:
    """Return the first error, else the first warning."""
    lines = messages.read().decode(errors="replace").replace("\r", "\n").splitlines()
    for start in ("error:", "warning:"):
        for line in lines:
            if line.startswith(start):
                return line
    return ""


def main() -> None:
    """Print a row for each flood and command."""
    parser = argparse.ArgumentParser(description="Measure commands on inputs made to exhaust them.")
    parser.add_argument("--share", type=int, default=1, help="make each flood a SHARE-th as large")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="floods whose names contain NAME")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    arguments = parser.parse_args()

    program = str(Path(sys.executable).with_name("tfrctrace"))
    print("| flood | command | s | MB | status | message |\n|---|---|--:|--:|--:|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for flood in floods(arguments.share):
            if arguments.only and not any(part in flood.name for part in arguments.only):
                continue
            path = folder / f"flood.{flood.suffix}"
            flood.write(path)
            for command in arguments.commands:
                first, *options = COMMANDS[command]
                outcome = run([program, first, path.name, *options], folder)
                print(
                    f"| {flood.name} | `{command}` | {outcome.seconds:.1f} | {outcome.peak_mb:.0f} "
                    f"| {outcome.status} | {outcome.message} |",
                    flush=True,
                )
            path.unlink()


if __name__ == "__main__":
    main()
