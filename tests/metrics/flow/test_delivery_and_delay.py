"""Delivery, loss, delay and jitter against the tables of the papers and a loop over RFC 3550."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.metrics.exact_sums import nearest_rank
from tfrctrace.metrics.flow.delay import (
    interarrival_jitter,
    mean_delay_variation,
    one_way_delays,
    round_trip_times,
)
from tfrctrace.metrics.flow.delivery import drop_ratio_percent, packet_delivery_ratio, packet_loss_ratio
from tfrctrace.metrics.sets.utilisation import link_utilisation, upload_download_ratio

TWO_FLOWS = Path(__file__).parents[3] / "sample_traces" / "two-flows.pcapng.gz"
VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "metrics.json").read_text())
MS = 1_000_000

packets = st.lists(st.tuples(st.integers(0, 10**10), st.integers(-(10**6), 10**9)), min_size=1, max_size=40)


def arrivals(rows):
    return pl.DataFrame(rows, schema={"sent_ns": pl.Int64, "received_ns": pl.Int64}, orient="row")


def sent_and_delayed(rows):
    return arrivals([(sent, sent + delay) for sent, delay in rows])


def close(expected):
    return expected if expected is None else pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["pdr"], ids=str)
def test_delivery_and_loss_agree_with_the_vectors(entry):
    assert packet_delivery_ratio(entry["received"], entry["sent"]) == close(entry["pdr"])
    assert packet_loss_ratio(entry["lost"], entry["received"]) == close(entry["plr_seed001"])


@pytest.mark.parametrize("entry", VECTORS["drop_ratio_p3"], ids=str)
def test_drop_ratios_agree_with_the_tables_of_lillis_et_al(entry):
    found = drop_ratio_percent(entry["dropped"], entry["tx"])
    assert found == close(entry["drop_ratio_percent"])
    assert round(found, 3) == entry["printed"]
    assert drop_ratio_percent(0, 0) is None


def test_delay_and_jitter_agree_with_the_vectors():
    (entry,) = VECTORS["jitter_delay"]
    frame = arrivals([(round(sent * 1e9), round(received * 1e9)) for sent, received in entry["send_recv"]])
    assert interarrival_jitter(frame).to_list() == close([1e3 * jitter for jitter in entry["jitter_series"]])
    assert mean_delay_variation(frame) == close(1e3 * entry["ipdv_mean_abs"])
    delays = one_way_delays(frame)
    assert delays.mean_ms == close(1e3 * entry["delay_mean"])
    assert (delays.min_ms, delays.max_ms) == (1e3 * entry["delay_min"], 1e3 * entry["delay_max"])


@given(packets)
def test_delays_are_what_the_statistics_of_python_give(rows):
    delays_ms = [delay / MS for _, delay in rows]
    found = one_way_delays(sent_and_delayed(rows))
    assert found.packets == len(rows)
    assert found.mean_ms == pytest.approx(statistics.fmean(delays_ms), rel=1e-9, abs=1e-9)
    assert found.std_ms == pytest.approx(statistics.pstdev(delays_ms), rel=1e-6, abs=1e-6)
    assert found.min_ms <= found.p50_ms <= found.p95_ms <= found.p99_ms <= found.max_ms


@given(packets, st.integers(-(10**12), 10**12))
def test_jitter_does_not_depend_on_the_clocks(rows, offset):
    here, there = sent_and_delayed(rows), arrivals([(sent - offset, sent + delay) for sent, delay in rows])
    assert interarrival_jitter(here).to_list() == interarrival_jitter(there).to_list()


@given(packets)
def test_jitter_is_the_loop_of_rfc_3550(rows):
    ordered = sorted(((sent, sent + delay) for sent, delay in rows), key=lambda row: row[1])
    jitter, expected = 0.0, []
    for place, (sent, received) in enumerate(ordered):
        if place:
            change = (received - ordered[place - 1][1]) - (sent - ordered[place - 1][0])
            jitter += (abs(change) / MS - jitter) / 16
        expected.append(jitter)
    assert interarrival_jitter(sent_and_delayed(rows)).to_list() == pytest.approx(
        expected, rel=1e-9, abs=1e-12
    )


def test_without_arrivals_there_is_no_delay():
    assert one_way_delays(arrivals([])) is None
    assert mean_delay_variation(arrivals([(0, 1)])) is None
    assert interarrival_jitter(arrivals([])).is_empty()


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


def test_round_trip_times_are_those_of_the_table_of_flows():
    trace = tfrctrace.open(TWO_FLOWS)
    for flow, direction, *known in (
        trace.flows.filter(pl.col("rtt_samples") > 0)
        .select(
            "flow",
            "direction",
            "rtt_samples",
            "rtt_min_ms",
            "rtt_mean_ms",
            "rtt_max_ms",
            "rtt_std_ms",
            "rtt_p95_ms",
        )
        .iter_rows()
    ):
        own = (pl.col("flow") == flow) & (pl.col("direction") == direction)
        found = round_trip_times(trace.rtt.filter(own))
        *exact, p95_ms = known
        assert exact == pytest.approx(
            [found.packets, found.min_ms, found.mean_ms, found.max_ms, found.std_ms]
        )
        # the core keeps a sketch of all samples
        assert p95_ms == pytest.approx(found.p95_ms, rel=0.008)


def test_without_samples_of_a_method_there_are_no_round_trip_times():
    samples = pl.DataFrame({"method": ["timestamp"], "rtt_ns": [5_000_000]})
    assert round_trip_times(samples) is None
    assert round_trip_times(samples, "timestamp").mean_ms == 5.0
