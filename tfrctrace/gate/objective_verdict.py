"""Objectives in the runs of a gate: what is kept of each run, and the verdict over all."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.gate.verdict import ObjectiveFacts, RunOutcome, Verdict, effect_of, run_names
from tfrctrace.metrics.objectives import Outcome, Stretch
from tfrctrace.reports.printers.objectives import objective_text, stretch_text
from tfrctrace.reports.units import MISSING, counted, format_count
from tfrctrace.runs.record_shape import OPTIONAL_NUMBER, OPTIONAL_TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.gate.verdict import CheckOutcome, Effect
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult

MOST_KEPT: Final = 1000
"""Failing groups, and stretches, that are kept of a run; all are counted."""

_STRETCH: Final[Mapping[str, Any]] = {
    "group": OPTIONAL_TEXT,
    **dict.fromkeys(("begin_ns", "end_ns", "intervals", "severe", "n", "at_ns"), int),
    "value": float,
}
_OUTCOME: Final[Mapping[str, Any]] = {
    "group": OPTIONAL_TEXT,
    **dict.fromkeys(("intervals", "met", "violated", "severe", "without_data", "stretches"), int),
    **dict.fromkeys(("first_ns", "last_ns"), OPTIONAL_NUMBER),
    "worst": (_STRETCH, type(None)),
}
SHAPE: Final[Mapping[str, Any]] = {
    "total": _OUTCOME,
    "worst_share": OPTIONAL_NUMBER,
    **dict.fromkeys(("groups", "failing_groups", "groups_without_data"), int),
    "is_complete": bool,
    "failing": [_OUTCOME],
    "stretches": [_STRETCH],
}
"""Shape of what a record keeps of an objective."""


def kept_outcome(result: ObjectiveResult) -> dict[str, Any]:
    """Return what a record keeps of a result, as plain names and values."""
    failing = result.failing
    own = result.stretches.join(failing.select("group"), on="group", how="semi", nulls_equal=True)
    return {
        "total": asdict(result.total),
        "worst_share": next(iter(result.groups["share_met"].head(1).to_list()), None),
        "groups": len(result.groups),
        "failing_groups": len(failing),
        "groups_without_data": result.groups["share_met"].null_count(),
        "is_complete": result.is_complete,
        "failing": [asdict(one) for one in result.outcomes(failing.head(MOST_KEPT))],
        "stretches": own.head(MOST_KEPT).to_dicts(),
    }


def judge_objective_runs(
    objective: Objective, number: int, runs: Sequence[CheckedRun], unknown: Effect
) -> Verdict:
    """Return whether every group of every run meets the target of objective `number` of the plan.

    It is unknown in a run in which no group has data, or where groups or intervals were left out.
    """
    outcomes = tuple(_run_outcome(run, number) for run in runs)
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


def _run_outcome(run: CheckedRun, number: int) -> RunOutcome:
    kept = run.objectives[number]
    return RunOutcome(
        run=run.name,
        **{
            **kept,
            "total": Outcome.of_facts(kept["total"]),
            "failing": tuple(map(Outcome.of_facts, kept["failing"])),
            "stretches": tuple(Stretch(**one) for one in kept["stretches"]),
        },
    )


def _names(outcomes: Sequence[RunOutcome], runs: Sequence[CheckedRun]) -> str:
    return run_names([one.run for one in outcomes], len(runs))


def _failing_reason(objective: Objective, outcomes: Sequence[RunOutcome]) -> str:
    failing, groups = sum(one.failing_groups for one in outcomes), sum(one.groups for one in outcomes)
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
        sum(getattr(one.total, name) for one in outcomes) for name in ("without_data", "intervals")
    )
    number, groups = sum(one.groups_without_data for one in outcomes), sum(one.groups for one in outcomes)
    notes = []
    if lacking:
        notes.append(f"{format_count(lacking)} of {counted(intervals, 'interval')} without data")
    if number:
        notes.append(f"{format_count(number)} of {counted(groups, 'group')} without any")
    return "; ".join(notes)
