"""The congestion control behind a flow, by kernels whose congestion control is known."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl
import pytest
from any_rounds import A_ROUND
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.replay.controller import Report, Start
from tfrctrace.replay.naming.answer import (
    ALIKE,
    FEW_ROUNDS,
    NOT_PREDICTED,
    answer,
    beats,
    explains,
    telling,
)
from tfrctrace.replay.naming.candidates import CANDIDATES
from tfrctrace.replay.naming.delay_backoffs import delay_backoffs
from tfrctrace.replay.naming.observations import At, Cut, Growth, Measured, Settled, observations
from tfrctrace.replay.naming.of_trace import (
    MARKS,
    NOT_AT_SENDER,
    NOT_LIMITED_BY_PATH,
    controls_frame,
    directions_of,
    named_directions,
)
from tfrctrace.replay.naming.predict import Prediction, predictions
from tfrctrace.replay.tcp.bic import Bic
from tfrctrace.replay.tcp.cubic import Cubic
from tfrctrace.replay.tcp.dctcp import Dctcp
from tfrctrace.replay.tcp.sack import Sack
from tfrctrace.replay.tcp.scalable import Scalable
from tfrctrace.replay.tcp.westwood import Westwood
from tfrctrace.replay.tcp.window import in_ticks
from tfrctrace.reports.why_words import CONTROL_REASONS, sentences

if TYPE_CHECKING:
    from tfrctrace.metrics.results.why import FlowCauses
    from tfrctrace.replay.tcp.window import WindowControl

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"
START = Start(segment_bytes=1448)


def named_of(trace: tfrctrace.Trace, flows: pl.DataFrame) -> pl.DataFrame:
    directions = directions_of([(trace.cause_sums, flows)])
    return controls_frame(directions, named_directions([trace.rounds], [trace.causes], directions))


def largest(capture: Path) -> FlowCauses:
    return max(tfrctrace.open(capture).why(), key=lambda one: one.payload_bytes or 0)


@pytest.mark.parametrize(
    "run",
    [
        *("38-0002-vegas", "38-0008-nv", "38-0021-htcp"),
        *("77-0008-bottleneck-nv", "93-0018-vegas"),
    ],
)
def test_the_name_is_that_of_the_sending_kernel(run: str) -> None:
    folder = DATA / "congestion_controls" / run
    drawn = json.loads((folder / "scenario.json").read_text())
    found = largest(folder / "sender.pcap.gz")
    assert found.congestion_control == drawn["sender"]["controller"]
    assert found.congestion_control_reason is None
    assert found.compared_rounds
    assert found.predicted_rounds
    assert found.predicted_rounds >= 0.75 * found.compared_rounds


@pytest.mark.parametrize(
    ("run", "names"),
    [
        ("causes/0000-bottleneck-reno", "htcp|hybla|lp|reno|westwood"),
        ("causes/0010-policer-yeah", "scalable|veno|yeah"),
        ("congestion_controls/38-0013-scalable", "nv|scalable"),
    ],
)
def test_those_that_are_equal_in_what_was_seen_are_all_named(run: str, names: str) -> None:
    assert largest(DATA / run / "sender.pcap.gz").congestion_control == names


def test_a_congestion_control_that_is_not_known_gets_no_name_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = [one for one in CANDIDATES if one.name not in {"dctcp", "nv"}]
    monkeypatch.setattr("tfrctrace.replay.naming.answer.possible_candidates", lambda _own, *, has_ecn: others)
    found = largest(DATA / "congestion_controls" / "38-0008-nv" / "sender.pcap.gz")
    assert (found.congestion_control, found.congestion_control_reason) == (None, "not_predicted")


def test_bbr_is_named_by_its_probes_which_the_kernel_had() -> None:
    folder = DATA / "congestion_controls" / "17-0000-bbr"
    found = largest(folder / "sender.pcap.gz")
    assert (found.congestion_control, found.congestion_control_reason) == ("bbr", None)
    windows = pl.read_csv(folder / "flow.tcp_info.csv.gz")["snd_cwnd"]
    assert found.rtt_probes == ((windows == 4) & (windows.shift(1) > 4)).sum() == 1
    assert "it kept four segments in flight for 200 ms (1 time)" in sentences(found)[-1]


def test_cdg_is_named_by_its_backoffs_which_the_kernel_had() -> None:
    folder = DATA / "congestion_controls" / "4400-0001-cdg"
    capture = tfrctrace.open(folder / "sender.pcap.gz")
    found = max(capture.why(), key=lambda one: one.payload_bytes or 0)
    assert (found.congestion_control, found.congestion_control_reason) == ("cdg", None)
    # snd_cwnd of the sending kernel each 20 ms; nothing was retransmitted
    known = pl.read_csv(folder / "flow.tcp_info.csv.gz")
    falls = (known["snd_cwnd"] / known["snd_cwnd"].shift(1)) < 0.85
    assert known["total_retrans"].max() == 0
    assert found.delay_backoffs == pytest.approx(falls.sum(), rel=0.1)
    assert "without a loss or a mark" in sentences(found)[-1]


@pytest.mark.parametrize(
    ("windows", "backoffs"),
    [
        ([12, 13, 14, 14, 12, 10, 11] * 8, 8),
        # half of it, as TCP-LP leaves, and single ones
        ([16, 17, 18, 18, 9, 9, 12] * 8, 0),
        ([12, 13, 14, 14, 12, 10, 11] * 3, 0),
        # one segment is no more than that windows have whole ones
        ([3, 4, 4, 3, 3, 3] * 8, 0),
        (list(range(10, 200)), 0),
    ],
)
def test_windows_that_fall_to_seven_tenths_without_a_loss_are_backoffs(
    windows: list[int], backoffs: int
) -> None:
    rows = [{"cwnd_bytes": 1448 * one, "repair": None, "ece_packets": 0} for one in windows]
    assert delay_backoffs(rows, 1448.0) == backoffs
    for row in rows:
        row["repair"] = "recovery"
    assert delay_backoffs(rows, 1448.0) == 0


def test_marks_show_dctcp_by_their_share() -> None:
    trace = tfrctrace.open(DATA / "congestion_controls" / "4141-0000-dctcp" / "sender.pcap.gz")
    (found,) = trace.why()
    assert (found.congestion_control, found.congestion_control_reason) == ("dctcp", None)
    # tcpi_delivered_ce of the sending kernel
    assert trace.rounds["ece_packets"].sum() == 43


def test_a_mark_cuts_as_a_loss_does_and_that_of_dctcp_by_the_share_of_marks() -> None:
    control = Dctcp(START)
    for marked, alpha in [(1.0, 1.0), (0.0, 15 / 16), (0.5, 15 / 16 * 15 / 16 + 1 / 32)]:
        control.measure(Report(time_s=1.0, interval_s=0.1, rtt_s=0.1, p=0.0, x_recv=1e5, marked=marked))
        control.cwnd = 100.0
        assert control.after_mark() == pytest.approx(100 * (1 - alpha / 2))
        assert control.after_loss() == 50.0
    for other in (Sack(START), Cubic(START), Bic(START)):
        other.cwnd = 100.0
        assert copy.copy(other).after_mark() == other.after_loss()


def test_rounds_with_marks_are_a_cut_of_which_the_round_after_shows_the_window() -> None:
    rows = rounds_of(Sack(START), 30.0, 30, lost_every=10)
    for row in rows:
        row["ece_packets"], row["repair"] = (2 if row["repair"] else 0), None
    cut = next(one for one in observations(rows, 1448.0, 2.0) if isinstance(one, Cut))
    assert (cut.before, cut.after, cut.is_mark) == ((38.0, 39.0), (19.0,), True)
    after = [one for one in observations(rows, 1448.0, 2.0) if isinstance(one, Measured)]
    assert next(one.report.marked for one in after if one.report.marked) == pytest.approx(4 / 39)


@pytest.mark.parametrize("run", ["38-0002-vegas", "38-0013-scalable", "38-0021-htcp"])
def test_one_that_is_left_out_is_not_taken_for_another(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [one for one in CANDIDATES if one.name != run.rsplit("-", 1)[1]]
    monkeypatch.setattr("tfrctrace.replay.naming.candidates.CANDIDATES", others)
    found = largest(DATA / "congestion_controls" / run / "sender.pcap.gz")
    assert found.congestion_control is None


@pytest.mark.parametrize(
    "run",
    ["0002-receiver-vegas", "0004-send_buffer-westwood", "0005-bursts-veno", "0006-interactive-illinois",
     "0007-paced-htcp", "0009-server-nv"],
)  # fmt: skip
def test_nothing_is_said_of_a_flow_that_the_path_did_not_limit(run: str) -> None:
    found = largest(DATA / "causes" / run / "sender.pcap.gz")
    assert found.congestion_control is None
    assert found.congestion_control_reason == "not_limited_by_path"


@pytest.mark.parametrize(
    ("run", "capture", "names", "reason"),
    [
        ("0010-policer-yeah", "middle", "scalable|yeah", None),
        ("0010-policer-yeah", "receiver", "scalable|veno|yeah", None),
        ("0000-bottleneck-reno", "receiver", "htcp|hybla|lp|reno|westwood", None),
    ],
)
def test_away_from_the_sender_the_windows_that_it_had_show_the_name(
    run: str, capture: str, names: str | None, reason: str | None
) -> None:
    found = largest(DATA / "causes" / run / f"{capture}.pcap.gz")
    assert (found.congestion_control, found.congestion_control_reason) == (names, reason)


def test_nothing_is_said_where_the_distance_of_the_sender_is_not_known() -> None:
    path = DATA / "causes" / "0010-policer-yeah" / "sender.pcap.gz"
    found = max(tfrctrace.open(path, vantage="middle").why(), key=lambda one: one.payload_bytes or 0)
    assert (found.congestion_control, found.congestion_control_reason) == (None, "away_from_sender")


def test_the_kernel_of_the_sample_trace_is_another_one() -> None:
    # Linux 6.18, iperf3 -C cubic to port 5201 and -C reno to 5202 (sample_traces/make.py)
    flows = tfrctrace.open(ROOT / "sample_traces" / "two-flows.pcapng.gz").why()
    named = {one.dst_port: one for one in flows if one.congestion_control}
    assert named[5201].congestion_control == "cubic"
    assert named[5201].window_left == pytest.approx(0.7, abs=0.01)
    assert "reno" in (named[5202].congestion_control or "").split("|")
    assert named[5202].window_left == pytest.approx(0.5, abs=0.01)


def test_away_from_the_sender_nothing_is_said() -> None:
    found = tfrctrace.open(
        DATA / "causes" / "0000-bottleneck-reno" / "sender.pcap.gz", vantage="receiver"
    ).why()
    assert {
        (one.congestion_control, one.congestion_control_reason) for one in found if one.payload_bytes
    } == {(None, "away_from_sender")}


def rounds_of(control: WindowControl, cwnd: float, rounds: int, *, lost_every: int) -> list[dict[str, Any]]:
    """Return rows of rounds as a control makes them on a path of 60 ms that loses periodically."""
    control.sample_rtt(0.06)
    control.cwnd = cwnd
    found = []
    for number in range(rounds):
        seen = math.floor(control.cwnd)
        is_loss = number % lost_every == lost_every - 1
        if is_loss:
            control.cwnd = seen
            control.cwnd = math.floor(control.after_loss())
        else:
            control.avoid_congestion(1.0)
        found.append(
            {
                "time_ns": number * 60_000_000,
                "packet": number,
                "duration_ms": 60.0,
                "flight_bytes": seen * 1448,
                "cwnd_bytes": (math.floor(control.cwnd) if is_loss else seen) * 1448,
                "delivered_bytes": seen * 1448,
                "rtt_ms": 60.0,
                "ece_packets": 0,
                "repair": "recovery" if is_loss else None,
            }
        )
    return found


@pytest.mark.parametrize(
    ("control", "names"),
    [
        (Cubic(START, increase_beyond=0), {"cubic"}),
        (Scalable(START), {"scalable", "yeah"}),
        (Bic(START), {"bic"}),
    ],
    ids=["cubic", "scalable", "bic"],
)
def test_a_window_by_the_rule_is_named_by_it(control: WindowControl, names: set[str]) -> None:
    observed = list(observations(rounds_of(control, 80.0, 600, lost_every=25), 1448.0))
    assert set(answer(observed, START, 1.0).names) == names


def test_a_window_by_no_known_rule_is_not_named() -> None:
    observed = list(observations(rounds_of(Sack(START, gamma=0.3), 80.0, 600, lost_every=25), 1448.0))
    assert answer(observed, START, 1.0).names == ()


def test_a_window_that_stands_is_not_said_to_be_that_of_another() -> None:
    rows = rounds_of(Sack(START), 10.0, 300, lost_every=1_000)
    for row in rows:
        row["flight_bytes"] = row["cwnd_bytes"] = row["delivered_bytes"] = 10 * 1448
    found = answer(list(observations(rows, 1448.0)), START, 1.0)
    assert (found.names, found.reason) == ((), NOT_PREDICTED)


def predicted(*, error: float, is_cut: bool = False, observed: float = 40.0) -> Prediction:
    return Prediction(observed + error, observed, observed, 1.0, rounds=1, is_cut=is_cut)


def test_a_part_of_a_segment_is_no_evidence_however_often_it_returns() -> None:
    near, far = ([predicted(error=error) for _ in range(1_000)] for error in (0.0, 0.5))
    assert beats(*([one.log_likelihood for one in made] for made in (near, far)))
    assert not beats(*telling(near, far))
    assert beats(*telling(near, [predicted(error=3.0) for _ in near]))


def test_growth_that_is_predicted_does_not_make_up_for_cuts_that_are_not() -> None:
    growth = [predicted(error=0.0) for _ in range(100)]
    for error, is_explained in ((0.0, True), (20.0, False)):
        made = [*growth, *(predicted(error=error, is_cut=True) for _ in range(10))]
        assert explains(made, [-10.0] * len(made)) == is_explained


def test_what_a_mark_left_may_have_grown_for_a_round_before_and_since() -> None:
    # RFC 3168 section 6.1.2: half of 38 segments is 19; half of 39, and a segment more, 20.5
    for after, expected in ((19.0, 19.0), (20.0, 20.0), (15.0, 19.0), (30.0, 20.0)):
        cut = Cut((38.0, 38.0), (after,), is_timeout=False, rounds=1, at=At(0, 0), is_mark=True)
        (made,) = predictions(Sack(START), [cut])
        assert made.predicted == expected


def test_the_base_round_trip_time_of_westwood_is_in_ticks_as_in_the_kernel() -> None:
    # tcp_westwood.c: usecs_to_jiffies, which rounds up; HZ is 100 in the kernels of the farm
    assert in_ticks(0.152, 0.01) == pytest.approx(0.16)
    assert in_ticks(0.152, 0.0) == 0.152
    report = Report(time_s=1.0, interval_s=0.2, rtt_s=0.152, p=0.0, x_recv=1.448e6)
    for tick, segments in ((0.0, 152), (0.01, 160)):
        control = Westwood(START, late=1, tick=tick)
        control.measure(report)
        control.cwnd = 200.0
        assert control.after_mark() == pytest.approx(segments)


def test_too_few_rounds_are_no_answer() -> None:
    observed = list(observations(rounds_of(Sack(START), 30.0, 20, lost_every=9), 1448.0))
    assert answer(observed, START, 1.0).reason == FEW_ROUNDS


def test_rounds_become_growths_and_cuts() -> None:
    rows = rounds_of(Sack(START), 30.0, 30, lost_every=10)
    kinds = [type(one) for one in observations(rows, 1448.0)]
    # the slow start ends after three rounds of little growth, which only measure
    assert kinds[:3] == [Measured, Measured, Measured]
    # and the round before a loss has a round-trip time, by which some cut
    assert kinds[3:9] == [Growth, Measured, Cut, Measured, Settled, Growth]
    cut = next(one for one in observations(rows, 1448.0) if isinstance(one, Cut))
    assert cut.before == (38.0, 39.0)
    assert cut.after == (19.0, 19.0)


def test_a_timeout_and_a_long_recovery_show_no_cut() -> None:
    rows = rounds_of(Sack(START), 30.0, 20, lost_every=10)
    rows[9]["repair"] = "timeout"
    assert [one.after for one in observations(rows, 1448.0) if isinstance(one, Cut)] == [()]
    longer = rounds_of(Sack(START), 30.0, 20, lost_every=30)
    for row in longer[10:14]:
        row["repair"] = "recovery"
    assert [one.after for one in observations(longer, 1448.0) if isinstance(one, Cut)] == [()]


def test_every_reason_and_answer_has_words() -> None:
    reasons = {FEW_ROUNDS, NOT_PREDICTED, ALIKE, NOT_LIMITED_BY_PATH, NOT_AT_SENDER, MARKS}
    assert set(CONTROL_REASONS) == reasons
    found = largest(DATA / "causes" / "0010-policer-yeah" / "sender.pcap.gz")
    for reason in (*reasons, "away_from_sender"):
        unknown = msgspec.structs.replace(
            found, congestion_control=None, congestion_control_reason=reason, main_cause="policer"
        )
        assert sentences(unknown)[-1].startswith("Its congestion control is not known: ")
    one = msgspec.structs.replace(found, congestion_control="yeah", window_left=None)
    assert sentences(one)[-1].startswith("Its congestion control behaves like yeah: 8")
    assert "losses left" not in sentences(one)[-1]


@given(rows=st.lists(A_ROUND, max_size=60), segments_per_ack=st.floats(1, 1000))
def test_any_rounds_have_an_answer_or_a_reason(rows: list[dict[str, Any]], segments_per_ack: float) -> None:
    found = answer(list(observations(rows, 1448.0)), START, segments_per_ack)
    assert bool(found.names) == (found.reason is None)
    assert found.predicted_rounds <= found.rounds


def test_every_candidate_takes_a_report_and_begins_anew() -> None:
    report = Report(time_s=1.0, interval_s=0.1, rtt_s=0.1, p=0.0, x_recv=1e5)
    for candidate in CANDIDATES:
        first, second = candidate.begin(START, 2.0), candidate.begin(START, 2.0)
        first.measure(report)
        assert first.rtt_s == 0.1
        assert second.rtt_s is None


@pytest.mark.parametrize(
    "name", ["packets", "data_packets", "data_segments", "payload_bytes", "mss", "ts_rtt_samples", "ecn_mode"]
)
def test_what_a_damaged_capture_does_not_show_is_not_needed(name: str) -> None:
    trace = tfrctrace.open(DATA / "congestion_controls" / "38-0013-scalable" / "sender.pcap.gz")
    unknown = trace.flows.with_columns(pl.lit(None, trace.flows.schema[name]).alias(name))
    found = named_of(trace, unknown)
    named = found["congestion_control"].drop_nulls().to_list()
    assert all("scalable" in names.split("|") for names in named)


def test_a_trace_without_connections_has_no_rows() -> None:
    trace = tfrctrace.open(ROOT / "sample_traces" / "dumbbell.tr.xz")
    found = named_of(trace, trace.flows)
    assert found.is_empty()
    assert found.schema["congestion_control"] == pl.String
