"""Packets that a replay reads flow by flow: as in the table of packets, and never in a file with a name."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.errors import SpoolError
from tfrctrace.parsers import _native, reading
from tfrctrace.parsers.filters import capture_filters
from tfrctrace.parsers.reading_settings import ReadSettings
from tfrctrace.reports.files import lists_of_text
from tfrctrace.reports.printers import replay as printer

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
TRACES = (
    "sample_traces/two-flows.pcapng.gz",
    "sample_traces/mixed.pcap.zst",
    "sample_traces/dumbbell.tr.xz",
    "sample_traces/dccp-ccid3.pcap.gz",
)
COLUMNS = ["time_ns", "payload_bytes", "sequence", "seq_rel", "ecn", "uid", "event", "point", "layer"]


def spooled(path: str, folder: Path, most_buffered: int) -> _native.DirectionSpool:
    file = _native.SpoolFile(str(folder), most_buffered)
    spool = _native.analyse([path], ReadSettings(), into=file).spool
    assert spool is not None
    return spool


@pytest.mark.parametrize("most_buffered", [0, 1_000, 1 << 30])
@pytest.mark.parametrize("name", TRACES)
def test_each_direction_has_its_packets_of_the_table(name: str, most_buffered: int, tmp_path: Path) -> None:
    path = f"{ROOT}/{name}"
    every = pl.concat(tfrctrace.open(path).packets())
    spool = spooled(path, tmp_path, most_buffered)
    # the file has no name while it is open
    assert not os.listdir(tmp_path)
    data = every.filter(pl.col("flow").is_not_null(), pl.col("payload_bytes") > 0)
    keys = every.drop_nulls("flow").select("flow", "direction").unique().rows()
    assert keys
    for flow, direction in keys:
        own = data.filter(pl.col("flow") == flow, pl.col("direction") == direction).select(COLUMNS)
        assert pl.DataFrame(spool.packets(flow, direction)).equals(own)
        assert spool.count(flow, direction) == own.height
        assert spool.is_simulated(flow, direction) == (own["uid"].null_count() < own.height)
    assert spool.count(len(keys) + 1, "fwd") == 0
    assert len(spool.packets(len(keys) + 1, "fwd")) == 0


@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize("name", TRACES)
def test_a_replay_is_the_same_whatever_is_kept_in_memory(
    run: Callable[..., object], monkeypatch: pytest.MonkeyPatch, name: str, form: str
) -> None:
    arguments = (
        "replay",
        "--algorithm",
        "tfrc,tfrc-veno",
        "--sensitivity",
        "--format",
        form,
        f"{ROOT}/{name}",
    )
    before = run(*arguments)
    assert getattr(before, "status") == 0  # noqa: B009
    monkeypatch.setattr(reading, "SpoolFile", lambda folder, _: _native.SpoolFile(folder, 100))
    monkeypatch.setattr(lists_of_text, "_IN_MEMORY", 100)
    assert run(*arguments) == before


@pytest.mark.parametrize("name", TRACES)
def test_each_direction_has_the_round_trip_times_and_rounds_of_the_tables(name: str, tmp_path: Path) -> None:
    path = f"{ROOT}/{name}"
    spool = spooled(path, tmp_path, 1_000)
    trace = tfrctrace.open(path)
    tcp = trace.flows.filter(pl.col("transport") == "tcp").select("flow", "direction").rows()
    for flow, direction in tcp:
        own = (pl.col("flow") == flow) & (pl.col("direction") == direction)
        rtt = trace.rtt.filter(own, pl.col("rtt_ns") > 0)
        assert pl.DataFrame(spool.round_trips(flow, direction)).equals(rtt.select("time_ns", "rtt_ns"))
        rounds, spooled_rounds = trace.rounds.filter(own), pl.DataFrame(spool.rounds(flow, direction))
        shown = rounds.filter(pl.lit(value=False)) if spooled_rounds.is_empty() else rounds
        assert spooled_rounds["time_ns"].equals(shown["time_ns"])
        # where no data was waiting, a round says nothing of the window
        limited = shown.filter(spooled_rounds["is_data_limited"] == 1)
        assert limited["cwnd_bytes"].null_count() == limited.height


def test_a_replay_of_standard_input_is_that_of_the_file() -> None:
    path = f"{ROOT}/{TRACES[0]}"
    program = [sys.executable, "-m", "tfrctrace", "replay", "--format", "csv"]
    with open(path, "rb") as file:
        read = subprocess.run([*program, "-"], stdin=file, capture_output=True, check=True)
    assert read.stdout.count(b"\n") > 200
    assert read.stdout == subprocess.run([*program, path], capture_output=True, check=True).stdout


def test_packets_are_followed_through_every_layer_whichever_counts(run: Callable[..., object]) -> None:
    arguments = ("replay", "--format", "csv", f"{ROOT}/sample_traces/dumbbell.tr.xz")
    every, links = run(*arguments), run(*arguments, "--layer", "link")
    assert getattr(every, "out").count("\n") > 100  # noqa: B009
    assert every == links


def test_a_full_disk_is_reported_with_the_folder(write_capture, conversation, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = write_capture("a.pcap", conversation(data_packets=300))
    script = f"""
