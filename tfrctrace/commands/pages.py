"""A page for each of many captures and an index of them: a report in tiers, of one capture at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfrctrace.base.errors import InputError
from tfrctrace.commands.options.common import check_output_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.commands.console import Console
    from tfrctrace.reports.page.captures_index import CaptureEntry
    from tfrctrace.trace.trace import Trace


def write_pages(
    traces: Sequence[str], folder: str, opened: Callable[[str], Trace], console: Console, *, title: str | None
) -> None:
    """Write `index.html` and a page for each capture of `traces` into `folder`, made if it is not there.

    `opened` opens one capture, and only one is held at a time. What cannot be read is told in the index.
    Raises `InputError` if nothing can be.
    """
    from tfrctrace.parsers.sources import find_inputs
    from tfrctrace.reports.build_report import build_report
    from tfrctrace.reports.output import make_folder
    from tfrctrace.reports.page.captures_index import INDEX_NAME, CaptureEntry, capture_entry, index_report
    from tfrctrace.reports.page.html import write_page

    inputs = find_inputs(traces)
    console.tell(inputs.problems)
    make_folder(folder)
    entries: list[CaptureEntry] = []
    unread: list[Problem] = []
    used = {INDEX_NAME}
    for name in inputs.names:
        trace = opened(name)
        page = _page_name(trace.name, used)
        path = os.path.join(folder, page)
        check_output_place(path, inputs.names)
        try:
            results = trace.results()
        except InputError as error:
            unread += error.problems
            entries.append(CaptureEntry(name=trace.name, page="", problems=tuple(trace.told(error.problems))))
            continue
        report = build_report(results, title=trace.name, index=INDEX_NAME)
        write_page(path, report)
        entries.append(capture_entry(results, name=trace.name, page=page))
    if not any(entry.page for entry in entries):
        raise InputError(unread or inputs.problems)
    console.tell(unread)
    index = index_report(entries, title=title or f"{len(entries)} captures")
    write_page(os.path.join(folder, INDEX_NAME), index)


def _page_name(name: str, used: set[str]) -> str:
    """Return the name of the page of a capture that no other page has, and remember it."""
    from tfrctrace.parsers.sources import without_suffixes

    stem = without_suffixes(name)
    page = next(page for page in _numbered(stem) if page.lower() not in used)
    # some file systems take A for a
    used.add(page.lower())
    return page


def _numbered(stem: str) -> Iterator[str]:
    """Give the names that a page may have, the plain one first."""
    yield f"{stem}.html"
    number = 2
    while True:
        yield f"{stem}-{number}.html"
        number += 1
