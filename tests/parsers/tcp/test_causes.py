"""The table of causes, against what the sending kernels knew of the same connections."""

from __future__ import annotations

import functools
import gzip
import struct
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from corpus_case import CorpusCase

import tfrctrace

ROOT = Path(__file__).resolve().parents[3]
RUNS = ROOT / "tests" / "data" / "causes"
CAPTURES = ROOT / "tests" / "data" / "captures"
LARGEST = {
    "0000-bottleneck-reno": {"bottleneck"},
    "0002-receiver-vegas": {"receiver"},
    "0004-send_buffer-westwood": {"send_buffer"},
    "0006-interactive-illinois": {"application"},
    "0007-paced-htcp": {"application"},
    # in simulated time the handshake at the sender takes none
    "0007-paced-htcp-simulated": {"application"},
    "0009-server-nv": {"application", "server"},
    "0010-policer-yeah": {"policer"},
    # each acknowledgement lets the next write pass the capture in the middle
    "0024-paced-cdg": {"application"},
}
"""What each run was set up to be limited by."""
HELD_BACK = {
    # writes of 14,000 bytes every 13 ms, and of 15,000 every 43 ms
    "writes-in-step": ("application", "send_buffer"),
    "writes-far-away": (None, "slow_start"),
    # SO_MAX_PACING_RATE of 100 kB/s, with more to send at all times (tcpi_notsent_bytes)
    "slow-pace": (None, "application"),
    # tcpi_rwnd_limited is 12.01 s of 12.11 s, tcpi_sndbuf_limited 0
    "window-of-parts": ("receiver", "application"),
    # tcpi_sndbuf_limited is 0
    "bbr-superpackets": ("bottleneck", "send_buffer"),
}
"""What set-ups that look like something else are held back by, if that shows, and what they look like."""
OF_SUMS = ("flow", "direction", "cause", "sign", "second_cause")


def causes(capture):
    trace = tfrctrace.open(capture)
    return trace.flows, trace.causes


def seconds_by_cause(run, scenario, vantage="sender"):
    flows, rows = causes(RUNS / run / f"{vantage}.pcap.gz")
    sent = flows.filter(pl.col("src_port") == scenario.sender.port).select("flow", "direction")
    rows = rows.join(sent, on=["flow", "direction"], how="semi")
    sums = rows.group_by("cause").agg((pl.col("end_ns") - pl.col("start_ns")).sum() / 1e9)
    return dict(sums.iter_rows())


@pytest.mark.parametrize("name", HELD_BACK)
def test_what_looks_like_another_cause_is_not_told_as_that(name):
    cause, looks_like = HELD_BACK[name]
    flows = tfrctrace.open(ROOT / "tests" / "data" / "held_back" / f"{name}.pcap.xz").why()
    flow = max(flows, key=lambda one: one.payload_bytes or 0)
    assert flow.main_cause == (cause or "unknown")
    assert getattr(flow, f"{looks_like}_share") < 0.1


@pytest.mark.parametrize("run", sorted(path.name for path in RUNS.iterdir()))
def test_time_limited_by_receiver_buffer_and_application_is_that_of_the_kernel(run, truth):
    scenario, known = truth.read(RUNS / run)
    found = seconds_by_cause(run, scenario)
    application_s = found.get("application", 0) + found.get("server", 0)
    # a twentieth: the kernel's sums have steps of 10 ms at each of many changes
    near = {"abs": 0.05 * known.life_s}
    assert application_s == pytest.approx(known.application_s, **near)
    assert found.get("receiver", 0) == pytest.approx(known.receiver_s, **near)
    assert found.get("send_buffer", 0) == pytest.approx(known.send_buffer_s, **near)


@pytest.mark.parametrize("run", LARGEST)
def test_the_largest_cause_is_what_limited_the_run(run, truth):
    scenario, _ = truth.read(RUNS / run)
    found = seconds_by_cause(run, scenario)
    assert max(found, key=found.__getitem__) in LARGEST[run]


@pytest.mark.parametrize("capture", sorted(RUNS.glob("*/sender.pcap.gz")), ids=lambda path: path.parent.name)
def test_rows_cover_the_life_of_a_flow_without_gap_or_overlap(capture):
    flows, rows = causes(capture)
    for (flow, direction), stretches in rows.group_by("flow", "direction", maintain_order=True):
        ends = flows.filter(pl.col("flow") == flow)
        assert stretches["start_ns"][0] == ends["start_ns"].min()
        assert stretches["end_ns"][-1] == ends["end_ns"].max()
        for before, after in pairwise(stretches.iter_rows(named=True)):
            assert before["start_ns"] < before["end_ns"] == after["start_ns"]
        sent = ends.filter(pl.col("direction") == direction)
        assert sent["payload_bytes"].item() > 0


