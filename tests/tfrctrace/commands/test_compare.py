"""`tfrctrace compare`: two sides, each of one run or several."""

from __future__ import annotations

import csv
import json
import random
from dataclasses import fields
from pathlib import Path

import pytest

from tfrctrace.metrics.catalogue import CATALOGUE
from tfrctrace.metrics.results.comparison import Comparison, Difference
from tfrctrace.metrics.statistics.preference import preference_of
from tfrctrace.reports.compared import conclusion_of, conclusion_words, judged
from tfrctrace.reports.metric_words import metric_name
from tfrctrace.reports.printers.comparison import write_comparison
from tfrctrace.study.compared_sides import gather_sides
from tfrctrace.study.definition import MeasuringPlan

DATA = Path(__file__).parents[2] / "data" / "study" / "runs"
TWO_FLOWS = Path(__file__).parents[3] / "sample_traces" / "two-flows.pcapng.gz"


@pytest.fixture
def compare(run, tmp_path):
    def compare_sides(*arguments, **more):
        # other processes start for longer than these small runs take
        return run("compare", *arguments, "--cache", tmp_path / "cache", "--jobs", "1", **more)

    return compare_sides


def document_of(done):
    assert done.status == 0, done.err
    return json.loads(done.out)


def test_repeated_runs_differ_by_what_scipy_says(compare):
    arguments = ("--basis", "received", "-m", "delay_mean_ms", "--format", "json")
    document = document_of(compare(DATA / "droptail-n2-*.xz", DATA / "red-n2-*.xz", *arguments))
    assert (document["schema_version"], document["window"], document["warmup"]) == (1, "1s", None)
    tcp = next(row for row in document["differences"] if row["group"] == "tcp")
    assert (tcp["runs_a"], tcp["runs_b"], tcp["unit"]) == (3, 3, "ms")
    # scipy.stats.ttest_ind(red, droptail, equal_var=False) of the delays of the study's runs
    assert tcp["difference"] == pytest.approx(tcp["mean_b"] - tcp["mean_a"])
    assert tcp["difference"] == pytest.approx(-67.04326722407473)
    assert (tcp["low"], tcp["high"]) == pytest.approx((-82.14328621927552, -51.94324822887393))
    assert tcp["p_value"] == pytest.approx(0.0003099530677126212)


def difference(metric, p_value, **more):
    nulls = dict.fromkeys(
        field.name for field in fields(Difference) if field.name not in {"change", "verdict"}
    )
    given = {"group": "tcp", "unit": "", "mean_a": 10.0, "mean_b": 9.0, "difference": -1.0}
    return Difference(**{**nulls, **given, "metric": metric, "p_value": p_value, **more})


def test_equal_builds_differ_as_seldom_as_the_level_says():
    """8 metrics that users notice, of which each p value is uniform: uncorrected 34 % would differ."""
    names = ["rate_bps", "rtt_p95_ms", "rtt_p50_ms", "delay_p95_ms", "plr", "loss_event_rate"]
    names += ["retransmission_ratio", "timeout_share"]
    draws = random.Random(7)
    runs = [[difference(name, draws.random()) for name in names] for _ in range(1_000)]
    found = [conclusion_of(judged(run)) for run in runs]
    assert sum(one != "no difference" for one in found) <= 65  # 5 %, and two deviations
    (by_chance,) = [judged(run) for run in [[difference(name, 0.02) for name in names]]]
    assert "p is below 0.05 in 8 of 8 rows, but not with Holm's correction for so many." in conclusion_words(
        by_chance
    )
    slower = judged([difference("rate_bps", 0.001), *(difference(name, 0.5) for name in names[1:])])
    assert conclusion_words(slower) == "B is worse: lower rate of tcp (-10 %)."
    assert conclusion_of(judged([difference("rate_bps", 0.03, p_holm=0.04)])) == "worse"


def test_one_run_on_a_side_gives_the_difference_and_says_why_there_is_no_test(compare):
    arguments = ("--basis", "received", "-m", "jain", "--format", "json")
    (row,) = document_of(compare(DATA / "droptail-n2-1.tr.xz", DATA / "red-n2-1.tr.xz", *arguments))[
        "differences"
    ]
    assert (row["runs_a"], row["runs_b"], row["p_value"]) == (1, 1, None)
    assert row["difference"] == pytest.approx(row["mean_b"] - row["mean_a"])
    assert row["reason"] == "a single run does not show how much runs vary"


