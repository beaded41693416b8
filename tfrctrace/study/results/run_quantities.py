"""The quantities of a study, taken from the record of each run."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.runs.quantity import aggregate
from tfrctrace.study.definition import NO_FLOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.runs.cache import Record
    from tfrctrace.runs.quantity import Quantity, Term

_NOT_SHOWN: Final = "the flows do not show it: too short, never together, or an option is missing"
"""The reason where a metric has no row although there are flows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValue:
    """One value of a quantity in one run; `reason` says why there is none."""

    quantity: str
    group: str | None
    value: float | None
    unit: str
    made_of: int
    """The `n` of the metric, of several flows their sum; of a column how many flows."""
    flow: int | None = None
    """Where each flow has a value of its own."""
    reason: str | None = None


def run_values(record: Record, quantity: Quantity, labels: Sequence[str]) -> Iterator[RunValue]:
    """Give the values of a quantity in the run of `record`; `labels` have one even if no flow has them."""
    term = quantity.term
    by_group = _by_group(record, term)
    if quantity.over is not None:
        own, other = (_of_group(by_group, quantity, one.group) for one in (term, quantity.over))
        yield _quotient(own, other)
        return
    wanted: list[str | None]
    if term.group is not None:
        wanted = [term.group]
    elif quantity.is_about_groups:
        wanted = [*by_group, *(label for label in labels if label not in by_group)]
    else:
        wanted = [*by_group] or [None]
    for group in wanted:
        if not term.aggregation and by_group.get(group):
            yield from (_single_value(row, group, quantity) for row in by_group[group])
        else:
            yield _of_group(by_group, quantity, group)


@dataclass(frozen=True, slots=True)
class _Row:
    value: float | None
    n: int
    flow: int | None
    reason: str | None


def _by_group(record: Record, term: Term) -> dict[str | None, list[_Row]]:
    """Return the values of a term in the record, by group, in order of group and flow.

    A group whose flows have no such metric has no rows; one without a flow is missing.
    """
    rows: dict[str | None, list[_Row]] = defaultdict(list)
    if term.kind == "metric":
        for metric in record["metrics"]:
            if _is_selected(metric, term):
                flow = metric["flows"][0] if len(metric["flows"]) == 1 else None
                rows[metric["group"]].append(
                    _Row(_finite(metric["value"]), metric["n"], flow, metric["reason"])
                )
        if term.is_of_flows:
            for flow in record["flows"]:
                rows.setdefault(flow["group"], [])
    else:
        for flow in record["flows"]:
            value = flow["replayed"].get(term.name) if term.kind == "replay" else flow[term.name]
            reason = None if value is not None else "not known of this flow"
            rows[flow["group"]].append(_Row(_finite(value), 1, flow["flow"], reason))
    return dict(sorted(rows.items(), key=lambda item: item[0] or ""))


def _is_selected(metric: Mapping[str, Any], term: Term) -> bool:
    return metric["name"] == term.name and (
        term.timescale_s is None or math.isclose(metric["window_s"], term.timescale_s)
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _single_value(row: _Row, group: str | None, quantity: Quantity) -> RunValue:
    return RunValue(
        quantity=quantity.name,
        group=group,
        value=row.value,
        unit=quantity.unit,
        made_of=row.n,
        flow=row.flow,
        reason=row.reason,
    )


def _of_group(
    by_group: Mapping[str | None, Sequence[_Row]], quantity: Quantity, group: str | None
) -> RunValue:
    """Return one value of all flows of a group."""
    rows = by_group.get(group, ())
    has_flow = group is None or group in by_group
    known = [(row.value, row.n) for row in rows if row.value is not None]
    values, weights = [value for value, _ in known], [n for _, n in known]
    value = aggregate(quantity.term.aggregation, values, weights) if known else None
    reasons = dict.fromkeys(row.reason for row in rows if row.reason)
    return RunValue(
        quantity=quantity.name,
        group=group,
        value=value,
        unit=quantity.unit,
        made_of=sum(n for _, n in known),
        reason=None if value is not None else "; ".join(reasons) or (_NOT_SHOWN if has_flow else NO_FLOW),
    )


def _quotient(own: RunValue, other: RunValue) -> RunValue:
    """Return the value of one group over that of another."""
    reason = own.reason or other.reason
    if reason is None and not other.value:
        reason = f"`{other.group}` has 0"
    ratio = replace(own, group=f"{own.group} over {other.group}", made_of=own.made_of + other.made_of)
    if reason is not None or own.value is None or not other.value:
        return replace(ratio, value=None, reason=reason)
    return replace(ratio, value=own.value / other.value)
