"""The names that OpenSSL, curl and Chromium were told to ask for, and those that tshark reads.

`tests/data/names/clients.pcap.gz` has connections of each; at port 8444 a ClientHello fills several segments.
"""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ip_packets import ethernet, ipv4, tcp

import tfrctrace

CAPTURE = Path(__file__).parents[2] / "data" / "names" / "clients.pcap.gz"
ASKED = [
    *(
        (port, *of_client)
        for port in (8443, 8444)
        for of_client in (
            (f"openssl-{port}.example", "sni", "h2,http/1.1"),
            (None, None, None),
            (f"curl-{port}.example", "sni", "h2,http/1.1"),
        )
    ),
    *((8444, "chromium.example", "sni_with_ech", "h2,http/1.1"),) * 2,
    *(
        (port, *of_client)
        for port in (8080, 8081)
        for of_client in (
            (f"curl-{port}.example", "http", None),
            (f"absolute-{port}.example", "http", None),
            (f"connect-{port}.example", "http", None),
            (None, None, None),
        )
    ),
]
CONTENT = gzip.decompress(CAPTURE.read_bytes())
START = CONTENT[:24]
CLIENT, SERVER = ("192.0.2.1", 4000), ("192.0.2.2", 80)
Row = dict[str, Any]


def records() -> list[tuple[bytes, bytes]]:
    """Return the headers of the records and the frames of the capture."""
    found, at = [], 24
    while at < len(CONTENT):
        (captured,) = struct.unpack_from("<8xI", CONTENT, at)
        found.append((CONTENT[at : at + 16], CONTENT[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return found


def cut(path: Path, snap_length: int) -> Path:
    """Write the capture with a snap length."""
    short = (
        head[:8] + struct.pack("<I", min(len(frame), snap_length)) + head[12:] + frame[:snap_length]
        for head, frame in records()
    )
    path.write_bytes(START + b"".join(short))
    return path


def names(flows: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Return port, name, what it is from and the offered protocols of connections that were answered."""
    answered = flows.filter(pl.col("direction") == "fwd", pl.col("dst_port") > 1024)
    return answered.select("dst_port", "server_name", "server_name_from", "alpn").rows()


def test_names_are_those_that_programs_were_told_to_ask_for():
    flows = tfrctrace.open(CAPTURE).flows
    assert names(flows) == ASKED
    both = flows.group_by("flow").agg(pl.col("server_name").n_unique())
    assert set(both["server_name"]) == {1}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_the_same_names():
    wanted = (
        "tcp.srcport",
        "tls.handshake.extensions_server_name",
        "http.host",
        "tls.handshake.extension.type",
    )
    command = ["tshark", "-r", str(CAPTURE), "-Y", "tls.handshake.type == 1 || http.request", "-T", "fields"]
    for field in wanted:
        command += ["-e", field]
    theirs: dict[int, tuple[str | None, bool]] = {}
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        port, sni, host, extensions = line.split("\t")
        name = sni or host.partition(":")[0] or None
        theirs.setdefault(int(port), (name, "65037" in extensions.split(",")))
    rows = tfrctrace.open(CAPTURE).flows.filter(pl.col("dst_port") > 1024, direction="fwd")
    assert len(rows) == len(theirs) == len(ASKED)
    for row in rows.to_dicts():
        assert theirs[row["src_port"]] == (row["server_name"], row["server_name_from"] == "sni_with_ech")


def test_what_was_cut_has_no_name_and_says_why(tmp_path):
    whole = tfrctrace.open(CAPTURE).flows
    flows = tfrctrace.open(cut(tmp_path / "cut.pcap", 80)).flows
    assert flows["packets"].to_list() == whole["packets"].to_list()
    assert set(flows["server_name"]) == {None}
    notes = flows.filter(pl.col("direction") == "fwd", pl.col("dst_port") > 1024)["notes"].to_list()
    assert all(
        "no server name: the client's first bytes are not all in the capture" in note for note in notes
    )
    # a longer one cuts some
    some = names(tfrctrace.open(cut(tmp_path / "longer.pcap", 400)).flows)
    assert set(some) < {*ASKED, *((port, None, None, None) for port, *_ in ASKED)}
    assert 0 < sum(name is not None for _, name, *_ in some) < sum(name is not None for _, name, *_ in ASKED)


def test_no_first_bytes_no_name(tmp_path):
    path = tmp_path / "midstream.pcap"
    frames = records()
    # without SYN and SYN/ACK of the first connection
    path.write_bytes(START + b"".join(head + frame for head, frame in frames[2:]))
    assert names(tfrctrace.open(path).flows)[0] == (8443, None, None, None)


def test_a_name_may_begin_in_one_file_and_end_in_the_next(tmp_path):
    frames = records()
    for at in range(88, 120):
        paths = [tmp_path / "first.pcap", tmp_path / "second.pcap"]
        for path, part in zip(paths, (frames[:at], frames[at:]), strict=True):
            path.write_bytes(START + b"".join(head + frame for head, frame in part))
        assert names(tfrctrace.open(paths, join=True).flows) == ASKED


def test_a_name_that_may_hide_another_is_marked(run):
    done = run("flows", CAPTURE, "--rows", "0")
    assert done.out.count("chromium.example (ECH)") == 2
    assert "curl-8444.example" in done.out
    assert done.out.count("(ECH)") == 2


def test_groups_by_name(run):
    rows = tfrctrace.open(CAPTURE).groups("name").rows
    flows = tfrctrace.open(CAPTURE).flows.with_columns(pl.col("server_name").fill_null("no name"))
    expected = dict(flows.group_by("server_name").agg(pl.col("packets").sum()).rows())
    assert dict(rows.group_by("group").agg(pl.col("packets").sum()).rows()) == expected
    done = run("groups", CAPTURE, "--by", "name", "--anonymize")
    assert done.status == 0
    assert "host-" in done.out
    assert "example" not in done.out


def test_what_follows_a_payload_is_no_part_of_it(write_capture):
    """ESP without encryption (RFC 4303) puts a trailer and a check value there, a short frame has padding."""

    def in_esp(packet: bytes) -> bytes:
        padding = -(len(packet) + 2) % 4
        trailer = bytes(range(1, padding + 1)) + bytes((padding, 4)) + b"\xa5" * 12
        return ipv4(50, "198.51.100.1", "198.51.100.2", struct.pack("!II", 4096, 7) + packet + trailer)

    requests = (b"GET / HTTP/1.0\nHost: ", b"esp.example\n\n")
    segments = [tcp(CLIENT, SERVER, "S", seq=9)]
    for seq, request in zip((10, 10 + len(requests[0])), requests, strict=True):
        segments.append(tcp(CLIENT, SERVER, "A", seq=seq, ack=6, payload=request))
    for name, packets in (("esp.pcap", map(in_esp, segments)), ("padded.pcap", segments)):
        capture = write_capture(name, [ethernet(packet) + bytes(7) for packet in packets])
        assert tfrctrace.open(capture).flows["server_name"].to_list() == ["esp.example"] * 2


def test_names_are_text_whatever_they_are(tmp_path, run, write_capture):
    request = b"GET / HTTP/1.1\r\nHost: a<b>\x1b[31m\xc3\xa4.example\r\n\r\n"
    segments = [
        tcp(CLIENT, SERVER, "S", seq=9),
        tcp(SERVER, CLIENT, "SA", seq=5, ack=10),
        tcp(CLIENT, SERVER, "A", seq=10, ack=6, payload=request),
    ]
    capture = write_capture("hostile.pcap", map(ethernet, segments))
    shown = "a<b>?[31m??.example"
    assert tfrctrace.open(capture).flows["server_name"].to_list() == [shown] * 2
    assert shown in run("flows", capture).out
    assert run("report", capture, "-q", "-o", tmp_path / "report.html").status == 0
    page = (tmp_path / "report.html").read_text()
    assert "a&lt;b&gt;?[31m??.example" in page
    assert "a<b>" not in page
    anonymous = tfrctrace.open(capture, anonymize=True).flows["server_name"][0]
    assert anonymous.startswith("host-")


def test_a_name_of_digits_is_replaced_too(write_capture):
    """A decimal number is an address for some programs."""
    request = b"GET / HTTP/1.1\r\nHost: 3221225985\r\n\r\n"
    segments = [tcp(CLIENT, SERVER, "S", seq=9), tcp(CLIENT, SERVER, "A", seq=10, ack=6, payload=request)]
    capture = write_capture("digits.pcap", map(ethernet, segments))
    assert tfrctrace.open(capture).flows["server_name"][0] == "3221225985"
    assert tfrctrace.open(capture, anonymize=True).flows["server_name"][0].startswith("host-")