def test_a_capacity_and_weights_are_given_to_both_sides(compare):
    names = ("-m", "link_utilisation", "-m", "jain_weighted")
    given = ("--capacity", "600k", "--weight", "tcp=2", "--basis", "received", "--format", "json")
    sides = (DATA / "droptail-n2-1.tr.xz", DATA / "red-n2-1.tr.xz")
    rows = document_of(compare(*sides, *given, *names))["differences"]
    assert [row["metric"] for row in rows] == ["jain_weighted", "link_utilisation"]
    assert 0.9 < rows[1]["mean_a"] < 1.01
    assert compare(*sides, *names).status == 2


def test_groups_of_one_trace_can_be_compared(compare):
    labels = ("--label", "cubic=port 5201", "--label", "reno=port 5202", "--groups", "cubic:reno")
    arguments = ("-m", "rate_bps", "--format", "json")
    (row,) = document_of(compare(TWO_FLOWS, TWO_FLOWS, *labels, *arguments))["differences"]
    assert row["group"] == "cubic, reno"
    # 3.18 and 1.61 Mbit/s in docs/metrics.md
    assert (row["mean_a"], row["mean_b"]) == pytest.approx((3.18e6, 1.61e6), rel=0.002)


def test_a_directory_stands_for_its_runs(compare, tmp_path):
    for side in ("one", "other"):
        (tmp_path / side).mkdir()
        for run in (1, 2):
            name = f"{'red' if side == 'other' else 'droptail'}-n2-{run}.tr.xz"
            (tmp_path / side / name).write_bytes((DATA / name).read_bytes())
    arguments = (
        "--basis",
        "received",
        "-m",
        "jain",
        "-m",
        "pdr",
        "--holm",
        "--format",
        "csv",
        "-o",
        "out.csv",
    )
    assert compare("one", "other", *arguments).status == 0
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert {(row["runs_a"], row["runs_b"]) for row in rows} == {("2", "2")}
    assert all(float(row["p_holm"]) >= float(row["p_value"]) for row in rows)


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_a_person_reads_a_row_for_each_metric_and_group(compare, form):
    sides = (DATA / "red-n2-1.tr.xz", DATA / "red-n2-2.tr.xz")
    lines = compare(*sides, "--format", form, "--rows", "0").out.splitlines()
    heads, rows = rows_of(lines)
    assert heads[:4] == ["metric", "group", "A", "B"]
    assert any("fairness (Jain)" in line and "no test" in line for line in rows)
    assert "a single run does not show how much runs vary" in lines
    # nothing was lost from sight: a metric without a value is there, with a dash
    assert any("time to a steady rate" in line for line in rows)


def rows_of(lines):
    """Return the headings of a printed table, and the lines below them."""
    place = lines.index("") + 1
    return lines[place].replace("|", " ").split(), lines[place + 1 :]


def test_what_users_notice_comes_first_and_says_whether_it_is_better(compare):
    sides = (DATA / "droptail-n2-*.xz", DATA / "red-n2-*.xz", "--basis", "received")
    lines = compare(*sides).out.splitlines()
    assert max(map(len, lines)) <= 80
    # RED drops early: it loses more, and queues are short
    assert " ".join(lines[: lines.index("")]) == (
        "B is worse: more lost packets of tfrc (+102 %); and better: lower one-way delay p95 of tcp "
        "(-37.5 %) and lower one-way delay p95 of tfrc (-35.2 %)."
    )
    assert lines[-1].startswith("15 of 85 rows;")
    _, rows = rows_of(lines)
    assert [line.split("  ")[0] for line in rows[:7]] == [
        "lost packets",
        *("one-way delay p95",) * 2,
        *("rate",) * 2,
        "lost packets",
        "retransmitted packets",
    ]
    document = document_of(compare(*sides, "--format", "json"))
    assert document["verdict"] == "mixed"
    for row in document["differences"]:
        is_tested = row["p_value"] is not None and row["p_value"] < 0.05
        assert (row["verdict"] in {"better", "worse", "different"}) == is_tested
        if row["mean_a"] and row["difference"] is not None:
            assert row["change"] == pytest.approx(row["difference"] / row["mean_a"])
        if row["verdict"] in {"better", "worse"}:
            # delays fall, and packets are lost: RED drops early
            assert row["verdict"] == ("better" if "delay" in row["metric"] else "worse")
    assert compare(*sides, "--rows", "3", "--format", "json").status == 2


