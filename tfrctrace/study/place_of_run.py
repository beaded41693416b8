"""Whether a run is of the place that its name says, by what its capture contains, and no copy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import input_problem
from tfrctrace.reports.units import counted
from tfrctrace.runs.copies import without_copies

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.study import StudyRecord
    from tfrctrace.study.criteria import Judging, Place
    from tfrctrace.study.find_runs import Run

_RTT_BOUNDS: Final = (0.8, 1.5)
"""Of the smallest round-trip time, in that of the path: hosts and timers add to it, a queue that never
empties too."""
_MOST_RATE: Final = 1.15
"""Of what arrives, in the rate of the bottleneck: what waits at the end is not there yet."""
_LEAST_TIME: Final = 0.8


def without_wrong_places(
    runs: Sequence[Run], records: Sequence[StudyRecord | None], judging: Judging
) -> tuple[list[StudyRecord | None], list[Problem]]:
    """Return the records of the runs that are what they are called, None in place of others, and why."""
    kept: list[StudyRecord | None] = []
    copies, problems = _copies(runs, judging)
    for run, record in zip(runs, records, strict=True):
        wrong = None if record is None else _contradiction(run, record, judging)
        kept.append(None if wrong or run.path in copies else record)
        if wrong:
            problems.append(
                input_problem(run.name, "wrong_scenario", f"{wrong}, so it is left out", severity="warning")
            )
    return kept, problems


def _copies(runs: Sequence[Run], judging: Judging) -> tuple[set[str], list[Problem]]:
    """Return the paths of runs that repeat another of the same algorithm and place byte by byte, and why.

    Algorithms that do the same in a place may well leave the same bytes there.
    """
    alike: dict[tuple[object, object], list[str]] = {}
    for run in runs:
        at = run.parameters[judging.parameter], run.parameters[judging.scenario]
        alike.setdefault(at, []).append(run.path)
    copies: set[str] = set()
    problems: list[Problem] = []
    for paths in alike.values():
        distinct, found = without_copies([(path,) for path in paths])
        copies |= set(paths) - {path for (path,) in distinct}
        problems += found
    return copies, problems


def _contradiction(run: Run, record: StudyRecord, judging: Judging) -> str | None:
    """Return why a run is not what its name says; None if nothing is against it."""
    name = str(run.parameters[judging.scenario])
    place = next((place for place in judging.places if place.name == name), None)
    if place is None:
        return f"is of no scenario of the study: `{name}`"
    return next((f"is not of `{name}`: {wrong}" for wrong in _wrong(record, place)), None)


def _wrong(record: StudyRecord, place: Place) -> Iterator[str]:
    wanted = Counter(flow.label for flow in place.flows)
    there = Counter(flow.group for flow in record.flows)
    for label, number in wanted.items():
        if there[label] != number:
            yield f"it has {counted(there[label], 'flow')} `{label}`, not {number}"
    for other in there.keys() - wanted.keys():
        yield f"it has flows `{other}`"
    numbers = [flow.numbers for flow in record.flows]
    starts = [one["start_ns"] for one in numbers if one["start_ns"] is not None]
    ends = [one["end_ns"] for one in numbers if one["end_ns"] is not None]
    lasted_s = (max(ends, default=0) - min(starts, default=0)) / 1e9
    if lasted_s < _LEAST_TIME * place.duration_s:
        yield f"it lasted {lasted_s:.1f} s, not {place.duration_s:g} s"
    least_ms = min((one["rtt_min_ms"] for one in numbers if one["rtt_min_ms"] is not None), default=None)
    # a flow that is nearer may show no round-trip time
    longest_s = max(place.rtt_s, *(flow.rtt_s or 0.0 for flow in place.flows))
    low_ms, high_ms = place.least_rtt_s * 1e3 * _RTT_BOUNDS[0], longest_s * 1e3 * _RTT_BOUNDS[1]
    if least_ms is not None and not low_ms <= least_ms <= high_ms:
        yield f"its smallest round-trip time is {least_ms:.1f} ms, not {place.rtt_s * 1e3:g} ms"
    arrived = sum(one["unique_bytes"] or one["received_bytes"] or 0 for one in numbers)
    rate_bps = arrived * 8 / lasted_s if lasted_s else 0.0
    most_bps = max(place.rate_bps, *(rate for _, rate in place.rates), 0.0)
    if rate_bps > _MOST_RATE * most_bps:
        yield f"it carried {rate_bps / 1e6:.1f} Mbit/s, more than {most_bps / 1e6:g} Mbit/s"
