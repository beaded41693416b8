"""Rows of `tfrctrace groups --format ndjson`, written while a trace is read."""

from __future__ import annotations

import gzip
import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path(__file__).resolve().parents[3]
TWO_FLOWS = ROOT / "sample_traces/two-flows.pcapng.gz"
CAPTURES = [TWO_FLOWS, *sorted((ROOT / "tests/data/captures").glob("*.pcap*"))]

OPTIONS = ("groups", "-q", "--every", "1s", "--format")


def last_of_each(lines: Iterable[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return what a reader has who replaces each row by its revised ones, which must be of known rows."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in lines:
        row = json.loads(line)
        key = (row["group"], row["direction"], row["start_ns"])
        assert row.pop("revised", False) == (key in rows)
        rows[key] = row
    return rows


@pytest.mark.parametrize("by", ["host", "flow"])
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_the_last_row_of_each_interval_is_that_of_the_table(
    path: Path, by: str, run: Callable[..., Any]
) -> None:
    table = run(*OPTIONS, "json", "--by", by, path)
    if not table.out:
        return
    released = last_of_each(run(*OPTIONS, "ndjson", "--by", by, path).out.splitlines())
    expected = json.loads(table.out)["groups"]
    assert released == {(row["group"], row["direction"], row["start_ns"]): row for row in expected}


@pytest.mark.parametrize("cut", [0.7, 0.85])
def test_rows_come_through_a_pipe_before_its_end(cut: float, run: Callable[..., Any]) -> None:
    capture = gzip.decompress(TWO_FLOWS.read_bytes())
    expect_rows_before_the_end(capture, int(len(capture) * cut), run)


def test_rows_of_a_few_packets_come_before_its_end(
    run: Callable[..., Any], write_capture: Callable[..., Path], conversation: Callable[..., Any]
) -> None:
    packets = conversation()
    capture = write_capture("slow.pcap", packets, step_ms=3000).read_bytes()
    expect_rows_before_the_end(capture, len(capture), run)


def test_rows_come_after_a_clock_that_was_ahead_is_set_back(
    run: Callable[..., Any], write_capture: Callable[..., Path], conversation: Callable[..., Any]
) -> None:
    ahead = write_capture(
        "ahead.pcap", conversation(50_000, data_packets=18), start_s=1_900_000_000, step_ms=1000
    ).read_bytes()
    right = write_capture("right.pcap", conversation(data_packets=18), step_ms=1000).read_bytes()
    expect_rows_before_the_end(ahead, len(ahead), run, then=right[24:])


def expect_rows_before_the_end(capture: bytes, at: int, run: Callable[..., Any], then: bytes = b"") -> None:
    """Check that rows come while there is only a part of a capture, and that all are those of the table.

    After those, rows of what is sent `then` have to come, too.
    """
    command = [sys.executable, "-m", "tfrctrace", *OPTIONS, "ndjson", "-"]
    # unbuffered: lines that a buffer holds are none to wait for
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as groups:
        assert groups.stdin is not None
        assert groups.stdout is not None
        groups.stdin.write(capture[:at])
        groups.stdin.flush()
        assert select.select([groups.stdout], [], [], PATIENCE_S)[0]
        first = [groups.stdout.readline().decode()]
        groups.stdin.write(capture[at:] + then)
        groups.stdin.flush()
        while then and json.loads(first[-1])["start_ns"] >= json.loads(first[0])["start_ns"]:
            assert select.select([groups.stdout], [], [], PATIENCE_S)[0]
            first.append(groups.stdout.readline().decode())
        groups.stdin.close()
        rest = groups.stdout.read().decode()
    released = last_of_each([*first, *rest.splitlines()])
    expected = json.loads(run(*OPTIONS, "json", "-", stdin=capture + then).out)["groups"]
    assert len(released) == len(expected) > 0
    for row in expected:
        assert released[row["group"], row["direction"], row["start_ns"]] == row


def test_progress_is_shown_beside_rows_that_go_elsewhere(run: Callable[..., Any]) -> None:
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "tfrctrace", "groups", "--every", "1s", "--format", "ndjson", TWO_FLOWS]
    shown = []

    def keep_shown() -> None:
        with suppress(OSError):  # EIO: nobody has the other end
            while True:
                shown.append(os.read(terminal, 65_536))

    keeping = Thread(target=keep_shown)
    keeping.start()
    with os.fdopen(end, "wb") as stderr:
        rows = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, "TERM": "xterm"}, check=True
        ).stdout
    keeping.join(PATIENCE_S)
    os.close(terminal)
    assert b"reading" in b"".join(shown)
    # how often a row is revised depends on when packets are taken
    alone = run(*OPTIONS, "ndjson", TWO_FLOWS).out
    assert last_of_each(rows.decode().splitlines()) == last_of_each(alone.splitlines())
