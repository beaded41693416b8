"""The tiles of the time-sequence graph: the points that tcptrace draws, and levels that cover those below."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tfrctrace
from tfrctrace.parsers.schema import TABLES
from tfrctrace.reports.figures.sequence_tiles import (
    SEGMENT_CLASSES,
    Point,
    Summary,
    overview,
    points,
    summaries,
    tiles_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tfrctrace.reports.figures.sequence_tiles import Tile

ROOT = Path(__file__).parents[3]
CAPTURE = ROOT / "tests/data/captures/linux-relay-loss-snd.pcap.gz"
POINTS_IN_SUMMARY, SUMMARIES_IN_SUMMARY = 32, 8

Line = tuple[int, int, int]
"""Microseconds, and the lowest and highest sequence number there."""


def tiles_by_level(sequence: pl.DataFrame) -> dict[int, list[Tile]]:
    levels: dict[int, list[Tile]] = {}
    for tile in tiles_of(sequence):
        levels.setdefault(tile.level, []).append(tile)
    return levels


def all_points(tiles: Iterable[Tile]) -> list[Point]:
    return list(chain.from_iterable(map(points, tiles)))


def microseconds(text: str) -> int:
    return int(text.replace(".", ""))


def xplot_lines(graph: str) -> Iterator[tuple[str, list[str]]]:
    """Give each object of an xplot file with the colour that it is drawn in."""
    colour = ""
    for before, line in pairwise(graph.splitlines()):
        words = line.split()
        if len(words) == 1 and "text" not in before:
            colour = words[0]
        elif len(words) > 2:
            yield colour, words


def drawn_by_tcptrace(graph: str) -> dict[str, set[Line]]:
    """Return segments, SACK blocks, acknowledgements and edges of the window, counted from the SYN."""
    found: dict[str, set[Line]] = {"segments": set(), "sacked": set(), "acknowledged": set(), "window": set()}
    kinds = {
        "white": "segments",
        "red": "segments",
        "purple": "sacked",
        "green": "acknowledged",
        "yellow": "window",
    }
    first = next(int(words[2]) for colour, words in xplot_lines(graph) if colour == "orange")
    for colour, (what, *place) in xplot_lines(graph):
        kind = kinds.get(colour)
        if kind in {"segments", "sacked"} and what == "line":
            time, low, _, high = place
            found[kind].add((microseconds(time), int(low) - first, int(high) - first))
        elif kind in {"acknowledged", "window"} and what == "line" and place[0] == place[2]:
            # a step to the next number, which may be lower for a window
            found[kind].add((microseconds(place[2]), int(place[3]) - first, int(place[3]) - first))
        elif (kind, what) in {("acknowledged", "dtick"), ("window", "utick")}:
            found[kind].add((microseconds(place[0]), int(place[1]) - first, int(place[1]) - first))
    return found


@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")
def test_points_are_those_that_tcptrace_draws(tmp_path):
    (tmp_path / "c.pcap").write_bytes(gzip.decompress(CAPTURE.read_bytes()))
    command = ["tcptrace", "-n", "-S", f"--output_dir={tmp_path}", str(tmp_path / "c.pcap")]
    subprocess.run(command, capture_output=True, check=True)
    theirs = drawn_by_tcptrace((tmp_path / "c2d_tsg.xpl").read_text())
    ours = all_points(tiles_by_level(tfrctrace.open(CAPTURE).results().sequence)[0])
    segments = {
        (point.time_ns // 1000, point.position, point.end)
        for point in ours
        if not point.acknowledges and point.end != point.position
    }
    assert len(segments) > 900
    assert segments == theirs["segments"]
    # the first acknowledgement is that of the SYN, at which tcptrace's lines begin
    _, *answers = (point for point in ours if point.acknowledges)
    assert {(one.time_ns // 1000, one.position, one.position) for one in answers} == theirs["acknowledged"]
    blocks = {(one.time_ns // 1000, *block) for one in answers for block in one.sacked}
    assert blocks == theirs["sacked"]
    edges = {(one.time_ns // 1000, one.end, one.end) for one in answers if one.end is not None}
    assert edges == theirs["window"]


@pytest.fixture(scope="module")
def by_tshark() -> dict[int, tuple[str, str]]:
    """The bytes in flight after each packet and its RTT sample in seconds, as tshark has them."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    fields = ("frame.number", "tcp.analysis.bytes_in_flight", "tcp.analysis.ack_rtt")
    command = ["tshark", "-r", CAPTURE, "-T", "fields", *chain.from_iterable(("-e", one) for one in fields)]
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    return {int(number): (flight, rtt) for number, flight, rtt in (line.split("\t") for line in lines)}


