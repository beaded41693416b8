"""Count the instructions of the core for a packet of a few kinds, and compare them with recorded counts.

`instructions.py PROGRAM [--record]`: PROGRAM is the example `analyse` of the core. Callgrind counts, so other
work of the machine makes no difference. Counts of another compiler mean nothing: then, and without valgrind,
nothing is checked. The exit status is 1 if a kind costs over 2 % more than recorded.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import captures
from plan import KINDS, Plan

RECORD: Final = Path(__file__).with_name("instructions.json")
PACKETS: Final = 100_000
TOLERANCE: Final = 0.02
"""Hashes are seeded for each process, which moves counts by a thousandth."""
CHECKED: Final = {
    "turns-8": (),
    "random-200": (),
    "lan": (),
    "loss": (),
    "both-ways": (),
    "ipv6": (),
    "udp": (),
    "rtp": (),
    "random-200 with bins": ("--collect", "bins"),
    "random-200 with bins and rounds": ("--collect", "bins,rounds"),
}
"""Kinds, and what is collected."""


def compiler() -> str:
    """Return the version of the compiler."""
    return subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def instructions(program: str, options: tuple[str, ...], capture: Path) -> int:
    """Return how many instructions the program executes."""
    command = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        program,
        *options,
        str(capture),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"refs:\s+([\d,]+)", answer.stderr)
    if answer.returncode or found is None:
        sys.exit(f"`{' '.join(command)}` ended with {answer.returncode}: {answer.stderr}")
    return int(found[1].replace(",", ""))


def per_packet(program: str, name: str, options: tuple[str, ...], folder: Path) -> float:
    """Return the instructions for a packet of a kind, without start and end of the process."""
    kind = name.partition(" ")[0]
    counts = []
    for packets in (PACKETS, 2 * PACKETS):
        path = folder / f"{kind}-{packets}.pcap"
        if not path.exists():
            captures.main(str(path), kind, str(packets))
        counts.append((instructions(program, options, path), Plan(KINDS[kind], packets).sent))
    (few, few_packets), (many, many_packets) = counts
    return (many - few) / (many_packets - few_packets)


def why_not(record: dict[str, object]) -> str:
    """Return why counts cannot be compared here; empty if they can."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if not record:
        return "no counts are recorded (make bench-check BENCH=--record)"
    if (mine := compiler()) != record.get("compiler"):
        return f"the counts are of {record.get('compiler')}, and this is {mine}"
    return ""


def main() -> int:
    """Compare counts, or record them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program", help="the example `analyse`, built as it is shipped")
    parser.add_argument("--record", action="store_true", help="record the counts instead")
    chosen = parser.parse_args()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if not chosen.record and (reason := why_not(record)):
        print(f"not checked: {reason}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        counts = {
            name: round(per_packet(chosen.program, name, options, Path(folder)), 1)
            for name, options in CHECKED.items()
        }
    if chosen.record:
        RECORD.write_text(json.dumps({"compiler": compiler(), "per_packet": counts}, indent=1) + "\n")
    known = {} if chosen.record else record["per_packet"]
    worse = 0
    for name, count in counts.items():
        expected = known.get(name, count)
        verdict = "more than recorded" if count > expected * (1 + TOLERANCE) else ""
        worse += bool(verdict)
        print(f"{name:<34}{count:>9.1f}{expected:>9.1f}  {verdict}".rstrip())
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
