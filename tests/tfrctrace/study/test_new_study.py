"""`tfrctrace experiment init`: a study file for runs whose names tell their parameters."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tfrctrace.study.file.new_study import new_study
from tfrctrace.study.file.study_file import read_study
from tfrctrace.study.find_runs import find_runs

RUNS = Path(__file__).parents[2] / "data" / "study" / "runs"


@pytest.mark.parametrize(
    ("names", "pattern", "parameters"),
    [
        (
            ["red-n2-1.tr.xz", "red-n2-2.tr.xz", "fifo-n2-1.tr.xz", "fifo-n4-1.tr.xz"],
            "{part}-n{n}-{run}.tr.xz",
            [("fifo", 2, 1), ("fifo", 4, 1), ("red", 2, 1), ("red", 2, 2)],
        ),
        (
            ["cubic/run1.tr", "cubic/run2.tr", "reno/run1.tr"],
            "{folder}/run{run}.tr",
            [("cubic", 1), ("cubic", 2), ("reno", 1)],
        ),
        # the last number is a parameter where nothing else is the same
        (["a_5.5_x1.tr", "b_11_x2.tr"], "{part}_{part2}_x{x}.tr", [("a", 5.5, 1), ("b", 11.0, 2)]),
        (["once.tr"], None, [()]),
    ],
)
def test_names_tell_the_parameters(tmp_path, names, pattern, parameters):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("+ 1 0 1 tcp 40 ------- 1 0.0 1.0 0 0\n")
    (tmp_path / "notes.md").write_text("no trace")
    study = tmp_path / "study.toml"
    study.write_text(new_study(str(tmp_path)))
    read = read_study(str(study))
    assert read.runs.rules[0].pattern == pattern
    runs, problems = find_runs(read)
    assert problems == []
    assert [tuple(run.parameters.values()) for run in runs] == parameters


def test_names_of_several_kinds_have_a_pattern_each(tmp_path):
    for name in ("a-1.tr", "a-2.tr", "b-1-x.tr", "c-2-y.tr", "{d}.tr", "[e]-3.tr"):
        (tmp_path / name).write_text("+ 1 0 1 tcp 40 ------- 1 0.0 1.0 0 0\n")
    with pytest.raises(ValueError, match="has a brace"):
        new_study(str(tmp_path))
    (tmp_path / "{d}.tr").unlink()
    (tmp_path / "study.toml").write_text(new_study(str(tmp_path)))
    runs, _ = find_runs(read_study(str(tmp_path / "study.toml")))
    assert {run.name: tuple(filter(None, run.parameters.values())) for run in runs} == {
        "[e]-3.tr": ("[e]", 3), "a-1.tr": ("a", 1), "a-2.tr": ("a", 2),
        "b-1-x.tr": ("b", 1, "x"), "c-2-y.tr": ("c", 2, "y"),
    }  # fmt: skip


def test_it_writes_a_study_that_runs(run_in, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("red-n2-1", "red-n2-2", "droptail-n2-1", "droptail-n2-2"):
        shutil.copy(RUNS / f"{name}.tr.xz", folder)
    done = run_in(tmp_path, "experiment", "init", "runs")
    assert (done.status, done.err) == (
        0,
        "study written to `runs/study.toml`; `tfrctrace experiment runs/study.toml` runs it\n",
    )
    arguments = ("--cache", "none", "--jobs", "1", "--format", "csv", "--format", "json")
    assert run_in(tmp_path, "experiment", "runs/study.toml", "-o", "out", *arguments).status == 0
    assert json.loads((tmp_path / "out" / "study.json").read_text())["runs"] == 4
    again = run_in(tmp_path, "experiment", "init", "runs")
    assert (again.status, "`runs/study.toml` exists" in again.err) == (2, True)


@pytest.mark.parametrize("arguments", [["init"], ["study.toml", "."]])
def test_init_and_a_folder_belong_together(run_in, tmp_path, arguments):
    done = run_in(tmp_path, "experiment", *arguments)
    assert (done.status, "`init` and a folder belong together" in done.err) == (2, True)
