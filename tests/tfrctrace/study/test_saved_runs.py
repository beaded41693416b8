"""Runs of a study that are saved, and the results that are made of them without a trace."""

from __future__ import annotations

import csv
import json
import lzma
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "data" / "study"


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory, perform_study_in):
    """Return a folder with the study, and its results in `one`."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "study.toml").write_text((STUDY / "study.toml").read_text())
    done = perform_study_in(folder, folder / "study.toml", "--runs", STUDY, "-o", "one")
    assert done.status == 0
    return folder


def test_results_of_saved_runs_are_those_of_the_traces(saved, perform_study_in):
    done = perform_study_in(saved, "study.toml", "--from", "one/runs.json.xz", "-o", "two")
    assert (done.status, done.err) == (0, "12 runs, saved in `one/runs.json.xz`; results in `two`\n")
    assert contents(saved / "two") == contents(saved / "one")


def test_the_data_file_of_a_figure_has_what_it_draws(saved):
    def rows(name):
        with (saved / "one" / name).open() as file:
            return list(csv.DictReader(file))

    summary = {
        (row["group"], row["queue"]): [float(row[name]) for name in ("mean", "low", "high")]
        for row in rows("summary.csv")
        if (row["quantity"], row["flows"]) == ("rate", "2")
    }
    assert {
        (row["series"], row["x"]): [float(row[name]) for name in ("value", "low", "high")]
        for row in rows("figures/rates.csv")
    } == {place: pytest.approx(numbers) for place, numbers in summary.items()}
    assert {row["series"] for row in rows("figures/over-time.csv")} == {"sack", "tfrc"}


def test_values_of_the_study_are_those_of_the_measurement(saved, perform_study_in):
    text = (saved / "study.toml").read_text().replace('title = "', 'title = "of ${length}: ', 1)
    (saved / "small.toml").write_text(f'{text}\n[values]\nlength = "2 s"\n')
    document = json.loads(lzma.decompress((saved / "one" / "runs.json.xz").read_bytes()))
    document["settings"] = {"length": "120 s", "unknown": "1"}
    (saved / "full.json.xz").write_bytes(lzma.compress(json.dumps(document).encode()))
    done = perform_study_in(saved, "small.toml", "--from", "full.json.xz", "-o", "three", "--format", "json")
    assert done.status == 0, done.err
    assert json.loads((saved / "three" / "study.json").read_text())["title"].startswith("of 120 s: ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document.update(saved_version=2), "cannot be read as saved runs"),
        (lambda document: document.update(runs=[]), "has 0 runs"),
        (lambda document: document["runs"][0].update(parameters={"queue": 1}), "is of another study"),
        (lambda document: document["runs"][0].update(more=1), "cannot be read as saved runs"),
        (lambda document: [run.update(values=[]) for run in document["runs"]], "has no values of `rate`"),
        (lambda document: document["runs"][0]["values"][0].update(value="1"), "cannot be read as saved runs"),
        (lambda document: document["runs"][0]["values"][0].update(value=1e300), "Expected `float` <= 1e+60"),
        (
            lambda document: document["runs"][0]["values"][0].update(flow=2**70),
            "cannot be read as saved runs",
        ),
        (lambda document: document["runs"][0]["values"][0].update(made_of=2**70), "cannot be read as saved"),
        (lambda document: document["runs"][0]["parameters"].update(queue=2**70), "cannot be read as saved"),
        (lambda document: document["runs"].append(document["runs"][0]), "more than once"),
    ],
)
def test_other_files_are_refused(saved, perform_study_in, change, message):
    document = json.loads(lzma.decompress((saved / "one" / "runs.json.xz").read_bytes()))
    change(document)
    (saved / "bad.json.xz").write_bytes(lzma.compress(json.dumps(document).encode()))
    done = perform_study_in(saved, "study.toml", "--from", "bad.json.xz", "-o", "four")
    assert done.status == 3
    assert message in done.err


@pytest.mark.parametrize("content", [b"", b"{}", lzma.compress(b"[" * 100_000), lzma.compress(b"{}")[:-4]])
def test_what_is_no_saved_study_is_told(saved, perform_study_in, content):
    (saved / "bad.json.xz").write_bytes(content)
    done = perform_study_in(saved, "study.toml", "--from", "bad.json.xz", "-o", "four")
    assert (done.status, "cannot be read as saved runs" in done.err) == (3, True)


def test_options_of_traces_are_refused(saved, perform_study_in):
    done = perform_study_in(saved, "study.toml", "--from", "one/runs.json.xz", "--runs", ".")
    assert (done.status, "`--runs` is for runs" in done.err) == (2, True)
    done = perform_study_in(saved, "study.toml", "--from", "one/runs.json.xz", "--pages")
    assert (done.status, "`--pages` is for runs" in done.err) == (2, True)
    done = perform_study_in(saved, "study.toml", "--format", "csv", "--pages")
    assert (done.status, "`--pages` needs the page" in done.err) == (2, True)
