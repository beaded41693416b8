"""Which inputs the arguments mean, and in which order they are read."""

import gzip
import lzma
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.base.errors import UsageError, describe
from tfrctrace.parsers.sources import (
    find_inputs,
    looks_like_capture,
    natural_key,
    ns3_place,
    without_suffixes,
)

PCAP = b"\xd4\xc3\xb2\xa1" + bytes(20)
PCAPNG = b"\x0a\x0d\x0d\x0a" + bytes(24)


def names_below(directory, inputs):
    return [os.path.relpath(name, directory) for name in inputs.names]


def test_files_stay_in_the_order_they_were_named():
    assert find_inputs(["b.pcap", "a10.pcap", "a2.pcap"]).names == ["b.pcap", "a10.pcap", "a2.pcap"]


def test_a_file_that_is_not_there_is_left_for_the_core_to_report():
    inputs = find_inputs(["nowhere.pcap"])
    assert inputs.names == ["nowhere.pcap"]
    assert not inputs.problems


def test_a_directory_stands_for_its_captures_in_natural_order(tmp_path):
    for name in ("t10.pcap", "t2.pcap", "deep/er/t1.pcapng", "t1.pcap"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(PCAP)
    inputs = find_inputs([str(tmp_path)])
    assert names_below(tmp_path, inputs) == ["deep/er/t1.pcapng", "t1.pcap", "t2.pcap", "t10.pcap"]


def test_what_is_no_capture_is_left_out_of_a_directory_with_a_note(tmp_path):
    (tmp_path / "a.pcap").write_bytes(PCAP)
    for name in ("README", "notes.txt", "x1.log", "x2.log", "x10.log"):
        (tmp_path / name).write_text("text")
    inputs = find_inputs([str(tmp_path)])
    assert names_below(tmp_path, inputs) == ["a.pcap"]
    (note,) = inputs.problems
    assert note["severity"] == "note"
    assert (
        note["message"] == "5 files are not traces and were left out: `README`, `notes.txt`, `x1.log`, 2 more"
    )


def test_a_directory_without_captures_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("text")
    inputs = find_inputs([str(tmp_path)])
    assert not inputs.names
    (problem,) = inputs.problems
    assert describe(problem).lines()[0] == (
        f"error: `{tmp_path}`: is a directory without any trace of a known format"
    )


def test_a_named_pipe_in_a_directory_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.pcap")
    assert not find_inputs([str(tmp_path)]).names


@pytest.mark.parametrize(
    ("name", "content", "is_one"),
    [
        ("dump", PCAP, True),
        ("dump.bin", PCAPNG, True),
        ("nanoseconds", b"\x4d\x3c\xb2\xa1" + bytes(20), True),
        ("dump.gz", gzip.compress(PCAP, mtime=0), True),
        ("dump.xz", lzma.compress(PCAPNG), True),
        ("text.gz", gzip.compress(b"words", mtime=0), False),
        ("broken.gz", b"\x1f\x8b\x08" + bytes(3), False),
        ("broken.xz", b"\xfd7zXZ\x00 broken", False),
        # by name: Python 3.11 cannot undo zstd, and an empty capture should be reported, not left out
        ("dump.pcap.zst", b"\x28\xb5\x2f\xfd", True),
        ("DUMP.PCAPNG.LZ4", b"\x04\x22\x4d\x18", True),
        ("rotated.pcap17", b"", True),
        ("empty.pcap", b"", True),
        ("empty", b"", False),
        ("report.html", b"<html>", False),
    ],
)
def test_captures_are_recognised_by_content_and_by_name(tmp_path, name, content, is_one):
    path = tmp_path / name
    path.write_bytes(content)
    assert looks_like_capture(str(path)) == is_one


def test_joined_captures_in_a_shells_order_are_put_in_natural_order():
    assert find_inputs(["t.pcap1", "t.pcap10", "t.pcap2"], join=True).names == [
        "t.pcap1",
        "t.pcap2",
        "t.pcap10",
    ]


def test_joined_pipes_stay_in_the_order_given(tmp_path):
    pipes = [str(tmp_path / name) for name in ("t3", "t1", "t2")]
    for name in pipes:
        os.mkfifo(name)
    assert find_inputs(pipes, join=True).names == pipes
    assert find_inputs(["t3", "t1", "t2"], join=True).names == ["t1", "t2", "t3"]


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["d/t1.pcap", "d/t2.pcap", "d/t4.pcap"], "number 3 after `t`"),
        (["t_00008_2025.pcapng", "t_00009_2026.pcapng", "t_00011_2027.pcapng"], "number 00010 after `t_`"),
        ([f"x.pcap{number}" for number in (*range(8), 12)], "number 8, 9, 10, 1 more after `x.pcap`"),
        (["t0.pcap", "t1.pcap", "t2.pcap"], None),
        (["t-093000.pcap", "t-093500.pcap", "t-094000.pcap"], None),
        (["a1.pcap", "b3.pcap", "c5.pcap"], None),
        (["one.pcap"], None),
    ],
)
def test_numbers_that_joined_captures_lack_are_reported(names, missing):
    problems = find_inputs(names, join=True).problems
    assert [missing in problem["message"] for problem in problems] == ([] if missing is None else [True])
    assert find_inputs(names).problems == []


def test_standard_input_stands_alone():
    with pytest.raises(UsageError, match="cannot be read together"):
        find_inputs(["-", "a.pcap"])


def test_no_argument_is_wrong_usage():
    with pytest.raises(UsageError, match="no input is given"):
        find_inputs([])


@given(st.lists(st.integers(min_value=0, max_value=10**12), unique=True))
def test_natural_order_is_the_order_of_the_numbers(numbers):
    names = [f"trace{number}.pcap" for number in sorted(numbers)]
    shuffled = random.Random(0).sample(names, len(names))
    assert sorted(shuffled, key=natural_key) == names


@given(st.lists(st.text()))
def test_any_names_can_be_put_in_natural_order(names):
    assert sorted(sorted(names, key=natural_key)) == sorted(names)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("/tmp/link.pcapng.gz", "link"),
        ("link.pcap", "link"),
        ("link.tar.gz", "link.tar"),
        ("link.v2.pcap.zst", "link.v2"),
        (".pcap", ".pcap"),
        ("link", "link"),
    ],
)
def test_the_suffixes_of_captures_are_taken_off_names(name, stem):
    assert without_suffixes(name) == stem


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("out/csma-red-3-1.pcap", "node 3, device 1"),
        ("wifi-12-0.pcap.gz", "node 12, device 0"),
        ("3-1.pcap", "node 3, device 1"),
        ("prefix-0-2.tr", "node 0, device 2"),
        ("ip-n4-i1.pcap", "node 4, interface 1"),
        ("capture.pcap", None),
        ("eth0.pcap", None),
        ("run3-1.pcap", None),
        ("a-3-x.pcap", None),
        ("-", None),
    ],
)
def test_the_place_of_a_capture_is_in_the_name_that_ns3_gives_it(name, place):
    assert ns3_place(name) == place
