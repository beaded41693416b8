"""A whole study: simulated runs with what the simulator's agents counted, and runs that are broken."""

from __future__ import annotations

import csv
import json
import lzma
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from inline_snapshot import snapshot

from tfrctrace.study import perform_study as performed
from tfrctrace.study import time_series as series_module
from tfrctrace.study.definition import Expectation, MeasuringPlan
from tfrctrace.study.file.claims import parse_claim
from tfrctrace.study.file.study_file import read_study
from tfrctrace.study.find_runs import Run
from tfrctrace.study.page.charts_and_grids import chart_of, grid_of, label_colours
from tfrctrace.study.results.cells import summarise
from tfrctrace.study.results.check_claims import ClaimCheck, ClaimVerdict
from tfrctrace.study.results.claim_sides import Sides
from tfrctrace.study.results.paper_rows import ours_text, paper_rows
from tfrctrace.study.results.run_quantities import RunValue
from tfrctrace.study.run_record import record_run

STUDY = Path(__file__).parents[2] / "data" / "study"
FILES = {
    *(f"{name}.{form}" for name in ("values", "summary", "tests", "claims") for form in ("csv", "parquet")),
    *(f"tables/{name}.{form}" for name in ("rates", "fairness") for form in ("csv", "md", "tex")),
    *(
        f"figures/{name}.{form}"
        for name in ("rates", "delays", "over-time")
        for form in ("svg", "pdf", "png", "csv")
    ),
    "report.html",
    "runs.json.xz",
    "study.json",
}


