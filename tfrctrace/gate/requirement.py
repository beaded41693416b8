"""Limits on one line: `p95(rtt_ms) < 80 ms where port 5201`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.errors import UsageError
from tfrctrace.base.signs import SIGNS
from tfrctrace.runs.quantity import OF_FLOWS, Quantity, parse_quantity, read_formula, read_where
from tfrctrace.trace.conditions import Scanner

if TYPE_CHECKING:
    from tfrctrace.runs.quantity import Better, Language

Level = Literal["fail", "warn"]
"""Whether a check that does not hold fails the gate."""

_SYNTAX: Final = "write a quantity, <, <=, >, >= or ==, and a number, such as `p95(rtt_ms) < 80`"
_DIGITS: Final = r"[-+]?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:e[-+]?[0-9]{1,2})?"
_SHARE: Final = re.compile(rf"\s*({_DIGITS})\s*(%?)\s*", re.ASCII)
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
    unit: str = ""
    """As it was written: `ms`, `Mbit/s`, `%`; empty if it was not."""
    line: int | None = None
    """Where it begins in the file of limits; None for one of the command line."""

    def holds(self, value: float) -> bool:
        """Return whether a value keeps the limit."""
        return bool(SIGNS[self.sign](value, self.bound))

    def worst(self, values: list[float]) -> float:
        """Return the value that is nearest to breaking the limit, or breaks it most."""
        if self.sign == "==":
            return max(values, key=lambda value: abs(value - self.bound))
        return max(values) if self.sign in {"<", "<="} else min(values)


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """A quantity that must not become worse than in the baseline."""

    quantity: Quantity
    better: Better
    tolerance: float | None = None
    """As a share of the baseline's mean; None for that of the command line."""
    level: Level = "fail"
    name: str | None = None
    line: int | None = None


def parse_requirement(
    text: str, *, level: Level = "fail", name: str | None = None, language: Language = OF_FLOWS
) -> Limit:
    """Return the limit that `text` describes. Raises `UsageError` for invalid text."""
    whole = " ".join(text.split())
    scanner = Scanner(whole, "requirement", _SYNTAX)
    term, over = read_formula(scanner, language)
    conditions = read_where(scanner, language)
    formula = whole[: scanner.position]
    sign = scanner.expect("|".join(SIGNS), "<, <=, >, >= or ==")
    number = float(scanner.expect(_DIGITS, "a number"))
    unit = (scanner.accept(r"(?:(?!where\b)\S+ ?)+") or "").strip()
    asked = f"{formula} {whole[scanner.position :].lstrip()}".rstrip()
    conditions = conditions or read_where(scanner, language)
    scanner.end("`where`, `and` or the end")
    quantity = Quantity(asked, term, over, conditions)
    return Limit(quantity, sign, _bound(number, unit, quantity, text), whole, level, name, unit)


def parse_comparison(
    text: str,
    *,
    better: Better | None = None,
    tolerance: float | None = None,
    level: Level = "fail",
    name: str | None = None,
) -> BaselineComparison:
    """Return the comparison of the quantity `text`. Raises `UsageError` if a run has not one value of it."""
    quantity = parse_quantity(text)
    if not quantity.is_one_number:
        raise UsageError(
            f"`{text}` has a value for each flow, and a baseline one for each run",
            hint=f"aggregate the flows, such as `mean({quantity.term.name})`",
        )
    return BaselineComparison(quantity, better or quantity.better, tolerance, level, name)


def parse_share(text: str) -> float:
    """Return a share from 0 on that is written as `5%` or `0.05`."""
    match = _SHARE.fullmatch(text)
    if not match or match[1].startswith("-"):
        raise UsageError(f"`{text}` is not a share", hint="write such as `5%` or `0.05`")
    return float(match[1]) / (100 if match[2] else 1)


def _bound(number: float, unit: str, quantity: Quantity, whole: str) -> float:
    """Return a number in the unit of `quantity`: `80`, `80 ms`, `5M`, `5 Mbit/s`, `2%`."""
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
