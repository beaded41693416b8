"""A trace of some nodes, layers or queues gives what its lines show, and null for the rest."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from pathlib import Path
from typing import Any

import pytest

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

DATA = Path(__file__).resolve().parent.parent.parent / "data"
NS2_TRUTH = json.loads((DATA / "ns2" / "truth.json").read_text())
NS3_TRUTH = json.loads((DATA / "ns3" / "truth.json").read_text())
OF_PATH = ("lost_packets", "in_flight_packets", "pdr", "plr", "delay_mean_ms")
OF_SENDER = ("sent_packets", *OF_PATH)
OF_RECEIVER = ("received_packets", "received_bytes", "duplicate_packets", *OF_PATH)

Row = dict[str, Any]


def lines_of(name: str) -> list[str]:
    opener: Any = gzip.open if name.endswith("gz") else lzma.open
    with opener(DATA / name, "rt") as file:
        return list(file)


def rows_of(lines: list[str], where: Path) -> list[Row]:
    trace = where / "part.tr"
    trace.write_text("".join(lines))
    found = _native.analyse([str(trace)], ReadSettings(), collect=set())
    return list(found.table("flows").rows())


def row_of(rows: list[Row], src: str, src_port: int) -> Row:
    [row] = [row for row in rows if (row["src"], row["src_port"]) == (src, src_port)]
    return row


def nulls(row: Row, columns: tuple[str, ...]) -> bool:
    return all(row[column] is None for column in columns)


def on_link(line: str, start: str, end: str) -> bool:
    return line[0] in "+rd" and line.split()[2:4] == [start, end]


def is_at(line: str, node: str) -> bool:
    """Return whether a line of a wired trace of ns-2 is about this node."""
    if line[0] not in "+rd":
        return False
    event, _, start, end = line.split()[:4]
    return node == (end if event == "r" else start)


@pytest.fixture(scope="module")
def wired() -> list[str]:
    """Return a run of TCP (4 to 5, 2 to 3, 6 to 7) and UDP (8 to 9); the link from 0 to 1 is slow."""
    return lines_of("ns2/timeouts.tr.xz")


@pytest.fixture(scope="module")
def whole(wired: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return rows_of(wired, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("end", ["4", "2", "6", "8"])
def test_the_queue_of_one_link_shows_what_came_to_it(wired: list[str], end: str, tmp_path: Path) -> None:
    queue = [line for line in wired if on_link(line, "0", "1")]
    own = [line.split() for line in queue if f" {end}.0 " in line]
    came = {fields[11]: int(fields[10]) for fields in own if fields[0] == "+"}
    dropped = sum(fields[0] == "d" for fields in own)
    row = row_of(rows_of(queue, tmp_path), end, 0)
    assert row["packets"] == len(came)
    assert row["dropped_packets"] == dropped > 0
    assert row["drop_reasons"] == f"link {dropped}"
    if end != "8":
        assert row["retransmitted_packets"] == len(came) - len(set(came.values()))
    assert nulls(row, OF_SENDER)
    assert nulls(row, OF_RECEIVER)
    assert row["vantage"] == "middle"
    assert "on their way only" in row["notes"]


def test_both_queues_of_a_link_are_watched_at_one_node(wired: list[str], tmp_path: Path) -> None:
    rows = rows_of([line for line in wired if on_link(line, "0", "1") or on_link(line, "1", "0")], tmp_path)
    acks = sum(line.startswith("r") and line.split()[2:5] == ["1", "0", "ack"] for line in wired)
    assert sum(row_of(rows, end, 0)["packets"] for end in "537") == acks
    assert row_of(rows, "4", 0)["rtt_samples"] > 0


@pytest.mark.parametrize(("src", "dst"), [("4", "5"), ("2", "3"), ("6", "7")])
def test_the_lines_of_a_sender_do_not_show_what_arrives(
    wired: list[str], whole: list[Row], src: str, dst: str, tmp_path: Path
) -> None:
    rows = rows_of([line for line in wired if is_at(line, src)], tmp_path)
    data, acks = row_of(rows, src, 0), row_of(rows, dst, 0)
    for column in (
        "sent_packets",
        "packets",
        "unique_bytes",
        "retransmitted_packets",
        "timeouts",
        "rtt_p50_ms",
    ):
        assert data[column] == row_of(whole, src, 0)[column], column
    assert nulls(data, ("dropped_packets", *OF_RECEIVER))
    assert acks["received_packets"] == row_of(whole, dst, 0)["received_packets"]
    assert nulls(acks, OF_SENDER)
    assert (data["vantage"], acks["vantage"]) == ("sender", "receiver")


@pytest.mark.parametrize(("src", "dst"), [("4", "5"), ("2", "3"), ("6", "7")])
def test_the_lines_of_a_receiver_do_not_show_what_was_sent(
    wired: list[str], whole: list[Row], src: str, dst: str, tmp_path: Path
) -> None:
    rows = rows_of([line for line in wired if is_at(line, dst)], tmp_path)
    data, acks = row_of(rows, src, 0), row_of(rows, dst, 0)
    expected = row_of(whole, src, 0)
    assert data["packets"] == data["received_packets"] == expected["received_packets"]
    assert data["received_bytes"] == expected["received_bytes"] == data["wire_bytes"]
    assert nulls(data, OF_SENDER)
    assert acks["sent_packets"] == row_of(whole, dst, 0)["sent_packets"]
    assert (data["direction"], data["vantage"], acks["vantage"]) == ("fwd", "receiver", "sender")


def test_drops_alone_are_counted_and_nothing_else(wired: list[str], tmp_path: Path) -> None:
    drops = [line for line in wired if line.startswith("d")]
    rows = rows_of(drops, tmp_path)
    assert sum(row["dropped_packets"] or 0 for row in rows) == len(drops)
    assert all(nulls(row, OF_SENDER) and nulls(row, OF_RECEIVER) for row in rows)
    assert {row["vantage"] for row in rows} == {None}


def test_a_trace_that_begins_with_an_acknowledgement_is_watched_at_the_sender_of_data(
    wired: list[str], tmp_path: Path
) -> None:
    third = wired[len(wired) // 3 :]
    tail = third[next(at for at, line in enumerate(third) if line.startswith("+ ") and " 1 ack " in line) :]
    for row in rows_of(tail, tmp_path):
        if row["transport"] == "tcp":
            assert row["direction"] == ("fwd" if row["src"] in "426" else "rev")
            sent = [line.split()[10] for line in tail if line[0] == "+" and is_at(line, row["src"])]
            repeats = len(sent) - len(set(sent)) if row["direction"] == "fwd" else 0
            assert row["retransmitted_packets"] == repeats


def test_routers_lines_alone_show_no_arrival(tmp_path: Path) -> None:
    rows = rows_of([line for line in lines_of("ns2/wireless-old.tr.gz") if " RTR " in line], tmp_path)
    for flow in NS2_TRUTH["wireless-old.tr.gz"]:
        row = row_of(rows, flow["src"], flow["src_port"])
        assert row["sent_packets"] == flow["sent_packets"]
        assert nulls(row, OF_RECEIVER)
        assert "does not show what arrives" in row["notes"]


def test_lines_of_the_medium_access_show_arrivals_without_the_agents(tmp_path: Path) -> None:
    lines = lines_of("ns2/wireless-rates.tr.xz")
    expected = rows_of(lines, tmp_path)
    rows = rows_of([line for line in lines if " AGT " not in line], tmp_path)
    compared = [row for row in expected if row["received_packets"]]
    assert compared
    for row in compared:
        without = row_of(rows, row["src"], row["src_port"])
        if without["received_packets"] is not None:
            assert without["received_packets"] == row["received_packets"]
        else:
            assert without["pdr"] is None


def test_a_mixed_run_without_its_wired_lines_counts_at_the_stations(tmp_path: Path) -> None:
    rows = rows_of([line for line in lines_of("ns2/mixed-new.tr.gz") if " -Hs " in line], tmp_path)
    for flow in NS2_TRUTH["mixed-new.tr.gz"]:
        data = row_of(rows, flow["src"], flow["src_port"])
        assert data["sent_packets"] == flow["sent_packets"]
        assert nulls(data, OF_RECEIVER)
        answers = row_of(rows, flow["dst"], flow["dst_port"])
        assert answers["received_packets"] == answers["packets"] > 0
        assert nulls(answers, OF_SENDER)


def test_a_mixed_run_without_its_wireless_lines_counts_behind_the_base_station(tmp_path: Path) -> None:
    wired = re.compile(r"[-+rd] [\d.]+ \d")
    lines = [line for line in lines_of("ns2/mixed-new.tr.gz") if wired.match(line)]
    rows = rows_of(lines, tmp_path)
    for flow in NS2_TRUTH["mixed-new.tr.gz"]:
        data = row_of(rows, flow["src"], flow["src_port"])
        assert data["received_packets"] == flow["received_once"]
        assert data["packets"] < flow["sent_packets"]
        assert nulls(data, OF_SENDER)
        assert f"does not show what {flow['src']} sends" in data["notes"]
        assert nulls(row_of(rows, flow["dst"], flow["dst_port"]), OF_RECEIVER)


@pytest.mark.parametrize("node", ["0", "1", "2", "3"])
def test_the_lines_of_one_node_of_ns3(node: str, tmp_path: Path) -> None:
    """0 is the sender, 1 the receiver, 2 and 3 are routers."""
    lines = [line for line in lines_of("ns3/p2p-newreno.tr.xz") if f"/NodeList/{node}/" in line]
    rows = rows_of(lines, tmp_path)
    flows = {flow["src"]: flow for flow in NS3_TRUTH["p2p-newreno"]["flows"]}
    data, acks = (row_of(rows, src, flow["sport"]) for src, flow in flows.items())
    sent, received = (flow["txPackets"] for flow in flows.values())
    arrived = flows["10.1.1.1"]["rxPackets"]
    match node:
        case "0":
            assert (data["sent_packets"], data["received_packets"]) == (sent, None)
        case "1":
            assert (data["sent_packets"], data["received_packets"], data["vantage"]) == (
                None,
                arrived,
                "receiver",
            )
            assert acks["sent_packets"] == received
        case _:
            assert nulls(data, OF_SENDER)
            assert nulls(data, OF_RECEIVER)
            assert data["vantage"] == "middle"
            assert data["packets"] >= arrived
            assert acks["packets"] > 0


def test_bins_count_what_the_flows_count(wired: list[str], tmp_path: Path) -> None:
    trace = tmp_path / "receiver.tr"
    trace.write_text("".join(line for line in wired if is_at(line, "5")))
    found = _native.analyse([str(trace)], ReadSettings(), collect={"bins"})
    [data, acks] = found.table("flows").rows()
    for row in (data, acks):
        own = [bin for bin in found.table("bins").rows() if bin["direction"] == row["direction"]]
        assert sum(bin["packets"] for bin in own) == row["packets"]
        assert {bin["lost_packets"] for bin in own} == {None}
