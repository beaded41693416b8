"""A report of each run of a study, to which the study's page links."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import TfrctraceError
from tfrctrace.runs.cache import RunInput
from tfrctrace.runs.engine import failed_record, measure_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.runs.cache import Record
    from tfrctrace.runs.engine import Progress
    from tfrctrace.runs.workers import Workers
    from tfrctrace.study.definition import MeasuringPlan, Study
    from tfrctrace.study.find_runs import Run

FOLDER: Final = "runs"
_INDEX: Final = "../report.html"


@dataclass(frozen=True, slots=True)
class RunPageTask:
    """One run, and the page that is made of it."""

    run: Run
    measuring: MeasuringPlan
    path: str

    @property
    def source(self) -> RunInput:
        """The file of the run."""
        return RunInput(self.run.name, (self.run.path,), {})

    def makes(self, record: Record) -> bool:
        """Return False: pages are not kept."""
        return False

    def measure(self) -> Record:
        """Write the page; the measurement of the study has told the problems of the run."""
        import tfrctrace
        from tfrctrace.reports.build_report import build_report
        from tfrctrace.reports.page.html import write_page

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                results = tfrctrace.open(self.run.path, **self.measuring.reading).results()
            except TfrctraceError as error:
                return failed_record(self.run.name, str(error))
            write_page(self.path, build_report(results, title=self.run.name, index=_INDEX))
        return {"failed": False, "problems": []}


def write_run_pages(
    study: Study, runs: Sequence[Run], folder: str, *, workers: Workers, progress: Progress | None = None
) -> tuple[dict[str, str], list[Problem]]:
    """Write the report of each run below `folder`.

    Return their paths from there by the name of the run, and why others have none.
    """
    from tfrctrace.reports.output import make_folder

    make_folder(os.path.join(folder, FOLDER))
    # numbers, as names of runs may be longer than a file's, or differ in what a file system ignores
    pages = {run.name: f"{FOLDER}/{number}.html" for number, run in enumerate(runs, start=1)}
    tasks = [
        RunPageTask(run, run.measure or study.measure, os.path.abspath(os.path.join(folder, pages[run.name])))
        for run in runs
    ]
    records = measure_runs(tasks, workers=workers, progress=progress).records
    written = {
        run.name: pages[run.name] for run, record in zip(runs, records, strict=True) if not record["failed"]
    }
    return written, [problem for record in records for problem in record["problems"]]
