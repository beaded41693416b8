"""`tfrctrace check` as a CI server runs it: repeated runs, regressions, limits, and what is written."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest

import tfrctrace
from tfrctrace.gate.requirement import parse_requirement
from tfrctrace.metrics.results.document import Tool
from tfrctrace.metrics.results.verdict import GateResult, Verdict
from tfrctrace.reports.files.junit import write_junit
from tfrctrace.reports.printers.gate import (
    MOST_SUMMARY_BYTES,
    annotation_lines,
    gate_status,
    write_gate,
    write_summary,
)
from tfrctrace.runs.cache import Cache

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "tests" / "data" / "gate" / "runs"
TWO_FLOWS = ROOT / "sample_traces" / "two-flows.pcapng.gz"
ONE_RUN = RUNS / "before-1.tr.xz"
START_S = 1_700_000_000


def of(name):
    found = sorted(RUNS.glob(f"{name}-*.tr.xz"))
    assert len(found) in {5, 10}
    return found


@pytest.fixture(scope="module")
def baseline(run_in, tmp_path_factory):
    folder = tmp_path_factory.mktemp("baseline")
    done = run_in(folder, "check", *of("before"), "--write-baseline", "baseline.json", "-q")
    assert (done.status, done.out) == (0, "nothing to check in 10 runs\n")
    return folder / "baseline.json"


def checks(done):
    document = json.loads(done.out)
    return document, {one["check"]: one for one in document["checks"]}


def test_ten_repeated_runs_pass(run, baseline):
    done = run("check", *of("again"), "--baseline", baseline, "--format", "json")
    document, found = checks(done)
    assert (done.status, document["status"], len(document["runs"])) == (0, "pass", 10)
    assert {"sum(goodput_bps)", "p95(rtt_ms)", "mean(plr)", "mean(delay_p95_ms)"} <= found.keys()
    assert {one["outcome"] for one in found.values()} == {"pass"}


@pytest.mark.parametrize(
    ("name", "failing", "passing"),
    [
        ("half", {"sum(goodput_bps)", "mean(delay_p95_ms)"}, {"mean(plr)"}),
        (
            "lossy",
            {"mean(plr)", "sum(retransmitted_packets) / sum(data_packets)", "sum(goodput_bps)"},
            {"p95(rtt_ms)", "mean(delay_p95_ms)"},
        ),
    ],
)
@pytest.mark.parametrize("rules", [(), ("--test", "rank", "--significance", "5%")], ids=["welch", "rank"])
def test_a_rate_halved_and_a_loss_doubled_fail(run, baseline, rules, name, *, failing, passing):
    done = run("check", *of(name), "--baseline", baseline, *rules, "--format", "json")
    document, found = checks(done)
    assert (done.status, document["status"]) == (1, "fail")
    assert {check for check, one in found.items() if one["effect"] == "fail"} >= failing
    assert {found[check]["effect"] for check in passing} == {"pass"}


def test_copies_of_a_run_count_once(run, baseline, tmp_path):
    copies = [tmp_path / f"{number}.tr.xz" for number in range(5)]
    for copy in copies:
        copy.write_bytes((RUNS / "again-11.tr.xz").read_bytes())
    done = run("check", *copies, "--baseline", baseline, "--format", "json")
    document, _ = checks(done)
    assert document["runs"] == [str(copies[0])]
    assert done.err.count("so both count once") == 4
    # as the same run alone
    alone = run("check", RUNS / "again-11.tr.xz", "--baseline", baseline, "--format", "json")
    assert done.status == alone.status


@pytest.mark.parametrize(("name", "status"), [("again", 0), ("half", 1)])
def test_one_run_is_enough_against_ten(run, baseline, name, status):
    for path in of(name)[:3]:
        assert run("check", path, "--baseline", baseline, "--compare", "sum(goodput_bps)").status == status


def test_tolerance_significance_and_levels_of_a_file_decide(run, baseline, tmp_path):
    arguments = ("check", *of("half"), "--baseline", baseline, "--compare", "sum(goodput_bps)")
    assert run(*arguments).status == 1
    assert run(*arguments, "--tolerance", "60%").status == 0
    assert run(*arguments, "--significance", "1e-15").status == 0
    limits = tmp_path / "limits.toml"
    limits.write_text('[[compare]]\nquantity = "sum(goodput_bps)"\nlevel = "warn"\nname = "rate"\n')
    done = run("check", *of("half"), "--baseline", baseline, "--limits", limits)
    assert (done.status, "warn  rate: sum(goodput_bps)" in done.out) == (0, True)
    limits.write_text('[[compare]]\nquantity = "sum(goodput_bps)"\ntolerance = "60%"\n')
    assert run("check", *of("half"), "--baseline", baseline, "--limits", limits).status == 0
    limits.write_text('[[compare]]\nquantity = "sum(goodput_bps)"\ntolerance = 0.3\nbetter = "lower"\n')
    assert run("check", *of("half"), "--baseline", baseline, "--limits", limits).status == 0


def test_limits_fail_or_warn_or_hold(run):
    done = run(
        "check",
        TWO_FLOWS,
        "-r",
        "p95(rtt_ms) < 120 ms",
        "--require",
        "mean(goodput_bps) > 1 Gbit/s",
        "--warn",
        "min(jain) > 0.99",
        "--label",
        "cubic=port 5201",
        "-r",
        "goodput_bps > 3M where label cubic",
        "--least-packets",  # the control connections are slow
        "20",
    )
    assert done.status == 1
    effects = [line.split()[0] for line in done.out.splitlines()[1:5]]
    assert effects == ["pass", "fail", "pass", "warn"]
    assert done.out.endswith("2 of 4 checks of 1 run passed, 1 failed, 1 warned\n")


def test_metrics_are_taken_as_the_options_say(run):
    arguments = ("check", TWO_FLOWS, "--format", "json", "-r", "sum(rate_bps) > 1")

    def value(*more):
        return json.loads(run(*arguments, *more).out)["checks"][0]["value"]

    plain = value()
    assert value("--basis", "throughput") > plain
    assert value("--warmup", "5s") != plain
    assert value("--window", "4s") != plain
    assert value("--filter", "tcp port 5201") < plain
    assert value("--only-labelled", "--label", "a=port 5201") < plain
    count = ("check", TWO_FLOWS, "-r", "count(flow) == 4")
    assert (run(*count).status, run(*count, "--least-packets", "20").status) == (0, 1)


SHORT_FLOWS = ROOT / "tests" / "data" / "captures" / "linux-small-flows-snd.pcap.gz"


@pytest.mark.parametrize("capture", [SHORT_FLOWS, TWO_FLOWS], ids=["short flows", "two flows"])
def test_columns_and_samples_count_every_flow(run, capture):
    trace = tfrctrace.open(capture)
    assert trace.flows["data_packets"].filter(trace.flows["data_packets"] < 20).len() > 0
    rtts_ms = sorted(trace.rtt["rtt_ns"] / 1e6)
    nearest_rank = rtts_ms[math.ceil(0.95 * len(rtts_ms)) - 1]
    assert value_of(run, capture, "-r", "p95(rtt_ms) < 1") == nearest_rank
    assert value_of(run, capture, "-r", "count(rtt_ms) < 1") == len(rtts_ms)
    assert value_of(run, capture, "-r", "count(flow) < 1") == trace.flows["flow"].n_unique()


@pytest.mark.parametrize("flow", [1, 3])
def test_samples_of_a_short_flow_are_those_of_tshark(run, flow):
    # tshark -Y tcp.analysis.ack_rtt: 6 from one end and 8 from the other, of each control connection
    assert value_of(run, TWO_FLOWS, "-r", f"count(rtt_ms) < 1 where flow {flow}") == 6 + 8


def test_flows_left_out_are_counted_in_every_output(run, tmp_path):
    limits = ("-r", "sum(payload_bytes) > 1", "-r", "min(jain) > 0.1", "-r", "count(rtt_ms) > 1")
    note = "left out: 2 flows with few data packets (`--least-packets`)"
    files = ("--format", "json", "--junit", "j.xml", "--summary", "s.md")
    arguments = ("check", TWO_FLOWS, *limits, *files, "--sparse-share", "0")

    def left_out_counts(*more):
        document, found = checks(run(*arguments, *more))
        left_out = [one["flows_left_out"] for one in found.values()]
        assert [one["reason"] for one in document["checks"]] == [note if flows else "" for flows in left_out]
        number = sum(map(bool, left_out))
        assert (tmp_path / "j.xml").read_text().count(note) == number
        assert (tmp_path / "s.md").read_text().count("left out: 2 flows") == number
        return left_out

    assert left_out_counts() == [0, 2, 0]
    assert left_out_counts("--least-packets", "20") == [2, 2, 2]
    assert left_out_counts("--least-packets", "1") == [0, 0, 0]


def test_sparse_flows_that_an_index_counts_are_in_every_output(run, tmp_path):
    # with the two control connections of iperf3, which carry a few hundred bytes
    limits = ("-r", "min(jain) > 0.1", "-r", "min(jain_without_sparse) > 0.9", "-r", "goodput_bps > 1")
    files = ("--format", "json", "--junit", "j.xml", "--summary", "s.md")
    document, _ = checks(run("check", TWO_FLOWS, *limits, *files, "--least-packets", "1"))
    assert [one["sparse_flows"] for one in document["checks"]] == [2, 0, 0]
    assert [one["outcome"] for one in document["checks"]] == ["pass"] * 3
    for text in (
        document["checks"][0]["reason"],
        *((tmp_path / name).read_text() for name in ("j.xml", "s.md")),
    ):
        assert "counts 2 sparse flows" in text


def test_a_direction_of_samples_is_selected_by_its_source(run):
    trace = tfrctrace.open(TWO_FLOWS)
    own = trace.flows.filter(pl.col("src_port") == 5201).select("flow", "direction")
    samples = trace.rtt.join(own, on=["flow", "direction"])
    assert value_of(run, TWO_FLOWS, "-r", "count(rtt_ms) < 1 where src port 5201") == samples.height > 0


def value_of(run, *arguments):
    return json.loads(run("check", *arguments, "--format", "json").out)["checks"][0]["value"]


def test_two_captures_of_a_path_are_one_run(run, tmp_path):
    captures = ROOT / "tests" / "data"
    pair = (
        captures / "captures" / "linux-relay-loss-snd.pcap.gz",
        captures / "pair" / "linux-relay-loss-rcv.pcap.gz",
    )
    # 26 is what the kernel sent again (tests/data/README.md); nothing but the relay lost packets
    # the same bytes twice would count once
    again = [tmp_path / name for name in ("snd.pcap", "rcv.pcap")]
    for unpacked, packed in zip(again, pair, strict=True):
        unpacked.write_bytes(gzip.decompress(packed.read_bytes()))
    done = run("check", *pair, *again, "--pair", "-r", "sum(lost_packets) == 26")
    assert (done.status, done.out.splitlines()[-1]) == (0, "1 of 1 check of 2 runs passed")
    assert run("check", *pair, "-r", "sum(lost_packets) == 26").status == 1  # not known of each alone
    done = run("check", *pair, pair[0], "--pair", "-r", "sum(lost_packets) == 26")
    assert (done.status, "two captures are a run, and there are 3" in done.err) == (2, True)


def test_a_rotated_capture_is_one_run(run, tmp_path, write_capture, conversation):
    frames = conversation(data_packets=60)
    whole = write_capture("whole.pcap", frames)
    write_capture("parts/1.pcap", frames[:70])
    write_capture("parts/2.pcap", frames[70:], start_s=START_S + 1)
    require = ("-r", "sum(payload_bytes) == 6000", "--least-packets", "1")
    assert run("check", whole, *require).status == 0
    assert run("check", "parts", "--join", *require).status == 0
    assert run("check", "parts/2.pcap", "parts/1.pcap", "--join", *require).status == 0
    # each directory is a run, and the files together are one
    done = run("check", "parts", "parts/1.pcap", "parts/2.pcap", "parts", "--join", *require)
    assert (done.status, "of 3 runs" in done.out) == (0, True)
    done = run("check", "parts", *require)
    assert (done.status, "of 2 runs" in done.out) == (1, True)


def test_metrics_that_need_an_assumption_are(run):
    # as `tfrctrace metrics` has them
    for name, more in (
        ("link_utilisation", ("--capacity", "3M")),
        ("jain_weighted", ("--label", "a=port 5201", "--weight", "one=2")),
        ("responsiveness_s", ("--step", "9s")),
    ):
        rows = json.loads(run("metrics", TWO_FLOWS, "-m", name, *more, "--format", "json").out)["metrics"]
        known = [one["value"] for one in rows if one["value"] is not None]
        assert value_of(run, TWO_FLOWS, "-r", f"min({name}) > 0", *more) == min(known)


def test_runs_are_measured_side_by_side_in_their_order(run):
    arguments = ("check", *of("again"), "-r", "mean(plr) < 1%", "-r", "p95(rtt_ms) < 1", "--format", "json")
    assert run(*arguments, "--jobs", "1") == run(*arguments, "--jobs", "4")


def test_runs_that_were_measured_before_are_taken_from_the_cache(run, tmp_path):
    cut = ROOT / "tests/data/captures/variant-truncated-last-record.pcap.gz"
    arguments = ("check", ONE_RUN, cut, "-r", "sum(wire_bytes) > 0", "--format", "json", "--cache", "kept")
    first = run(*arguments)
    assert run(*arguments) == first
    assert "ends in the middle" in first.err or "cut" in first.err
    entries = list((tmp_path / "kept/runs").iterdir())
    assert len(entries) == 2
    cache = Cache(str(tmp_path / "kept"))
    for entry in entries:
        key = entry.name.partition(".")[0]
        taken = cache.get(key)["taken"]
        taken["sum(wire_bytes)"]["values"] = [4321.0]
        cache.put(key, {**cache.get(key), "taken": taken})
    assert "4321" in run(*arguments).out
    assert "4321" not in first.out
    # another question is another run, and so is another severity
    for more in (("-r", "p95(rtt_ms) < 80"), ("--strict",), ("--window", "500ms")):
        assert "4321" not in run(*arguments, *more).out


@pytest.mark.parametrize(
    "spoil",
    [
        lambda record: {**record, "taken": {}},
        lambda record: {**record, "taken": {"sum(wire_bytes)": {"values": ["4321"], "known": 1, "of": 1}}},
        lambda record: {**record, "objectives": [{}]},
        lambda record: {**record, "more": 1},
    ],
)
def test_a_kept_run_without_what_is_asked_is_measured_again(run, tmp_path, spoil):
    arguments = ("check", ONE_RUN, "-r", "sum(wire_bytes) > 0", "--format", "json", "--cache", "kept")
    first = run(*arguments)
    (entry,) = (tmp_path / "kept/runs").iterdir()
    cache, key = Cache(str(tmp_path / "kept")), entry.name.partition(".")[0]
    whole = cache.get(key)
    cache.put(key, spoil(whole))
    assert run(*arguments) == first
    assert cache.get(key) == whole


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--capacity", "3M"), 'with capacity null, these runs with "3M"'),
        (("--join",), "with join null, these runs with true"),
        (("--tfrc", "df=0.9"), 'with tfrc null, these runs with ["df=0.9"]'),
    ],
)
def test_a_baseline_is_compared_with_runs_that_were_measured_alike(run, baseline, more, words):
    done = run("check", ONE_RUN, "--baseline", baseline, *more)
    assert (done.status, words in done.err) == (2, True)


@pytest.mark.parametrize(("sign", "status"), [(">", 0), ("<", 1)])
def test_a_reader_who_leaves_changes_no_verdict(tmp_path, sign, status):
    command = [sys.executable, "-m", "tfrctrace", "check", ONE_RUN, "-r", f"count(flow) {sign} 0"]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*command, "--junit", "a.xml"], stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (status, b"")
    assert ET.parse(tmp_path / "a.xml").getroot().get("failures") == str(status)


def test_standard_input_is_read_once(run):
    arguments = ("check", "-", "-r", "p95(rtt_ms) < 120", "-r", "min(jain) > 0.5")
    done = run(*arguments, stdin=TWO_FLOWS.read_bytes())
    assert (done.status, done.err) == (0, "")


@pytest.mark.parametrize(("unknown", "status"), [("fail", 1), ("warn", 0), ("pass", 0)])
def test_what_is_not_known_fails_unless_asked_otherwise(run, unknown, status):
    done = run("check", TWO_FLOWS, "-r", "mean(pdr) > 0.9", "--unknown", unknown)
    assert done.status == status
    assert done.out.splitlines()[1].startswith(unknown)
    assert "not known" in done.out


def test_an_input_that_cannot_be_read_is_status_3_and_an_error_in_junit(run, tmp_path):
    (tmp_path / "broken.pcap").write_text("no capture")
    arguments = ("check", "broken.pcap", ONE_RUN, "--junit", "check.xml", "-r")
    done = run(*arguments, "mean(plr) < 50%")
    assert (done.status, "1 of 1 check of 1 run passed" in done.out) == (3, True)
    suite = ET.parse(tmp_path / "check.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "1")
    assert_is_junit(suite)
    # a check that fails is certain, whatever else could not be read
    assert run(*arguments, "mean(plr) < 0.1%").status == 1
    assert run("check", "broken.pcap", "-r", "mean(plr) < 50%").status == 3


JENKINS = {
    "testsuite": ({"name", "tests", "failures", "errors"}, set(), {"testcase"}),
    "testcase": ({"name"}, {"classname"}, {"failure", "error", "system-out"}),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
"""Of junit-10.xsd of Jenkins' xUnit plugin (commit 031e285), as far as it allows what we write.

