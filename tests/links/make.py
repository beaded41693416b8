"""Draw links by seed and write what a capture on each saw, as rotated files with the truth beside them.

`python tests/links/make.py --seed 7 -o FOLDER [--days 2] [--fault KIND ...] [--links N]` draws one of each
KIND, or one of a random kind; `--fault none` draws none.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from faults import KINDS
from link import draw_link
from packets import PCAP_HEADER, Packet, write_packets

if TYPE_CHECKING:
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


def main() -> None:
    """Write the links that options name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--days", type=float, default=2.0)
    parser.add_argument("--hosts", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.05, help="connections per second")
    parser.add_argument("--fault", action="append", choices=[*KINDS, "none"])
    parser.add_argument("--links", type=int, default=1, help="number of links, of one seed after the other")
    given = parser.parse_args()
    for seed in range(given.seed, given.seed + given.links):
        kinds = given.fault or [Random(seed).choice([*KINDS, "none"])]
        link = draw_link(
            seed,
            [kind for kind in kinds if kind != "none"],
            days=given.days,
            hosts=given.hosts,
            connections_per_s=given.rate,
        )
        folder = given.output / f"link-{seed}" if given.links > 1 else given.output
        write_link(link, folder)
        print(f"{folder}: {', '.join(kinds)}", file=sys.stderr)


if __name__ == "__main__":
    main()
