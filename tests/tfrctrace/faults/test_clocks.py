"""Clocks that go back, stand still or jump by years: every command analyses what is left, and says so."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import shlex
import struct
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from ip_packets import ethernet, tcp

DATA = Path(__file__).parents[2] / "data"
SAMPLES = Path(__file__).parents[3] / "sample_traces"
YEARS_S = 10 * 365 * 86_400
ENHANCED_PACKET = 6

CLOCKS = {
    "back": lambda number, time_s: time_s - 0.7 if number % 400 == 399 else time_s,
    "still": lambda _, __: 1.0,
    "years ahead": lambda number, time_s: time_s + (YEARS_S if number >= 300 else 0),
    "years behind": lambda number, time_s: max(time_s - (YEARS_S if number >= 300 else 0), 0),
}
"""The time of a packet, given its number and its time."""


def pcapng(clock):
    """Return a capture whose packets have the times of `clock`; its ticks are nanoseconds."""
    content = bytearray(gzip.decompress((SAMPLES / "two-flows.pcapng.gz").read_bytes()))
    at = number = 0
    while at + 12 <= len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == ENHANCED_PACKET:
            high, low = struct.unpack_from("<II", content, at + 12)
            ticks = round(clock(number, (high << 32 | low) / 1e9) * 1e9)
            struct.pack_into("<II", content, at + 12, ticks >> 32, ticks & 0xFFFF_FFFF)
            number += 1
        at += length
    return bytes(content)


def text(path, clock):
    """Return a simulator's trace whose lines have the times of `clock`, behind the event."""
    changed = []
    for number, line in enumerate(lzma.decompress(path.read_bytes()).decode().splitlines()[:2_500]):
        event, time_s, *rest = line.split(" ")
        changed.append(" ".join([event, f"{clock(number, float(time_s)):.6f}", *rest]))
    return "\n".join([*changed, ""]).encode()


TRACES = {
    "a.pcapng": pcapng,
    "ns2.tr": lambda clock: text(SAMPLES / "dumbbell.tr.xz", clock),
    "ns3.tr": lambda clock: text(DATA / "ns3" / "p2p-newreno.tr.xz", clock),
    "wifi.tr": lambda clock: text(DATA / "ns3" / "wifi-newreno.tr.xz", clock),
}


