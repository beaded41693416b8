"""Every field of DCCP headers and options, packet by packet, as tshark and tcpdump read it."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl
import pytest
from dccp_packets import (
    ACK_VECTOR,
    CHANGE_L,
    CHANGE_R,
    CONFIRM_L,
    CONFIRM_R,
    ELAPSED_TIME,
    LOSS_EVENT_RATE,
    LOSS_INTERVALS,
    NDP_COUNT,
    RECEIVE_RATE,
    RTT_ESTIMATE,
    TIMESTAMP,
    TIMESTAMP_ECHO,
    Kind,
    Packet,
    handshake,
    option,
)
from ip_packets import ethernet

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SAMPLE = Path(__file__).resolve().parents[3] / "sample_traces/dccp-ccid3.pcap.gz"
PUBLIC = Path(os.environ.get("TFRCTRACE_DCCP_CAPTURES", "none"))
"""Where DCCP captures of other people are, if somebody has them: they are not ours."""

DATA_DROPPED: Final = 40
DROPPED_PACKETS: Final = 195
NUMBERS: Final = {
    "mandatory": 1,
    "slow_receiver": 2,
    "change_l": CHANGE_L,
    "confirm_l": CONFIRM_L,
    "change_r": CHANGE_R,
    "confirm_r": CONFIRM_R,
    "ndp_count": NDP_COUNT,
    "ack_vector_0": ACK_VECTOR,
    "ack_vector_1": ACK_VECTOR + 1,
    "timestamp": TIMESTAMP,
    "timestamp_echo": TIMESTAMP_ECHO,
    "elapsed_time": ELAPSED_TIME,
    "rtt_estimate": RTT_ESTIMATE,
    "loss_event_rate": LOSS_EVENT_RATE,
    "loss_intervals": LOSS_INTERVALS,
    "receive_rate": RECEIVE_RATE,
    "dropped_packets": DROPPED_PACKETS,
}
"""Types of options by our names (RFC 4340 table 3, RFC 4342, RFC 5622, RFC 6323)."""

FEATURES: Final = (
    "ccid",
    "allow_short_seqno",
    "sequence_window",
    "ecn_incapable",
    "ack_ratio",
    "send_ack_vector",
    "send_ndp_count",
)
"""tcpdump's names of features 1 to 7."""

FIELDS: Final = (
    "frame.number",
    "dccp.type",
    "dccp.ccval",
    "dccp.cscov",
    "dccp.x",
    "dccp.seq_raw",
    "dccp.ack_raw",
    "dccp.service_code",
    "dccp.reset_code",
    "dccp.option_type",
    "dccp.feature_number",
    "dccp.ndp_count",
    "dccp.ack_vector.nonce_0",
    "dccp.ack_vector.nonce_1",
    "dccp.timestamp",
    "dccp.timestamp_echo",
    "dccp.elapsed_time",
    "dccp.ccid3_loss_event_rate",
    "dccp.ccid3_loss_intervals",
    "dccp.ccid3_receive_rate",
    "dccp.seq",
)


def each_option() -> list[bytes]:
    """Return frames that together have every option that is read, in each of its lengths."""
    intervals = [0, 0, 4, 0x80, 0, 1, 0, 0, 5, 0, 0, 9, 0, 1, 0, 0, 1, 2]
    options = [
        bytes([1]) + option(CHANGE_L, b"\x01\x03\x02") + option(CHANGE_R, b"\x07\x01"),
        option(CONFIRM_R, b"\x05") + option(CONFIRM_L, b"\x02\x00\x00") + bytes([2]),
        *(option(NDP_COUNT, 250 ** (size - 1), bytes_of=size) for size in range(1, 7)),
        # RFC 4340 section 11.4: eleven came, one did not, two were marked, one did not, one came
        option(ACK_VECTOR, bytes([0x0A, 0xC0, 0x41, 0xC0, 0x00])) + option(ACK_VECTOR + 1, b"\x3f"),
        option(TIMESTAMP, 0xFFFF_FFF0) + option(ELAPSED_TIME, 7, bytes_of=2),
        option(TIMESTAMP_ECHO, 9) + option(ELAPSED_TIME, 70_000),
        option(TIMESTAMP_ECHO, b"\0\0\0\x09\x01\x02"),
        option(TIMESTAMP_ECHO, b"\0\0\0\x09\0\x01\x02\x03"),
        option(LOSS_EVENT_RATE, 0xFFFF_FFFF) + option(RECEIVE_RATE, 0),
        option(LOSS_EVENT_RATE, 47) + option(RECEIVE_RATE, 0xFEDC_BA98),
        option(LOSS_INTERVALS, bytes([3, *intervals])) + option(DROPPED_PACKETS, bytes([0, 0, 1, 0, 1, 0])),
        option(RTT_ESTIMATE, 40_000, bytes_of=3) + option(DATA_DROPPED, b"\x10"),
    ]
    reports = (
        Packet(Kind.Ack, back=True, seq=200 + number, ack=1, ccval=number % 16, cscov=number % 3, options=one)
        for number, one in enumerate(options)
    )
    short = Packet(Kind.Data, short=True, seq=77, ccval=9, payload=bytes(20))
    reset = Packet(Kind.Reset, back=True, seq=300, ack=1, code=6 << 24)
    return [ethernet(bytes(one)) for one in [*handshake(), *reports, short, reset]]


def items(notation: str) -> list[tuple[str, str]]:
    """Return the names and values of `dccp` in their order."""
    return [(name, value) for name, _, value in (item.partition("=") for item in notation.split())]


