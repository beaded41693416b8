"""What a check comes to: whether a limit holds in every run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.metrics.results.verdict import Verdict
from tfrctrace.reports.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.gate.requirement import Level, Limit
    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.metrics.results.quantities import QuantityValues
    from tfrctrace.metrics.results.verdict import CheckOutcome, Effect

_RUNS_NAMED = 3


def effect_of(outcome: CheckOutcome, level: Level, unknown: Effect) -> Effect:
    """Return what an outcome means; what is not known is never worse than `level`."""
    if outcome == "pass":
        return "pass"
    if outcome == "fail" or unknown == "fail":
        return level
    return unknown


def judge_limit(limit: Limit, runs: Sequence[CheckedRun], unknown: Effect) -> Verdict:
    """Return whether every value of every run holds `limit`.

    A run without a value, or without one for each flow where each must have one, leaves it unknown; unless a
    value that is known breaks it already.
    """
    taken = [(run.name, run.values_of(limit.quantity)) for run in runs]
    values = [value for _, one in taken for value in one.values]
    breaking = [name for name, one in taken if not all(map(limit.holds, one.values))]
    lacking = [(name, one) for name, one in taken if _is_unknown(limit, one)]
    outcome: CheckOutcome = "fail" if breaking else "unknown" if lacking else "pass"
    if breaking:
        broken = sum(not limit.holds(value) for value in values)
        reason = f"broken by {broken} of {counted(len(values), 'value')} in {run_names(breaking, len(runs))}"
    elif lacking:
        reason = f"{_missing_reason(lacking[0][1])} in {run_names([name for name, _ in lacking], len(runs))}"
    else:
        reason = _partial_note([one for _, one in taken])
    left_out = sum(one.flows_left_out for _, one in taken)
    sparse = sum(one.sparse_flows for _, one in taken)
    return Verdict(
        check=limit.text,
        kind="limit",
        name=limit.name,
        outcome=outcome,
        effect=effect_of(outcome, limit.level, unknown),
        unit=limit.quantity.unit,
        value=limit.worst(values) if values else None,
        against=limit.bound,
        runs=sum(bool(one.values) for _, one in taken),
        reason=with_counts(reason, left_out, sparse),
        flows_left_out=left_out,
        sparse_flows=sparse,
        line=limit.line,
        asked_unit=limit.unit,
    )


def with_counts(reason: str, left_out: int, sparse: int) -> str:
    """Return `reason`, how many flows were left out, and how many sparse ones were not."""
    notes = [reason]
    if left_out:
        notes.append(f"left out: {counted(left_out, 'flow')} with few data packets (`--least-packets`)")
    if sparse:
        notes.append(f"counts {counted(sparse, 'sparse flow')} (`..._without_sparse` does not)")
    return "; ".join(filter(None, notes))


def _is_unknown(limit: Limit, taken: QuantityValues) -> bool:
    return not taken.values or (not limit.quantity.is_one_number and taken.known < taken.of)


def _missing_reason(taken: QuantityValues) -> str:
    known = f"known of {taken.known} of {taken.of}: " if taken.values else ""
    return f"{known}{taken.reason}"


def _partial_note(taken: Sequence[QuantityValues]) -> str:
    """Return of how many flows an aggregation knew the value, where it did not know all."""
    known, of = sum(one.known for one in taken), sum(one.of for one in taken)
    return f"made of {known} of {of}" if known < of else ""


def run_names(names: Sequence[str], of: int) -> str:
    """Return which of the runs: their names as far as there is room."""
    if of == 1:
        return f"`{names[0]}`"
    shown = ", ".join(f"`{name}`" for name in names[:_RUNS_NAMED])
    more = f" and {len(names) - _RUNS_NAMED} more" if len(names) > _RUNS_NAMED else ""
    return f"{len(names)} of {of} runs: {shown}{more}"
