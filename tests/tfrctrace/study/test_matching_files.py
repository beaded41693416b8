"""Patterns of files: each file once, at a cost that does not grow with the number of stars."""

from __future__ import annotations

import glob
import os

import pytest

from tfrctrace.study.matching_files import matching_files


@pytest.fixture
def tree(tmp_path):
    for depth in range(8):
        folder = tmp_path.joinpath(*["d"] * depth, "runs")
        folder.mkdir(parents=True)
        for name in ("run2.tr", "run10.tr", "notes"):
            (folder / name).touch()
    return str(tmp_path)


@pytest.mark.parametrize(
    "pattern",
    ["**/*.tr", "**/**/*.tr", f"{'**/' * 9}*.tr", "d/**/**/runs/*.tr", "**/*/**/*.tr", "runs/*.tr", "**"],
)
def test_each_file_that_fits_is_found_once_in_natural_order(tree, pattern):
    found = matching_files(pattern, tree)
    assert len(found) == len(set(found))
    assert set(found) == set(glob.glob(pattern, root_dir=tree, recursive=True))
    runs = [name for name in found if os.path.dirname(name) == "runs" and name.endswith(".tr")]
    assert runs in ([], ["runs/run2.tr", "runs/run10.tr"])


def test_stars_in_a_row_are_read_as_one(tree, monkeypatch):
    asked = []
    monkeypatch.setattr(glob, "glob", lambda pattern, **_: asked.append(pattern) or [])
    for pattern in ("**/**/**/a**/b", "x/**/**/y/**/**/z", "a**/**/b", "**/a/**/b"):
        matching_files(pattern, tree)
    assert asked == ["**/a**/b", "x/**/y/**/z", "a**/**/b", "**/a/**/b"]