import resource, signal, sys
from tfrctrace.parsers import _native, reading
from tfrctrace.parsers.filters import capture_filters
from tfrctrace.cli import run
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
reading.SpoolFile = lambda folder, _: _native.SpoolFile(folder, 100)
sys.exit(run(["replay", {str(path)!r}]))
"""
    outcome = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 2
    assert outcome.stderr.splitlines() == [
        f"error: cannot write `{tmp_path}`: file too large",
        "hint:  free some space, or name another folder in the environment variable TMPDIR",
    ]
    assert os.listdir(tmp_path) == ["a.pcap"]


def test_a_folder_that_cannot_be_written_is_an_error_of_its_own(
    write_capture, conversation, tmp_path, monkeypatch
):  # type: ignore[no-untyped-def]
    path = write_capture("a.pcap", conversation(data_packets=30))
    monkeypatch.setattr(reading, "SpoolFile", lambda *_: _native.SpoolFile(f"{tmp_path}/nowhere", 0))
    with pytest.raises(SpoolError, match="no such file or directory"):
        tfrctrace.open(path).replays()


def test_what_fails_without_a_spool_names_no_temporary_folder(  # type: ignore[no-untyped-def]
    run, write_capture, conversation, monkeypatch
) -> None:
    compiled = capture_filters._compile

    def lack_files(expression: str, link_type: int, snap_length: int) -> object:
        if link_type == 101:
            raise OSError(errno.EMFILE, "Too many open files")
        return compiled(expression, link_type, snap_length)

    monkeypatch.setattr(capture_filters, "_compile", lack_files)
    write_capture("a.pcap", conversation(link_layer=False), link_type=101)
    outcome = run("flows", "--filter", "tcp", "a.pcap")
    assert outcome.status == 71
    assert outcome.err.startswith("error: too many open files\nhint:  raise the limit of open files")


def test_text_shows_flows_with_the_most_steps_and_counts_others(  # type: ignore[no-untyped-def]
    run, write_capture, conversation, monkeypatch
) -> None:
    frames = [
        frame
        for port, packets in enumerate([60, 30, 90, 40, 5, 4, 3, 3])
        for frame in conversation(1001 + port, data_packets=packets)
    ]
    write_capture("a.pcap", frames)
    whole = json.loads(run("replay", "a.pcap", "--rtt", "10ms", "--format", "json").out)
    monkeypatch.setattr(printer, "MOST_SHOWN", 2)
    text = run("replay", "a.pcap", "--rtt", "10ms").out
    steps = {flow["flow"]: flow["reports"] for flow in whole["flows"]}
    assert len(steps) == 4
    shown = sorted(steps, key=lambda flow: -steps[flow])[:2]
    titles = [line.split()[1] for line in text.splitlines() if line.startswith("flow ") and "steps" in line]
    assert titles == [str(flow) for flow in sorted(shown)]
    assert "and 2 more flows with fewer steps" in text
    counted = text.partition("more flows cannot be replayed")[2].splitlines()[1:]
    lacking = [flow["what"] for flow in whole["lacking"]]
    assert len(lacking) > 2
    assert sum(int(line.split(":")[0]) for line in counted if line.startswith("  ")) == len(lacking) - 2
