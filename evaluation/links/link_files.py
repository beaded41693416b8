"""A link's captures as rotated files, with the truth beside them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from packets import PCAP_HEADER, Packet, write_packets

if TYPE_CHECKING:
    from pathlib import Path

    from link import Link

BEGIN: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday."""
FILE_S: Final = 3600


def write_link(link: Link, folder: Path, file_s: int = FILE_S) -> None:
    """Write hourly captures and `truth.json` into a folder.

    A capture that was dead left no file, and began a new one; a dead link leaves files without packets.
    """
    folder.mkdir(parents=True, exist_ok=True)
    begin_s = int(BEGIN.timestamp())
    every = sorted((packet for each in link.packets() for packet in each), key=_time)
    dead = [(fault.since_s, fault.until_s) for fault in link.faults if fault.kind == "dead capture"]
    edges_s = sorted(
        {
            *range(0, int(link.length_s // file_s) * file_s + 1, file_s),
            *(edge for one in dead for edge in one),
        }
    )
    position = 0
    for since_s, until_s in pairwise(edges_s):
        first = position
        while position < len(every) and every[position].time_s < until_s:
            position += 1
        if any(dead_s <= since_s and until_s <= alive_s for dead_s, alive_s in dead):
            continue
        name = datetime.fromtimestamp(begin_s + since_s, UTC).strftime("link-%Y%m%d%H%M.pcap")
        with open(folder / name, "wb") as file:
            file.write(PCAP_HEADER)
            write_packets(file, every[first:position], begin_s)
    truth = {"begin": BEGIN.isoformat(), "packets": len(every)} | link.truth()
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def _time(packet: Packet) -> float:
    return packet.time_s
