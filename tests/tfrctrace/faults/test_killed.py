"""Runs that are killed at random moments, or write to one folder at once: files are whole or absent."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

PATIENCE_S = 60

TOUCHES = {"open", "os.rename", "os.remove", "os.mkdir", "os.chmod"}
"""Audit events of files: between them a write can be cut."""

ENDS_AT = f"""
import os, sys
folder, moment, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
touched = 0
def watch(event, arguments):
    global touched
    if event in {TOUCHES} and str(arguments[0]).startswith(folder):
        touched += 1
        if touched == moment:
            os.kill(os.getpid(), number)
sys.addaudithook(watch)
sys.argv[1:] = sys.argv[4:]
from tfrctrace.__main__ import main
main()
"""

CHECK = ["check", "first.pcap", "-r", "packets > 0", "--least-packets", "1"]

COMMANDS = {
    "pages": ["report", "first.pcap", "--pages", "OUT"],
    "results": ["report", "first.pcap", "-o", "OUT/page.html", "--results", "OUT"],
    "batch": ["batch", "first.pcap", "-o", "OUT", "--jobs", "1"],
    "convert": ["convert", "first.pcap", "-o", "OUT/packets.csv"],
    "baseline": [*CHECK, "--write-baseline", "OUT/b.json", "--cache", "OUT/c"],
    "study": ["experiment", "small.toml", "-o", "OUT", "--cache", "OUT/c", "--jobs", "1", "--format", "csv"],
}


class Touches:
    """Counts the events of files in a folder; an audit hook stays for good, so it is one for all tests."""

    def __init__(self):
        self.folder, self.count = os.devnull, 0
        sys.addaudithook(self._watch)

    def _watch(self, event, arguments):
        if event in TOUCHES and str(arguments[0]).startswith(self.folder):
            self.count += 1

    def start(self, folder):
        self.folder, self.count = str(folder), 0


_TOUCHES = Touches()


@pytest.fixture
def _inputs(write_capture, conversation, small_study):
    write_capture("first.pcap", conversation())


def command(name, folder):
    return [word.replace("OUT", str(folder)) for word in COMMANDS[name]]


def but_cached(files):
    """Leave out entries of the cache, whose compression has the time in it, and parts."""
    return {path: content for path, content in files.items() if path[:2] != "c/" and ".part" not in path}


@pytest.fixture
def kill_at(tmp_path):
    """Return a function that runs a command in a process that ends itself by a signal at a random event."""

    def perform(name, folder, number):
        # what is cached is not written again, so the moment is an early one
        moment = random.Random(f"{name} {number}").randint(1, max(_TOUCHES.count // 2, 3))
        line = [sys.executable, "-c", ENDS_AT, str(folder), str(moment), str(int(number))]
        done = subprocess.run(
            [*line, *command(name, folder)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr
        return done.returncode

    return perform


@pytest.mark.usefixtures("_inputs")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in {"pages", "results"} else name
        for name in COMMANDS
    ],
)
def test_a_killed_run_leaves_whole_files(run, kill_at, files_in, tmp_path, name):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    _TOUCHES.start(whole)
    assert run(*command(name, whole)).status == 0
    complete = files_in(whole)
    # twice in the same folder: the second run begins with what the first has left
    parts = None
    for number, status in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 128 + signal.SIGTERM)):
        assert kill_at(name, cut, number) == status
        left = but_cached(files_in(cut))
        assert left == {path: but_cached(complete)[path] for path in left}
        left_parts = {path for path in files_in(cut) if ".part" in path}
        assert parts is None or left_parts <= parts, "a run that may clean up has left a part of its own"
        parts = left_parts
    assert run(*command(name, cut)).status == 0
    assert but_cached(files_in(cut)) == but_cached(complete)
    assert set(files_in(cut)) == set(complete)


@pytest.mark.usefixtures("_inputs")
def test_what_a_killed_run_left_in_the_cache_goes_with_the_next_new_run(run, tmp_path):
    parts = tmp_path / "c/runs"
    parts.mkdir(parents=True)
    (parts / f".{'ab' * 16}.abcd1234.part").write_bytes(b"half")
    assert run(*CHECK, "--cache", "c").status == 0
    assert [path.suffix for path in parts.iterdir()] == [".gz"]


@pytest.mark.usefixtures("_inputs")
def test_two_runs_in_one_folder_at_once_end_as_one_does(run, tmp_path, files_in):
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    assert run(*command("study", whole)).status == 0
    ended = []

    def experiment():
        line = [sys.executable, "-m", "tfrctrace", *command("study", shared)]
        ended.append(subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False))

    both = [threading.Thread(target=experiment) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert [one.returncode for one in ended] == [0, 0], [one.stderr for one in ended]
    assert but_cached(files_in(shared)) == but_cached(files_in(whole))
    assert set(files_in(shared)) == set(files_in(whole))


WITH_WORKERS = """
import os, time
from tfrctrace.runs.workers import processes
pool = processes(2).make(2)
busy = pool.submit(time.sleep, 1_000)
idle = pool.submit(os.getpid).result()
print(*(idle, *pool._processes), flush=True)
time.sleep(1_000)
"""


def has_ended(process):
    """Return whether a process that is not our child is gone; this machine may have nobody to reap it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until_ended(processes):
    until = time.monotonic() + PATIENCE_S
    while not all(map(has_ended, processes)):
        assert time.monotonic() < until, "it outlives its parent"
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_end_when_their_parent_is_killed():
    with subprocess.Popen([sys.executable, "-c", WITH_WORKERS], stdout=subprocess.PIPE, text=True) as parent:
        workers = set(map(int, parent.stdout.readline().split()))
        assert len(workers) == 2
        parent.kill()
    wait_until_ended(workers)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of address space is Linux's")
def test_the_child_that_works_below_a_limit_ends_when_its_parent_is_killed(tmp_path):
    os.mkfifo(tmp_path / "silent.pcap")
    line = f"ulimit -v 4000000; exec {sys.executable} -m tfrctrace flows silent.pcap"
    with subprocess.Popen(["sh", "-c", line], cwd=tmp_path) as parent:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        until = time.monotonic() + PATIENCE_S
        # it waits for the pipe's writer: by then the child has been told of its parent
        writer = None
        while writer is None:
            assert time.monotonic() < until
            try:
                writer = os.open(tmp_path / "silent.pcap", os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                time.sleep(0.05)
        (child,) = map(int, children.read_text().split())
        parent.kill()
    wait_until_ended([child])
    os.close(writer)
