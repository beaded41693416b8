"""The study that the tests share, and records of runs that need no trace."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "data" / "study"


@pytest.fixture
def study_folder(tmp_path):
    """Return a copy of the study with its runs."""
    folder = tmp_path / "study"
    shutil.copytree(STUDY, folder)
    return folder


@pytest.fixture
def perform_study(run, tmp_path):
    """Return a function that runs `tfrctrace experiment` with a cache of its own."""

    def perform(study, *arguments, **more):
        # other processes start for longer than these small runs take; who wants them says so
        return run("experiment", study, "--cache", tmp_path / "cache", "--jobs", "1", *arguments, **more)

    return perform
