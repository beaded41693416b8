"""The table of causes, against what the sending kernels knew of the same connections."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

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
    "0009-server-nv": {"application", "server"},
    "0010-policer-yeah": {"policer"},
}
"""What each run was set up to be limited by."""


def causes(capture):
    trace = tfrctrace.open(capture)
    return trace.flows, trace.causes


def seconds_by_cause(run, scenario):
    flows, rows = causes(RUNS / run / "sender.pcap.gz")
    sent = flows.filter(pl.col("src_port") == scenario.sender.port).select("flow", "direction")
    rows = rows.join(sent, on=["flow", "direction"], how="semi")
    sums = rows.group_by("cause").agg((pl.col("end_ns") - pl.col("start_ns")).sum() / 1e9)
    return dict(sums.iter_rows())


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


def test_away_from_the_sender_the_cause_is_unknown_with_the_reason():
    _, rows = causes(CAPTURES / "linux-one-cubic-rcv.pcap.gz")
    data = rows.filter(pl.col("direction") == "fwd")
    assert set(data["cause"]) <= {"handshake", "unknown"}
    assert set(data.filter(pl.col("cause") == "unknown")["sign"]) == {"away_from_sender"}
    assert data["rtt_ms"].null_count() == len(data)


def test_after_a_clock_has_gone_back_the_cause_is_unknown_with_the_reason():
    with pytest.warns(tfrctrace.TfrctraceWarning, match="before its predecessor's"):
        _, rows = causes(CAPTURES / "variant-clock-step-back.pcap.gz")
    stepped = rows.filter(pl.col("sign") == "clock_step")
    assert set(stepped["cause"]) == {"unknown"}
    assert (rows["start_ns"] < rows["end_ns"]).all()


def test_causes_are_collected_only_if_wanted():
    trace = tfrctrace.open(RUNS / "0006-interactive-illinois" / "sender.pcap.gz")
    trace.read("flows")
    assert not trace.flows.is_empty()
    assert not trace.causes.is_empty()