def written(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def truth():
    with (STUDY / "truth.csv").open() as file:
        return {(row["file"], int(row["flow_id"])): row for row in csv.DictReader(file)}


def keep(folder, *names):
    """Remove all other runs from a copy of the study: the test needs no more."""
    for path in (folder / "runs").iterdir():
        if path.name.removesuffix(".tr.xz") not in names:
            path.unlink()


RUNS = sorted(path.name for path in (STUDY / "runs").iterdir())


@cache
def record(name):
    study = read_study(str(STUDY / "study.toml"))
    return record_run(str(STUDY / "runs" / name), name, study.measure, ["rate"])


@pytest.mark.parametrize("name", RUNS[::4])
def test_flows_have_what_the_simulator_s_agents_counted(name):
    for flow in (flow["numbers"] for flow in record(name)["flows"]):
        counted = truth()[name.removesuffix(".xz"), flow["flow_id"]]
        assert flow["sent_packets"] == int(counted["sent_packets"])


@pytest.mark.parametrize("name", RUNS[::4])
def test_rates_are_what_arrived_in_the_common_windows(name):
    """Adds up the lines of the trace, as a script with awk would."""
    found = record(name)
    start_s, end_s = found["set"]["start_ns"] / 1e9, found["set"]["end_ns"] / 1e9
    arrived = Counter()
    for line in lzma.decompress((STUDY / "runs" / name).read_bytes()).decode().splitlines():
        event, time, _, node, _, size, _, fid, _, dst, *_ = line.split()
        if event == "r" and node == dst.split(".")[0] and start_s <= float(time) < end_s:
            arrived[int(fid)] += 8 * int(size)
    flow_ids = {flow["flow"]: flow["numbers"]["flow_id"] for flow in found["flows"]}
    rates = {m["flows"][0]: m["value"] for m in found["metrics"] if m["name"] == "rate_bps"}
    assert {flow_ids[flow]: rate for flow, rate in rates.items()} == {
        fid: pytest.approx(bits / (end_s - start_s)) for fid, bits in arrived.items()
    }


@pytest.mark.parametrize("name", RUNS[::4])
def test_utilisation_is_what_left_the_simulated_bottleneck(name):
    """The link from node 0 to node 1 carries 600 kbit/s; its packets arrive at the sinks some ms later."""
    measuring = replace(read_study(str(STUDY / "study.toml")).measure, capacity="600k", weight={"x": 2.0})
    found = record_run(str(STUDY / "runs" / name), name, measuring, [])
    start_s, end_s = found["set"]["start_ns"] / 1e9, found["set"]["end_ns"] / 1e9
    carried = 0
    for line in lzma.decompress((STUDY / "runs" / name).read_bytes()).decode().splitlines():
        event, time, from_node, to_node, _, size, *_ = line.split()
        if (event, from_node, to_node) == ("r", "0", "1") and start_s <= float(time) < end_s:
            carried += 8 * int(size)
    (used,) = [m for m in found["metrics"] if m["name"] == "link_utilisation"]
    # a packet or two at each end of the windows are on their way from the link to their sink
    assert used["value"] == pytest.approx(carried / (600_000 * (end_s - start_s)), abs=0.01)
    assert 0.9 < used["value"] < 1.01
    (problem,) = found["problems"]
    assert (problem["source"], problem["message"]) == ("x=2", "fits no flow")


def test_a_series_adds_up_to_what_arrived():
    name = RUNS[0]
    found = record(name)
    for series in found["series"]["rate"]:
        assert series["time_s"][0] >= 0
        (flow,) = [flow["numbers"] for flow in found["flows"] if flow["flow"] == series["flow"]]
        total = sum(series["values"]) * 0.5 / 8
        counted = int(truth()[name.removesuffix(".xz"), flow["flow_id"]]["sink_bytes"])
        # windows that are not whole are left out at the end
        assert 0.85 * counted < total <= counted


def test_a_run_without_the_values_of_a_figure_keeps_its_metrics():
    found = record_run(str(STUDY / "runs" / RUNS[0]), RUNS[0], MeasuringPlan(window="500ms"), ["cwnd"])
    assert not found["failed"]
    assert found["metrics"]
    assert found["series"] == {"cwnd": []}
    (problem,) = found["problems"]
    assert (problem["source"], problem["message"]) == ("cwnd", "has no values")
    assert "a time series is of `rate`" in problem["hint"]


def test_a_flow_that_lasts_for_ever_needs_no_memory_for_it(monkeypatch):
    monkeypatch.setattr(series_module, "MAX_LIFE_WINDOWS", 100)
    found = record_run(str(STUDY / "runs" / RUNS[0]), RUNS[0], MeasuringPlan(window="1ms"), ["rate"])
    assert found["series"]["rate"] == []
    assert "has more than 100 windows, too many to be drawn" in found["problems"][0]["message"]


@pytest.fixture(scope="module")
def performed_study(perform_study_in, tmp_path_factory):
    """Return how the study ended, measured by two processes, and the folder with its `results`."""
    folder = tmp_path_factory.mktemp("study")
    return perform_study_in(folder, STUDY / "study.toml", "-o", "results", "--jobs", "2"), folder


def test_one_command_makes_tables_figures_and_the_page(performed_study):
    done, folder = performed_study
    assert (done.status, done.err) == (0, "12 runs, 0 from the cache; results in `results`\n")
    assert done.out.splitlines() == snapshot(
        [
            "holds (> 99.9 %): delay[sack, queue=red] < delay[sack, queue=droptail]",
            "cannot tell: rate falling in flows [the runs vary too much; queue = droptail: "
            "272 ± 76 kbit/s at 2, 201 ± 56 kbit/s at 4 (3 runs); queue = red: 353 ± 204 kbit/s at 2, "
            "233 ± 23 kbit/s at 4 (3 runs)]",
        ]
    )
    assert written(folder / "results") == FILES
    # the documentation shows this table
    shown = (STUDY.parents[2] / "docs" / "experiments.md").read_text()
    for line in (folder / "results" / "tables" / "rates.md").read_text().splitlines()[2:]:
        assert line in shown
    summary = pl.read_csv(folder / "results" / "summary.csv")
    # two queues, two numbers of flows; three quantities of two groups each, and two of all flows
    assert summary.height == 4 * (3 * 2 + 2)
    assert set(summary["runs"]) == {3}
    assert set(summary["missing"]) == {0}
    values = pl.read_parquet(folder / "results" / "values.parquet")
    own = values.filter(
        (pl.col("queue") == "red") & (pl.col("flows") == 4) & (pl.col("quantity") == "fairness")
    )["value"]
    row = summary.filter(
        (pl.col("queue") == "red") & (pl.col("flows") == 4) & (pl.col("quantity") == "fairness")
    ).row(0, named=True)
    assert row["mean"] == pytest.approx(own.mean())
    assert row["std"] == pytest.approx(own.std())
    # t of 0.975 with two degrees of freedom is 4.302653
    assert row["high"] - row["mean"] == pytest.approx(4.302653 * own.std() / 3**0.5, rel=1e-6)


def test_a_repeated_call_measures_nothing_and_writes_the_same(performed_study, perform_study_in):
    _, folder = performed_study
    done = perform_study_in(folder, STUDY / "study.toml", "-o", "two")
    assert done.err == "12 runs, 12 from the cache; results in `two`\n"
    for name in sorted(FILES):
        assert (folder / "results" / name).read_bytes() == (folder / "two" / name).read_bytes(), name
    again = perform_study_in(folder, STUDY / "study.toml", "-o", "two", "--force", "--format", "csv")
    assert again.err == "12 runs, 0 from the cache; results in `two`\n"


def test_only_what_has_changed_is_measured(perform_study, study_folder):
    keep(study_folder, "droptail-n2-1", "droptail-n2-2", "droptail-n2-3")
    perform_study(study_folder / "study.toml", "--format", "csv")
    (study_folder / "runs" / "droptail-n2-4.tr.xz").write_bytes((STUDY / "runs" / RUNS[4]).read_bytes())
    done = perform_study(study_folder / "study.toml", "--format", "csv")
    assert "4 runs, 3 from the cache" in done.err
    text = (study_folder / "study.toml").read_text()
    # another quantity is taken from what is known; another window is not
    (study_folder / "study.toml").write_text(text + '\n[[quantity]]\nmetric = "burstiness"\n')
    assert "4 runs, 4 from the cache" in perform_study(study_folder / "study.toml", "--format", "csv").err
    (study_folder / "study.toml").write_text(text.replace("500ms", "1s"))
    assert "4 runs, 0 from the cache" in perform_study(study_folder / "study.toml", "--format", "csv").err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_broken_run_is_named_and_the_rest_is_done(perform_study, study_folder, tmp_path, jobs):
    keep(study_folder, "red-n2-1", "red-n2-2", "red-n2-3")
    (study_folder / "runs" / "red-n2-2.tr.xz").write_bytes(b"\xfd7zXZ\x00 but broken")
    (study_folder / "runs" / "notes.txt.xz").write_text("no run")
    text = (study_folder / "study.toml").read_text().replace('"runs/*.tr.xz"', '"runs/*.xz", "more/*"')
    (study_folder / "study.toml").write_text(text)
    done = perform_study(study_folder / "study.toml", "-o", "results", "--format", "csv", "-j", jobs)
    assert done.status == 3
    assert "error: `runs/red-n2-2.tr.xz`" in done.err
    assert "warning: `runs/notes.txt.xz`: does not fit the pattern" in done.err
    assert "warning: `more/*`: fits no run" in done.err
    summary = pl.read_csv(tmp_path / "results" / "summary.csv")
    assert summary.filter(pl.col("quantity") == "fairness")["runs"].to_list() == [2]


def test_what_many_runs_have_is_one_note_of_the_page(perform_study, study_folder, tmp_path):
    for name in ("red-n2-1", "red-n2-2", "red-n4-1"):
        (study_folder / "runs" / f"{name}.tr.xz").write_bytes(b"\xfd7zXZ\x00 but broken")
    done = perform_study(study_folder / "study.toml", "-o", "results")
    assert done.err.count("error: `runs/red-n") == 3
    page = (tmp_path / "results" / "report.html").read_text()
    assert re.findall(r">(runs/red-[^<]*)</bdi>:[^<]*, and so in 2 more runs", page) == [
        "runs/red-n2-1.tr.xz"
    ]
    assert page.count("data are damaged") == 1


def test_a_study_of_which_no_run_can_be_read_is_an_error(perform_study, tmp_path):
    (tmp_path / "a.tr").write_text("nothing")
    (tmp_path / "study.toml").write_text('[runs]\nfiles = "*.tr"\n[[quantity]]\nmetric = "jain"')
    done = perform_study(tmp_path / "study.toml")
    assert (done.status, done.out) == (3, "")
    assert "`a.tr`" in done.err


def test_a_study_without_runs_is_an_error(perform_study, tmp_path):
    (tmp_path / "study.toml").write_text('[runs]\nfiles = "*.tr"\n[[quantity]]\nmetric = "jain"')
    done = perform_study(tmp_path / "study.toml")
    assert done.status == 3
    assert "has no runs" in done.err


def test_claims_that_fail_give_exit_status_1_unless_that_is_known(perform_study, study_folder):
    keep(study_folder, *(f"{queue}-n{flows}-1" for queue in ("droptail", "red") for flows in (2, 4)))
    study = study_folder / "study.toml"
    text = study.read_text() + '\n[[expect]]\nclaim = "rate[tfrc] > 1e9"\n'
    study.write_text(text)
    done = perform_study(study, "--format", "csv")
    assert done.status == 1
    assert "cannot tell (unexpected): rate[tfrc] > 1e9 [a single run does not show" in done.out
    assert "; queue = droptail, flows = 2: " in done.out
    study.write_text(text + "holds = false\n")
    assert perform_study(study, "--format", "csv").status == 0


def test_a_damaged_entry_is_made_again(perform_study, study_folder, tmp_path):
    for path in sorted((study_folder / "runs").iterdir())[2:]:
        path.unlink()
    perform_study(study_folder / "study.toml", "--format", "csv")
    entries = sorted((tmp_path / "cache" / "runs").iterdir())
    entries[0].write_bytes(b"damaged")
    done = perform_study(study_folder / "study.toml", "--format", "csv")
    assert "2 runs, 1 from the cache" in done.err
    assert entries[0].read_bytes() != b"damaged"


def test_of_two_labels_of_a_flow_the_first_counts_and_the_run_is_named(perform_study, study_folder, tmp_path):
    keep(study_folder, "droptail-n2-1")
    study = study_folder / "study.toml"
    study.write_text(study.read_text().replace('sack = "transport tcp"', 'sack = "starts after 1ms"'))
    done = perform_study(study, "-o", "results", "--format", "csv")
    assert "warning: `sack=starts after 1ms`: fits flows that have a label already, which" in done.err
    values = pl.read_csv(tmp_path / "results" / "values.csv")
    assert set(values.filter(pl.col("quantity") == "rate")["group"]) == {"tfrc", "sack"}


def test_labels_that_fit_nothing_are_reported_and_their_values_have_a_reason(
    perform_study, study_folder, tmp_path
):
    keep(study_folder, "droptail-n2-1")
    study = study_folder / "study.toml"
    study.write_text(study.read_text().replace('sack = "transport tcp"', 'sack = "port 99"'))
    done = perform_study(study, "-o", "results", "--format", "csv")
    assert "warning: `sack=port 99`: fits no flow\n" in done.err
    values = pl.read_csv(tmp_path / "results" / "values.csv")
    rate = {row["group"]: row for row in values.filter(pl.col("quantity") == "rate").iter_rows(named=True)}
    # the flows go by their transport
    assert rate["tcp"]["value"] > 0
    assert (rate["sack"]["value"], rate["sack"]["reason"]) == (None, "no flow of this group")
    over = values.filter(pl.col("quantity") == "sack_over_tfrc").row(0, named=True)
    assert (over["value"], over["reason"]) == (None, "no flow of this group")


def test_a_label_that_only_some_runs_have_is_no_problem_and_fills_no_rows(
    perform_study, study_folder, tmp_path
):
    keep(study_folder, "droptail-n2-1", "red-n2-1")
    study = study_folder / "study.toml"
    text = study.read_text().replace("[labels]", '[labels]\nother = "port 99"')
    study.write_text(
        text.replace('sack = "transport tcp"', 'sack = "transport tcp and source droptail-n2-1.tr.xz"')
    )
    done = perform_study(study, "-o", "results", "--format", "csv")
    assert "sack" not in done.err
    assert done.err.count("`other=port 99`: fits no flow, in 2 of 2 runs") == 1
    tables = "".join(file.read_text() for file in (tmp_path / "results" / "tables").glob("*.csv"))
    assert "sack" in tables
    assert "other" not in tables


def test_the_page_shows_everything_and_nothing_of_it_can_run(perform_study, study_folder, tmp_path):
    keep(study_folder, "droptail-n2-1", "red-n2-1")
    study = study_folder / "study.toml"
    study.write_text(study.read_text().replace("TFRC beside Sack1", "<script>alert(1)</script>"))
    perform_study(study, "-o", "results", "--format", "html")
    page = (tmp_path / "results" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "Trace report" not in page
    for heading in ("Overview", "Claims", "Figures", "Tables", "Differences", "Runs", "How it was measured"):
        assert f">{heading}</h2>" in page
    assert page.count("<svg") == 6
    assert len(re.findall(r'<tr id="run-', page)) == 2


def test_what_others_report_is_named_only_where_it_is_shown(study_folder):
    keep(study_folder, "droptail-n2-1", "red-n2-1")
    study = study_folder / "study.toml"
    study.write_text(
        """
[runs]
files = "runs/*.xz"
pattern = "{queue}-n{flows}-{run}.tr.xz"
[measure]
basis = "received"
[[quantity]]
metric = "jain"
[[figure]]
name = "red"
x = "flows"
y = "jain"
where = { queue = "red" }
[[figure]]
name = "droptail"
x = "flows"
y = "jain"
where = { queue = "droptail" }
[[reference]]
quantity = "jain"
source = "Somebody"
where = { queue = "red" }
value = 0.9
"""
    )
    results = performed(study, cache=study_folder / "cache")
    captions = {plan.name: chart_of(results, plan).caption for plan in results.study.figures}
    assert "Reported: Somebody." in captions["red"]
    assert "Somebody" not in captions["droptail"]


def test_of_a_claim_that_fails_in_very_many_scenarios_the_first_are_shown():
    run = Run("", "a", {"n": 1})
    value = RunValue(quantity="rate", group=None, value=1.0, unit="", made_of=1)
    (cell,) = summarise([(run, value)], ["n"], 0.95)
    checks = tuple(ClaimCheck(Sides((("n", n),), (cell,)), False) for n in range(5000))
    expectation = Expectation(claim=parse_claim("rate > 2"), says="", where={})
    shown = ours_text(ClaimVerdict(expectation, checks, "does not hold", 1.0))
    assert shown.startswith("n = 0: 1 (1 run); n = 1: 1 (1 run); ")
    assert shown.endswith("; and 4994 more")


def test_a_table_may_hold_the_parameters(perform_study, study_folder, tmp_path):
    lines = [
        "file,colour,size",
        "runs/red-n2-1.tr.xz,blue,1.5",
        "runs/red-n2-2.tr.xz,green,2",
        "runs/none.tr,blue,3",
    ]
    (study_folder / "runs.csv").write_text("\n".join(lines))
    (study_folder / "study.toml").write_text('[runs]\ntable = "runs.csv"\n[[quantity]]\nmetric = "jain"')
    done = perform_study(study_folder / "study.toml", "-o", "results", "--format", "csv")
    assert done.status == 3
    assert "error: `runs/none.tr`" in done.err
    values = pl.read_csv(tmp_path / "results" / "values.csv")
    assert values.select("colour", "size", "file").rows() == [
        ("blue", 1.5, "runs/red-n2-1.tr.xz"),
        ("green", 2.0, "runs/red-n2-2.tr.xz"),
    ]


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ("file,a\nx\n", "row 2 has 1 cells, expected 2"),
        ("file,a\nx,1\nx,2\n", "row 3 names `x` again"),
        ("file,file\n", "there is more than one column `file`"),
        ("name,a\n", "has no column `file`"),
        ("file,mean\n", "no parameter can be called `mean`"),
    ],
)
def test_a_table_of_runs_that_cannot_be_is_refused(perform_study, tmp_path, table, error):
    (tmp_path / "runs.csv").write_text(table)
    (tmp_path / "study.toml").write_text('[runs]\ntable = "runs.csv"\n[[quantity]]\nmetric = "jain"')
    done = perform_study(tmp_path / "study.toml")
    assert done.status == 3
    assert error in done.err


