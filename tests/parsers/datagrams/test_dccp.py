"""DCCP connections are what was put into the packets, and what tshark reads out of them."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from dccp_packets import (
    ELAPSED_TIME,
    FIRST,
    LOSS_EVENT_RATE,
    RECEIVE_RATE,
    SERVICE,
    Kind,
    Packet,
    handshake,
    option,
)
from ip_packets import ethernet

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"
WRAP = 1 << 48


def sent(number: int) -> int:
    """Return the sequence number of the client's packet `number`."""
    return (FIRST + number) % WRAP


def conversation() -> list[Packet]:
    """Return a CCID 3 connection 10 ms apart: numbers wrap, two data packets are missing, one is late."""
    packets = handshake()
    for number in [*range(2, 10), 12, 11, *range(13, 40)]:
        packets.append(Packet(Kind.Data, seq=sent(number), ccval=number // 2 % 16, payload=bytes(500)))
        if number % 8 == 0:
            report = option(ELAPSED_TIME, 500, bytes_of=2) + option(LOSS_EVENT_RATE, 100)
            report += option(RECEIVE_RATE, 50_000)
            packets.append(
                Packet(Kind.Ack, back=True, seq=101 + number // 8, ack=sent(number), options=report)
            )
    packets.append(Packet(Kind.Close, seq=sent(40), ack=106))
    packets.append(Packet(Kind.Reset, back=True, seq=107, ack=sent(40), code=1 << 24))
    return packets


def frames(packets: list[Packet]) -> list[bytes]:
    return [ethernet(bytes(packet)) for packet in packets]


@pytest.fixture
def capture(write_capture: Callable[..., Path]) -> Path:
    return write_capture("conversation.pcap", frames(conversation()))


def test_a_connection_is_one_flow_with_its_negotiation_and_state(capture: Path) -> None:
    forward, back = tfrctrace.open(capture).flows.to_dicts()
    for row in (forward, back):
        assert (row["transport"], row["state"], row["ccid"]) == ("dccp", "closed", 3)
        assert row["service_code"] == SERVICE
    assert forward["handshake_rtt_ms"] == 20.0
    assert (forward["packets"], back["packets"]) == (40, 6)
    assert forward["data_packets"] == 37
    assert forward["payload_bytes"] == 37 * 500
    assert back["payload_bytes"] == 0


def test_missing_and_late_numbers_are_distinguished_across_the_wrap(capture: Path) -> None:
    forward, back = tfrctrace.open(capture).flows.to_dicts()
    # of 41 numbers 10 never comes, 11 does after 12
    assert (forward["sent_packets"], forward["received_packets"], forward["lost_packets"]) == (41, 40, 1)
    assert forward["duplicate_packets"] == 0
    assert (back["sent_packets"], back["lost_packets"]) == (8, 2)


def test_round_trips_are_without_the_elapsed_time(capture: Path) -> None:
    forward = tfrctrace.open(capture).flows.to_dicts()[0]
    # the Response, four reports 10 ms behind their packet of which 5 ms were the receiver's, and the Reset
    assert forward["rtt_samples"] == 6
    assert (forward["rtt_min_ms"], forward["rtt_max_ms"]) == (5.0, 10.0)


def test_packets_have_type_and_both_numbers(capture: Path) -> None:
    packets = pl.concat(tfrctrace.open(capture).packets())
    assert packets["kind"].to_list()[:4] == ["Request", "Response", "Ack", "Data"]
    assert packets["sequence"].to_list()[:3] == [FIRST, 100, FIRST + 1]
    assert packets["acknowledged"].to_list()[:3] == [None, FIRST, 100]


def test_half_a_conversation_shows_what_it_can(write_capture: Callable[..., Path]) -> None:
    reports = [one for one in conversation() if one.back]
    trace = tfrctrace.open(write_capture("half.pcap", frames(reports)))
    forward, back = trace.flows.to_dicts()
    assert (forward["src_port"], forward["packets"], forward["rtt_samples"]) == (40_000, 0, 0)
    assert back["packets"] == 6
    assert "packets acknowledged but not in the capture" in forward["notes"]


def test_impossible_values_are_counted_and_not_believed(write_capture: Callable[..., Path]) -> None:
    packets = [
        Packet(Kind.Data, seq=1),
        Packet(Kind.Data, seq=2),
        # held for 40 s, acknowledged after 10 ms
        Packet(Kind.Ack, back=True, seq=9, ack=1, options=option(ELAPSED_TIME, 4_000_000)),
        Packet(Kind.Ack, back=True, seq=10, ack=2, options=bytes([ELAPSED_TIME, 3, 9])),
        Packet(Kind.Data, seq=3 + (1 << 47)),
        Packet(Kind.Data, seq=3),
    ]
    path = write_capture("odd.pcap", frames(packets))
    forward, back = tfrctrace.open(path, vantage="receiver").flows.to_dicts()
    assert forward["rtt_samples"] == 1
    assert "1 acknowledgement with an impossible elapsed time" in forward["notes"]
    assert "1 option with impossible lengths" in back["notes"]
    assert (forward["sent_packets"], forward["lost_packets"]) == (3, 0)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_every_header_reads_as_tshark_reads_it(capture: Path) -> None:
    fields = (
        "frame.number",
        "dccp.type",
        "dccp.seq_raw",
        "dccp.ack_raw",
        "dccp.data_offset",
        "_ws.malformed",
    )
    printed = subprocess.run(
        ["tshark", "-r", capture, "-T", "fields", *(f"-e{field}" for field in fields)],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    ours = pl.concat(tfrctrace.open(capture).packets()).to_dicts()
    theirs = list(csv.reader(io.StringIO(printed), delimiter="\t"))
    assert len(theirs) == len(ours)
    for row, (number, kind, seq, ack, offset, malformed) in zip(ours, theirs, strict=True):
        assert not malformed
        assert (row["packet"], row["kind"]) == (int(number), Kind(int(kind)).name)
        assert (row["sequence"], row["acknowledged"]) == (int(seq), int(ack) if ack else None)
        assert row["wire_bytes"] - 14 - 20 - 4 * int(offset) == row["payload_bytes"]


def test_what_acknowledges_an_acknowledgement_gives_no_round_trip() -> None:
    # the delay line of this connection holds packets for 20 ms each way, and queues the data
    forward, back = tfrctrace.open(SAMPLES / "dccp-ccid3.pcap.gz").flows.to_dicts()
    # the Response; the Close acknowledges an Ack of a second before
    assert (back["rtt_samples"], back["rtt_max_ms"]) == (1, 40.0)
    assert forward["rtt_samples"] == 91
