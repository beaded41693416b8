"""QUIC is what aioquic's own logs say, and what tshark reads in its handshake.

`tests/data/quic` has connections of aioquic through a relay, before and behind it. `truth.json` has the
ports, and of both ends' qlogs the time from the first Initial packet to its acknowledgement, and each
`latest_rtt`.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import statistics
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from ip_packets import ethernet, udp

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DATA = Path(__file__).resolve().parent.parent.parent / "data" / "quic"
CAPTURE = DATA / "aioquic.pcap.gz"
TRUTH = json.loads((DATA / "truth.json").read_text())
ENDS = ("client", "server")
USER_SPACE_MS = 1.5
"""What processing on a busy machine adds to a time of the log, which ends in user space."""
START = gzip.decompress(CAPTURE.read_bytes())[:24]
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

Row = dict[str, Any]


@pytest.fixture(scope="module")
def flows() -> list[Row]:
    return tfrctrace.open(CAPTURE).flows.to_dicts()


def rows_at(flows: list[Row], case: str, end: str) -> list[Row]:
    """Return both directions of the flows of a case, as captured next to an end."""
    port = TRUTH[case]["ports"][end]
    return [row for row in flows if port in (row["src_port"], row["dst_port"])]


def own_row(flows: list[Row], case: str, end: str) -> Row:
    """Return the direction that an end sends, of the first connection."""
    there, back = rows_at(flows, case, end)[:2]
    return there if end == "client" else back


@pytest.mark.parametrize("case", TRUTH)
@pytest.mark.parametrize("end", ENDS)
def test_the_first_round_trip_is_that_of_the_log(flows: list[Row], case: str, end: str) -> None:
    row = own_row(flows, case, end)
    theirs_ms = TRUTH[case]["first_rtt_ms"][end][0]
    assert row["transport"] == "quic"
    if case == "retry" and end == "client":
        # the Retry packet answers the first packet, at once
        assert 20 <= row["syn_rtt_ms"] <= theirs_ms
        return
    assert row["syn_rtt_ms"] == pytest.approx(theirs_ms, abs=USER_SPACE_MS)


@pytest.mark.parametrize("case", TRUTH)
def test_the_handshake_takes_the_same_time_from_both_ends(flows: list[Row], case: str) -> None:
    times_ms = [own_row(flows, case, end)["handshake_rtt_ms"] for end in ENDS]
    assert times_ms[0] == pytest.approx(times_ms[1], abs=5)
    near, far = (own_row(flows, case, "client"), rows_at(flows, case, "client")[1])
    assert near["syn_rtt_ms"] + far["syn_rtt_ms"] == pytest.approx(near["handshake_rtt_ms"])


@pytest.mark.parametrize("end", ENDS)
def test_the_spin_bit_shows_the_round_trips_of_the_log(flows: list[Row], end: str) -> None:
    theirs_ms = statistics.median(TRUTH["bulk"]["latest_rtt_ms"]["server"][0])
    for row in rows_at(flows, "bulk", end):
        assert row["spin_verdict"] == "plausible"
        assert row["spin_rtt_samples"] >= 5
        assert row["spin_rtt_p50_ms"] == pytest.approx(theirs_ms, rel=0.15)
    # what the server sends is answered by the client, at the other end of the relay
    if end == "server":
        assert own_row(flows, "bulk", end)["rtt_p50_ms"] == pytest.approx(theirs_ms, rel=0.15)


def test_an_application_that_waits_is_not_taken_for_a_long_path(flows: list[Row]) -> None:
    for end in ENDS:
        for row in rows_at(flows, "app", end):
            assert row["spin_verdict"] == "application_limited"
            assert row["spin_rtt_p50_ms"] > 150
    theirs_ms = statistics.median(TRUTH["app"]["latest_rtt_ms"]["server"][0])
    assert own_row(flows, "app", "server")["rtt_p50_ms"] == pytest.approx(theirs_ms, rel=0.2)


def test_a_connection_goes_on_from_another_address(flows: list[Row]) -> None:
    before, behind = (rows_at(flows, "rebind", end) for end in ENDS)
    assert [row["quic_paths"] for row in before] == [1, 1]
    assert [row["quic_paths"] for row in behind] == [2, 2]
    assert [row["packets"] for row in before] == [row["packets"] for row in behind]


def test_kinds_of_packets_are_counted(flows: list[Row]) -> None:
    retry, second_version = (rows_at(flows, case, "client") for case in ("retry", "v2"))
    assert [row["quic_retry_packets"] for row in retry] == [0, 1]
    assert {row["quic_version"] for row in second_version} == {"2"}
    assert {row["quic_version"] for row in retry} == {"1"}
    first, _, resumed, _ = rows_at(flows, "zero", "client")
    assert (first["quic_0rtt_packets"], resumed["quic_0rtt_packets"]) == (0, 1)
    # the relay has one port for both
    shared = rows_at(flows, "zero", "server")
    assert len(shared) == 2
    assert "1 further connection between the same ports" in shared[0]["notes"]


def test_names_and_what_is_encrypted(flows: list[Row]) -> None:
    assert len(flows) == 26
    assert {row["server_name"] for row in flows} == {"quic.example"}
    assert {row["alpn"] for row in flows} == {"hq-interop,h3"}
    for name in ("retransmitted_packets", "lost_packets", "unique_bytes", "state", "pdr"):
        assert {row[name] for row in flows} == {None}


@needs_tshark
def test_tshark_reads_the_same_handshakes(flows: list[Row], tmp_path: Path) -> None:
    path = tmp_path / "near.pcap"
    near = {truth["ports"]["client"] for truth in TRUTH.values()}
    # tshark takes connections with the same identifiers for one
    own = [record for record in packets() if near & set(struct.unpack_from(">HH", record[1], 34))]
    path.write_bytes(START + b"".join(head + frame for head, frame in own))
    fields = ("udp.stream", "quic.version", "tls.handshake.extensions_server_name")
    command = ["tshark", "-r", str(path), "-Y", "tls.handshake.type == 1", "-T", "fields"]
    for name in fields:
        command += ["-e", name]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    theirs = {line.split("\t")[0]: line.split("\t")[1:] for line in lines}
    versions = {"0x00000001": "1", "0x6b3343cf": "2"}
    ours = [
        [row["quic_version"], row["server_name"]]
        for row in flows
        if row["direction"] == "fwd" and row["dst_port"] in near
    ]
    assert len(ours) == 7
    assert [[versions[version.split(",")[0]], name] for version, name in theirs.values()] == ours


def test_rtt_samples_say_how_they_were_measured() -> None:
    samples = tfrctrace.open(CAPTURE).rtt
    assert set(samples["method"]) == {"ack", "spin"}


@pytest.mark.parametrize("end", ENDS)
def test_a_qlog_belongs_to_the_captured_connection(flows: list[Row], end: str) -> None:
    log = DATA / f"app-{end}.qlog.gz"
    trace = tfrctrace.open([CAPTURE, log])
    rows = trace.variables
    samples = rows.filter(name="rtt")["value"].to_list()
    distinct = [value for value, before in zip(samples, [None, *samples], strict=False) if value != before]
    assert distinct == pytest.approx(TRUTH["app"]["latest_rtt_ms"][end][0], abs=0.001)
    flow = own_row(flows, "app", "client")["flow"]
    assert set(rows["flow"]) == {flow}
    assert set(rows["direction"]) == {"fwd" if end == "client" else "rev"}
    assert {"cwnd", "bytes_in_flight", "srtt", "minrtt"} <= set(rows["name"])
    alone = tfrctrace.open(log).variables
    assert set(alone["src"]) == {f"{end} of 5eb3b76f7509e792"}
    assert alone["value"].to_list() == rows["value"].to_list()


def packets() -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers of the records and the frames of the capture."""
    content = gzip.decompress(CAPTURE.read_bytes())
    at = 24
    while at < len(content):
        (captured,) = struct.unpack_from("<8xI", content, at)
        yield content[at : at + 16], content[at + 16 : at + 16 + captured]
        at += 16 + captured