def test_wrong_arguments_are_reported(perform_study, tmp_path):
    assert "there is no form `docx`" in perform_study(STUDY / "study.toml", "--format", "docx").err
    (tmp_path / "file").write_text("")
    assert "`file` is a file, not a folder" in perform_study(STUDY / "study.toml", "-o", "file").err


def test_a_record_is_plain_names_and_values():
    found = record(RUNS[0])
    assert json.loads(json.dumps(found)) == found


PAPER = """
title = "TFRC beside Sack1"
paper = "Somebody: Queues"
made_by = "make queues"
paired = true
[values]
warmup = "1s"
[[runs]]
files = ["runs/droptail-*.xz", "more/*.xz"]
pattern = "{queue}-n{flows}-{run}.tr.xz"
repetition = "run"
[[runs]]
files = "runs/red-*.xz"
pattern = "red-n{flows}-{run}.tr.xz"
parameters = { queue = "red", gentle = "no" }
repetition = "run"
measure = { warmup = "2s" }
labels = { early = "transport tfrc", sack = "transport tcp" }
[measure]
basis = "received"
window = "500ms"
warmup = "${warmup}"
[labels]
tfrc = "transport tfrc"
sack = "transport tcp"
[[quantity]]
name = "rate"
metric = "rate_bps"
[[quantity]]
name = "late_rate"
series = "rate"
from = "5s"
[[quantity]]
name = "course"
series = "rate"
[[figure]]
id = "figure 10"
title = "Rates"
setting = "one link of 600 kbit/s"
kind = "bars"
x = "queue"
y = "rate"
series = "group"
[[figure]]
id = "figure 2"
title = "Topology"
status = "drawing"
[[figure]]
id = "figure 3"
title = "Rates over time"
kind = "time series"
y = "rate"
where = { queue = "droptail", flows = 2, run = 1 }
[[table]]
id = "table 1"
title = "Means"
rows = ["queue"]
columns = ["rate"]
[[reference]]
figure = "table 1"
quantity = "rate"
by = ["queue", "group"]
values = [["droptail", "tfrc", 3e5], ["red", "early", 2e5]]
[[expect]]
figure = ["figure 10", "table 1"]
claim = "rate[tfrc, queue=droptail] < 0.2 * rate[early, queue=red]"
holds_in_paper = true
reason = "another queue"
[[expect]]
figure = "figure 3"
claim = "course[tfrc, before=5s, queue=droptail] < 1 Gbit/s"
where = { flows = 2 }
"""


