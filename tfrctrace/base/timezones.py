"""Time zones in which times are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from tfrctrace.base.errors import UsageError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

LOCAL: Final = "local"
"""Name of the zone of this machine."""


def parse_timezone(name: str) -> tzinfo | None:
    """Return the zone `UTC`, `local` (None, as `datetime` has it) or one as `Europe/Berlin`."""
    from zoneinfo import ZoneInfo

    if name.upper() == "UTC":
        return UTC
    if name == LOCAL:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(
            f"`{name}` is not a time zone", hint="write `UTC`, `local` or a name such as `Europe/Berlin`"
        ) from error


def moment(time_ns: int, zone: tzinfo | None) -> datetime:
    """Return the time of day in `zone` of a time in ns since the epoch, to the microsecond."""
    return (EPOCH + timedelta(microseconds=time_ns // 1000)).astimezone(zone)


@dataclass(frozen=True, slots=True)
class TimeZone:
    """A zone with its name for people."""

    name: str = "UTC"
    rules: tzinfo | None = field(default=UTC, compare=False)

    @classmethod
    def named(cls, name: str) -> TimeZone:
        """Return the zone that users name so, as `parse_timezone` reads it."""
        rules = parse_timezone(name)
        return cls("local time" if rules is None else "UTC" if rules is UTC else name, rules)

    def moment(self, time_ns: int) -> datetime:
        """Return the time of day of a time in ns since the epoch."""
        return moment(time_ns, self.rules)

    def offset_s(self, time_ns: int) -> float:
        """Return how far clocks of the zone are ahead of UTC."""
        offset = self.moment(time_ns).utcoffset()
        return offset.total_seconds() if offset else 0.0


UTC_ZONE: Final = TimeZone()