def test_cut_handshakes_are_recognised_without_a_name(tmp_path: Path, flows: list[Row]) -> None:
    path = tmp_path / "cut.pcap"
    cut = [
        (head[:8] + struct.pack("<I", min(len(frame), 96)) + head[12:], frame[:96])
        for head, frame in packets()
    ]
    path.write_bytes(START + b"".join(head + frame for head, frame in cut))
    rows = tfrctrace.open(path).flows.to_dicts()
    assert {row["transport"] for row in rows} == {"quic"}
    assert {row["server_name"] for row in rows} == {None}
    assert "no server name" in rows[0]["notes"]
    for row, whole in zip(rows, flows, strict=True):
        assert row["packets"] == whole["packets"]
        if row["syn_rtt_ms"] is not None:
            assert row["syn_rtt_ms"] == pytest.approx(whole["syn_rtt_ms"], abs=5)
    # which of several packets was answered is encrypted, and the Retry packet is cut
    assert sum(row["syn_rtt_ms"] is not None for row in rows) >= 10


def test_marks_of_the_ip_header_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "l4s.pcap"
    content = START
    for number, (head, frame) in enumerate(packets()):
        codepoint = 3 if number % 10 == 9 else 1
        content += head + frame[:15] + bytes([codepoint]) + frame[16:]
    path.write_bytes(content)
    rows = tfrctrace.open(path).flows.to_dicts()
    assert all(row["ect1_packets"] + row["ce_packets"] == row["packets"] for row in rows)
    assert sum(row["ce_packets"] for row in rows) == sum(row["packets"] for row in rows) // 10


