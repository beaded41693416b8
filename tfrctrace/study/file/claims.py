"""Claims about scenarios: `rate[tfrc] > rate[tcp]`, `jain falling in flows`, `rtt within 2 ms of 50 ms`.

    claim     = side SIGN multiple | side "within" number "of" multiple | side "about" multiple
              | term ("rising" | "falling") "in" NAME
    multiple  = [NUMBER "*" | "half" ["of"] | "twice"] side
    side      = number | term ["/" term]
    term      = NAME ["[" [selector {"," selector}] "]"]
    number    = NUMBER [unit]
    selector  = LABEL | NAME "=" VALUE | ("before" | "after") "=" TIME

A kind of claim is a class of `Claim`. It knows what is `compared` in each scenario, or the `parameter` along
which one term is; when two means are as claimed (`holds`); its one-sided `p_values`; and the `test` of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from tfrctrace.base.errors import UsageError
from tfrctrace.base.signs import SIGNS
from tfrctrace.metrics.statistics.contrasts import trend_weights
from tfrctrace.trace.conditions import Scanner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfrctrace.metrics.statistics.contrasts import Contrast

_SYNTAX: Final = (
    "write `a[group] > b[group, parameter=value]`, `a > 0.9`, `a within 5 % of b`, `a about half b`, "
    "`a[p=1] / a[p=2] < b / c` or `a[group] rising in parameter`"
)
_NEXT: Final = ">, >=, <, <=, `within`, `about`, `rising in` or `falling in`"

MAX_LENGTH: Final = 500

ABOUT: Final = 4 / 3
"""Two values are about the same if neither is larger than so many times the other."""

_TIMES: Final = ("before", "after")
_UNITS: Final = {
    "%": ("", 0.01),
    **{
        f"{prefix}bit/s": ("bit/s", factor)
        for prefix, factor in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9))
    },
    "ms": ("ms", 1.0),
    "s": ("s", 1.0),
}
_FLIPPED: Final = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass(frozen=True, slots=True)
class ScenarioMean:
    """Mean of a quantity of one group (None: of the only one) where parameters have these values."""

    quantity: str
    group: str | None
    where: tuple[tuple[str, str], ...]
    times: tuple[tuple[str, str], ...] = ()
    """`before` or `after`, and a time since the start of the first flow."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number, with the unit that it was written in; empty if there was none."""

    value: float
    unit: str = ""


Term = ScenarioMean | Number

Side = tuple[ScenarioMean, ...]
"""A term, or the two of a ratio."""


class ContrastOf(Protocol):
    """Gives the sum of what is compared, or of its logarithms, with these weights, and its error."""

    def __call__(self, weights: Sequence[float], *, of_logs: bool = False) -> Contrast | None:
        """Return it; None if there is no test."""
        ...