For each element the attributes that it must have, those that it may have, and what may stand in it."""


def assert_is_junit(element):
    must, may, children = JENKINS[element.tag]
    assert must <= {*element.keys()} <= must | may
    for child in element:
        assert child.tag in children
        assert_is_junit(child)


def test_a_ci_server_gets_junit_a_summary_and_annotations(run, tmp_path):
    arguments = ("check", ONE_RUN, "-r", "mean(plr) < 1%", "--warn", "sum(timeouts) == 7")
    files = ("--junit", "check.xml", "--summary", "check.md", "--annotations", "github", "-o", "check.txt")
    done = run(*arguments, *files)
    assert (done.status, done.out) == (1, "")
    lines = done.err.splitlines()
    assert lines[0].startswith("::error title=mean(plr) < 1%25::mean(plr) < 1%25: 2.389 %25 (broken")
    assert lines[1].startswith("::warning title=sum(timeouts) == 7::")
    suite = ET.parse(tmp_path / "check.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert_is_junit(suite)
    failed, warned = suite.findall("testcase")
    assert failed.find("failure").get("type") == "fail"
    assert warned.find("failure") is None
    assert warned.find("system-out").text.startswith("warning: sum(timeouts)")
    markdown = (tmp_path / "check.md").read_text()
    assert markdown.startswith("### ❌ fail: tfrctrace check\n")
    assert "| ❌ fail | mean(plr) &lt; 1% |" in markdown
    assert (tmp_path / "check.txt").read_text().count("\n") == 5
    before = {name: (tmp_path / name).read_bytes() for name in ("check.xml", "check.md", "check.txt")}
    run(*arguments, *files)
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


def test_annotations_name_the_line_of_the_limit(run, tmp_path):
    (tmp_path / "limits.toml").write_text(
        '# of the link\n[[limit]]\nrequire = "mean(plr) < 50%"\n\n[[limit]]\nrequire = "mean(plr) < 1%"\n'
    )
    done = run("check", ONE_RUN, "--limits", "limits.toml", "--annotations", "github", "-o", "check.txt")
    assert done.status == 1
    (line,) = done.err.splitlines()
    assert line.startswith(
        "::error file=limits.toml,line=5,title=mean(plr) < 1%25::mean(plr) < 1%25: 2.389 %25"
    )


HOSTILE = "]]>\x1b[2J\u202e|`<script>&\ufffe\n::error::%0A"


def verdict(**more):
    facts = {
        "check": HOSTILE,
        "kind": "limit",
        "name": None,
        "outcome": "fail",
        "effect": "fail",
        "unit": "ms",
        "asked_unit": "",
        "value": 1.0,
        "against": 2.0,
        "runs": 1,
        "reason": f"in `{HOSTILE}`",
        "flows_left_out": 0,
        "sparse_flows": 0,
        "line": None,
        "p_value": None,
    }
    return Verdict(**facts | more)


def gate(*verdicts, run="run"):
    return GateResult(1, Tool("tfrctrace", "0"), (run,), None, gate_status(verdicts), verdicts, ())


def test_names_of_files_disturb_neither_terminal_nor_xml_nor_markdown_nor_workflow(tmp_path):
    problem = {
        "severity": "error",
        "kind": "x",
        "source": HOSTILE,
        "message": HOSTILE,
        "flows": [],
        "packet": None,
        "line": None,
        "byte": None,
        "hint": None,
        "packets_before": 0,
    }
    with open(tmp_path / "x.xml", "wb") as file:
        write_junit(file, [verdict(), verdict(effect="warn")], [problem])
    assert len(ET.parse(tmp_path / "x.xml").getroot()) == 3
    assert_is_junit(ET.parse(tmp_path / "x.xml").getroot())
    with open(tmp_path / "x.md", "w+") as text:
        write_summary(text, gate(verdict(), run=HOSTILE))
        write_gate(text, "table", gate(verdict(), run=HOSTILE))
    written = (tmp_path / "x.md").read_text()
    assert "\x1b" not in written
    assert "\u202e" not in written
    summary = written.splitlines()[6 - 1]
    assert "<" not in summary
    assert len(re.findall(r"(?<!\\)\|", summary)) == 6
    (line,) = annotation_lines([verdict()])
    assert "\n" not in line
    assert line.startswith("::error title=")
    assert "%0A" not in line.replace("%250A", "")


def test_a_summary_of_many_checks_stays_below_what_github_takes(tmp_path):
    many = [verdict(check=f"{number} {'ü' * 500}") for number in range(3_000)]
    with open(tmp_path / "x.md", "w+", encoding="utf-8") as text:
        write_summary(text, gate(*many))
    written = (tmp_path / "x.md").read_bytes()
    assert len(written) <= MOST_SUMMARY_BYTES
    assert re.search(rb"and [0-9,]+ checks more\n$", written)
    assert len(list(annotation_lines(many))) == 10


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "there is nothing to check"),
        (("-r", "beauty > 1"), "no metric `beauty`"),
        (("--warn", "jain"), "is not a requirement"),
        (("--compare", "mean(goodput_bps)"), "there is no baseline"),
        (("--baseline", "none.json"), "`none.json`: no such file"),
        (("--baseline", "other.json"), "`other.json`: is not a baseline"),
        (
            ("--baseline", "version.json"),
            "`version.json`: has format version 2, and this program reads 3",
        ),
        (("--baseline", "nan.json"), "which is not a number"),
        (("--baseline", "huge.json"), "`huge.json`: has the value `1000000"),
        (("--baseline", "large.json"), "`large.json`: has the value `1e+308`"),
        (
            ("--baseline", "five.json"),
            "`five.json`: is not a baseline: Expected `str`, got `int` - at `$.quantities[0].quantity`",
        ),
        (("--baseline", "beauty.json"), "`beauty.json`: there is no column of flows and no metric `beauty`"),
        (("--baseline", "window.json", "--significance", "0"), "`0` is not how often"),
        (("--baseline", "window.json", "--significance", "100%"), "`100%` is not how often"),
        (("--baseline", "window.json"), 'was measured with window "2s", these runs with "1s"'),
        (("--limits", "none.toml"), "`none.toml`: no such file"),
        (("--limits", "empty.toml"), "has no `[[limit]]`, no `[[compare]]` and no `[[objective]]`"),
        (("--limits", "typo.toml"), "unknown key `requires` in `[[limit]]`"),
        (("--limits", "level.toml"), "`level` cannot be `panic`"),
        (("--limits", "tolerance.toml"), "`much` is not a share"),
        (("-r", "jain > 1", "--tolerance", "5%"), "`--tolerance` is about a baseline"),
        (("-r", "jain > 1", "--test", "rank"), "`--test` is about a baseline"),
        (("-r", "jain > 1", "--significance", "5%"), "`--significance` is about a baseline"),
        (("-r", "jain > 1", "--window", "soon"), "is not a duration"),
        (("-r", "jain > 1", "--warmup", "soon"), "is not a duration"),
        (("-r", "jain > 1", "--label", "x"), "is not a rule for a label"),
        (("-r", "jain > 1", "--junit", "none/check.xml"), "no such directory"),
        (("-r", "jain > 1", "--junit", "a", "--summary", "./a"), "two results cannot be written to `./a`"),
        (("-r", "jain > 1", "--junit", "-"), "two results cannot be written to `-`"),
    ],
)
def test_what_cannot_be_is_reported_before_anything_is_read(run, tmp_path, arguments, error):
    document = {"schema_version": 3, "quantities": [{"quantity": "mean(plr)", "values": [1]}]}
    for name, more in (
        ("version", {"schema_version": 2}),
        ("nan", {"measured_with": {}, "quantities": [{"quantity": "mean(plr)", "values": ["x"]}]}),
        ("huge", {"measured_with": {}, "quantities": [{"quantity": "mean(plr)", "values": [10**400]}]}),
        ("large", {"measured_with": {}, "quantities": [{"quantity": "mean(plr)", "values": [1e308, 1e308]}]}),
        ("five", {"measured_with": {}, "quantities": [{"quantity": 5, "values": [1]}]}),
        ("beauty", {"measured_with": {}, "quantities": [{"quantity": "min(beauty)", "values": [1]}]}),
        ("window", {"measured_with": {"window": "2s"}}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps({**document, **more}))
    (tmp_path / "other.json").write_text("[1, 2]")
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "typo.toml").write_text('[[limit]]\nrequires = "jain > 1"\n')
    (tmp_path / "level.toml").write_text('[[limit]]\nrequire = "jain > 1"\nlevel = "panic"\n')
    (tmp_path / "tolerance.toml").write_text('[[compare]]\nquantity = "mean(plr)"\ntolerance = "much"\n')
    done = run("check", "not-there.pcap", *arguments)
    assert (done.status, done.out) == (2, "")
    assert error in done.err


PAGE = (ROOT / "docs" / "check.md").read_text()
SHELL = re.findall(r"```bash\n(.*?)\n(.*?)\n```", PAGE)[0]
"""Two commands: of the runs that are good, and of those that are new."""


@pytest.fixture(scope="module")
def workflow(tmp_path_factory):
    """Return the folder of the page's example after the first command, and what runs a script in it."""
    folder = tmp_path_factory.mktemp("workflow")
    limits, _ = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    (folder / "limits.toml").write_text(limits)
    (folder / "good").mkdir()
    for path in of("before"):
        (folder / "good" / path.name).symlink_to(path)
    program = folder / "bin" / "tfrctrace"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tfrctrace "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(folder / "steps.md"),
    }

    def script(text):
        command = ["bash", "-e", "-c", text]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)

    done = script(SHELL[0])
    assert done.returncode == 0, done.stderr.decode()
    return folder, script