def test_what_looks_like_quic_is_udp(write_capture: Callable[..., Path]) -> None:
    rng = random.Random(1)
    ends = (("192.0.2.1", 40_000), ("198.51.100.7", 443))
    frames = []
    for number in range(60):
        src, dst = ends if number % 2 else ends[::-1]
        # long headers of version 1 for other identifiers, and short headers
        start = b"\xc3\x00\x00\x00\x01\x08" + rng.randbytes(8) + b"\x08" if number % 3 else b"\x40"
        frames.append(ethernet(udp(src, dst, start + rng.randbytes(1200 - len(start)))))
    row, _ = tfrctrace.open(write_capture("alike.pcap", frames)).flows.to_dicts()
    assert (row["transport"], row["packets"], row["quic_version"], row["spin_verdict"]) == (
        "udp",
        30,
        None,
        None,
    )


def test_page_and_terminal_name_the_server(tmp_path: Path, run: Callable[..., Any]) -> None:
    page = tmp_path / "page.html"
    assert run("report", CAPTURE, "-o", page).status == 0
    text = page.read_text()
    assert 'id="quic"' in text
    assert "quic.example" in text
    assert "← quic, quic.example" in run("flows", CAPTURE).out


def test_bins_have_every_round_trip_of_its_flow() -> None:
    trace = tfrctrace.open(CAPTURE)
    trace.read("flows", "bins", "rtt")
    answers = trace.rtt
    ends = ("flow", "direction")
    theirs = answers.group_by(ends).agg(pl.len(), pl.col("rtt_ns").sum() / 1e6).sort(ends).rows()
    rtt_ms = (pl.col("rtt_mean_ms") * pl.col("rtt_samples")).sum()
    bins = trace.bins.filter(pl.col("rtt_samples") > 0)
    ours = bins.group_by(ends).agg(pl.col("rtt_samples").sum(), rtt_ms).sort(ends).rows()
    assert len(ours) > 20
    assert [row[:3] for row in ours] == [row[:3] for row in theirs]
    assert [row[3] for row in ours] == pytest.approx([row[3] for row in theirs])
