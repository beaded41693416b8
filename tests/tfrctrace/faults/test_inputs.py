"""Inputs that go away, stall or are cut while they are read, and clocks that go back."""

from __future__ import annotations

import array
import fcntl
import itertools
import os
import select
import termios
import threading
import time

import pytest

import tfrctrace
from tfrctrace.base.errors import InputError

NOT_READ = 3


def test_a_file_that_goes_between_two_passes_is_named(write_capture, conversation):
    path = write_capture("a.pcap", conversation())
    trace = tfrctrace.open(str(path))
    assert trace.flows.height == 2
    path.unlink()
    with pytest.raises(InputError, match=r"a\.pcap`: .*[Nn]o such file"):
        list(trace.packets())


def test_a_run_that_goes_before_it_is_measured_is_one_problem_of_the_study(run, small_study, monkeypatch):
    from tfrctrace.study import run_record

    measure = run_record.record_run

    def record_run(path, *more):
        if "n2-1" in path:
            os.unlink(path)
        return measure(path, *more)

    monkeypatch.setattr(run_record, "record_run", record_run)
    outcome = run("experiment", small_study, "-o", "out", "--cache", "c", "--jobs", "1", "--format", "csv")
    assert outcome.status == NOT_READ
    assert "error: `runs/red-n2-1.tr.xz`: " in outcome.err
    assert "results in `out`" in outcome.err


def wait_until_read(pipe):
    """Wait until the reader of a pipe has taken all bytes, or is gone."""
    reader = select.poll()
    reader.register(pipe, select.POLLERR)
    unread = array.array("i", [1])
    while unread[0] and not reader.poll(1):
        fcntl.ioctl(pipe, termios.FIONREAD, unread)


@pytest.fixture
def feed(tmp_path):
    """Return a function that writes pieces into a named pipe, each once the one before has been read."""
    writers = []

    def start(pieces):
        path = tmp_path / "live.pcap"
        os.mkfifo(path)

        def write():
            with path.open("wb", buffering=0) as pipe:
                for piece in pieces:
                    pipe.write(piece)
                    wait_until_read(pipe)

        writers.append(threading.Thread(target=write))
        writers[-1].start()
        return path

    yield start
    for writer in writers:
        writer.join()


def test_a_pipe_that_stalls_within_records_gives_what_a_file_does(run, write_capture, conversation, feed):
    whole = write_capture("whole.pcap", conversation())
    content = whole.read_bytes()
    feed([content[at : at + 97] for at in range(0, len(content), 97)])
    outcome = run("flows", "live.pcap", "--format", "csv")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.replace("live.pcap", whole.name) == run("flows", whole.name, "--format", "csv").out


def test_a_pipe_that_is_cut_within_a_record_gives_what_came_before(run, write_capture, conversation, feed):
    cut = write_capture("cut.pcap", conversation(), cut=3)
    content = cut.read_bytes()
    feed([content[:500], content[500:]])
    outcome = run("flows", "live.pcap", "--format", "csv")
    assert outcome.status == 0
    assert outcome.err.startswith("warning: `live.pcap` packet 12 at byte ")
    assert outcome.out.replace("live.pcap", cut.name) == run("flows", cut.name, "--format", "csv").out


def test_a_file_that_shrinks_while_it_is_read_is_cut(write_capture, conversation):
    path = write_capture("big.pcap", conversation()[3:5] * 60_000)
    chunks = tfrctrace.open(str(path)).packets()
    first = next(chunks)
    os.truncate(path, path.stat().st_size // 2 + 1)
    with pytest.warns(tfrctrace.TfrctraceWarning, match="the file ends inside a"):
        rows = len(first) + sum(map(len, chunks))
    assert 0 < rows < 120_000


def test_the_clock_of_the_machine_may_go_back(run, small_study, monkeypatch, files_in, tmp_path):
    run_of_study = tmp_path / "runs/red-n2-1.tr.xz"

    def write(folder):
        assert run("report", run_of_study, "--pages", f"{folder}/pages").status == 0
        study = ["experiment", small_study, "--cache", "c", "--jobs", "1", "--format", "csv"]
        assert run(*study, "-o", f"{folder}/study").status == 0
        return files_in(tmp_path / folder)

    before = write("before")
    # entries of the cache, and of the disk, come from the future then
    for path in (tmp_path / "c").rglob("*.gz"):
        os.utime(path, (4e9, 4e9))
    hours = itertools.count(int(time.time() // 3600), -1)
    monkeypatch.setattr(time, "time", lambda: next(hours) * 3600.0)
    assert write("after") == before