@pytest.mark.parametrize(
    ("name", "status"),
    [("again", 0), *(pytest.param(name, 1, marks=pytest.mark.slow) for name in ("half", "lossy"))],
)
def test_the_workflows_of_the_documentation_run(workflow, name, status):
    folder, script = workflow
    shutil.rmtree(folder / "new", ignore_errors=True)
    (folder / "new").mkdir()
    for path in of(name):
        (folder / "new" / path.name).symlink_to(path)
    (inputs,) = re.findall(r"with:\n((?: {10}.*\n)+)", PAGE)
    given = [f"{name.upper()}={shlex.quote(value)}" for name, value in re.findall(r"(\w+): (.*)", inputs)]
    action = f"OPTIONS= OUTPUT=. GITHUB_OUTPUT=status.txt {' '.join(given)} {ROOT}/.ci/check-action"
    for text in (SHELL[1], action):
        for written in ("check.xml", "summary.md"):
            (folder / written).unlink(missing_ok=True)
        done = script(text)
        assert done.returncode == status, done.stderr.decode()
        assert ET.parse(folder / "check.xml").getroot().get("errors") == "0"
    assert ("::error" in done.stderr.decode()) == bool(status)
    assert (folder / "summary.md").read_text().startswith("### ")


def test_what_is_wrong_with_a_rule_is_reported_once_and_of_how_many_runs(run):
    rules = ("--label", "gone=port 9", "--label", "a=port 5201", "--label", "b=port 5201")
    check = ("-r", "count(flow) > 0", *rules, "--weight", "gone=2")
    done = run("check", TWO_FLOWS, ONE_RUN, of("before")[1], *check)
    assert done.err.splitlines() == [
        "warning: `gone=port 9`: fits no flow, in 3 of 3 runs",
        "warning: `b=port 5201`: fits flows that have a label already, which keep it, in 1 of 3 runs, "
        f"first in `{TWO_FLOWS}` (flows 1, 2)",
        "warning: `gone=2`: fits no flow, in 3 of 3 runs",
        f"warning: `a=port 5201`: fits no flow, in 2 of 3 runs, first in `{ONE_RUN}`",
        f"warning: `b=port 5201`: fits no flow, in 2 of 3 runs, first in `{ONE_RUN}`",
    ]
    # of one run it needs no count
    assert "warning: `gone=port 9`: fits no flow\n" in run("check", TWO_FLOWS, *check).err


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        ("sum(retransmitted_packets) / sum(data_packets) < 2 %", "2 %"),
        ("sum(goodput_bps) > 1M", "1 Mbit/s"),
        ("sum(goodput_bps) > 1 Mbit/s", "1 Mbit/s"),
        ("sum(goodput_bps) > 1000000", "1.00 Mbit/s"),
        ("max(rtt_p95_ms) < 500 ms", "500 ms"),
    ],
)
def test_a_limit_is_answered_in_the_unit_that_was_asked(limit, shown):
    asked = parse_requirement(limit)
    found = verdict(unit=asked.quantity.unit, asked_unit=asked.unit, against=asked.bound)
    text = io.StringIO()
    write_gate(text, "table", gate(found))
    assert re.split("  +", text.getvalue().splitlines()[1])[3] == shown


