"""Compare tfrctrace with tshark packet by packet, and with tcptrace by connection, on any captures.

`python tests/data/agreement.py FOLDER... [--answers FOLDER] [--list]` reads all captures below the folders.
A capture agrees if each of its packets has the same innermost TCP, UDP or DCCP header: ends, ports and
payload, and so the same packets and bytes in each direction. Others are listed by cause: the layers that
tshark names, and what tfrctrace says of the first packet that differs. `--answers` keeps tshark's answers
for the next time.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import witness

from tfrctrace.base.errors import TfrctraceError
from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

SUFFIXES = (".pcap", ".pcapng", ".cap", ".snoop", ".erf", ".trace", ".gz", ".bz2", ".zst", ".lz4", ".xz")
MOST_SECONDS = 120
TRANSPORTS = ("tcp", "udp", "dccp")
NETWORKS = ("ip", "ipv6")
FIELDS = (
    "frame.number", "frame.protocols", "frame.len", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst",
    "tcp.srcport", "tcp.dstport", "tcp.len", "udp.srcport", "udp.dstport", "udp.length",
    "dccp.srcport", "dccp.dstport",
)  # fmt: skip
UDP_HEADER_BYTES = 8


class Seen(NamedTuple):
    """The innermost transport header of a packet; None where it was not read."""

    transport: str
    src: str
    src_port: int
    dst: str
    dst_port: int
    payload_bytes: int | None


class Verdict(NamedTuple):
    """How a capture compares; without a cause it agrees."""

    path: Path
    packets: int
    cause: str = ""
    differing: int = 0


def ask_tshark(capture: Path, answers: Path | None) -> dict[int, tuple[str, Seen | None]] | None:
    """Return the layers and the innermost transport of each packet; None if tshark cannot read the file."""
    text = _kept(capture, answers) if answers else _run_tshark(capture)
    if text is None:
        return None
    packets = {}
    for line in text.splitlines():
        packet = dict(zip(FIELDS, line.split("\t"), strict=True))
        layers = packet["frame.protocols"].split(":")
        packets[int(packet["frame.number"])] = ":".join(layers), _innermost(packet, layers)
    return packets


def _kept(capture: Path, answers: Path) -> str | None:
    answers.mkdir(parents=True, exist_ok=True)
    kept = answers / hashlib.sha256(capture.read_bytes()).hexdigest()
    if not kept.exists():
        kept.write_text(_run_tshark(capture) or "")
    return kept.read_text() or None


def _run_tshark(capture: Path) -> str | None:
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "occurrence=l"]
    for preference in ("ip.defragment", "ipv6.defragment"):
        command += ["-o", f"{preference}:FALSE"]
    for field in FIELDS:
        command += ["-e", field]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    text = done.stdout.decode(errors="replace")
    return text if text or not done.returncode else None


def _innermost(packet: dict[str, str], layers: list[str]) -> Seen | None:
    """Return the last transport header, if it follows the last IP header and no ICMP error quotes it."""
    last = {name: at for at, name in enumerate(layers)}
    if "icmp" in last or "icmpv6" in last:
        return None
    network = max(NETWORKS, key=lambda name: last.get(name, -1))
    transport = max(TRANSPORTS, key=lambda name: last.get(name, -1))
    if last.get(transport, -1) < last.get(network, 0) or not packet[f"{transport}.srcport"]:
        return None
    payload = {"tcp": packet["tcp.len"], "udp": packet["udp.length"], "dccp": ""}[transport]
    own = UDP_HEADER_BYTES if transport == "udp" else 0
    return Seen(
        transport,
        packet[f"{network}.src"],
        int(packet[f"{transport}.srcport"]),
        packet[f"{network}.dst"],
        int(packet[f"{transport}.dstport"]),
        int(payload) - own if payload and int(payload) >= own else None,
    )


def ask_tfrctrace(capture: Path) -> dict[int, tuple[str, Seen | None]]:
    """Return what stopped decoding of each packet, and its innermost transport header."""
    reader = _native.PacketReader([str(capture)], ReadSettings())
    packets = {}
    while (batch := reader.next_batch()) is not None:
        for row in batch.rows():
            packets[row["packet"]] = row["decode_stop"] or "", _read(row)
    return packets


def _read(row: dict[str, Any]) -> Seen | None:
    if row["transport"] not in TRANSPORTS or row["src_port"] is None:
        return None
    ends = (row["src"], row["src_port"], row["dst"], row["dst_port"])
    return Seen(row["transport"], *ends, row["payload_bytes"])


def compare(capture: Path, answers: Path | None) -> Verdict:
    """Compare one capture packet by packet."""
    theirs = ask_tshark(capture, answers)
    if theirs is None:
        return Verdict(capture, 0, "tshark cannot read it")
    try:
        ours = ask_tfrctrace(capture)
    except (TfrctraceError, ValueError, OSError) as error:
        return Verdict(capture, len(theirs), f"not read: {error}", len(theirs))
    differing = [
        number for number in theirs if not _agree(theirs[number][1], ours.get(number, ("", None))[1])
    ]
    if not differing:
        return Verdict(capture, len(theirs))
    number = differing[0]
    if number not in ours:
        cause = f"{len(theirs) - len(ours)} packets were not read"
    else:
        cause = _cause(theirs[number], ours[number])
    return Verdict(capture, len(theirs), f"{cause} (packet {number})", len(differing))


def _agree(theirs: Seen | None, ours: Seen | None) -> bool:
    if theirs is None or ours is None:
        return theirs is ours
    if None in (theirs.payload_bytes, ours.payload_bytes):
        return theirs[:-1] == ours[:-1]
    return theirs == ours


def _cause(theirs: tuple[str, Seen | None], ours: tuple[str, Seen | None]) -> str:
    layers, seen = theirs
    if seen and ours[1] and seen[:-1] == ours[1][:-1]:
        return f"payload of {seen.transport}: {seen.payload_bytes}, here {ours[1].payload_bytes}"
    what = ours[0] or (f"{ours[1].transport} is read" if ours[1] else "no transport is read")
    return f"{layers}: {what}"


def ask_of_connections(capture: Path) -> str | None:
    """Compare packets and data of TCP connections with tcptrace; None if all agree or it reads none."""
    try:
        asked = witness.ask_tcptrace(capture) or []
        rows = _native.analyse([str(capture)], ReadSettings()).table("flows").rows()
    except (TfrctraceError, ValueError, OSError, KeyError):
        return None
    theirs: Counter[tuple[Any, ...]] = Counter()
    ours: Counter[tuple[Any, ...]] = Counter()
    for row in asked:
        theirs[row["src"], row["src_port"], row["dst"], row["dst_port"]] += row["packets"]
    for row in rows:
        if row["transport"] == "tcp":
            ours[row["src"], row["src_port"], row["dst"], row["dst_port"]] += row["packets"]
    different = [ends for ends, packets in theirs.items() if packets and ours[ends] != packets]
    if not different:
        return None
    ends = different[0]
    return f"{theirs[ends]} packets of {ends[0]}:{ends[1]} > {ends[2]}:{ends[3]}, here {ours[ends]}"


def captures_below(folders: list[Path]) -> list[Path]:
    """Return all files that may be captures, in order."""
    files = (file for folder in folders for file in ([folder] if folder.is_file() else folder.rglob("*")))
    return sorted(file for file in files if file.is_file() and file.suffix in SUFFIXES)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--answers", type=Path, help="folder in which tshark's answers are kept")
    parser.add_argument("--tcptrace", action="store_true", help="compare connections with tcptrace, too")
    parser.add_argument("--list", action="store_true", help="name every capture that differs")
    options = parser.parse_args()
    captures = captures_below(options.folders)
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda capture: compare(capture, options.answers), captures))
    read = [verdict for verdict in verdicts if verdict.packets]
    agreeing = [verdict for verdict in read if not verdict.cause]
    print(f"{len(agreeing)} of {len(read)} captures agree with tshark in every packet", end="")
    print(
        f" ({len(agreeing) / max(len(read), 1):.2%}); {len(verdicts) - len(read)} have no packets for tshark"
    )
    causes = defaultdict(list)
    for verdict in read:
        if verdict.cause:
            causes[verdict.cause.partition(" (packet ")[0]].append(verdict)
    for cause, different in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"{len(different):5}  {sum(one.differing for one in different):7} packets  {cause}")
        for one in different if options.list else different[:1]:
            print(f"{'':15}{one.path} {one.cause.rpartition(' (')[2].rstrip(')')}")
    if options.tcptrace:
        print_connections(captures)


def print_connections(captures: list[Path]) -> None:
    """Print where tcptrace counts other packets in a connection."""
    found = {capture: cause for capture in captures if (cause := ask_of_connections(capture))}
    print(f"{len(captures) - len(found)} of {len(captures)} captures agree with tcptrace in every connection")
    for capture, cause in found.items():
        print(f"{'':7}{cause}  {capture}")


if __name__ == "__main__":
    main()
