"""Which files are one capture: by names, contents and times, and what is said of the others."""

from __future__ import annotations

import gzip
import os

import pytest

from tfrctrace.batch.capture_files import find_captures, without_equal_files
from tfrctrace.batch.chains import days_of, find_chains, longest_ns
from tfrctrace.parsers._native import capture_extent
from tfrctrace.parsers.rotated_names import file_numbers, missing_files

HOUR_S = 3_600


@pytest.fixture
def found(tmp_path):
    """Return a function that gives the names of the chains below a folder, and of their files."""

    def find(folder=tmp_path, chaining="auto"):
        problems = []
        files = find_captures([str(folder)])
        problems += files.problems
        chains = find_chains(without_equal_files(files.files, problems), chaining, problems)
        return {chain.name: [file.name for file in chain.files] for chain in chains}, [
            f"{one['source']}: {one['message']}" for one in problems
        ]

    return find


@pytest.fixture
def hours(conversation, write_capture):
    """Return a function that writes captures that follow each other at once."""

    def write(pattern, count, first=0, packets=400, **more):
        frames = [frame for port in range(packets // 10) for frame in conversation(port=40_000 + port)]
        length_s = -(-len(frames) // 100)
        return [
            write_capture(
                pattern.format(number), frames, start_s=1_700_000_000 + (first + number) * length_s, **more
            )
            for number in range(count)
        ]

    return write


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("link-{:05d}.pcap", "link-*.pcap"),
        ("link.pcap{}", "link.pcap*"),
        ("a/link_{:05d}_20260105.pcap", "a/link_*_20260105.pcap"),
        ("eth0-{}.cap", "eth0-*.cap"),
    ],
)
def test_rotated_files_are_one_chain_in_the_order_of_time(hours, found, pattern, name):
    paths = hours(pattern, 12)
    chains, problems = found()
    assert list(chains) == [name]
    assert [os.path.basename(one) for one in chains[name]] == [path.name for path in paths]
    assert problems == []


def test_captures_that_ran_side_by_side_are_chains_of_their_own(hours, found):
    hours("eth0-{}.pcap", 4)
    hours("eth1-{}.pcap", 4, packets=380)
    hours("run-7-{}.pcap", 1, packets=360)
    hours("run-8-{}.pcap", 1, packets=340)
    chains, _ = found()
    assert {name: len(files) for name, files in chains.items()} == {
        "eth0-*.pcap": 4,
        "eth1-*.pcap": 4,
        "run-7-0.pcap": 1,
        "run-8-0.pcap": 1,
    }


def test_runs_with_pauses_are_chains_of_their_own_unless_names_decide(farm, found):
    assert len(found(farm)[0]) == 6
    assert list(found(farm, "names")[0]) == ["run-*.pcap"]
    assert len(found(farm, "none")[0]) == 6


def test_a_chain_goes_on_over_a_missing_file(hours, found):
    paths = hours("link-{}.pcap", 9)
    paths[4].unlink()
    assert {name: len(files) for name, files in found()[0].items()} == {"link-*.pcap": 8}


def test_other_contents_are_other_chains(hours, found):
    hours("link-{}.pcap", 3)
    hours("link-{}.pcap.raw", 0)
    hours("link-1{}.pcap", 3, first=3, link_type=101)
    assert sorted(len(files) for files in found()[0].values()) == [3, 3]


def test_compressed_files_belong_to_the_others_of_their_chain(hours, found):
    for path in hours("link.pcap{}", 6)[:4]:
        (path.parent / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert {name: len(files) for name, files in found()[0].items()} == {"link.pcap*": 6}


def test_a_file_that_is_being_written_is_left_out_with_a_note(hours, found):
    paths = hours("link-{}.pcap", 3)
    paths[-1].write_bytes(paths[-1].read_bytes()[:-5])
    chains, problems = found()
    assert chains == {"link-*.pcap": ["link-0.pcap", "link-1.pcap"]}
    assert problems == ["link-2.pcap: is still being written, and is left out"]
    os.utime(paths[-1], (1_700_000_000, 1_700_000_000))
    assert [len(files) for files in found()[0].values()] == [3]


def test_a_file_counts_once_whatever_it_is_called(hours, found, tmp_path):
    (path,) = hours("a/link.pcap", 1)
    (tmp_path / "a" / "same.pcap").hardlink_to(path)
    (tmp_path / "b.pcap").write_bytes(path.read_bytes())
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "nowhere.pcap").symlink_to(tmp_path / "nowhere.pcap")
    (tmp_path / "a" / "turns.pcap").symlink_to(tmp_path / "a" / "turns.pcap")
    chains, problems = found()
    assert chains == {"a/link.pcap": ["a/link.pcap"]}
    assert len(problems) == 5
    text = "\n".join(problems)
    assert "a/same.pcap: is the same file as `a/link.pcap`, and is left out" in text
    assert "b.pcap: has the size and both ends of `a/link.pcap`, and is left out" in text
    assert "a/loop: is a link to a folder that was listed already, and is left out" in text
    assert "a/nowhere.pcap: cannot be opened: no such file or directory" in text
    assert "a/turns.pcap: cannot be opened: too many levels of symbolic links" in text


def test_a_first_file_without_a_number_is_of_the_chain_as_tcpdump_names_it(hours, found, tmp_path):
    paths = hours("link.pcap{}", 12)
    paths[0].rename(tmp_path / "link.pcap")
    chains, problems = found()
    assert chains == {"link.pcap*": ["link.pcap", *(f"link.pcap{number}" for number in range(1, 12))]}
    assert problems == []


def test_a_missing_file_of_tcpdump_is_named_by_its_number():
    names = ["link.pcap", "link.pcap1", "link.pcap3"]
    assert file_numbers(names) == [0, 1, 3]
    problem = missing_files(names)
    assert problem is not None
    assert problem["message"] == "no file of the joined ones has number 2 after `link.pcap`"
    assert file_numbers([f"link-2026010{day}0000.pcap" for day in range(1, 5)]) is None


@pytest.mark.parametrize("empty", [(2, 3), (0,), ()])
def test_files_without_packets_stay_in_their_day(empty, conversation, write_capture, tmp_path):
    midnight_s = 1_767_571_200
    for hour in range(30):
        frames = [] if hour in empty else conversation(port=40_000 + hour)
        write_capture(f"link-{hour}.pcap", frames, start_s=midnight_s + hour * HOUR_S)
    chain = find_chains(find_captures([str(tmp_path)]).files, "names", [])[0]
    days = list(days_of(chain))
    assert [file.name for day in days for file in day.files] == [f"link-{hour}.pcap" for hour in range(30)]
    assert [day.name for day in days] == ["link-*.pcap 2026-01-05", "link-*.pcap 2026-01-06"]
    assert [len(day.files) for day in days] == [24, 6]
    assert longest_ns([chain]) == pytest.approx((29 - (empty == (0,))) * HOUR_S * 1e9, rel=0.001)


def test_of_two_equal_files_that_of_the_chain_stays(hours, found, tmp_path):
    hours("link-{}.pcap", 4)
    (tmp_path / "a-copy.pcap").write_bytes((tmp_path / "link-2.pcap").read_bytes())
    chains, (problem,) = found()
    assert chains == {"link-*.pcap": [f"link-{number}.pcap" for number in range(4)]}
    assert problem == "a-copy.pcap: has the size and both ends of `link-2.pcap`, and is left out"


def test_files_without_packets_are_no_copies_of_each_other(hours, found, write_capture):
    hours("link-{}.pcap", 2)
    for number in (2, 3):
        write_capture(f"link-{number}.pcap", [])
    chains, problems = found()
    assert chains == {"link-*.pcap": [f"link-{number}.pcap" for number in range(4)]}
    assert problems == []


def test_the_extent_of_a_capture_is_that_of_all_its_packets(conversation, write_capture):
    import tfrctrace

    frames = [frame for port in range(300) for frame in conversation(port=40_000 + port)]
    for cut in (0, 7):
        path = write_capture("long.pcap", frames, cut=cut)
        head, end_ns, is_whole = capture_extent(str(path))
        with pytest.warns(tfrctrace.TfrctraceWarning) if cut else _nothing():
            (source,) = tfrctrace.open(path).sources
        assert (head["start_ns"], end_ns) == (source["start_ns"], source["end_ns"])
        assert is_whole is (cut == 0)


def _nothing():
    from contextlib import nullcontext

    return nullcontext()
