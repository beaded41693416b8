"""Times that Python and people read, beside the integers that are exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

TIMES: Final = frozenset(
    {"start_ns", "end_ns", "time_ns", "sent_ns", "received_ns", "lost_ns", "path_change_ns"}
)
"""Columns of all tables with a point in time; other columns in ns are durations."""

_YEAR_NS: Final = 365 * 86_400 * 1_000_000_000
"""Times of a simulation count from its start and are shorter than this."""


def with_datetimes(frame: pl.DataFrame, timezone: str = "UTC") -> pl.DataFrame:
    """Return `frame` with a column `start` beside `start_ns`, and so on, after all others.

    They are `Datetime` in `timezone` (a name such as `Europe/Berlin`); times of a simulation, which counts
    from its start, are `Duration`.
    """
    from datetime import UTC
    from zoneinfo import ZoneInfo

    import polars as pl

    from tfrctrace.base.errors import UsageError
    from tfrctrace.base.timezones import parse_timezone

    rules = parse_timezone(timezone)
    zone = ZoneInfo("UTC") if rules is UTC else rules
    if not isinstance(zone, ZoneInfo):
        raise UsageError(
            f"`{timezone}` is not a time zone of a column",
            hint="write `UTC` or a name such as `Europe/Berlin`",
        )
    added = []
    for name in (name for name in frame.columns if name in TIMES):
        largest = frame[name].max()
        time = pl.col(name).alias(name.removesuffix("_ns"))
        if isinstance(largest, int) and largest < _YEAR_NS:
            added.append(time.cast(pl.Duration("ns")))
        else:
            added.append(time.cast(pl.Datetime("ns", "UTC")).dt.convert_time_zone(zone.key))
    return frame.with_columns(added)
