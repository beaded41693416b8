"""Groups as JSON of OTLP (https://opentelemetry.io/docs/specs/otlp/): the request that exports metrics.

Each point is of one interval: the temporality is delta.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TextIO

from tfrctrace.metrics.exported import BOUNDS_NS, MEASURES, counters, intervals
from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.metrics.exported import Counter, Interval
    from tfrctrace.metrics.groups import Groups

_NS_PER_S: Final = 1_000_000_000
_DELTA: Final = 1
"""AGGREGATION_TEMPORALITY_DELTA."""
_UNITS: Final = {"": "1", "bytes": "By", "seconds": "s"}
"""Units by UCUM."""


def write_otlp(file: TextIO, groups: Groups, *, version: str) -> None:
    """Write one request with each counter and histogram of groups that has a value, and a line feed."""
    rows = list(intervals(groups))
    metrics = [_counter(counter, rows) for counter in counters()]
    metrics += [_histogram(measure, meaning, rows) for measure, meaning in MEASURES.items()]
    scope = {"name": "tfrctrace", "version": version}
    attributes = [_attribute("service.name", "tfrctrace")]
    request = {
        "resourceMetrics": [
            {
                "resource": {"attributes": attributes},
                "scopeMetrics": [{"scope": scope, "metrics": [metric for metric in metrics if metric]}],
            }
        ]
    }
    json.dump(request, file, allow_nan=False)
    file.write("\n")


def _counter(counter: Counter, rows: Sequence[Interval]) -> dict[str, Any] | None:
    points: list[dict[str, Any]] = []
    for row in rows:
        value = row.counts.get(counter.column)
        if value is None:
            continue
        # integers of 64 bits are text in JSON
        own = {"asDouble": value / _NS_PER_S} if counter.unit == "seconds" else {"asInt": str(value)}
        points.append({**_place(row), **own})
    if not points:
        return None
    total = {"aggregationTemporality": _DELTA, "isMonotonic": True, "dataPoints": points}
    return {**_head(counter.name, counter.meaning, _UNITS[counter.unit]), "sum": total}


def _histogram(measure: str, meaning: str, rows: Sequence[Interval]) -> dict[str, Any] | None:
    bounds = [bound_ns / _NS_PER_S for bound_ns in BOUNDS_NS]
    points: list[dict[str, Any]] = []
    for row in rows:
        point = row.durations.get(measure)
        if point is None:
            continue
        known = {} if point.sum_ns is None else {"sum": point.sum_ns / _NS_PER_S}
        counts = {"count": str(sum(point.counts)), "bucketCounts": list(map(str, point.counts))}
        points.append({**_place(row), **counts, **known, "explicitBounds": bounds})
    if not points:
        return None
    histogram = {"aggregationTemporality": _DELTA, "dataPoints": points}
    return {**_head(measure, meaning, "s"), "histogram": histogram}


def _head(name: str, meaning: str, unit: str) -> dict[str, str]:
    return {"name": f"tfrctrace.{name}", "description": meaning, "unit": unit}


def _place(row: Interval) -> dict[str, Any]:
    return {
        "attributes": [_attribute("group", row.group), _attribute("direction", row.direction)],
        "startTimeUnixNano": str(max(row.start_ns, 0)),
        "timeUnixNano": str(max(row.end_ns, 0)),
    }


def _attribute(key: str, text: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": plain_text(text)}}