def test_a_narrow_terminal_gets_verdicts_below_each_other():
    text = io.StringIO()
    write_gate(text, "table", gate(verdict(reason="one two " * 20)), width=60)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[1].startswith("      ")
    assert " ".join(" ".join(lines).split()).count("one two") == 20


CAPTURES = ROOT / "tests" / "data" / "captures"


def test_no_limit_on_round_trips_holds_by_the_receivers_own_delay(run):
    """The relay held each packet for 20 ms; at the receiver acknowledgements follow at once."""
    at_receiver = ROOT / "tests" / "data" / "pair" / "linux-relay-loss-rcv.pcap.gz"
    limits = ("-r", "p95(rtt_ms) < 15 ms", "-r", "max(rtt_p95_ms) < 15 ms", "-r", "rtt_p50_ms < 15")
    for path, outcome in ((at_receiver, "unknown"), (CAPTURES / "linux-relay-loss-snd.pcap.gz", "fail")):
        _, found = checks(run("check", path, *limits, "--format", "json"))
        assert {one["outcome"] for one in found.values()} == {outcome}
    assert run("check", at_receiver, *limits, "--vantage", "sender").status == 0


def test_no_limit_on_losses_holds_by_those_before_the_capture_alone(run):
    """iperf counts 32 of 628 lost; without the answer nothing tells where the capture was."""
    path, one_way = CAPTURES / "linux-udp-vs-tcp-rcv.pcap.gz", ("--filter", "udp dst port 5202")
    for limit in ("max(plr) < 10 %", "sum(lost_packets) / sum(sent_packets) < 10 %", "min(pdr) > 90 %"):
        checked = run("check", path, "-r", limit, *one_way)
        assert checked.status == 1
        assert "losses after the capture are not known" in checked.out
        assert run("check", path, "-r", limit, *one_way, "--vantage", "receiver").status == 0


def test_a_ratio_counts_no_flow_of_which_one_part_is_not_known(run):
    """Datagrams are not retransmitted, so they are no data packets of which a share could be."""
    path = CAPTURES / "linux-udp-vs-tcp-snd.pcap.gz"
    ratio = "sum(retransmitted_packets) / sum(data_packets) < 1"
    of_tcp = value_of(run, path, "-r", f"{ratio} where transport tcp")
    assert value_of(run, path, "-r", ratio) == of_tcp > 0
