"""Hours of use: what users write, and the stretches of time that it means."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tfrctrace.base.errors import UsageError
from tfrctrace.base.hours_of_use import parse_hours
from tfrctrace.base.timezones import TimeZone

HOUR_NS = 3_600 * 10**9
MONDAY_NS = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp()) * 10**9


def hours(texts: tuple[str, ...], days: int = 7, zone: str = "UTC", since_ns: int = MONDAY_NS) -> list:
    found = parse_hours(texts, TimeZone.named(zone))
    assert found is not None
    until_ns = since_ns + days * 24 * HOUR_NS
    return [
        tuple((time_ns - since_ns) / HOUR_NS for time_ns in one) for one in found.within(since_ns, until_ns)
    ]


def test_hours_of_days_are_stretches_of_time():
    assert hours(("Mon-Fri 08:00-18:00",)) == [(24 * day + 8, 24 * day + 18) for day in range(5)]
    assert hours(("Sat 09:00-12:30", "fri-sat 20:00-24:00")) == [(116, 120), (129, 132.5), (140, 144)]
    # days may pass the end of the week, and stretches that touch are one
    assert hours(("Sun-Mon 00:00-24:00",)) == [(0, 24), (144, 168)]
    assert hours(("Mon 22:00-24:00", "Tue 00:00-02:00"), 2) == [(22, 26)]
    assert parse_hours(()) is None


def test_a_stretch_is_cut_to_the_time_that_is_asked_for():
    found = parse_hours(("Mon-Sun 08:00-18:00",))
    assert found is not None
    times = list(found.within(MONDAY_NS + 9 * HOUR_NS, MONDAY_NS + 10 * HOUR_NS))
    assert times == [(MONDAY_NS + 9 * HOUR_NS, MONDAY_NS + 10 * HOUR_NS)]
    assert list(found.within(MONDAY_NS + 19 * HOUR_NS, MONDAY_NS + 20 * HOUR_NS)) == []


def test_hours_are_those_that_clocks_of_the_zone_show_also_when_they_are_set():
    berlin = ZoneInfo("Europe/Berlin")
    saturday = datetime(2026, 3, 28, tzinfo=berlin)
    since_ns = int(saturday.timestamp()) * 10**9
    found = parse_hours(("Sat-Sun 08:00-18:00",), TimeZone.named("Europe/Berlin"))
    assert found is not None
    times = list(found.within(since_ns, since_ns + 47 * HOUR_NS))
    shown = [datetime.fromtimestamp(time_ns / 1e9, berlin).hour for one in times for time_ns in one]
    assert shown == [8, 18, 8, 18]
    assert times[1][0] - times[0][0] == 23 * HOUR_NS


@pytest.mark.parametrize(
    "text", ["08:00-18:00", "Mon 8-18", "Mon 18:00-08:00", "Mon 08:00-25:00", "Mon 08:60-18:00", "Mon"]
)
def test_what_is_no_hours_of_use_is_refused(text):
    with pytest.raises(UsageError):
        parse_hours((text,))
