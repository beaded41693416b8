"""Values of a quantity in one run: those of single flows or sets, and what they are together."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.metrics.results.quantities import QuantityValues, SingleValue
from tfrctrace.runs.quantity import COLUMNS, aggregate

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tfrctrace.metrics.results.metrics import Metric
    from tfrctrace.metrics.results.study import StudyFlow
    from tfrctrace.runs.quantity import Term

_AS_OTHERS: Final = re.compile(
    rf"(?:see|as) ((?:{'|'.join(sorted(COLUMNS, key=len, reverse=True))})(?: or (?:{'|'.join(COLUMNS)}))*)\b"
)
"""The words of a column that is null when others are."""


def metric_value(metric: Metric) -> SingleValue:
    """Return the value of a metric."""
    value, flows = _finite(metric.value), metric.flows
    reason = metric.reason or f"null if {BY_NAME[metric.name].null_when}"
    return SingleValue(
        value, metric.n, flows[0] if len(flows) == 1 else None, None if value is not None else reason
    )


def column_value(flow: StudyFlow, name: str) -> SingleValue:
    """Return the value of a column in the row of a flow."""
    value = _finite(flow.numbers[name])
    return SingleValue(value, 1, flow.flow, None if value is not None else _unknown(name))


def _unknown(column: str) -> str:
    # the core knows no command line
    return f"null if {_when_null(column)}".replace("`vantage`", "`--vantage`")


def _when_null(column: str) -> str:
    """Return when a column is null, in the words of the columns that its own words refer to: `as pdr`."""
    return _AS_OTHERS.sub(
        lambda found: " or ".join(_when_null(name) for name in found[1].split(" or ")),
        COLUMNS[column].null_when,
    )


def aggregated(found: Sequence[SingleValue], term: Term, otherwise: str) -> QuantityValues:
    """Return what `found` are together; `otherwise` is the reason where none of them has one."""
    known = [(one.value, one.n) for one in found if one.value is not None]
    numbers, weights = [value for value, _ in known], [n for _, n in known]
    reasons = dict.fromkeys(one.reason for one in found if one.reason)
    return _together(numbers, weights, len(found), term, "; ".join(reasons) or otherwise)


def aggregated_column(values: pl.Series, term: Term) -> QuantityValues:
    """Return what the values of a column are together, which are those of many flows."""
    import polars as pl

    numbers = values.cast(pl.Float64).drop_nulls()
    numbers = numbers.filter(numbers.is_finite())
    reason = _unknown(term.name) if len(numbers) < len(values) else ""
    return _together(numbers.to_list(), [1] * len(numbers), len(values), term, reason)


def _together(
    numbers: Sequence[float], weights: Sequence[int], of: int, term: Term, reason: str
) -> QuantityValues:
    known = len(numbers)
    if term.aggregation:
        value = aggregate(term.aggregation, numbers, weights)
        numbers = [] if value is None else [value]
    is_whole = bool(numbers) and known == of
    return QuantityValues(tuple(numbers), known, of, None if is_whole else reason, sum(weights))


def divided(own: QuantityValues, other: QuantityValues, divisor: str) -> QuantityValues:
    """Return the ratio of two aggregated quantities; `divisor` names the second one."""
    made_of = own.made_of + other.made_of
    left_out = max(own.flows_left_out, other.flows_left_out)
    sparse = max(own.sparse_flows, other.sparse_flows)
    if own.values and other.values and other.values[0]:
        value = own.values[0] / other.values[0]
        return replace(own, values=(value,), made_of=made_of, flows_left_out=left_out, sparse_flows=sparse)
    lacking = own if not own.values else other
    reason = f"{divisor} is 0" if lacking.values else lacking.reason
    known = 0 if lacking.values else lacking.known
    return QuantityValues((), known, lacking.of, reason, made_of, left_out, sparse)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
