"""Time zones in which times are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from tfrctrace.base.errors import UsageError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

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
    return (_EPOCH + timedelta(microseconds=time_ns // 1000)).astimezone(zone)