@pytest.mark.parametrize(
    "capture",
    [*sorted(RUNS.glob("*/*.pcap.gz")), ROOT / "sample_traces" / "mixed.pcap.zst"],
    ids=lambda path: f"{path.parent.name} {path.name}",
)
def test_sums_are_those_of_the_stretches(capture):
    trace = tfrctrace.open(capture)
    length = (pl.col("end_ns") - pl.col("start_ns")).cast(pl.UInt64)
    sums = trace.causes.group_by(*OF_SUMS, maintain_order=True).agg(
        pl.col("start_ns").min(),
        length.sum().alias("duration_ns"),
        length.max().alias("longest_ns"),
        pl.len().alias("stretches"),
        pl.col("flight_bytes", "window_bytes").max(),
        pl.col("base_rtt_ms").min(),
    )
    assert sums.height > 0
    assert trace.cause_sums.equals(sums)


def without_handshake_and_timestamps(capture, folder):
    """Write a capture again without its SYNs, and with padding in place of TCP timestamps."""
    content = gzip.decompress(capture.read_bytes())
    kept, at = bytearray(content[:24]), 24
    while at < len(content):
        (captured,) = struct.unpack_from("<I", content, at + 8)
        record = bytearray(content[at : at + 16 + captured])
        at += len(record)
        tcp = 16 + 14 + 4 * (record[16 + 14] & 15)
        options = record[tcp + 20 : tcp + 4 * (record[tcp + 12] >> 4)]
        if not record[tcp + 13] & 2:
            record[tcp + 20 : tcp + 20 + len(options)] = options.replace(b"\x08\x0a", b"\xfe\x0a")
            kept += record
    path = folder / "bare.pcap"
    path.write_bytes(kept)
    return path


AWAY = sorted(
    (path.parent.name, path.name.removesuffix(".pcap.gz"))
    for vantage in ("middle", "receiver")
    for path in RUNS.glob(f"*/{vantage}.pcap.gz")
)


@pytest.mark.parametrize(("run", "vantage"), AWAY)
def test_away_from_the_sender_causes_are_those_of_the_kernel(run, vantage, truth):
    scenario, known = truth.read(RUNS / run)
    found = seconds_by_cause(run, scenario, vantage)
    assert max(found, key=found.__getitem__) in LARGEST[run]
    # a tenth: how long an acknowledgement took to the sender is not known
    near = {"abs": 0.1 * known.life_s}
    assert found.get("application", 0) + found.get("server", 0) == pytest.approx(known.application_s, **near)
    assert found.get("receiver", 0) == pytest.approx(known.receiver_s, **near)


@pytest.mark.parametrize(("run", "vantage"), AWAY)
def test_away_from_the_sender_round_trip_times_are_those_of_the_whole_path(run, vantage, truth):
    scenario, known = truth.read(RUNS / run)
    flows, rows = causes(RUNS / run / f"{vantage}.pcap.gz")
    sent = flows.filter(pl.col("src_port") == scenario.sender.port).select("flow", "direction")
    rows = rows.join(sent, on=["flow", "direction"], how="semi")
    assert rows["base_rtt_ms"].unique().item() == pytest.approx(known.min_rtt_ms, rel=0.1)
    assert rows["flight_error_bytes"].null_count() == 0


def test_far_from_the_sender_without_handshake_and_timestamps_the_cause_is_unknown(tmp_path):
    _, rows = causes(without_handshake_and_timestamps(CAPTURES / "linux-one-cubic-rcv.pcap.gz", tmp_path))
    data = rows.filter(pl.col("direction") == "fwd")
    assert set(data["cause"]) <= {"handshake", "unknown"}
    assert set(data.filter(pl.col("cause") == "unknown")["sign"]) == {"away_from_sender"}
    assert data["rtt_ms"].null_count() == data["flight_error_bytes"].null_count() == len(data)


def test_while_timers_expire_and_nothing_is_heard_the_cause_is_an_outage(tmp_path):
    """The kernel's tracepoint shows which retransmissions its timer sent."""
    case = CorpusCase("outage")
    capture = case.unpack("snd", tmp_path)
    packets = pl.concat(tfrctrace.open(capture).packets())
    timers = [int(row["frame"]) for row in case.truth if row["tap"] == "snd" and row["cause"] == "timer"]
    data = packets.filter(pl.col("packet").is_in(timers))
    answers = packets.filter(pl.col("src") == data["dst"].first())
    last_ns = data["time_ns"].max()
    _, rows = causes(capture)
    outage = rows.filter(pl.col("cause") == "outage")
    assert outage["sign"].unique().to_list() == ["no_answer"]
    assert outage["start_ns"].min() < data["time_ns"].min()
    assert outage["end_ns"].max() == answers.filter(pl.col("time_ns") > last_ns)["time_ns"].min()


def test_after_a_clock_has_gone_back_the_cause_is_unknown_with_the_reason():
    warns = functools.partial(pytest.warns, tfrctrace.TfrctraceWarning)
    with warns(match="before its predecessor's"), warns(match="the clock was set back by 3600 s"):
        _, rows = causes(CAPTURES / "variant-clock-step-back.pcap.gz")
    stepped = rows.filter(pl.col("sign") == "clock_step")
    assert set(stepped["cause"]) == {"unknown"}
    assert (rows["start_ns"] < rows["end_ns"]).all()


def test_causes_are_collected_only_if_wanted():
    trace = tfrctrace.open(RUNS / "0006-interactive-illinois" / "sender.pcap.gz")
    trace.read("flows")
    assert not trace.flows.is_empty()
    assert not trace.causes.is_empty()
