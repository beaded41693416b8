"""The study that the tests share, and records of runs that need no trace."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "data" / "study"


@pytest.fixture
def study_folder(tmp_path):
    """Return a copy of the study with its runs."""
    folder = tmp_path / "study"
    shutil.copytree(STUDY, folder)
    return folder


@pytest.fixture(scope="session")
def perform_study_in(run_in):
    """Return a function that runs `tfrctrace experiment` in a folder, with a cache there."""

    def perform(folder, study, *arguments):
        # other processes start for longer than these small runs take; who wants them says so
        return run_in(folder, "experiment", study, "--cache", folder / "cache", "--jobs", "1", *arguments)

    return perform


@pytest.fixture
def perform_study(perform_study_in, tmp_path):
    """Return a function that runs `tfrctrace experiment` in `tmp_path`, with a cache of its own."""
    return partial(perform_study_in, tmp_path)
