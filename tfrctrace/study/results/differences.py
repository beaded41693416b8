"""Whether a quantity differs between scenarios or groups, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfrctrace.study.definition import GROUP
from tfrctrace.study.results.cells import matches, sorted_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.study.definition import ComparisonPlan, Value
    from tfrctrace.study.results.cells import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """One test. Of two levels it is Welch's, else that of Kruskal and Wallis."""

    quantity: str
    between: str
    scenario: tuple[tuple[str, Value], ...]
    """What the compared have in common."""
    levels: tuple[Value, ...]
    runs: tuple[int, ...]
    means: tuple[float | None, ...]
    unit: str
    difference: float | None = None
    """First mean less the second, of two levels."""
    low: float | None = None
    high: float | None = None
    effect: float | None = None
    """Hedges' g of two levels, else epsilon squared."""
    test: str = ""
    statistic: float | None = None
    degrees: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    reason: str | None = None


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
    import polars as pl

    levels = sorted_values(cell.axis(between) for cell in cells)
    by_level = {cell.axis(between): cell for cell in cells}
    ordered = [by_level[one] for one in levels]
    groups = [pl.Series(cell.values, dtype=pl.Float64) for cell in ordered]
    bare = TestResult(
        quantity=quantity,
        between=between,
        scenario=common,
        levels=tuple(levels),
        runs=tuple(map(len, groups)),
        means=tuple(cell.mean for cell in ordered),
        unit=cells[0].unit,
    )
    if len(groups) < 2:
        return replace(bare, reason="nothing to compare it with")
    if len(groups) == 2 and not any(cell.values for cell in ordered):
        (why, *others) = dict.fromkeys(cell.reason for cell in ordered)
        return replace(bare, reason="neither has a value" if others else why)
    return _welch(bare, groups[0], groups[1], level) if len(groups) == 2 else _kruskal_wallis(bare, groups)


def _welch(bare: TestResult, a: pl.Series, b: pl.Series, level: float) -> TestResult:
    from tfrctrace.metrics.statistics.effect_sizes import difference_interval, hedges_g
    from tfrctrace.metrics.statistics.significance import welch_test

    mean_a, mean_b = bare.means
    if mean_a is None or mean_b is None:
        return replace(bare, reason="one of them has no value")
    known = replace(bare, difference=mean_a - mean_b, test="Welch")
    test, interval = welch_test(a, b), difference_interval(a, b, level=level)
    if test is None or interval is None:
        alone = min(len(a), len(b)) < 2
        return replace(known, reason="one run says nothing of others" if alone else "neither varies")
    return replace(
        known,
        low=interval[0],
        high=interval[1],
        effect=hedges_g(a, b),
        statistic=test.statistic,
        degrees=test.degrees,
        p_value=test.p_value,
    )


def _kruskal_wallis(bare: TestResult, groups: Sequence[pl.Series]) -> TestResult:
    from tfrctrace.metrics.statistics.effect_sizes import epsilon_squared
    from tfrctrace.metrics.statistics.significance import kruskal_wallis

    known = replace(bare, test="Kruskal and Wallis")
    test = kruskal_wallis(groups)
    if test is None:
        return replace(known, reason="no values, or all are the same")
    return replace(
        known,
        effect=epsilon_squared(test.statistic, groups),
        statistic=test.statistic,
        degrees=test.degrees,
        p_value=test.p_value,
    )


def holm_corrected(made: Sequence[TestResult]) -> list[TestResult]:
    """Return the tests with p values corrected for how many there are."""
    from tfrctrace.metrics.statistics.significance import holm

    p_values = iter(holm([one.p_value for one in made if one.p_value is not None]))
    return list(_with_corrected(made, p_values))


def _with_corrected(made: Sequence[TestResult], p_values: Iterator[float]) -> Iterator[TestResult]:
    for one in made:
        yield one if one.p_value is None else replace(one, p_holm=next(p_values))
