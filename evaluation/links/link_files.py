"""A link's captures as rotated files, with the truth beside them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from packets import PCAP_HEADER, Packet, write_packets

if TYPE_CHECKING:
    from pathlib import Path

    from link import Link

BEGIN: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday."""
FILE_S: Final = 3600


def write_link(link: Link, folder: Path, file_s: int = FILE_S) -> None:
    """Write hourly captures and `truth.json` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    begin_s = int(BEGIN.timestamp())
    every = sorted((packet for each in link.packets() for packet in each), key=_time)
    position = 0
    for hour in range(int(link.length_s // file_s)):
        until_s = (hour + 1) * file_s
        first = position
        while position < len(every) and every[position].time_s < until_s:
            position += 1
        name = datetime.fromtimestamp(begin_s + hour * file_s, UTC).strftime("link-%Y%m%d%H%M.pcap")
        with open(folder / name, "wb") as file:
            file.write(PCAP_HEADER)
            write_packets(file, every[first:position], begin_s)
    truth = {"begin": BEGIN.isoformat(), "packets": len(every)} | link.truth()
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def _time(packet: Packet) -> float:
    return packet.time_s
