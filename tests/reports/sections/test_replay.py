"""The section that holds a replay against what was really sent and received."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from ns2_tfrc_agents import agent_rows

import tfrctrace
from tfrctrace.report_data.gather_results import gather_results
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.page.html import render
from tfrctrace.reports.report_content import prepare
from tfrctrace.reports.results import Results
from tfrctrace.reports.sections.replay import MOST_POINTS, replay_section
from tfrctrace.trace.passes import Passes

DATA = Path(__file__).parents[2] / "data"
NS2 = DATA / "ns2" / "tfrc"


def section_of(path, **how):
    report = build_report(gather_results(tfrctrace.open(path, **how)), title="t")
    return {section.key: section for section in report.sections}.get("replay")


@pytest.fixture(scope="module")
def outage():
    return section_of(NS2 / "outage.tr.xz")


def value_at(curve, time_s):
    before = [value for x, value in zip(curve.x, curve.values, strict=True) if x <= time_s]
    return before[-1] if before else None


def test_x_is_what_the_agent_of_ns_2_had_and_its_colour_says_why(outage):
    agent = pl.DataFrame(agent_rows("outage", "sender")).cast({"time": float, "rate_Bps": float})
    late = agent.filter(pl.col("time").is_between(2, 8), pl.col("branch") != "SLOW_START")
    assert late.height > 10
    (rates, *_) = outage.figures
    curves = {curve.label: curve for curve in rates.curves}
    start_s = 0.5  # the first packet, by the script
    for row in late.iter_rows(named=True):
        found = [value_at(curve, row["time"] - start_s + 1e-4) for curve in rates.curves[:-2]]
        (x_bps,) = [value for value in found if value is not None]
        assert x_bps / 8 == pytest.approx(row["rate_Bps"], rel=1e-4)
    # all packets were lost from 9.0 to 11.2 s
    assert value_at(curves["X, by missing reports"], 10.0 - start_s) is not None
    assert value_at(curves["X, by the equation"], 10.0 - start_s) is None
    assert {"sent", "received (X_recv)"} <= curves.keys()


def test_the_table_has_each_mode_with_its_share_and_its_reasons(outage):
    (table,) = outage.tables
    rows = {row.cells[2].text: row.cells for row in table.rows}
    assert {"slow start", "equation", "receive limited", "no feedback"} == rows.keys()
    assert sum(cells[3].sort for cells in rows.values()) == pytest.approx(1)
    assert rows["no feedback"][6].text == "halved 4"
    assert len({row.key for row in table.rows}) == len(table.rows)


def test_p_and_r_and_what_limits_are_drawn(outage):
    assert [figure.key.rpartition("-")[0] for figure in outage.figures] == [
        "replay-rate-1-fwd",
        "replay-limits-1-fwd",
        "replay-p",
        "replay-r_ms",
    ]


def test_traces_without_reports_of_a_receiver_have_no_such_section():
    assert section_of(DATA / "captures" / "linux-relay-loss-snd.pcap.gz") is None


def test_names_from_outside_are_escaped():
    results = gather_results(tfrctrace.open(NS2 / "outage.tr.xz"))
    hostile = results.flows.with_columns(pl.lit("</title><script>alert(1)</script>").alias("label"))
    page = render(build_report(replace(results, flows=hostile), title="t"))
    assert "<script>alert" not in page
    assert "Allowed, sent and received rate, flow 1 &lt;/title&gt;&lt;script&gt;alert(1)" in page


def test_a_flow_of_an_hour_has_no_more_points_than_a_figure_can_show():
    trace = tfrctrace.open(NS2 / "outage.tr.xz")
    steps = trace.replay("tfrc", profile="ns2")
    long = pl.concat([steps.with_columns(pl.col("time_ns") + n * 30_000_000_000) for n in range(120)])
    results = Results(
        flows=trace.flows, bins=trace.bins, sources=trace.sources, problems=(), tables={"replay": long}
    )
    section = replay_section(prepare(results))
    assert max(len(curve.x) for figure in section.figures for curve in figure.curves) <= MOST_POINTS


def test_what_a_replay_needs_is_read_with_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    # what was drawn of the second pass is let go at the end
    monkeypatch.setattr(Passes, "forget", lambda _trace, _reading: None)
    trace = tfrctrace.open(NS2 / "outage.tr.xz")
    gather_results(trace)
    first, second = (collected for collected, _ in trace._readings)
    assert {"flows", "bins"} <= first
    assert {"rtt", "losses", "feedback", "flows"} <= second