def test_copies_of_a_run_are_no_repetitions(compare, tmp_path):
    for side, name in (("good", "droptail-n2-1.tr.xz"), ("other", "red-n2-1.tr.xz")):
        (tmp_path / side).mkdir()
        for number in range(5):
            (tmp_path / side / f"{number}.tr.xz").write_bytes((DATA / name).read_bytes())
    done = compare("good", "other", "--basis", "received", "--format", "json")
    document = document_of(done)
    assert {(row["runs_a"], row["runs_b"]) for row in document["differences"] if row["mean_a"]} == {(1, 1)}
    assert document["verdict"] == "not tested"
    assert done.err.count("has the same bytes as `good/0.tr.xz`, so both count once") == 4
    both = compare("good/0.tr.xz", "good/1.tr.xz", "-m", "jain")
    assert "`good/1.tr.xz`: has the same bytes as `good/0.tr.xz`" in both.err
    assert both.out.startswith("These metrics do not differ")


@pytest.mark.parametrize(("name", "form"), [("a.html", "json"), ("a.csv", "table"), ("a.md", "html")])
def test_a_format_that_the_name_denies_is_refused(compare, tmp_path, name, form):
    done = compare(TWO_FLOWS, TWO_FLOWS, "-o", name, "--format", form)
    assert (done.status, list(tmp_path.glob("a.*"))) == (2, [])
    assert f"but `--format` is {form}" in done.err


def test_the_name_of_the_result_says_its_format(compare, tmp_path):
    sides = (DATA / "red-n2-1.tr.xz", DATA / "red-n2-2.tr.xz", "-m", "jain")
    assert compare(*sides, "-o", "a.csv").status == compare(*sides, "-o", "a.json").status == 0
    assert (tmp_path / "a.csv").read_text().startswith("metric,group,")
    assert json.loads((tmp_path / "a.json").read_text())["differences"][0]["metric"] == "jain"


def test_a_row_says_how_many_times_the_rate_of_others_a_group_has(compare):
    labels = ("--label", "cubic=port 5201", "--label", "reno=port 5202", "--rows", "0")
    lines = compare(TWO_FLOWS, TWO_FLOWS, *labels, "-m", "inter_protocol_normalized").out.splitlines()
    # 3.18 and 1.61 Mbit/s in docs/metrics.md
    row = next(line for line in lines if line.startswith("rate / that of others") and "cubic" in line)
    assert row.count("1.97 times") == 2


def test_every_metric_has_a_name_for_people():
    names = {one.name: metric_name(one.name) for one in CATALOGUE}
    assert [name for name, called in names.items() if name == called] == []
    assert len(set(names.values())) == len(names)


def test_every_metric_has_a_direction_or_none_by_choice():
    undecided = {
        *("sparse_flows", "upload_download_ratio", "inter_protocol_normalized", "inter_protocol_ratio"),
        "aggressiveness_bps",
    }
    names = {one.name.removesuffix("_without_sparse") for one in CATALOGUE}
    assert {name for name in names if preference_of(name) is None} == undecided


def test_a_page_has_both_sides_overlaid(compare, tmp_path):
    sides = (DATA / "droptail-n2-*.xz", DATA / "red-n2-*.xz", "--basis", "received")
    assert compare(*sides, "-o", "both.html").status == 0
    page = (tmp_path / "both.html").read_text()
    assert "lower one-way delay p95 of tcp (-37.5\xa0%)" in page.replace(" %", "\xa0%")
    assert "A: droptail-n2-*.xz" in page
    assert str(DATA) not in page
    for title in (
        "Goodput of all flows",
        "Distribution: goodput of all flows",
        "Packets lost on the path",
        "Retransmitted packets of TCP",
        "Distribution: retransmitted packets of TCP",
        "One-way delay of all flows, 95th percentile",
    ):
        assert title in page
    assert page.count("better") > 4


def test_sides_on_a_page_are_those_that_the_files_have():
    sides = gather_sides(str(DATA / "red-n2-*.xz"), str(TWO_FLOWS), MeasuringPlan(since="2s", until="4s"))
    assert [len(side.runs) for side in sides] == [3, 1]
    for run in (run for side in sides for run in side.runs):
        starts = run.rows["start_ns"]
        assert starts.max() - starts.min() <= 2 * 10**9