def test_the_flight_after_each_segment_is_that_of_tshark(by_tshark):
    ours = all_points(tiles_by_level(tfrctrace.open(CAPTURE).results().sequence)[0])
    data = [one for one in ours if not one.acknowledges and by_tshark[one.packet][0]]
    assert [one.flight_bytes for one in data] == [int(by_tshark[one.packet][0]) for one in data]
    assert len(data) == 993


def test_round_trip_times_are_those_of_tshark_until_a_packet_is_lost(by_tshark):
    ours = all_points(tiles_by_level(tfrctrace.open(CAPTURE).results().sequence)[0])
    first_loss = next(one.packet for one in ours if one.class_number)
    before = [
        one for one in ours if one.packet < first_loss and by_tshark[one.packet][1] and one.acknowledges
    ]
    assert [one.rtt_ns for one in before] == [round(float(by_tshark[one.packet][1]) * 1e9) for one in before]
    assert len(before) > 20


def test_points_have_the_numbers_and_classes_of_the_tables():
    trace = tfrctrace.open(CAPTURE)
    sequence = trace.results().sequence
    flow, direction = sequence.select("flow", "direction").row(0)
    ours = all_points(tiles_by_level(sequence)[0])
    losses = trace.losses.filter(flow=flow, direction=direction)
    classified = {one.packet: SEGMENT_CLASSES[one.class_number - 1] for one in ours if one.class_number}
    assert classified == dict(losses.select("packet", "class").iter_rows())
    samples = trace.rtt.filter(flow=flow, direction=direction)
    assert {(one.time_ns, one.rtt_ns) for one in ours if one.rtt_ns is not None} == set(
        samples.select("time_ns", "rtt_ns").iter_rows()
    )
    columns = ("packet", "time_ns", "seq_rel", "ack_rel")
    packets = pl.concat(trace.packets(("flow", *columns))).filter(flow=flow).select(columns)
    table = {packet: (time_ns, seq, ack) for packet, time_ns, seq, ack in packets.iter_rows()}
    for one in ours:
        time_ns, seq, ack = table[one.packet]
        assert (one.time_ns, one.position) == (time_ns, ack if one.acknowledges else seq)


def test_classes_are_in_the_order_of_the_core():
    (meaning,) = (column.meaning for column in TABLES["losses"] if column.name == "class")
    assert [meaning.index(f"`{name}`") for name in SEGMENT_CLASSES] == sorted(
        meaning.index(f"`{name}`") for name in SEGMENT_CLASSES
    )
    assert meaning.count("`") == 2 * len(SEGMENT_CLASSES)


@pytest.fixture(scope="module")
def long_flow(tmp_path_factory) -> pl.DataFrame:
    """The tiles of one connection of 150,000 packets with losses."""
    capture = tmp_path_factory.mktemp("long") / "c.pcap"
    command = [sys.executable, ROOT / "benchmarks/captures.py", capture, "1", "150000"]
    subprocess.run(command, check=True)
    return tfrctrace.open(capture).results().sequence


def runs(all_of: Sequence[Any], length: int) -> Iterator[Sequence[Any]]:
    return (all_of[start : start + length] for start in range(0, len(all_of), length))


