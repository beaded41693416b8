"""Sections on TFRC, fairness, delivery, stations, sequence numbers: right ones, and none without data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.flow.quantiles import sample_quantiles
from tfrctrace.metrics.results.metrics import MeasuredSet, Metric, TraceMetrics
from tfrctrace.parsers.schema import TABLES, polars_schema
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.figures.drawing import value_range
from tfrctrace.reports.figures.rtt_distribution import rtt_distribution_figure
from tfrctrace.reports.figures.sequence_tiles import overview, tiles_of
from tfrctrace.reports.report_content import prepare
from tfrctrace.reports.sections.burstiness import burstiness_section
from tfrctrace.reports.sections.conformance import conformance_section
from tfrctrace.reports.sections.fairness import fairness_section
from tfrctrace.reports.sections.rtp import reported_facts, reported_losses, rtp_section
from tfrctrace.reports.sections.sequence import sequence_section
from tfrctrace.reports.sections.tfrc import tfrc_section
from tfrctrace.reports.sections.wifi_stations import stations_section

START_NS = 1_700_000_000_000_000_000
WITH_DATA = {"tfrc", "fairness", "burstiness", "delivery", "stations", "sequence"}


def content_of(trace, **others):
    return prepare(trace.results(**others))


def table(name: str, *rows: dict[str, object]) -> pl.DataFrame:
    names = [column.name for column in TABLES[name]]
    return pl.DataFrame(
        [tuple(map(row.get, names)) for row in rows], schema=polars_schema(name), orient="row"
    )


def texts(view) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in view.rows]


def test_a_trace_without_them_has_none_of_these_sections(two_flows):
    report = build_report(two_flows.results(), title="t")
    keys = {section.key for section in report.sections}
    # TCP, but nobody has read its packets: that is reported
    assert keys & WITH_DATA == {"sequence"}


REPORTS = [
    # sent, received, p, X_recv, R, X
    (1.0, 1.1, 0.0, 8e5, 100.0, 1.6e6),
    (2.0, 2.1, 0.01, 9e5, 110.0, 1.2e6),
    (3.0, None, 0.02, 7e5, None, None),
    (4.0, 4.1, 0.02, 6e5, 120.0, 0.9e6),
]


@pytest.fixture
def with_tfrc(small_trace):
    trace = small_trace().source()
    trace.flow(1, transport="tfrc", feedback_packets=4, loss_events=2, loss_event_rate=0.02, x_recv_bps=6e5)
    rows = [
        {
            "flow": 1,
            "direction": "fwd",
            "time_ns": START_NS + round(sent_s * 1e9),
            "received_ns": None if received_s is None else START_NS + round(received_s * 1e9),
            "p": p,
            "x_recv_bps": x_recv_bps,
            "r_ms": r_ms,
            "x_bps": x_bps,
        }
        for sent_s, received_s, p, x_recv_bps, r_ms, x_bps in REPORTS
    ]
    events = [{"flow": 1, "direction": "fwd", "time_ns": START_NS + ns} for ns in (1_500_000_000, 9 * 10**9)]
    return trace, {"feedback": table("feedback", *rows), "loss_events": table("loss_events", *events)}


def test_what_a_tfrc_receiver_reported_and_its_sender_made_of_it_is_drawn(with_tfrc):
    trace, tables = with_tfrc
    section = tfrc_section(content_of(trace, tables=tables))
    rates, p, r = section.figures
    allowed, received = rates.curves
    # X holds from the arrival of a report, so the one that was lost changes nothing
    assert (allowed.x, allowed.values) == ((1.1, 2.1, 4.1), (1.6e6, 1.2e6, 0.9e6))
    assert (received.x, received.values) == ((1.0, 2.0, 3.0, 4.0), (8e5, 9e5, 7e5, 6e5))
    # the event at 9 s was followed by no report
    assert allowed.marked == (1,)
    assert (p.curves[0].values, p.curves[0].form) == ((0.0, 0.01, 0.02, 0.02), "steps")
    assert (r.curves[0].x, r.curves[0].values) == ((1.1, 2.1, 4.1), (100.0, 110.0, 120.0))
    assert {figure.linked for figure in section.figures} == {"time-1"}
    assert texts(section.tables[0])[0][2:6] == ["4", "2", "2.00 %", "600 kbit/s"]


@pytest.fixture
def with_rtp(small_trace):
    trace = small_trace().source()
    reported = {"reported_plr": 0.1, "reported_lost_packets": 5, "reported_expected_packets": 50}
    trace.flow(1, transport="rtp", **reported)
    trace.flow(2, transport="rtp", reported_plr=0.2, reported_lost_packets=10, reported_expected_packets=50)
    source = {"flow": 1, "direction": "fwd", "reordered_packets": 0, "loss_bursts": 0, "lost_packets": 0}
    sources = [
        source | {"ssrc": 7, "received_packets": 40, "sent_packets": 40, "jitter_ms": 2.0},
        source
        | {"ssrc": 8, "received_packets": 90, "sent_packets": 100, "lost_packets": 10, "loss_bursts": 4}
        | {"longest_loss_burst": 6, "reported_lost_packets": 25, "reported_plr": 0.25},
        source | {"flow": 9, "ssrc": 9, "received_packets": 1, "sent_packets": 1},
    ]
    intervals = [
        {"flow": 1, "direction": "fwd", "ssrc": 8, "width_ns": 10**9, "time_ns": START_NS + second * 10**9}
        | {"lost_packets": lost, "jitter_ms": jitter_ms}
        for second, lost, jitter_ms in ((0, 11, None), (1, -1, 3.0), (2, 0, 4.0))
    ]
    return trace, {
        "rtp_sources": table("rtp_sources", *sources),
        "rtp_intervals": table("rtp_intervals", *intervals),
    }


def test_streams_of_rtp_are_listed_and_those_of_several_intervals_drawn(with_rtp):
    trace, tables = with_rtp
    section = rtp_section(content_of(trace, tables=tables))
    jitter, lost = section.figures
    assert (jitter.curves[0].x, jitter.curves[0].values) == ((1.0, 2.0), (3.0, 4.0))
    assert (lost.curves[0].x, lost.curves[0].values) == ((0.0, 1.0, 2.0), (11, -1, 0))
    # the source whose flow is not there has no row
    assert [row[2:] for row in texts(section.tables[0])] == [
        ["00000008", "90", "10", "4", "0", "–", "25.0 %", "–"],
        ["00000007", "40", "0", "0", "0", "2.00 ms", "–", "–"],
    ]
    assert "Not shown: 1 stream" in section.tables[0].caption


def test_the_summary_says_what_receivers_of_rtp_report(with_rtp):
    trace, _ = with_rtp
    (fact,) = reported_facts(trace.flows)
    assert (fact.value, fact.detail) == ("15.0 %", "15 of 100 packets on the whole path")
    words = "".join(map(str, reported_losses(trace.flows)))
    assert "flow 2" in words
    assert "20.0 % (10 packets)" in words


def test_what_an_end_of_tfrc_did_against_the_rules_is_counted(with_tfrc):
    trace, tables = with_tfrc
    found = {"flow": 1, "direction": "fwd", "end": "sender", "rule": "RFC 5348 section 4.6"}
    rows = [
        found | {"finding": name, "time_ns": START_NS + seconds * 10**9, "packet": 3 + 2 * seconds}
        for name, seconds in (("too_fast", 2), ("rare_one", 1), ("too_fast", 3))
    ]
    tables["findings"] = table("findings", *rows)
    section = conformance_section(content_of(trace, tables=tables))
    assert texts(section.tables[0]) == [
        [
            "1",
            "too fast",
            "sender",
            "–",
            "RFC 5348 section 4.6",
            "–",
            "–",
            "2",
            "2.00 s",
            "frame.number in {7, 9}",
        ],
        [
            "1",
            "rare one",
            "sender",
            "–",
            "RFC 5348 section 4.6",
            "–",
            "–",
            "1",
            "1.00 s",
            "frame.number in {5}",
        ],
    ]


def competing(trace, *rates: int) -> TraceMetrics:
    """Metrics as `tfrctrace metrics` prints them for flows that send `rates` bytes in each of 100 bins."""
    for flow, rate in enumerate(rates, start=1):
        trace.flow(flow, end_ns=START_NS + 10**10, payload_bytes=100 * rate)
        for place in range(100):
            trace.bin(flow, place, unique_bytes=rate)
    common = {"n": 10, "window_s": 1.0, "warmup_s": 0.0, "group": "tcp", "competing_set": 1, "reason": None}
    other_metrics = [
        Metric(name=name, value=value, unit="", flows=(flow,), **common)
        for flow, rate in enumerate(rates, start=1)
        for name, value in (("rate_bps", rate * 80.0), ("burstiness", 0.0), ("mean_relative_change", 0.0))
    ]
    everyone = tuple(range(1, len(rates) + 1))
    ends = {"start_ns": START_NS, "end_ns": START_NS + 10**10, "windows": 10}
    found = MeasuredSet(number=1, source="a.pcap", flows=everyone, small_flows=(), **ends)
    jain = sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates))
    return TraceMetrics(
        basis="goodput",
        window_s=1.0,
        warmup_s=0.0,
        sparse_share=0.1,
        flows=len(rates),
        flows_left_out=0,
        competing_sets=(found,),
        sets_left_out=0,
        metrics=(Metric(name="jain", value=jain, unit="", flows=everyone, **common), *other_metrics),
    )


def test_the_index_over_time_is_that_of_jain(small_trace):
    trace = small_trace().source()
    measured = competing(trace, 1000, 3000)
    section = fairness_section(content_of(trace, measured=measured))
    # (1 + 3)^2 / (2 (1 + 9)), R. Jain et al. 1984
    assert list(section.figures[0].curves[0].values) == pytest.approx([0.8] * 10)
    assert "Jain's index 0.800" in section.paragraphs[1][0]
    assert [row[4] for row in texts(section.tables[0])] == ["75.0 %", "25.0 %"]


def test_one_flow_alone_has_nobody_to_be_fair_to(small_trace):
    trace = small_trace().source()
    section = fairness_section(content_of(trace, measured=competing(trace, 1000)))
    assert not section.figures + section.tables + section.paragraphs


def test_the_variation_is_drawn_over_the_width_of_the_windows(small_trace):
    trace = small_trace().source()
    measured = competing(trace, 1000, 3000)
    covs = {0.1: 0.9, 0.2: 0.5, 0.5: 0.2}
    of_cov = [
        replace(measured.metrics[1], name="cov", window_s=width_s, value=value, flows=(1,))
        for width_s, value in reversed(covs.items())
    ]
    section = burstiness_section(content_of(trace, measured=replace(measured, metrics=tuple(of_cov))))
    (curve,) = section.figures[0].curves
    assert dict(zip(curve.x, curve.values, strict=True)) == covs
    assert section.figures[0].axis.logarithmic


def test_delivery_is_reported_where_both_ends_are_seen(small_trace):
    trace = small_trace().source()
    delays = {
        "delay_min_ms": 1.0,
        "delay_p50_ms": 2.0,
        "delay_mean_ms": 2.5,
        "delay_p95_ms": 4.0,
        "delay_max_ms": 5.0,
    }
    counts = {"sent_packets": 10, "received_packets": 9, "lost_packets": 1, "dropped_packets": 1, "pdr": 0.9}
    trace.flow(1, **delays, **counts, drop_reasons="node 2: queue").flow(2)
    report = build_report(trace.results(), title="t")
    section = next(section for section in report.sections if section.key == "delivery")
    assert texts(section.tables[0])[0][2:9] == ["10", "9", "1", "90.0 %", "1.00 ms", "2.50 ms", "4.00 ms"]
    (span,) = section.figures[0].spans
    assert (span.low, span.median, span.high, span.top) == (1.0, 2.0, 4.0, 5.0)


def test_delay_and_delivery_are_drawn_over_time(small_trace):
    trace = small_trace().source()
    counts = {"sent_packets": 12, "received_packets": 9, "lost_packets": 3, "pdr": 0.75}
    spread = {f"delay_{name}_ms": 2.0 for name in ("min", "p50", "mean", "p95", "max")}
    trace.flow(1, **counts, **spread).flow(2)
    delays = {"delay_min_ms": 1.0, "delay_mean_ms": 2.0, "delay_max_ms": 4.0}
    trace.bin(1, 0, delay_samples=4, lost_packets=0, **delays)
    trace.bin(1, 1, delay_samples=5, lost_packets=1, **delays)
    trace.bin(1, 2, delay_samples=0, lost_packets=2)
    # a flow of which the same trace does not show the other end
    trace.bin(2, 0)
    report = build_report(trace.results(), title="t")
    section = next(section for section in report.sections if section.key == "delivery")
    delay, delivered, _ = section.figures
    (curve,) = delay.curves
    assert (curve.values[:2], curve.low[:2], curve.high[:2]) == ((2.0, 2.0), (1.0, 1.0), (4.0, 4.0))
    assert curve.marked == (1,)
    (curve,) = delivered.curves
    assert curve.values == pytest.approx((1.0, 5 / 6, 0.0))
    assert curve.label.endswith("(75.0 % overall)")


def test_stations_have_a_row_for_each_way_and_a_dash_for_what_the_radio_did_not_note(small_trace):
    row = {"receiver": "b", "frames": 4, "data_frames": 3, "retry_frames": 1, "bytes": 4000}
    noted = {
        "signal_mean_dbm": -50.2,
        "signal_min_dbm": -60.0,
        "signal_max_dbm": -40.0,
        "rate_mean_mbps": 54.0,
    }
    links = table("links", row | {"transmitter": "a"} | noted, row | {"frames": 9})
    section = stations_section(content_of(small_trace(), tables={"links": links}))
    unknown, known = texts(section.tables[0])
    assert unknown[:3] == ["unknown", "b", "9"]
    assert (unknown[6], unknown[7]) == ("–", "–")
    assert (known[6], known[7]) == ("54.0 Mbit/s", "-50 dBm")
    assert section.facts[1].value == "15.4 %"  # 2 of 13
    assert not stations_section(content_of(small_trace(), tables={"links": links.clear()})).tables


def test_links_over_time_add_up_to_what_tshark_counts():
    data = Path(__file__).parents[2] / "data/wifi"
    name = "ns3-wifi-radiotap-veno-udp-2-1.pcap.gz"
    theirs = {
        (row["transmitter"], row["receiver"]): row
        for row in json.loads((data / "tshark.json").read_text())[name]["links"]
    }
    results = tfrctrace.open(data / name).results()
    bins = results.link_bins
    assert bins is not None
    sums = bins.group_by("transmitter", "receiver").agg(
        pl.col("frames", "retry_frames").sum(),
        (pl.col("rate_mean_mbps") * pl.col("frames")).sum() / pl.col("frames").sum(),
    )
    # of those with one receiver and a transmitter that is known
    assert len(sums) == sum(ends[0] is not None and ends[1] != "ff:ff:ff:ff:ff:ff" for ends in theirs)
    for transmitter, receiver, *counted in sums.iter_rows():
        row = theirs[transmitter, receiver]
        expected = [row["frames"], row["retry_frames"], row["rate_mean_mbps"]]
        assert counted == pytest.approx(expected), (transmitter, receiver)
    report = build_report(results, title="t")
    section = next(section for section in report.sections if section.key == "stations")
    retries, rates, signals = section.figures
    assert all(0 <= value <= 1 for curve in retries.curves for value in curve.values if value is not None)
    assert max(value for value in rates.curves[0].values if value is not None) == 11e6
    # a level in dBm has no 0 to begin from
    assert value_range(signals) == pytest.approx((-73.0, -67.0))


def test_a_gap_in_time_is_a_caveat_if_flows_go_on_behind_it(small_trace):
    trace = small_trace().source().flow(1).flow(2)
    for place in (*range(20), *range(70, 90)):
        trace.bin(1, place, packets=100)
    trace.bin(2, 120, packets=100)
    report = build_report(trace.results(), title="t")
    (note,) = next(section for section in report.sections if section.key == "caveats").notes
    # between 90 and 120 nobody is missed
    assert note.words == ("No packet of any flow for 5.00 s from 2.00 s on; 1 flow continued afterwards.",)
    trace.sources[0]["format"] = "ns2"
    assert all(section.key != "caveats" for section in build_report(trace.results(), title="t").sections)


def test_the_distribution_goes_through_its_samples(small_trace):
    trace = small_trace().source().flow(1, rtt_samples=1000, rtt_p50_ms=1.0)
    samples = np.random.default_rng(1).gamma(2, 1e6, 1000).astype(int)
    frame = pl.DataFrame(
        {"flow": 1, "direction": "fwd", "rtt_ns": samples}, schema_overrides={"flow": pl.UInt32}
    )
    (trace_drawn,) = content_of(trace).traces
    (curve,) = rtt_distribution_figure(trace_drawn, sample_quantiles(frame, "rtt_ns")).curves
    for rtt_ms, share in zip(curve.x, curve.values, strict=True):
        assert (samples / 1e6 <= rtt_ms + 1e-9).mean() >= share - 1e-9
        assert (samples / 1e6 < rtt_ms - 1e-9).mean() <= share


def test_sequence_numbers_are_those_that_scapy_reads(write_capture, conversation):
    from scapy.layers.inet import TCP
    from scapy.layers.l2 import Ether

    frames = conversation(data_packets=30)
    # one is sent again, and a packet later so is its acknowledgement
    frames[20:20] = [frames[17]]
    results = tfrctrace.open(write_capture("c.pcap", frames)).results()
    found = {
        (mark.kind, mark.time_ns, mark.bytes)
        for mark in overview(tiles_of(results.sequence))
        if mark.kind != "window"
    }
    expected = set()
    for place, frame in enumerate(frames):
        tcp = Ether(frame)[TCP]
        time_ns = START_NS + place * 10_000_000
        if tcp.sport == 80:
            expected.add(("acknowledged", time_ns, tcp.ack - 1000))
        elif len(tcp.payload):
            expected.add(("classified" if place == 20 else "data", time_ns, tcp.seq - 1000))
    # counted from the SYN, which has 1000
    assert found == expected


def test_packets_that_were_not_read_are_owned_up_to(two_flows, small_trace):
    section = sequence_section(content_of(two_flows))
    assert "Not drawn" in section.paragraphs[0][0]
    udp = small_trace().source().flow(1, transport="udp")
    joined = sequence_section(content_of(two_flows, joined=True))
    assert "see the report of a single one" in joined.paragraphs[0][0]
    assert not sequence_section(content_of(udp)).paragraphs


def test_the_details_of_a_flow_have_its_rate_and_what_is_known(two_flows):
    report = build_report(two_flows.results(), title="t")
    details = {one.key: one for one in report.details}["flow-2"]
    rates, rtts = details.figures
    # ten bins of 1000 bytes in 0.1 s, of which the sixth is silent
    assert rates.curves[0].values == (8e4,) * 5 + (0.0,) + (8e4,) * 4
    assert rates.curves[0].marked == (4,)
    assert (rtts.curves[0].low[0], rtts.curves[0].high[0]) == (40.0, 60.0)
    known = {one.name: one.values for one in details.known}
    assert known["retransmitted_packets"] == ("1",)
    assert "zero_windows" not in known
