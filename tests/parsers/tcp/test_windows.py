"""Windows, pacing rates and flights of the table of rounds, against TCP_INFO of the sending kernels."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tfrctrace

DATA = Path(__file__).resolve().parents[2] / "data"
LIMITED_BY_WINDOW = ("0000-bottleneck-reno", "0005-bursts-veno", "0010-policer-yeah")
LIMITED_BY_OTHERS = ("0006-interactive-illinois", "0007-paced-htcp", "0009-server-nv")
AWAY = ("0000-bottleneck-reno", "0010-policer-yeah")


@pytest.fixture
def judged(truth):
    from judge_windows import judge

    return lambda run, vantage="sender": judge(DATA / run, vantage)


@pytest.mark.parametrize("run", LIMITED_BY_WINDOW)
def test_the_window_of_a_round_that_it_limits_is_the_kernels(judged, run):
    found = judged(f"causes/{run}")
    assert len(found.windows) > 60
    assert sorted(found.ratios)[len(found.ratios) // 2] == pytest.approx(1, abs=0.001)
    assert sum(found.windows) >= 0.95 * len(found.windows)


@pytest.mark.parametrize("run", [*LIMITED_BY_WINDOW, *LIMITED_BY_OTHERS, "0002-receiver-vegas"])
def test_the_flight_of_any_round_is_a_lower_bound_of_the_kernels_window(judged, run):
    found = judged(f"causes/{run}")
    assert len(found.least) > 60
    assert sum(found.least) >= 0.99 * len(found.least)


@pytest.mark.parametrize("run", LIMITED_BY_OTHERS)
def test_a_round_that_its_application_limits_shows_no_window(judged, run):
    found = judged(f"causes/{run}")
    assert len(found.windows) < 0.05 * found.rounds


def test_the_rate_of_a_sender_that_paces_is_the_kernels_and_its_window_is_unknown(judged):
    found = judged("congestion_controls/17-0000-bbr")
    assert len(found.pacing) > 0.5 * found.rounds
    assert sum(found.pacing) >= 0.95 * len(found.pacing)
    assert len(found.windows) < 0.1 * found.rounds


@pytest.mark.parametrize("run", sorted(path.name for path in (DATA / "causes").iterdir()))
def test_a_sender_that_does_not_pace_has_no_pacing_rate(judged, run):
    assert judged(f"causes/{run}").pacing == []


@pytest.mark.parametrize("run", AWAY)
def test_a_flight_estimated_at_the_receiver_is_the_kernels_within_its_error(judged, run):
    found = judged(f"causes/{run}", "receiver")
    # each round has a flight; of those that are shorter than the kernel's log is fine, nothing tells
    assert found.told == found.rounds
    assert len(found.flights) > 0.75 * found.rounds
    assert sum(found.flights) >= 0.97 * len(found.flights)
    assert len(found.least) > 0.75 * found.rounds
    assert sum(found.least) >= 0.97 * len(found.least)
    assert found.windows == []


@pytest.mark.parametrize(
    "capture", sorted((DATA / "causes").glob("*/*.pcap.gz")), ids=lambda path: path.parent.name
)
def test_the_largest_window_is_never_below_the_largest_flight(capture):
    flows = tfrctrace.open(capture).flows.filter(pl.col("cwnd_max_bytes").is_not_null())
    assert flows.filter(pl.col("cwnd_max_bytes") < pl.col("max_flight_bytes")).is_empty()
