"""How an incident went on: over, not over, ever worse, a change for good, or one that returns at its hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.objectives import badness
from tfrctrace.metrics.statistics.confidence import median_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.metrics.audit.incidents import Incident, RaisedStretch
    from tfrctrace.metrics.objectives import ObjectiveResult

CourseKind = Literal["over", "not over", "worsens", "changed for good", "recurs daily"]

_DAY_NS: Final = 86_400 * 10**9
_SAME_HOUR_NS: Final = 3_600 * 10**9
"""Difference between the times of day at which an incident that recurs begins."""
_LEAST_DAYS: Final = 3
_LEAST_OF_THIRD: Final = 8
"""Violated intervals of each third of an incident that shows a trend."""
_MOSTLY: Final = 0.5
"""Share of the incidents of a group that begin at the same hour, if that is no chance."""


@dataclass(frozen=True, slots=True)
class Course:
    """How an incident went on."""

    kind: CourseKind
    days: int = 1
    """On which it began at this hour."""


def courses(incidents: Sequence[Incident], results: Sequence[ObjectiveResult] = ()) -> list[Course]:
    """Return the course of each incident of a link; `results` have the values of violated intervals."""
    by_trouble: dict[tuple[int, str | None], list[int]] = {}
    for incident in incidents:
        for trouble in _troubles(incident):
            by_trouble.setdefault(trouble, []).append(incident.begin_ns)
    return [_course(incident, by_trouble, results) for incident in incidents]


def _troubles(incident: Incident) -> set[tuple[int, str | None]]:
    return {(stretch.objective, stretch.group) for stretch in incident.stretches}


def _course(
    incident: Incident,
    by_trouble: dict[tuple[int, str | None], list[int]],
    results: Sequence[ObjectiveResult],
) -> Course:
    days = max((_days(incident.begin_ns, by_trouble[one]) for one in _troubles(incident)), default=1)
    if days >= _LEAST_DAYS:
        return Course("recurs daily", days)
    if all(stretch.ended != "end of data" for stretch in incident.stretches):
        return Course("over")
    if any(_worsens(stretch, results[stretch.objective]) for stretch in incident.stretches[:1] if results):
        return Course("worsens")
    return Course("changed for good" if incident.lasted_ns >= _DAY_NS else "not over")


def _worsens(stretch: RaisedStretch, result: ObjectiveResult) -> bool:
    """Return whether the violated values of a stretch grew from third to third, by more than chance."""
    import polars as pl

    own = result.intervals.filter(
        pl.col("group").eq_missing(pl.lit(stretch.group, pl.String)),
        pl.col("start_ns").is_between(stretch.begin_ns, stretch.end_ns, closed="left"),
    ).sort("start_ns")
    bad = own.select(badness(result.objective)).to_series().to_list()
    length = len(bad) // 3
    if length < _LEAST_OF_THIRD:
        return False
    thirds = [sorted(bad[place * length : (place + 1) * length]) for place in range(3)]
    (_, high), (low, middle_high), (last_low, _) = map(median_limits, thirds)
    return high < low and middle_high < last_low


def _days(begin_ns: int, begins_ns: Sequence[int]) -> int:
    """Return on how many days the same trouble began at this hour; 1 if it mostly did at others."""
    half_ns = _DAY_NS // 2
    same = [
        other_ns
        for other_ns in begins_ns
        if abs((other_ns - begin_ns + half_ns) % _DAY_NS - half_ns) <= _SAME_HOUR_NS
    ]
    if len(same) < _MOSTLY * len(begins_ns):
        return 1
    return len({(other_ns - begin_ns + half_ns) // _DAY_NS for other_ns in same})
