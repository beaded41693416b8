"""What tcptrace and tshark say of one capture: directions, acknowledgements, streams of RTP, DNS, names."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "data"))
import witness

MOST_SECONDS = 120

Ends = tuple[str, int, str, int]
"""Source and its port, destination and its port."""
Texts = dict[str, str]

COUNTED = {
    "retransmission": ("retransmission", "fast_retransmission", "spurious_retransmission"),
    "out_of_order": ("out_of_order",),
    "zero_window": ("zero_window",),
    "zero_window_probe": ("zero_window_probe",),
    "keep_alive": ("keep_alive",),
    "duplicate_ack": ("duplicate_ack",),
    "window_full": ("window_full",),
}
"""What is counted in each direction, by its flags in `tcp.analysis`."""
OF_DATA = ("retransmission", "out_of_order")
"""What counts only packets with payload: tshark calls a repeated SYN or FIN a retransmission, too."""
FLAGS = tuple(f"tcp.analysis.{flag}" for flags in COUNTED.values() for flag in flags)
FIELDS = (
    "frame.number", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst",
    "tcp.srcport", "udp.srcport", "tcp.dstport", "udp.dstport",
    "tcp.stream", "tcp.len", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.window_size_value",
    "tcp.window_size", "tcp.window_size_scalefactor",
    "tcp.analysis.ack_rtt", "dns.time", "tls.handshake.extensions_server_name", "http.host", *FLAGS,
)  # fmt: skip
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
NUMBERS = 1 << 32
DNS_PORT = "53"
PORT = re.compile(r":[0-9]*$")
"""Of a host."""
SCALE_NOT_KNOWN = "-1"

STREAM = re.compile(
    r"^\s*[\d.]+\s+[\d.]+\s+(?P<src>\S+)\s+(?P<src_port>\d+)\s+(?P<dst>\S+)\s+(?P<dst_port>\d+)"
    r"\s+0x(?P<ssrc>[0-9A-Fa-f]+)\s+.*?\s(?P<packets>\d+)\s+(?P<lost>-?\d+) \(-?[\d.]+%\)"
    r"\s+[\d.-]+\s+[\d.-]+\s+[\d.-]+\s+(?P<jitter_min>[\d.-]+)\s+(?P<jitter_mean>[\d.-]+)\s+(?P<jitter_max>[\d.-]+)"
)
"""A line of `-z rtp,streams`."""


@dataclass
class Direction:
    """One direction of a TCP connection, as tshark sees it."""

    streams: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    windows: list[int] = field(default_factory=list)
    """Announced by packets other than SYN and RST, where the scale is known."""
    control_windows: set[int] = field(default_factory=set)
    """Announced by SYN and RST packets."""
    end: int | None = None
    """The highest sequence number sent."""
    acknowledged: tuple[int, int] | None = None
    """Number and window of the latest acknowledgement sent."""
    duplicate_acks: int = 0
    """Acknowledgements sent that are duplicates by RFC 5681 section 2, which tshark's own need not be."""


@dataclass
class Tshark:
    """What tshark says of a capture."""

    directions: defaultdict[Ends, Direction] = field(default_factory=lambda: defaultdict(Direction))
    ack_rtt_ns: dict[int, tuple[Ends, int]] = field(default_factory=dict)
    """By the number of the acknowledging packet, with its ends."""
    dns_ns: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """From query to answer over UDP, by client."""
    names: dict[Ends, str] = field(default_factory=dict)
    """What clients ask for first in TLS over TCP and QUIC."""
    hosts: dict[Ends, str] = field(default_factory=dict)
    """The host of the first request of HTTP/1 that names one."""
    quic: set[Ends] = field(default_factory=set)
    streams: dict[tuple[Ends, int], dict[str, float]] = field(default_factory=dict)
    """Streams of RTP by ends and source."""


