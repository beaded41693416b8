"""Time zones as users name them: `UTC`, `local`, `Europe/Berlin`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo

from tfrctrace.base.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TimeZone:
    """A time zone and its name for people."""

    name: str = "UTC"
    rules: tzinfo | None = field(default=UTC, compare=False)
    """None for the rules of this machine."""

    def moment(self, time_ns: int) -> datetime:
        """Return a time since the epoch as date and time of day, to the microsecond below."""
        # a clock that was not set may be in the year 2262, which is still a date
        return (_EPOCH + timedelta(microseconds=time_ns // 1000)).astimezone(self.rules)

    def offset_s(self, time_ns: int) -> float:
        """Return how far clocks of the zone are ahead of UTC."""
        offset = self.moment(time_ns).utcoffset()
        return offset.total_seconds() if offset else 0.0


UTC_ZONE = TimeZone()


def parse_time_zone(name: str) -> TimeZone:
    """Return the time zone of a name; `local` is that of this machine."""
    if name.upper() == "UTC":
        return UTC_ZONE
    if name.lower() == "local":
        return TimeZone("local time", None)
    from zoneinfo import ZoneInfo

    try:
        return TimeZone(name, ZoneInfo(name))
    except (LookupError, ValueError, OSError) as error:
        raise UsageError(
            f"`{name}` is not a time zone", hint="name it as `UTC`, `local` or `Europe/Berlin`"
        ) from error
