"""Whether groups of runs differ: the tests of Welch, Student and ranks, and Holm's correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

TestName = Literal["welch", "rank"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComparison:
    """One test between groups of values."""

    test: str = ""
    difference: float | None = None
    """First mean less the second, of two groups."""
    low: float | None = None
    high: float | None = None
    effect: float | None = None
    """Hedges' g of two groups, epsilon squared of ranks."""
    statistic: float | None = None
    degrees: float | None = None
    p_value: float | None = None
    reason: str | None = None
    """Why there is no p value."""


def compare_groups(
    groups: Sequence[Sequence[float]],
    *,
    test: TestName = "welch",
    level: float = 0.95,
    is_single_tested: bool = False,
) -> GroupComparison:
    """Return the test between `groups`: `test` of two, ranks of more, with an interval of `level`.

    With `is_single_tested` a single value is tested against several as if both groups varied alike.
    """
    import polars as pl

    series = [pl.Series(values, dtype=pl.Float64) for values in groups]
    if is_single_tested and min(map(len, groups)) == 1:
        return _student(series[0], series[1])
    return _ranks(series) if len(series) > 2 or test == "rank" else _welch(series[0], series[1], level)


def corrected_p_values(p_values: Sequence[float | None]) -> Iterator[float | None]:
    """Give p values with Holm's correction for how many there are; None stays None."""
    from tfrctrace.metrics.statistics.significance import holm

    corrected = iter(holm([p_value for p_value in p_values if p_value is not None]))
    return (None if p_value is None else next(corrected) for p_value in p_values)


def _student(a: pl.Series, b: pl.Series) -> GroupComparison:
    from tfrctrace.metrics.statistics.significance import student_test

    found = student_test(a, b)
    return GroupComparison(test="Student", p_value=found.p_value if found else None)


def _welch(a: pl.Series, b: pl.Series, level: float) -> GroupComparison:
    from tfrctrace.metrics.statistics.effect_sizes import difference_interval, hedges_g
    from tfrctrace.metrics.statistics.significance import finite, mean_and_variance, welch_test

    if not len(a) or not len(b):
        return GroupComparison(reason="one of them has no value")
    (mean_a, _), (mean_b, _) = (mean_and_variance(finite(values)) for values in (a, b))
    test, interval = welch_test(a, b), difference_interval(a, b, level=level)
    if test is None or interval is None:
        alone = min(len(a), len(b)) < 2
        reason = "a single run does not show how much runs vary" if alone else "neither varies"
        return GroupComparison(test="Welch", difference=mean_a - mean_b, reason=reason)
    return GroupComparison(
        test="Welch",
        difference=mean_a - mean_b,
        low=interval[0],
        high=interval[1],
        effect=hedges_g(a, b),
        statistic=test.statistic,
        degrees=test.degrees,
        p_value=test.p_value,
    )


def _ranks(groups: Sequence[pl.Series]) -> GroupComparison:
    from tfrctrace.metrics.statistics.effect_sizes import epsilon_squared
    from tfrctrace.metrics.statistics.significance import kruskal_wallis

    name = "Kruskal and Wallis"
    test = kruskal_wallis(groups)
    if test is None:
        return GroupComparison(test=name, reason="no values, or all are the same")
    return GroupComparison(
        test=name,
        effect=epsilon_squared(test.statistic, groups),
        statistic=test.statistic,
        degrees=test.degrees,
        p_value=test.p_value,
    )
