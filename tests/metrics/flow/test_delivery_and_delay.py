"""Delivery, loss, delay, jitter and RTTs of flows against the papers' tables, RFC 3550 and statistics."""

from __future__ import annotations

import json
import statistics
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import simulated_row

import tfrctrace
from tfrctrace.metrics.exact_sums import nearest_rank
from tfrctrace.metrics.flow.delivery import drop_ratio
from tfrctrace.metrics.sets.utilisation import link_utilisation, upload_download_ratio

TWO_FLOWS = Path(__file__).parents[3] / "sample_traces" / "two-flows.pcapng.gz"
VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "metrics.json").read_text())
MS = 1_000_000

packets = st.lists(st.tuples(st.integers(0, 10**10), st.integers(1, 10**9)), min_size=1, max_size=40)


def delayed(rows: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return [(sent, sent + delay, 1000) for sent, delay in rows]


def close(expected):
    return expected if expected is None else pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["pdr"], ids=str)
def test_delivery_and_loss_agree_with_the_vectors(entry, tmp_path):
    totals = tmp_path / "totals.xml"
    totals.write_text(
        f"""<FlowMonitor><FlowStats>
          <Flow flowId="1" timeFirstTxPacket="+0.0ns" timeFirstRxPacket="+1000000.0ns"
            timeLastTxPacket="+9000000000.0ns" timeLastRxPacket="+9001000000.0ns"
            delaySum="+1000.0ns" jitterSum="+0.0ns" lastDelay="+1000.0ns" txBytes="{100 * entry["sent"]}"
            rxBytes="{100 * entry["received"]}" txPackets="{entry["sent"]}" rxPackets="{entry["received"]}"
            lostPackets="{entry["lost"]}" timesForwarded="0"></Flow></FlowStats>
        <Ipv4FlowClassifier>
          <Flow flowId="1" sourceAddress="10.1.1.1" destinationAddress="10.1.2.2" protocol="17"
            sourcePort="1" destinationPort="9"></Flow></Ipv4FlowClassifier></FlowMonitor>"""
    )
    row = tfrctrace.open(totals).flows.row(0, named=True)
    assert (row["pdr"], row["plr"]) == (close(entry["pdr"]), close(entry["plr_seed001"]))


@pytest.mark.parametrize("entry", VECTORS["drop_ratio_p3"], ids=str)
def test_drop_ratios_agree_with_the_tables_of_lillis_et_al(entry):
    found, nothing = pl.select(
        drop_ratio(pl.lit(pl.Series([entry["dropped"], 0])), pl.lit(pl.Series([entry["tx"], 0])))
    ).to_series()
    assert 100 * found == close(entry["drop_ratio_percent"])
    assert round(100 * found, 3) == entry["printed"]
    assert nothing is None


def test_delay_and_jitter_agree_with_the_vectors():
    (entry,) = VECTORS["jitter_delay"]
    packets = [(round(sent * 1e9), round(received * 1e9), 1000) for sent, received in entry["send_recv"]]
    first, *rows = [simulated_row(packets[:number]) for number in range(1, len(packets) + 1)]
    # jitter begins at 0, which is unknown until there is a second packet
    assert (first["jitter_ms"], entry["jitter_series"][0]) == (None, 0)
    jitter = [row["jitter_ms"] for row in rows]
    assert jitter == close([1e3 * jitter for jitter in entry["jitter_series"][1:]])
    assert rows[-1]["delay_variation_ms"] == close(1e3 * entry["ipdv_mean_abs"])
    assert rows[-1]["delay_mean_ms"] == close(1e3 * entry["delay_mean"])
    assert rows[-1]["delay_min_ms"] == 1e3 * entry["delay_min"]
    assert rows[-1]["delay_max_ms"] == 1e3 * entry["delay_max"]


