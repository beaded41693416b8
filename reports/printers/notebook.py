"""A trace in a notebook: a small piece of HTML that needs no style sheet and no script of a page.

Many such pieces stand in one document, so that nothing in them has a name (`id`) of its own. Colours are
those of a report's page; text and rules take theirs from the notebook, which may be light or dark.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.elements import Name
from tfrctrace.reports.safe_text import plain_text
from tfrctrace.reports.units import counted

if TYPE_CHECKING:
    from tfrctrace.reports.elements import Cell, Heading, Note, Row, TableView, Words
    from tfrctrace.reports.report_input import ReportInput

MOST_ROWS: Final = 20
"""Flows that are shown; `Trace.flows` has all of them."""

_MOST_NOTES: Final = 5

_COLOURS: Final = {"error": "#a51d24", "warning": "#8a5300", "info": "#00598c"}
"""Edges of notes, as in `style.css`."""

_STYLE: Final = """\
.tfrctrace p, .tfrctrace ul { margin: 0.3em 0; max-width: 60em }
.tfrctrace table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.6em 0 }
.tfrctrace th, .tfrctrace td { padding: 0.2em 0.6em; text-align: left; vertical-align: top }
.tfrctrace td { white-space: nowrap }
.tfrctrace .wide { overflow-x: auto }
.tfrctrace .number { text-align: right }
.tfrctrace small { display: block; opacity: 0.7 }
.tfrctrace .note { border-left: 3px solid; padding-left: 0.6em }
"""


def overview(results: ReportInput, *, title: str) -> str:
    """Return the summary of a report on `results`, its caveats and its largest flows as HTML."""
    report = build_report(results, title=title)
    sections = {section.key: section for section in report.sections}
    summary, caveats, flows = (sections.get(key) for key in ("summary", "caveats", "flows"))
    parts = [f"<p><strong><bdi>{_text(report.title)}</bdi></strong></p>"]
    if summary:
        parts += [f"<p>{_words(words)}</p>" for words in summary.paragraphs]
        parts += _listed([_words(words) for words in summary.findings])
    if caveats:
        parts += [_note(note) for note in caveats.notes[:_MOST_NOTES]]
        parts += _rest(len(caveats.notes) - _MOST_NOTES, "more caveat", "has them")
    for table in flows.tables if flows else ():
        parts.append(_table(table))
        parts += _rest(len(table.rows) - MOST_ROWS, "smaller flow", "has all of them")
    return f'<div class="tfrctrace"><style>{_STYLE}</style>{"".join(parts)}</div>'


def _rest(number: int, noun: str, where: str) -> list[str]:
    """Return the line about flows that are not shown."""
    return [f"<p>and {counted(number, noun)}: the report {where}.</p>"] if number > 0 else []


def _listed(items: list[str]) -> list[str]:
    return [f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"] if items else []


def _note(note: Note) -> str:
    detail = f"<small>{_text(note.detail)}</small>" if note.detail else ""
    colour = _COLOURS[note.severity]
    return f'<p class="note" style="border-color: {colour}">{_words(note.words)}{detail}</p>'


def _table(table: TableView) -> str:
    headings = "".join(
        f"<th{_css(heading)}{_title(heading)}>{_text(heading.label)}</th>" for heading in table.headings
    )
    rows = "".join(_row(row, table.headings) for row in table.rows[:MOST_ROWS])
    table_rows = f"<thead><tr>{headings}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="wide"><table>{table_rows}</table></div>'


def _row(row: Row, headings: tuple[Heading, ...]) -> str:
    cells = (
        f"<td{_css(heading)}>{_cell(cell)}</td>" for cell, heading in zip(row.cells, headings, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _cell(cell: Cell) -> str:
    back = f"<small>{_text(cell.back)}</small>" if cell.back else ""
    return f"<bdi>{_text(cell.text)}</bdi>{back}"


def _css(heading: Heading) -> str:
    return ' class="number"' if heading.numeric else ""


def _title(heading: Heading) -> str:
    return f' title="{_text(heading.meaning)}"' if heading.meaning else ""


def _words(words: Words) -> str:
    return "".join(
        f"<code><bdi>{_text(word.text)}</bdi></code>" if isinstance(word, Name) else _text(word)
        for word in words
    )


def _text(text: str) -> str:
    return html.escape(plain_text(text), quote=True)
