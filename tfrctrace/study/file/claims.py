"""Claims about the means of scenarios: `rate[tfrc] > rate[tcp]`, `jain falling in flows`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.trace.conditions import SIGNS, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterator

_SYNTAX: Final = "write `a[group] > b[group, parameter=value]`, `a > 0.9` or `a[group] rising in parameter`"
_NEXT: Final = ">, >=, <, <=, `rising in` or `falling in`"

MAX_LENGTH: Final = 500


@dataclass(frozen=True, slots=True)
class ScenarioMean:
    """Mean of a quantity of one group (None: of the only one) where parameters have these values."""

    quantity: str
    group: str | None
    where: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Inequality:
    """One term or number beside another."""

    text: str
    left: ScenarioMean | float
    sign: str
    right: ScenarioMean | float

    def holds(self, left: float, right: float) -> bool:
        """Return whether the two values are as claimed."""
        return SIGNS[self.sign](left, right)

    def terms(self) -> Iterator[ScenarioMean]:
        """Give the terms that are no numbers."""
        yield from (side for side in (self.left, self.right) if isinstance(side, ScenarioMean))


@dataclass(frozen=True, slots=True)
class Trend:
    """A term that grows, or shrinks, from each value of a parameter to the next."""

    text: str
    term: ScenarioMean
    is_rising: bool
    parameter: str

    def holds(self, before: float, after: float) -> bool:
        """Return whether one step goes the way that is claimed."""
        return after > before if self.is_rising else after < before

    def terms(self) -> Iterator[ScenarioMean]:
        """Give the term."""
        yield self.term


Claim = Inequality | Trend


def parse_claim(text: str) -> Claim:
    """Return the claim that `text` makes. Raises `UsageError` for invalid text."""
    if len(text) > MAX_LENGTH:
        raise UsageError(f"a claim of {len(text)} characters, more than {MAX_LENGTH}", hint=_SYNTAX)
    scanner = Scanner(text.strip(), "claim", _SYNTAX)
    left = _side(scanner)
    if isinstance(left, ScenarioMean) and (trend := scanner.accept(r"(?:rising|falling)(?=\s)")):
        scanner.expect(r"in(?=\s)", "`in`")
        parameter = scanner.expect(r"\S+", "a parameter")
        scanner.end()
        return Trend(text, left, trend == "rising", parameter)
    sign = scanner.expect(">=|<=|>|<", _NEXT)
    right = _side(scanner)
    scanner.end()
    if not isinstance(left, ScenarioMean) and not isinstance(right, ScenarioMean):
        raise UsageError(f"`{text}` is not a claim: it compares two numbers", hint=_SYNTAX)
    return Inequality(text, left, sign, right)


def _side(scanner: Scanner) -> ScenarioMean | float:
    written = scanner.expect(r"[^\[\],=<>\s]+", "a number or a quantity")
    if (number := _number(written)) is not None:
        return number
    groups: list[str] = []
    where: list[tuple[str, str]] = []
    if scanner.accept(r"\["):
        while not scanner.accept(r"\]"):
            name = (scanner.accept(r"[^\[\],=<>]+") or "").strip()
            if scanner.accept("="):
                where.append((name, (scanner.accept(r"[^\[\],<>]+") or "").strip()))
            elif name:
                groups.append(name)
            if not scanner.accept(","):
                scanner.expect(r"(?=\])", "`,` or `]`")
    if len(groups) > 1:
        raise UsageError(f"`{scanner.text}` is not a claim: `{written}` names two groups", hint=_SYNTAX)
    return ScenarioMean(written, groups[0] if groups else None, tuple(where))


def _number(written: str) -> float | None:
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
