"""Hours in which a link is used, such as `Mon-Fri 08:00-18:00`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.timezones import EPOCH, UTC_ZONE, TimeZone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM: Final = re.compile(
    rf"({'|'.join(_DAYS)})(?:-({'|'.join(_DAYS)}))? +(\d\d):([0-5]\d)-(\d\d):([0-5]\d)",
    re.ASCII | re.IGNORECASE,
)
_DAY_MINUTES: Final = 24 * 60
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WeekdayHours:
    """The same hours of some days of the week."""

    weekdays: frozenset[int]
    """From 0, a Monday."""
    from_minute: int
    to_minute: int


@dataclass(frozen=True, slots=True)
class HoursOfUse:
    """All hours of a week in which somebody uses a link, in the time zone of the user."""

    days: tuple[WeekdayHours, ...]
    zone: TimeZone = UTC_ZONE

    def within(self, begin_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
        """Give the stretches of use between two times, in order; those that touch are one."""
        since_ns = until_ns = begin_ns
        for start_ns, stop_ns in self._around(begin_ns, end_ns):
            if start_ns >= end_ns or stop_ns <= begin_ns:
                continue
            if start_ns > until_ns:
                if until_ns > since_ns:
                    yield since_ns, until_ns
                since_ns = start_ns
            until_ns = max(until_ns, min(stop_ns, end_ns))
        if until_ns > since_ns:
            yield since_ns, until_ns

    def _around(self, begin_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
        """Give the hours of all days from the one before a time to another one."""
        day, last = self.zone.moment(begin_ns).date() - _DAY, self.zone.moment(end_ns).date()
        while day <= last:
            for one in sorted(self.days, key=lambda one: one.from_minute):
                if day.weekday() in one.weekdays:
                    yield self._time_ns(day, one.from_minute), self._time_ns(day, one.to_minute)
            day += _DAY

    def _time_ns(self, day: date, minute: int) -> int:
        # the time of day that clocks show, also where they are set in this night
        local = datetime.combine(day, time(), self.zone.rules) + timedelta(minutes=minute)
        return (local.astimezone(UTC) - EPOCH) // timedelta(microseconds=1) * 1_000


def parse_hours(texts: tuple[str, ...], zone: TimeZone = UTC_ZONE) -> HoursOfUse | None:
    """Return the hours that users write as `Mon-Fri 08:00-18:00`; None without any."""
    return HoursOfUse(tuple(map(_weekday_hours, texts)), zone) if texts else None


def _weekday_hours(text: str) -> WeekdayHours:
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"hours of use are not written as `{text}`", hint="write them as `Mon-Fri 08:00-18:00`"
        )
    first, last = (_DAYS.index(name.lower()) for name in (match[1], match[2] or match[1]))
    weekdays = frozenset((first + step) % 7 for step in range((last - first) % 7 + 1))
    from_minute, to_minute = (60 * int(match[place]) + int(match[place + 1]) for place in (3, 5))
    if not from_minute < to_minute <= _DAY_MINUTES:
        raise UsageError(
            f"`{text}` ends before it begins, or after midnight",
            hint="write hours over midnight as two, such as `Fri 20:00-24:00` and `Sat 00:00-04:00`",
        )
    return WeekdayHours(weekdays, from_minute, to_minute)
