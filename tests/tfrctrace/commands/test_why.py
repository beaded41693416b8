"""`tfrctrace why`: sentences for people, rows for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[3]
RUNS = ROOT / "tests" / "data" / "causes"
RECEIVER = str(RUNS / "0002-receiver-vegas" / "sender.pcap.gz")


def test_it_says_what_held_a_flow_back_the_evidence_and_what_would_have_helped(run):
    done = run("why", RECEIVER)
    assert done.status == 0
    assert "the receive window was full." in done.out
    assert "Evidence: the newest data reached the edge of the receive window" in done.out
    assert "What would have helped: a larger receive buffer" in " ".join(done.out.split())
    assert "█" in done.out


def test_json_is_as_its_schema_says(run):
    document = json.loads(run("why", RECEIVER, "--format", "json").out)
    schema = json.loads((ROOT / "docs" / "why.schema.json").read_text())
    assert not list(Draft202012Validator(schema).iter_errors(document))
    (flow,) = document["flows"]
    assert flow["main_cause"] == "receiver"
    assert sum(value for name, value in flow.items() if name.endswith("_share")) == pytest.approx(
        1 + flow["main_cause_share"]
    )


def test_csv_has_the_same_rows(run):
    rows = pl.read_csv(io.StringIO(run("why", RECEIVER, "--format", "csv").out))
    (flow,) = json.loads(run("why", RECEIVER, "--format", "json").out)["flows"]
    assert rows.columns == list(flow)
    assert rows.row(0, named=True) == pytest.approx(flow)


def test_a_named_flow_is_described_and_one_that_is_not_there_refused(run):
    assert run("why", RECEIVER, "--flow", "1").status == 0
    refused = run("why", RECEIVER, "--flow", "7")
    assert refused.status == 2
    assert "flow 7 is no captured TCP connection with data" in refused.err


def test_a_simulation_has_no_captured_connection(run):
    trace = ROOT / "sample_traces" / "dumbbell.tr.xz"
    done = run("why", str(trace), "--rows", "0")
    assert done.status == 0
    assert done.out == "no captured TCP connection with data\n"


def test_the_slowest_large_flows_are_described_unless_all_are_wanted(run):
    trace = str(ROOT / "sample_traces" / "two-flows.pcapng.gz")
    slowest = run("why", trace).out
    assert slowest.index("192.0.2.2:5202") < slowest.index("192.0.2.2:5201")
    assert "2 of 6 directions with data, slowest first" in slowest
    # both flows share one bottleneck: iperf3's, in sample_traces/make.py
    assert slowest.count("it shared the rate of the path with others.") == 2
    assert run("why", trace, "--rows", "0").out.count("flow ") == 6


def test_flows_names_the_command_when_asked_why(run):
    asked = run("flows", RECEIVER, "--why")
    assert asked.status == 2
    assert "tfrctrace why" in asked.err