def number_of(name: str) -> int | None:
    """Return the type of the option that we call `name`; None for what is no option."""
    if match := re.fullmatch(r"(change_[lr]|confirm_[lr])_\d+", name):
        return NUMBERS[match[1]]
    return int(name.removeprefix("option_")) if name.startswith("option_") else NUMBERS.get(name)


def hexadecimal(name: str, value: str) -> str:
    """Return the bytes of an Ack Vector, or of the intervals behind the skip length, as tshark shows them."""
    if name.startswith("ack_vector"):
        return bytes("RM?N".index(run[0]) << 6 | int(run[1:]) - 1 for run in value.split(",")).hex()
    skip, _, intervals = value.partition(":")
    parts = (re.split(r"[+/]", interval) for interval in intervals.split(","))
    lengths = ((int(a), int(b) | int(nonce) << 23, int(c)) for a, b, c, nonce in parts)
    return bytes([int(skip)]).hex() + "".join(f"{length:06x}" for three in lengths for length in three)


def tshark_fields(notation: str) -> dict[str, list[str]]:
    """Return what `notation` says by tshark's names of fields."""
    parsed: dict[str, list[str]] = defaultdict(list)
    for name, value in items(notation):
        parsed["dccp.option_type"] += [str(number)] if (number := number_of(name)) else []
        match name.split("_")[0]:
            case "change" | "confirm":
                parsed["dccp.feature_number"].append(name.rpartition("_")[2])
            case "ack":
                parsed[f"dccp.ack_vector.nonce_{name[-1]}"].append(hexadecimal(name, value))
            case "loss" if name == "loss_intervals":
                parsed["dccp.ccid3_loss_intervals"].append(hexadecimal(name, value))
            case "loss" | "receive":
                parsed[f"dccp.ccid3_{name}"].append(value)
            case "timestamp" if "+" in value:
                echo, _, elapsed = value.partition("+")
                parsed["dccp.timestamp_echo"].append(echo)
                parsed["dccp.elapsed_time"].append(elapsed)
            case "ndp" | "timestamp" | "elapsed" | "service" | "reset":
                parsed[f"dccp.{name}"].append(value)
    return parsed


def tshark(path: Path) -> list[dict[str, str]]:
    fields = [f"-e{field}" for field in FIELDS]
    command = ["tshark", "-r", path, "-Y", "dccp", "-T", "fields", "-E", "separator=;", *fields]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return list(csv.DictReader(io.StringIO(done.stdout), FIELDS, delimiter=";"))


@pytest.fixture
def captures(write_capture: Callable[..., Path]) -> Iterable[Path]:
    """Return the shipped sample, one with each option, and those of others that are there."""
    # what to make of one that is damaged on purpose is up to each reader
    public = [path for path in sorted(PUBLIC.glob("*.pcap*")) if "oobr" not in path.name]
    return [SAMPLE, write_capture("options.pcap", each_option()), *public]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_every_field_and_option_is_what_tshark_reads(captures: Iterable[Path]) -> None:
    for path in captures:
        rows = pl.concat(tfrctrace.open(path).packets()).filter(pl.col("dccp").is_not_null()).to_dicts()
        ours = {row["packet"]: row for row in rows}
        theirs = tshark(path)
        assert len(ours) > 5
        for their in theirs:
            place = f"{path.name}, packet {their['frame.number']}"
            row = ours.pop(int(their["frame.number"]))
            parsed = tshark_fields(row["dccp"])
            assert row["kind"] == Kind(int(their["dccp.type"])).name, place
            assert row["ccval"] == int(their["dccp.ccval"]), place
            # a short number has no raw one beside it
            seq = their["dccp.seq_raw"] or their["dccp.seq"].split(",")[0]
            assert (row["sequence"], row["acknowledged"]) == (
                int(seq),
                int(their["dccp.ack_raw"]) if their["dccp.ack_raw"] else None,
            ), place
            fields = dict(items(row["dccp"]))
            assert fields.get("coverage", "0") == their["dccp.cscov"], place
            assert ("short" in fields) == (their["dccp.x"] in {"0", "False"}), place
            # tshark lists padding, too
            types = [one for one in their["dccp.option_type"].split(",") if one not in {"", "0"}]
            assert parsed["dccp.option_type"] == types, place
            for field in (*FIELDS[7:9], *FIELDS[10:-1]):
                assert ",".join(parsed[field]) == their[field], f"{place}: {field}"
        assert not ours


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
def test_values_of_features_are_what_tcpdump_reads(captures: Iterable[Path]) -> None:
    compared = 0
    for path in captures:
        if path.suffix == ".gz":
            continue  # tcpdump reads no compressed file
        done = subprocess.run(["tcpdump", "-nvvvr", path], capture_output=True, check=True, text=True)
        theirs = re.findall(r"(change|confirm)_([lr]) (\w+)((?: \d+)+)", done.stdout)
        wanted = [
            (step, place, FEATURES.index(name) + 1, values.split()) for step, place, name, values in theirs
        ]
        notations = pl.concat(tfrctrace.open(path).packets())["dccp"].drop_nulls()
        ours = [
            (match[1], match[2], int(match[3]), match[4].split(","))
            for line in notations
            for match in re.finditer(r"(change|confirm)_([lr])_([1-7])=([\d,]+)", line)
        ]
        assert ours == wanted, path.name
        compared += len(ours)
    assert compared > 5
