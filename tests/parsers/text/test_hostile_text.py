"""Texts that nobody should have made: what can be read is analysed, the rest is counted and named by line."""

from __future__ import annotations

import json
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"
NOT_READ = 3
LINES = 3000
MOST_KILOBYTES = 80_000


@pytest.fixture(scope="module")
def trace():
    """Return the first lines of the shipped simulation."""
    with lzma.open(SAMPLES / "dumbbell.tr.xz", "rt") as file:
        return [next(file).rstrip("\n") for _ in range(LINES)]


@pytest.fixture
def flows_of(run, tmp_path):
    """Return a function that writes a text and returns the flows and the messages."""

    def read(content, *options):
        (tmp_path / "x.tr").write_bytes(content)
        outcome = run("flows", "--format", "json", *options, "x.tr")
        document = json.loads(outcome.out) if outcome.out else {"flows": [], "sources": []}
        return document, outcome

    return read


def text(lines, end="\n"):
    return end.join(lines).encode() + end.encode()


def counts(document):
    keys = ("src", "sent_packets", "received_packets", "dropped_packets", "delay_mean_ms")
    return [[row[key] for key in keys] for row in document["flows"]]


def test_windows_line_ends_change_nothing(trace, flows_of):
    plain, _ = flows_of(text(trace))
    windows, outcome = flows_of(text(trace, "\r\n"))
    assert outcome.err == ""
    assert counts(windows) == counts(plain)


def test_a_line_that_is_cut_at_the_end_is_named(trace, flows_of):
    document, outcome = flows_of(text(trace) + trace[0].encode()[:9])
    assert outcome.status == 0
    assert f"`x.tr` line {LINES + 1}: 1 line was left out" in outcome.err
    assert document["sources"][0]["bad_lines"] == 1
    assert counts(document) == counts(flows_of(text(trace))[0])


@pytest.mark.parametrize(
    "line",
    [
        "\0\0\0\0\0\0",
        "+ 1e400 0 6 tcp 1040 ------- 2 2.0 3.0 5 7",
        "+ now 0 6 tcp 1040 ------- 2 2.0 3.0 5 7",
        "r 1.5 6 7 tcp 99999999999999999999 ------- 2 2.0 3.0 5 7",
        "+ 1.5 0 6 tcp",
        "1700000000.000001 IP 10.0.0.1.80 > 10.0.0.2.90: Flags [S], seq 1, win 5, length 0",
        "s 1.0 _3_ AGT",
        "\ufffd\u202e",
    ],
)
def test_a_wrong_line_is_counted_and_named_and_the_rest_is_analysed(trace, flows_of, line):
    wrong = [*trace[:50], line, *trace[50:]]
    document, outcome = flows_of(text(wrong))
    assert outcome.status == 0
    assert re.search(r"`x\.tr` line 51: 1 line was left out \(line 51: ", outcome.err)
    assert counts(document) == counts(flows_of(text(trace))[0])


def test_of_many_wrong_lines_the_first_are_named_and_all_are_counted(trace, flows_of):
    wrong = [line for at, line in enumerate(trace) for line in ([line, "?"] if at % 2 else [line])]
    document, outcome = flows_of(text(wrong))
    assert f"{LINES // 2} lines were left out (line 3: " in outcome.err
    assert f"and {LINES // 2 - 3} more" in outcome.err
    source = document["sources"][0]
    assert source["bad_lines"] == LINES // 2
    assert source["lines"] == source["packets"] + source["other_lines"] + source["bad_lines"]


def test_strict_makes_wrong_lines_fatal(trace, flows_of):
    document, outcome = flows_of(text([*trace, "?"]), "--strict")
    assert outcome.status == NOT_READ
    assert "error: `x.tr` line" in outcome.err
    assert document["flows"]


def test_negative_and_backward_times_are_taken_as_they_are(flows_of):
    lines = [
        "+ 5 0 1 cbr 100 ------- 1 0.0 1.0 0 0",
        "r 4.5 0 1 cbr 100 ------- 1 0.0 1.0 0 0",
        "+ -1 0 1 cbr 100 ------- 1 0.0 1.0 1 1",
        "r -0.75 0 1 cbr 100 ------- 1 0.0 1.0 1 1",
    ]
    document, outcome = flows_of(text(lines))
    assert outcome.status == 0
    row = document["flows"][0]
    assert (row["sent_packets"], row["received_packets"]) == (2, 2)
    # the delay that would be negative is no delay
    assert (row["delay_min_ms"], row["delay_max_ms"]) == (250.0, 250.0)
    assert row["start_ns"] == -1_000_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports a program's high-water mark")
def test_a_line_of_100_megabytes_is_passed_over_in_little_memory(trace, tmp_path):
    path = tmp_path / "x.tr"
    with open(path, "wb") as file:
        file.write(text(trace[:100]))
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\n" + text(trace[100:]))
    # the high-water mark of the program itself: ru_maxrss begins with that of the process that forked it
    script = (
        "import re, sys; from tfrctrace.cli import run\n"
        "status = run(sys.argv[1:])\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)\n"
        "sys.exit(status)"
    )
    command = [sys.executable, "-c", script, "flows", "--format", "json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert "line 101: 1 line was left out (line 101: longer than 65536 bytes" in done.stderr
    assert int(done.stderr.split()[-1]) < MOST_KILOBYTES
    assert json.loads(done.stdout)["sources"][0]["lines"] == LINES + 1


def test_two_formats_in_one_file_are_read_as_the_one_with_more_lines(trace, flows_of):
    printed = "12:00:00.000001 IP 10.0.0.1.80 > 10.0.0.2.90: UDP, length 5"
    document, outcome = flows_of(text([*trace[:100], *[printed] * 30]))
    source = document["sources"][0]
    assert (source["format"], source["bad_lines"]) == ("ns2", 30)
    assert "30 lines were left out" in outcome.err


def test_a_filter_is_for_captures_and_says_so(trace, run, tmp_path):
    (tmp_path / "x.tr").write_bytes(text(trace))
    outcome = run("flows", "--filter", "tcp", "x.tr")
    assert outcome.status == NOT_READ
    assert "filter expressions apply to captures, and this is a text (ns2)" in outcome.err


@pytest.mark.parametrize("name", ["ns2", "ns3", "tcpdump", "packets", "iperf", "ss", "tcpvars"])
def test_a_format_that_is_forced_on_something_else_leaves_every_line_out(run, tmp_path, name):
    (tmp_path / "poem.txt").write_text("all mimsy were the borogoves,\nand the mome raths outgrabe.\n")
    outcome = run("flows", "--input-format", name, "poem.txt")
    assert "lines were left out" in outcome.err or "no packets" in outcome.err


@pytest.mark.parametrize("name", ["flowmon", "iperf3"])
def test_a_document_that_is_none_is_an_error_with_its_place(run, tmp_path, name):
    (tmp_path / "poem.txt").write_text("all mimsy were the borogoves,\n")
    outcome = run("flows", "--input-format", name, "poem.txt")
    assert outcome.status == NOT_READ
    assert "error: `poem.txt`" in outcome.err