@given(packets)
@settings(max_examples=30)
def test_delays_are_what_the_statistics_of_python_give(rows):
    delays_ms = [delay / MS for _, delay in rows]
    row = simulated_row(delayed(rows))
    assert row["received_packets"] == len(rows)
    assert row["delay_mean_ms"] == pytest.approx(statistics.fmean(delays_ms), rel=1e-9, abs=1e-9)
    assert (row["delay_min_ms"], row["delay_max_ms"]) == (min(delays_ms), max(delays_ms))
    percentiles = np.quantile(delays_ms, (0.5, 0.95, 0.99), method="inverted_cdf")
    found = [row[f"delay_p{share}_ms"] for share in (50, 95, 99)]
    assert found == pytest.approx(percentiles, rel=0.008, abs=1e-6)
    assert row["delay_min_ms"] <= found[0] <= found[1] <= found[2] <= row["delay_max_ms"]


@given(packets, st.integers(0, 10**12))
@settings(max_examples=15)
def test_jitter_does_not_depend_on_the_clocks(rows, offset):
    here = simulated_row(delayed(rows))
    there = simulated_row([(sent, received + offset, size) for sent, received, size in delayed(rows)])
    assert here["jitter_ms"] == there["jitter_ms"]


@given(packets)
@settings(max_examples=30)
def test_jitter_is_the_loop_of_rfc_3550(rows):
    # of arrivals at one time the first line of the trace comes first
    ordered = sorted(delayed(rows), key=lambda packet: packet[1])
    jitter = 0.0
    changes = []
    for (sent, received, _), (next_sent, next_received, _) in pairwise(ordered):
        changes.append(abs((next_received - received) - (next_sent - sent)) / MS)
        jitter += (changes[-1] - jitter) / 16
    row = simulated_row(delayed(rows))
    if changes:
        assert row["jitter_ms"] == pytest.approx(jitter, rel=1e-9, abs=1e-12)
        assert row["delay_variation_ms"] == pytest.approx(statistics.fmean(changes), rel=1e-9, abs=1e-12)
    else:
        assert row["jitter_ms"] is row["delay_variation_ms"] is None


def test_percentiles_are_nearest_ranks():
    values = pl.Series(range(1, 21))
    assert [nearest_rank(values, share) for share in (0.0, 0.05, 0.5, 0.95, 0.951, 1.0)] == [
        1,
        1,
        10,
        19,
        20,
        20,
    ]
    assert nearest_rank(pl.Series([], dtype=pl.Int64), 0.5) is None


def test_utilisation_and_direction_ratio():
    assert link_utilisation(125_000, 1.0, 1e6) == 1.0
    assert link_utilisation(125_000, 0.0, 1e6) is None
    # the MTFRC paper: uploads get about three times what downloads get, and with MTFRC the same
    assert upload_download_ratio(pl.Series([968, 968]), pl.Series([968 / 3] * 3)) == pytest.approx(3)
    assert upload_download_ratio(pl.Series([1.0]), pl.Series([], dtype=pl.Float64)) is None
    assert upload_download_ratio(pl.Series([1.0]), pl.Series([0.0])) is None


def test_round_trip_times_in_the_table_of_flows_are_those_of_the_samples():
    trace = tfrctrace.open(TWO_FLOWS)
    rows = trace.flows.filter(pl.col("rtt_samples") > 0).to_dicts()
    assert rows
    for row in rows:
        samples = trace.rtt.filter(flow=row["flow"], direction=row["direction"])["rtt_ns"]
        rtts_ms = [rtt_ns / MS for rtt_ns in samples.to_list()]
        assert row["rtt_samples"] == len(rtts_ms)
        found = [row[f"rtt_{name}_ms"] for name in ("min", "mean", "max", "std")]
        expected = (min(rtts_ms), statistics.fmean(rtts_ms), max(rtts_ms), statistics.pstdev(rtts_ms))
        assert found == pytest.approx(expected)
        # the core keeps a sketch of all samples
        assert row["rtt_p95_ms"] == pytest.approx(nearest_rank(samples, 0.95) / MS, rel=0.008)
