"""The five studies that ship: their claims are as they say, and their flows are what the agents counted."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.study import perform_study
from tfrctrace.study.definition import TablePlan
from tfrctrace.study.results.cells import matches

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
    assert sum(path.stat().st_size for path in STUDIES.parent.rglob("*") if path.is_file()) < MOST_BYTES


@pytest.mark.parametrize("study", NAMES)
def test_the_readme_names_every_table_and_figure(study):
    readme = (STUDIES / "README.md").read_text()
    plans = tomllib.loads((STUDIES / study / "study.toml").read_text())
    for plan in (*plans["table"], *plans["figure"]):
        assert f"`{plan['name']}`" in readme, plan["name"]


@pytest.mark.parametrize("study", FILES)
def test_every_claim_of_a_study_is_as_it_says(study, tmp_path):
    results = perform_study(STUDIES / study, cache=tmp_path)
    folder = Path(study).parent
    is_linux = study.endswith("linux.toml")
    traces = (STUDIES / folder).glob("linux/**/*.pcap.xz") if is_linux else traces_of(folder.name)
    assert len(results.runs) == len(list(traces))
    # control connections are no competitors
    assert [one for one in results.problems if one["kind"] != "left_out"] == []
    assert results.verdicts
    for verdict in results.verdicts:
        assert verdict.is_as_expected, verdict
    # every table and figure has content
    for plan in (*results.study.tables, *results.study.figures):
        names = plan.columns if isinstance(plan, TablePlan) else (plan.y,)
        for name in {*names} - {"rate", "cwnd"}:
            cells = [cell for cell in results.cells if cell.quantity == name and matches(cell, plan.where)]
            assert any(cell.values for cell in cells), (plan.name, name)


@pytest.mark.parametrize("study", NAMES)
def test_packets_sent_are_those_that_the_agents_counted(study):
    truth = json.loads((STUDIES / study / "truth.json").read_text())
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
    truth = json.loads((STUDIES / study / "truth.json").read_text())
    for name in list(truth)[::7]:
        flows = tfrctrace.open(traces_of(study)[name]).flows.filter(pl.col("direction") == "fwd")
        made = Counter(AGENTS.get(flow["kind"], "tcp") for flow in truth[name].values())
        assert Counter(flows.filter(pl.col("agent").is_in(list(made)))["agent"]) == made, name


def test_goodput_at_the_receiver_is_what_iperf3_received():
    truth = json.loads((LINUX / "truth.json").read_text())
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
    truth = json.loads((folder / "truth.json").read_text())
    for path in folder.glob("*/*.pcap.xz"):
        (stream,) = truth[path.name.removesuffix(".pcap.xz")]
        ports = (pl.col("src_port") == stream["client_port"]) & (pl.col("dst_port") == stream["server_port"])
        trace = tfrctrace.open(path)
        (row,) = trace.flows.filter(ports).iter_rows(named=True)
        # iperf3 asks the kernel when its time is over; what waits in the socket is sent after that
        end_ns = row["start_ns"] + int(stream["seconds"] * 1e9)
        repeated = trace.losses.filter((pl.col("flow") == row["flow"]) & (pl.col("time_ns") < end_ns))
        assert repeated.height <= stream["retransmits"] <= row["retransmitted_packets"], path.name
