"""Rows of `tfrctrace groups --format ndjson`, written while a trace is read."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
    at = int(len(capture) * cut)
    command = [sys.executable, "-m", "tfrctrace", *OPTIONS, "ndjson", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False) as groups:
        assert groups.stdin is not None
        assert groups.stdout is not None
        groups.stdin.write(capture[:at])
        groups.stdin.flush()
        first = groups.stdout.readline().decode()  # else this waits for ever
        groups.stdin.write(capture[at:])
        groups.stdin.close()
        rest = groups.stdout.read().decode()
    released = last_of_each([first, *rest.splitlines()])
    expected = json.loads(run(*OPTIONS, "json", TWO_FLOWS).out)["groups"]
    assert len(released) == len(expected) > 0
    for row in expected:
        assert released[row["group"], row["direction"], row["start_ns"]] == row


def test_progress_is_shown_beside_rows_that_go_elsewhere(run: Callable[..., Any]) -> None:
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "tfrctrace", "groups", "--every", "1s", "--format", "ndjson", TWO_FLOWS]
    try:
        rows = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=end, env={**os.environ, "TERM": "xterm"}, check=True
        ).stdout
        assert b"reading" in os.read(terminal, 65_536)
    finally:
        os.close(end)
        os.close(terminal)
    # how often a row is revised depends on when packets are taken
    alone = run(*OPTIONS, "ndjson", TWO_FLOWS).out
    assert last_of_each(rows.decode().splitlines()) == last_of_each(alone.splitlines())
