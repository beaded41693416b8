"""The five studies that ship: their claims are as they say, and their flows are what the agents counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from study_truth import truth_of

import tfrctrace
from tfrctrace.study import perform_study
from tfrctrace.study.file.study_file import read_study
from tfrctrace.study.page.charts_and_grids import chart_of, grid_of, label_colours
from tfrctrace.study.page.paper_table import paper_markdown
from tfrctrace.study.results.paper_rows import paper_rows
from tfrctrace.study.run_study import results_of_saved
from tfrctrace.study.saved_runs import read_saved

STUDIES = Path(__file__).parents[1] / "sample_traces" / "studies"
NAMES = sorted(path.parent.name for path in STUDIES.glob("*/study.toml"))
FILES = sorted(str(path.relative_to(STUDIES)) for path in STUDIES.glob("*/*.toml"))
LINUX = STUDIES / "de-cicco-mascolo" / "linux"
MOST_BYTES = 10_000_000

COOKIE_BYTES = 37
"""By which iperf3 knows the connections of a test."""
SEGMENT_BYTES = 1448

AGENTS = {"tfrc": "tcpFriend", "cbr": "cbr", "pareto": "pareto"}
"""What ns-2 calls the packets of the agents of `simulate.tcl`; those of TCP are all `tcp`."""


def traces_of(study: str) -> dict[str, Path]:
    """Return the packet trace of each run."""
    folder = STUDIES / study / "traces"
    return {path.name.removesuffix(".tr.xz"): path for path in sorted(folder.rglob("*.tr.xz"))}


def test_there_are_five_and_they_stay_small():
    assert len(NAMES) == 5
    shipped = [path for path in STUDIES.parent.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(path.stat().st_size for path in shipped) < MOST_BYTES


def numbered(figures, tables=0, *others):
    return {
        *(f"figure {n}" for n in range(1, figures + 1)),
        *(f"table {n}" for n in range(1, tables + 1)),
        *others,
    }


IN_PAPERS = {
    "casoni-merani": numbered(10),
    "de-cicco-mascolo": numbered(14, 0, "section on three flows"),
    "lillis": numbered(6, 4, "box on a modified Veno"),
    "rao-janani-reddy": numbered(14, 1),
    "zhang": numbered(7),
}
"""The figures and tables of each paper, and what it measures or states in its text alone."""


@pytest.mark.slow
@pytest.mark.parametrize("study", FILES)
def test_a_study_measures_all_its_runs_and_explains_what_differs(study, tmp_path):
    results = perform_study(STUDIES / study, cache=tmp_path)
    folder = Path(study).parent
    is_linux = study.endswith("linux.toml")
    traces = (STUDIES / folder).glob("linux/**/*.pcap.xz") if is_linux else traces_of(folder.name)
    assert len(results.runs) == len(list(traces))
    assert [one for one in results.problems if one["severity"] != "note"] == []
    assert results.verdicts
    rows = paper_rows(results)
    assert {row.figure for row in rows} == (set() if is_linux else IN_PAPERS[folder.name])
    for verdict in results.verdicts:
        assert verdict.is_as_expected or not verdict.expectation.is_required, verdict
        # what a paper states is not reworded: a disagreement has its reason
        if verdict.agrees_with_paper is False:
            assert verdict.expectation.reason, verdict
        # claims lack runs only where the full scale alone varies a choice
        if not verdict.checks:
            assert "choice" in verdict.expectation.claim.text or "choice" in verdict.expectation.where, (
                verdict
            )
    colours = label_colours(results.study)
    for plan in results.study.figures:
        if plan.is_drawn:
            assert chart_of(results, plan, colours) is not None, plan.name
    for plan in results.study.tables:
        assert grid_of(results, plan).rows, plan.name


SAVED = sorted(STUDIES.glob("*/full-scale.json.xz"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.parent.name)
def test_saved_runs_of_the_full_scale_make_its_table(path):
    assert path.stat().st_size < 1_000_000
    saved = read_saved(str(path))
    study = read_study(str(path.with_name("study.toml")), settings=saved.settings)
    results = results_of_saved(study, saved, str(path))
    _, table = paper_markdown(study, paper_rows(results)).split("\n\n", 1)
    assert path.with_name("full-scale.md").read_text().endswith(table)
    for plan in study.figures:
        if plan.is_drawn:
            assert chart_of(results, plan) is not None, plan.name


def published(study):
    return read_study(str(STUDIES / study / "study.toml")).references


def test_published_counts_have_the_sums_and_ratios_that_the_papers_print():
    """Sums of the table of Rao and others, and the ratios in tables 1 to 3 of Lillis and others."""
    sums = Counter()
    for one in published("rao-janani-reddy"):
        sums[one.quantity, one.group] += one.value if one.quantity != "pdr" else 0
    assert [sums[name, group] for group in ("tfrc", "tcp") for name in ("sent", "received")] == [
        28469, 28397, 28675, 28664,
    ]  # fmt: skip
    values = {(one.figure, one.group, one.quantity): one.value for one in published("lillis")}
    percent = {
        ("table 1", "newreno"): 0.693, ("table 1", "vegas"): 0, ("table 2", "newreno"): 6.942,
        ("table 2", "vegas"): 4.138, ("table 3", "newreno"): 1.178, ("table 3", "vegas"): 1.050,
        ("table 3", "veno"): 1.048,
    }  # fmt: skip
    for place, printed in percent.items():
        sent, received, dropped = (values[*place, name] for name in ("sent", "received", "dropped"))
        assert sent - received == dropped
        assert values[*place, "throughput_bytes"] == 1000 * received
        assert 100 * dropped / sent == pytest.approx(printed, abs=5e-4)
        assert 100 * values[*place, "drop_ratio"] == pytest.approx(printed)


@pytest.mark.parametrize("study", NAMES)
def test_packets_sent_are_those_that_the_agents_counted(study):
    truth = truth_of(STUDIES / study)
    traces = traces_of(study)
    assert set(traces) == set(truth)
    # every seventh run: all of them are read by the study
    for name in list(truth)[::7]:
        flows = tfrctrace.open(traces[name]).flows.filter(
            pl.col("direction") == "fwd", pl.col("transport").is_in(["tcp", "tfrc"])
        )
        counted = [flow["sent_packets"] for flow in truth[name].values() if "sent_packets" in flow]
        assert sorted(flows["packets"]) == sorted(counted), name


@pytest.mark.parametrize("study", NAMES)
def test_flows_have_the_agents_that_the_script_made(study):
    truth = truth_of(STUDIES / study)
    for name in list(truth)[::7]:
        flows = tfrctrace.open(traces_of(study)[name]).flows.filter(pl.col("direction") == "fwd")
        made = Counter(AGENTS.get(flow["kind"], "tcp") for flow in truth[name].values())
        assert Counter(flows.filter(pl.col("agent").is_in(list(made)))["agent"]) == made, name


def test_goodput_at_the_receiver_is_what_iperf3_received():
    truth = truth_of(LINUX)
    # a test of each kind: all of them are read by the study
    for name in [name for name in truth if name.endswith("-2")]:
        flows = tfrctrace.open(LINUX / f"{name}.pcap.xz").flows
        for stream in truth[name]:
            ports = (pl.col("src_port") == stream["client_port"]) & (
                pl.col("dst_port") == stream["server_port"]
            )
            (row,) = flows.filter(ports).iter_rows(named=True)
            # what arrives when iperf3's time is over is in the capture alone
            data = row["unique_bytes"] - COOKIE_BYTES
            assert stream["bytes_received"] <= data <= stream["bytes"]
            assert (data - stream["bytes_received"]) % SEGMENT_BYTES == 0


def test_what_a_sender_repeats_is_what_its_kernel_says():
    folder = STUDIES / "lillis" / "linux"
    truth = truth_of(folder)
    for path in folder.glob("*/*.pcap.xz"):
        (stream,) = truth[path.name.removesuffix(".pcap.xz")]
        ports = (pl.col("src_port") == stream["client_port"]) & (pl.col("dst_port") == stream["server_port"])
        trace = tfrctrace.open(path)
        (row,) = trace.flows.filter(ports).iter_rows(named=True)
        # iperf3 asks the kernel when its time is over; what waits in the socket is sent after that
        end_ns = row["start_ns"] + int(stream["seconds"] * 1e9)
        repeated = trace.losses.filter((pl.col("flow") == row["flow"]) & (pl.col("time_ns") < end_ns))
        assert repeated.height <= stream["retransmits"] <= row["retransmitted_packets"], path.name
