"""The formats of a report: an HTML page, or Markdown with figures beside it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfrctrace.reports.files.markdown import SUFFIXES, write_markdown
from tfrctrace.reports.page.html import write_page

if TYPE_CHECKING:
    from tfrctrace.reports.elements import Report


def write_report(path: str, report: Report) -> None:
    """Write `report` in the format of the file's suffix, by default as a page."""
    write = write_markdown if os.path.splitext(path)[1].lower() in SUFFIXES else write_page
    write(path, report)
