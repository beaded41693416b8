"""RTP and RTCP are what GStreamer counted of its own session, what tshark reads, and what was built here.

`tests/data/rtp` has a session of GStreamer's rtpbin over a queue that dropped packets, seen at both ends.
GStreamer begins to expect packets one behind the first, so its `packets-lost` is one less than the gaps, and
-1 before the first loss; the queue's own count of drops agrees with the gaps.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rtp_packets import (
    REPORTER,
    SSRC,
    block,
    congestion_report,
    frame,
    media,
    one_byte,
    receiver_report,
    rtcp,
    sender_report,
    tfrc_report,
    transport_wide_report,
)
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

DATA = Path(__file__).resolve().parent.parent.parent / "data"
TRUTH = json.loads((DATA / "rtp" / "truth.json").read_text())
SESSIONS = {"sound": (0, 8_000), "pictures": (26, 90_000)}
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

Row = dict[str, Any]


def session(end: str, **options: Any) -> tfrctrace.Trace:
    return tfrctrace.open(DATA / "rtp" / f"gstreamer-{end}.pcap.gz", **options)


def source(trace: tfrctrace.Trace, payload_type: int) -> Row:
    (row,) = [row for row in trace.rtp_sources.to_dicts() if row["payload_type"] == payload_type]
    return row


def reports(trace: tfrctrace.Trace, kind: str) -> list[Row]:
    return [row for row in trace.feedback.to_dicts() if row["kind"] == kind]


@pytest.mark.parametrize("name", SESSIONS)
def test_a_receiver_counts_as_gstreamer_does(name: str) -> None:
    payload_type, rate = SESSIONS[name]
    (theirs,) = TRUTH["receiver"][name]
    row = source(session("receiver"), payload_type)
    assert (row["ssrc"], row["clock_rate_hz"], row["clock_rate_by"]) == (theirs["ssrc"], rate, "payload_type")
    assert row["received_packets"] == theirs["packets-received"]
    assert row["lost_packets"] == theirs["packets-lost"] + 1
    assert row["sender_packets"] == theirs["sr-packet-count"]
    # GStreamer takes the time in user space, and its jitter without fractions of a tick
    assert row["jitter_ms"] == pytest.approx(theirs["jitter"] / rate * 1e3, rel=0.01)


def test_what_is_lost_is_what_the_queue_dropped() -> None:
    lost = session("receiver").rtp_sources["lost_packets"].sum()
    assert lost == TRUTH["bottleneck"]["drops"]
    at_sender = session("sender").rtp_sources
    assert at_sender["lost_packets"].sum() == 0
    assert at_sender["sent_packets"].to_list() == session("receiver").rtp_sources["sent_packets"].to_list()


@pytest.mark.parametrize("name", SESSIONS)
def test_the_last_report_is_the_one_that_the_sender_has(name: str) -> None:
    (theirs,) = TRUTH["sender"][name]
    trace = session("sender")
    rows = [row for row in reports(trace, "rtcp") if row["ssrc"] == theirs["rb-ssrc"]]
    last = rows[-1]
    assert last["reporter_ssrc"] == theirs["ssrc"]
    assert last["fraction_lost"] * 256 == theirs["rb-fractionlost"]
    assert last["cumulative_lost"] == theirs["rb-packetslost"]
    assert last["sequence"] == theirs["rb-exthighestseq"]
    assert last["jitter_ms"] * SESSIONS[name][1] == pytest.approx(theirs["rb-jitter"] * 1e3)
    assert last["elapsed_ms"] == pytest.approx(theirs["rb-dlsr"] / 65.536)
    # in units of 1/65536 s, and taken in user space
    assert last["rtt_ms"] == pytest.approx(theirs["rb-round-trip"] / 65.536, abs=0.5)
    assert last["rtt_method"] == "rtcp"


def test_losses_behind_the_capture_are_not_taken_for_none() -> None:
    options = {"tfrc": {"rtt": "50ms"}}
    ends = ("sender", "receiver")
    flows = {end: session(end, **options).flows.filter(direction="fwd", transport="rtp") for end in ends}
    sound, pictures = flows["sender"].to_dicts()
    assert sound["loss_events"] is sound["loss_event_rate"] is None
    assert "losses downstream of the capture" in sound["notes"]
    for row in flows["receiver"].to_dicts():
        assert 0 < row["loss_events"] <= row["lost_packets"]
        assert 0 < row["loss_event_rate"] < 1
    # transport-wide feedback names what the queue dropped, also where GStreamer leaves it out of its reports
    at_receiver = flows["receiver"].to_dicts()[1]
    assert pictures["loss_events"] == pytest.approx(at_receiver["loss_events"], abs=2)
    assert pictures["loss_event_rate"] == pytest.approx(at_receiver["loss_event_rate"], rel=0.2)
    assert "losses downstream of the capture are those that receivers name" in pictures["notes"]
    lost = session("sender", **options).loss_events
    assert lost["packets"].sum() == pytest.approx(at_receiver["lost_packets"], abs=2)
    starts = session("receiver", **options).loss_events.filter(flow=at_receiver["flow"])["start_sequence"]
    assert len(set(lost["start_sequence"]) & set(starts)) >= 0.9 * lost.height
    named = [row for row in reports(session("sender", **options), "twcc") if row["p"]]
    assert {row["p_from"] for row in named} == {"twcc"}


@pytest.mark.parametrize("name", SESSIONS)
def test_what_the_capture_cannot_show_is_null_and_the_reports_are_shown(name: str) -> None:
    payload_type, rate = SESSIONS[name]
    (theirs,) = TRUTH["sender"][name]
    trace = session("sender")
    stream = source(trace, payload_type)
    (row,) = trace.flows.filter(flow=stream["flow"], direction=stream["direction"]).to_dicts()
    for column in ("pdr", "plr", "lost_packets", "received_packets", "jitter_ms", "dropped_packets"):
        assert row[column] is None, column
    assert row["sent_packets"] == stream["sent_packets"]
    assert row["reported_lost_packets"] == stream["reported_lost_packets"] == theirs["rb-packetslost"]
    assert row["reported_jitter_ms"] * rate == pytest.approx(theirs["rb-jitter"] * 1e3)
    first = min(int(number) for (number,) in tshark("sender", f"rtp.ssrc == {stream['ssrc']}", "rtp.seq"))
    expected = theirs["rb-exthighestseq"] % 65_536 - first + 1
    assert row["reported_expected_packets"] == expected
    assert row["reported_plr"] == stream["reported_plr"] == theirs["rb-packetslost"] / expected
    measured = {
        metric.name: metric.value
        for metric in trace.measure().metrics
        if tuple(metric.flows) == (row["flow"],)
    }
    assert measured["plr"] is measured["pdr"] is measured["drop_ratio"] is None


def test_a_report_says_what_receivers_report() -> None:
    page = session("sender").report_html()
    assert "Lost on the way" not in page
    assert "No stretch of time stands out" not in page
    assert "RTP lost, as RTCP reports" in page
    assert "Receivers of RTP report losses that the capture does not show" in page
    at_receiver = session("receiver").report_html()
    assert "Lost on the way" in at_receiver
    assert "RTP packets lost before the capture" in at_receiver


@needs_tshark
@pytest.mark.parametrize("name", SESSIONS)
def test_bursts_and_seconds_are_those_of_the_numbers_that_tshark_reads(name: str) -> None:
    payload_type, _ = SESSIONS[name]
    trace = session("receiver")
    row = source(trace, payload_type)
    printed = tshark("receiver", f"rtp.ssrc == {row['ssrc']}", "rtp.seq", "frame.time_epoch")
    numbers = [int(number) for number, _ in printed]
    # GStreamer's numbers do not wrap here, and the queue reorders none
    gaps = [after - before - 1 for before, after in pairwise(numbers) if after - before > 1]
    assert (row["loss_bursts"], row["longest_loss_burst"]) == (len(gaps), max(gaps))
    start = float(printed[0][1])
    lost: dict[int, int] = {}
    for (before, _), (after, time) in pairwise(printed):
        second = int(float(time) - start)
        lost[second] = lost.get(second, 0) + int(after) - int(before) - 1
    rows = trace.rtp_intervals.filter(ssrc=row["ssrc"])
    assert rows["width_ns"].unique().to_list() == [10**9]
    assert {at: count for at, count in enumerate(rows["lost_packets"]) if count} == {
        second: count for second, count in lost.items() if count
    }
    assert rows["received_packets"].sum() == row["received_packets"]
    assert rows["jitter_ms"][-1] == pytest.approx(row["jitter_ms"], abs=1e-3)


def test_a_capture_that_began_in_a_call_compares_with_the_first_report(
    opened: Callable[..., tfrctrace.Trace],
) -> None:
    """At the receiver: 100 packets were lost before it began, and 1 of 40 since."""
    frames = sound(*range(1000, 1020))
    frames.append(frame(sender_report(100.5, 800, packets=1020)))
    frames.append(frame(receiver_report(block(lost=100, highest=1019)), back=True))
    frames += sound(*range(1020, 1030), *range(1031, 1040))
    frames.append(frame(receiver_report(block(lost=101, highest=1039)), back=True))
    row = opened(frames).flows.row(0, named=True)
    assert (row["lost_packets"], row["plr"]) == (1, pytest.approx(1 / 40))
    assert (row["reported_lost_packets"], row["reported_expected_packets"]) == (1, 20)
    assert row["reported_plr"] == 1 / 20


def test_no_encrypted_report_of_webrtc_is_read() -> None:
    """A call of aiortc over a link that lost packets, seen at the caller: RTCP is encrypted (RFC 3711)."""
    truth = json.loads((DATA / "rtp" / "webrtc.json").read_text())
    trace = tfrctrace.open(DATA / "rtp" / "webrtc.pcap.gz")
    sent = {truth[end]["outbound-rtp"]["ssrc"]: truth[end]["outbound-rtp"] for end in ("caller", "callee")}
    rows = {row["ssrc"]: row for row in trace.rtp_sources.to_dicts()}
    assert rows.keys() == sent.keys()
    for ssrc, row in rows.items():
        # the capture lacks those that were lost before it, and what came after the counting
        assert 0.9 * sent[ssrc]["packetsSent"] < row["received_packets"] <= sent[ssrc]["packetsSent"]
        assert row["sender_packets"] is row["reported_lost_packets"] is row["reported_plr"] is None
        assert row["reports"] == 0
    assert trace.feedback.is_empty()
    assert trace.rtt.is_empty()
    forward, back = trace.flows.to_dicts()
    encrypted = [
        int(re.findall(r"(\d+) RTCP datagrams are encrypted", row["notes"])[0]) for row in (forward, back)
    ]
    assert sum(encrypted) == encrypted_reports(DATA / "rtp" / "webrtc.pcap.gz")


def test_a_call_with_encrypted_reports_does_not_seem_to_be_without_losses() -> None:
    """The callee counted losses that nothing in the caller's capture tells."""
    truth = json.loads((DATA / "rtp" / "webrtc.json").read_text())
    assert truth["callee"]["inbound-rtp"]["packetsLost"] > 0
    assert truth["caller"]["inbound-rtp"]["packetsLost"] == 0
    path = DATA / "rtp" / "webrtc.pcap.gz"
    trace = tfrctrace.open(path)
    for row in trace.flows.to_dicts():
        assert row["plr"] is row["pdr"] is row["lost_packets"] is None
        assert "nothing tells where these packets were captured" in row["notes"]
    page = trace.report_html()
    assert "Lost on the way" not in page
    assert "Lost before the capture" in page
    assert "packets sent never arrived" not in page
    # the callee's direction is the larger one
    called, calling = tfrctrace.open(path, vantage="receiver").flows.sort("src", descending=True).to_dicts()
    assert (called["vantage"], called["plr"]) == ("receiver", 0)
    assert (calling["vantage"], calling["plr"], calling["pdr"]) == ("sender", None, None)


