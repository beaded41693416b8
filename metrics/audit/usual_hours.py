"""The same hour of earlier weeks: what a value usually is at this time, with limits of confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.statistics.confidence import median_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOUR_NS: Final = 3_600 * 10**9
_DAY_NS: Final = 24 * _HOUR_NS
_WEEK_NS: Final = 7 * _DAY_NS

LEAST_EARLIER: Final = 3
"""Earlier hours of which a median has limits."""


@dataclass(frozen=True, slots=True)
class UsualHour:
    """An hour, and the same hour earlier."""

    start_ns: int
    value: float
    median: float | None
    """Of earlier weeks or days; None of too few."""
    low: float | None
    high: float | None
    n: int
    """Earlier hours with a value."""


def usual_hours(values: Mapping[int, float], period: str) -> list[UsualHour]:
    """Return each hour of the last week with those a `week`, or a `day`, and multiples of it before."""
    if not values:
        return []
    step_ns = _WEEK_NS if period == "week" else _DAY_NS
    first_ns, last_ns = min(values), max(values)
    found = []
    for start_ns in sorted(start_ns for start_ns in values if start_ns > last_ns - _WEEK_NS):
        times = range(start_ns - step_ns, first_ns - 1, -step_ns)
        earlier = sorted(values[time_ns] for time_ns in times if time_ns in values)
        middle = len(earlier) // 2
        if len(earlier) < LEAST_EARLIER:
            found.append(UsualHour(start_ns, values[start_ns], None, None, None, len(earlier)))
            continue
        median = earlier[middle] if len(earlier) % 2 else (earlier[middle - 1] + earlier[middle]) / 2
        found.append(UsualHour(start_ns, values[start_ns], median, *median_limits(earlier), len(earlier)))
    return found


def best_period(values: Mapping[int, float]) -> str:
    """Return `week` if there are enough weeks to compare with, else `day`."""
    if not values:
        return "day"
    return "week" if max(values) - min(values) > LEAST_EARLIER * _WEEK_NS else "day"
