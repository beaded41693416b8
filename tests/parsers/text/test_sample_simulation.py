"""The shipped simulation: what its agents and its queue counted."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import tfrctrace

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"
TRUTH = json.loads((SAMPLES / "dumbbell.truth.json").read_text())
TFRC_BYTES, TCP_BYTES = 1032, 1040


@pytest.fixture(scope="module")
def flows():
    frame = tfrctrace.open(SAMPLES / "dumbbell.tr.xz").flows
    return {row["flow_id"]: row for row in frame.filter(pl.col("direction") == "fwd").to_dicts()}


def test_every_packet_that_an_agent_sent_is_counted_once(flows):
    assert flows[1]["sent_packets"] == TRUTH["tfrc"]["sent_packets"]
    assert flows[2]["sent_packets"] == TRUTH["tcp"]["sent_packets"]
    assert flows[3]["sent_packets"] == TRUTH["probe"]["sent_packets"]
    assert flows[2]["retransmitted_packets"] == TRUTH["tcp"]["retransmitted_packets"]


def test_what_arrived_is_what_the_sinks_have(flows):
    assert flows[1]["received_packets"] * TFRC_BYTES == TRUTH["tfrc"]["sink_bytes"]
    assert flows[1]["received_bytes"] == TRUTH["tfrc"]["sink_bytes"]
    assert flows[3]["received_packets"] == TRUTH["probe"]["received_packets"]
    # the sink counts in order and once: a packet that was sent again although it had arrived is one more
    in_order = -(-TRUTH["tcp"]["sink_bytes"] // TCP_BYTES)
    assert in_order <= flows[2]["received_packets"] <= in_order + TRUTH["tcp"]["retransmitted_packets"]


def test_what_is_lost_is_what_the_queue_dropped(flows):
    assert sum(row["lost_packets"] for row in flows.values()) == TRUTH["bottleneck"]["drops"]
    assert sum(row["dropped_packets"] for row in flows.values()) == TRUTH["bottleneck"]["drops"]
    assert all(row["in_flight_packets"] == 0 for row in flows.values())


def test_the_delay_of_probes_is_the_one_they_carried(flows):
    # the trace has microseconds, so a mean of 35 delays is off by less than one of them
    assert flows[3]["delay_mean_ms"] == pytest.approx(TRUTH["probe"]["delay_mean_s"] * 1000, abs=1e-3)
