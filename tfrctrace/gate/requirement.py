"""Limits on one line: `p95(rtt_ms) < 80 ms where port 5201`."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.errors import UsageError
from tfrctrace.gate.quantity import Quantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfrctrace.gate.quantity import Better

Level = Literal["fail", "warn"]
"""What a check that does not hold amounts to."""

_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_PARTS: Final = re.compile(r"(.*?)(<=|>=|==|<|>)((?:(?! where ).)*)( where .*)?")
_NUMBER: Final = re.compile(
    r"\s*([-+]?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:e[-+]?[0-9]{1,2})?)\s*(.*?)\s*", re.ASCII
)
_PREFIXES: Final = {"k": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True, slots=True)
class Limit:
    """What must be true of each value of a quantity."""

    quantity: Quantity
    sign: str
    bound: float
    """In the unit of the quantity."""
    text: str
    level: Level = "fail"
    name: str | None = None

    def holds(self, value: float) -> bool:
        """Return whether a value keeps the limit."""
        return _SIGNS[self.sign](value, self.bound)

    def worst(self, values: list[float]) -> float:
        """Return the value that is nearest to breaking the limit, or breaks it most."""
        if self.sign == "==":
            return max(values, key=lambda value: abs(value - self.bound))
        return max(values) if self.sign in {"<", "<="} else min(values)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity that must not become worse than in the baseline."""

    quantity: Quantity
    better: Better
    tolerance: float | None = None
    """As a share of the baseline's mean; None for what the command line says."""
    level: Level = "fail"
    name: str | None = None


def parse_requirement(text: str, *, level: Level = "fail", name: str | None = None) -> Limit:
    """Return the limit that `text` describes. Raises `UsageError` if it is none."""
    match = _PARTS.fullmatch(" ".join(text.split()))
    if not match or not match[1].strip():
        raise UsageError(
            f"`{text}` is no requirement",
            hint="write a quantity, <, <=, >, >= or ==, and a number, such as `p95(rtt_ms) < 80`",
        )
    quantity = parse_quantity(match[1].strip() + (match[4] or ""))
    return Limit(quantity, match[2], _bound(match[3], quantity, text), match[0], level, name)


def parse_comparison(
    text: str,
    *,
    better: Better | None = None,
    tolerance: float | None = None,
    level: Level = "fail",
    name: str | None = None,
) -> Comparison:
    """Return the comparison of the quantity `text`. Raises `UsageError` if a run has not one value of it."""
    quantity = parse_quantity(text)
    if not quantity.is_one_number:
        raise UsageError(
            f"`{text}` has a value for each flow, and a baseline one for each run",
            hint=f"say how flows become one number, such as `mean({quantity.term.name})`",
        )
    return Comparison(quantity, better or quantity.better, tolerance, level, name)


def parse_share(text: str) -> float:
    """Return a share from 0 on that is written as `5%` or `0.05`."""
    match = _NUMBER.fullmatch(text)
    if not match or match[2] not in {"", "%"} or match[1].startswith("-"):
        raise UsageError(f"`{text}` is not a share", hint="write such as `5%` or `0.05`")
    return float(match[1]) / (100 if match[2] else 1)


def _bound(text: str, quantity: Quantity, whole: str) -> float:
    """Return a number in the unit of `quantity`: `80`, `80 ms`, `5M`, `5 Mbit/s`, `2%`."""
    match = _NUMBER.fullmatch(text)
    if not match:
        raise UsageError(f"`{whole}` has no number that is the limit")
    number, unit = float(match[1]), match[2]
    if unit in {"", quantity.unit}:
        return number
    if unit == "%" and not quantity.unit:
        return number / 100
    if unit[0] in _PREFIXES and unit[1:].strip() in {"", quantity.unit}:
        return number * _PREFIXES[unit[0]]
    raise UsageError(
        f"`{whole}` has a limit in `{unit}`",
        hint=f"the quantity is in {quantity.unit}" if quantity.unit else "the quantity has no unit",
    )
