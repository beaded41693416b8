"""Groups in the text format of OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/).

Each series has one point there, so groups are those of one interval.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, TextIO

from tfrctrace.metrics.exported import BOUNDS_NS, MEASURES, counters, intervals
from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.metrics.exported import Counter, Interval
    from tfrctrace.metrics.groups import Groups

_NS_PER_S: Final = 1_000_000_000

_PREFIX: Final = "tfrctrace_"


def write_openmetrics(file: TextIO, groups: Groups) -> None:
    """Write each counter and histogram of groups that has a value, as of the end of their interval."""
    rows = list(intervals(groups))
    for counter in counters():
        if any(counter.column in row.counts for row in rows):
            file.writelines(_counter(counter, rows))
    for measure, meaning in MEASURES.items():
        if any(measure in row.durations for row in rows):
            file.writelines(_histogram(measure, meaning, rows))
    file.write("# EOF\n")


def _counter(counter: Counter, rows: Sequence[Interval]) -> Iterator[str]:
    name = _PREFIX + counter.name + (f"_{counter.unit}" if counter.unit else "")
    yield from _head(name, "counter", counter.unit, counter.meaning)
    for row in rows:
        if counter.column in row.counts:
            value = row.counts[counter.column]
            shown = _seconds(value) if counter.unit == "seconds" else str(value)
            yield f"{name}_total{_labels(row)} {shown} {_seconds(row.end_ns)}\n"


def _histogram(measure: str, meaning: str, rows: Sequence[Interval]) -> Iterator[str]:
    name = f"{_PREFIX}{measure}_seconds"
    yield from _head(name, "histogram", "seconds", meaning)
    bounds = [*(str(bound_ns / _NS_PER_S) for bound_ns in BOUNDS_NS), "+Inf"]
    for row in rows:
        point = row.durations.get(measure)
        if point is None:
            continue
        time = _seconds(row.end_ns)
        for bound, samples in zip(bounds, accumulate(point.counts), strict=True):
            yield f"{name}_bucket{_labels(row, le=bound)} {samples} {time}\n"
        if point.sum_ns is not None:
            yield f"{name}_count{_labels(row)} {sum(point.counts)} {time}\n"
            yield f"{name}_sum{_labels(row)} {_seconds(point.sum_ns)} {time}\n"


def _head(name: str, kind: str, unit: str, meaning: str) -> Iterator[str]:
    yield f"# TYPE {name} {kind}\n"
    if unit:
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {_escaped(meaning)}\n"


def _labels(row: Interval, **more: str) -> str:
    labels = {"group": row.group, "direction": row.direction, **more}
    return "{" + ",".join(f'{name}="{_escaped(plain_text(text))}"' for name, text in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _seconds(time_ns: int) -> str:
    """Return a time without loss."""
    seconds, rest = divmod(abs(time_ns), _NS_PER_S)
    return f"{'-' if time_ns < 0 else ''}{seconds}.{rest:09}"
