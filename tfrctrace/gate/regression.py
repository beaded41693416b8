"""Whether runs are worse than those of a baseline, and not only by noise.

A quantity fails if its mean is worse by more than the tolerance and, where runs were repeated, a test shows
that the difference is not chance. The p values are corrected for the number of quantities (Holm), so that
the whole gate fails by chance no more often than `significance`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tfrctrace.gate.verdict import effect_of, with_counts
from tfrctrace.metrics.results.verdict import Verdict
from tfrctrace.runs.compare_groups import GroupComparison, compare_groups, corrected_p_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.gate.baseline import Baseline
    from tfrctrace.gate.requirement import BaselineComparison
    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.metrics.results.verdict import CheckOutcome, Effect
    from tfrctrace.runs.compare_groups import TestName

DEFAULT_TOLERANCE: Final = 0.05
"""How much worse a mean may be than the baseline's, as a share of it."""

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

    comparison: BaselineComparison
    before: tuple[float, ...]
    now: tuple[float, ...]
    test: str = ""
    flows_left_out: int = 0
    sparse_flows: int = 0
    p_value: float | None = None
    reason: str | None = None


def judge_baseline(
    baseline: Baseline, comparisons: Sequence[BaselineComparison], runs: Sequence[CheckedRun], rules: Rules
) -> list[Verdict]:
    """Return whether each of `comparisons` is as good in `runs` as it was in the baseline."""
    pairs = [_pair(comparison, baseline, runs) for comparison in comparisons]
    return [_verdict(pair, rules) for pair in _tested(pairs, rules.test)]


def _pair(comparison: BaselineComparison, baseline: Baseline, runs: Sequence[CheckedRun]) -> _Pair:
    text = comparison.quantity.name
    before = baseline.values.get(text, ())
    taken = [run.values_of(comparison.quantity) for run in runs]
    now = tuple(value for one in taken for value in one.values)
    left_out = sum(one.flows_left_out for one in taken)
    sparse = sum(one.sparse_flows for one in taken)
    reason = None
    if text not in baseline.values:
        reason = "the baseline does not have it: write the baseline anew"
    elif not before:
        reason = "the baseline has no value of it"
    elif lacking := [one.reason for one in taken if not one.values]:
        reason = f"{len(lacking)} of {len(runs)} runs have no value: {lacking[0]}"
    return _Pair(comparison, before, now, flows_left_out=left_out, sparse_flows=sparse, reason=reason)


def _tested(pairs: Sequence[_Pair], test: TestName) -> Iterator[_Pair]:
    """Give `pairs` with corrected p values, where runs were repeated and vary."""
    found = [
        GroupComparison()
        if pair.reason
        else compare_groups([pair.before, pair.now], test=test, is_single_tested=True)
        for pair in pairs
    ]
    p_values = corrected_p_values([one.p_value for one in found])
    for pair, one, p_value in zip(pairs, found, p_values, strict=True):
        yield replace(pair, test=one.test, p_value=p_value)


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
        reason=with_counts(reason, pair.flows_left_out, pair.sparse_flows),
        flows_left_out=pair.flows_left_out,
        sparse_flows=pair.sparse_flows,
        line=one.line,
        p_value=pair.p_value,
    )


def _outcome(pair: _Pair, before: float | None, now: float | None, rules: Rules) -> tuple[CheckOutcome, str]:
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