@pytest.fixture
def paper_study(study_folder):
    """Return the study of a paper, of two queues with two flows."""
    keep(study_folder, *(f"{queue}-n2-{run}" for queue in ("droptail", "red") for run in (1, 2, 3)))
    study = study_folder / "study.toml"
    study.write_text(PAPER)
    return study


def test_each_figure_and_table_of_a_paper_is_a_row(perform_study, paper_study, tmp_path):
    done = perform_study(paper_study, "-o", "results")
    # a claim of a paper that does not hold fails no gate
    assert done.status == 0
    assert "warning: `more/*.xz`: fits no run\nhint:    `make queues` makes them" in done.err
    rows = json.loads((tmp_path / "results" / "study.json").read_text())["figures"]
    assert [(row["figure"], row["verdict"]) for row in rows] == [
        ("figure 2", "drawing without data"),
        ("figure 3", "holds"),
        ("figure 10", "does not hold"),
        ("table 1", "values"),
        ("table 1", "does not hold"),
    ]
    claim = rows[2]
    assert (claim["stated"], claim["agrees"], claim["reason"]) == ("holds", False, "another queue")
    assert claim["confidence"] > 0.95
    assert claim["setting"] == "one link of 600 kbit/s"
    assert rows[3]["paper"].startswith(
        "rate [tfrc, queue = droptail] 300 kbit/s; rate [early, queue = red] 200"
    )
    assert re.match(r"rate \[tfrc, queue = droptail\] 2\d\d ± .* \(3 runs\); rate \[early", rows[3]["ours"])
    assert pl.read_csv(tmp_path / "results" / "paper.csv").height == 5
    written_table = (tmp_path / "results" / "paper.md").read_text()
    assert written_table.count("\n| ") == 7
    page = (tmp_path / "results" / "report.html").read_text()
    assert "Figures and tables of the paper" in page
    assert "Somebody: Queues" in page
    assert len(re.findall(r'<tr id="paper-', page)) == 5
    assert "Figure 10: Rates" in page
    shown = done.out.splitlines()
    assert shown[:2] == ["figure 2: Topology", "  drawing without data"]
    assert any(line.startswith("  does not hold (") for line in shown)


