"""Rates as people write them."""

import pytest

from tfrctrace.base.bitrates import parse_bitrate_bps, parse_capacity_bps
from tfrctrace.base.errors import UsageError


@pytest.mark.parametrize(
    ("text", "bps"),
    [("200k", 2e5), ("1.5M", 1.5e6), ("64 kbit/s", 64e3), ("9600", 9600), ("1Gbps", 1e9), ("0", 0)],
)
def test_rates_are_read(text, bps):
    assert parse_bitrate_bps(text) == bps


@pytest.mark.parametrize("text", ["", "k", "-1", "1K", "1m", "1e6", "inf", "1 Mb", "٣k", "9" * 20])
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(UsageError, match="is not a bit rate"):
        parse_bitrate_bps(text)


def test_a_link_carries_something():
    assert parse_capacity_bps("600k") == 6e5
    with pytest.raises(UsageError, match="capacity must be above 0"):
        parse_capacity_bps("0M")
