"""Whether a quantity differs between scenarios or groups, and by how much."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from tfrctrace.runs.compare_groups import GroupComparison, compare_groups, corrected_p_values
from tfrctrace.study.definition import GROUP
from tfrctrace.study.results.cells import matches, sorted_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.study.definition import ComparisonPlan, Value
    from tfrctrace.study.results.cells import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult(GroupComparison):
    """One test between levels of a parameter, or between groups of flows."""

    quantity: str
    between: str
    scenario: tuple[tuple[str, Value], ...]
    """What the compared have in common."""
    levels: tuple[Value, ...]
    runs: tuple[int, ...]
    means: tuple[float | None, ...]
    unit: str
    p_holm: float | None = None


def differences_between(
    cells: Sequence[Cell], plan: ComparisonPlan, scenario: Sequence[str], level: float
) -> list[TestResult]:
    """Return a test for each combination of what `between` is not, with intervals of `level`.

    Where no run has a flow of a group, that group has none.
    """
    own = [cell for cell in cells if cell.quantity == plan.quantity and matches(cell, plan.where)]
    fixed = [name for name in (*scenario, GROUP) if name != plan.between]
    parts: dict[tuple[Value | None, ...], list[Cell]] = {}
    for cell in own:
        parts.setdefault(tuple(cell.axis(name) for name in fixed), []).append(cell)
    made = []
    for key, members in parts.items():
        if not any(cell.has_flows for cell in members):
            continue
        common = tuple((name, value) for name, value in zip(fixed, key, strict=True) if value is not None)
        made.append(compare_cells(members, plan.quantity, plan.between, common, level))
    return holm_corrected(made) if plan.holm else made


def compare_cells(
    cells: Sequence[Cell], quantity: str, between: str, common: tuple[tuple[str, Value], ...], level: float
) -> TestResult:
    """Return the test between cells that differ in `between` alone."""
    levels = sorted_values(cell.axis(between) for cell in cells)
    by_level = {cell.axis(between): cell for cell in cells}
    ordered = [by_level[one] for one in levels]
    if len(ordered) < 2:
        found = GroupComparison(reason="nothing to compare it with")
    elif len(ordered) == 2 and not any(cell.values for cell in ordered):
        (why, *others) = dict.fromkeys(cell.reason for cell in ordered)
        found = GroupComparison(reason="neither has a value" if others else why)
    else:
        found = compare_groups([cell.values for cell in ordered], level=level)
    return TestResult(
        **asdict(found),
        quantity=quantity,
        between=between,
        scenario=common,
        levels=tuple(levels),
        runs=tuple(len(cell.values) for cell in ordered),
        means=tuple(cell.mean for cell in ordered),
        unit=cells[0].unit,
    )


def holm_corrected(made: Sequence[TestResult]) -> list[TestResult]:
    """Return the tests with p values corrected for how many there are."""
    p_values = corrected_p_values([one.p_value for one in made])
    return [replace(one, p_holm=p_value) for one, p_value in zip(made, p_values, strict=True)]
