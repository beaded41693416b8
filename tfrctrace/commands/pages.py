"""One page per capture and an index of the pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfrctrace.base.errors import InputError
from tfrctrace.commands.options.common import check_output_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.commands.console import Console
    from tfrctrace.reports.page.captures_index import CaptureEntry
    from tfrctrace.trace.trace import Trace


def write_pages(
    traces: Sequence[str],
    folder: str,
    open_capture: Callable[[str], Trace],
    console: Console,
    *,
    title: str | None,
    zone: TimeZone,
) -> None:
    """Write `index.html` and one page per capture to `folder`, creating it if needed.

    Captures are opened one at a time. The index lists those that cannot be read; if none can, this raises
    `InputError`.
    """
    from tfrctrace.parsers.sources import find_inputs
    from tfrctrace.reports.build_report import build_report
    from tfrctrace.reports.output import make_folder
    from tfrctrace.reports.page.captures_index import INDEX_NAME, CaptureEntry, capture_entry, index_report
    from tfrctrace.reports.page.html import write_page
    from tfrctrace.trace.shared_names import SharedNames

    inputs = find_inputs(traces)
    console.print_problems(inputs.problems)
    make_folder(folder)
    shared = SharedNames.of(inputs.names)
    entries: list[CaptureEntry] = []
    unread: list[Problem] = []
    used = {INDEX_NAME}
    for name in inputs.names:
        trace = open_capture(name)
        page = _page_name(trace.name, used)
        path = os.path.join(folder, page)
        check_output_place(path, inputs.names)
        try:
            results = trace.results()
        except InputError as error:
            unread += error.problems
            problems = tuple(map(shared.problem, trace.publishable(error.problems)))
            entries.append(CaptureEntry(name=trace.name, page="", problems=problems))
            continue
        report = build_report(results, title=trace.name, index=INDEX_NAME, zone=zone)
        write_page(path, report)
        path = shared.name(trace.names[0])
        entries.append(capture_entry(results, name=trace.name, path=path, page=page))
    if not any(entry.page for entry in entries):
        raise InputError(unread or inputs.problems)
    console.print_problems(unread)
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
