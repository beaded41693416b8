"""Durations as users write them: `500ms`, `1s`, `2.5 min`."""

from __future__ import annotations

import re
from typing import Final

from tfrctrace.base.errors import UsageError

_NS_OF_UNIT: Final = {
    "ns": 1,
    "µs": 1_000,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_ZERO: Final = r"\s*0+(?:\.0+)?\s*[a-zµ]*\s*"
_DURATION: Final = r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]+)\s*"
_LONGEST_NS: Final = 2**63 - 1


def parse_duration_ns(text: str) -> int:
    """Return a duration in ns. It must be positive and a whole number of ns."""
    from decimal import Decimal

    match = re.fullmatch(_DURATION, text, re.ASCII)
    if not match or match[2] not in _NS_OF_UNIT:
        raise UsageError(
            f"`{text}` is not a duration", hint="write a number and a unit, such as `500ms` or `1s`"
        )
    nanoseconds = Decimal(match[1]) * _NS_OF_UNIT[match[2]]
    if not 0 < nanoseconds <= _LONGEST_NS or nanoseconds != int(nanoseconds):
        raise UsageError(
            f"`{text}` is not a duration of 1 ns or more", hint="units are ns, us, ms, s, min and h"
        )
    return int(nanoseconds)


def duration_text(nanoseconds: int) -> str:
    """Return a duration in the largest unit of which it is a whole number: `5 min`, `90 s`, `500 ms`."""
    units = [(unit, ns) for unit, ns in _NS_OF_UNIT.items() if nanoseconds % ns == 0]
    unit, ns = max(units, key=lambda one: one[1])
    return f"{nanoseconds // ns} {unit}"


def parse_offset_ns(text: str) -> int:
    """Return a duration in ns that may be negative or zero: `-2.5s`, `0s`."""
    duration = text.strip().removeprefix("+").removeprefix("-")
    nanoseconds = 0 if re.fullmatch(_ZERO, duration, re.ASCII) else parse_duration_ns(duration)
    return -nanoseconds if text.strip().startswith("-") else nanoseconds
