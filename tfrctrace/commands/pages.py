"""One page per capture and an index of the pages."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError
from tfrctrace.commands.checked_runs import RecordingConsole
from tfrctrace.commands.options.common import check_output_place
from tfrctrace.commands.run_progress import run_progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.commands.console import Console
    from tfrctrace.commands.options.reading_options import ReadingOptions
    from tfrctrace.parsers.anonymity import Anonymizer
    from tfrctrace.report_data.shared_names import SharedNames
    from tfrctrace.runs.cache import Record, RunInput

_FEW: Final = 8
"""Captures that one process has done before others have started."""


@dataclass(frozen=True, slots=True)
class PageTask:
    """One capture, and the page that is made of it."""

    name: str
    page: str
    folder: str
    reading: ReadingOptions
    anonymizer: Anonymizer | None
    shared: SharedNames
    zone: TimeZone
    limits: str | None
    """File of objectives that are judged."""

    @property
    def source(self) -> RunInput:
        """The capture."""
        from tfrctrace.runs.cache import RunInput

        return RunInput(self.name, (self.name,), {})

    def makes(self, record: Record) -> bool:
        """Return False: pages are not kept."""
        return False

    def measure(self) -> Record:
        """Write the page; the record has its line of the index, and the problems."""
        from tfrctrace.reports.build_report import build_report
        from tfrctrace.reports.page.captures_index import INDEX_NAME, CaptureEntry, capture_entry
        from tfrctrace.reports.page.html import write_page

        own = RecordingConsole(quiet=True, strict=self.reading.strict, is_silent=True)
        trace = self.reading.open([self.name], own, anonymizer=self.anonymizer)
        try:
            judged = () if self.limits is None else trace.objectives(self.limits)
            results = trace.results()
        except InputError as error:
            problems = tuple(map(self.shared.problem, trace.publishable(error.problems)))
            entry = CaptureEntry(name=trace.name, page="", problems=problems)
            return {"failed": True, "problems": error.problems, "entry": entry}
        report = build_report(results, title=trace.name, index=INDEX_NAME, zone=self.zone, objectives=judged)
        write_page(os.path.join(self.folder, self.page), report)
        path = self.shared.name(trace.names[0])
        entry = capture_entry(results, name=trace.name, path=path, page=self.page)
        return {"failed": False, "problems": own.problems, "entry": entry}


def write_pages(
    traces: Sequence[str],
    folder: str,
    reading: ReadingOptions,
    anonymizer: Anonymizer | None,
    console: Console,
    *,
    title: str | None,
    zone: TimeZone,
    jobs: int | None = None,
    executor: str | None = None,
    limits: str | None = None,
) -> None:
    """Write `index.html` and one page per capture to `folder`, creating it if needed.

    Many captures are read side by side, and the objectives of the file `limits` judged in each. The index
    lists those that cannot be read; if none can, this raises `InputError`.
    """
    from tfrctrace.parsers.sources import find_inputs
    from tfrctrace.report_data.shared_names import SharedNames
    from tfrctrace.reports.output import make_folder
    from tfrctrace.reports.page.captures_index import INDEX_NAME, index_report
    from tfrctrace.reports.page.html import write_page
    from tfrctrace.runs.engine import measure_runs
    from tfrctrace.runs.workers import chosen_workers

    inputs = find_inputs(traces, store=reading.store)
    console.print_problems(inputs.problems)
    make_folder(folder)
    shared = SharedNames.of(inputs.names)
    used = {INDEX_NAME}
    tasks: list[PageTask] = []
    for name in inputs.names:
        called = reading.open([name], console, anonymizer=anonymizer).name
        page = _page_name(called, used)
        check_output_place(os.path.join(folder, page), inputs.names)
        tasks.append(PageTask(name, page, os.path.abspath(folder), reading, anonymizer, shared, zone, limits))
    if executor is None and len(tasks) < _FEW:
        jobs = jobs or 1
    workers = chosen_workers(executor, jobs)
    with run_progress(console, "pages") as progress:
        records = measure_runs(tasks, workers=workers, progress=progress).records
    read = [record for record in records if not record["failed"]]
    unread = [problem for record in records if record["failed"] for problem in record["problems"]]
    console.print_problems(problem for record in read for problem in record["problems"])
    if not read:
        raise InputError(unread or inputs.problems)
    console.print_problems(unread)
    entries = [record["entry"] for record in records]
    index = index_report(entries, title=title or f"{len(entries)} captures")
    write_page(os.path.join(folder, INDEX_NAME), index)


def _page_name(name: str, used: set[str]) -> str:
    """Return an unused file name for the page of a capture, and add it to `used`."""
    from tfrctrace.parsers.sources import without_suffixes

    stem = without_suffixes(name)
    page = next(page for page in _numbered(stem) if page.lower() not in used)
    # some file systems ignore case
    used.add(page.lower())
    return page


def _numbered(stem: str) -> Iterator[str]:
    """Yield candidate file names: without a number, then numbered from 2."""
    yield f"{stem}.html"
    number = 2
    while True:
        yield f"{stem}-{number}.html"
        number += 1
