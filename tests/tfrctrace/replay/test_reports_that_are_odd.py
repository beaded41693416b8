"""Reports that come out of order, at one time, or without what a sender needs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from replay_recordings import recording

from tfrctrace.replay.gathering import notes_on_reports, received
from tfrctrace.replay.tfrc import Chosen, run


def feedback(*rows: dict[str, Any]) -> pl.DataFrame:
    usual = {"time_ns": 0, "rtt_ms": 100.0, "p": 0.01, "x_recv_bps": 8e5, "x_bps": None}
    made = [{**usual, "received_ns": 100_000_000 * place, **row} for place, row in enumerate(rows, start=1)]
    return pl.DataFrame(made, schema_overrides={"x_bps": pl.Float64, "p": pl.Float64, "rtt_ms": pl.Float64})


PACKETS = pl.DataFrame({"time_ns": [0], "payload_bytes": [1000]})


def test_reports_are_taken_in_the_order_in_which_they_arrive() -> None:
    reports = feedback({"received_ns": 300, "time_ns": 1}, {"received_ns": 200, "time_ns": 2})
    assert received(reports, PACKETS, 1.0)["time_ns"].to_list() == [200, 300]
    assert notes_on_reports(reports) == ("1 report out of order",)


def test_what_a_report_does_not_say_is_counted() -> None:
    reports = feedback({"p": None}, {"x_recv_bps": None}, {"rtt_ms": None}, {})
    assert received(reports, PACKETS, 1.0).height == 2
    assert notes_on_reports(reports) == (
        "2 reports without p or receive rate, left out",
        "1 report without a round-trip time",
    )


def test_two_reports_at_one_time_are_two_steps_and_a_note() -> None:
    reports = feedback({"received_ns": 200}, {"received_ns": 200})
    assert received(reports, PACKETS, 1.0).height == 2
    assert notes_on_reports(reports) == ("1 report at the same time as another",)


@pytest.mark.parametrize("profile", ["rfc5348", "rfc3448", "linux", "ns2"])
def test_no_interval_and_no_round_trip_time_stop_no_sender(profile: Any) -> None:
    reports = [
        {"t": 0.0, "r_sample": None, "p": 0, "x_recv": 0},
        {"t": 0.1, "r_sample": 0.1, "p": 0, "x_recv": 0},
        {"t": 0.1, "r_sample": 0.1, "p": 0.01, "x_recv": 1000},
        {"t": 0.2, "r_sample": -1.0, "p": 0.01, "x_recv": 1000},
    ]
    steps = run(Chosen(profile=profile), recording(reports, end_s=0.2, sends=[0.0, 0.05]))
    assert steps.height == 4
    assert steps["x_bps"].is_finite().all()


def test_without_a_round_trip_time_a_report_changes_nothing() -> None:
    reports = [{"t": 0.1 * n, "r_sample": None, "p": 0.0, "x_recv": 1e6} for n in range(1, 4)]
    steps = run(Chosen(), recording(reports, end_s=0.3))
    assert set(steps["reason"]) == {"no_rtt"}
    assert steps["r_ms"].null_count() == 3


def test_the_interval_in_which_less_was_sent_than_allowed_was_data_limited() -> None:
    reports = feedback({"x_bps": 800_000.0}, {"x_bps": 800_000.0}, {"x_bps": None}, {})
    sends = pl.DataFrame(
        {"time_ns": [110_000_000, 150_000_000, 210_000_000], "payload_bytes": [6000, 5000, 100]}
    )
    limited = received(reports, sends, 1.0)["is_data_limited"].to_list()
    # 10 kB are allowed in 100 ms: 11 kB were sent, then 100 bytes; of the last interval X is not known
    assert limited == [None, False, True, None]
