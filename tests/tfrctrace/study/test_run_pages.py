"""Reports of the runs of a study."""

from __future__ import annotations

from pathlib import Path

from tfrctrace.runs.workers import threads
from tfrctrace.study.file.study_file import read_study
from tfrctrace.study.find_runs import Run
from tfrctrace.study.run_pages import write_run_pages

SAMPLES = Path(__file__).parents[3] / "sample_traces"


def test_a_run_without_a_page_is_told_with_the_reason(tmp_path):
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(b"no capture")
    study = read_study(str(SAMPLES / "studies" / "lillis" / "study.toml"))
    traces = {"bad": damaged, "good": SAMPLES / "mixed.pcap.zst"}
    runs = [Run(str(path), name, {}) for name, path in traces.items()]
    written, problems = write_run_pages(study, runs, str(tmp_path), workers=threads(1))
    assert written == {"good": "runs/2.html"}
    assert (tmp_path / "runs/2.html").stat().st_size > 0
    [problem] = problems
    assert (problem["source"], problem["kind"]) == ("bad", "run")
