"""The quantities of a study, taken from the record of each run."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.results.quantities import SingleValue
from tfrctrace.runs.quantity_values import aggregated, column_value, divided, metric_value
from tfrctrace.study.definition import NO_FLOW
from tfrctrace.study.results.series_values import series_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.metrics.results.metrics import Metric
    from tfrctrace.metrics.results.quantities import QuantityValues
    from tfrctrace.metrics.results.study import StudyRecord
    from tfrctrace.runs.quantity import Quantity, Term

_NOT_SHOWN: Final = "the flows do not show it: too short, never together, or an option is missing"
"""The reason where a metric has no row although there are flows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValue:
    """One value of a quantity in one run; `reason` is why it is unknown."""

    quantity: str
    group: str | None
    value: float | None
    unit: str
    made_of: int
    """The `n` of the metric, of several flows their sum; of a column how many flows."""
    flow: int | None = None
    """Where each flow has a value of its own."""
    reason: str | None = None
    bounds: tuple[float, float] = (-math.inf, math.inf)
    """Of the quantity."""


def run_values(record: StudyRecord, quantity: Quantity, labels: Sequence[str]) -> Iterator[RunValue]:
    """Give the values of a quantity in the run of `record`; `labels` have one even if no flow has them."""
    term, over = quantity.term, quantity.over
    by_group = _by_group(record, term)
    unit = _unit(record, quantity)
    if over is not None:
        own, other = (_of_group(by_group, one, one.group) for one in (term, over))
        ratio = divided(own, other, f"`{quantity.name}` of `{over.group}`")
        yield _run_value(quantity, unit, f"{term.group} over {over.group}", ratio)
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
            for one in by_group[group]:
                yield _run_value(quantity, unit, group, aggregated([one], term, ""), flow=one.flow)
        else:
            yield _run_value(quantity, unit, group, _of_group(by_group, term, group))


def _unit(record: StudyRecord, quantity: Quantity) -> str:
    """Return the unit of a quantity; that of a series is in the record."""
    term = quantity.term
    if term.kind != "series" or quantity.over is not None or term.over_time == "cov":
        return quantity.unit
    units = (series.unit for series in record.series.get(term.name, []))
    return next(units, quantity.unit)


def _by_group(record: StudyRecord, term: Term) -> dict[str | None, list[SingleValue]]:
    """Return the values of a term in the record, by group, in order of group and flow.

    A group whose flows have no such metric has no values; one without a flow is missing.
    """
    found: dict[str | None, list[SingleValue]] = defaultdict(list)
    for metric in record.metrics if term.kind == "metric" else ():
        if _is_selected(metric, term):
            found[metric.group].append(metric_value(metric))
    for flow in record.flows if term.is_of_flows else ():
        of_group = found[flow.group]
        if term.kind == "replay":
            rate = flow.replayed.get(term.name)
            of_group.append(SingleValue(rate, 1, flow.flow, "was not replayed" if rate is None else None))
        elif term.kind == "column":
            of_group.append(column_value(flow, term.name))
    for series in record.series.get(term.name, []) if term.kind == "series" else ():
        found[series.group].append(series_value(series, term))
    return dict(sorted(found.items(), key=lambda item: item[0] or ""))


def _is_selected(metric: Metric, term: Term) -> bool:
    if metric.name != term.name or term.timescale_s is None:
        return metric.name == term.name
    return metric.window_s is not None and math.isclose(metric.window_s, term.timescale_s)


def _of_group(
    by_group: Mapping[str | None, Sequence[SingleValue]], term: Term, group: str | None
) -> QuantityValues:
    has_flow = group is None or group in by_group
    return aggregated(by_group.get(group, ()), term, _NOT_SHOWN if has_flow else NO_FLOW)


def _run_value(
    quantity: Quantity, unit: str, group: str | None, found: QuantityValues, flow: int | None = None
) -> RunValue:
    return RunValue(
        quantity=quantity.name,
        group=group,
        value=found.values[0] if found.values else None,
        unit=unit,
        made_of=found.made_of,
        flow=flow,
        reason=None if found.values else found.reason,
        bounds=quantity.bounds,
    )
