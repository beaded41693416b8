"""TFRC over DCCP: ends that a simulation of RFC 5348 had, options as tshark reads them, and bad input."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import shutil
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsBytes

import polars as pl
import pytest
from dccp_packets import (
    CONFIRM_R,
    ELAPSED_TIME,
    LOSS_EVENT_RATE,
    LOSS_INTERVALS,
    NDP_COUNT,
    RECEIVE_RATE,
    TIMESTAMP,
    TIMESTAMP_ECHO,
    Kind,
    Packet,
    handshake,
    option,
)
from ip_packets import ethernet, udp

import tfrctrace
from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"
PUBLIC = Path(os.environ.get("TFRCTRACE_DCCP_CAPTURES", "none"))
"""Where Linux's CCID 3 captures of samueljero/dccp2tcp are, if somebody has them: they are not ours."""

Row = dict[str, Any]


Made = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(load_script: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Give a function that makes the sample as captured at the sender, each only once."""
    script = load_script(SAMPLES / "tfrc_connection.py")
    folder = tmp_path_factory.mktemp("made")

    def make(losses: str) -> Path:
        path: Path = folder / f"{losses}.pcap.gz"
        if not path.exists():
            script.main(["--at", "sender", "--losses", losses, str(path)])
        return path

    return make


@pytest.fixture(scope="module")
def truth() -> Row:
    document: Row = json.loads((SAMPLES / "dccp-ccid3.truth.json").read_text())
    return document


@pytest.fixture(scope="module")
def at_receiver() -> tfrctrace.Trace:
    trace = tfrctrace.open(SAMPLES / "dccp-ccid3.pcap.gz")
    trace.read("flows", "feedback", "loss_events", "loss_intervals", "findings")
    return trace


@pytest.fixture(scope="module")
def at_sender(made: Made) -> tfrctrace.Trace:
    trace = tfrctrace.open(made("loss-intervals"))
    trace.read("flows", "feedback", "loss_events", "findings", "rtt")
    return trace


def test_a_sender_with_endless_data_is_never_data_limited(at_sender: tfrctrace.Trace) -> None:
    limited = at_sender.feedback["data_limited"].drop_nulls()
    assert limited.len() > 200
    assert limited.sum() == 0


def errors(trace: tfrctrace.Trace, truth: Row, ours: str, theirs: str, scale: float = 1) -> list[float]:
    """Return by which share a column differs from what an end computed, at every report."""
    reports = truth["reports"]
    rows = trace.feedback[ours].to_list()
    pairs = zip(rows, reports, strict=True)
    known = [(row, report[theirs] * scale) for row, report in pairs if theirs in report]
    assert all((row == 0) == (expected == 0) for row, expected in known)
    return [abs(row / expected - 1) for row, expected in known if expected]


def test_the_sample_is_what_its_script_makes(load_script: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "sample.pcap.gz"
    load_script(SAMPLES / "tfrc_connection.py").main([str(path)])
    assert path.read_bytes() == (SAMPLES / "dccp-ccid3.pcap.gz").read_bytes()


def test_a_queue_does_not_hide_that_the_capture_is_at_the_sender(at_sender: tfrctrace.Trace) -> None:
    """The shortest acknowledgement is of before there was a queue, the window counter of after."""
    row = at_sender.flows.to_dicts()[0]
    assert row["rtt_p50_ms"] > 3 * row["rtt_min_ms"]
    assert (row["vantage"], row["vantage_confidence"] > 0.9) == ("sender", True)


def test_only_a_capture_where_packets_arrive_shows_what_was_lost(
    at_receiver: tfrctrace.Trace, at_sender: tfrctrace.Trace, truth: Row
) -> None:
    """One connection seen at both ends: what an end sends is null in the capture there."""
    for trace, near, far in ((at_sender, 0, 1), (at_receiver, 1, 0)):
        rows = trace.flows.to_dicts()
        assert (rows[near]["vantage"], rows[far]["vantage"]) == ("sender", "receiver")
        for column in ("received_packets", "lost_packets", "pdr", "plr"):
            assert rows[near][column] is None
            assert rows[far][column] is not None
    assert at_receiver.flows["lost_packets"][0] == truth["packets_lost"]


def test_at_the_receiver_losses_and_rates_are_found_again(at_receiver: tfrctrace.Trace, truth: Row) -> None:
    forward = at_receiver.flows.to_dicts()[0]
    assert (forward["vantage"], forward["ccid"]) == ("receiver", 3)
    assert forward["loss_events"] == truth["loss_events"] == at_receiver.loss_events.height
    assert at_receiver.loss_events["packets"].sum() == truth["packets_lost"]
    assert at_receiver.feedback["p_from"].unique().to_list() == ["packets"]
    p = errors(at_receiver, truth, "p", "p")
    # round-trip times go to the receiver in whole microseconds
    assert statistics.median(p) < 1e-9
    assert max(p) < 0.003
    x_recv = errors(at_receiver, truth, "x_recv_bps", "x_recv", 8)
    assert statistics.median(x_recv) < 1e-9
    # the inverse of p is rounded up to a whole number
    rising = at_receiver.feedback.filter(pl.col("p") > 0)
    product = rising.select((1 / pl.col("p")).ceil() * pl.col("reported_p")).to_series()
    assert (product - 1).abs().median() < 1e-9


def test_the_reported_loss_intervals_stand_beside_the_rebuilt_ones(at_receiver: tfrctrace.Trace) -> None:
    both = at_receiver.loss_intervals.drop_nulls(["packets", "reported_packets"])
    assert both.height > 500
    assert both["packets"].to_list() == both["reported_packets"].to_list()


def test_at_the_sender_its_state_is_found_again(at_sender: tfrctrace.Trace, truth: Row) -> None:
    forward = at_sender.flows.to_dicts()[0]
    assert forward["vantage"] == "sender"
    assert max(errors(at_sender, truth, "rtt_ms", "r_sample_s", 1e3)) < 1e-9
    assert max(errors(at_sender, truth, "r_ms", "r_s", 1e3)) < 1e-9
    for ours, theirs in (("x_bps", "x"), ("x_inst_bps", "x_inst")):
        differences = errors(at_sender, truth, ours, theirs, 8)
        assert statistics.median(differences) < 1e-9
        # whether it had enough to send is guessed, and matters while the receive rate limits it
        assert max(differences) < 0.02
    assert at_sender.feedback["x_recv_bps"].null_count() == at_sender.feedback.height
    found = at_sender.findings["finding"].unique().to_list()
    assert not {"above_allowed_rate", "halving_missed", "late_feedback"}.intersection(found)


@pytest.mark.parametrize(
    ("losses", "by", "packets"), [("loss-intervals", "loss_intervals", 19), ("ack-vectors", "ack_vector", 25)]
)
def test_at_the_sender_losses_are_those_that_reports_name(
    losses: str, by: str, packets: int, truth: Row, made: Made
) -> None:
    trace = tfrctrace.open(made(losses))
    trace.read("flows", "feedback", "loss_events")
    assert trace.flows["loss_events"][0] == trace.loss_events.height == truth["loss_events"]
    # an interval names the first of its lost packets, a vector each
    assert trace.loss_events["packets"].sum() == packets
    rows = trace.feedback.filter(pl.col("p") > 0)
    assert rows["p_from"].unique().to_list() == [by]
    p = errors(trace, truth, "p", "p")
    assert statistics.median(p) < 1e-9
    # the first of eight intervals is made of the receiver's highest rate, which its reports need not name
    later = [report["events"] > 8 for report in truth["reports"] if report["p"]]
    assert max(itertools.compress(p, later)) < 1e-9


def test_at_the_receiver_r_is_what_the_sender_says(at_receiver: tfrctrace.Trace) -> None:
    feedback = at_receiver.feedback
    assert feedback["rtt_method"].unique().to_list() == ["estimate"]
    assert feedback["r_ms"].to_list() == feedback["rtt_ms"].to_list()
    # of the samples that it is made of nothing is known
    assert feedback["x_inst_bps"].null_count() == feedback["r_sqmean"].null_count() == feedback.height


def test_at_the_sender_losses_that_no_report_names_follow_from_receive_rates(truth: Row, made: Made) -> None:
    trace = tfrctrace.open(made("rates"))
    feedback = trace.feedback
    assert feedback["p_from"].drop_nulls().unique().to_list() == ["receive_rate"]
    forward = trace.flows.to_dicts()[0]
    assert forward["loss_events"] == pytest.approx(truth["loss_events"], abs=2)
    known = feedback.filter(pl.col("p").is_not_null())
    assert known.filter((pl.col("p") > 0) != (pl.col("reported_p") > 0)).is_empty()
    ratio = known.filter(pl.col("p") > 0).select(pl.col("p") / pl.col("reported_p")).to_series()
    assert 0.7 < ratio.median() < 1.4


def tshark(path: Path, *fields: str) -> list[list[str]]:
    command = ["tshark", "-r", str(path), "-Y", "dccp.ccid3_loss_event_rate", "-T", "fields"]
    done = subprocess.run(
        [*command, *(f"-e{field}" for field in fields)], capture_output=True, check=True, text=True
    )
    return list(csv.reader(io.StringIO(done.stdout), delimiter="\t"))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize(
    "path",
    [
        SAMPLES / "dccp-ccid3.pcap.gz",
        *(PUBLIC / f"ccid3-{name}.pcap.gz" for name in ("loss", "simple", "multiple_connections")),
    ],
    ids=lambda path: path.name,
)
def test_every_option_of_a_report_is_what_tshark_reads(path: Path) -> None:
    if not path.exists():
        pytest.skip("name the folder of Linux's captures in TFRCTRACE_DCCP_CAPTURES")
    theirs = tshark(
        path,
        "frame.number",
        "dccp.ack_raw",
        "dccp.ccid3_loss_event_rate",
        "dccp.ccid3_receive_rate",
        "dccp.elapsed_time",
    )
    ours = tfrctrace.open(path).feedback.sort("packet").to_dicts()
    assert len(ours) == len(theirs) > 0
    for row, (number, acknowledged, inverse, rate, elapsed) in zip(ours, theirs, strict=True):
        assert (row["packet"], row["sequence"]) == (int(number), int(acknowledged))
        assert row["reported_p"] == (0 if int(inverse) == 0xFFFF_FFFF else 1 / int(inverse))
        assert row["reported_x_recv_bps"] == 8 * int(rate)
        held_ms = row["elapsed_ms"]
        assert held_ms == (pytest.approx(int(elapsed) / 100) if elapsed else None)


@pytest.mark.skipif(not PUBLIC.exists(), reason="name the folder in TFRCTRACE_DCCP_CAPTURES")
def test_linux_is_understood_from_its_own_capture() -> None:
    trace = tfrctrace.open(PUBLIC / "ccid3-loss.pcap.gz", tfrc={"profile": "linux"})
    trace.read("flows", "feedback")
    assert trace.flows["vantage"].to_list() == ["sender", "receiver"]
    feedback = trace.feedback
    assert feedback.height == 188
    ratio = feedback.filter(pl.col("p") > 0).select(pl.col("p") / pl.col("reported_p")).to_series()
    assert ratio.median() == pytest.approx(1, abs=0.05)
    sent = feedback.select(pl.col("sent_bps") / pl.col("x_bps")).to_series()
    assert sent.median() == pytest.approx(1, abs=0.03)


def report(ack: int, *, seq: int = 101, rate: int = 50_000, inverse: int = 100, more: bytes = b"") -> Packet:
    options = option(LOSS_EVENT_RATE, inverse) + option(RECEIVE_RATE, rate) + more
    return Packet(Kind.Ack, back=True, seq=seq, ack=ack, options=options)


def data(seq: int, *, ecn: int = 2, ccval: int | None = None) -> Packet:
    counter = seq // 2 % 16 if ccval is None else ccval
    return Packet(Kind.Data, seq=seq % (1 << 48), ccval=counter, ecn=ecn, payload=bytes(500))


def frames(packets: Iterable[SupportsBytes]) -> list[bytes]:
    return [ethernet(bytes(one)) for one in packets]


@pytest.fixture
def opened(write_capture: Callable[..., Path]) -> Callable[[Iterable[Packet]], tfrctrace.Trace]:
    """Give a function that opens packets 10 ms apart."""

    def opens(packets: Iterable[Packet], **options: Any) -> tfrctrace.Trace:
        trace = tfrctrace.open(write_capture("made.pcap", frames(packets)), **options)
        trace.read("flows", "feedback", "loss_events", "loss_intervals", "findings", "rtt")
        return trace

    return opens


def findings(trace: tfrctrace.Trace) -> list[tuple[str, int]]:
    """Return the findings about packets, each with its packet."""
    rows = trace.findings.filter(~pl.col("finding").is_in(["late_feedback", "nofeedback_timeout"]))
    return list(rows.select("finding", "packet").iter_rows())


def test_a_mark_of_congestion_is_a_loss_event_and_reordering_is_not(opened: Callable[..., Any]) -> None:
    order = [*range(1, 20), 21, 20, *range(22, 60)]
    packets = [data(seq, ecn=3 if seq == 40 else 2) for seq in order]
    trace = opened([*packets, report(59)])
    assert trace.loss_events.select("start_sequence", "packets").rows() == [(40, 1)]
    (row,) = trace.feedback.to_dicts()
    assert 0 < row["p"] < 1
    assert trace.flows["loss_events"].to_list() == [1, None]


@pytest.mark.parametrize(("count", "events"), [(None, 1), (1, 1), (2, 0)])
def test_a_missing_packet_without_data_is_no_loss(
    count: int | None, events: int, opened: Callable[..., Any]
) -> None:
    # 30 and 31 are missing; the next packet says how many before it had no data (RFC 4340 section 7.7.1)
    ndp_option = option(NDP_COUNT, count, bytes_of=1) if count else b""
    after = Packet(Kind.Data, seq=32, ccval=0, payload=bytes(500), options=ndp_option)
    before, behind = map(data, range(1, 30)), map(data, range(33, 60))
    trace = opened([*before, after, *behind, report(59)])
    assert trace.flows["loss_events"].to_list() == [events, None]
    if events:
        assert trace.loss_events["packets"].to_list() == [2 - (count or 0)]
    # what the path lost is another question
    assert trace.flows["lost_packets"][0] == 2


def test_the_window_counter_gives_the_round_trip_time(opened: Callable[..., Any]) -> None:
    # a quarter of a round-trip time each 20 ms
    trace = opened([*(data(seq) for seq in range(2, 80)), report(79)])
    (row,) = trace.feedback.to_dicts()
    assert (row["rtt_method"], row["rtt_ms"]) == ("ccval", pytest.approx(80))


def test_bad_input_is_found_packet_by_packet(opened: Callable[..., Any]) -> None:
    packets = [
        *(data(seq) for seq in range(1, 9)),
        report(8, more=option(ELAPSED_TIME, 4_000_000)),  # 9: held for 40 s
        data(9 + (1 << 47)),  # 10: far away
        data(9),  # 11
        report(9, inverse=0),  # 12: p of infinity
        report(5_000),  # 13: never seen
        data(10, ccval=14),  # 14: ten quarters at once
        report(10, more=bytes([ELAPSED_TIME, 3, 9, 0])),  # 15: a length that cannot be
        report(10, more=bytes([ELAPSED_TIME, 200])),  # 16: a length that lies
        report(10, more=option(40, b"\x10")),  # 17: data dropped by the application
    ]
    trace = opened(packets, vantage="receiver")
    assert findings(trace) == [
        ("impossible_elapsed_time", 9),
        ("sequence_jump", 10),
        ("zero_loss_event_rate", 12),
        ("unseen_acknowledged", 13),
        ("counter_jump", 14),
        ("bad_option", 15),
        ("bad_option", 16),
        ("data_dropped", 17),
    ]
    assert trace.feedback["reported_p"].null_count() == 1
    notes = trace.flows["notes"][0]
    assert "2 reports with options of impossible lengths" in notes
    assert trace.flows["lost_packets"][0] == 0


def test_reports_without_data_rebuild_nothing(opened: Callable[..., Any]) -> None:
    trace = opened([report(100 + n, seq=200 + n) for n in range(5)])
    forward = next(row for row in trace.flows.to_dicts() if row["feedback_packets"])
    assert forward["packets"] == 0
    assert forward["loss_events"] is None
    assert "no data packet of this TFRC flow" in forward["notes"]
    assert trace.feedback["p"].null_count() == trace.feedback["x_recv_bps"].null_count() == 5
    assert trace.feedback["reported_p"].to_list() == [0.01] * 5


def test_data_without_reports_give_losses_and_no_rate(opened: Callable[..., Any]) -> None:
    trace = opened([*handshake(), *(data((1 << 48) - 14 + n) for n in range(40) if n != 20)])
    forward = trace.flows.to_dicts()[0]
    assert "no report about this TFRC flow" in forward["notes"]
    assert (forward["srtt_ms"], forward["feedback_packets"]) == (None, 0)


def test_loss_intervals_alone_give_the_rate(opened: Callable[..., Any]) -> None:
    # an open interval of 50 packets and two of 100: skip, then lossless, lost and data lengths of 24 bits
    rows = [(50, 0, 50), (99, 1, 100), (98, 2, 100)]
    body = b"\0" + b"".join(part.to_bytes(3, "big") for row in rows for part in row)
    only = Packet(Kind.Ack, back=True, seq=7, ack=8, options=option(LOSS_INTERVALS, body))
    trace = opened([*(data(seq) for seq in range(1, 9)), only])
    assert trace.feedback["reported_p"].to_list() == [0.01]
    assert trace.loss_intervals["reported_packets"].to_list() == [50, 100, 100]


def test_a_timestamp_echo_gives_the_round_trip_time(opened: Callable[..., Any]) -> None:
    first = Packet(Kind.Data, seq=1, ccval=1, payload=bytes(500), options=option(TIMESTAMP, 77))
    # 20 ms later, of which the receiver held it for 5; what it acknowledges is not in the capture
    echo = option(TIMESTAMP_ECHO, (77).to_bytes(4, "big") + (500).to_bytes(2, "big"))
    (row,) = opened([first, data(2, ccval=1), report(900, more=echo)], vantage="sender").feedback.to_dicts()
    assert (row["rtt_method"], row["rtt_ms"]) == ("timestamp", pytest.approx(15))


def test_ccid_4_allows_packets_no_closer_than_10_ms(opened: Callable[..., Any]) -> None:
    confirm = Packet(Kind.Ack, back=True, seq=5, ack=1, options=option(CONFIRM_R, b"\x01\x04\x04"))
    packets = [data(1), confirm, *(data(seq) for seq in range(2, 60))]
    dropped = option(LOSS_INTERVALS, b"\0" + bytes([0, 0, 9, 0, 0, 1, 0, 0, 10])) + option(195, b"\0\0\1")
    trace = opened([*packets, report(59, seq=6, rate=10**6, inverse=10_000, more=dropped)], vantage="sender")
    assert trace.flows["ccid"].to_list()[0] == 4
    (row,) = trace.feedback.to_dicts()
    # RFC 5622: at most one packet of 500 bytes each 10 ms, whatever the equation gives
    assert row["x_bps"] == pytest.approx(500 * 8 / 0.01)
    assert trace.loss_intervals.filter(pl.col("interval") == 0)["reported_lost"].to_list() == [1]


def test_dccp_inside_udp_is_the_same_connection(opened: Callable[..., Any]) -> None:
    def wrapped(one: Packet) -> bytes:
        ends = ("192.0.2.1", 6511), ("198.51.100.7", 6511)
        src, dst = reversed(ends) if one.back else ends
        return udp(src, dst, one.datagram(), tos=one.ecn)

    packets = [*handshake(), *(data((1 << 48) - 14 + n) for n in range(12))]
    plain = opened(packets).flows.to_dicts()
    encapsulated = opened(map(wrapped, packets)).flows.to_dicts()
    for one, other in zip(plain, encapsulated, strict=True):
        assert one["wire_bytes"] + 8 * one["packets"] == other["wire_bytes"]
        same = ("transport", "src_port", "ccid", "state", "packets", "payload_bytes", "service_code")
        assert [one[name] for name in same] == [other[name] for name in same]


@pytest.mark.parametrize("value", ["linus", 5348])
def test_a_profile_that_is_none_is_refused(value: str | int) -> None:
    with pytest.raises(UsageError, match="unknown TFRC profile"):
        tfrctrace.open(SAMPLES / "dccp-ccid3.pcap.gz", tfrc={"profile": value})


def test_profiles_differ_where_their_rules_do() -> None:
    def of(profile: str) -> pl.DataFrame:
        return tfrctrace.open(SAMPLES / "dccp-ccid3.pcap.gz", tfrc={"profile": profile}).feedback

    new, old, linux = map(of, ("rfc5348", "rfc3448", "linux"))
    assert new["reported_p"].to_list() == linux["reported_p"].to_list()
    assert not new["p"].equals(linux["p"])
    # the first rate: an initial window, or a packet per second
    assert new["x_bps"][0] > 2 * old["x_bps"][0]
