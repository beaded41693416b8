"""Reports that come out of order, at one time, or without what a sender needs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from replay_recordings import recording

from tfrctrace.replay.recordings.receiver_reports import is_usable, received_reports
from tfrctrace.replay.tfrc import TfrcVariant, run


def feedback(*rows: dict[str, Any]) -> pl.DataFrame:
    usual = {
        "time_ns": 0,
        "rtt_ms": 100.0,
        "p": 0.01,
        "reported_p": None,
        "x_recv_bps": 8e5,
        "reported_x_recv_bps": None,
        "x_bps": None,
        "x_inst_bps": None,
        "lost_packets": None,
    }
    made = [{**usual, "received_ns": 100_000_000 * place, **row} for place, row in enumerate(rows, start=1)]
    names = ("rtt_ms", "p", "reported_p", "x_recv_bps", "reported_x_recv_bps", "x_bps", "x_inst_bps")
    types = {**dict.fromkeys(names, pl.Float64), "lost_packets": pl.UInt64}
    return pl.DataFrame(made, schema_overrides=types)


def frame(
    reports: pl.DataFrame, packets: pl.DataFrame | None = None, rtt_ms: float | None = None
) -> pl.DataFrame:
    made = received_reports(reports, PACKETS if packets is None else packets, rtt_ms, 1.0)
    assert made.reports is not None
    return made.reports


def notes(reports: pl.DataFrame) -> tuple[str, ...]:
    return received_reports(reports, PACKETS, None, 1.0).notes


PACKETS = pl.DataFrame({"time_ns": [0], "payload_bytes": [1000]})


def test_losses_are_those_that_a_report_gives_and_else_one_where_p_rises() -> None:
    reports = frame(
        feedback({"p": 0.0, "lost_packets": 0}, {"lost_packets": 3}, {"lost_packets": 2}, {"p": 0.02})
    )
    assert reports["lost_packets"].to_list() == [0, 3, 2, 1]
    assert reports["loss_events"].to_list() == [0, 1, 0, 1]


def test_reports_are_taken_in_the_order_in_which_they_arrive() -> None:
    reports = feedback({"received_ns": 300, "time_ns": 1}, {"received_ns": 200, "time_ns": 2})
    assert frame(reports)["time_ns"].to_list() == [200, 300]
    assert notes(reports) == ("1 report out of order",)


def test_what_a_report_does_not_say_is_counted() -> None:
    reports = feedback({"p": None}, {"x_recv_bps": None}, {"rtt_ms": None}, {})
    assert frame(reports).height == 2
    assert notes(reports) == (
        "2 reports without p or receive rate, left out",
        "1 report without a round-trip time",
    )


def test_what_a_report_names_counts_more_than_what_was_rebuilt() -> None:
    reports = feedback({"reported_p": 0.02, "reported_x_recv_bps": 9e5}, {})
    found = frame(reports)
    assert found["p"].to_list() == [0.02, 0.01]
    assert found["x_recv_bps"].to_list() == [9e5, 8e5]


def test_reports_without_any_round_trip_time_need_one() -> None:
    reports = feedback({"rtt_ms": None}, {"rtt_ms": None})
    made = received_reports(reports, PACKETS, None, 1.0)
    assert made.lacks == ("none of its reports gives a round-trip time", "`--rtt 50ms` supplies it")
    assert frame(reports, rtt_ms=30.0)["rtt_ms"].to_list() == [30.0, 30.0]


def test_reports_that_say_nothing_are_no_use() -> None:
    assert not is_usable(feedback({"p": None}, {"x_recv_bps": None}))
    assert is_usable(feedback({"p": None, "reported_p": 0.0}))


def test_two_reports_at_one_time_are_two_steps_and_a_note() -> None:
    reports = feedback({"received_ns": 200}, {"received_ns": 200})
    assert frame(reports).height == 2
    assert notes(reports) == ("1 report at the same time as another",)


@pytest.mark.parametrize("profile", ["rfc5348", "rfc3448", "linux", "ns2"])
def test_no_interval_and_no_round_trip_time_stop_no_sender(profile: Any) -> None:
    reports = [
        {"t": 0.0, "r_sample": None, "p": 0, "x_recv": 0},
        {"t": 0.1, "r_sample": 0.1, "p": 0, "x_recv": 0},
        {"t": 0.1, "r_sample": 0.1, "p": 0.01, "x_recv": 1000},
        {"t": 0.2, "r_sample": -1.0, "p": 0.01, "x_recv": 1000},
    ]
    steps = run(TfrcVariant(profile=profile), recording(reports, end_s=0.2, sends=[0.0, 0.05]))
    assert steps.height == 4
    assert steps["x_bps"].is_finite().all()


def test_without_a_round_trip_time_a_report_changes_nothing() -> None:
    reports = [{"t": 0.1 * n, "r_sample": None, "p": 0.0, "x_recv": 1e6} for n in range(1, 4)]
    steps = run(TfrcVariant(), recording(reports, end_s=0.3))
    assert set(steps["reason"]) == {"no_rtt"}
    assert steps["r_ms"].null_count() == 3


def test_the_interval_in_which_less_was_sent_than_allowed_was_data_limited() -> None:
    reports = feedback({"x_bps": 800_000.0}, {"x_bps": 800_000.0}, {"x_bps": None}, {})
    sends = pl.DataFrame(
        {"time_ns": [110_000_000, 150_000_000, 210_000_000], "payload_bytes": [6000, 5000, 100]}
    )
    limited = frame(reports, sends)["is_data_limited"].to_list()
    # 10 kB are allowed in 100 ms: 11 kB were sent, then 100 bytes; of the last interval X is not known
    assert limited == [None, False, True, None]


def test_a_sender_that_yields_to_a_queue_has_more_to_send() -> None:
    reports = feedback({"x_bps": 800_000.0, "x_inst_bps": 400_000.0}, {})
    sends = pl.DataFrame({"time_ns": [110_000_000], "payload_bytes": [5000]})
    assert frame(reports, sends)["is_data_limited"].to_list() == [None, False]
