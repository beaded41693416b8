"""Whether runs are worse than those of a baseline, and not only by noise.

A quantity fails if its mean is worse by more than the tolerance and, where runs were repeated, a test says
that as large a difference is not by chance: Welch's, that of ranks (Kruskal and Wallis of two groups, which
is Mann and Whitney's), or of a single run Student's. The p values are corrected for how many quantities are
compared (Holm), so that the whole gate fails by chance no more often than `significance` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.gate.verdict import Verdict, effect_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.gate.baseline import Baseline
    from tfrctrace.gate.requirement import Comparison
    from tfrctrace.gate.values import Run
    from tfrctrace.gate.verdict import Effect, Outcome
    from tfrctrace.metrics.statistics.significance import Difference

TestName = Literal["welch", "rank"]

DEFAULT_TOLERANCE: Final = 0.05
"""Share of the baseline's mean by which a quantity may become worse."""

DEFAULT_SIGNIFICANCE: Final = 0.01
"""How often repeated runs of an unchanged path may fail by chance."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a difference is judged: shares, and the probability of a false alarm."""

    tolerance: float
    significance: float
    test: TestName
    unknown: Effect


@dataclass(frozen=True, slots=True)
class _Pair:
    """A quantity before and now; `reason` says why they cannot be compared."""

    comparison: Comparison
    before: tuple[float, ...]
    now: tuple[float, ...]
    test: str = ""
    p_value: float | None = None
    reason: str | None = None


def judge_baseline(
    baseline: Baseline, comparisons: Sequence[Comparison], runs: Sequence[Run], rules: Rules
) -> list[Verdict]:
    """Return whether each of `comparisons` is as good in `runs` as it was in the baseline."""
    pairs = [_with_p_value(_pair(one, baseline, runs), rules.test) for one in comparisons]
    return [_verdict(pair, rules) for pair in _corrected(pairs)]


def _pair(comparison: Comparison, baseline: Baseline, runs: Sequence[Run]) -> _Pair:
    text = comparison.quantity.name
    before = baseline.values.get(text, ())
    taken = [run.take(comparison.quantity) for run in runs]
    now = tuple(value for one in taken for value in one.values)
    reason = None
    if text not in baseline.values:
        reason = "the baseline does not have it: write the baseline anew"
    elif not before:
        reason = "the baseline has no value of it"
    elif lacking := [one.reason for one in taken if not one.values]:
        reason = f"{len(lacking)} of {len(runs)} runs have no value: {lacking[0]}"
    return _Pair(comparison, before, now, reason=reason)


def _with_p_value(pair: _Pair, test: TestName) -> _Pair:
    """Return `pair` with a p value, if runs were repeated and vary."""
    import polars as pl

    from tfrctrace.metrics.statistics.significance import kruskal_wallis, student_test, welch_test

    if pair.reason is not None:
        return pair
    before, now = (pl.Series(values, dtype=pl.Float64) for values in (pair.before, pair.now))
    difference: Difference | None
    if min(len(pair.before), len(pair.now)) < 2:
        name, difference = "Student", student_test(before, now)
    elif test == "rank":
        name, difference = "ranks", kruskal_wallis([before, now])
    else:
        name, difference = "Welch", welch_test(before, now)
    return pair if difference is None else replace(pair, test=name, p_value=difference.p_value)


def _corrected(pairs: Sequence[_Pair]) -> Iterator[_Pair]:
    from tfrctrace.metrics.statistics.significance import holm

    p_values = iter(holm([pair.p_value for pair in pairs if pair.p_value is not None]))
    for pair in pairs:
        yield pair if pair.p_value is None else replace(pair, p_value=next(p_values))


def _verdict(pair: _Pair, rules: Rules) -> Verdict:
    one = pair.comparison
    before, now = _mean(pair.before), _mean(pair.now)
    outcome, reason = _outcome(pair, before, now, rules)
    return Verdict(
        check=one.quantity.name,
        kind="baseline",
        name=one.name,
        outcome=outcome,
        effect=effect_of(outcome, one.level, rules.unknown),
        unit=one.quantity.unit,
        value=now,
        against=before,
        runs=len(pair.now),
        reason=reason,
        p_value=pair.p_value,
    )


def _outcome(pair: _Pair, before: float | None, now: float | None, rules: Rules) -> tuple[Outcome, str]:
    if pair.reason is not None or before is None or now is None:
        return "unknown", pair.reason or ""
    tolerance = rules.tolerance if pair.comparison.tolerance is None else pair.comparison.tolerance
    change = now - before
    worse = {"higher": -change, "lower": change, "same": abs(change)}[pair.comparison.better]
    # a constant that becomes another constant is no noise; nor is a single run's, for all we can know
    is_certain = pair.p_value is None or pair.p_value < rules.significance
    is_regression = worse > tolerance * abs(before) and is_certain
    return "fail" if is_regression else "pass", "; ".join(_explanation(pair, before, now, tolerance))


def _explanation(pair: _Pair, before: float, now: float, tolerance: float) -> Iterator[str]:
    if before:
        yield f"{(now - before) / abs(before):+.1%}, {100 * tolerance:.3g} % allowed"
    else:
        yield f"{now - before:+.4g}, the baseline is 0"
    if pair.p_value is not None:
        yield f"p = {pair.p_value:.2g} ({pair.test}, {len(pair.now)} and {len(pair.before)} runs)"
    elif len(pair.now) == len(pair.before) == 1:
        yield "one run each, so the tolerance alone decides"
    else:
        yield "no run varies, so the tolerance alone decides"


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
