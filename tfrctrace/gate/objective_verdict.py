"""Objectives in the runs of a gate: what is kept of each run, and the verdict over all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.gate.verdict import effect_of, run_names
from tfrctrace.metrics.results.verdict import ObjectiveFacts, RunOutcome, Stretch, Verdict
from tfrctrace.reports.printers.objectives import objective_text, stretch_text
from tfrctrace.reports.units import MISSING, counted, format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult
    from tfrctrace.metrics.results.verdict import CheckOutcome, Effect

MOST_KEPT: Final = 1000
"""Failing groups, and stretches, that are kept of a run; all are counted."""


def run_outcome(result: ObjectiveResult, run: str) -> RunOutcome:
    """Return what is kept of a result in a run."""
    failing = result.failing
    stretches = result.stretches.join(failing.select("group"), on="group", how="semi", nulls_equal=True)
    return RunOutcome(
        run=run,
        total=result.total,
        worst_share=next(iter(result.groups["share_met"].head(1).to_list()), None),
        groups=len(result.groups),
        failing_groups=len(failing),
        groups_without_data=result.groups["share_met"].null_count(),
        is_complete=result.is_complete,
        failing=tuple(result.outcomes(failing.head(MOST_KEPT))),
        stretches=tuple(Stretch(**row) for row in stretches.head(MOST_KEPT).iter_rows(named=True)),
    )


def judge_objective_runs(
    objective: Objective, number: int, runs: Sequence[CheckedRun], unknown: Effect
) -> Verdict:
    """Return whether every group of every run meets the target of objective `number` of the plan.

    It is unknown in a run in which no group has data, or where groups or intervals were left out.
    """
    outcomes = tuple(run.objectives[number] for run in runs)
    breaking = [one for one in outcomes if one.failing_groups]
    lacking = [one for one in outcomes if one.worst_share is None or not one.is_complete]
    outcome: CheckOutcome = "fail" if breaking else "unknown" if lacking else "pass"
    if breaking:
        reason = f"{_failing_reason(objective, breaking)} in {_names(breaking, runs)}"
    elif lacking:
        reason = f"{_lacking_reason(objective, lacking[0])} in {_names(lacking, runs)}"
    else:
        reason = _without_data_note(outcomes)
    shares = [one.worst_share for one in outcomes if one.worst_share is not None]
    grouping = objective.grouping
    return Verdict(
        check=objective_text(objective),
        kind="objective",
        name=None if objective.name == objective.require else objective.name,
        outcome=outcome,
        effect=effect_of(outcome, objective.level, unknown),
        unit="",
        value=min(shares, default=None),
        against=objective.target,
        runs=len(shares),
        reason=reason,
        flows_left_out=0,
        sparse_flows=0,
        line=objective.line,
        objective=ObjectiveFacts(
            require=objective.require,
            severe=objective.severe,
            by=grouping.text,
            every_ns=grouping.every_ns,
            least=objective.least,
            unit=objective.unit,
            runs=outcomes,
        ),
    )


def _names(outcomes: Sequence[RunOutcome], runs: Sequence[CheckedRun]) -> str:
    return run_names([outcome.run for outcome in outcomes], len(runs))


def _failing_reason(objective: Objective, outcomes: Sequence[RunOutcome]) -> str:
    failing, groups = (
        sum(outcome.failing_groups for outcome in outcomes),
        sum(outcome.groups for outcome in outcomes),
    )
    worst = min((one for run in outcomes for one in run.failing), key=lambda one: one.share_met or 0.0)
    missed = "missed" if groups == 1 else f"missed by {failing} of {counted(groups, 'group')}"
    where = "" if worst.worst is None else f", worst {stretch_text(worst.worst, objective.unit)}"
    of = "" if groups == 1 else f" of {worst.group or MISSING}"
    return f"{missed}{where}{of}"


def _lacking_reason(objective: Objective, outcome: RunOutcome) -> str:
    if not outcome.is_complete:
        return "packets were left out of the table of groups"
    if not outcome.groups:
        chosen = "such a group" if objective.quantity.group or objective.quantity.direction else "any group"
        return f"no packets of {chosen}"
    return f"no interval has {counted(objective.least, 'sample')}"


def _without_data_note(outcomes: Sequence[RunOutcome]) -> str:
    """Return of how much nothing is known, where that does not leave all unknown."""
    lacking, intervals = (
        sum(getattr(outcome.total, name) for outcome in outcomes) for name in ("without_data", "intervals")
    )
    number, groups = (
        sum(outcome.groups_without_data for outcome in outcomes),
        sum(outcome.groups for outcome in outcomes),
    )
    notes = []
    if lacking:
        notes.append(f"{format_count(lacking)} of {counted(intervals, 'interval')} without data")
    if number:
        notes.append(f"{format_count(number)} of {counted(groups, 'group')} without any")
    return "; ".join(notes)
