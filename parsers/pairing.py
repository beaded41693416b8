"""Checks for a pair of captures of the same packets.

The core matches packets and compares clocks (`native/src/pair`).
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
    """How far the second capture's clock is ahead; None to estimate it."""


def pair_of(*, pair: bool, clock_offset_ns: int | None, others: Mapping[str, object]) -> Pair | None:
    """Return how the inputs are matched, or None if they are not a pair.

    `clock_offset_ns` is how far the second clock is ahead. `others` are options by name that do not apply to
    a pair.
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
    """Raise unless the inputs are two files."""
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
