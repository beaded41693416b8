"""What each program says of every packet of a capture; packets that it says nothing of are left out."""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from frames import packets

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Answer(NamedTuple):
    """What a program calls a packet."""

    name: str
    spurious: bool = False
    """Whether it says that the packet need not have been sent."""


Answers = dict[int, Answer]
"""By packet number."""

TSHARK_FLAGS = (
    "zero_window_probe", "keep_alive", "spurious_retransmission", "fast_retransmission", "out_of_order",
    "retransmission",
)  # fmt: skip
"""Of `tcp.analysis`, the more special first: a fast or spurious one is a `retransmission` besides."""

TCPTRACE_MARKS = {
    "R": "retransmitted",
    "O": "out_of_order",
    "HD": "hardware_duplicate",
    "P": "zero_window_probe",
}
"""What tcptrace writes beside a segment in its time-sequence graph."""


def ask_tfrctrace(capture: Path) -> Answers:
    """Return the classes of our table of losses."""
    with warnings.catch_warnings():
        # some captures have holes of their own, on purpose
        warnings.simplefilter("ignore", tfrctrace.TfrctraceWarning)
        losses = tfrctrace.open(capture).losses.rows(named=True)
    return {row["packet"]: Answer(row["class"], row["spurious"] is not None) for row in losses}


def ask_tshark(capture: Path) -> Answers:
    """Return what tshark's analysis suspects."""
    command = ["tshark", "-n", "-r", str(capture), "-Y", "tcp.analysis.flags", "-T", "fields"]
    for shown in ("frame.number", *(f"tcp.analysis.{flag}" for flag in TSHARK_FLAGS)):
        command += ["-e", shown]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    answers: Answers = {}
    for line in output.splitlines():
        number, *values = line.split("\t")
        if flags := [flag for flag, value in zip(TSHARK_FLAGS, values, strict=True) if value]:
            answers[int(number)] = Answer(flags[0], flags[0].startswith("spurious"))
    return answers


def ask_tcptrace(capture: Path) -> Answers:
    """Return what tcptrace marks in its time-sequence graphs, found again by time and last number."""
    with tempfile.TemporaryDirectory() as scratch:
        command = ["tcptrace", "-n", "-S", f"--output_dir={scratch}", str(capture)]
        subprocess.run(command, capture_output=True, check=False)
        graphs = sorted(Path(scratch).glob("*_tsg.xpl"))
        marks = [mark for graph in graphs for mark in _marks(graph.read_text())]
    if not graphs:
        # it knows no cooked v2
        return {number: Answer("not_read") for number, _, _ in packets(capture)}
    seen: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, time, header in packets(capture):
        # it does not count a FIN behind data
        for end in {header.payload, header.space}:
            seen[f"{time:.6f}", (header.seq + end) % 2**32].append(number)
    answers: Answers = {}
    for marked, end, name in marks:
        answers |= dict.fromkeys(seen[marked, end], Answer(name))
    return answers


def _marks(graph: str) -> Iterator[tuple[str, int, str]]:
    lines = graph.splitlines()
    for place, text in pairwise(lines):
        if "text " in place and text in TCPTRACE_MARKS:
            _, marked, end = place.split()
            yield marked, int(end), TCPTRACE_MARKS[text]


PROGRAMS: dict[str, Callable[[Path], Answers]] = {
    "tfrctrace": ask_tfrctrace,
    "tshark": ask_tshark,
    "tcptrace": ask_tcptrace,
}
