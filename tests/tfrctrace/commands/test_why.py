"""`tfrctrace why`: sentences for people, rows for programs."""

from __future__ import annotations

import gzip
import io
import json
import re
from pathlib import Path

import polars as pl
import pytest
from jsonschema import Draft202012Validator
from polars.testing import assert_frame_equal

import tfrctrace
from tfrctrace.replay.naming.candidates import CANDIDATES

ROOT = Path(__file__).resolve().parents[3]
RUNS = ROOT / "tests" / "data" / "causes"
BOTTLENECKS = ROOT / "tests" / "data" / "bottlenecks"
RECEIVER = str(RUNS / "0002-receiver-vegas" / "sender.pcap.gz")


def test_it_says_what_held_a_flow_back_the_evidence_and_what_would_have_helped(run):
    done = run("why", RECEIVER)
    assert done.status == 0
    assert "the receive window was full." in done.out
    assert "Evidence: the newest data reached the edge of the receive window" in done.out
    assert "What would have helped: a larger receive buffer" in " ".join(done.out.split())
    assert "█" in done.out


@pytest.mark.parametrize(
    ("capture", "said"),
    [
        (
            BOTTLENECKS / "0034-bottleneck-vegas",
            r"The bottleneck carries 4\.03 Mbit/s \(3\.\d+ Mbit/s to 4\.\d+ Mbit/s, with IP headers\), "
            r"or this is its part where the queue serves flows in turn\. Its queue drops or marks before "
            r"it is full, as CoDel, PIE and RED do\.",
        ),
        (
            RUNS / "0010-policer-yeah",
            r"The policer lets 1\.9\d Mbit/s pass \(1\.88 Mbit/s to 1\.98 Mbit/s\)\.",
        ),
    ],
    ids=("aqm", "policer"),
)
def test_it_says_what_a_flow_shows_of_its_bottleneck(capture, said, run):
    out = " ".join(run("why", str(capture / "sender.pcap.gz"), "--flow", "1").out.split())
    assert re.search(said, out), out


@pytest.mark.parametrize("capture", [RECEIVER, str(BOTTLENECKS / "0005-bursts-veno" / "sender.pcap.gz")])
def test_json_is_as_its_schema_says(capture, run):
    document = json.loads(run("why", capture, "--format", "json").out)
    schema = json.loads((ROOT / "docs" / "why.schema.json").read_text())
    assert not list(Draft202012Validator(schema).iter_errors(document))
    (flow,) = document["flows"]
    assert flow["main_cause"] in {"receiver", "application"}
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
    assert "no flow 7 has data" in refused.err


def test_it_names_the_congestion_control_with_the_evidence(run):
    said = " ".join(run("why", str(RUNS / "0000-bottleneck-reno" / "sender.pcap.gz")).out.split())
    assert "behaves like one of htcp, hybla, lp, reno, westwood, which are alike here: 391 of 397 " in said
    assert "round trips are as predicted" in said
    assert "losses left 50.0 % of its window." in said


def test_it_says_why_a_congestion_control_is_not_known(run, monkeypatch):
    others = [one for one in CANDIDATES if one.name not in {"dctcp", "nv"}]
    monkeypatch.setattr("tfrctrace.replay.naming.answer.possible_candidates", lambda _own, *, has_ecn: others)
    said = run("why", str(RUNS.parent / "congestion_controls" / "38-0008-nv" / "sender.pcap.gz")).out
    assert "Its congestion control is not known: none of those known predicts its window" in " ".join(
        said.split()
    )


def test_where_nothing_tells_it_says_why(run):
    trace = str(ROOT / "sample_traces" / "dumbbell.tr.xz")
    done = run("why", trace, "--rows", "0")
    assert done.status == 0
    # what its OTcl script made: sample_traces/dumbbell.tcl
    assert [line[:14] for line in done.out.splitlines() if line.startswith("Flow")] == [
        *("Flow 1 (TFRC):", "Flow 2 (UDP): ", "Flow 3 (TCP): ")
    ]
    assert run("why", trace, "--flow", "2").out.startswith(
        "Flow 2 (UDP): cause unknown, because UDP has no window"
    )
    document = json.loads(run("why", trace, "--format", "json").out)
    schema = json.loads((ROOT / "docs" / "why.schema.json").read_text())
    assert not list(Draft202012Validator(schema).iter_errors(document))
    assert [(one["flows"][0]["flow"], one["flows"][0]["transport"]) for one in document["untold"]] == [
        *((1, "tfrc"), (2, "udp"), (3, "tcp"))
    ]


def test_a_trace_without_data_has_no_flow_to_describe(run, tmp_path):
    (tmp_path / "empty.pcap").write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    assert run("why", "empty.pcap").out == "no flow with data\n"


def test_the_text_is_in_the_order_that_is_asked_for(run):
    trace = str(ROOT / "sample_traces" / "two-flows.pcapng.gz")
    assert run("why", trace, "--sort", "bytes").out.startswith("flow 2 ")
    assert run("why", trace, "--sort", "shared_bottleneck", "--rows", "1").out.startswith("flow 4 ")
    assert run("why", trace, "--sort", "bytes", "--format", "csv").status == 2


def test_bufferbloat_is_that_of_the_kernels_own_round_trip_times(run):
    folder = RUNS / "0004-send_buffer-westwood"
    with gzip.open(folder / "flow.tcp_info.csv.gz") as log:
        kernel = pl.read_csv(log.read())
    said = " ".join(run("why", str(folder / "sender.pcap.gz")).out.split())
    base_ms, p95_ms = map(float, re.search(r"rose from (\d+) ms to (\d+) ms", said).groups())
    assert base_ms == pytest.approx(kernel["min_rtt_us"].min() / 1e3, rel=0.01)
    assert p95_ms == pytest.approx(kernel["rtt_us"].quantile(0.95) / 1e3, rel=0.1)
    alone = "the only one that kept data in flight from or to these hosts then"
    assert f"this flow filled it most, {alone}" in said
    # its queue was never long: RED, in scenario.json
    assert "Bufferbloat" not in run("why", str(RUNS / "0000-bottleneck-reno" / "sender.pcap.gz")).out


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


def test_rows_are_the_same_in_parts_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = ROOT / "sample_traces" / "two-flows.pcapng.gz"
    whole = tfrctrace.open([capture, capture]).why_rows()
    monkeypatch.setattr("tfrctrace.parsers.reading.FRAME_ROWS", 2)
    assert_frame_equal(tfrctrace.open([capture, capture]).why_rows(), whole)
    assert len(whole) > 2