def test_encrypted_reports_are_not_taken_for_damaged_ones(opened: Callable[..., tfrctrace.Trace]) -> None:
    """Of 32 encrypted compounds one has bytes like a header where the first length leads (RFC 3711)."""
    source = random.Random(11)
    frames = [frame(media(number, 160 * number)) for number in range(20)]
    for number in range(320):
        plain = sender_report(1e9 + number, 160 * number, packets=number)
        # but for the first eight bytes all is encrypted, and an index and a tag of 80 bits follow
        frames.append(frame(plain[:8] + source.randbytes(len(plain) + 6)))
    (row, _) = opened(frames).flows.to_dicts()
    assert "320 RTCP datagrams are encrypted" in row["notes"]
    assert "impossible lengths" not in row["notes"]


def encrypted_reports(path: Path) -> int:
    """Count datagrams with a packet type of RTCP and the E flag of SRTCP, which GCM puts last (RFC 7714)."""
    count = 0
    for packet in rdpcap(str(path)):
        payload = bytes(packet[UDP].payload)
        count += len(payload) > 22 and payload[0] >> 6 == 2 and 192 <= payload[1] <= 223 and payload[-4] >> 7
    return count


@needs_tshark
def test_transport_wide_reports_read_as_tshark_reads_them() -> None:
    names = ("baseseq", "statuscount", "recv_delta")
    theirs = tshark(
        "sender",
        "rtcp.rtpfb.fmt == 15",
        "frame.number",
        *(f"rtcp.rtpfb.transportcc.{name}" for name in names),
    )
    ours = reports(session("sender"), "twcc")
    assert len(ours) == len(theirs) > 150
    for row, (packet, base, count, deltas) in zip(ours, theirs, strict=True):
        came = deltas.count(",") + 1
        assert (row["packet"], row["fraction_lost"]) == (int(packet), 1 - came / int(count))
        # GStreamer's last one came
        assert row["sequence"] == int(base) + int(count) - 1


