"""Disks, limits and traces for faults on purpose."""

from __future__ import annotations

import os
import resource
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STUDY = ROOT / "tests/data/study"


@pytest.fixture(scope="session")
def two_flows():
    """Return a real capture of 349 kB."""
    return ROOT / "sample_traces/two-flows.pcapng.gz"


@pytest.fixture
def small_study(tmp_path):
    """Return a study of two runs."""
    runs = tmp_path / "runs"
    runs.mkdir()
    for name in ("red-n2-1.tr.xz", "red-n2-2.tr.xz"):
        (runs / name).symlink_to(STUDY / "runs" / name)
    path = tmp_path / "small.toml"
    path.write_text(
        '[runs]\nfiles = ["runs/*.tr.xz"]\npattern = "red-n2-{run}.tr.xz"\nrepetition = "run"\n'
        '[[quantity]]\nname = "rate"\nmetric = "rate_bps"\n'
    )
    return path


@pytest.fixture
def small_disk(tmp_path):
    """Return a function that mounts a file system of so many bytes; it is gone after the test."""
    mounted = []

    def mount(size, options="rw"):
        folder = tmp_path / "disk"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size},{options}", "tmpfs", folder]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("mounting a file system needs root on Linux")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def limited(which, most):
    """Lower a limit of this process for a while."""
    before = resource.getrlimit(which)
    resource.setrlimit(which, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(which, before)


@pytest.fixture
def largest_file():
    """Return a function that limits the size of files, as a quota does."""
    return lambda size: limited(resource.RLIMIT_FSIZE, size)


@pytest.fixture
def most_new_files():
    """Return a function that limits the number of files that this process opens besides those it has."""

    def limit(count):
        lowest = os.dup(0)
        os.close(lowest)
        return limited(resource.RLIMIT_NOFILE, lowest + count)

    return limit


@pytest.fixture
def files_in():
    """Return a function that gives the content of every file below a folder, part files too."""

    def contents(folder):
        return {
            str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }

    return contents
