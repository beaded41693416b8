"""Run programs in turns, and compare what they took.

Every run is a whole process with the capture in the page cache. The programs of one comparison take turns
and a ratio is the median over the turns, so that a slow phase of the machine affects all of them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WARM_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Run:
    """One process from start to end."""

    seconds: float
    cpu_seconds: float
    """In user and in system mode, all threads together."""
    peak_rss_bytes: int


@dataclass(slots=True)
class Entry:
    """One program on one capture."""

    program: str
    capture: str
    packets: int
    runs: list[Run] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Median time of a run."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu_seconds(self) -> float:
        """Median processor time of a run."""
        return statistics.median(run.cpu_seconds for run in self.runs)

    @property
    def packets_per_second(self) -> float:
        """Packets per second of the median run."""
        return self.packets / self.seconds

    @property
    def peak_rss_bytes(self) -> int:
        """Largest of all runs."""
        return max(run.peak_rss_bytes for run in self.runs)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A line of the result: what was compared, the ratio (or the memory), and whether it is enough."""

    name: str
    measured: float | None
    unit: str
    target: str
    verdict: Literal["pass", "fail", "skipped", "-"]
    remark: str = ""

    @classmethod
    def at_least(cls, name: str, measured: float, target: float | None, remark: str = "") -> Comparison:
        """Return the line of a ratio that should not be smaller than `target`, if there is one."""
        if target is None:
            return cls(name, measured, "times", "-", "-", remark)
        return cls(name, measured, "times", f">= {target:g}", verdict(measured >= target), remark)

    @classmethod
    def at_most(cls, name: str, measured: float, target: float | None, unit: str = "times") -> Comparison:
        """Return the line of a figure that should not be larger than `target`, if there is one."""
        if target is None:
            return cls(name, measured, unit, "-", "-")
        return cls(name, measured, unit, f"<= {target:g}", verdict(measured <= target))

    @classmethod
    def skipped(cls, name: str, reason: str) -> Comparison:
        """Return the line of something that cannot be measured here."""
        return cls(name, None, "", "-", "skipped", reason)


def verdict(holds: bool) -> Literal["pass", "fail"]:
    """Return whether a target is met."""
    return "pass" if holds else "fail"


def warm(path: Path) -> None:
    """Read the file once, so that no run waits for the disk."""
    with open(path, "rb", buffering=0) as file:
        while file.read(WARM_CHUNK):
            pass


def measure(command: Sequence[str]) -> Run:
    """Run a command with its output thrown away; end everything if it fails."""
    # a user's second start finds its modules compiled
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as complaints:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=complaints, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            complaints.seek(0)
            sys.exit(f"`{' '.join(command)}` ended with {process.returncode}: {complaints.read().decode()}")
    # ru_maxrss is in kilobytes on Linux, in bytes on macOS
    scale = 1 if sys.platform == "darwin" else 1024
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale)


def take_turns(programs: Sequence[tuple[Entry, list[str]]], runs: int) -> None:
    """Run every program `runs` times, in turns; the first turn warms up and does not count."""
    for turn in range(runs + 1):
        for entry, command in programs:
            run = measure(command)
            if turn:
                entry.runs.append(run)


def ratio(slow: Entry, fast: Entry, *, of_cpu: bool = False) -> float:
    """Median over the turns of how many times the time per packet of `fast` is that of `slow`."""

    def cost(run: Run, entry: Entry) -> float:
        return (run.cpu_seconds if of_cpu else run.seconds) / entry.packets

    pairs = zip(slow.runs, fast.runs, strict=True)
    return statistics.median(cost(theirs, slow) / cost(ours, fast) for theirs, ours in pairs)
