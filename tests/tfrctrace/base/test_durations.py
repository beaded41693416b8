"""Durations as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.base.durations import parse_duration_ns, parse_offset_ns
from tfrctrace.base.errors import UsageError


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1ns", 1),
        ("10us", 10_000),
        ("10 µs", 10_000),
        ("500ms", 500_000_000),
        ("0.1s", 100_000_000),
        ("1.5 min", 90_000_000_000),
        ("2h", 7_200_000_000_000),
        ("2m", 120_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1 h 30 min 0.5 s", 5_400_500_000_000),
        ("3d", 259_200_000_000_000),
        (timedelta(minutes=2, microseconds=1), 120_000_001_000),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text, nanoseconds):
    assert parse_duration_ns(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "ms",
        "-1s",
        "1 lightyear",
        "1e3s",
        "0ms",
        "0.1ns",
        "٣s",
        "1s2",
        "9" * 30 + "s",
        "30m1h",
        "1m1min",
        5,
    ],
)
def test_what_is_no_duration_is_wrong_usage(text):
    with pytest.raises(UsageError, match="is not a duration"):
        parse_duration_ns(text)


def test_the_argument_is_named():
    with pytest.raises(UsageError, match="`window`: `soon` is not a duration"):
        parse_duration_ns("soon", "window")


def test_a_long_text_that_is_none_is_refused_at_once():
    with pytest.raises(UsageError, match="is not a duration"):
        parse_duration_ns("1s " * 5_000 + "!")


@given(st.integers(min_value=1, max_value=2**63 - 1))
def test_no_nanosecond_is_lost(nanoseconds):
    assert parse_duration_ns(f"{nanoseconds}ns") == nanoseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("-2.5s", -2_500_000_000), ("+3 ms", 3_000_000), ("0s", 0), ("-0", 0), ("1h", 3600 * 10**9)],
)
def test_an_offset_may_have_a_sign_or_be_nothing(text, expected):
    assert parse_offset_ns(text) == expected


@pytest.mark.parametrize("text", ["", "--1s", "-", "soon"])
def test_what_is_no_offset_is_refused(text):
    with pytest.raises(UsageError):
        parse_offset_ns(text)