@cache
def with_clock(trace, clock):
    """Return a trace with the times of a clock, by their names."""
    return TRACES[trace](CLOCKS[clock])


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize(
    "command",
    [
        ["flows", "--format", "json"],
        ["metrics"],
        ["report", "-o", "out.html"],
        ["convert", "--what", "bins", "-o", "out.csv"],
        ["replay", "--algorithm", "tfrc,newreno"],
        ["replay", "--loop", "closed"],
        ["replay", "--algorithm", "mtfrc", "--station", "11", "--station", "5.5"],
        ["check", "--require", "rtt_p50_ms >= 0"],
        ["plot", "--kind", "throughput", "-o", "out.svg"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_every_command_survives_odd_clocks(run, tmp_path, trace, clock, command):
    (tmp_path / trace).write_bytes(with_clock(trace, clock))
    outcome = run(*command, trace)
    assert outcome.status in {0, 1, 2, 3}
    if clock != "years behind" and command[0] in {"flows", "metrics", "convert"}:
        assert re.search("before their predecessor's|have the same time|jumps? ahead", outcome.err), (
            outcome.err
        )


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_pair_of_which_one_clock_is_odd_is_analysed(run, tmp_path, clock):
    (tmp_path / "a.pcapng").write_bytes(pcapng(lambda _, time_s: time_s))
    (tmp_path / "b.pcapng").write_bytes(with_clock("a.pcapng", clock))
    for command in (["flows"], ["report", "-o", "out.html"]):
        outcome = run(*command, "--pair", "a.pcapng", "b.pcapng")
        assert outcome.status in {0, 3}
        assert outcome.err


def test_a_study_of_runs_with_odd_clocks_is_measured(run, tmp_path):
    for clock in CLOCKS:
        (tmp_path / f"{clock.replace(' ', '_')}.tr").write_bytes(with_clock("ns2.tr", clock))
    (tmp_path / "study.toml").write_text(
        """title = "Odd clocks"
[runs]
files = ["*.tr"]
pattern = "{clock}.tr"
[labels]
tcp = "transport tcp"
[[quantity]]
name = "rate"
metric = "rate_bps"
"""
    )
    outcome = run("experiment", "study.toml", "-o", "out", "--cache", "none", "--jobs", "1")
    assert outcome.status in {0, 3}
    assert "before their predecessor's" in outcome.err


YEAR_NS = 365 * 86_400 * 10**9
STEP_NS = 10**7
BACK_BY_20_YEARS = [53 * YEAR_NS + number * STEP_NS for number in range(50)] + [
    33 * YEAR_NS + number * STEP_NS for number in range(50)
]
"""As after a roll-over of GPS."""
APART_BY_150_YEARS = [years * YEAR_NS + number * STEP_NS for years in (50, 200) for number in range(50)]


def bulk_and_probe(times_ns):
    """Return a capture of a flow with 1,000 bytes in each packet, and of another one with 10."""

    def block(kind, body):
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + length + body + length

    nanoseconds = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    content = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    content += block(1, struct.pack("<HHI", 1, 0, 0) + nanoseconds)
    sent = {40_000: 0, 40_001: 0}
    for number, time_ns in enumerate(times_ns):
        port, size = (40_001, 10) if number % 5 == 0 else (40_000, 1_000)
        packet = tcp(
            ("192.0.2.1", port), ("198.51.100.7", 80), "PA", seq=sent[port], ack=1, payload=bytes(size)
        )
        sent[port] += size
        frame = ethernet(packet)
        times = struct.pack("<II", time_ns >> 32, time_ns & 0xFFFF_FFFF)
        content += block(
            ENHANCED_PACKET, bytes(4) + times + struct.pack("<II", len(frame), len(frame)) + frame
        )
    return content


@pytest.mark.parametrize("times_ns", [BACK_BY_20_YEARS, APART_BY_150_YEARS], ids=["20 years", "150 years"])
@pytest.mark.parametrize(
    "command",
    [
        ["metrics", "a.pcapng"],
        ["metrics", "a.pcapng", "--window", "10ms"],
        ["check", "a.pcapng", "-r", "packets > 0"],
        ["compare", "a.pcapng", "a.pcapng", "--cache", "none", "-j", "1"],
        ["report", "a.pcapng", "-o", "x.html"],
    ],
    ids=" ".join,
)
def test_years_between_the_packets_of_flows_that_compete_need_no_memory(tmp_path, command, times_ns):
    (tmp_path / "a.pcapng").write_bytes(bulk_and_probe(times_ns))
    line = f"ulimit -v 4000000; exec {shlex.join([sys.executable, '-m', 'tfrctrace', *command])}"
    ended = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def block(kind, body):
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def times_of_ns(frames, times_ns):
    """Return a capture whose packets have times in ns."""
    section = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
    nanoseconds = struct.pack("<HHB3x", 9, 1, 9) + bytes(4)
    packets = [
        block(
            ENHANCED_PACKET,
            struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFF_FFFF, len(frame), len(frame))
            + frame
            + bytes(-len(frame) % 4),
        )
        for frame, time_ns in zip(frames, times_ns, strict=True)
    ]
    interface = struct.pack("<HHI", 1, 0, 65_535) + nanoseconds
    return b"".join([block(0x0A0D0D0A, section), block(1, interface), *packets])


@pytest.mark.parametrize(
    "command",
    [
        ["report", "-o", "out.html"],
        ["plot", "--kind", "throughput", "-o", "out.svg"],
        ["groups", "--every", "1s"],
        ["audit", "-o", "audit"],
    ],
    ids=lambda words: words[0],
)
def test_a_time_at_the_end_of_64_bits_is_one_as_others(run, tmp_path, conversation, command):
    frames = conversation(data_packets=2)[:8]
    last = 2**63 - 1
    (tmp_path / "far.pcapng").write_bytes(times_of_ns(frames, [0, last, 5, last - 1, last, last, last, last]))
    outcome = run(*command, "far.pcapng")
    assert outcome.status == 0, outcome.err
    assert re.search("jumps ahead", outcome.err)


HOUR_NS = 3_600 * 10**9


@pytest.mark.parametrize("step_ns", [1_000, HOUR_NS, 40 * 24 * HOUR_NS], ids=["us", "hours", "weeks"])
def test_an_audit_draws_the_first_hour_of_64_bit_times(run, tmp_path, conversation, step_ns):
    """That hour, day and column begin before the least time, which Python's own dates put into 1677."""
    frames = conversation(data_packets=2)[:8]
    (tmp_path / "first.pcapng").write_bytes(
        times_of_ns(frames, [2**63 + number * step_ns for number in range(8)])
    )
    outcome = run("audit", "first.pcapng", "-o", "audit")
    assert outcome.status == 0, outcome.err
    first = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=2**63 // 1000)
    assert f"{first:%Y-%m-%d %H:%M}" in (tmp_path / "audit" / "index.html").read_text()
    hours = pl.read_parquet(list(tmp_path.glob("audit/tables/hours/*/*/*.parquet")), hive_partitioning=False)
    of_link = hours.filter(by="link")
    assert of_link["packets"].sum() == 8
    assert of_link["start_ns"].max() <= -(2**63) + 7 * step_ns
    verdicts = pl.read_parquet(
        list(tmp_path.glob("audit/tables/verdicts/*/*/*.parquet")), hive_partitioning=False
    )
    assert verdicts["start_ns"].max() == of_link["start_ns"].max()


@pytest.mark.parametrize(
    ("option", "kept"),
    [
        (["--until", "1d"], 8),
        (["--since", "1s"], 0),
        (["--last", "10000d"], 8),
        (["--since", "1ns", "--until", "7000d"], 7),
    ],
    ids=str,
)
def test_a_stretch_that_passes_the_end_of_64_bits_ends_there(run, tmp_path, conversation, option, kept):
    times_ns = [2**63 - 1_000 + number for number in range(8)]
    (tmp_path / "far.pcapng").write_bytes(times_of_ns(conversation(data_packets=2)[:8], times_ns))
    outcome = run("flows", *option, "--format", "json", "far.pcapng")
    assert outcome.status == 0, outcome.err
    assert sum(flow["packets"] for flow in json.loads(outcome.out)["flows"]) == kept
