"""Objectives in `tfrctrace check`: who missed a target and when, in every form of the result."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from ip_packets import ethernet, udp
from polars.testing import assert_frame_equal

import tfrctrace
from tfrctrace.base.durations import duration_text, parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.base.grouping import parse_grouping
from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.objectives import Extent, judge_objective
from tfrctrace.reports.printers.objectives import share_text, span_text, verdict_line
from tfrctrace.reports.units import format_value

ROOT = Path(__file__).parents[3]
MIXED = ROOT / "sample_traces" / "mixed.pcap.zst"
TWO_FLOWS = ROOT / "sample_traces" / "two-flows.pcapng.gz"
DUMBBELL = ROOT / "sample_traces" / "dumbbell.tr.xz"

DELAY = """
[[objective]]
name = "delay"
require = "p95(rtt_ms) < 90 ms"
severe = "p95(rtt_ms) < 100 ms"
by = "host"
every = "1s"
target = "75 %"
"""
LOSSES = """
[[objective]]
name = "losses"
require = "retransmission_ratio < 2 %"
every = "1s"
target = "90 %"
level = "warn"
"""


@pytest.fixture
def limits(tmp_path):
    def write(text):
        path = tmp_path / "limits.toml"
        path.write_text(text)
        return path

    return write


def test_failing_runs_groups_and_stretches_are_named(run, limits):
    done = run("check", "--limits", limits(DELAY + LOSSES), "-q", MIXED, TWO_FLOWS)
    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[1].startswith("fail  delay: p95(rtt_ms) < 90 ms every 1 s by host          4.54 %  75 %")
    assert lines[2].startswith("warn  losses: retransmission_ratio < 2 % every 1 s by link  87.5 %  90 %")
    assert f"delay: `{MIXED}`" in lines
    assert f"delay: `{TWO_FLOWS}`" in lines
    text = (
        "  192.0.2.1: 4.54 % of 22 seconds with data met it, 3 violated, 18 severely, 2 without data\n"
        "    2026-11-21 08:39:11 to 08:39:32 UTC (106 ms, n 174), 21 intervals violated, 18 severely\n"
    )
    assert text in done.out
    assert "(4.89 %, n 307)" in done.out
    assert done.out.endswith("0 of 2 checks of 2 runs passed, 1 failed, 1 warned\n")


def test_every_form_has_the_same_facts(run, limits, tmp_path):
    summary, junit = tmp_path / "summary.md", tmp_path / "check.xml"
    options = ("--summary", summary, "--junit", junit, "--annotations", "github", "--format", "json")
    done = run("check", "--limits", limits(DELAY + LOSSES), TWO_FLOWS, *options)
    assert done.status == 1
    delay, losses = json.loads(done.out)["checks"]
    assert (delay["kind"], delay["effect"], losses["effect"]) == ("objective", "fail", "pass")
    assert (delay["against"], delay["value"]) == (0.75, 1 / 22)
    facts = delay["objective"]
    assert (facts["by"], facts["every_ns"], facts["unit"], facts["least"]) == ("host", 10**9, "ms", 20)
    (of_run,) = facts["runs"]
    assert (of_run["run"], of_run["groups"], of_run["failing_groups"]) == (str(TWO_FLOWS), 2, 2)
    assert {one["group"] for one in of_run["failing"]} == {"192.0.2.1", "192.0.2.2"}
    assert [one["intervals"] for one in of_run["stretches"]] == [21, 21]
    assert ",line=2,title=delay::" in done.err
    stretch = "08:39:11 to 08:39:32 UTC (106 ms, n 174)"
    for text in (summary.read_text(), junit.read_text(), done.err):
        assert stretch in text
    (case, _) = ET.parse(junit).getroot()
    assert case.get("classname") == "tfrctrace.objective"
    # the same numbers by the API
    (result,) = tfrctrace.open(TWO_FLOWS).objectives([parse_objective_of(DELAY)])
    total = of_run["total"]
    assert (result.total.met, result.total.severe) == (total["met"], total["severe"])
    assert result.total.intervals == 2 * 24


def parse_objective_of(text):
    import tomllib

    return tomllib.loads(text)["objective"][0]


def test_the_table_is_that_of_the_groups():
    (result,) = tfrctrace.open(MIXED).objectives([parse_objective_of(DELAY)])
    rows = tfrctrace.open(MIXED).groups("host", "1s").rows
    # the worse direction of each host, of those with enough samples
    known = rows.filter(pl.col("rtt_samples") >= 20)
    by_hand = known.group_by("group", "start_ns").agg(pl.col("rtt_p95_ms").max().alias("value"))
    ours = result.intervals.filter(pl.col("verdict") != "no_data").select("group", "start_ns", "value")
    assert_frame_equal(ours, by_hand, check_row_order=False)
    broken = by_hand.filter(pl.col("value") >= 90).height
    assert result.total.violated + result.total.severe == broken


def test_a_cache_gives_the_same(run, limits, tmp_path):
    folder = tmp_path / "cache"
    arguments = ("check", "--limits", limits(DELAY), TWO_FLOWS, "--format", "json", "--cache", folder)
    first = run(*arguments)
    assert list(folder.rglob("*.gz"))
    again = run(*arguments)
    assert (again.status, again.out) == (first.status, first.out)
    changed = limits(DELAY.replace("90 ms", "95 ms"))
    assert run(*arguments[:2], changed, *arguments[3:]).out != first.out


def test_want_of_data_is_unknown_and_never_passes(run, limits):
    path = limits(DELAY.replace('"1s"', '"1ns"'))
    done = run("check", "--limits", path, TWO_FLOWS)
    assert done.status == 1
    assert "not known: no interval has 20 samples" in done.out
    assert run("check", "--limits", path, TWO_FLOWS, "--unknown", "warn").status == 0
    path = limits(LOSSES.replace("2 %", "2 % where group 1.2.3.4").replace("warn", "fail"))
    done = run("check", "--limits", path, TWO_FLOWS)
    assert (done.status, "not known: no packets of such a group" in done.out) == (1, True)


def test_standard_input_has_limits_and_objectives_of_one_grouping(run, limits):
    arguments = ("check", "-q", "-", "--limits")
    one = limits('[[limit]]\nrequire = "p95(rtt_ms) < 120"\n' + DELAY)
    done = run(*arguments, one, stdin=TWO_FLOWS.read_bytes())
    assert (done.status, done.out.count("4.54 %")) == (1, 3)
    done = run(*arguments, limits(DELAY + LOSSES), stdin=TWO_FLOWS.read_bytes())
    assert done.status == 2
    assert "the table of groups by link was not collected" in done.err


def test_the_objectives_of_the_documentation_are_those_that_ship():
    _, objectives = re.findall(
        r"```toml\n(.*?)```", (ROOT / "docs" / "check.md").read_text(), flags=re.DOTALL
    )
    assert objectives == (ROOT / "sample_traces" / "objectives.toml").read_text()


def test_labels_group_flows(run, limits):
    path = limits(DELAY.replace('"host"', '"label"'))
    done = run("check", "--limits", path, "--label", "cubic=port 5201", TWO_FLOWS, "--format", "json")
    (check,) = json.loads(done.out)["checks"]
    assert {one["group"] for one in check["objective"]["runs"][0]["failing"]} <= {"cubic", "tcp"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DELAY.replace("90 ms", "0 ms"), "line 2: `p95(rtt_ms) < 0 ms` is never met: no value is below 0"),
        (DELAY + LOSSES.replace("2 %", "2 s"), "line 10: `retransmission_ratio < 2 s` has a limit in `s`"),
        (DELAY + '[[limit]]\nrequire = "p95(rtt_ms)"', "line 9: `p95(rtt_ms)` is not a requirement"),
        ("[objective]\nrequire = 'p95(rtt_ms) < 8'", "`objective` must be a list"),
        ("objective = [3]", "`[[objective]]` must be a table"),
        ("", "has no `[[limit]]`, no `[[compare]]` and no `[[objective]]`"),
    ],
)
def test_a_wrong_file_is_named_with_the_line(run, limits, text, message):
    path = limits(text)
    done = run("check", "--limits", path, TWO_FLOWS)
    assert done.status == 2
    assert f"`{path}`" in done.err
    assert message in done.err


@pytest.mark.parametrize("share", ["wifi_retry_ratio", "path_loss_ratio", "wifi_airtime_share"])
def test_a_share_may_be_limited_in_percent(limits, share):
    path = limits(f"[[objective]]\nrequire = '{share} < 5 %'\nby = 'link'\n")
    (result,) = tfrctrace.open(TWO_FLOWS).objectives(path)
    assert result.objective.bound == 0.05


def test_a_file_without_objectives_is_refused_by_the_api(limits):
    path = limits('[[limit]]\nrequire = "p95(rtt_ms) < 120"\n')
    with pytest.raises(UsageError, match="has no `\\[\\[objective\\]\\]`"):
        tfrctrace.open(TWO_FLOWS).objectives(path)


def test_rows_that_were_left_out_leave_a_verdict_unknown(run, limits, monkeypatch):
    monkeypatch.setattr("tfrctrace.gate.objective_results.MAX_ROWS", 10)
    asked = {"require": "p95(rtt_ms) < 900 ms", "by": "host", "every": "1s"}
    (result,) = tfrctrace.open(TWO_FLOWS).objectives([asked])
    assert not result.is_complete
    text = DELAY.replace("90 ms", "800 ms").replace("100 ms", "900 ms")
    done = run("check", "--limits", limits(text), MIXED)
    assert (done.status, "not known: packets were left out" in done.out) == (1, True)


def test_names_of_hosts_in_results_are_safe(run, limits, tmp_path):
    name = tmp_path / "evil\x1b[31m|name.pcapng.gz"
    name.write_bytes(TWO_FLOWS.read_bytes())
    summary = tmp_path / "summary.md"
    done = run("check", "--limits", limits(DELAY.replace('"host"', '"link"')), name, "--summary", summary)
    assert "\x1b" not in done.out + summary.read_text()


def test_simulations_count_seconds(run, limits):
    done = run("check", "--limits", limits(DELAY), DUMBBELL)
    assert "2 s to 19 s (188 ms, n 80)" in done.out


def test_words():
    assert verdict_line(judged_minutes(), parse_duration_ns("1min"), "ms") == (
        "50 % of 4 minutes with data met it, 1 violated, 1 severely, 2 without data; "
        "worst 2026-01-05 00:01 to 00:03 UTC (300 ms, n 50)"
    )
    assert share_text(1409 / 1410) == "99.92 %"
    assert share_text(0.99999) == "99.99 %"
    assert list(map(share_text, (0.995, 1.0, 0.0, None))) == ["99.5 %", "100 %", "0 %", "–"]
    assert (format_value(0.034, "%"), format_value(3.2e6, "bit/s")) == ("3.40 %", "3.20 Mbit/s")
    assert (format_value(3.0, ""), format_value(1500.0, "bytes")) == ("3", "1.50 kB")
    day = 1_767_571_200 * 10**9
    assert span_text(day, day + 86_400 * 10**9) == "2026-01-05 00:00 to 2026-01-06 00:00 UTC"
    assert span_text(day + 1, day + 10**9) == "2026-01-05 00:00:00.000000 to 00:00:01.000000 UTC"
    for text in ("90 s", "5 min", "1 h", "250 µs", "1 ns"):
        assert duration_text(parse_duration_ns(text.replace("µ", "u"))) == text


def judged_minutes():
    from tfrctrace.metrics.groups import Groups
    from tfrctrace.parsers.schema import polars_schema

    day, minute_ns = 1_767_571_200 * 10**9, 60 * 10**9
    rtts_ms = [20, 90, 300, 20]
    key = [{"group": "a", "direction": "fwd", "start_ns": day + i * minute_ns} for i in range(4)]
    rows = [{**one, "end_ns": one["start_ns"] + minute_ns, "packets": 50} for one in key]
    buckets = [
        {**one, "measure": "rtt", "from_ns": rtt_ms * 10**6, "to_ns": rtt_ms * 10**6, "samples": 50}
        for one, rtt_ms in zip(key, rtts_ms, strict=True)
    ]
    groups = Groups(
        parse_grouping("link", "1min"),
        pl.DataFrame(rows, schema=polars_schema("groups")),
        pl.DataFrame(buckets, schema=polars_schema("group_buckets")),
    )
    asked = parse_objective({"require": "p95(rtt_ms) < 80", "severe": "p95(rtt_ms) < 200"})
    return judge_objective(asked, groups, Extent(day, day + 6 * minute_ns - 1)).total


def test_a_clock_that_steps_by_years_is_counted_and_not_passed_over(run, limits, tmp_path):
    frame = ethernet(udp(("192.0.2.1", 5000), ("192.0.2.2", 6000), b"12345"))
    seconds = (1_800_000_000, 1_800_000_001, 1_000_000_000, 1_000_000_001)
    records = b"".join(struct.pack("<IIII", one, 0, len(frame), len(frame)) + frame for one in seconds)
    capture = tmp_path / "stepped.pcap"
    capture.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1) + records)
    path = limits('[[objective]]\nrequire = "sum(packets) == 1"\nevery = "1ms"\nleast = 1\n')
    done = run("check", "--limits", path, capture)
    assert "the clock was set back" in done.err
    # the interval of the first packet by time is whole, that of the last is not
    assert "800,000,000,998 of 800,000,001,001 intervals without data" in done.out
