"""The quantities of a study, taken from the record of each run."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.parsers.schema import FLOWS
from tfrctrace.study.definition import NO_FLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tfrctrace.runs.cache import Record
    from tfrctrace.study.definition import Quantity, Reduction

_NOT_SHOWN: Final = "the flows do not show it: too short, never together, or an option is missing"
"""The reason where a metric has no row although there are flows."""

_COLUMN_UNITS: Final = {column.name: column.unit for column in FLOWS}


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


def unit_of(quantity: Quantity) -> str:
    """Return the unit of a quantity; empty for ratios and counts."""
    if quantity.over is not None:
        return ""
    if quantity.replay is not None:
        return "bit/s"
    return _COLUMN_UNITS[quantity.column] if quantity.column else BY_NAME[quantity.metric or ""].unit


def run_values(record: Record, quantity: Quantity, labels: Sequence[str]) -> Iterator[RunValue]:
    """Give the values of a quantity in the run of `record`; `labels` are told of even if no flow has them."""
    by_group = _by_group(record, quantity)
    if quantity.over is not None:
        own, other = (_of_group(by_group, quantity, group) for group in (quantity.group, quantity.over))
        yield _quotient(own, other, quantity)
        return
    wanted: list[str | None]
    if quantity.group is not None:
        wanted = [quantity.group]
    elif quantity.is_about_groups:
        wanted = [*by_group, *(label for label in labels if label not in by_group)]
    else:
        wanted = [*by_group] or [None]
    for group in wanted:
        if quantity.flows == "each" and by_group.get(group):
            yield from (_single_value(row, group, quantity) for row in by_group[group])
        else:
            yield _of_group(by_group, quantity, group)


@dataclass(frozen=True, slots=True)
class _Row:
    value: float | None
    n: int
    flow: int | None
    reason: str | None


def _by_group(record: Record, quantity: Quantity) -> dict[str | None, list[_Row]]:
    """Return what the record says of a quantity, by group, in order of group and flow.

    A group whose flows have no such metric has no rows; one that is missing has no flow.
    """
    rows: dict[str | None, list[_Row]] = defaultdict(list)
    if quantity.metric is None:
        for flow in record["flows"]:
            value = flow["replayed"].get(quantity.replay) if quantity.replay else flow[quantity.column]
            reason = None if value is not None else "not known of this flow"
            rows[flow["group"]].append(_Row(_finite(value), 1, flow["flow"], reason))
    else:
        for metric in record["metrics"]:
            if _is_selected(metric, quantity):
                flow = metric["flows"][0] if len(metric["flows"]) == 1 else None
                rows[metric["group"]].append(
                    _Row(_finite(metric["value"]), metric["n"], flow, metric["reason"])
                )
        if BY_NAME[quantity.metric].subject not in {"set", "pair"}:
            for flow in record["flows"]:
                rows.setdefault(flow["group"], [])
    return dict(sorted(rows.items(), key=lambda item: item[0] or ""))


def _is_selected(metric: Mapping[str, Any], quantity: Quantity) -> bool:
    return metric["name"] == quantity.metric and (
        quantity.timescale_s is None or math.isclose(metric["window_s"], quantity.timescale_s)
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _single_value(row: _Row, group: str | None, quantity: Quantity) -> RunValue:
    return RunValue(
        quantity=quantity.name,
        group=group,
        value=row.value,
        unit=unit_of(quantity),
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
    known = [row for row in rows if row.value is not None]
    value = _REDUCED[quantity.flows](known) if known else None
    reasons = dict.fromkeys(row.reason for row in rows if row.reason)
    return RunValue(
        quantity=quantity.name,
        group=group,
        value=value,
        unit=unit_of(quantity),
        made_of=sum(row.n for row in known),
        reason=None if value is not None else "; ".join(reasons) or (_NOT_SHOWN if has_flow else NO_FLOW),
    )


def _quotient(own: RunValue, other: RunValue, quantity: Quantity) -> RunValue:
    """Return the value of one group over that of another."""
    reason = own.reason or other.reason
    if reason is None and not other.value:
        reason = f"`{quantity.over}` has 0"
    told = replace(own, group=f"{quantity.group} over {quantity.over}", made_of=own.made_of + other.made_of)
    if reason is not None or own.value is None or not other.value:
        return replace(told, value=None, reason=reason)
    return replace(told, value=own.value / other.value)


def _values(rows: Sequence[_Row]) -> list[float]:
    return [row.value for row in rows if row.value is not None]


def _sum(rows: Sequence[_Row]) -> float:
    return math.fsum(_values(rows))


def _mean(rows: Sequence[_Row]) -> float:
    return _sum(rows) / len(rows)


def _median(rows: Sequence[_Row]) -> float:
    ordered = sorted(_values(rows))
    return math.fsum((ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2])) / 2


def _weighted(rows: Sequence[_Row]) -> float | None:
    """Return the mean weighted with n; None if all have n of 0."""
    weight = sum(row.n for row in rows)
    total = sum((Fraction(row.value) * row.n for row in rows if row.value is not None), Fraction())
    return float(total / weight) if weight else None


_REDUCED: Final[Mapping[Reduction, Callable[[Sequence[_Row]], float | None]]] = {
    "mean": _mean,
    "sum": _sum,
    "min": lambda rows: min(_values(rows)),
    "max": lambda rows: max(_values(rows)),
    "median": _median,
    "weighted": _weighted,
}
