"""`groups --limits`, `metrics --by`, and red stretches in the figures of a report."""

import io
import json
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.group_metrics import group_metrics

MIXED = Path(__file__).parents[3] / "sample_traces" / "mixed.pcap.zst"

LIMITS = """
[[objective]]
require = "p95(rtt_ms) < 90 ms"
by = "host"
every = "1s"
raise = 2

[[objective]]
require = "retransmission_ratio < 2 %"
by = "host"
every = "1s"
"""


@pytest.fixture
def limits(tmp_path):
    path = tmp_path / "limits.toml"
    path.write_text(LIMITS)
    return path


def test_rows_of_groups_have_verdicts(run, limits):
    done = run("groups", "--limits", limits, "--rows", "0", MIXED)
    assert done.status == 0, done.err
    results = tfrctrace.open(MIXED).objectives(limits)
    gravity = {"": 0, "met": 1, "violated": 2}
    expected = {}
    for result in results:
        for group, start, verdict in result.intervals.select("group", "start_ns", "verdict").iter_rows():
            word = "" if verdict == "no_data" else verdict
            key = (group, start // 10**9 % 60)
            expected[key] = max(expected.get(key, ""), word, key=gravity.get)
    found = {}
    for line in done.out.splitlines()[2:66]:
        group, _, time, *rest = line.split()
        word = rest[-1] if rest[-1] in gravity else ""
        found[group, int(time[-2:])] = word
    assert found == expected
    assert "p95(rtt_ms) < 90 ms every 1 s by host: 71.42 % of 28 seconds with data met it" in done.out
    document = json.loads(run("groups", "--limits", limits, "--format", "json", MIXED).out)
    assert [one["total"]["violated"] for one in document["objectives"]] == [8, 2]


def test_objectives_of_other_groups_are_refused(run, limits):
    refused = run("groups", "--limits", limits, "--by", "link", MIXED)
    assert (refused.status, "is of other groups or intervals" in refused.err) == (2, True)
    limits.write_text(LIMITS.replace('every = "1s"', 'every = "2s"', 1))
    assert "of several groupings" in run("groups", "--limits", limits, MIXED).err
    limits.write_text(LIMITS)
    assert (
        "applies to the table and to JSON" in run("groups", "--limits", limits, "--format", "csv", MIXED).err
    )


def test_metrics_of_groups_are_those_of_their_rows(run):
    groups = tfrctrace.open(MIXED).groups("host", "1s")
    found = group_metrics(groups)
    p95 = found.filter(metric="rtt_p95_ms")
    rows = groups.rows.filter(pl.col("rtt_p95_ms").is_not_null())
    key = ["group", "direction", "start_ns"]
    both = p95.join(rows.select(*key, "rtt_p95_ms"), on=key)
    assert len(both) == len(rows) == len(p95)
    assert both["value"].to_list() == pytest.approx(both["rtt_p95_ms"].to_list())
    for start, direction, value, n in (
        found.filter(metric="jain").select("start_ns", "direction", "value", "n").iter_rows()
    ):
        rates = groups.rows.filter(start_ns=start, direction=direction)["goodput_bps"].drop_nulls()
        assert (value, n) == (pytest.approx(rates.sum() ** 2 / (len(rates) * (rates**2).sum())), len(rates))
    done = run("metrics", "--by", "host", "--every", "1s", "--format", "csv", MIXED)
    assert len(pl.read_csv(io.StringIO(done.out))) == len(found)
    only = run("metrics", "--by", "host", "-m", "jain", "--format", "json", MIXED)
    assert {row["metric"] for row in json.loads(only.out)["metrics"]} == {"jain"}
    text = run("metrics", "--by", "host", "--every", "5s", "--timezone", "Europe/Berlin", MIXED).out
    assert "09:39:35" in text
    assert max(map(len, text.splitlines())) <= 80
    assert run("metrics", "--every", "1s", MIXED).err.startswith("error: `--every` needs `--by`")
    assert "no metric `speed`" in run("metrics", "--by", "host", "-m", "speed", MIXED).err


def test_figures_and_pages_show_when_objectives_were_violated(run, limits, tmp_path):
    trace = tfrctrace.open(MIXED)
    report = trace.report_parts(title="t", objectives=limits)
    over_time = [figure for section in report.sections for figure in section.figures if figure.axis.is_time]
    begin_ns = trace.sources[0]["start_ns"]
    expected = [
        ((at - begin_ns) / 1e9, (end - begin_ns) / 1e9)
        for at, end in (
            (1_795_250_378 * 10**9, 1_795_250_379 * 10**9),
            (1_795_250_380 * 10**9, 1_795_250_383 * 10**9),
        )
    ]
    assert len(over_time) > 5
    for figure in over_time:
        assert figure.bad_s == tuple(expected), figure.key
        assert figure.caption.endswith("In red: an objective was violated.")
    assert run("report", "--limits", limits, "--pages", "pages", MIXED).status == 0
    page = (tmp_path / "pages" / "mixed.html").read_text()
    assert "In red: an objective was violated." in page
    assert page.count('class="f-bad"') > 20
    refused = run("report", "--limits", limits, "--results", "kept", MIXED)
    assert "saved results hold no intervals to judge" in refused.err