def test_runs_may_have_patterns_labels_and_measures_of_their_own(paper_study):
    results = performed(paper_study, cache=paper_study.parent / "cache")
    droptail, *_, red = results.runs
    assert dict(droptail.parameters) == {"queue": "droptail", "flows": 2, "run": 1, "gentle": ""}
    assert dict(red.parameters) == {"queue": "red", "flows": 2, "run": 3, "gentle": "no"}
    assert results.study.measure.warmup == "1s"
    assert (red.measure.warmup, red.measure.window) == ("2s", "500ms")
    groups = {(cell.scenario["queue"], cell.group) for cell in results.cells if cell.values}
    assert groups == {("droptail", "tfrc"), ("droptail", "sack"), ("red", "early"), ("red", "sack")}
    assert set(results.values()["gentle"]) == {None, "no"}


def test_a_series_is_a_quantity_of_all_of_it_or_of_a_part(paper_study):
    results = performed(paper_study, cache=paper_study.parent / "cache")
    (run, record), *_ = results.read()
    (series,) = [one for one in record.series["rate"] if one.group == "tfrc"]
    found = {
        value.quantity: value.value
        for other, value in results.run_values
        if other == run and value.group == "tfrc"
    }
    pairs = list(zip(series.time_s, series.values, strict=True))
    late = [rate for time_s, rate in pairs if time_s >= 5]
    early = [rate for time_s, rate in pairs if time_s < 5]
    assert late
    assert early
    assert found["late_rate"] == pytest.approx(sum(late) / len(late))
    assert found["course_before_5s"] == pytest.approx(sum(early) / len(early))


