"""Groups as metrics of monitoring systems: counters and histograms, each with name, unit and meaning."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.groups import PERCENTILES, SUMS
from tfrctrace.parsers.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tfrctrace.metrics.groups import Groups

Unit = Literal["", "bytes", "seconds"]

MEASURES: Final[Mapping[str, str]] = {
    "rtt": "round-trip times between the capture and the receiver of the direction",
    "connect": "durations of handshakes, from SYN to the final ACK",
    "response": "times from the last byte of a request to the first of its answer, at the capture",
    "dns": "times from a query of DNS to its answer",
    "delay": "one-way delays of packets, where the trace shows both ends",
    "echo": "times from an ICMP echo request to its reply",
    "oneway_delay": "delays of test packets from a sender with a synchronised clock to the capture",
    "oneway_variation": "the same above the least one, by any clock",
}
"""Durations of groups, and what they are."""

BOUNDS_NS: Final = tuple(2**power for power in range(17, 34))
"""Upper bounds of the buckets of histograms, 0.13 ms to 8.6 s: buckets of groups end there exactly."""

_SAMPLES: Final = {f"{measure}_samples" for measure, _ in PERCENTILES.values()} | {"rtt_sum_ns"}
"""Columns that histograms have."""

_NOT_MONOTONIC: Final = {"wifi_signal_sum_dbm"}


@dataclass(frozen=True, slots=True)
class Counter:
    """A column of groups that adds up."""

    column: str
    name: str
    """Without its unit."""
    unit: Unit
    meaning: str


@dataclass(frozen=True, slots=True)
class HistogramPoint:
    """The durations of a direction of a group in an interval."""

    counts: tuple[int, ...]
    """Samples of each bucket; the last has those above all bounds."""
    sum_ns: int | None
    """None where only buckets are known."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A row: what a direction of a group had in an interval; unknown counts are missing."""

    group: str
    direction: str
    start_ns: int
    end_ns: int
    counts: Mapping[str, int]
    """By column."""
    durations: Mapping[str, HistogramPoint]
    """By measure."""


def counters() -> list[Counter]:
    """Return the columns that become counters."""
    found = []
    for column in TABLES["groups"]:
        name = column.name
        if name not in SUMS or name in _SAMPLES | _NOT_MONOTONIC:
            continue
        if column.unit == "ns":
            found.append(Counter(name, name.removesuffix("_ns"), "seconds", column.meaning))
        elif column.unit == "bytes":
            found.append(Counter(name, name.removesuffix("_bytes"), "bytes", column.meaning))
        else:
            found.append(Counter(name, name, "", column.meaning))
    return found


def intervals(groups: Groups) -> Iterator[Interval]:
    """Give the rows of groups, those of a direction of a group one after the other in order of time."""
    durations = _durations(groups)
    columns = [counter.column for counter in counters()]
    rows = groups.rows.sort("group", "direction", "start_ns", nulls_last=True)
    for row in rows.iter_rows(named=True):
        key = row["group"], row["direction"], row["start_ns"]
        points = {}
        for measure in MEASURES:
            counts = durations.get((*key, measure))
            if counts is not None:
                points[measure] = HistogramPoint(
                    tuple(counts), row["rtt_sum_ns"] if measure == "rtt" else None
                )
        yield Interval(
            # packets whose group is not shown
            row["group"] or "",
            row["direction"],
            row["start_ns"],
            row["end_ns"],
            {column: row[column] for column in columns if row[column] is not None},
            points,
        )


def _durations(groups: Groups) -> dict[tuple[str | None, str, int, str], list[int]]:
    """Return the samples of each bucket by group, direction, start and measure."""
    found: dict[tuple[str | None, str, int, str], list[int]] = {}
    names = ("group", "direction", "start_ns", "measure", "to_ns", "samples")
    for *key, to_ns, samples in groups.buckets.select(names).iter_rows():
        group, direction, start_ns, measure = key
        counts = found.setdefault((group, direction, start_ns, measure), [0] * (len(BOUNDS_NS) + 1))
        # a bucket that ends just below a bound is at or below it
        counts[bisect_right(BOUNDS_NS, to_ns)] += samples
    return found
