"""Checks for captures of the same packets at two or more places.

The core matches packets and compares clocks (`native/src/pair`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError, source_name
from tfrctrace.parsers.sources import is_url, size_in_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


MOST_CAPTURES: Final = 250
"""As `MOST_CAPTURES` in `native/src/pair/mod.rs`."""


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


def check_pair(names: Sequence[str], pair: Pair) -> None:
    """Raise unless the inputs are two files, or more of one clock."""
    if len(names) < 2:
        raise UsageError(
            "a pair needs two captures, but 1 was given",
            hint="name the capture near the sender and the one near the receiver",
        )
    if len(names) > MOST_CAPTURES:
        raise UsageError(
            f"packets are followed past at most {MOST_CAPTURES} captures, but {len(names)} were given",
            hint="leave out those at devices that the flows in question do not pass",
        )
    if len(names) > 2 and pair.clock_offset_ns:
        raise UsageError(
            "a clock offset is one between two captures",
            hint="more than two must have one clock: leave it out",
        )
    for name in names:
        if is_url(name) or (size_in_bytes(name) is None and os.path.exists(name)):
            raise UsageError(
                f"{source_name(name)} is no file, but a pair is read twice, for clocks and for delays",
                hint="save the capture to a file first",
            )
    known: dict[tuple[int, int], str] = {}
    for name in filter(os.path.exists, names):
        status = os.stat(name)
        if (status.st_dev, status.st_ino) in known:
            raise UsageError(f"{source_name(name)} was given twice, but each place has a capture of its own")
        known[status.st_dev, status.st_ino] = name
