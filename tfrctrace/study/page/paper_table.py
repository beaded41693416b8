"""The figures and tables of a paper beside what a study found: for the page, Markdown and the terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.elements import Cell, Heading, Row, Section, TableView
from tfrctrace.reports.printers.means_table import text_markdown
from tfrctrace.study.results.paper_rows import OWN, finding_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.study.definition import Study
    from tfrctrace.study.results.paper_rows import PaperRow

_HEADS: Final = ("In the paper", "Shows", "Claim", "Paper", "Ours", "Verdict", "Reason")
_WIDTH: Final = 100
"""Characters of a line on the terminal."""


def paper_section(study: Study, rows: Sequence[PaperRow]) -> Section:
    """Return the section of a page with a row for each figure, table and claim of the paper."""
    heads = tuple(
        Heading(label, numeric=False, is_prose=label != "Verdict")
        for label in ("Figure", "Claim", "Verdict", "Ours, printed values, reasons")
    )
    named: set[str] = set()
    shown = []
    for number, row in enumerate(rows, start=1):
        # what a figure shows is at its first row
        about = "" if row.figure in named else ". ".join(filter(None, (row.shows, row.setting)))
        named.add(row.figure)
        notes = (row.paper and f"Paper: {row.paper}", row.reason and f"Reason: {row.reason}")
        cells = (
            Cell(row.figure, back=about),
            Cell(row.claim, back=row.says),
            Cell(finding_text(row), back=row.stated if row.stated in {"", OWN} else f"paper: {row.stated}"),
            Cell(row.ours, back=". ".join(filter(None, notes))),
        )
        shown.append(Row(f"paper-{number}", cells))
    caption = (
        f"A verdict is by a test over repeated runs, at {study.confidence:.0%} confidence or more; "
        "one run cannot tell."
    )
    table = TableView("paper-table", caption, heads, tuple(shown), is_whole=True)
    return Section("paper", "Figures and tables of the paper", tables=(table,))


def _paper(row: PaperRow) -> str:
    """Return what the paper prints, or states of a claim."""
    return "; ".join(filter(None, (row.paper, row.stated)))


def paper_markdown(study: Study, rows: Sequence[PaperRow]) -> str:
    """Return the same as a table of GitHub's Markdown."""
    lines = (
        (
            row.figure,
            f"{row.shows} ({row.setting})" if row.setting else row.shows,
            row.claim,
            _paper(row),
            row.ours,
            finding_text(row),
            row.reason,
        )
        for row in rows
    )
    return text_markdown(study.paper or study.title, _HEADS, lines)


def paper_lines(rows: Sequence[PaperRow]) -> Iterator[str]:
    """Give the lines of a terminal: each figure once, and below it its values and claims."""
    figure = ""
    for row in rows:
        if row.figure != figure:
            figure = row.figure
            yield from _wrapped(f"{figure}: {row.shows}", "")
        if row.stated:
            yield from _wrapped(f"{finding_text(row)}: {row.claim} (paper: {row.stated})", "  ")
        else:
            yield from _wrapped(f"{row.verdict}: {row.claim}" if row.claim else row.verdict, "  ")
        parts = (("ours", row.ours), ("paper", row.paper), ("reason", row.reason))
        for name, text in parts:
            if text:
                yield from _wrapped(f"{name}: {text}", "    ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )
