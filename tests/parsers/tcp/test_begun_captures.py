"""Captures that begin within a connection: what was in flight then was not lost by the capture."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from ip_packets import tcp

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parents[2] / "data"
CUTS = 20


class Capture(NamedTuple):
    head: bytes
    records: list[bytes]


def capture_of(path: Path) -> Capture:
    """Return the head of a pcap file and its records, without this project's reader."""
    content = gzip.decompress(path.read_bytes())
    order = "<" if content[0] in {0xD4, 0x4D} else ">"
    records, place = [], 24
    while place < len(content):
        (length,) = struct.unpack_from(f"{order}I", content, place + 8)
        records.append(content[place : place + 16 + length])
        place += 16 + length
    return Capture(content[:24], records)


def gap_bytes(head: bytes, records: list[bytes], path: Path) -> int:
    path.write_bytes(head + b"".join(records))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return int(tfrctrace.open(path).flows["capture_gap_bytes"].sum())


@pytest.mark.parametrize(
    "name",
    [
        # SACK, at the sender and at the receiver; NewReno without SACK
        "captures/linux-relay-loss-snd",
        "pair/linux-relay-loss-rcv",
        "captures/ns3-p2p-newreno-cubic-udp-0-1",
        "captures/ns3-csma-red-veno-0-1",
    ],
)
def test_what_was_in_flight_when_a_capture_began_was_not_lost_by_it(name: str, tmp_path: Path) -> None:
    capture = capture_of(DATA / f"{name}.pcap.gz")
    # the whole capture has everything that was acknowledged
    assert gap_bytes(*capture, tmp_path / "whole.pcap") == 0
    records = len(capture.records)
    for cut in range(1, CUTS):
        rest = capture.records[records * cut // CUTS :]
        assert gap_bytes(capture.head, rest, tmp_path / "cut.pcap") == 0, f"cut at {cut} of {CUTS}"


def test_what_a_capture_misses_after_it_began_is_a_gap(tmp_path: Path) -> None:
    head, records = capture_of(DATA / "captures" / "linux-relay-loss-snd.pcap.gz")
    rest = records[len(records) // 4 :]
    # a full segment of Ethernet and IPv4 that was sent once, so that no other fills the hole
    wire_bytes = [struct.unpack_from("<I", record, 12)[0] for record in rest]
    numbers = [struct.unpack_from(">I", record, 16 + 14 + 20 + 4)[0] for record in rest]
    once = [
        place
        for place, number in enumerate(numbers)
        if wire_bytes[place] == 1_514 and numbers.count(number) == 1
    ]
    missed = once[3 * len(once) // 4]
    del rest[missed]
    assert gap_bytes(head, rest, tmp_path / "gap.pcap") == 1_448


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_acknowledgements_of_data_before_the_capture_are_duplicates(
    write_capture: Callable[..., Path],
) -> None:
    """The capture begins in a recovery, whose lost segments were sent before it."""
    sender, receiver = ("192.0.2.1", 80), ("192.0.2.2", 40_000)

    def data(seq: int) -> bytes:
        return tcp(sender, receiver, "A", seq=seq, ack=1, payload=b"x" * 1000)

    def acknowledge(number: int) -> bytes:
        return tcp(receiver, sender, "A", seq=1, ack=number)

    repeated = [packet for seq in (9_000, 10_000, 11_000) for packet in (data(seq), acknowledge(5_000))]
    frames = [
        acknowledge(5_000),
        *repeated,
        data(5_000),
        acknowledge(6_000),
        data(6_000),
        acknowledge(12_000),
    ]
    # with the same identification they were copies of one packet
    frames = [frame[:4] + struct.pack("!H", 1 + number) + frame[6:] for number, frame in enumerate(frames)]
    path = write_capture("recovery.pcap", frames, link_type=101)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flows = tfrctrace.open(path).flows
    ours = dict(flows.select("src_port", "duplicate_acks").rows())
    command = [
        "tshark",
        "-n",
        "-r",
        str(path),
        "-Y",
        "tcp.analysis.duplicate_ack",
        "-T",
        "fields",
        "-e",
        "tcp.srcport",
    ]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert ours == {80: 0, 40_000: 3}
    assert theirs == ["40000"] * 3
