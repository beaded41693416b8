"""Times as Polars and pandas have them, beside the integers."""

import datetime as dt

import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.datetimes import TIMES
from tfrctrace.metrics.flow.causes import CAUSE_SUMS
from tfrctrace.parsers._native import tables

START_NS = 1_700_000_000_123_456_789
"""2023-11-14 22:13:20 UTC, and some ns."""


def test_a_time_stands_beside_its_integer_in_the_zone():
    given = pl.DataFrame({"start_ns": [START_NS, None], "packets": [1, 2]})
    frame = tfrctrace.with_datetimes(given, "Asia/Tokyo")
    assert frame.columns == ["start_ns", "packets", "start"]
    assert frame["start"].dtype == pl.Datetime("ns", "Asia/Tokyo")
    first = frame["start"][0].replace(microsecond=0)
    assert first.astimezone(dt.UTC) == dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)
    assert (first.hour, frame["start"][1]) == (7, None)
    assert frame["start"].dt.timestamp("ns")[0] == START_NS


def test_the_case_of_utc_makes_no_difference():
    frame = tfrctrace.with_datetimes(pl.DataFrame({"start_ns": [START_NS]}), "utc")
    assert frame["start"].dtype == pl.Datetime("ns", "UTC")


def test_a_simulation_has_times_since_its_start():
    frame = tfrctrace.with_datetimes(pl.DataFrame({"time_ns": [1_500_000_000]}))
    assert frame["time"][0] == dt.timedelta(seconds=1.5)


def test_pandas_has_the_same_times():
    frame = tfrctrace.with_datetimes(pl.DataFrame({"start_ns": [START_NS]}), "Europe/Berlin")
    times = tfrctrace.to_pandas(frame)["start"]
    assert str(times.dt.tz) == "Europe/Berlin"
    assert times.astype("int64")[0] == START_NS


@pytest.mark.parametrize("zone", ["Mars/Olympus", "local"])
def test_a_zone_that_a_column_cannot_have_is_refused(zone):
    with pytest.raises(tfrctrace.UsageError, match=f"`{zone}` is not a time zone"):
        tfrctrace.with_datetimes(pl.DataFrame({"start_ns": [START_NS]}), zone)


def test_each_time_of_a_table_is_known_and_its_name_is_free():
    durations = {"width_ns", "rtt_ns", "from_ns", "to_ns", "delay_ns", "rtt_sum_ns"}
    durations |= {*CAUSE_SUMS, "wifi_airtime_ns", "duration_ns", "longest_ns"}
    for table, _, columns in tables():
        names = {column[0] for column in columns}
        assert {name for name in names if name.endswith("_ns")} <= TIMES | durations, table
        assert not {name.removesuffix("_ns") for name in names & TIMES} & names, table
