"""Runs with equal bytes: a copy is no repetition, and would make a test surer than the runs are."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING

from tfrctrace.base.digests import sha256_of
from tfrctrace.base.errors import input_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.base.errors import Problem


def without_copies(runs: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[Problem]]:
    """Return the runs, each the names of its files, without those that are copies, and a warning of each."""
    copies = _copies(runs)
    problems = [
        input_problem(
            runs[place][0],
            "copy",
            f"has the same bytes as `{runs[first][0]}`, so both count once",
            severity="warning",
        )
        for place, first in copies.items()
    ]
    return [names for place, names in enumerate(runs) if place not in copies], problems


def _copies(runs: Sequence[tuple[str, ...]]) -> dict[int, int]:
    """Return the places of copies, each with that of the first run with its bytes.

    Files are only read if others have their sizes; what is no file, or cannot be read, is no copy.
    """
    by_sizes: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, names in enumerate(runs):
        if all(map(os.path.isfile, names)):
            by_sizes[tuple(map(os.path.getsize, names))].append(place)
    found: dict[int, int] = {}
    for places in by_sizes.values():
        first_with: dict[tuple[str, ...], int] = {}
        for place in places if len(places) > 1 else ():
            try:
                digests = tuple(map(sha256_of, runs[place]))
            except OSError:
                continue
            first = first_with.setdefault(digests, place)
            if first != place:
                found[place] = first
    return dict(sorted(found.items()))
