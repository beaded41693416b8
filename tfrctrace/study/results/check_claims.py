"""Whether the means of scenarios are as a study claims."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Literal

from tfrctrace.study.file.claims import ScenarioMean, Trend
from tfrctrace.study.results.cells import matches, sorted_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.study.definition import Expectation, Value
    from tfrctrace.study.file.claims import Inequality
    from tfrctrace.study.results.cells import Cell

Finding = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """One comparison of two means: where, what they are, and whether they are as claimed."""

    scenario: tuple[tuple[str, Value], ...]
    left: float | None
    right: float | None
    finding: Finding


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The result of checking a claim."""

    expectation: Expectation
    looks: tuple[ClaimCheck, ...]
    reason: str | None
    """Why the finding is unknown, if it is."""

    @property
    def finding(self) -> Finding:
        """`fails` if it fails anywhere, `holds` if it holds wherever it was looked at."""
        found = {look.finding for look in self.looks}
        if "fails" in found:
            return "fails"
        return "unknown" if not found or "unknown" in found else "holds"

    @property
    def is_as_expected(self) -> bool:
        """Whether the claim holds, or fails if the study knows that it does."""
        return self.finding == ("holds" if self.expectation.holds else "fails")


def check_claim(cells: Sequence[Cell], expectation: Expectation, scenario: Sequence[str]) -> ClaimVerdict:
    """Check a claim in each scenario that the expectation covers."""
    claim = expectation.claim
    seen = [cell for cell in cells if matches(cell, expectation.where)]
    try:
        looks = (
            _trend(seen, claim, scenario) if isinstance(claim, Trend) else _compared(seen, claim, scenario)
        )
        found = tuple(looks)
    except _AmbiguousTermError as error:
        return ClaimVerdict(expectation, (), str(error))
    return ClaimVerdict(expectation, found, None if found else "no scenario has all that is compared")


class _AmbiguousTermError(Exception):
    """A term that several values fit."""


def _compared(cells: Sequence[Cell], claim: Inequality, scenario: Sequence[str]) -> Iterator[ClaimCheck]:
    bound = {name for term in claim.terms() for name, _ in term.where}
    free = [name for name in scenario if name not in bound]
    left, right = (_values(cells, side, free) for side in (claim.left, claim.right))
    for key in dict.fromkeys([*left, *right]):
        if key is None:
            continue  # a number, which stands beside every scenario
        for a, b in product(left.get(key, left.get(None, [])), right.get(key, right.get(None, []))):
            finding: Finding = "unknown"
            if a is not None and b is not None:
                finding = "holds" if claim.holds(a, b) else "fails"
            yield ClaimCheck(tuple(zip(free, key, strict=True)), a, b, finding)


def _trend(cells: Sequence[Cell], claim: Trend, scenario: Sequence[str]) -> Iterator[ClaimCheck]:
    bound = {name for name, _ in claim.term.where}
    free = [name for name in scenario if name not in {*bound, claim.parameter}]
    by_value = {
        value: _values([cell for cell in cells if cell.axis(claim.parameter) == value], claim.term, free)
        for value in sorted_values(cell.axis(claim.parameter) for cell in cells)
    }
    for key in dict.fromkeys(key for values in by_value.values() for key in values):
        if key is None:
            continue
        steps = [(value, own) for value, values in by_value.items() for own in values.get(key, [])]
        for (_, before), (value, after) in pairwise(steps):
            finding: Finding = "unknown"
            if before is not None and after is not None:
                finding = "holds" if claim.holds(before, after) else "fails"
            yield ClaimCheck((*zip(free, key, strict=True), (claim.parameter, value)), before, after, finding)


def _values(
    cells: Sequence[Cell], side: ScenarioMean | float, free: Sequence[str]
) -> Mapping[tuple[Value, ...] | None, list[float | None]]:
    """Return the means that a side stands for, by the values of the parameters that it leaves open."""
    if not isinstance(side, ScenarioMean):
        return {None: [side]}
    where = {name: (value,) for name, value in side.where}
    own = [cell for cell in cells if cell.quantity == side.quantity and matches(cell, where)]
    groups = {cell.group for cell in own}
    if side.group is None and len(groups) > 1:
        names = ", ".join(sorted(str(group) for group in groups))
        raise _AmbiguousTermError(f"`{side.quantity}` has several groups, so one must be named: {names}")
    found: dict[tuple[Value, ...] | None, list[float | None]] = {}
    for cell in own:
        if side.group in {None, cell.group}:
            found.setdefault(tuple(cell.scenario[name] for name in free), []).append(cell.mean)
    return found