def ask_tshark(capture: Path) -> Tshark | None:
    """Return what tshark says; None if it cannot read the capture in time."""
    command = ["tshark", "-n", "-r", str(capture), "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]
    command += ["--enable-heuristic", "rtp_udp", "-z", "rtp,streams"]
    command += ["-Y", "(tcp or udp) and not icmp and not icmpv6", "-T", "fields", "-E", "occurrence=l"]
    for name in FIELDS:
        command += ["-e", name]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    said = Tshark()
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.count("\t") == len(FIELDS) - 1:
            _add(said, dict(zip(FIELDS, line.split("\t"), strict=True)))
        elif stream := STREAM.match(line):
            ends = (stream["src"], int(stream["src_port"]), stream["dst"], int(stream["dst_port"]))
            numbers = ("packets", "lost", "jitter_min", "jitter_mean", "jitter_max")
            said.streams[ends, int(stream["ssrc"], 16)] = {name: float(stream[name]) for name in numbers}
    return said


def _add(said: Tshark, packet: Texts) -> None:
    transport = "tcp" if packet["tcp.srcport"] else "udp"
    source, destination = (packet[f"ip.{end}"] or packet[f"ipv6.{end}"] for end in ("src", "dst"))
    ports = packet[f"{transport}.srcport"], packet[f"{transport}.dstport"]
    if not all(ports):
        return
    ends = (source, int(ports[0]), destination, int(ports[1]))
    if name := packet["tls.handshake.extensions_server_name"]:
        said.names.setdefault(ends, name)
        if transport == "udp":
            said.quic.add(ends)
    if transport == "tcp":
        if host := packet["http.host"]:
            said.hosts.setdefault(ends, PORT.sub("", host).strip("[]"))
        _add_segment(said, ends, packet)
    elif packet["dns.time"] and ports[0] == DNS_PORT:
        said.dns_ns[destination].append(_nanoseconds(packet["dns.time"]))


def _add_segment(said: Tshark, ends: Ends, packet: Texts) -> None:
    direction = said.directions[ends]
    direction.streams.add(packet["tcp.stream"])
    has_data = packet["tcp.len"] not in {"", "0"}
    for name, flags in COUNTED.items():
        is_flagged = any(packet[f"tcp.analysis.{flag}"] for flag in flags)
        direction.counts[name] += is_flagged and (has_data or name not in OF_DATA)
    if packet["tcp.window_size"]:
        _add_numbers(direction, said.directions[ends[2:] + ends[:2]], packet)
    if packet["tcp.analysis.ack_rtt"]:
        said.ack_rtt_ns[int(packet["frame.number"])] = ends, _nanoseconds(packet["tcp.analysis.ack_rtt"])


def _add_numbers(direction: Direction, other: Direction, packet: Texts) -> None:
    flags, length = int(packet["tcp.flags"], 16), int(packet["tcp.len"] or 0)
    window = int(packet["tcp.window_size"])
    if flags & (SYN | RST):
        direction.control_windows.add(window)
    elif packet["tcp.window_size_scalefactor"] != SCALE_NOT_KNOWN:
        direction.windows.append(window)
    acknowledged = (int(packet["tcp.ack_raw"] or 0), int(packet["tcp.window_size_value"]))
    is_outstanding = other.end is not None and is_before(acknowledged[0], other.end)
    if flags & (FIN | SYN | RST | ACK) == ACK and not length and is_outstanding:
        direction.duplicate_acks += acknowledged == direction.acknowledged
    if flags & ACK:
        direction.acknowledged = acknowledged
    end = (int(packet["tcp.seq_raw"]) + length + bool(flags & SYN) + bool(flags & FIN)) % NUMBERS
    if direction.end is None or is_before(direction.end, end):
        direction.end = end


def is_before(one: int, other: int) -> bool:
    """Return whether a sequence number lies before another one (RFC 9293 section 3.4)."""
    return 0 < (other - one) % NUMBERS < NUMBERS // 2


def _nanoseconds(seconds: str) -> int:
    whole, _, decimals = seconds.partition(".")
    return int(whole + decimals.ljust(9, "0")[:9])


def ask_tcptrace(capture: Path) -> dict[Ends, Texts] | None:
    """Return tcptrace's fields of directions whose ends no second connection has; None if not read."""
    directions = witness.tcptrace_directions(capture)
    if directions is None:
        return None
    often = Counter(ends for ends, _ in directions)
    return {ends: fields for ends, fields in directions if often[ends] == 1}
