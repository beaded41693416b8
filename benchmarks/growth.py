"""Measure how processor time and peak memory of commands grow with their input, and print a table of them.

`python benchmarks/growth.py [--packets N] [--files N] [--only COMMAND ...]`: each command gets a capture of N
packets, or N captures of 1,000 packets each, then four and sixteen times as much. A command that takes more
than four times as long as one step before grows faster than its input.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from batches import draw
from measuring import measure
from peers import HERE

if TYPE_CHECKING:
    from collections.abc import Callable

    from measuring import Run

STEPS: Final = (1, 4, 16)
KIND: Final = "random-200"
FILE_BYTES: Final = 112_000
"""About 1,000 packets of `batches.draw`."""
LIMIT: Final = "p95(rtt_ms) < 10000 ms"
STUDY: Final = """
title = "Growth"
[runs]
files = ["captures/*.pcap"]
pattern = "run-{run}.pcap"
repetition = "run"
[[quantity]]
name = "rate"
metric = "rate_bps"
[[table]]
name = "rates"
title = "Rates"
rows = []
columns = ["rate"]
"""

OF_CAPTURE: Final[dict[str, tuple[str, ...]]] = {
    "flows": ("flows", "{0}"),
    "why": ("why", "{0}"),
    "metrics": ("metrics", "{0}"),
    "report": ("report", "{0}", "-o", "{out}/report.html"),
    "convert": ("convert", "--what", "packets", "{0}", "-o", "{out}/packets.parquet"),
    "groups": ("groups", "--by", "host", "--every", "1s", "{0}"),
    "check": ("check", "--require", LIMIT, "{0}"),
    "compare": ("compare", "{0}", "{1}"),
}
"""Commands that read a capture of random order, `{0}`; `{1}` is another one of the same kind."""

OF_FILES: Final[dict[str, tuple[str, ...]]] = {
    "batch": ("batch", "{folder}/captures", "-o", "{out}/results", "-j", "1"),
    "audit": ("audit", "{folder}/captures", "-o", "{out}/audit", "-j", "1"),
    "experiment": ("experiment", "{folder}/study.toml", "-o", "{out}/study", "-j", "1"),
}
"""Commands that read many small captures."""


def captures_of(packets: int, folder: Path) -> list[Path]:
    """Return two captures of different content."""
    paths = [folder / f"{packets}-{seed}.pcap" for seed in (1, 2)]
    for seed, path in enumerate(paths, start=1):
        script = [sys.executable, HERE / "captures.py", path, KIND, packets, seed, "pcap"]
        subprocess.run(list(map(str, script)), check=True)
    return paths


def files_of(number: int, folder: Path) -> Path:
    """Return a folder with captures and a study of them."""
    place = folder / f"files-{number}"
    draw(place / "captures", number, FILE_BYTES)
    (place / "study.toml").write_text(STUDY)
    return place


def grown(name: str, sizes: list[int], run_of: Callable[[int], Run]) -> str:
    """Return the row of a command."""
    runs = [run_of(size) for size in sizes]
    cells = [f"{run.cpu_seconds:.2f} s, {run.peak_rss_bytes / 1e6:.0f} MB" for run in runs]
    last = runs[-1].cpu_seconds / runs[-2].cpu_seconds
    return f"| `{name}` | {' | '.join(cells)} | {last:.1f} |"


def table(commands: dict[str, tuple[str, ...]], sizes: list[int], inputs: dict[int, dict[str, str]]) -> None:
    """Print a row for each command; `inputs` are what stands for the names in braces, by size."""
    program = Path(sys.executable).with_name("tfrctrace")
    print(f"| command | {' | '.join(f'{size:,}' for size in sizes)} | last over the one before |")
    print(f"|---|{'--:|' * (len(sizes) + 1)}")
    for name, parts in commands.items():

        def run_of(size: int, parts: tuple[str, ...] = parts) -> Run:
            with tempfile.TemporaryDirectory() as out:
                filled = [part.format(*inputs[size].values(), out=out, **inputs[size]) for part in parts]
                return measure([str(program), *filled, "--quiet"])

        print(grown(name, sizes, run_of), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=25)
    parser.add_argument("--only", nargs="+", metavar="COMMAND", default=[*OF_CAPTURE, *OF_FILES])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for commands, least, make in (
            (OF_CAPTURE, given.packets, lambda size: dict(zip("ab", captures_of(size, folder), strict=True))),
            (OF_FILES, given.files, lambda size: {"folder": files_of(size, folder)}),
        ):
            wanted = {name: parts for name, parts in commands.items() if name in given.only}
            if wanted:
                sizes = [least * step for step in STEPS]
                inputs = {size: {key: str(path) for key, path in make(size).items()} for size in sizes}
                table(wanted, sizes, inputs)


if __name__ == "__main__":
    main()
