"""A full disk and a folder that cannot be written to: a sentence, and what was there stays as it was."""

from __future__ import annotations

import pytest

WRONG_USAGE = 2

SUFFIXES = ("arrow", "csv", "html", "json", "parquet", "pdf", "xml")

WRITES = {
    "flows": ["flows", "TRACE", "-o", "out/a.json", "--format", "json"],
    "csv": ["convert", "TRACE", "-o", "out/a.csv"],
    "parquet": ["convert", "TRACE", "-o", "out/a.parquet"],
    "arrow": ["convert", "TRACE", "--what", "bins", "-o", "out/a.arrow"],
    "metrics": ["metrics", "TRACE", "-o", "out/a.json", "--format", "json"],
    "page": ["report", "TRACE", "-o", "out/a.html"],
    "pages": ["report", "TRACE", "--pages", "out"],
    "results": ["report", "TRACE", "-o", "page.html", "--results", "out"],
    "metrics as parquet": ["metrics", "TRACE", "-o", "out/a.parquet", "--format", "parquet"],
    "replay as parquet": ["replay", "TRACE", "-o", "out/a.parquet", "--format", "parquet"],
    "figure": ["plot", "TRACE", "--kind", "rtt", "-o", "out/a.pdf"],
    "replay": ["replay", "TRACE", "-o", "out/a.csv"],
    "junit": ["check", "TRACE", "-r", "packets > 0", "--junit", "out/a.xml"],
    "baseline": ["check", "TRACE", "-r", "packets > 0", "--write-baseline", "out/a.json"],
    "study": ["experiment", "small.toml", "-o", "out", "--jobs", "1"],
    "batch": ["batch", "TRACE", "-o", "out", "--jobs", "1", "--quiet"],
}


@pytest.fixture
def write(run, two_flows, small_study, tmp_path):
    """Return a function that runs one of `WRITES` with its output in `folder`."""

    def perform(name, folder):
        (tmp_path / "out").symlink_to(folder, target_is_directory=True)
        arguments = [str(two_flows) if word == "TRACE" else word for word in WRITES[name]]
        more = ["--cache", str(tmp_path / "cache")] if name in {"study", "junit", "baseline"} else []
        return run(*arguments, *more)

    return perform


@pytest.mark.parametrize("name", WRITES)
def test_a_file_beyond_its_quota_is_not_left_half_written(write, name, tmp_path, largest_file, files_in):
    folder = tmp_path / "written"
    folder.mkdir()
    # of `pages` the first page, of `results` the first table, of the study its page
    for before in ("two-flows.html", "flows.parquet", "report.html", *(f"a.{one}" for one in SUFFIXES)):
        (folder / before).write_text("of before")
    there = files_in(folder)
    # the standard streams are files here, and the name of a result of `batch` is long
    with largest_file(1_000 if name == "batch" else 150):
        outcome = write(name, folder)
    assert outcome.status == WRONG_USAGE
    assert "error: cannot write `" in outcome.err
    assert "`: file too large" in outcome.err
    left = files_in(folder)
    assert {path: left[path] for path in there} == there
    assert not [path for path in left if ".part" in path]


@pytest.mark.parametrize("name", ["csv", "results", "pages", "study", "batch"])
def test_a_full_disk_is_named_and_nothing_is_half_written(write, name, small_disk, files_in):
    folder = small_disk(8192)
    outcome = write(name, folder)
    assert outcome.status == WRONG_USAGE
    assert "error: cannot write `" in outcome.err
    assert "`: no space left on device" in outcome.err
    assert not [path for path in files_in(folder) if ".part" in path]


def test_a_disk_that_is_full_for_a_worker_ends_the_batch(run, write_capture, conversation, small_disk):
    for number in range(3):
        write_capture(f"farm/run-{number}.pcap", conversation(port=4_000 + number), start_s=number * 10_000)
    outcome = run("batch", "farm", "-o", small_disk(8192), "--jobs", "2")
    assert outcome.status == WRONG_USAGE
    assert outcome.err.endswith("`: no space left on device\n")


def test_results_of_before_stay_whole_on_a_full_disk(run, two_flows, write_capture, conversation, small_disk):
    capture = write_capture("a.pcap", conversation())
    folder = small_disk("200k")
    assert run("report", capture, "-o", "first.html", "--results", folder).status == 0
    assert run("report", two_flows, "-o", "second.html", "--results", folder).status == WRONG_USAGE
    assert run("report", "--from", folder, "-o", "again.html").status == 0


@pytest.mark.parametrize("name", ["csv", "page", "pages", "study", "baseline", "batch"])
def test_a_read_only_folder_is_refused_before_anything_is_read(write, name, small_disk, monkeypatch):
    folder = small_disk(8192, "ro")

    def read(*_, **__):
        raise AssertionError("a trace was opened")

    monkeypatch.setattr("tfrctrace.opening.open", read)
    monkeypatch.setattr("tfrctrace.study.run_record.record_run", read)
    outcome = write(name, folder)
    assert outcome.status == WRONG_USAGE
    assert outcome.err.startswith("error: cannot write `out")
    assert outcome.err.endswith("`: read-only file system\n")
