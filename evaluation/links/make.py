"""Draw links by seed and write what a capture on each saw, as rotated files with the truth beside them.

`python evaluation/links/make.py --seed 7 -o FOLDER [--days 2] [--fault KIND ...] [--links N]` draws one of
each KIND, or one of a random kind; `--fault none` draws none.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random

from faults import ALL_KINDS, KINDS
from link import draw_link
from link_files import write_link


def main() -> None:
    """Write the links that options name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--days", type=float, default=2.0)
    parser.add_argument("--hosts", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.05, help="connections per second")
    parser.add_argument("--fault", action="append", choices=[*ALL_KINDS, "none"])
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
