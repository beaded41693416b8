"""Compare tfrctrace with tshark packet by packet, and with tcptrace by connection, on any captures.

`make agreement CAPTURES='FOLDER...'` (or this script with FOLDER...) reads all captures below the folders. A
capture agrees if each of its packets has the same innermost TCP, UDP or DCCP header: ends, ports and payload,
and so the same packets and bytes in each direction. A datagram's payload is what its IP packet carries: of a
fragment, or where the length of UDP is wrong, that is less than tshark's `udp.length`. The others are listed
by cause: the layers that tshark names, what tfrctrace says of the first packet that differs, and whether
tcpdump reads the same ends as tfrctrace in all that differ; then connections with other packets in tcptrace.
`--answers` keeps tshark's answers for the next time.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tfrctrace.base.errors import TfrctraceError
from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "data"))
import witness

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
FRAGMENT_HEADER_BYTES = 8
LENGTHS = (
    "frame.number", "frame.time_epoch", "ip.len", "ip.hdr_len", "ipv6.plen",
    "ipv6.hopopts.len_oct", "ipv6.dstopts.len_oct", "ipv6.routing.len_oct",
)  # fmt: skip
ENDS = re.compile(r"(\S+)\.(\d+) > (\S+)\.(\d+):")
"""Of a packet in tcpdump's words; inside of a tunnel the last."""
MISSING = re.compile(r"truncated-ip6? - (\d+) bytes missing! ?")
"""Bytes of an IP packet that are not in its frame."""


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
    is_tcpdumps: bool = False
    """Whether tcpdump reads what differs as tfrctrace does."""


Packets = dict[int, tuple[str, Seen | None]]


def ask_tshark(capture: Path, answers: Path | None) -> Packets | None:
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


def _run_tshark(capture: Path, fields: tuple[str, ...] = FIELDS) -> str | None:
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "occurrence=l"]
    for preference in ("ip.defragment", "ipv6.defragment"):
        command += ["-o", f"{preference}:FALSE"]
    for field in fields:
        command += ["-e", field]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    text = done.stdout.decode(errors="replace")
    return text if text or not done.returncode else None


def look_again(capture: Path, theirs: Packets) -> Packets:
    """Return tshark's packets without the blocks that it counts as such, and payloads as IP has them."""
    packets: Packets = {}
    for line in (_run_tshark(capture, LENGTHS) or "").splitlines():
        lengths = dict(zip(LENGTHS, line.split("\t"), strict=True))
        layers, seen = theirs[int(lengths["frame.number"])]
        if layers == "data" and not lengths["frame.time_epoch"]:
            continue
        if seen and seen.transport == "udp" and seen.payload_bytes is not None:
            carried = _ip_payload(lengths, layers.split(":")) - UDP_HEADER_BYTES
            if 0 <= carried < seen.payload_bytes:
                seen = seen._replace(payload_bytes=carried)
        packets[len(packets) + 1] = layers, seen
    return packets


def _ip_payload(lengths: dict[str, str], layers: list[str]) -> int:
    number = {name: int(text or 0) for name, text in lengths.items() if name.startswith("ip")}
    last = {name: at for at, name in enumerate(layers)}
    if last.get("ip", -1) > last.get("ipv6", -1):
        return number["ip.len"] - number["ip.hdr_len"]
    extensions = sum(number[name] for name in LENGTHS if name.endswith("len_oct"))
    return number["ipv6.plen"] - extensions - FRAGMENT_HEADER_BYTES * ("ipv6.fraghdr" in last)


def ask_tcpdump(capture: Path) -> dict[int, tuple[tuple[str, ...], int]]:
    """Return the innermost ends of packets that tcpdump prints with ports, and the bytes missing in each."""
    command = ["tcpdump", "-nn", "-t", "-#", "-r", str(capture)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=MOST_SECONDS)
    printed: dict[int, tuple[tuple[str, ...], int]] = {}
    number = 0
    for line in done.stdout.decode(errors="replace").splitlines():
        if begins := re.match(r"\s*(\d+)\s", line):
            number = int(begins[1])
        if found := ENDS.findall(MISSING.sub("", line)):
            missing = MISSING.search(line)
            printed[number] = found[-1], int(missing[1]) if missing else 0
    return printed


def _is_tcpdumps(theirs: Seen | None, ours: Seen | None, printed: tuple[tuple[str, ...], int] | None) -> bool:
    """Return whether tcpdump reads a packet as tfrctrace does, where tshark differs."""
    if not ours or not printed or printed[0] != (ours.src, str(ours.src_port), ours.dst, str(ours.dst_port)):
        return False
    if not theirs or theirs[:-1] != ours[:-1]:
        return True
    return (theirs.payload_bytes or 0) - printed[1] == ours.payload_bytes


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


def ask_tfrctrace(capture: Path) -> Packets:
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
    differing = _differing(theirs, ours)
    if differing:
        theirs = look_again(capture, theirs)
        differing = _differing(theirs, ours)
    if not differing:
        return Verdict(capture, len(theirs))
    number = differing[0]
    if number in ours:
        cause = _cause(theirs[number], ours[number])
    else:
        cause = f"{len(theirs) - len(ours)} packets were not read"
    printed = ask_tcpdump(capture)
    is_tcpdumps = all(
        _is_tcpdumps(theirs[number][1], ours.get(number, ("", None))[1], printed.get(number))
        for number in differing
    )
    return Verdict(capture, len(theirs), f"{cause} (packet {number})", len(differing), is_tcpdumps)


def _differing(theirs: Packets, ours: Packets) -> list[int]:
    return [number for number in theirs if not _agree(theirs[number][1], ours.get(number, ("", None))[1])]


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
        peer = "  (tcpdump agrees with tfrctrace)" if all(one.is_tcpdumps for one in different) else ""
        print(f"{len(different):5}  {sum(one.differing for one in different):7} packets  {cause}{peer}")
        for one in different if options.list else different[:1]:
            print(f"{'':15}{one.path} {one.cause.rpartition(' (')[2].rstrip(')')}")
    print_connections(captures)


def print_connections(captures: list[Path]) -> None:
    """Print where tcptrace counts other packets in a connection."""
    found = {capture: cause for capture in captures if (cause := ask_of_connections(capture))}
    print(f"{len(captures) - len(found)} of {len(captures)} captures agree with tcptrace in every connection")
    for capture, cause in found.items():
        print(f"{'':7}{cause}  {capture}")


if __name__ == "__main__":
    main()
