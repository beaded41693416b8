"""A stretch of time, as users choose it: by date, time of day, offset, or the last part of a trace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.base.timezones import EPOCH, UTC_ZONE, TimeZone

if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND_NS: Final = 1_000_000_000
_DATE: Final = r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d{1,9})?)?\s*(Z|[+-]\d\d:\d\d)?"
_TIME_OF_DAY: Final = r"(\d\d?):(\d\d)(?::(\d\d)(\.\d{1,9})?)?"
_EPOCH_SECONDS: Final = r"@(\d{1,10})(\.\d{1,9})?"
_HINT: Final = (
    "write a date and time (`2026-11-23 14:05`), a time of day (`14:05`), or a time since the start (`90s`)"
)

_FIRST_NS: Final = -(2**63)
_LAST_NS: Final = 2**63 - 1
"""The times that 64 bits hold: a capture may end just before, and nothing comes after."""

SIMULATED_BELOW_NS: Final = 365 * 86_400 * _SECOND_NS
"""Times below a year are of a simulation, which starts at 0."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a stretch."""

    kind: Literal["date", "time_of_day", "offset"]
    ns: int
    """Since the epoch, since midnight, or since the start of the trace."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """From one time until before another, or the last part."""

    since: Bound | None = None
    until: Bound | None = None
    last_ns: int | None = None
    zone: TimeZone = UTC_ZONE

    @property
    def needs_end(self) -> bool:
        """Whether the time of the last packet has to be known."""
        return self.last_ns is not None or any(bound.kind == "time_of_day" for bound in self._bounds)

    @property
    def needs_start(self) -> bool:
        """Whether the time of the first packet has to be known."""
        return self.needs_end or any(bound.kind == "offset" for bound in self._bounds)

    @property
    def ends_ns(self) -> tuple[int | None, int | None]:
        """The numbers of both ends, whatever they count from."""
        since, until = self.since, self.until
        return None if since is None else since.ns, None if until is None else until.ns

    @property
    def _bounds(self) -> list[Bound]:
        return [bound for bound in (self.since, self.until) if bound]

    def resolve(self, first_ns: int, last_ns: int) -> tuple[int | None, int | None]:
        """Return the ends (ns), the second outside, for a trace from `first_ns` to `last_ns`."""
        if self.last_ns is not None:
            # its first packet is inside, and the very last one, too
            return max(last_ns - self.last_ns, _FIRST_NS), None
        since_ns = until_ns = None
        if self.since is not None:
            since_ns = self._place(self.since, first_ns, first_ns, last_ns)
        start_ns = first_ns if since_ns is None else since_ns
        if self.until is not None:
            until_ns = self._place(self.until, first_ns, start_ns, max(last_ns, start_ns))
        _check_order(since_ns, until_ns)
        if since_ns is not None:
            since_ns = min(max(since_ns, _FIRST_NS), _LAST_NS)
        if until_ns is not None:
            until_ns = None if until_ns > _LAST_NS else max(until_ns, _FIRST_NS)
        return since_ns, until_ns

    def _place(self, bound: Bound, first_ns: int, after_ns: int, last_ns: int) -> int:
        if bound.kind == "date":
            return bound.ns
        if bound.kind == "offset":
            return bound.ns + (0 if abs(first_ns) < SIMULATED_BELOW_NS else first_ns)
        if abs(first_ns) < SIMULATED_BELOW_NS:
            raise UsageError(
                "a simulation has no time of day", hint="write a time since its start, such as `90s`"
            )
        earlier_ns, later_ns = (self._of_day(bound.ns, after_ns, days) for days in (-1, 0))
        if later_ns < after_ns:
            earlier_ns, later_ns = later_ns, self._of_day(bound.ns, after_ns, 1)
        # a time of day between the last packet and the first of the next day is before the trace
        is_start = bound is self.since
        return earlier_ns if is_start and later_ns > last_ns else later_ns

    def _of_day(self, ns_of_day: int, near_ns: int, days: int) -> int:
        """Return the time of day `days` after the day of `near_ns`, by the clocks of the zone."""
        midnight = self.zone.moment(near_ns).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        seconds, rest_ns = divmod(ns_of_day, _SECOND_NS)
        moment = midnight + timedelta(days=days, seconds=seconds)
        return _to_ns(moment, self.zone) + rest_ns


def parse_stretch(since: str | None, until: str | None, last: str | None, zone: TimeZone) -> Stretch | None:
    """Return the stretch that the arguments describe; None if there are none."""
    if last is not None:
        if since is not None or until is not None:
            raise UsageError("the last part of a trace has no other ends", hint="leave out the start and end")
        return Stretch(last_ns=parse_duration_ns(last, "last"), zone=zone)
    if since is None and until is None:
        return None
    stretch = Stretch(
        None if since is None else _parse_bound(since, zone),
        None if until is None else _parse_bound(until, zone),
        zone=zone,
    )
    if stretch.since and stretch.until and stretch.since.kind == stretch.until.kind != "time_of_day":
        _check_order(stretch.since.ns, stretch.until.ns)
    return stretch


def _check_order(since_ns: int | None, until_ns: int | None) -> None:
    if since_ns is not None and until_ns is not None and until_ns <= since_ns:
        raise UsageError("the stretch of time ends before it begins", hint="exchange its start and end")


def _parse_bound(text: str, zone: TimeZone) -> Bound:
    stripped = text.strip()
    for pattern, parse in _FORMS:
        if match := re.fullmatch(pattern, stripped, re.ASCII):
            try:
                return parse(match, zone)
            except (ValueError, OverflowError) as error:
                raise UsageError(f"`{text}` is not a time: {error}", hint=_HINT) from error
    try:
        return Bound("offset", parse_duration_ns(stripped.removeprefix("+")))
    except UsageError as error:
        raise UsageError(f"`{text}` is not a time", hint=_HINT) from error


def _date(match: re.Match[str], zone: TimeZone) -> Bound:
    date, time, fraction, own_zone = match.groups()
    moment = datetime.fromisoformat(f"{date}T{time or '00:00'}{own_zone or ''}")
    return Bound("date", _to_ns(moment, zone) + _fraction_ns(fraction))


def _time_of_day(match: re.Match[str], _zone: TimeZone) -> Bound:
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
    if hours > 24 or minutes > 59 or seconds > 59 or (hours == 24 and minutes + seconds > 0):
        raise ValueError("hours go to 24, minutes and seconds to 59")
    ns = ((hours * 60 + minutes) * 60 + seconds) * _SECOND_NS
    return Bound("time_of_day", ns + _fraction_ns(match[4]))


def _epoch_seconds(match: re.Match[str], _zone: TimeZone) -> Bound:
    return Bound("date", int(match[1]) * _SECOND_NS + _fraction_ns(match[2]))


_FORMS: Final[tuple[tuple[str, Callable[[re.Match[str], TimeZone], Bound]], ...]] = (
    (_DATE, _date),
    (_TIME_OF_DAY, _time_of_day),
    (_EPOCH_SECONDS, _epoch_seconds),
)


def _fraction_ns(fraction: str | None) -> int:
    return int(fraction[1:].ljust(9, "0")) if fraction else 0


def _to_ns(moment: datetime, zone: TimeZone) -> int:
    """Return the time since the epoch of a moment, which is in `zone` unless it has its own."""
    if moment.tzinfo is None:
        # without rules it is the local time of this machine
        moment = moment.replace(tzinfo=zone.rules) if zone.rules else moment.astimezone()
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * _SECOND_NS


def time_text(time_ns: int, zone: TimeZone) -> str:
    """Return a time in `zone`, or of a simulation, for a message."""
    if abs(time_ns) < SIMULATED_BELOW_NS:
        return f"{time_ns / 1e9:g} s"
    return f"{zone.moment(time_ns):%Y-%m-%d %H:%M:%S} {zone.name}"
