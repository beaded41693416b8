"""Claims about the means of scenarios: `rate[tfrc] > rate[tcp]`, `jain falling in flows`.

claim = term (">" | ">=" | "<" | "<=") term
      | term ("rising" | "falling") "in" parameter
term  = number | quantity | quantity "[" selector { "," selector } "]"
selector = group | parameter "=" value
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SYNTAX: Final = "write `a[group] > b[group, parameter=value]`, `a > 0.9` or `a[group] rising in parameter`"

MAX_LENGTH: Final = 500

_COMPARED: Final = re.compile(r"(?P<left>.+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<right>.+)")
_TREND: Final = re.compile(r"(?P<term>.+?)\s+(?P<trend>rising|falling)\s+in\s+(?P<parameter>\S+)")
_TERM: Final = re.compile(r"(?P<quantity>[^\[\],=<>\s]+)\s*(?:\[(?P<selectors>[^\[\]<>]*)\])?")

_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class Term:
    """A quantity of one group (None: of none, or of the only one) where parameters have these values."""

    quantity: str
    group: str | None
    where: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One term or number beside another."""

    text: str
    left: Term | float
    sign: str
    right: Term | float

    def holds(self, left: float, right: float) -> bool:
        """Return whether the two values are as claimed."""
        return _SIGNS[self.sign](left, right)

    def terms(self) -> Iterator[Term]:
        """Give the terms that are no numbers."""
        yield from (side for side in (self.left, self.right) if isinstance(side, Term))


@dataclass(frozen=True, slots=True)
class Trend:
    """A term that grows, or shrinks, from each value of a parameter to the next."""

    text: str
    term: Term
    is_rising: bool
    parameter: str

    def holds(self, before: float, after: float) -> bool:
        """Return whether one step goes the way that is claimed."""
        return after > before if self.is_rising else after < before

    def terms(self) -> Iterator[Term]:
        """Give the term."""
        yield self.term


Claim = Comparison | Trend


def parse_claim(text: str) -> Claim:
    """Return the claim that `text` makes. Raises `UsageError` if it is none."""
    if len(text) > MAX_LENGTH:
        raise UsageError(f"a claim of {len(text)} characters, more than {MAX_LENGTH}", hint=_SYNTAX)
    if trend := _TREND.fullmatch(text.strip()):
        term = _side(trend["term"], text)
        if isinstance(term, Term):
            return Trend(text, term, trend["trend"] == "rising", trend["parameter"])
    elif compared := _COMPARED.fullmatch(text.strip()):
        left, right = (_side(compared[side], text) for side in ("left", "right"))
        if isinstance(left, Term) or isinstance(right, Term):
            return Comparison(text, left, compared["sign"], right)
    raise UsageError(f"`{text}` is no claim", hint=_SYNTAX)


def _side(written: str, claim: str) -> Term | float:
    if (number := _number(written)) is not None:
        return number
    found = _TERM.fullmatch(written.strip())
    if not found:
        raise UsageError(f"`{claim}` is no claim: `{written}` is neither a number nor a term", hint=_SYNTAX)
    groups: list[str] = []
    where: list[tuple[str, str]] = []
    for selector in filter(None, (part.strip() for part in (found["selectors"] or "").split(","))):
        name, equals, value = (part.strip() for part in selector.partition("="))
        if equals:
            where.append((name, value))
        else:
            groups.append(name)
    if len(groups) > 1:
        raise UsageError(f"`{claim}` is no claim: `{written}` names two groups", hint=_SYNTAX)
    return Term(found["quantity"], groups[0] if groups else None, tuple(where))


def _number(written: str) -> float | None:
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
