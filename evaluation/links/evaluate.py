"""Objectives against planted faults.

`python evaluation/links/evaluate.py [--write] [--first SEED] [--links N]`

It draws links by seed, one kind of fault after the other, judges them by the objectives below, and prints
which stretches were planted and found; `--write` puts the table into `docs/validation.md`. The limits were
chosen on links of seeds below 200.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from faults import KINDS
from link import draw_link
from link_files import BEGIN, write_link
from measured_tables import options, show, table_text

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from faults import Fault
    from link import Link

    from tfrctrace.metrics.objectives import ObjectiveResult

FIRST: Final = 3001
LINKS: Final = 20
HOSTS: Final = 8
"""So few that each has enough data in half an hour."""
CONNECTIONS_PER_S: Final = 0.1
KINDS_IN_TURN: Final = (*KINDS, "none")
BEGIN_S: Final = BEGIN.timestamp()
ALL: Final = ""
"""The group of a whole link."""


@dataclass(frozen=True, slots=True)
class Watch:
    """An objective, and the faults that break it."""

    objective: Mapping[str, Any]
    broken_by: Mapping[str, str]
    """The size that a fault of a kind must have; empty for any."""
    unclear: frozenset[str] = frozenset()
    """Faults that may break it, but need not: intervals in them do not count."""
    wants_data: bool = False
    """Whether it is the intervals without data that the fault plants."""

    def concerns(self, fault: Fault) -> bool:
        """Whether a fault breaks it."""
        size = self.broken_by.get(fault.kind)
        return size is not None and (not size or size in fault.size)


WATCHES: Final = (
    # a station of 70 ms and more may carry most of the packets
    Watch(
        {"require": "median(rtt_ms) < 90 ms", "every": "5min"},
        {"bufferbloat": ""},
        unclear=frozenset({"bad station"}),
    ),
    Watch(
        {
            "require": "sum(lost_before_capture) / sum(arrivals_shown) < 1 % where direction sent",
            "by": "host",
            "every": "30min",
            "least": 100,
        },
        {"loss": "loss_before"},
    ),
    Watch(
        {
            "require": "sum(lost_behind_capture) / sum(losses_shown) < 1 % where direction received",
            "by": "host",
            "every": "30min",
            "least": 100,
        },
        {"loss": "loss_behind", "bad station": ""},
    ),
    Watch(
        {
            "require": "sum(connections_established) / sum(connection_attempts) > 80 %",
            "every": "10min",
            "least": 5,
        },
        {"outage": ""},
    ),
    # a capture before the link sees the server behind a full queue
    Watch(
        {"require": "p95(response_ms) < 400 ms", "every": "10min"},
        {"slow server": ""},
        unclear=frozenset({"bufferbloat"}),
    ),
    Watch(
        {"require": "sum(packets) > 0", "every": "10min", "least": 1}, {"dead capture": ""}, wants_data=True
    ),
)


@dataclass(slots=True)
class Score:
    """What became of the planted stretches of one objective."""

    planted: int = 0
    found: int = 0
    without_data: int = 0
    """Planted for a host that has no interval with enough data in it."""
    false: int = 0
    judged: int = 0
    """Intervals with data in which nothing was planted."""
    overlaps: list[float] = field(default_factory=list)
    """For each planted stretch the time that was both planted and found, of what was either."""

    def add(self, other: Score) -> None:
        """Add what became of other links."""
        self.planted += other.planted
        self.found += other.found
        self.without_data += other.without_data
        self.false += other.false
        self.judged += other.judged
        self.overlaps += other.overlaps


@dataclass(frozen=True, slots=True)
class Interval:
    """One interval of a group that was judged; seconds since the beginning of the link."""

    since_s: float
    until_s: float
    is_broken: bool

    def shared_s(self, fault: Fault) -> float:
        """Return how long it is in a fault."""
        return max(0.0, min(self.until_s, fault.until_s) - max(self.since_s, fault.since_s))


def judged_intervals(result: ObjectiveResult, *, wants_data: bool) -> dict[str, list[Interval]]:
    """Return the intervals of each group with data, or all of those that should have some."""
    found: dict[str, list[Interval]] = {}
    for row in result.intervals.iter_rows(named=True):
        since_s, until_s = (row[name] / 1e9 - BEGIN_S for name in ("start_ns", "end_ns"))
        group = ALL if result.objective.grouping.by == "link" else row["group"]
        if wants_data or row["verdict"] != "no_data":
            is_broken = row["verdict"] in {"violated", "severe"}
            found.setdefault(group, []).append(Interval(since_s, until_s, is_broken))
    return {group: list(_with_gaps(one)) if wants_data else one for group, one in found.items()}


def _with_gaps(intervals: Sequence[Interval]) -> Iterator[Interval]:
    """Give the intervals of one group, those between them that are missing as broken ones."""
    until_s = intervals[0].since_s
    for one in sorted(intervals, key=lambda interval: interval.since_s):
        width_s = one.until_s - one.since_s
        while until_s < one.since_s:
            yield Interval(until_s, until_s + width_s, is_broken=True)
            until_s += width_s
        yield Interval(one.since_s, one.until_s, is_broken=False)
        until_s = one.until_s


def score(link: Link, watch: Watch, result: ObjectiveResult) -> Score:
    """Count the planted stretches that were found, and those found where nothing was planted."""
    into = Score()
    by_group = judged_intervals(result, wants_data=watch.wants_data)
    faults = [fault for fault in link.faults if watch.concerns(fault)]
    by_host = result.objective.grouping.by == "host"
    for fault in faults:
        for group in (fault.hosts or fault.servers) if by_host else (ALL,):
            inside = [one for one in by_group.get(group, []) if one.shared_s(fault)]
            if not any(one.shared_s(fault) == one.until_s - one.since_s for one in inside):
                into.without_data += 1
                continue
            into.planted += 1
            broken = [one for one in inside if one.is_broken]
            into.found += bool(broken)
            shared_s = sum(one.shared_s(fault) for one in broken)
            missed_s = sum(one.shared_s(fault) for one in inside if not one.is_broken)
            broken_s = sum(one.until_s - one.since_s for one in broken)
            into.overlaps.append(shared_s / (broken_s + missed_s))
    unclear = [fault for fault in link.faults if fault.kind in watch.unclear]
    for group, intervals in by_group.items():
        own = [fault for fault in faults if not by_host or group in (fault.hosts or fault.servers)]
        own += unclear
        ordinary = [one for one in intervals if not any(one.shared_s(fault) for fault in own)]
        into.judged += len(ordinary)
        into.false += _stretches(ordinary)
    return into


def _stretches(intervals: Sequence[Interval]) -> int:
    """Return how many stretches of broken intervals there are."""
    ends_s: set[float] = {one.until_s for one in intervals if one.is_broken}
    return sum(one.is_broken and one.since_s not in ends_s for one in intervals)


def evaluate(seeds: Sequence[int], days: float, jobs: int) -> list[Score]:
    """Draw a link of each seed, and score every objective."""
    kinds = [KINDS_IN_TURN[place % len(KINDS_IN_TURN)] for place in range(len(seeds))]
    scores = [Score() for _ in WATCHES]
    with ProcessPoolExecutor(jobs) as pool:
        of_links = pool.map(evaluate_link, seeds, kinds, [days] * len(seeds))
        for seed, kind, of_link in zip(seeds, kinds, of_links, strict=True):
            planted, found, false = (
                sum(getattr(one, name) for one in of_link) for name in ("planted", "found", "false")
            )
            sys.stderr.write(f"{seed} {kind}: {planted} planted, {found} found, {false} false\n")
            for total, one in zip(scores, of_link, strict=True):
                total.add(one)
    return scores


def evaluate_link(seed: int, kind: str, days: float) -> list[Score]:
    """Draw one link with one fault, and score every objective on it."""
    kinds = [kind] if kind != "none" else []
    link = draw_link(seed, kinds, days=days, hosts=HOSTS, connections_per_s=CONNECTIONS_PER_S)
    with tempfile.TemporaryDirectory() as name:
        write_link(link, Path(name))
        trace = tfrctrace.open(sorted(Path(name).glob("*.pcap")), join=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = trace.objectives([watch.objective for watch in WATCHES])
    return [score(link, watch, result) for watch, result in zip(WATCHES, results, strict=True)]


def table(scores: Sequence[Score]) -> str:
    """Return the table of the page."""
    heads = (
        *("objective", "planted", "found", "missed", "too little data"),
        *("overlap in time, median (least)", "false stretches", "in ordinary intervals"),
    )
    rows = []
    for watch, one in zip(WATCHES, scores, strict=True):
        asked = watch.objective
        name = f"`{asked['require']}` every {asked['every']} by {asked.get('by', 'link')}"
        if watch.wants_data:
            name += ", stretches without data"
        overlap = f"{statistics.median(one.overlaps):.2f} ({min(one.overlaps):.2f})" if one.overlaps else ""
        counts = (one.planted, one.found, one.planted - one.found, one.without_data)
        rows.append((name, *counts, overlap, one.false, f"{one.judged:,}"))
    return table_text(heads, rows)


def main() -> None:
    """Print the table, or write it into the page."""
    given = options(__doc__, FIRST, LINKS)
    scores = evaluate(range(given.first, given.first + given.links), given.days, given.jobs)
    show(table(scores), "objectives", write=given.write)


if __name__ == "__main__":
    main()