def test_a_row_of_a_table_is_about_one_label(paper_study):
    results = performed(paper_study, cache=paper_study.parent / "cache")
    (plan,) = results.study.tables
    grid = grid_of(results, plan)
    assert grid.axes == ("queue", "group")
    assert [axes for axes, _ in grid.rows] == [
        ("droptail", "sack"), ("droptail", "tfrc"), ("red", "sack"), ("red", "early"),
    ]  # fmt: skip
    assert [column.label for column in grid.columns] == ["rate"]


def test_a_label_has_one_colour_in_all_figures(paper_study):
    results = performed(paper_study, cache=paper_study.parent / "cache")
    colours = label_colours(results.study)
    assert colours == {"tfrc": 0, "sack": 1, "early": 2}
    drawn = {plan.name: chart_of(results, plan, colours) for plan in results.study.figures if plan.is_drawn}
    bars, curves = drawn["figure-10"], drawn["figure-3"]
    own = {one.label: one.colour for one in bars.series if one.reference_of is None}
    assert own == {"sack": 1, "tfrc": 0, "early": 2}
    assert {one.label: one.colour for one in curves.series} == {"tfrc": 0, "sack": 1}


@pytest.mark.parametrize("ending", ["xz", "xz*"])
def test_a_run_that_was_not_made_is_one_failed_run(perform_study, paper_study, tmp_path, ending):
    folder = paper_study.parent
    text = paper_study.read_text()
    paper_study.write_text(text.replace("-*.xz", f"-*.{ending}").replace(".tr.xz", ".tr.*"))
    assert f"-*.{ending}" in paper_study.read_text()
    (folder / "runs" / "droptail-n2-2.tr.xz").unlink()
    (folder / "runs" / "droptail-n2-2.tr.xz.failed").write_text("ns: no such queue\n")
    # one that was made after all counts
    (folder / "runs" / "red-n2-2.tr.xz.failed").write_text("ns: interrupted")
    done = perform_study(paper_study, "-o", "results", "--format", "json")
    assert done.status == 3
    assert "error: `runs/droptail-n2-2.tr.xz`: was not made: ns: no such queue\n" in done.err
    assert "interrupted" not in done.err
    found = json.loads((tmp_path / "results" / "study.json").read_text())
    assert (found["runs"], found["failed_runs"]) == (6, 1)


