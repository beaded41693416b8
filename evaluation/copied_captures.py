"""Copy captures with and without addresses, and look for what got lost and for what must not be there.

    python evaluation/copied_captures.py FOLDER...

The copy of each capture as pcapng is read again: its table of flows has to be that of the capture. The copy
without addresses must not have any address that tshark shows in the capture, nor a run of 8 bytes of payload.
Headers of tunnels are payload of UDP for tshark, and stay: each capture with a finding is listed.
"""

from __future__ import annotations

import argparse
import ipaddress
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from tfrctrace.parsers._native import analyse
from tfrctrace.parsers.anonymity import Anonymizer
from tfrctrace.parsers.copying import CopiedPackets
from tfrctrace.parsers.reading_settings import ReadSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrctrace.parsers._native import Analysis

MACS: Final = ("eth.addr", "wlan.addr", "sll.src.eth", "arp.src.hw_mac", "arp.dst.hw_mac")
NETWORK: Final = ("ip.addr", "ipv6.addr", "arp.src.proto_ipv4", "arp.dst.proto_ipv4")
PAYLOADS: Final = ("tcp.payload", "udp.payload")

_WRONG: Final = ("found", "differ", "lost")

LEAST_VARIED: Final = 4
"""Bytes that differ in what is searched: zeros and the like are everywhere."""


def copied(path: Path, anonymizer: Anonymizer | None) -> tuple[bytes, CopiedPackets]:
    """Return a capture as pcapng, with what was counted."""
    packets = CopiedPackets([str(path)], ReadSettings(anonymizer=anonymizer), ("pcapng", ""))
    return b"".join(packets), packets


def flows(analysis: Analysis) -> pl.DataFrame:
    """Return the table of flows without the name of the file."""
    return pl.DataFrame(analysis.table("flows")).drop("source")


def shown_bytes(path: Path) -> Iterator[tuple[str, bytes]]:
    """Give each address and each run of 8 bytes of a payload that tshark shows, with its kind."""
    fields = (*MACS, *NETWORK, *PAYLOADS)
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|", "-E", "aggregator=,"]
    command += [option for field in fields for option in ("-e", field)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    for line in done.stdout.splitlines():
        for field, cell in zip(fields, line.split("|"), strict=False):
            for text in filter(None, cell.split(",")):
                yield from _searched(field, text)


def _searched(field: str, text: str) -> Iterator[tuple[str, bytes]]:
    if field in PAYLOADS:
        payload = bytes.fromhex(text)
        yield from (("payload", payload[at : at + 8]) for at in range(len(payload) - 7))
    elif field in MACS:
        yield "MAC", bytes.fromhex(text.replace(":", ""))
    else:
        packed = ipaddress.ip_address(text).packed
        yield f"IPv{4 if len(packed) == 4 else 6}", packed


def packets_of(file: bytes) -> Iterator[bytes]:
    """Give the packets of a pcapng file that the core has written."""
    at = 0
    while at < len(file):
        kind, length = struct.unpack_from("<II", file, at)
        if kind == 6:  # an enhanced packet block
            captured = struct.unpack_from("<I", file, at + 20)[0]
            yield file[at + 28 : at + 28 + captured]
        at += length


def found_in(anonymised: bytes, searched: dict[bytes, str]) -> Counter[str]:
    """Count what of the capture is in the copy without addresses, by kind."""
    found: Counter[str] = Counter()
    lengths = {len(one) for one in searched}
    for data in packets_of(anonymised):
        for at in range(len(data)):
            pieces = (data[at : at + length] for length in lengths)
            found.update(searched[piece] for piece in pieces if piece in searched)
    return found


def compare(path: Path, folder: Path) -> Counter[str]:
    """Count what is right and wrong of one capture."""
    before = analyse([str(path)], ReadSettings())
    source = before.sources[0]
    if source["format"] not in {"pcap", "pcapng", "snoop", "erf"} or not source["packets"]:
        return Counter(["no capture with packets"])
    whole, packets = copied(path, None)
    (folder / "copy.pcapng").write_bytes(whole)
    again = analyse([str(folder / "copy.pcapng")], ReadSettings())
    found = Counter(["captures"])
    found["flows differ"] += not flows(again).equals(flows(before), null_equal=True)
    found["packets lost"] += source["packets"] - packets.written
    anonymised, packets = copied(path, Anonymizer())
    found["packets left out"] += sum(packets.dropped.values())
    found["packets lost"] += source["packets"] - packets.written - sum(packets.dropped.values())
    searched = {one: kind for kind, one in shown_bytes(path) if len(set(one)) >= LEAST_VARIED}
    return found + Counter({f"{kind} found": n for kind, n in found_in(anonymised, searched).items()})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(path for given in parser.parse_args().folders for path in given.rglob("*")):
            if path.is_file():
                found = compare(path, Path(folder))
                total += found
                if wrong := {
                    name: n for name, n in found.items() if name.endswith(("found", "differ", "lost")) and n
                }:
                    print(path, wrong)
    print(dict(total))
    return int(total["flows differ"] > 0 or total["packets lost"] > 0)


if __name__ == "__main__":
    sys.exit(main())
