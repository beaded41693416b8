"""The checks of one gate: limits, comparisons with a baseline, and how they are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

from tfrctrace.base.errors import UsageError
from tfrctrace.gate import baseline as baselines
from tfrctrace.gate.acceptance import is_acceptable, rewritten
from tfrctrace.gate.objective_verdict import judge_objective_runs
from tfrctrace.gate.regression import DEFAULT_SIGNIFICANCE, DEFAULT_TOLERANCE, Rules, judge_baseline
from tfrctrace.gate.requirement import parse_comparison, parse_requirement, parse_share
from tfrctrace.gate.verdict import judge_limit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.gate.baseline import Baseline
    from tfrctrace.gate.requirement import BaselineComparison, Limit
    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.metrics.objectives import Objective
    from tfrctrace.metrics.results.verdict import Effect, Verdict
    from tfrctrace.runs.compare_groups import TestName
    from tfrctrace.runs.quantity import Better, Quantity


_BETTER_OF_SIGN: Final[Mapping[str, Better]] = {"<": "lower", ">": "higher", "=": "same"}


@dataclass(frozen=True, slots=True)
class GatePlan:
    """The checks of a gate; `is_usual` if a new baseline has the default quantities."""

    limits: list[Limit]
    objectives: list[Objective]
    comparisons: list[BaselineComparison]
    baseline: Baseline | None
    is_usual: bool
    rules: Rules
    measured_with: Mapping[str, Any]

    @property
    def quantities(self) -> list[Quantity]:
        """What has to be taken from each run."""
        asked = [limit.quantity for limit in self.limits]
        return asked + [comparison.quantity for comparison in self.comparisons]

    @property
    def followed(self) -> list[tuple[Quantity, Better]]:
        """What a history keeps: every quantity with one value for each run, and which direction is good."""
        found: dict[str, tuple[Quantity, Better]] = {}
        for limit in self.limits:
            if limit.quantity.is_one_number:
                found[limit.quantity.name] = limit.quantity, _BETTER_OF_SIGN[limit.sign[0]]
        for one in self.comparisons:
            found[one.quantity.name] = one.quantity, one.better
        return list(found.values())

    def accept(self, verdicts: Sequence[Verdict], runs: Sequence[CheckedRun]) -> str | None:
        """Return the text of the baseline with what failed and is meant; None if nothing did."""
        names = {verdict.check for verdict in verdicts if is_acceptable(verdict)}
        meant = [comparison for comparison in self.comparisons if comparison.quantity.name in names]
        return rewritten(self.baseline, meant, runs) if self.baseline is not None and meant else None

    def judge(self, runs: Sequence[CheckedRun]) -> list[Verdict]:
        """Return a verdict for each limit and objective, and each comparison if there is a baseline."""
        unknown = self.rules.unknown
        verdicts = [judge_limit(limit, runs, unknown) for limit in self.limits]
        verdicts += [
            judge_objective_runs(one, number, runs, unknown) for number, one in enumerate(self.objectives)
        ]
        if self.baseline is not None:
            verdicts += judge_baseline(self.baseline, self.comparisons, runs, self.rules)
        return verdicts

    def write_baseline(self, file: TextIO, runs: Sequence[CheckedRun], *, version: str) -> None:
        """Write `runs` as a baseline."""
        baselines.write_baseline(
            file, runs, self.comparisons, self.measured_with, only_known=self.is_usual, version=version
        )


def make_plan(
    require: Sequence[str],
    warn: Sequence[str],
    *,
    limits: str | None,
    baseline: str | None,
    compare: Sequence[str],
    is_written: bool,
    is_followed: bool,
    tolerance: str | None,
    significance: str | None,
    test: TestName,
    unknown: Effect,
    measured_with: Mapping[str, Any],
) -> GatePlan:
    """Return the plan that the options and the file `limits` describe.

    Raises `UsageError` for options that are wrong or would have no effect.
    """
    from tfrctrace.gate.limits_file import LimitsFile, read_limits

    rules = Rules(
        tolerance=DEFAULT_TOLERANCE if tolerance is None else parse_share(tolerance),
        significance=DEFAULT_SIGNIFICANCE if significance is None else _significance(significance),
        test=test,
        unknown=unknown,
    )
    file = LimitsFile([], [], []) if limits is None else read_limits(limits)
    asked, comparisons = file.limits, file.comparisons
    asked += [parse_requirement(text) for text in require]
    asked += [parse_requirement(text, level="warn") for text in warn]
    comparisons += [parse_comparison(text) for text in compare]
    known = None if baseline is None else baselines.read_baseline(baseline)
    if known is not None:
        baselines.check_alike(known, measured_with)
    elif comparisons and not (is_written or is_followed):
        raise UsageError(
            f"`{comparisons[0].quantity.name}` cannot be compared: there is no baseline",
            hint="name one with `--baseline`, write one with `--write-baseline`, or keep a `--history`",
        )
    if not asked and not file.objectives and known is None and not (is_written or is_followed):
        raise UsageError("there is nothing to check", hint="give `--require`, `--limits` or `--baseline`")
    usual = known.values if known is not None else baselines.USUAL if is_written or is_followed else ()
    return GatePlan(
        limits=asked,
        objectives=file.objectives,
        comparisons=comparisons or [parse_comparison(text) for text in usual],
        baseline=known,
        is_usual=not comparisons,
        rules=rules,
        measured_with=measured_with,
    )


def _significance(text: str) -> float:
    """Return a probability: with none at all no difference would ever be one, from 1 on every one would."""
    share = parse_share(text)
    if not 0 < share < 1:
        raise UsageError(f"`{text}` is not how often a test may err", hint="write such as `1%` or `0.01`")
    return share
