"""Reports that another implementation wrote, pion's, and what tshark reads in them.

`tests/data/rtcp/make.go` says what happened: of each ten slots of 10 ms nine have a packet and the last a
report; a packet takes 30 ms to the receiver and a report 20 ms back. The capture is the sender's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from rtp_packets import REPORTER, SSRC, frame, media, one_byte

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable

PION: dict[str, Any] = json.loads((Path(__file__).parent.parent.parent / "data/rtcp/pion.json").read_text())
FIRST: int = PION["first"]
RTT_S = 0.05

Row = dict[str, Any]


def session(kind: str) -> list[bytes]:
    """Return the frames of the session with the reports of `kind`, one in each slot."""
    by_slot = {report["slot"]: bytes.fromhex(report["hex"]) for report in PION[kind]}
    frames: list[bytes] = []
    number = FIRST
    while len(frames) <= max(by_slot):
        if report := by_slot.get(len(frames)):
            frames.append(frame(report, back=True))
            continue
        wide = one_byte(_5=(number % 65_536).to_bytes(2, "big"))
        frames.append(frame(media(number, number * 80, extension=wide)))
        number += 1
    return frames


@pytest.fixture
def opened(write_capture: Callable[..., Path]) -> Callable[[str], tfrctrace.Trace]:
    def opens(kind: str) -> tfrctrace.Trace:
        path = write_capture(f"{kind}.pcap", session(kind))
        trace = tfrctrace.open(path, tfrc={"rtt": f"{RTT_S * 1e3}ms"})
        trace.read("flows", "feedback", "loss_events", "rtt")
        return trace

    return opens


@pytest.mark.parametrize("kind", ["rfc8888", "twcc"])
def test_a_report_on_each_packet_says_what_pion_put_into_it(
    kind: str, opened: Callable[[str], tfrctrace.Trace]
) -> None:
    rows = opened(kind).feedback.filter(kind=kind).to_dicts()
    assert len(rows) == len(PION[kind]) > 20
    for row, theirs in zip(rows, PION[kind], strict=True):
        assert row["packet"] == theirs["slot"] + 1
        assert (row["ssrc"], row["reporter_ssrc"]) == (SSRC, REPORTER)
        assert row["fraction_lost"] == (theirs["told"] - theirs["received"]) / theirs["told"]
        assert row["sequence"] == theirs["highest"]


def test_arrival_offsets_give_the_round_trip_time(opened: Callable[[str], tfrctrace.Trace]) -> None:
    rtt_ms = opened("rfc8888").feedback["rtt_ms"].drop_nulls()
    assert rtt_ms.len() > 20
    # offsets are in units of 1/1024 s
    assert (rtt_ms - RTT_S * 1e3).abs().max() < 1000 / 1024


@pytest.mark.parametrize(("kind", "marked"), [("rfc8888", PION["marked"]), ("twcc", [])])
def test_what_did_not_come_or_was_marked_is_a_loss_event(
    kind: str, marked: list[int], opened: Callable[[str], tfrctrace.Trace]
) -> None:
    trace = opened(kind)
    # 80 and 81 are within one round-trip time; transport-wide reports have no marks
    starts = sorted({80, 150, 233, *marked})
    events = trace.loss_events.sort("start_sequence")
    assert [start - FIRST for start in events["start_sequence"]] == starts
    assert dict(zip(starts, events["packets"], strict=True))[80] == 2
    assert trace.flows["loss_events"][0] == len(starts)
    assert trace.feedback["p_from"].drop_nulls().unique().to_list() == [kind]


def test_marks_are_in_the_report_that_lists_them(opened: Callable[[str], tfrctrace.Trace]) -> None:
    reports = opened("rfc8888").feedback
    (marked,) = PION["marked"]
    marks = reports.filter(pl.col("ce_packets").is_not_null())["ce_packets"].to_list()
    # from the first report behind a packet on, pion lists it in each
    assert marks == [int((row["highest"] - FIRST) % 65_536 >= marked) for row in PION["rfc8888"]]
    assert sum(marks) == 8
    assert reports["ect1_packets"].sum() == 0
    assert opened("twcc").feedback["ce_packets"].null_count() == len(PION["twcc"])


def test_the_receive_rate_is_that_of_what_came(opened: Callable[[str], tfrctrace.Trace]) -> None:
    size = 12 + 4 + 4 + 160
    for kind in ("rfc8888", "twcc"):
        rates = opened(kind).feedback.filter(kind=kind)["x_recv_bps"].drop_nulls()
        # nine packets in 100 ms; arrival offsets are in units of 1/1024 s
        assert rates.median() == pytest.approx(9 * size * 8 / 0.1, rel=0.03)


def extended(name: str) -> bytes:
    return bytes.fromhex(PION["extended"][name])


@pytest.fixture
def with_extended(write_capture: Callable[..., Path]) -> Path:
    """Return a capture of media, each extended report, and an echo 60 ms behind the time that it echoes."""
    frames = [frame(media(number, number * 80)) for number in range(20)]
    frames += [frame(extended(name), back=True) for name in ("losses", "summary", "voice", "time")]
    frames += [frame(media(number, number * 80)) for number in range(20, 25)]
    frames.append(frame(extended("echo")))
    return write_capture("extended.pcap", frames)


def test_extended_reports_say_what_pion_put_into_them(with_extended: Path) -> None:
    trace = tfrctrace.open(with_extended)
    trace.read("feedback", "rtt")
    losses, summary, voice = trace.feedback.filter(kind="rtcp_xr").sort("packet").to_dicts()
    assert losses["fraction_lost"] == 3 / 40
    assert (summary["cumulative_lost"], summary["jitter_ms"]) == (7, 16 / 8)
    assert (voice["fraction_lost"], voice["rtt_ms"], voice["rtt_method"]) == (32 / 256, 140, "reported")
    # sent 60 ms before, of which the other side held it for 50
    echoed = trace.rtt.sort("packet")["rtt_ns"][-1] / 1e6
    assert echoed == pytest.approx(10, abs=1000 / 65_536)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_extended_and_transport_wide_reports_read_as_tshark_reads_them(
    with_extended: Path, write_capture: Callable[..., Path]
) -> None:
    def fields(path: Path, filter: str, *names: str) -> list[list[str]]:
        command = ["tshark", "-r", path, "-dudp.port==5004,rtp", "-Y", filter, "-T", "fields"]
        done = subprocess.run(
            [*command, *(f"-e{name}" for name in names)], capture_output=True, check=True, text=True
        )
        return [line.split("\t") for line in done.stdout.splitlines()]

    rows = tfrctrace.open(with_extended).feedback.filter(kind="rtcp_xr").sort("packet").to_dicts()
    (lost, jitter), (rate, delay) = (
        fields(with_extended, "rtcp.xr.bt == 6", "rtcp.xr.stats.lost", "rtcp.xr.stats.meanjitter")[0],
        fields(with_extended, "rtcp.xr.bt == 7", "rtcp.ssrc.fraction", "rtcp.xr.voipmetrics.rtdelay")[0],
    )
    assert (rows[1]["cumulative_lost"], rows[1]["jitter_ms"] * 8) == (int(lost), int(jitter))
    assert (rows[2]["fraction_lost"] * 256, rows[2]["rtt_ms"]) == (int(rate), int(delay))
    ((first, end),) = fields(with_extended, "rtcp.xr.bt == 1", "rtcp.xr.beginseq", "rtcp.xr.endseq")
    assert rows[0]["fraction_lost"] * (int(end) - int(first)) == 3

    path = write_capture("twcc.pcap", session("twcc"))
    names = ("frame.number", "rtcp.rtpfb.transportcc.baseseq", "rtcp.rtpfb.transportcc.statuscount")
    theirs = fields(path, "rtcp.rtpfb.fmt == 15", *names)
    ours = tfrctrace.open(path).feedback.filter(pl.col("kind") == "twcc").to_dicts()
    for row, (packet, base, count) in zip(ours, theirs, strict=True):
        assert (row["packet"], row["sequence"]) == (int(packet), (int(base) + int(count) - 1) % 65_536)
