"""`tfrctrace flows`: which flows the text table shows, and that all forms agree."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.commands.flows import _select_flows as chosen

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"


@pytest.fixture(scope="module")
def flow_pass():
    samples = [SAMPLES / name for name in ("two-flows.pcapng.gz", "mixed.pcap.zst")]
    return tfrctrace.open(samples).read("flows")


def numbers(flows):
    return [flow[0]["flow"] for flow in flows]


def test_in_order_of_first_packet_the_first_flows_are_shown(flow_pass):
    assert numbers(chosen(flow_pass.table("flows"), "flow", 2)) == [1, 2]


@pytest.mark.parametrize(
    ("sort", "value"),
    [
        ("bytes", pl.col("wire_bytes").sum()),
        ("packets", pl.col("packets").sum()),
        ("goodput", pl.col("goodput_bps").max()),
        ("retransmissions", pl.col("retransmitted_segments").sum()),
        ("rtt", pl.col("rtt_p50_ms").max()),
    ],
)
@pytest.mark.parametrize("limit", [1, 5, None])
def test_the_largest_come_first_and_equal_ones_in_order_of_their_first_packet(flow_pass, sort, value, limit):
    flows = flow_pass.table("flows").frame()
    known = pl.col("_value").is_not_null()
    ordered = (
        flows.group_by("flow")
        .agg(value.alias("_value"), retransmitted=pl.col("retransmitted_segments").count())
        # the sum of nothing is unknown
        .with_columns(
            pl.when(known & ((pl.col("retransmitted") > 0) | (sort != "retransmissions"))).then("_value")
        )
        .sort("_value", "flow", descending=[True, False], nulls_last=True)
    )
    found = chosen(flow_pass.table("flows"), sort, limit)
    assert numbers(found) == ordered["flow"].to_list()[:limit]
    assert [row["direction"] for flow in found for row in flow] == ["fwd", "rev"] * len(found)


@pytest.fixture
def two_captures(write_capture, conversation):
    write_capture("a.pcap", [*conversation(1001), *conversation(1002, data_packets=9)])
    write_capture("b.pcap", conversation(1003, data_packets=5), start_s=1_700_000_100)


@pytest.mark.usefixtures("two_captures")
def test_flows_of_several_captures_are_numbered_through(run):
    flows = json.loads(run("flows", "--format", "json", "a.pcap", "b.pcap").out)["flows"]
    assert [(row["flow"], row["source"]) for row in flows if row["direction"] == "fwd"] == [
        (1, "a.pcap"),
        (2, "a.pcap"),
        (3, "b.pcap"),
    ]


@pytest.mark.usefixtures("two_captures")
def test_every_form_has_the_same_rows(run, tmp_path):
    outcome = run("flows", "--format", "json", "a.pcap", "b.pcap")
    as_json = json.loads(outcome.out)["flows"]
    assert run("flows", "a.pcap", "b.pcap", "-o", "x.parquet").status == 0
    as_parquet = pl.read_parquet(tmp_path / "x.parquet")
    as_csv = pl.read_csv(io.StringIO(run("flows", "a.pcap", "b.pcap", "--format", "csv").out))
    assert as_parquet.rows(named=True) == as_json
    assert as_csv.select(pl.col(pl.Int64)).equals(
        as_parquet.select(as_csv.select(pl.col(pl.Int64)).columns).cast(pl.Int64)
    )
    assert as_csv["src"].to_list() == as_parquet["src"].to_list()


@pytest.mark.usefixtures("two_captures")
def test_the_name_of_the_output_gives_its_format(run, tmp_path):
    run("flows", "a.pcap", "-o", "x.json")
    assert json.loads((tmp_path / "x.json").read_text())["schema_version"] == 3
    run("flows", "a.pcap", "-o", "x.txt")
    assert (tmp_path / "x.txt").read_text() == run("flows", "a.pcap").out


@pytest.mark.usefixtures("two_captures")
def test_the_text_table_obeys_limit_and_sort(run):
    out = run("flows", "a.pcap", "b.pcap", "--sort", "packets", "--rows", "2").out
    assert [line.split()[1] for line in out.splitlines() if "→ 198" in line] == [
        "192.0.2.1:1002",
        "192.0.2.1:1003",
    ]
    assert "2 of 3 flows, by packets, largest first" in out
    assert "3 flows" in run("flows", "a.pcap", "b.pcap", "--rows", "0").out


def test_a_rotated_capture_is_one_trace_when_joined(run, write_capture, conversation):
    frames = conversation(data_packets=4)
    write_capture("t1.pcap", frames[:5])
    write_capture("t2.pcap", frames[5:], start_s=1_700_000_001)
    write_capture("whole.pcap", frames)
    joined = json.loads(run("flows", "--join", "--format", "json", "t1.pcap", "t2.pcap").out)["flows"]
    whole = json.loads(run("flows", "--format", "json", "whole.pcap").out)["flows"]
    apart = json.loads(run("flows", "--format", "json", "t1.pcap", "t2.pcap").out)["flows"]
    assert [row["packets"] for row in joined] == [row["packets"] for row in whole]
    assert [row["state"] for row in joined] == ["closed", "closed"]
    assert len(apart) == 4


def test_a_bound_on_flows_is_reported_when_it_is_reached(run, write_capture, conversation):
    write_capture("a.pcap", [*conversation(1001), *conversation(1002)])
    outcome = run("flows", "--max-flows", "1", "--format", "json", "a.pcap")
    parsed = json.loads(outcome.out)
    assert len(parsed["flows"]) == 2
    assert parsed["sources"][0]["untracked_packets"] == len(conversation())
    assert parsed["warnings"]
    assert "warning: `a.pcap`" in outcome.err
