"""Sparse flows against what simulated applications asked for, and by properties of the rule.

The sinks of ns-2 counted the bytes from 5 to 30 s (`tests/data/ns2/shares.tcl`).
"""

from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.metrics.evaluation import evaluate
from tfrctrace.metrics.flow.arrivals import arrival_bins
from tfrctrace.metrics.flow_metrics import each_metric
from tfrctrace.metrics.sets.competing import CompetingSet
from tfrctrace.metrics.sets.fairness import jain_index
from tfrctrace.metrics.sets.sparse import demand, small_flows
from tfrctrace.metrics.windows import Windows

NS2 = Path(__file__).parents[2] / "data" / "ns2"
S = 1_000_000_000

COUNTED = {
    "probe": (462000, 471000, 4418),
    "telnet": (468000, 467000, 2900),
    "lossy": (477000, 411000, 51000),
    "far": (520000, 396000, 19000),
}
"""Payload that each sink counted; headers of 40 bytes for each packet of TCP are not in it."""

SPARSE = {"probe": {3}, "telnet": {3}, "lossy": set(), "far": set()}


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


@pytest.mark.parametrize("basis", ["goodput", "throughput", "received"])
@pytest.mark.parametrize("name", SPARSE)
def test_flows_that_asked_for_little_are_sparse_and_starved_ones_are_not(name, basis):
    measured = tfrctrace.open(NS2 / f"shares-{name}.tr.xz").measure(basis=basis, sparse_share=0.3)
    (small,) = measured.small_flows.values()
    assert {one.flow for one in small} == {3}
    assert {one.flow for one in small if one.is_sparse} == SPARSE[name]


@pytest.mark.parametrize("name", SPARSE)
def test_indices_with_and_without_sparse_flows_are_those_of_the_sinks(name):
    trace = tfrctrace.open(NS2 / f"shares-{name}.tr.xz")
    flows = trace.flows.filter(pl.col("direction") == "fwd").with_columns(pl.col("transport").alias("group"))
    bins = arrival_bins(trace.packets(), S).filter(pl.col("direction") == "fwd")
    own = CompetingSet(1, name, tuple(flows.sort("flow_id")["flow"]), Windows(5 * S, S, 25), 0)
    found = evaluate(flows, bins, [own], column="received_bytes", window_ns=S)
    values = {one.name: one.value for one in each_metric(found.rows) if one.competing_set == 1}
    # arrivals have headers, which the sinks do not count: 4 % of a greedy flow, more of small packets
    rest = COUNTED[name][:2] if SPARSE[name] else COUNTED[name]
    assert values["jain"] == pytest.approx(jain(COUNTED[name]), abs=0.005)
    assert values["jain_without_sparse"] == pytest.approx(jain(rest), abs=0.0005 if SPARSE[name] else 0.005)
    assert values["sparse_flows"] == len(SPARSE[name])


def row(**facts):
    return {
        "transport": "udp",
        "packets": 100,
        "data_packets": 100,
        "data_segments": 100,
        "duration_s": 60.0,
        **facts,
    }


EVEN = np.ones(60, dtype=np.uint64)
BURSTS = np.concatenate([np.full(10, 6), np.zeros(50)])


@pytest.mark.parametrize(
    ("facts", "packets", "is_limited"),
    [
        ({}, EVEN, True),
        ({}, BURSTS, False),
        ({}, EVEN[:12], False),  # fewer than four windows
        ({}, None, False),
        ({"transport": "rtp"}, EVEN, True),
        ({"transport": "rtp", "feedback_packets": 9}, EVEN, False),
        # TFRC sends evenly, however little the losses leave it
        ({"transport": "tfrc", "sent_packets": 100, "lost_packets": 9}, EVEN, False),
        ({"transport": "tfrc", "sent_packets": 100, "lost_packets": 0}, EVEN, True),
        ({"transport": "dccp", "sent_packets": 100, "lost_packets": 9}, EVEN, False),
        # what UDP asks for does not depend on losses
        ({"sent_packets": 100, "lost_packets": 30}, EVEN, True),
        ({"transport": "tcp", "no_data_share": 0.9}, None, True),
        ({"transport": "tcp", "no_data_share": 0.3}, EVEN, False),
        ({"transport": "tcp", "no_data_share": 0.9, "retransmitted_segments": 8}, None, False),
        # 100 packets a minute of 200 ms: a third of one is outstanding on average
        ({"transport": "tcp", "vantage": "both", "rtt_mean_ms": 200.0}, None, True),
        ({"transport": "tcp", "vantage": "both", "rtt_mean_ms": 400.0}, None, False),
        # at a receiver the samples are its own delay
        ({"transport": "tcp", "vantage": "receiver", "rtt_mean_ms": 1.0}, None, False),
        ({"transport": "tcp", "vantage": "both", "rtt_mean_ms": 1.0, "duration_s": 0.0}, None, False),
    ],
)
def test_only_evidence_of_its_application_makes_a_flow_sparse(facts, packets, is_limited):
    assert demand(row(**facts), packets).is_limited is is_limited


