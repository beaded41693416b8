"""Times of day on an axis of seconds: where ticks are, and what they say. `plot.js` does the same."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from tfrctrace.base.timezones import UTC_ZONE
from tfrctrace.reports.elements import TIME, Axis, TimeOfDay
from tfrctrace.reports.units import is_simulated

if TYPE_CHECKING:
    from tfrctrace.base.timezones import TimeZone

_DAY_S: Final = 86_400
_NS: Final = 1_000_000_000

_STEPS_S: Final = (
    *(factor * 10.0**power for power in (-6, -5, -4, -3, -2, -1) for factor in (1, 2, 5)),
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0),
    *(10_800.0, 21_600.0, 43_200.0),
    *(_DAY_S * days for days in (1.0, 2.0, 7.0, 14.0, 28.0, 91.0, 182.0, 364.0, 1_820.0, 7_280.0)),
)
"""Distances between ticks, in seconds."""

_LONGEST_SEARCH: Final = 800
"""Days after which changes of the clock are no longer looked for."""


def time_axis(origin_ns: int | None, lasted_s: float, zone: TimeZone = UTC_ZONE) -> Axis:
    """Return the time axis of a trace that began at `origin_ns`: times of day, or seconds in a simulation."""
    if origin_ns is None or is_simulated(origin_ns):
        return TIME
    first = zone.moment(origin_ns)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    since_s = (first.replace(tzinfo=None) - midnight.replace(tzinfo=None)).total_seconds()
    day = f"{first:%Y-%m-%d}"
    return Axis(
        f"time of day ({zone.name}), {day}"
        if since_s + lasted_s < _DAY_S
        else f"time ({zone.name}), from {day}",
        is_time=True,
        clock=TimeOfDay(day, since_s, zone.name, _shifts(origin_ns, lasted_s, zone)),
    )


def _shifts(origin_ns: int, lasted_s: float, zone: TimeZone) -> tuple[tuple[float, float], ...]:
    """Return when clocks of the zone were changed: seconds on the axis, and by how much since its begin."""
    if zone is UTC_ZONE:
        return ()
    first, shifts, before = zone.offset_s(origin_ns), [], 0.0
    for day in range(min(math.ceil(lasted_s / _DAY_S), _LONGEST_SEARCH)):
        low, high = day * _DAY_S, (day + 1) * _DAY_S

        def shift(at_s: int) -> float:
            return zone.offset_s(origin_ns + at_s * _NS) - first

        if (after := shift(high)) == before:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if shift(middle) == after else (middle, high)
        shifts.append((float(high), after))
        before = after
    return tuple(shifts)


def ticks(clock: TimeOfDay, low_s: float, high_s: float, most: int) -> list[tuple[float, str]]:
    """Return at most about `most` ticks between two places of an axis, each with its words."""
    span_s = high_s - low_s
    step_s = next((step for step in _STEPS_S if span_s <= step * most), _STEPS_S[-1])
    number = math.ceil((low_s + _ahead_s(clock, low_s)) / step_s - 1e-9)
    found: list[tuple[float, str]] = []
    while True:
        local_s = number * step_s
        at_s = local_s - clock.since_midnight_s
        at_s -= _shift_s(clock, at_s)
        if at_s > high_s + 1e-9 * span_s:
            return found
        if at_s >= low_s - 1e-9 * span_s:
            found.append((at_s, words(clock, local_s, step_s)))
        number += 1


def _ahead_s(clock: TimeOfDay, at_s: float) -> float:
    return clock.since_midnight_s + _shift_s(clock, at_s)


def _shift_s(clock: TimeOfDay, at_s: float) -> float:
    return next((shift for since_s, shift in reversed(clock.shifts) if since_s <= at_s), 0.0)


def words(clock: TimeOfDay, local_s: float, step_s: float) -> str:
    """Return what stands at a tick: the date at midnight, else the time of day."""
    days, rest_s = divmod(round(local_s, 6), _DAY_S)
    if rest_s == 0 or step_s >= _DAY_S:
        day = date.fromisoformat(clock.day) + timedelta(days=int(days))
        return f"{day:%b} {day.day}" if step_s < 300 * _DAY_S else f"{day:%b %Y}"
    return _hours(rest_s, step_s)


def _hours(rest_s: float, step_s: float) -> str:
    minutes, seconds = divmod(rest_s, 60)
    text = f"{int(minutes) // 60:02d}:{int(minutes) % 60:02d}"
    if step_s >= 60:
        return text
    decimals = max(0, math.ceil(-math.log10(step_s) - 1e-9))
    width = 3 + decimals if decimals else 2
    return f"{text}:{seconds:0{width}.{decimals}f}"