def test_a_study_without_traces_says_how_to_make_them(perform_study, tmp_path):
    (tmp_path / "study.toml").write_text(PAPER)
    done = perform_study(tmp_path / "study.toml")
    assert done.status == 3
    assert "has no runs\nhint:  `make queues` makes them" in done.err


def test_runs_may_be_in_another_folder(perform_study, paper_study, tmp_path):
    moved = tmp_path / "elsewhere" / "study.toml"
    moved.parent.mkdir()
    paper_study.rename(moved)
    assert "has no runs" in perform_study(moved).err
    done = perform_study(moved, "--runs", paper_study.parent, "--format", "json")
    assert "6 runs, 0 from the cache" in done.err


def test_a_required_claim_of_a_paper_fails_the_gate(perform_study, paper_study):
    text = paper_study.read_text()
    paper_study.write_text(text.replace("holds_in_paper = true", "holds_in_paper = true\nrequired = true"))
    done = perform_study(paper_study, "--format", "json")
    assert done.status == 1
    assert "does not hold (" in done.out
    assert "(unexpected)" in done.out


def test_published_values_of_a_place_are_those_of_its_figure(paper_study):
    rows = paper_rows(performed(paper_study, cache=paper_study.parent / "cache"))
    assert [row.paper for row in rows if row.figure == "figure 10"] == [""]
