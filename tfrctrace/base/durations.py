"""Durations as users write them: `500ms`, `1s`, `2.5 min`, `1h30m`."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from datetime import timedelta

_NS_OF_UNIT: Final = {
    "ns": 1,
    "µs": 1_000,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_ZERO: Final = r"\s*0+(?:\.0+)?\s*[a-zµ]*\s*"
_PART: Final = r"([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]+)\s*"
_LONGEST_NS: Final = 2**63 - 1


def parse_duration_ns(duration: str | timedelta, argument: str = "") -> int:
    """Return a duration in ns. It must be positive and a whole number of ns.

    The text has a number and a unit, or several from the longest unit to the shortest. `argument` names it
    in the error.
    """
    text = duration if isinstance(duration, str) else _seconds_text(duration)
    of_argument = f"`{argument}`: " if argument else ""
    parts = re.findall(_PART, text, re.ASCII) if re.fullmatch(rf"\s*(?:{_PART})+", text, re.ASCII) else []
    units = [_NS_OF_UNIT.get(unit, 0) for _, unit in parts]
    if not units or 0 in units or any(unit <= next_one for unit, next_one in pairwise(units)):
        raise UsageError(
            f"{of_argument}`{text}` is not a duration",
            hint="write a number and a unit, such as `500ms`, `1s` or `1h30m`",
        )
    from decimal import Decimal

    nanoseconds = sum(Decimal(number) * unit for (number, _), unit in zip(parts, units, strict=True))
    if not 0 < nanoseconds <= _LONGEST_NS or nanoseconds != int(nanoseconds):
        raise UsageError(
            f"{of_argument}`{text}` is not a duration of 1 ns or more",
            hint="units are ns, us, ms, s, m or min, h and d",
        )
    return int(nanoseconds)


def _seconds_text(duration: object) -> str:
    """Return a `timedelta` in whole microseconds; anything else as it is, which is no duration."""
    from datetime import timedelta

    if isinstance(duration, timedelta):
        return f"{duration // timedelta(microseconds=1)}us"
    return str(duration)


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
