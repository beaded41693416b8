"""Processor time of reading a compressed capture, beside the usual tool that only decompresses it.

`python benchmarks/decompression.py CAPTURE [--runs 5]` prints a table; CAPTURE is an uncompressed file.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

TOOLS: Final = {
    "lz4": ["lz4", "-1"],
    "gz": ["gzip", "-6"],
    "zst": ["zstd", "-3"],
    "xz": ["xz", "-0", "-T1"],
    "bz2": ["bzip2", "-9"],
}
"""Tools with the levels that are used; each decompresses with `-dc`."""


def processor_s(command: list[str]) -> float:
    """Return user and system time of a command whose output is discarded."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Compress the capture with each tool that is installed, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("capture", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    flows = [sys.executable, "-m", "tfrctrace", "flows", "-q", "--format", "json", "-o", os.devnull]
    with tempfile.TemporaryDirectory() as folder:
        files = {"plain": given.capture}
        for suffix, tool in TOOLS.items():
            if shutil.which(tool[0]):
                files[suffix] = Path(folder) / f"capture.{suffix}"
                with open(given.capture, "rb") as source, open(files[suffix], "wb") as target:
                    subprocess.run([*tool, "-c"], stdin=source, stdout=target, check=True)
        # the least of all turns: others may be at work
        own = dict.fromkeys(files, float("inf"))
        tools = dict.fromkeys(files, float("inf"))
        for _ in range(given.runs):
            for suffix, path in files.items():
                own[suffix] = min(own[suffix], processor_s([*flows, str(path)]))
                if suffix in TOOLS:
                    alone = [TOOLS[suffix][0], "-dc", str(path)]
                    tools[suffix] = min(tools[suffix], processor_s(alone))
        print("| input | file | tfrctrace | of it decompression | the tool alone |\n|---|--:|--:|--:|--:|")
        for suffix, path in files.items():
            more = own[suffix] - own["plain"]
            by_tool = f"{tools[suffix]:.2f} ({TOOLS[suffix][0]})" if suffix in TOOLS else ""
            extra = f"{more:.2f}" if suffix in TOOLS else ""
            size = f"{path.stat().st_size / 1e6:.0f} MB"
            print(f"| {suffix} | {size} | {own[suffix]:.2f} | {extra} | {by_tool} |")


if __name__ == "__main__":
    main()
