"""The table of bottlenecks, against how queues and policers were set up, and what they counted."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import polars as pl
import pytest

import tfrctrace

DATA = Path(__file__).resolve().parents[2] / "data"
FACTS = ("capacity", "buffer", "discipline", "policer")
VALUES = {
    "capacity": "capacity_bps",
    "buffer": "buffer_bytes",
    "policer": "policer_bps",
}


@pytest.fixture
def judged(truth):
    from judge_bottlenecks import judge

    return lambda run: judge(DATA / "bottlenecks" / run, "sender")


def test_a_queue_that_drops_at_its_tail_shows_its_capacity_and_its_buffer(judged):
    found = judged("0005-bursts-veno")
    assert (found.true.discipline, found.said["discipline"]) == ("tail_drop", "tail_drop")
    assert found.said["capacity_bps"] == pytest.approx(found.true.capacity_bps, rel=0.01)
    assert found.covers("capacity", "bps", found.true.capacity_bps)
    assert found.covers("buffer", "bytes", found.true.buffer_bytes)
    # five packets of 1500 bytes
    assert found.said["buffer_ms"] == pytest.approx(7_500 * 8e3 / found.true.capacity_bps, rel=0.1)


def test_codel_drops_after_its_interval_and_shows_no_buffer(judged):
    found = judged("0034-bottleneck-vegas")
    assert (found.true.discipline, found.said["discipline"]) == ("aqm", "aqm")
    assert found.covers("capacity", "bps", found.true.capacity_bps)
    assert (found.said["buffer_bytes"], found.said["buffer_reason"]) == (None, "early_drops")


def test_a_rate_that_varies_while_a_queue_stands_is_no_capacity(judged):
    found = judged("0018-shared-vegas")
    assert len(found.scenario.competitors) == 2
    assert (found.said["capacity_bps"], found.said["capacity_reason"]) == (None, "rate_varies")


def test_a_policer_shows_its_rate(truth):
    run = DATA / "causes" / "0010-policer-yeah"
    scenario, _ = truth.read(run)
    rate_bps, _ = scenario.policer
    trace = tfrctrace.open(run / "sender.pcap.gz")
    sent = trace.flows.filter(pl.col("src_port") == scenario.sender.port).select("flow", "direction")
    row = trace.bottlenecks.join(sent, on=["flow", "direction"], how="semi").to_dicts()[0]
    assert row["policer_bps"] == pytest.approx(rate_bps, rel=0.02)
    assert row["policer_low_bps"] <= rate_bps <= row["policer_high_bps"]


def test_the_queue_of_the_senders_own_interface_is_one_though_data_pass_the_capture_after_it():
    trace = tfrctrace.open(DATA / "interfaces" / "own-queue.pcap.gz")
    largest = trace.flows.sort("payload_bytes", nulls_last=False)[-1].select("flow", "direction")
    (row,) = trace.bottlenecks.join(largest, on=["flow", "direction"], how="semi").to_dicts()
    # a token bucket counts 14 bytes of Ethernet with each packet of 1500
    of_ip = 1_500 / 1_514
    assert row["capacity_low_bps"] <= 10e6 * of_ip <= row["capacity_high_bps"]
    (why,) = (one for one in trace.why() if (one.flow, one.direction) == largest.row(0))
    assert why.main_cause == "bottleneck"
    # iperf3 always has data to send
    assert why.main_cause_share > 0.95


def test_flows_between_the_same_hosts_that_wait_in_a_queue_share_it():
    """The smaller one, of CUBIC through 10 Mbit/s, seems to be alone by its own rate."""
    trace = tfrctrace.open(DATA / "interfaces" / "shared-queue.pcap.xz")
    found = sorted(trace.why(), key=lambda one: one.payload_bytes or 0)[-2:]
    assert {(one.src, one.dst, one.dst_port) for one in found} == {("10.1.0.1", "10.2.0.1", 5201)}
    assert [one.main_cause for one in found] == ["shared_bottleneck"] * 2
    assert max(one.bottleneck_share or 0 for one in found) < 0.15
    rows = trace.causes.filter(pl.col("flow") == found[0].flow, pl.col("direction") == found[0].direction)
    assert "beside_others" in rows["sign"]
    # each instant of a flow has one cause
    assert rows["start_ns"][1:].to_list() == rows["end_ns"][:-1].to_list()


def test_equal_rates_between_losses_at_a_queue_are_no_policer(judged):
    """Losses of RED come at a twentieth of the base round-trip time, at times that hardly vary."""
    found = judged("0006-path_change-illinois")
    assert (found.true.policer, found.true.discipline) == (None, "aqm")
    assert (found.said["policer_bps"], found.said["policer_reason"]) == (None, "no_policer")
    sums = tfrctrace.open(DATA / "bottlenecks" / "0006-path_change-illinois" / "sender.pcap.gz").cause_sums
    assert sums.sort("duration_ns")["cause"][-1] == "bottleneck"


@pytest.mark.parametrize(
    "capture",
    [*sorted(DATA.glob("causes/*/*.pcap.gz")), *sorted(DATA.glob("bottlenecks/*/*.pcap.gz"))],
    ids=lambda path: f"{path.parent.name} {path.name}",
)
def test_each_fact_is_known_or_has_a_reason(capture):
    rows = tfrctrace.open(capture).bottlenecks.to_dicts()
    assert rows
    for row in rows:
        for fact in FACTS:
            assert (row[VALUES.get(fact, fact)] is None) == (row[f"{fact}_reason"] is not None)


@pytest.mark.parametrize("run", ["0002-receiver-vegas", "0006-interactive-illinois"])
def test_a_flow_that_fills_no_queue_tells_nothing_of_one(run):
    rows = tfrctrace.open(DATA / "causes" / run / "sender.pcap.gz").bottlenecks
    assert rows.select(VALUES[fact] for fact in VALUES).null_count().row(0) == (rows.height,) * len(VALUES)
    assert set(rows["capacity_reason"]) == {"no_queue"}


def test_of_what_the_capture_hides_the_sign_is_the_reason(tmp_path):
    content = gzip.decompress((DATA / "bottlenecks" / "0005-bursts-veno" / "sender.pcap.gz").read_bytes())
    kept, at, source = bytearray(content[:24]), 24, content[24 + 16 + 14 + 12 :][:4]
    while at < len(content):
        (captured,) = struct.unpack_from("<I", content, at + 8)
        record = content[at : at + 16 + captured]
        at += len(record)
        # only what the opener sent
        kept += record if record[16 + 14 + 12 :][:4] == source else b""
    path = tmp_path / "one_way.pcap"
    path.write_bytes(kept)
    (row,) = tfrctrace.open(path, vantage="sender").bottlenecks.to_dicts()
    assert {row[f"{fact}_reason"] for fact in FACTS} == {"no_acknowledgements"}
