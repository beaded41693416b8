"""A series over time as one value: its mean, spread or extremes, of all of it or between two times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfrctrace.metrics.results.quantities import SingleValue
from tfrctrace.study.definition import RATE

if TYPE_CHECKING:
    from tfrctrace.metrics.results.study import Series
    from tfrctrace.runs.quantity import Term


def series_value(series: Series, term: Term) -> SingleValue:
    """Return what `term` asks of the series of one flow.

    Rates are of windows of the same width. What a sender or a report says holds until it says otherwise, and
    is weighted with that time.
    """
    samples = [
        (time_s, value)
        for time_s, value in zip(series.time_s, series.values, strict=True)
        if value is not None
    ]
    from_s = -math.inf if term.from_s is None else term.from_s
    until_s = math.inf if term.until_s is None else term.until_s
    if term.name == RATE:
        weighted = [(value, 1.0) for time_s, value in samples if from_s <= time_s < until_s]
    else:
        ends = [time_s for time_s, _ in samples[1:]] + [samples[-1][0]] if samples else []
        weighted = [
            (value, min(end_s, until_s) - max(time_s, from_s))
            for (time_s, value), end_s in zip(samples, ends, strict=True)
            if min(end_s, until_s) > max(time_s, from_s)
        ]
    value = _over_time(weighted, term.over_time or "mean")
    reason = None if value is not None else f"`{term.name}` has no values at that time"
    return SingleValue(value, len(weighted), series.flow, reason)


def _over_time(weighted: list[tuple[float, float]], way: str) -> float | None:
    if not weighted:
        return None
    if way in {"min", "max"}:
        return (min if way == "min" else max)(value for value, _ in weighted)
    total = math.fsum(weight for _, weight in weighted)
    mean = math.fsum(value * weight for value, weight in weighted) / total
    if way == "mean":
        return mean
    std = math.sqrt(math.fsum(weight * (value - mean) ** 2 for value, weight in weighted) / total)
    if way == "std":
        return std
    return std / mean if mean else None
