"""Batches at scale: killed at random places, spread over workers, and what they cost beside the passes alone.

`python benchmarks/batches.py kills --files 10000 --kills 20` compares the bytes of a folder whose batch was
killed with those of one that was not. `python benchmarks/batches.py speed --files 1000 --megabytes 1` prints
processor and wall time of one worker, of two, and of the passes alone.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

HEADER: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
PAYLOAD: Final = 1_000
SNAPPED: Final = 96

PASSES: Final = """
import sys
from tfrctrace.base.grouping import parse_grouping
from tfrctrace.parsers._native import analyse, empty_table, write_parquet
from tfrctrace.parsers.reading_settings import ReadSettings
settings = ReadSettings(join=True, grouping=parse_grouping("host", "5min").for_core)
tables = sys.argv[1].split()
for path in sys.argv[2:]:
    analysis = analyse([path], settings, collect=frozenset({"flows"}))
    for name in tables:
        write_parquet(len, empty_table(name), [analysis.table(name)])
"""
"""Reads captures one by one, and makes the Parquet of some tables, which nobody keeps."""


def segment(number: int, port: int, sequence: int, *, flags: int = 0x10) -> bytes:
    """Return a record: a segment of a download, snapped."""
    total = 40 + (0 if flags & 2 else PAYLOAD)
    address = 0x0A000000 + port % 200
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, total, number & 0xFFFF, 0, 64, 6, 0, address, 0xC0000201)
    tcp = struct.pack("!HHIIBBHHH", 80, port, sequence & 0xFFFFFFFF, 1, 0x50, flags, 500, 0, 0)
    frame = (bytes(12) + b"\x08\x00" + ip + tcp + bytes(PAYLOAD))[:SNAPPED]
    seconds, us = divmod(number * 1_000, 1_000_000)
    return struct.pack("<IIII", 1_700_000_000 + seconds, us, len(frame), 14 + total) + frame


def draw(folder: Path, files: int, size: int) -> None:
    """Write captures of about `size` bytes, with a hundred segments of each of their connections."""
    folder.mkdir(parents=True)
    packets = max((size - len(HEADER)) // (16 + SNAPPED), 2)
    body = [
        segment(
            number, 1_024 + number // 100, 1 + number % 100 * PAYLOAD, flags=0x10 if number % 100 else 0x12
        )
        for number in range(packets - 1)
    ]
    for number in range(files):
        # letters for numbers: these are no chain, and each begins with a packet of its own
        name = "".join(chr(ord("a") + int(digit)) for digit in f"{number:06d}")
        content = HEADER + segment(0, 1_000, number) + b"".join(body)
        (folder / f"run-{name}.pcap").write_bytes(content)


def batch(captures: Path, results: Path, *more: str) -> list[str]:
    """Return the command of a batch."""
    return [sys.executable, "-m", "tfrctrace", "batch", str(captures), "-o", str(results), "-q", *more]


def digest(folder: Path) -> str:
    """Return a digest of all names and bytes below a folder; parts of killed runs do not count."""
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and ".part" not in str(path)):
        found.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def kills(files: int, times: int, folder: Path) -> None:
    """Compare a batch that is killed with one that is not."""
    draw(folder / "captures", files, 2_000)
    began = time.monotonic()
    subprocess.run(batch(folder / "captures", folder / "whole"), check=True)
    whole_s = time.monotonic() - began
    killed = 0
    for number in range(times):
        with subprocess.Popen(batch(folder / "captures", folder / "cut"), start_new_session=True) as running:
            try:
                running.wait(random.Random(number).uniform(0.2, 0.9) * max(whole_s / times, 1.0))
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                killed += 1
    subprocess.run(batch(folder / "captures", folder / "cut"), check=True)
    same = digest(folder / "whole") == digest(folder / "cut")
    print(f"{files} files, killed {killed} times of {times}: {'the same bytes' if same else 'OTHER BYTES'}")


def timed(command: list[str]) -> tuple[float, float]:
    """Return processor and wall time of a command and its children."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.monotonic() - began


def speed(files: int, size: int, runs: int, folder: Path) -> None:
    """Print what a batch costs."""
    draw(folder / "captures", files, size)
    paths = [str(path) for path in sorted((folder / "captures").iterdir())]
    passes = [sys.executable, "-c", PASSES]
    found: dict[str, list[tuple[float, float]]] = {}
    for run in range(runs):
        # in new folders: ext4 takes its time before it uses what was removed
        ways = {
            "passes": [*passes, "", *paths],
            "passes that make the tables": [*passes, "flows groups group_buckets", *paths],
            "batch, 1 worker": batch(folder / "captures", folder / f"{run}-1", "-j", "1"),
            "batch, 2 workers": batch(folder / "captures", folder / f"{run}-2", "-j", "2"),
        }
        for name, command in ways.items():
            found.setdefault(name, []).append(timed(command))
    print("| way | processor | wall |\n|---|--:|--:|")
    for name, times in found.items():
        print(f"| {name} | {min(used for used, _ in times):.2f} s | {min(wall for _, wall in times):.2f} s |")


def main() -> None:
    """Do what the options name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["kills", "speed"])
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if given.what == "kills":
            kills(given.files, given.kills, Path(name))
        else:
            speed(given.files, int(given.megabytes * 1e6), given.runs, Path(name))


if __name__ == "__main__":
    main()
