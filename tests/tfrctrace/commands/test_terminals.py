"""What commands print to a terminal: tables that fit it, and verdicts in colour."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")

DCCP = "sample_traces/dccp-ccid3.pcap.gz"
TWO_FLOWS = "sample_traces/two-flows.pcapng.gz"


@pytest.fixture
def printed(monkeypatch):
    """Run the program in a terminal of some columns, and return what it shows."""

    def run(*arguments, columns=80, **variables):
        terminal, end = pty.openpty()
        environment = {**os.environ, "COLUMNS": str(columns), "LINES": "50", **variables}
        with subprocess.Popen(
            [sys.executable, "-m", "tfrctrace", *arguments], stdout=end, stderr=end, env=environment
        ) as program:
            os.close(end)
            text = b""
            while piece := read(terminal):
                text += piece
            program.wait()
        os.close(terminal)
        return text.decode().replace("\r\n", "\n")

    monkeypatch.delenv("NO_COLOR", raising=False)
    return run


def read(terminal):
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux reports the end of a pseudo-terminal
        return b""


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize(
    "arguments",
    [
        ("metrics", TWO_FLOWS, "--metric", "rtt_p95_ms", "--metric", "jain", "--metric", "burstiness"),
        ("replay", DCCP, "--algorithm", "tfrc,tfrc-veno"),
        ("flows", TWO_FLOWS),
        ("groups", TWO_FLOWS, "--by", "host"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_row_of_a_table_is_wider_than_the_terminal(printed, arguments, columns):
    # rows of tables have runs of blanks; notes, which terminals wrap, have none
    rows = re.findall(r"^.*\S  .*$", printed(*arguments, "--quiet", columns=columns), re.MULTILINE)
    assert len(rows) > 2
    assert [row for row in rows if len(re.sub(r"\x1b\[[0-9;]*m", "", row)) > columns] == []


def test_verdicts_are_coloured_unless_no_color_is_set(printed):
    check = ("check", TWO_FLOWS, "--quiet", "--require", "jain > 0.5", "--require", "jain > 0.99")
    assert {"\x1b[1;32mpass\x1b[0m", "\x1b[1;31mfail\x1b[0m"} <= set(printed(*check).split())
    assert "\x1b" not in printed(*check, NO_COLOR="1")
