"""Times of day on axes."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tfrctrace.base.errors import UsageError
from tfrctrace.base.timezones import TimeZone
from tfrctrace.reports.time_axis import TIME, ticks, time_axis

BERLIN = ZoneInfo("Europe/Berlin")


def nanoseconds(moment):
    return int(moment.timestamp()) * 1_000_000_000


def test_a_simulation_has_seconds():
    assert time_axis(0, 20.0) == TIME
    assert time_axis(None, 20.0) == TIME


@pytest.mark.parametrize("lasted_s", [3.0, 45.0, 600.0, 7_200.0, 86_400.0, 5 * 86_400.0])
def test_ticks_are_where_clocks_show_them(lasted_s):
    begin = datetime(2026, 3, 28, 23, 13, 7, tzinfo=BERLIN)
    axis = time_axis(nanoseconds(begin), lasted_s, TimeZone.named("Europe/Berlin"))
    found = ticks(axis.clock, 0.0, lasted_s, 8)
    assert 2 <= len(found) <= 9
    for at_s, words in found:
        at = (begin.astimezone(ZoneInfo("UTC")) + timedelta(seconds=round(at_s, 3))).astimezone(BERLIN)
        assert words in {f"{at:%b} {at.day}", f"{at:%H:%M}", f"{at:%H:%M:%S}", f"{at:%H:%M:%S.%f}"[:10]}


def test_clocks_are_changed_on_the_axis_as_in_the_zone():
    begin = datetime(2026, 3, 28, 23, 13, tzinfo=BERLIN)
    axis = time_axis(nanoseconds(begin), 86_400.0, TimeZone.named("Europe/Berlin"))
    # at 02:00, 2 h 47 min later
    assert axis.clock.shifts == ((2 * 3600 + 47 * 60, 3600.0),)


@pytest.mark.parametrize("name", ["Berlin/Europe", "../etc/passwd", "", "UTC+1"])
def test_a_zone_that_does_not_exist_is_refused(name):
    with pytest.raises(UsageError):
        TimeZone.named(name)
