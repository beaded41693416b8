"""Numbers as text: what a person reads must be the number, rounded."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.reports.units import (
    counted,
    enumerated,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_share,
    format_time_ns,
)

PREFIXES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
FORMATS = (format_bytes, format_rate_bps, format_ms, format_share, format_duration_s)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1536, "1.54 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (12_345_678, "12.3 MB"),
        (2**64, "18.4 EB"),
    ],
)
def test_bytes_have_decimal_prefixes_and_three_digits(value, text):
    assert format_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 bit/s"), (9_570_000.0, "9.57 Mbit/s"), (1e9, "1.00 Gbit/s"), (12.25, "12.2 bit/s")],
)
def test_rates_are_in_bits_per_second(value, text):
    assert format_rate_bps(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 ms"),
        (0.0421, "0.042 ms"),
        (0.008, "0.008 ms"),
        (0.0004, "0.000400 ms"),
        (9.996, "10.0 ms"),
        (40.16, "40.2 ms"),
        (1234.5, "1,234 ms"),
    ],
)
def test_milliseconds_stay_milliseconds(value, text):
    assert format_ms(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (0.25, "250 ms"),
        (0.9996, "1.00 s"),
        (12.34, "12.3 s"),
        (59.96, "1 min 00 s"),
        (125.4, "2 min 05 s"),
        (3599.7, "1 h 00 min"),
        (86_399, "23 h 59 min"),
        (86_400 * 3 + 3600 * 4, "3 d 04 h"),
        (-125.4, "-2 min 05 s"),
    ],
)
def test_durations_are_read_in_the_unit_one_would_say(value, text):
    assert format_duration_s(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 %"), (0.0125, "1.25 %"), (0.0049, "0.49 %"), (0.00001, "<0.01 %"), (1.0, "100 %")],
)
def test_shares_are_percent_and_never_round_to_nothing(value, text):
    assert format_share(value) == text


@pytest.mark.parametrize("write", [*FORMATS, format_count, format_time_ns])
def test_a_missing_value_is_a_dash(write):
    assert write(None) == "–"


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_a_number_is_a_dash(write, value):
    assert write(value) == "–"


def test_counts_have_groups_of_three_digits():
    assert [format_count(n) for n in (0, 999, 1000, 1_234_567)] == ["0", "999", "1,000", "1,234,567"]


def test_one_is_singular():
    assert [counted(n, "flow") for n in (0, 1, 2000)] == ["0 flows", "1 flow", "2,000 flows"]


def test_only_the_last_of_several_parts_has_an_and():
    parts = ["39 TCP", "3 UDP", "1 DCCP"]
    words = [enumerated(parts[:count]) for count in (1, 2, 3)]
    assert words == ["39 TCP", "39 TCP and 3 UDP", "39 TCP, 3 UDP and 1 DCCP"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.000 s"),
        (12_345_678_901, "12.346 s"),
        (1_700_000_000_123_999_999, "2023-11-14 22:13:20.123 UTC"),
        (-(2**63), "1677-09-21 00:12:43.145 UTC"),
        (2**63 - 1, "2262-04-11 23:47:16.854 UTC"),
    ],
)
def test_times_are_utc_over_the_whole_range(value, text):
    assert format_time_ns(value) == text


@given(st.integers(-(2**62), -(2**55)) | st.integers(2**55, 2**62))
def test_a_time_reads_back_to_the_millisecond(value):
    read = datetime.strptime(format_time_ns(value), "%Y-%m-%d %H:%M:%S.%f UTC").replace(tzinfo=UTC)
    since = read - datetime(1970, 1, 1, tzinfo=UTC)
    read_ms = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    assert read_ms == value // 1_000_000


@given(st.floats(1, 1e18))
def test_an_amount_reads_back_to_half_a_percent(value):
    digits, prefix = re.fullmatch(r"([\d.,]+) ([kMGTPE]?)B", format_bytes(value)).groups()
    assert float(digits.replace(",", "")) * PREFIXES[prefix] == pytest.approx(value, rel=5.01e-3)


@given(st.floats(1e-3, 1e6))
def test_milliseconds_read_back_to_half_a_percent_or_half_a_microsecond(value):
    read = float(format_ms(value).removesuffix(" ms").replace(",", ""))
    assert read == pytest.approx(value, rel=5.01e-3, abs=0.501e-3)


@given(st.floats(1, 1e18))
def test_no_amount_is_longer_than_its_column(value):
    assert len(format_rate_bps(value)) <= len("1.00 Mbit/s")
