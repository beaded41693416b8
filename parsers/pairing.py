"""Two captures of the same packets at two places: what that takes, and what cannot be together with it.

How packets are matched and clocks compared is the core's work (`native/src/pair`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrctrace.base.errors import UsageError, source_name
from tfrctrace.parsers.sources import size_in_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Pair:
    """How two captures are matched."""

    clock_offset_ns: int | None = None
    """What the clock of the second capture is ahead of the first's; None leaves it to the packets."""


def pair_of(*, pair: bool, clock_offset_ns: int | None, others: Mapping[str, object]) -> Pair | None:
    """Return how the inputs are matched, or None if they are no pair.

    `clock_offset_ns` is what the user says that the second clock is ahead. `others` are options by name, as
    the user gave them, that have no meaning for a pair.
    """
    if not pair:
        if clock_offset_ns is not None:
            raise UsageError("a clock offset needs a pair of captures", hint="add `--pair`")
        return None
    for name, value in others.items():
        if value:
            raise UsageError(f"`{name}` does not apply to a pair of captures", hint="leave it out")
    return Pair(clock_offset_ns)


def check_pair(names: Sequence[str]) -> None:
    """Raise if the inputs cannot be a pair: that takes two files."""
    if len(names) != 2:
        number = "1 was" if len(names) == 1 else f"{len(names)} were"
        raise UsageError(
            f"a pair needs two captures, but {number} given",
            hint="name the capture near the sender and the one near the receiver",
        )
    for name in names:
        if size_in_bytes(name) is None and os.path.exists(name):
            raise UsageError(
                f"{source_name(name)} is a pipe, but a pair is read twice, for clocks and for delays",
                hint="save the capture to a file first",
            )
    if os.path.exists(names[0]) and os.path.exists(names[1]) and os.path.samefile(*names):
        raise UsageError(f"{source_name(names[0])} was given twice, but a pair needs two captures")
