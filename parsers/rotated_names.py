"""Files of a rotated capture: which ones are missing, and whether they should be joined."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from tfrctrace.base.errors import input_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.parsers._native import SourceSummary

_NAMES_SHOWN = 3

_FEWEST_FILES = 3
"""Files that make a rotated capture; two may be anything."""

_LARGEST_GAP = 0.05
"""Time between the files of a rotated capture, as a share of the time that they cover."""


def missing_files(names: Sequence[str]) -> Problem | None:
    """Return a problem if the numbers of rotated captures have gaps, such as `a1` and `a3`.

    Times in names have gaps, too; only numbers most of which are there count as numbers of files.
    """
    numbers = file_numbers(names)
    if numbers is None:
        return None
    present = set(numbers)
    absent = [number for number in range(min(present), max(present) + 1) if number not in present]
    if not absent:
        return None
    pieces = _whole_pieces(names)
    first, counting = pieces[0], _counting(pieces) or 0
    width = len(first[counting]) if len(first[counting]) > 1 and first[counting].startswith("0") else 0
    shown = [f"{number:0{width}}" for number in absent[:_NAMES_SHOWN]]
    if len(absent) > _NAMES_SHOWN:
        shown.append(f"{len(absent) - _NAMES_SHOWN} more")
    start = "".join(first[:counting])
    return input_problem(
        names[0],
        "gap",
        f"no file of the joined ones has number {', '.join(shown)} after `{start}`",
        severity="warning",
        hint="name all files of the capture; what packets the gap hides is unknown",
    )


def file_numbers(names: Sequence[str]) -> list[int] | None:
    """Return the numbers of rotated captures; None of files that are not counted, such as by times."""
    pieces = _whole_pieces(names)
    if len(names) < 2 or len({tuple(own[::2]) for own in pieces}) > 1:
        return None
    counting = _counting(pieces)
    if counting is None:
        return None
    numbers = [int(own[counting]) for own in pieces]
    absent = max(numbers) - min(numbers) + 1 - len(set(numbers))
    return None if absent > len(set(numbers)) / 2 else numbers


def _counting(pieces: Sequence[Sequence[str]]) -> int | None:
    """Return the place of the first number that differs."""
    places = range(1, len(pieces[0]), 2)
    return next((place for place in places if len({own[place] for own in pieces}) > 1), None)


def _whole_pieces(names: Sequence[str]) -> list[list[str]]:
    """Return the texts and numbers of names; tcpdump's `-C` writes `x.pcap`, then `x.pcap1`."""
    pieces = [_pieces(name) for name in names]
    longest = max(map(len, pieces), default=0)
    return [[*own, "0", ""] if len(own) == longest - 2 else own for own in pieces]


def rotated_files(names: Sequence[str], sources: Sequence[SourceSummary]) -> Problem | None:
    """Return a note if inputs that were read as traces of their own look like files of one capture.

    Their names differ in numbers only, and each begins where the one before ended.
    """
    spans = [
        (source["start_ns"], source["end_ns"])
        for source in sources
        if source["start_ns"] is not None and source["end_ns"] is not None
    ]
    if len(names) < _FEWEST_FILES or len(spans) < len(names) or not _differ_in_numbers_only(names):
        return None
    spans.sort()
    gaps_ns = [after[0] - before[1] for before, after in pairwise(spans)]
    whole_ns = spans[-1][1] - spans[0][0]
    if min(gaps_ns) < 0 or sum(gaps_ns) > _LARGEST_GAP * whole_ns:
        return None
    return input_problem(
        sources[0]["source"],
        "rotated",
        f"this and {len(names) - 1} other files look like one capture, but each was read by itself",
        severity="note",
        hint="with `--join` they are one trace, and flows go on from file to file",
    )


def _differ_in_numbers_only(names: Sequence[str]) -> bool:
    return len({tuple(_pieces(name)[::2]) for name in names}) == 1


def _pieces(name: str) -> list[str]:
    """Return the texts and numbers of a name in turns."""
    return re.split(r"([0-9]+)", os.path.basename(name))
