"""TCP, numbered datagrams and flows that lack something: what is made of them, and the messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from corpus_case import CorpusCase
from ip_packets import ethernet, udp

import tfrctrace
from tfrctrace.replay.open_loop_results import open_loop_runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfrctrace.replay.open_loop import OpenLoopReplay

ROOT = Path(__file__).resolve().parents[3]
CAPTURES = ROOT / "tests" / "data" / "captures"
NS2 = ROOT / "tests" / "data" / "ns2"


def replayed(name: str, *algorithms: str, **options: Any) -> OpenLoopReplay:
    return tfrctrace.open(CAPTURES / name).replays(*algorithms, **options)


def only(frame: pl.DataFrame, flow: int) -> pl.DataFrame:
    return frame.filter(pl.col("flow") == flow)


def words(lacking: Any) -> str:
    return f"{lacking.what}; {lacking.hint}"


def test_the_losses_of_a_tcp_flow_are_those_that_the_kernel_counted() -> None:
    (recording,) = replayed("linux-relay-loss-snd.pcap.gz").recordings
    # TcpRetransSegs of the sending kernel, in tests/data/truth.json; the relay dropped 2 % at random, and the
    # last data packet repairs one, which no report before the end can name
    assert recording.source == "tcp"
    assert recording.reports["lost_packets"].sum() == 26 - 1
    assert 10 < recording.reports["loss_events"].sum() <= 26
    assert 0.5 * 0.02 < recording.reports["p"].tail(40).mean() < 1.6 * 0.02


def test_tfrc_gets_what_tcp_got_of_the_same_losses() -> None:
    found = replayed("linux-relay-loss-snd.pcap.gz", "tfrc")
    (one,) = open_loop_runs(found)
    # that is what TFRC is made for; within a factor of two is how equation and TCP agree at 2 % loss
    assert 0.5 < one.x_mean_bps / one.sent_mean_bps < 2
    assert one.received_mean_bps == pytest.approx(one.sent_mean_bps, rel=0.05)


def test_a_longer_round_trip_time_groups_losses_and_slows_down() -> None:
    steps = replayed("linux-relay-loss-snd.pcap.gz", rtt_scales=(0.5, 1.0, 2.0)).frame
    by_scale = {scale: frame for (scale,), frame in steps.group_by("rtt_scale")}
    r_ms = {scale: frame["r_ms"].drop_nulls().mean() for scale, frame in by_scale.items()}
    assert r_ms[2.0] / r_ms[0.5] == pytest.approx(4, rel=0.05)
    x_bps = [by_scale[scale]["x_calc_bps"].drop_nulls().mean() for scale in (0.5, 1.0, 2.0)]
    assert x_bps[0] > x_bps[1] > x_bps[2]
    p = [by_scale[scale]["p"].drop_nulls().tail(30).mean() for scale in (0.5, 1.0, 2.0)]
    assert p[0] >= p[1] >= p[2]


def test_datagrams_of_iperf_are_a_flow_with_losses_at_the_receiver_and_without_at_the_sender() -> None:
    at_receiver = replayed("linux-udp-vs-tcp-rcv.pcap.gz", rtt="40ms")
    (recording,) = (one for one in at_receiver.recordings if one.transport == "udp")
    # iperf 2's server counted 32 of 627 lost
    assert recording.source == "simulated_reports"
    assert 0.2 * 32 / 627 < recording.reports["p"].tail(50).mean() < 1.2 * 32 / 627
    steps = only(at_receiver.frame, recording.flow)
    assert steps.filter(pl.col("event") == "report")["rtt_ms"].unique().to_list() == [pytest.approx(40.0)]
    at_sender = replayed("linux-udp-vs-tcp-snd.pcap.gz", rtt="40ms")
    (recording,) = (one for one in at_sender.recordings if one.transport == "udp")
    assert recording.reports["p"].max() == 0.0


def test_the_numbers_of_datagrams_are_in_the_table_of_packets() -> None:
    packets = pl.concat(tfrctrace.open(CAPTURES / "linux-udp-vs-tcp-rcv.pcap.gz").packets())
    numbers = packets.filter((pl.col("transport") == "udp") & (pl.col("direction") == "fwd"))["sequence"]
    assert numbers.drop_nulls().n_unique() == 595
    # numbered from 1; the datagram that ends the test has none
    assert (numbers.min(), numbers.max(), numbers.null_count()) == (1, 627, 1)


def test_a_round_trip_time_is_borrowed_from_a_tcp_flow_of_the_same_path() -> None:
    found = replayed("linux-udp-vs-tcp-snd.pcap.gz")
    (recording,) = (one for one in found.recordings if one.transport == "udp")
    assert any("borrowed from flow" in note for note in recording.notes)


def test_a_ccid_3_sender_is_replayed_to_the_last_bit(tmp_path: Path) -> None:
    # the script's sender is a loop of its own that obeys RFC 5348, and wrote down its X at each report
    capture, truth = tmp_path / "sender.pcap.gz", tmp_path / "truth.json"
    script = ROOT / "sample_traces" / "tfrc_connection.py"
    subprocess.run([sys.executable, script, "--at", "sender", capture, truth], check=True)
    steps = tfrctrace.open(capture).replay("tfrc").filter(pl.col("event") == "report")
    reports = json.loads(truth.read_text())["reports"]
    assert steps.height == len(reports)
    for ours, theirs in zip(steps.iter_rows(named=True), reports, strict=True):
        assert ours["x_bps"] / 8 == pytest.approx(theirs["x"], rel=1e-9)
        assert ours["r_ms"] / 1e3 == pytest.approx(theirs["r_s"], rel=1e-9)


def test_a_flow_of_a_simulation_needs_no_reports() -> None:
    found = tfrctrace.open(NS2 / "wired-mix.tr.xz").replays("tfrc")
    kinds = {one.transport: one.source for one in found.recordings}
    assert kinds["udp"] == kinds["tcp"] == "simulated_reports"
    assert kinds["tfrc"] == "reports"
    for _, frame in found.frame.group_by("flow"):
        assert frame.filter(pl.col("event") == "report").height > 5


def test_a_flow_that_was_lost_to_nobody_has_no_limit_and_says_so() -> None:
    found = replayed("linux-relay-reorder-noloss-snd.pcap.gz")
    (recording,) = found.recordings
    assert recording.reports["p"].max() == 0.0
    assert "no loss of it is known, so the equation sets no limit" in recording.notes
    assert found.frame["x_calc_bps"].null_count() == found.frame.height
    assert set(found.frame["mode"]) <= {"slow_start", "receive_limited", "idle", "no_feedback"}


def test_at_the_receiver_the_round_trip_time_is_the_handshakes_or_given() -> None:
    name = "linux-relay-reorder-noloss-rcv.pcap.gz"
    (recording,) = replayed(name).recordings
    assert any("of its handshake, without any queue" in note for note in recording.notes)
    (recording,) = replayed(name, rtt="80ms").recordings
    assert recording.reports["rtt_ms"].unique().to_list() == [pytest.approx(80.0)]


class TestWhatIsMissing:
    def test_a_tcp_flow_without_handshake_at_the_receiver_has_no_round_trip_time(
        self, write_capture: Callable[..., Path], conversation: Callable[..., list[bytes]]
    ) -> None:
        frames = conversation(data_packets=30)
        # only the data of one side, as behind a route that the answers do not take
        capture = write_capture("a.pcap", [frame for frame in frames[3:] if len(frame) > 100])
        (lacking,) = tfrctrace.open(capture).replays().lacking
        assert "no round-trip time" in words(lacking)
        assert "--rtt 50ms" in words(lacking)
        assert tfrctrace.open(capture).replays(rtt="50ms").recordings

    def test_few_packets_are_too_few(
        self, write_capture: Callable[..., Path], conversation: Callable[..., list[bytes]]
    ) -> None:
        capture = write_capture("a.pcap", conversation(data_packets=1))
        found = tfrctrace.open(capture).replays()
        assert found.frame.is_empty()
        assert words(found.lacking[0]).startswith("it has 1 data packet, fewer than 20")
        still = tfrctrace.open(capture).replays(least_packets=1)
        assert words(still.lacking[0]).startswith("it has 1 data packet, fewer than 2")

    def test_datagrams_without_numbers_have_no_losses_that_could_be_known(
        self, write_capture: Callable[..., Path]
    ) -> None:
        packet = ethernet(udp(("192.0.2.1", 1), ("192.0.2.2", 9), b"x" * 90))
        (lacking,) = tfrctrace.open(write_capture("a.pcap", [packet] * 30)).replays().lacking
        assert "no sequence numbers" in words(lacking)
        assert "--dissect" in words(lacking)

    def test_numbers_without_any_round_trip_time(self) -> None:
        trace = tfrctrace.open(CAPTURES / "linux-udp-vs-tcp-rcv.pcap.gz", filter="udp")
        lacking = trace.replays().lacking
        assert any("no round-trip time" in words(one) and "--rtt 50ms" in words(one) for one in lacking)


@pytest.mark.parametrize(("case", "is_marked"), [("ecn-marks", True), ("drop-one", False)])
@pytest.mark.parametrize("tap", ["snd", "rcv"])
def test_marks_that_a_replay_of_tcp_ignores_are_named(
    tmp_path: Path, case: str, tap: str, is_marked: bool
) -> None:
    corpus = CorpusCase(case)
    assert bool(corpus.counters["relay"].get("mark")) == is_marked
    (recording,) = tfrctrace.open(corpus.unpack(tap, tmp_path)).replays("tfrc").recordings
    assert any("congestion marks (ECN)" in note for note in recording.notes) == is_marked