@dataclass(frozen=True, slots=True)
class Bound:
    """`left SIGN factor * right + margin`."""

    sign: str
    factor: float = 1.0
    margin: float = 0.0

    def holds(self, left: float, right: float) -> bool:
        """Return whether the two values are as claimed."""
        return bool(SIGNS[self.sign](left, self.factor * right + self.margin))

    def p_values(self, difference: Contrast, margin: float) -> tuple[float, float]:
        """Return the p values that it holds, and that it does not, of `left - right` beside a margin."""
        if not difference.error:
            # no run varies: the values themselves decide, and equal ones fulfil >= and <=
            is_held = bool(SIGNS[self.sign](difference.estimate, margin))
            return float(not is_held), float(is_held)
        above, below = difference.p_above(margin), difference.p_below(margin)
        return (above, below) if self.sign.startswith(">") else (below, above)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One term beside another or a number; all of the bounds must hold. Each may be a ratio of two terms."""

    text: str
    left: Side
    right: Side | Number
    bounds: tuple[Bound, ...]
    margin_unit: str = ""

    parameter: ClassVar[None] = None
    test: ClassVar[str] = ""

    @property
    def compared(self) -> tuple[Term, ...]:
        """The terms of both sides, and the number."""
        return *self.left, *self._right_terms

    @property
    def joints(self) -> tuple[str, ...]:
        """What is written between one term and the next."""
        over_left, over_right = ((" / ",) * (len(terms) - 1) for terms in (self.left, self._right_terms))
        return *over_left, " against ", *over_right

    @property
    def has_ratio(self) -> bool:
        """Whether a side is a ratio of two terms."""
        return len(self.compared) > 2

    @property
    def _right_terms(self) -> Sequence[Term]:
        return (self.right,) if isinstance(self.right, Number) else self.right

    def holds(self, means: Sequence[float]) -> bool | None:
        """Return whether the means of what is compared are as claimed; None for a ratio over 0."""
        cut = len(self.left)
        left, right = (_ratio(side) for side in (means[:cut], means[cut:]))
        if left is None or right is None:
            return None
        return all(bound.holds(left, right) for bound in self.bounds)

    def p_values(self, contrast_of: ContrastOf, levels: int) -> tuple[float, float] | None:
        """Return the p values of all bounds, and of the contrary of one of them; None if there is no test.

        Ratios are compared by the logarithms of the means.
        """
        found = []
        for bound in self.bounds:
            if self.has_ratio:
                over_left, over_right = ([-1.0] * (len(side) - 1) for side in (self.left, self._right_terms))
                weights = [1.0, *over_left, -1.0, *(-weight for weight in over_right)]
                difference, margin = contrast_of(weights, of_logs=True), math.log(bound.factor)
            else:
                difference, margin = contrast_of([1.0, -bound.factor]), bound.margin
            if difference is None:
                return None
            found.append(bound.p_values(difference, margin))
        return max(holds for holds, _ in found), min(contrary for _, contrary in found)

    def adapted(
        self, term: Callable[[ScenarioMean], ScenarioMean], factor: Callable[[str], float]
    ) -> Comparison:
        """Return it with other terms, its number and margin in the unit of the quantity."""
        right, bounds = self.right, self.bounds
        right = (
            Number(right.value * factor(right.unit)) if isinstance(right, Number) else tuple(map(term, right))
        )
        if self.margin_unit:
            by = factor(self.margin_unit)
            bounds = tuple(replace(bound, margin=bound.margin * by) for bound in bounds)
        return replace(self, left=tuple(map(term, self.left)), right=right, bounds=bounds)


@dataclass(frozen=True, slots=True)
class Trend:
    """A term that grows, or shrinks, from each value of a parameter to the next."""

    text: str
    term: ScenarioMean
    is_rising: bool
    parameter: str

    test: ClassVar[str] = " of the trend"
    has_ratio: ClassVar[bool] = False
    joints: ClassVar[tuple[str, ...]] = ()

    @property
    def compared(self) -> tuple[Term, ...]:
        """The term."""
        return (self.term,)

    def holds(self, means: Sequence[float]) -> bool:
        """Return whether each step goes the way that is claimed."""
        return all(after > before if self.is_rising else after < before for before, after in pairwise(means))

    def p_values(self, contrast_of: ContrastOf, levels: int) -> tuple[float, float] | None:
        """Return the p values of a trend over all levels, and of its contrary or that of one step."""
        sign = 1.0 if self.is_rising else -1.0
        slope = contrast_of([sign * weight for weight in trend_weights(levels)])
        if slope is None:
            return None
        contrary = [slope.p_below()]
        for place in range(levels - 1):
            weights = [0.0] * levels
            weights[place], weights[place + 1] = -sign, sign
            step = contrast_of(weights)
            if step is not None:
                contrary.append(min(step.p_below() * (levels - 1), 1.0))
        return slope.p_above(), min(contrary)

    def adapted(self, term: Callable[[ScenarioMean], ScenarioMean], factor: Callable[[str], float]) -> Trend:
        """Return it with another term."""
        return replace(self, term=term(self.term))


Claim = Comparison | Trend


def terms(claim: Claim) -> Iterator[ScenarioMean]:
    """Give what is compared but numbers."""
    yield from (side for side in claim.compared if isinstance(side, ScenarioMean))


def parse_claim(text: str) -> Claim:
    """Return the claim that `text` makes. Raises `UsageError` for invalid text."""
    if len(text) > MAX_LENGTH:
        raise UsageError(f"a claim of {len(text)} characters, more than {MAX_LENGTH}", hint=_SYNTAX)
    scanner = Scanner(text.strip(), "claim", _SYNTAX)
    left = _side(scanner)
    if not isinstance(left, Number):
        if len(left) == 1 and (trend := scanner.accept(r"(?:rising|falling)(?=\s)")):
            scanner.expect(r"in(?=\s)", "`in`")
            parameter = scanner.expect(r"\S+", "a parameter")
            scanner.end()
            return Trend(text, left[0], trend == "rising", parameter)
        if scanner.accept(r"within(?=\s)"):
            return _within(scanner, text, left)
        if scanner.accept(r"about(?=\s)"):
            factor, right = _multiple(scanner)
            return _comparison(scanner, text, left, right, ((">=", factor / ABOUT), ("<=", factor * ABOUT)))
    sign = scanner.expect(">=|<=|>|<", _NEXT)
    factor, right = _multiple(scanner)
    if not isinstance(left, Number):
        return _comparison(scanner, text, left, right, ((sign, factor),))
    if isinstance(right, Number):
        raise UsageError(f"`{text}` is not a claim: it compares two numbers", hint=_SYNTAX)
    number = Number(left.value / factor, left.unit)
    return _comparison(scanner, text, right, number, ((_FLIPPED[sign], 1.0),))


def _within(scanner: Scanner, text: str, left: Side) -> Comparison:
    margin = _number(scanner)
    if margin is None:
        raise scanner.error("a number, such as `within 2 ms of` or `within 5 % of`")
    scanner.expect(r"of(?=\s)", "`of`")
    factor, right = _multiple(scanner)
    if margin.unit == "%":
        bounds = ((">=", factor * (1 - margin.value)), ("<=", factor * (1 + margin.value)))
        return _comparison(scanner, text, left, right, bounds)
    found = _comparison(scanner, text, left, right, ((">=", factor), ("<=", factor)))
    if found.has_ratio:
        raise UsageError(f"`{text}` is not a claim: the margin of a ratio is in %", hint=_SYNTAX)
    above, below = (
        replace(bound, margin=sign * margin.value) for sign, bound in zip((-1, 1), found.bounds, strict=True)
    )
    return replace(found, bounds=(above, below), margin_unit=_base_unit(margin.unit))


def _comparison(
    scanner: Scanner, text: str, left: Side, right: Side | Number, bounds: Sequence[tuple[str, float]]
) -> Comparison:
    """Return the comparison that ends here, with the signs and factors of its bounds."""
    scanner.end()
    found = Comparison(text, left, right, tuple(Bound(sign, factor) for sign, factor in bounds))
    if found.has_ratio and isinstance(right, Number) and (right.unit or right.value <= 0):
        raise UsageError(f"`{text}` is not a claim: a ratio has no unit and is above 0", hint=_SYNTAX)
    if found.has_ratio and any(bound.factor <= 0 for bound in found.bounds):
        raise UsageError(f"`{text}` is not a claim: a ratio is above 0", hint=_SYNTAX)
    return found


def _multiple(scanner: Scanner) -> tuple[float, Side | Number]:
    """Return a side and its factor: `half b`, `twice b`, `1.5 * b`."""
    for word, factor in (("half", 0.5), ("twice", 2.0)):
        if scanner.accept(rf"{word}(?=\s)"):
            scanner.accept(r"of(?=\s)")
            return factor, _side(scanner)
    if (factor_text := scanner.accept(r"[0-9.]+(?=\s*\*)")) is not None:
        multiple = _finite(factor_text)
        scanner.expect(r"\*", "`*`")
        if not multiple:
            raise UsageError(f"`{scanner.text}` is not a claim: `{factor_text}` is no factor", hint=_SYNTAX)
        return multiple, _side(scanner)
    return 1.0, _side(scanner)


def _side(scanner: Scanner) -> Side | Number:
    if (number := _number(scanner)) is not None:
        return Number(number.value, _base_unit(number.unit))
    above = _scenario_mean(scanner)
    return (above, _scenario_mean(scanner)) if scanner.accept("/") else (above,)


def _scenario_mean(scanner: Scanner) -> ScenarioMean:
    written = scanner.expect(r"[^\[\],=<>*\s]+", "a number or a quantity")
    groups: list[str] = []
    where: list[tuple[str, str]] = []
    times: list[tuple[str, str]] = []
    if scanner.accept(r"\["):
        while not scanner.accept(r"\]"):
            name = (scanner.accept(r"[^\[\],=<>]+") or "").strip()
            if scanner.accept("="):
                value = (scanner.accept(r"[^\[\],<>]+") or "").strip()
                (times if name in _TIMES else where).append((name, value))
            elif name:
                groups.append(name)
            if not scanner.accept(","):
                scanner.expect(r"(?=\])", "`,` or `]`")
    if len(groups) > 1:
        raise UsageError(f"`{scanner.text}` is not a claim: `{written}` names two groups", hint=_SYNTAX)
    return ScenarioMean(written, groups[0] if groups else None, tuple(where), tuple(times))


def _number(scanner: Scanner) -> Number | None:
    """Return a number in the base unit of its unit, and that unit as written; None if there is none."""
    position = scanner.position
    written = scanner.accept(r"[-+0-9.][-+0-9.eE]*(?=[\s%<>=,\]]|$|[kMG]?bit/s|ms|s)")
    value = None if written is None else _finite(written)
    if value is None:
        scanner.position = position
        return None
    unit = scanner.accept(r"(?:%|[kMG]?bit/s(?!\S)|ms(?!\S)|s(?!\S))") or ""
    return Number(value * _UNITS[unit][1] if unit else value, unit)


def _ratio(means: Sequence[float]) -> float | None:
    """Return the mean, or the ratio of two; None over 0."""
    above, *below = means
    return above if not below else above / below[0] if below[0] else None


def _base_unit(unit: str) -> str:
    return _UNITS[unit][0] if unit else ""


def _finite(written: str) -> float | None:
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
