"""Requests without answers and data that stalls, against clients that waited and drops of netfilter."""

import json
from pathlib import Path

import polars as pl
import pytest

import tfrctrace

DATA = Path(__file__).parents[2] / "data" / "hangs"
FAR_CLIENT, SERVER = "10.78.1.11", "10.78.2.10"
HANGS_S = 10


@pytest.fixture(scope="module")
def waited() -> dict[str, list[list[float]]]:
    return json.loads((DATA / "truth.json").read_text())["waited_s"]


@pytest.fixture(scope="module")
def trace():
    return tfrctrace.open(DATA / "hangs.pcap.gz")


@pytest.fixture(scope="module")
def vanished():
    return tfrctrace.open(DATA / "vanished.pcap.gz")


def sums(rows: pl.DataFrame, *names: str) -> tuple[int, ...]:
    return rows.select(pl.col(*names).sum()).row(0)


@pytest.mark.parametrize("every", [None, "1s", "10s"])
def test_requests_are_those_of_the_clients_and_unanswered_those_that_waited(trace, waited, every):
    # behind the capture hung what the clients waited for during the outage, and what was large
    behind = {"large packets dropped", "during an outage"}
    hung = [
        time_s
        for kind, clients in waited.items()
        for times in clients
        for time_s in times
        if kind not in behind and not 0 <= time_s < HANGS_S
    ]
    rows = trace.groups("host", every).rows.filter(direction="sent")
    requests = sum(len(times) for clients in waited.values() for times in clients)
    assert sums(rows, "requests", "requests_unanswered") == (requests, len(hung))


def test_stalls_are_those_of_what_netfilter_dropped(trace, waited):
    rows = trace.groups("host").rows.filter(direction="received")
    far, near = rows.filter(group=FAR_CLIENT), rows.filter(group="10.78.1.10")
    large, outage = (len(waited[kind]) for kind in ("large packets dropped", "during an outage"))
    assert sums(far, "stalls", "large_stalls") == (large, large)
    assert sums(near, "stalls", "large_stalls") == (outage, 0)


@pytest.mark.parametrize("every", [None, "1s"])
def test_large_segments_that_netfilter_dropped_before_the_capture_are_missing(vanished, waited, every):
    rows = vanished.groups("host", every).rows
    # of one connection a retransmission passed after the rules were flushed: tshark shows 1,448 bytes
    large = len(waited["large packets dropped"]) - 1
    found = {
        (group, direction): count
        for group, direction, count in rows.group_by("group", "direction")
        .agg(pl.col("large_holes").sum())
        .filter(pl.col("large_holes") > 0)
        .iter_rows()
    }
    assert found == {(SERVER, "sent"): large, (FAR_CLIENT, "received"): large}
    if every:
        # clients asked one second after the other
        assert rows.filter(pl.col("large_holes") > 0, group=SERVER)["large_holes"].to_list() == [1] * large


def test_what_vanishes_behind_the_capture_is_missing_nowhere(trace):
    assert trace.groups("host").rows["large_holes"].sum() == 0


def test_each_stall_counts_in_the_interval_in_which_it_began(trace):
    rows = trace.groups("link", "1s").rows.filter(pl.col("stalls") > 0)
    dropped = rows.filter(pl.col("large_stalls") == 0)["start_ns"]
    # netfilter dropped all for 14 s
    assert dropped.max() - dropped.min() < 14 * 10**9


@pytest.mark.parametrize(
    ("name", "objective", "host"),
    [
        ("hangs", "large packets", FAR_CLIENT),
        ("vanished", "large packets before the capture", SERVER),
    ],
)
def test_an_audit_does_not_call_met_what_hangs(name, objective, host, run, tmp_path):
    done = run("audit", DATA / f"{name}.pcap.gz", "-o", "audit")
    assert done.status == 0, done.err
    (link,) = json.loads((tmp_path / "audit" / "audit.json").read_text())["links"]
    judged = {one["name"]: one for one in link["objectives"]}
    assert judged[objective]["met"] is False
    assert [one["group"] for one in judged[objective]["groups"] if one["violated"]] == [host]