def test_the_name_of_a_group_is_one_cell_of_markdown(tmp_path):
    unknown = dict.fromkeys(field.name for field in fields(Difference))
    found = Difference(**unknown | {"metric": "jain", "unit": "", "group": "a\\|b<i>"})
    about = dict.fromkeys(field.name for field in fields(Comparison))
    with open(tmp_path / "a.md", "w+") as file:
        write_comparison(file, "markdown", Comparison(**about | {"differences": (found,)}))
    line = (tmp_path / "a.md").read_text().splitlines()[-1]
    assert r"| a\\\|b&lt;i&gt; |" in line


def test_a_broken_run_is_named_and_the_others_are_compared(compare, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "good.tr.xz").write_bytes((DATA / "red-n2-1.tr.xz").read_bytes())
    (tmp_path / "a" / "broken.pcap").write_text("no capture, whatever its name says")
    done = compare("a", DATA / "red-n2-2.tr.xz", "-m", "jain")
    assert done.status == 3
    assert "error: `a/broken.pcap`" in done.err
    assert "fairness (Jain)" in done.out


def test_what_no_run_has_is_reported_once(compare):
    done = compare(
        DATA / "red-n2-*.xz",
        DATA / "droptail-n2-*.xz",
        "-m",
        "jain",
        "--label",
        "x=port 9",
        "--weight",
        "z=2",
    )
    assert done.err.count("`x=port 9`: fits no flow, in 6 of 6 runs") == 1
    assert done.err.count("`z=2`: fits no flow, in 6 of 6 runs") == 1
    assert done.err.count("warning") == 2


def test_a_group_without_flows_is_reported(compare):
    sides = (DATA / "red-n2-1.tr.xz", DATA / "red-n2-2.tr.xz")
    done = compare(*sides, "-m", "rate_bps", "--groups", "tcp:cubic")
    assert "red-n2-2.tr.xz`: no flow of the group `cubic`" in done.err
    assert done.err.count("warning") == 1
    assert "not of groups" in compare(*sides, "-m", "jain", "--groups", "tcp:tfrc").err


def test_the_variation_is_compared_at_each_timescale(compare):
    sides = (DATA / "red-n2-1.tr.xz", DATA / "red-n2-2.tr.xz")
    rows = document_of(compare(*sides, "--basis", "received", "-m", "cov", "--format", "json"))["differences"]
    # the flows have less than 8 s in common
    known = {row["metric"] for row in rows if row["difference"] is not None}
    assert known == {"cov 0.1 s", "cov 0.2 s", "cov 0.5 s"}
    reasons = {row["metric"]: row["reason"] for row in rows if row["difference"] is None}
    assert reasons == dict.fromkeys(
        ("cov 1 s", "cov 2 s", "cov 5 s", "cov 10 s"),
        "the flows do not show it: too short, never together, or an option is missing",
    )


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (("none-*.pcap", DATA / "red-n2-1.tr.xz"), 3, "is neither a trace nor a pattern that matches one"),
        ((DATA / "red-n2-1.tr.xz", "/dev/null"), 3, "`/dev/null`"),
        ((DATA / "red-n2-1.tr.xz", TWO_FLOWS, "--groups", "cubic"), 2, "does not name two groups"),
        ((DATA / "red-n2-1.tr.xz", TWO_FLOWS, "--filter", "tcp and and"), 2, "error: filter `tcp and and`"),
        ((DATA / "red-n2-1.tr.xz", TWO_FLOWS, "-m", "beauty"), 2, "there is no metric `beauty`"),
        ((DATA / "red-n2-1.tr.xz", TWO_FLOWS, "--label", "x"), 2, "is not a rule for a label"),
        ((DATA / "red-n2-1.tr.xz", TWO_FLOWS, "--warmup", "soon"), 2, "is not a duration"),
    ],
)
def test_what_cannot_be_is_reported(compare, arguments, status, error):
    done = compare(*arguments)
    assert (done.status, done.out) == (status, "")
    assert error in done.err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_option_that_fits_no_run_is_wrong_usage(run, jobs):
    runs = str(DATA / "red-n2-*.xz")
    outcome = run("compare", runs, runs, "--since", "00:00", "-j", jobs)
    assert outcome.status == 2
    assert outcome.err.startswith("error: a simulation has no time of day\n")


def test_a_named_cache_that_cannot_be_made_is_an_error(run):
    # also for root, whom no permission stops
    done = run("compare", TWO_FLOWS, TWO_FLOWS, "--cache", "/proc/no/cache")
    assert (done.status, done.out) == (2, "")
    assert "cannot write `/proc/no/cache`" in done.err
