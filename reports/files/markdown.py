"""A report as Markdown with a folder of figures beside it: for wikis, issues and reviews, which show no HTML.

Text of a capture goes through `markdown_text`, or into a code span, where nothing has a meaning.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from tfrctrace.reports.elements import Name
from tfrctrace.reports.figures.overview_svg import overview_file
from tfrctrace.reports.figures.publication import chart_file, figure_file
from tfrctrace.reports.output import make_folder, open_output, open_text_output
from tfrctrace.reports.safe_text import markdown_text, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tfrctrace.reports.elements import (
        Cell,
        Fact,
        Figure,
        Note,
        Report,
        Row,
        Section,
        TableView,
        Term,
        Words,
    )
    from tfrctrace.reports.figures.charts import Chart

SUFFIXES: Final = frozenset({".md", ".markdown"})

_SEVERITIES: Final = {"error": "Error", "warning": "Warning", "info": "Note"}


def write_markdown(path: str, report: Report) -> None:
    """Write `report` into a Markdown file, its figures as SVG into the folder `NAME-figures` beside it."""
    folder = f"{os.path.splitext(path)[0]}-figures"
    places: dict[str, str] = {}
    for key, content in _drawings(report):
        make_folder(folder)
        with open_output(os.path.join(folder, f"{key}.svg")) as file:
            file.write(content)
        places[key] = f"{os.path.basename(folder)}/{key}.svg"
    with open_text_output(path) as text:
        text.write(markdown(report, places))


def markdown(report: Report, places: Mapping[str, str]) -> str:
    """Return `report` as Markdown; `places` are the relative paths of its figures, by keys."""
    parts = [f"# {markdown_text(report.title)}"]
    for section in report.sections:
        parts += _section(section, places)
    return "\n\n".join(parts) + "\n"


def _drawings(report: Report) -> Iterator[tuple[str, bytes]]:
    """Give the figures by their keys, as files that need no style sheet."""
    for section in report.sections:
        if section.overview:
            yield section.overview.key, overview_file(section.overview)
        for figure in section.figures:
            yield figure.key, figure_file(figure, "svg", style="plain", width="double")
        for chart in section.charts:
            yield chart.key, chart_file(chart, "svg")


def _section(section: Section, places: Mapping[str, str]) -> Iterator[str]:
    """Give the blocks of a section."""
    drawn: tuple[Figure | Chart, ...] = (*section.figures, *section.charts)
    overviews = [one for one in (section.overview,) if one and one.key in places]
    # they may be all that it has
    shown = [one for one in drawn if one.key in places]
    blocks = [
        *map(_words, section.headline),
        *_facts(section.facts),
        *(_figure(overview.title, overview.caption, places[overview.key]) for overview in overviews),
        *map(_words, section.paragraphs),
        *_listed(map(_words, section.findings)),
        *map(_note, section.notes),
        *(_figure(one.title, one.caption, places[one.key]) for one in shown),
        *(block for table in section.tables for block in _table(table)),
        *_listed(map(_term, section.terms)),
    ]
    if blocks:
        yield f"## {markdown_text(section.title)}"
        yield from blocks


def _term(term: Term) -> str:
    command = _name(term.command) if term.command else ""
    return f"**{markdown_text(term.name)}**: {_prose(term.words)}{command}"


def _words(words: Words) -> str:
    return "".join(_name(word.text) if isinstance(word, Name) else _prose(word) for word in words)


def _name(name: str) -> str:
    """Return a name as code, in which nothing has a meaning but its end."""
    shown = plain_text(name)
    return markdown_text(name) if not shown.strip() or "`" in shown else f"`{shown}`"


def _prose(text: str) -> str:
    """Return our own words; what stands between backticks is a command."""
    pieces = text.split("`")
    return "".join(
        (_name(piece) if piece else "") if odd % 2 else markdown_text(piece)
        for odd, piece in enumerate(pieces)
    )


def _listed(items: Iterable[str]) -> Iterator[str]:
    lines = "\n".join(f"- {item}" for item in items)
    if lines:
        yield lines


def _facts(facts: tuple[Fact, ...]) -> Iterator[str]:
    if facts:
        rows = [(fact.label, fact.value, fact.detail) for fact in facts]
        yield _grid(("", "", ""), (":--", "--:", ":--"), [map(markdown_text, row) for row in rows])


def _note(note: Note) -> str:
    detail = f"\\\n> {_prose(note.detail)}" if note.detail else ""
    return f"> **{_SEVERITIES[note.severity]}:** {_words(note.words)}{detail}"


def _figure(title: str, caption: str, place: str) -> str:
    image = f"![{markdown_text(title)}]({quote(place, errors='surrogateescape')})"
    return f"**{markdown_text(title)}**\n\n{image}\n\n{_prose(caption)}"


def _table(table: TableView) -> Iterator[str]:
    yield _prose(table.caption)
    yield _grid(
        [markdown_text(heading.label) for heading in table.headings],
        ["--:" if heading.numeric else ":--" for heading in table.headings],
        map(_cells, table.rows),
    )


def _cells(row: Row) -> Iterator[str]:
    return map(_cell, row.cells)


def _cell(cell: Cell) -> str:
    text = markdown_text(cell.text)
    if cell.page:
        text = f"[{text}]({quote(f'./{cell.page}', errors='surrogateescape')})"
    return f"{text}<br>{markdown_text(cell.back)}" if cell.back else text


def _grid(heads: Iterable[str], rules: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows))