def joined(limits: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [pair for pair in limits if pair is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def summary_of_points(own: Sequence[Point]) -> Summary:
    segments = [one for one in own if not one.acknowledges]
    answers = [one for one in own if one.acknowledges]
    classified = [one for one in segments if one.class_number]
    edges = [one.end for one in answers if one.end is not None]
    ranges = (
        joined((one.position, one.end) for one in segments),
        joined((one.position, one.end) for one in classified),
        joined((one.position, one.position) for one in answers),
        joined((edge, edge) for edge in edges),
        joined(block for one in answers for block in one.sacked),
        joined((one.flight_bytes, one.flight_bytes) for one in own),
        joined((one.rtt_ns, one.rtt_ns) for one in answers if one.rtt_ns is not None),
    )
    counts = tuple(sum(one.class_number == number for one in segments) for number in range(1, 14))
    zero = sum(one.end == one.position for one in answers)
    times_ns = [one.time_ns for one in own]
    packet = min(one.packet for one in own)
    return Summary(len(own), min(times_ns), max(times_ns), packet, ranges, zero, counts)


def summary_of_summaries(own: Sequence[Summary]) -> Summary:
    return Summary(
        sum(one.points for one in own),
        min(one.start_ns for one in own),
        max(one.end_ns for one in own),
        min(one.packet for one in own),
        tuple(joined(one.ranges[kind] for one in own) for kind in range(7)),
        sum(one.zero_windows for one in own),
        tuple(sum(counts) for counts in zip(*(one.classes for one in own), strict=True)),
    )


def test_each_level_sums_up_the_one_below(long_flow):
    levels = tiles_by_level(long_flow)
    assert sorted(levels) == [0, 1, 2]
    assert len(levels[2]) == 1
    below = all_points(levels[0])
    own = list(chain.from_iterable(map(summaries, levels[1])))
    assert own == [summary_of_points(some) for some in runs(below, POINTS_IN_SUMMARY)]
    above = list(chain.from_iterable(map(summaries, levels[2])))
    assert above == [summary_of_summaries(some) for some in runs(own, SUMMARIES_IN_SUMMARY)]
    assert sum(above[0].classes) <= sum(map(sum, (one.classes for one in above))) > 0


def test_tiles_say_when_they_begin_and_end(long_flow):
    for level, tiles in tiles_by_level(long_flow).items():
        for tile in tiles:
            content = list(points(tile) if level == 0 else summaries(tile))
            assert len(content) == tile.count
            starts_ns = [one.time_ns if isinstance(one, Point) else one.start_ns for one in content]
            ends_ns = [one.time_ns if isinstance(one, Point) else one.end_ns for one in content]
            assert (min(starts_ns), max(ends_ns)) == (tile.start_ns, tile.end_ns)


def test_a_drawing_of_the_whole_reaches_as_far_as_the_packets(long_flow):
    marks = list(overview(tiles_of(long_flow)))
    below = all_points(tiles_by_level(long_flow)[0])
    assert len(marks) < 20_000
    assert max(mark.bytes for mark in marks if mark.kind == "data") == max(
        one.end for one in below if not one.acknowledges
    )


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
def test_beyond_the_limit_of_samples_summaries_go_on():
    results = tfrctrace.open(CAPTURE, max_samples=500).results()
    sequence = results.sequence
    assert any("packets of time-sequence graphs" in problem["message"] for problem in results.problems)
    levels = tiles_by_level(sequence)
    assert sum(tile.count for tile in levels[0]) == 500
    assert sum(one.points for tile in levels[1] for one in summaries(tile)) > 1_500
    assert max(mark.time_ns for mark in overview(tiles_of(sequence))) == levels[1][0].end_ns


def test_a_flow_goes_on_in_the_next_file_of_a_joined_trace(write_capture, conversation):
    frames = conversation(data_packets=40)
    first = write_capture("a.pcap", frames[:30])
    second = write_capture("b.pcap", frames[30:], start_s=1_700_000_001)
    sequence = tfrctrace.open([first, second], join=True).results().sequence
    packets = [one.packet for one in all_points(tiles_by_level(sequence)[0])]
    assert packets == sorted(packets)
    # the very last is an acknowledgement of the sender
    assert packets[-1] == len(frames) - 1


def test_two_captures_of_one_path_have_no_graph():
    received = ROOT / "tests/data/pair/linux-relay-loss-rcv.pcap.gz"
    assert tfrctrace.open([CAPTURE, received], pair=True).results().sequence is None
