"""Why flows were no faster, in a report, against what the sending kernels knew of the same connections."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import polars as pl
import pytest
from ip_packets import ethernet, udp

import tfrctrace
from tfrctrace.metrics.flow.causes import CAUSES, CausesOfRows, rows_of_causes
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.files.saved_results import load, save
from tfrctrace.reports.page.html import render
from tfrctrace.reports.sections.why import ledger
from tfrctrace.reports.why_words import bloat, queue_ms

RUNS = Path(__file__).resolve().parents[2] / "data" / "causes"
RECEIVER, BURSTS, POLICER = "0002-receiver-vegas", "0005-bursts-veno", "0010-policer-yeah"


def capture(run):
    return RUNS / run / "sender.pcap.gz"


@pytest.fixture(scope="module")
def reports():
    made = {}

    def report_of(run, **options):
        key = run, *options.items()
        if key not in made:
            made[key] = build_report(tfrctrace.open(capture(run), **options).results(), title="t")
        return made[key]

    return report_of


def section(report, key):
    return next(one for one in report.sections if one.key == key)


def text(words):
    return "".join(word if isinstance(word, str) else word.text for word in words)


def test_a_report_names_the_congestion_control_and_saved_results_keep_it(tmp_path):
    path = RUNS.parent / "congestion_controls" / "38-0021-htcp" / "sender.pcap.gz"
    results = tfrctrace.open(path).results()
    save(results, str(tmp_path / "saved"), title="t", version="1")
    for found in (results, load(str(tmp_path / "saved"))[0]):
        said = text(section(build_report(found, title="t"), "why").paragraphs[0])
        assert "Its congestion control behaves like htcp: " in said
    sums, controls = results.table("cause_sums"), results.named_controls
    directions = CausesOfRows(rows_of_causes(sums, results.flows, controls=controls))
    (names,) = [one.values for one in ledger(list(directions)) if one.name == "congestion_control"]
    assert names == ("htcp",)


def held_s(figure, *causes):
    """Return how long the steps of a figure are at some causes."""
    (curve,) = figure.curves
    wanted = {float(figure.levels.index(cause) + 1) for cause in causes if cause in figure.levels}
    steps = zip(pairwise(curve.x), curve.values, strict=False)
    return sum(end_s - start_s for (start_s, end_s), level in steps if level in wanted)


def test_the_first_screen_says_why_the_largest_flow_was_no_faster(reports, truth):
    _, known = truth.read(RUNS / RECEIVER)
    (said,) = [
        text(words) for words in section(reports(RECEIVER), "summary").headline if "Why" in text(words)
    ]
    assert said == "Why flow 1 was no faster: for 94.9 % of 21.8 s the receive window was full."
    assert known.receiver_s / known.life_s == pytest.approx(0.95, abs=0.05)


def test_the_first_screen_says_for_sure_that_the_network_limited_and_how_it_looks(reports, truth):
    run = "0000-bottleneck-reno"
    _, known = truth.read(RUNS / run)
    said = next(text(words) for words in section(reports(run), "summary").headline if "Why" in text(words))
    found = re.search(r": for ([\d.]+) % of [\d.]+ s the network limited it; it looks as if .+\.$", said)
    assert found
    assert float(found[1]) / 100 <= known.network_s / known.life_s + 0.02


@pytest.mark.parametrize("run", [RECEIVER, BURSTS, POLICER])
def test_bars_and_time_lines_have_the_time_that_the_kernel_counted(reports, truth, run):
    _, known = truth.read(RUNS / run)
    report = reports(run)
    why = section(report, "why")
    (ledgers,) = why.charts
    shares = {series.label: series.values[0] for series in ledgers.series}
    application_s, receiver_s = known.application_s, known.receiver_s
    near = {"abs": 0.05 * known.life_s}
    bar_s = known.life_s * (shares.get("application", 0) + shares.get("server", 0))
    assert bar_s == pytest.approx(application_s, **near)
    assert known.life_s * shares.get("receiver", 0) == pytest.approx(receiver_s, **near)
    assert sum(shares.values()) == pytest.approx(1, abs=0.03)
    over_time = why.figures[0]
    assert held_s(over_time, "application", "server") == pytest.approx(application_s, **near)
    assert held_s(over_time, "receiver") == pytest.approx(receiver_s, **near)
    # within a row of the table of flows, in the bins of the throughput below it
    details = report.details[0]
    of_row, throughput, *_ = details.figures
    assert (of_row.key, throughput.key) == ("flow-1-causes", "flow-1-throughput")
    assert of_row.linked == throughput.linked
    assert of_row.lasted_s == pytest.approx(throughput.lasted_s, abs=known.life_s / 100)
    assert held_s(of_row, "receiver") == pytest.approx(receiver_s, **near)


def test_a_row_of_the_flows_has_the_main_cause_and_opens_to_the_ledger(reports):
    report = reports(RECEIVER)
    (table,) = section(report, "flows").tables
    place = [heading.label for heading in table.headings].index("Held back by")
    assert table.rows[0].cells[place].text == "receiver (94.9 %)"
    known = {one.name: one.values[0] for one in report.details[0].known}
    assert known["main_cause"] == "receiver"
    assert known["receiver_share"] == "94.9 %"
    assert "policer_share" not in known


def test_away_from_the_sender_the_page_says_that_and_names_no_cause(reports):
    report = reports(RECEIVER, vantage="receiver")
    (said,) = [text(words) for words in section(report, "summary").headline if "Why" in text(words)]
    assert said.startswith(
        "Why flow 1 was no faster is unknown: it was, or may have been, captured away from"
    )
    (paragraph,) = section(report, "why").paragraphs
    assert "Reason: it was, or may have been, captured away from the sender" in text(paragraph)
    (over_time,) = section(report, "why").figures
    assert set(over_time.levels) <= {"handshake", "unknown"}


def test_flows_of_which_nothing_tells_are_named_with_the_reason():
    report = build_report(tfrctrace.open(Path("sample_traces/dumbbell.tr.xz")).results(), title="t")
    why = section(report, "why")
    named = [text(words).partition(":")[0] for words in why.paragraphs]
    assert named == ["Flow 1 (TFRC)", "Flow 2 (UDP)", "Flow 3 (TCP)"]
    assert not why.charts
    (table,) = section(report, "flows").tables
    assert "Held back by" not in {heading.label for heading in table.headings}


def test_the_first_screen_names_the_longest_queue(reports):
    headline = section(reports("0004-send_buffer-westwood"), "summary").headline
    (said,) = [text(words) for words in headline if "Bufferbloat" in text(words)]
    assert said.startswith("Bufferbloat of flow 1: round-trip times rose from 129 ms to 304 ms")
    assert not any("Bufferbloat" in text(words) for words in section(reports(RECEIVER), "summary").headline)


def test_causes_at_both_ends_of_64_bits_make_few_points(reports):
    results = tfrctrace.open(capture(RECEIVER)).results()
    first, last = -(2**63), 2**63 - 1
    rows = (
        results.tables["causes"]
        .head(2)
        .with_columns(
            pl.Series("start_ns", [first, -1]),
            pl.Series("end_ns", [-1, last]),
            cause=pl.Series(["loss", "mark"]),
        )
    )
    report = build_report(replace(results, tables={**results.tables, "causes": rows}), title="t")
    figures = [*section(report, "why").figures, *report.details[0].figures]
    assert all(len(curve.x) < 5_000 for figure in figures for curve in figure.curves)
    assert "Why no faster" in render(report)


def test_each_cause_has_a_bar_of_its_own_look(reports):
    (ledgers,) = section(reports(BURSTS), "why").charts
    looks = [series.colour for series in ledgers.series]
    assert len(set(looks)) == len(looks)
    assert {series.label.replace(" ", "_") for series in ledgers.series} <= set(CAUSES)


def test_a_flow_without_data_fills_no_queue():
    # a receiver may acknowledge single segments up to 500 ms late (RFC 9293 section 3.8.6.3)
    waiting = next(iter(tfrctrace.open(capture("0009-server-nv")).why()))
    waiting = msgspec.structs.replace(waiting, rtt_p95_ms=waiting.base_rtt_ms + 200)
    assert bloat(waiting, [waiting]) is None
    (filling,) = [
        one for one in tfrctrace.open(capture("0004-send_buffer-westwood")).why() if queue_ms(one) > 100
    ]
    words = bloat(
        waiting,
        [waiting, msgspec.structs.replace(filling, flow=9, src=waiting.src, start_ns=waiting.start_ns)],
    )
    assert "flow 9 filled it most, if it takes the same path" in words


def test_a_figure_has_windows_as_the_kernel_had_them_and_as_predicted():
    folder = RUNS / "0000-bottleneck-reno"
    results = tfrctrace.open(folder / "sender.pcap.gz").results()
    windows = results.predicted_windows.sort("time_ns")
    best, second = windows["congestion_control"].unique(maintain_order=True).sort().to_list()
    assert "reno" in {best, second}
    # snd_cwnd of the sending kernel, which logged it every 20 ms; a recovery reduces it by and by (RFC 6937)
    kernel = pl.read_csv(folder / "flow.tcp_info.csv.gz").select("time_ns", "snd_cwnd", "snd_mss")
    known = windows.join_asof(kernel.sort("time_ns"), on="time_ns")
    segments = known["cwnd_bytes"] / known["snd_mss"]
    assert ((segments - known["snd_cwnd"]).abs() <= 2).mean() >= 0.85
    reno = windows.filter(congestion_control="reno")
    assert (reno["cwnd_bytes"] - reno["predicted_bytes"]).abs().median() <= 1448
    figures = {one.key: one for one in section(build_report(results, title="t"), "why").figures}
    figure = next(one for key, one in figures.items() if key.startswith("predicted-windows"))
    assert figure.curves[0].label == "observed"
    assert "as reno predicts" in [curve.label for curve in figure.curves]
    assert len(figure.curves) == 3


def test_a_small_connection_beside_much_udp_is_not_the_first_that_is_said(write_capture, conversation):
    """As the control connection of iperf3: 300 bytes beside 200 kB."""
    datagram = ethernet(udp(("10.0.0.1", 4000), ("10.0.0.2", 5000), bytes(1000)))
    for number, is_said in ((200, False), (10, True)):
        results = tfrctrace.open(write_capture("c.pcap", [*conversation(), *[datagram] * number])).results()
        report = build_report(results, title="t")
        said = [text(words) for words in section(report, "summary").headline]
        assert any("was no faster" in words for words in said) == is_said
        assert section(report, "why").paragraphs