def test_no_loss_event_without_the_whole_paths_round_trip_time() -> None:
    trace = session("receiver")
    row = trace.flows.row(0, named=True)
    # from here to the receiver and back it is no time at all
    assert row["rtt_mean_ms"] < 1
    assert row["loss_events"] is row["loss_event_rate"] is None
    assert "round-trip time of the whole path unknown" in row["notes"]
    assert trace.loss_events.is_empty()


def tshark(end: str, filter: str, *fields: str) -> list[list[str]]:
    ports = [f"-dudp.port=={port},rtp" for port in (5004, 5010)]
    chosen = ["-Y", filter, "-T", "fields", *(f"-e{field}" for field in fields)]
    path = DATA / "rtp" / f"gstreamer-{end}.pcap.gz"
    done = subprocess.run(["tshark", "-r", path, *ports, *chosen], capture_output=True, check=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@needs_tshark
def test_reports_read_as_tshark_reads_them() -> None:
    fields = ("frame.number", "rtcp.ssrc.identifier", "rtcp.ssrc.fraction", "rtcp.ssrc.cum_nr",
              "rtcp.ssrc.ext_high", "rtcp.ssrc.jitter")  # fmt: skip
    theirs = tshark("receiver", "rtcp.ssrc.fraction", *fields)
    ours = reports(session("receiver"), "rtcp")
    assert len(ours) == len(theirs) > 0
    for row, (packet, ssrc, fraction, lost, highest, jitter) in zip(ours, theirs, strict=True):
        # behind it stand those of the description
        assert (row["packet"], row["ssrc"]) == (int(packet), int(ssrc.split(",")[0], 16))
        assert row["fraction_lost"] * 256 == int(fraction)
        # tshark has no sign here
        assert row["cumulative_lost"] % (1 << 24) == int(lost) % (1 << 24)
        assert row["sequence"] == int(highest)
        rate = 8_000 if row["flow"] == ours[0]["flow"] else 90_000
        assert row["jitter_ms"] * rate == pytest.approx(int(jitter) * 1e3)


@needs_tshark
def test_streams_are_those_that_tshark_finds() -> None:
    path = DATA / "rtp" / "gstreamer-receiver.pcap.gz"
    ports = [f"-dudp.port=={port},rtp" for port in (5004, 5010)]
    command = ["tshark", "-r", path, *ports, "-q", "-z", "rtp,streams"]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    theirs = {}
    for line in printed.splitlines():
        words = line.split()
        if len(words) > 10 and words[6].startswith("0x"):
            theirs[int(words[6], 16)] = (int(words[8]), int(words[9]))
    rows = session("receiver").rtp_sources.to_dicts()
    assert {row["ssrc"]: (row["received_packets"], row["lost_packets"]) for row in rows} == theirs


@needs_tshark
def test_transport_wide_reports_give_the_receive_rate() -> None:
    trace = session("receiver")
    rows = reports(trace, "twcc")
    theirs = tshark("receiver", "rtcp.rtpfb.fmt == 15", "frame.number")
    assert [row["packet"] for row in rows] == [int(number) for (number,) in theirs]
    known = [row for row in rows if row["x_recv_bps"] is not None]
    assert len(known) > 150
    # the bottleneck lets 250 kbit/s of frames pass, and a burst of 3 kB at once
    pictures = source(trace, 26)
    mean = pictures["payload_bytes"] * 8e9 / (pictures["end_ns"] - pictures["start_ns"])
    found = sum(row["x_recv_bps"] for row in known) / len(known)
    assert found == pytest.approx(mean, rel=0.2)


# What follows is built here, with frames 10 ms apart.


def sound(*numbers: int, **options: Any) -> list[bytes]:
    return [frame(media(number, number * 80, **options)) for number in numbers]


@pytest.fixture
def opened(write_capture: Callable[..., Path]) -> Callable[..., tfrctrace.Trace]:
    def opened(frames: list[bytes], **options: Any) -> tfrctrace.Trace:
        return tfrctrace.open(write_capture("built.pcap", frames), **options)

    return opened


def test_losses_duplicates_and_late_packets_across_the_wrap(opened: Callable[..., tfrctrace.Trace]) -> None:
    numbers = [*range(65_530, 65_540), 65_541, 65_540, 65_541, *range(65_544, 65_560)]
    trace = opened(sound(*numbers))
    row = source(trace, 0)
    assert (row["sent_packets"], row["received_packets"], row["lost_packets"]) == (30, 28, 2)
    assert (row["duplicate_packets"], row["reordered_packets"], row["restarts"]) == (1, 1, 0)
    flow = trace.flows.row(0, named=True)
    assert (flow["transport"], flow["sent_packets"], flow["lost_packets"]) == ("rtp", 30, 2)
    assert "RTP's sequence numbers" in flow["notes"]


def test_a_clock_that_nothing_names_is_measured_or_given(opened: Callable[..., tfrctrace.Trace]) -> None:
    frames = sound(*range(60), payload_type=96)
    trace = opened(frames)
    assert source(trace, 96)["clock_rate_hz"] is source(trace, 96)["jitter_ms"] is None
    assert "no jitter: rate of the media clock unknown" in trace.flows["notes"][0]
    given = source(opened(frames, dissect=["udp:5004=rtp/8000"]), 96)
    assert (given["clock_rate_hz"], given["clock_rate_by"], given["jitter_ms"]) == (8_000, "user", 0.0)
    longer = source(opened(sound(*range(300), payload_type=96)), 96)
    assert (longer["clock_rate_hz"], longer["clock_rate_by"]) == (8_000, "arrivals")
    assert longer["jitter_ms"] == pytest.approx(0, abs=1e-6)


def test_a_report_on_other_ports_finds_its_media_and_gives_its_rtt(
    opened: Callable[..., tfrctrace.Trace],
) -> None:
    frames = sound(*range(10))
    frames.append(frame(sender_report(100.5, 800, packets=10), ports=1))
    frames += sound(*range(10, 20))
    reported = block(fraction=64, lost=-3, highest=19, jitter=16, lsr=100 << 16 | 0x8000, dlsr=65_536 // 20)
    frames.append(frame(receiver_report(reported), back=True, ports=1))
    trace = opened(frames)
    assert trace.flows["transport"].to_list() == ["rtp", "rtp", "rtcp", "rtcp"]
    (row,) = trace.feedback.to_dicts()
    assert (row["flow"], row["direction"], row["kind"]) == (1, "fwd", "rtcp")
    assert (row["ssrc"], row["reporter_ssrc"]) == (SSRC, REPORTER)
    assert (row["fraction_lost"], row["cumulative_lost"], row["jitter_ms"]) == (0.25, -3, 2.0)
    # eleven frames later, and held for 50 ms in units of 1/65536 s
    assert row["rtt_ms"] == pytest.approx(60, abs=0.02)
    assert trace.rtt["method"].to_list() == ["report"]
    assert source(trace, 0)["sender_packets"] == 10


def test_echoes_of_both_sides_are_the_whole_path(opened: Callable[..., tfrctrace.Trace]) -> None:
    def both(number: int) -> list[bytes]:
        return [*sound(number), frame(media(number, number * 160, ssrc=REPORTER), back=True)]

    def late(ntp: int) -> int:
        return ntp << 16

    frames = [one for number in range(8) for one in both(number)]
    frames.append(frame(sender_report(1, 0)))
    frames.append(frame(sender_report(2, 0, block(lsr=late(1)), ssrc=REPORTER), back=True))
    frames.append(frame(sender_report(3, 0, block(ssrc=REPORTER, lsr=late(2)))))
    frames += [one for number in (*range(8, 20), *range(22, 60)) for one in both(number)]
    trace = opened(frames)
    forward, back = trace.flows.to_dicts()
    assert (forward["rtt_mean_ms"], back["rtt_mean_ms"]) == (10, 10)
    assert (forward["loss_events"], back["loss_events"]) == (1, 1)
    # two in a row, the second 20 ms behind the first: with a round-trip time of 20 ms one event
    assert trace.loss_events["packets"].to_list() == [2, 2]


def test_a_round_trip_time_that_is_given_makes_loss_events(opened: Callable[..., tfrctrace.Trace]) -> None:
    lost = {30, 32, 33, 60, 90}
    frames = sound(*(number for number in range(120) if number not in lost))
    trace = opened(frames, tfrc={"rtt": "55ms"})
    assert trace.loss_events["start_sequence"].to_list() == [30, 60, 90]
    assert trace.loss_events["packets"].to_list() == [3, 1, 1]
    row = trace.flows.row(0, named=True)
    last = trace.loss_intervals.filter(packet=trace.loss_intervals["packet"].max())
    assert last["packets"].to_list()[1:3] == [30.0, 30.0]
    assert row["loss_events"] == 3
    # six packets in the last round-trip time
    assert row["x_recv_bps"] == pytest.approx(6 * 172 * 8 / 0.055)


def test_reports_on_each_packet_give_rate_and_rtt(opened: Callable[..., tfrctrace.Trace]) -> None:
    frames = sound(*range(10))
    ages = [0.090 - 0.01 * number if number != 4 else None for number in range(10)]
    frames.append(frame(congestion_report(1000.0, 0, ages), back=True))
    frames += sound(*range(10, 20))
    frames.append(frame(congestion_report(1000.11, 10, [0.09 - 0.01 * at for at in range(10)]), back=True))
    frames += sound(*range(20, 30))
    frames.append(frame(congestion_report(1000.22, 20, [0.09 - 0.01 * at for at in range(10)]), back=True))
    first, second, third = reports(opened(frames), "rfc8888")
    assert (first["fraction_lost"], second["fraction_lost"]) == (0.1, 0.0)
    # what came before the first report was not remembered
    assert first["x_recv_bps"] is first["rtt_ms"] is None
    assert second["x_recv_bps"] == third["x_recv_bps"] == pytest.approx(10 * 172 * 8 / 0.11, rel=0.01)
    # sent 10 ms before, and just arrived
    assert third["rtt_ms"] == pytest.approx(10, abs=0.01)
    assert (third["rtt_method"], third["sequence"]) == ("arrival_offset", 29)


def test_losses_that_a_report_names_are_loss_events_behind_the_capture(
    opened: Callable[..., tfrctrace.Trace],
) -> None:
    frames, lost = sound(*range(10)), {24, 25, 52, 77}
    for first in range(0, 90, 10):
        came = [None if number in lost else 0.01 for number in range(first, first + 10)]
        frames += [frame(congestion_report(1000 + first / 100, first, came), back=True)]
        frames += sound(*range(first + 10, first + 20))
    trace = opened(frames, tfrc={"rtt": "50ms"})
    assert trace.loss_events.select("start_sequence", "packets").rows() == [(24, 2), (52, 1), (77, 1)]
    forward = trace.flows.row(0, named=True)
    assert (forward["loss_events"], forward["lost_packets"]) == (3, None)
    last = reports(trace, "rfc8888")[-1]
    assert (last["p_from"], last["p"]) == ("rfc8888", forward["loss_event_rate"])
    # up to the packet that the last report names; then the two closed ones
    intervals = trace.loss_intervals.filter(packet=last["packet"])["packets"].to_list()
    assert intervals[:3] == [89 - 77 + 1, 77 - 52, 52 - 24]


def test_transport_wide_numbers_are_found_in_the_extension(opened: Callable[..., tfrctrace.Trace]) -> None:
    def numbered(number: int) -> bytes:
        wide = (number + 65_530) % 65_536
        extension = one_byte(_2=b"me", _5=wide.to_bytes(2, "big"))
        return frame(media(number, number * 80, extension=extension))

    frames = [numbered(number) for number in range(10)]
    # each 10 ms is 40 units
    frames.append(frame(transport_wide_report(7, 65_530, 100, [40] * 10), back=True))
    frames += [numbered(number) for number in range(10, 20)]
    deltas = [40, 40, None, 80, 40, 40, 40, 40, 40, 40]
    frames.append(frame(transport_wide_report(9, 4, 101, [184, *deltas[1:]]), back=True))
    trace = opened(frames)
    first, second = reports(trace, "twcc")
    assert (first["fraction_lost"], first["sequence"], first["x_recv_bps"]) == (0.0, 3, None)
    assert (second["fraction_lost"], second["sequence"]) == (0.1, 13)
    size = 172 + 4 + 8
    elapsed = (256 + 184 + 360 - 400) / 4000
    assert second["x_recv_bps"] == pytest.approx(9 * size * 8 / elapsed)
    assert "1 transport-wide report is missing" in trace.flows["notes"][0]


@pytest.mark.parametrize("per_ms", [1, 1000])
def test_tfrc_over_rtp_in_both_units(opened: Callable[..., tfrctrace.Trace], per_ms: int) -> None:
    def sent(number: int, at_ms: int, rtt_ms: int) -> bytes:
        times = (rtt_ms * per_ms).to_bytes(3, "big") + ((at_ms + 5) * per_ms).to_bytes(4, "big")
        return frame(media(number, number * 80, extension=one_byte(_4=times)))

    frames, number = [], 0
    for report in range(12):
        for _ in range(9):
            # of fifty packets the one in the middle is missing
            number += 2 if number % 50 == 25 else 1
            frames.append(sent(number, 10 * len(frames), 40 if report else 0))
        # the last packet came 30 ms before, and was held for 5 ms
        echo = 10 * (len(frames) - 1) + 5
        frames += [frame(b"\0" * 4, back=True)] * 2
        frames.append(frame(tfrc_report(echo * per_ms, 5 * per_ms, 14_000, 0.01), back=True))
    trace = opened(frames)
    forward = trace.flows.row(0, named=True)
    assert (forward["transport"], forward["feedback_packets"]) == ("rtp", 12)
    assert forward["loss_event_rate"] == pytest.approx(0.01, abs=1e-6)
    assert (forward["x_recv_bps"], forward["loss_events"]) == (14_000 * 8, 2)
    rows = reports(trace, "tfrc")
    # from here to the receiver and back it takes 25 ms, of the 40 that the sender measures
    assert trace.rtt["rtt_ns"].to_list() == pytest.approx([25e6] * 12)
    assert [row["rtt_method"] for row in rows] == ["timestamp", *["estimate"] * 11]
    assert [row["rtt_ms"] for row in rows] == pytest.approx([25.0, *[40.0] * 11])
    assert [row["elapsed_ms"] for row in rows] == pytest.approx([5.0] * 12)
    assert rows[-1]["r_ms"] == pytest.approx(40.0)
    assert rows[-1]["reported_x_recv_bps"] == 14_000 * 8
    assert rows[-1]["p"] > 0


def test_reports_without_media_are_rows_all_the_same(opened: Callable[..., tfrctrace.Trace]) -> None:
    frames = [frame(receiver_report(block(lost=number, highest=100 + number))) for number in range(3)]
    trace = opened(frames)
    assert trace.flows["transport"].to_list() == ["rtcp", "rtcp"]
    assert trace.feedback["cumulative_lost"].to_list() == [0, 1, 2]
    assert trace.feedback["direction"].to_list() == ["rev"] * 3
    assert trace.feedback["x_recv_bps"].to_list() == [None] * 3
    assert "3 reports on RTP sources that the capture does not show" in trace.flows["notes"][0]


def test_what_lies_is_counted_and_not_believed(opened: Callable[..., tfrctrace.Trace]) -> None:
    whole = receiver_report(block(lsr=1 << 16, dlsr=1 << 31))
    frames = [
        *sound(*range(10)),
        frame(sender_report(1, 0)),
        frame(whole, back=True),
        frame(whole[:-4], back=True),
        frame(bytes([0x9F]) + whole[1:], back=True),
        frame(rtcp(207, 0, bytes(4) + b"\x04\x00\x00\x09"), back=True),
        frame(tfrc_report(1, 2, 3, 0.5), back=True),
        *sound(40_000, 12, 13),
        *sound(*range(3), ssrc=99),
    ]
    trace = opened(frames)
    forward, back = trace.flows.to_dicts()
    assert "3 RTCP packets or blocks with impossible lengths" in back["notes"]
    assert "1 report with an impossible delay" in back["notes"]
    assert "1 TFRC report echoes a send time of no recent packet" in forward["notes"]
    assert (forward["sent_packets"], forward["received_packets"]) == (14, 12)
    assert forward["rtt_samples"] is None
    assert trace.rtp_sources.height == 1


@pytest.mark.filterwarnings("ignore::tfrctrace.base.errors.TfrctraceWarning")
def test_no_other_protocol_is_taken_for_rtp() -> None:
    for path in sorted((DATA / "captures").glob("*.pcap*")):
        if "empty" not in path.name and "zero-bytes" not in path.name:
            transports = set(tfrctrace.open(path).flows["transport"])
            assert not transports & {"rtp", "rtcp"}, path.name


def test_commands_show_it(run: Callable[..., Any]) -> None:
    path = DATA / "rtp" / "gstreamer-receiver.pcap.gz"
    assert "rtp" in run("flows", path).out
    assert run("convert", path, "-w", "rtp_sources", "-o", "sources.csv").status == 0
    wrong = run("flows", "--dissect", "udp:5004=rtp/fast", path)
    assert (wrong.status, "unknown layout `rtp/fast`" in wrong.err) == (2, True)
    assert run("flows", "--tfrc", "rtt=soon", path).status == 2


def test_the_frame_of_sources_has_the_columns_of_the_schema() -> None:
    from tfrctrace.parsers.schema import polars_schema

    frame: pl.DataFrame = session("sender").rtp_sources
    assert dict(frame.schema) == polars_schema("rtp_sources")