@pytest.mark.parametrize(("interval", "is_limited"), [(2, True), (20, True)])
def test_a_constant_rate_is_one_whatever_the_windows(interval, is_limited):
    packets = np.zeros(2000)
    packets[::interval] = 1
    assert demand(row(), packets).is_limited is is_limited


def test_arrivals_of_a_constant_rate_may_lack_what_was_lost():
    packets = np.ones(4000) * (np.random.default_rng(5).random(4000) > 0.4)
    lost = row(sent_packets=4000, received_packets=2400)
    assert not demand(lost, packets).is_limited
    assert demand(lost, packets, counts_received=True).is_limited


def test_the_demand_behind_losses_counts_and_not_the_rate_that_is_left():
    rows = {1: row(), 2: row(sent_packets=100, received_packets=10)}
    amounts = {1: 1000, 2: 50}

    def sparse(**more):
        found = small_flows(amounts, rows.__getitem__, lambda _: EVEN, **more)
        return [(one.flow, one.is_sparse) for one in found]

    assert sparse() == [(2, True)]
    # it asked for ten times what arrived: half a share
    assert sparse(counts_received=True) == [(2, False)]


AMOUNTS = st.dictionaries(st.integers(1, 12), st.integers(0, 10**12), min_size=1)


def sparse_of(amounts, limited, share):
    rows = {flow: row(transport="udp" if flow in limited else "tcp", no_data_share=0.0) for flow in amounts}
    return small_flows(amounts, rows.__getitem__, lambda _: EVEN, share)


@given(AMOUNTS, st.sets(st.integers(1, 12)), st.sampled_from([0.01, 0.1, 0.5, 0.99]), st.integers(2, 1000))
def test_the_rule_holds_for_any_rates(amounts, limited, share, factor):
    found = sparse_of(amounts, limited, share)
    sparse = {one.flow for one in found if one.is_sparse}
    rest = [amount for flow, amount in amounts.items() if flow not in sparse]
    assert rest
    assert sparse <= limited
    assert all(amounts[flow] * len(rest) < Fraction(share) * sum(rest) for flow in sparse)
    # no flow that its application limited to a smaller rate is left
    kept = [amounts[flow] for flow in limited & amounts.keys() - sparse]
    assert not kept or not sparse or min(kept) > max(amounts[flow] for flow in sparse)
    scaled = sparse_of({flow: amount * factor for flow, amount in amounts.items()}, limited, share)
    assert [(one.flow, one.is_sparse) for one in scaled] == [(one.flow, one.is_sparse) for one in found]
    assert not sparse_of(amounts, limited, 0.0)
    index = jain_index(pl.Series(rest, dtype=pl.UInt64))
    assert index is None or index == pytest.approx(jain(rest))


def test_many_probes_do_not_hide_each_other():
    amounts = {1: 1000, 2: 1000, **dict.fromkeys(range(3, 53), 10)}
    found = sparse_of(amounts, set(range(3, 53)), 0.1)
    assert [one.flow for one in found if one.is_sparse] == list(range(3, 53))


def test_the_control_connection_of_iperf3_had_no_data_to_send(run):
    """It is open beside the measured one, and carries parameters before and results after it."""
    capture = NS2.parent / "captures" / "linux-relay-loss-snd.pcap.gz"
    options = ("-m", "sparse_flows", "--least-packets", "5")
    out = run("metrics", capture, *options).out
    assert "sparse: flow 1, 0 % of the mean rate; it had no data to send for 99% of the time" in out
    packed = gzip.decompress(capture.read_bytes())
    piped = run("metrics", "-", *options, stdin=packed).out
    assert "it had no data to send for 99% of the time" in piped
