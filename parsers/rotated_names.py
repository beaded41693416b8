"""Numbers in the names of rotated captures: which ones are missing."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tfrctrace.base.errors import input_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.base.errors import Problem

_NAMES_SHOWN = 3


def missing_files(names: Sequence[str]) -> Problem | None:
    """Return a problem if the numbers of rotated captures have gaps, such as `a1` and `a3`.

    Times in names have gaps, too; only numbers most of which are there count as numbers of files.
    """
    pieces = [re.split(r"([0-9]+)", os.path.basename(name)) for name in names]
    if len(names) < 2 or len({tuple(own[::2]) for own in pieces}) > 1:
        return None
    counting = next(
        (place for place in range(1, len(pieces[0]), 2) if len({own[place] for own in pieces}) > 1), None
    )
    if counting is None:
        return None
    present = {int(own[counting]) for own in pieces}
    absent = [number for number in range(min(present), max(present) + 1) if number not in present]
    if not absent or len(absent) > len(present) / 2:
        return None
    first = pieces[0]
    width = len(first[counting]) if first[counting].startswith("0") else 0
    shown = [f"{number:0{width}}" for number in absent[:_NAMES_SHOWN]]
    if len(absent) > _NAMES_SHOWN:
        shown.append(f"{len(absent) - _NAMES_SHOWN} more")
    start = "".join(first[:counting])
    return input_problem(
        names[0],
        "gap",
        f"no file of the joined ones has number {', '.join(shown)} after `{start}`",
        severity="warning",
        hint="name all files of the capture; without the missing packets flows seem to lose them",
    )
