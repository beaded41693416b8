"""Clocks that go back, stand still or jump by years: every command analyses what is left, and says so."""

from __future__ import annotations

import gzip
import lzma
import re
import struct
from pathlib import Path

import pytest

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
    (tmp_path / trace).write_bytes(TRACES[trace](CLOCKS[clock]))
    outcome = run(*command, trace)
    assert outcome.status in {0, 1, 2, 3}
    if clock != "years behind" and command[0] in {"flows", "metrics", "convert"}:
        assert re.search("before their predecessor's|have the same time|jumps? ahead", outcome.err), (
            outcome.err
        )


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_pair_of_which_one_clock_is_odd_is_analysed(run, tmp_path, clock):
    (tmp_path / "a.pcapng").write_bytes(pcapng(lambda _, time_s: time_s))
    (tmp_path / "b.pcapng").write_bytes(pcapng(CLOCKS[clock]))
    for command in (["flows"], ["report", "-o", "out.html"]):
        outcome = run(*command, "--pair", "a.pcapng", "b.pcapng")
        assert outcome.status in {0, 3}
        assert outcome.err


def test_a_study_of_runs_with_odd_clocks_is_measured(run, tmp_path):
    for clock, times in CLOCKS.items():
        (tmp_path / f"{clock.replace(' ', '_')}.tr").write_bytes(TRACES["ns2.tr"](times))
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
