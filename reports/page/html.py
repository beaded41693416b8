"""A report as one HTML file that needs nothing else: no network, no other file, no JavaScript.

Every text is escaped in one place (`_text`). The content security policy allows only the style sheets and
scripts in the file, by their hashes, so that injected code could not run. The data of the scripts is at the
end of the page, after the content.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import partial
from importlib import resources
from itertools import chain
from string import Template
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

from tfrctrace.reports.elements import Name
from tfrctrace.reports.figures.drawing import chart_svg
from tfrctrace.reports.figures.overview_svg import OVERVIEW_PX, overview_svg
from tfrctrace.reports.figures.page_figures import figure_svgs, swatch_svg
from tfrctrace.reports.figures.page_stacks import stacks_svg
from tfrctrace.reports.figures.svg import Place
from tfrctrace.reports.output import open_output
from tfrctrace.reports.page.plot_data import (
    graph_data,
    keyed_tiles,
    library,
    overview_data,
    packed,
    plot_data,
)
from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tfrctrace.reports.elements import (
        Cell,
        Fact,
        Figure,
        FlowDetails,
        Heading,
        Note,
        Overview,
        Report,
        Row,
        Section,
        TableView,
        Term,
        Words,
    )
    from tfrctrace.reports.figures.charts import Chart

_Part = TypeVar("_Part")

_WIDE_PX: Final = 1000
_NARROW_PX: Final = 350
_CURVES_HEIGHT_PX: Final = {_WIDE_PX: 320, _NARROW_PX: 250}
_SPANS_HEIGHT_PX: Final = 60
_SPAN_HEIGHT_PX: Final = 34

_SCRIPTS: Final = ("theme.js", "address.js", "table.js")
_PLOT_SCRIPTS: Final = ("clock.js", "plot.js", "sequence.js", "overview.js", "details.js")
_SAVING: Final = "saving.js"

_FLOWS_IN_BLOCK: Final = 40
"""Flow details per packed block: opening one unpacks its block."""

_TALL_ROWS: Final = 20
"""Rows from which a table scrolls in a box of its own."""

_SEVERITIES: Final = {"error": "Error:", "warning": "Warning:", "info": "Note:"}


_NUMBER_AND_UNIT: Final = re.compile(r"(\d) (?=%|[kMGTPE]?(?:B|bit/s)\b|(?:ms|s|min|h|d)\b)")
"""A number and its unit stay on one line."""


def render(report: Report) -> str:
    """Return `report` as the text of an HTML file; the same report gives the same text."""
    drawn = tuple(_drawn_by_script(report))
    # without plots the library is left out
    library_script, library_style = library() if drawn else ("", "")
    styles = tuple(filter(None, (library_style, _resource("style.css"))))
    scripts = tuple(
        filter(
            None, (library_script, *map(_resource, (*_SCRIPTS, *(_PLOT_SCRIPTS if drawn else ()), _SAVING)))
        )
    )
    blocks = {details.key: _block_key(place) for place, details in enumerate(report.details)}
    return Template(_resource("template.html")).substitute(
        policy=_policy(styles, scripts),
        kind=_text(report.kind),
        title=_text(report.title),
        styles="\n".join(f"<style>{style}</style>" for style in styles),
        links=_to_index(report) + _joined(_link, report.sections),
        sections="\n".join(_section(section, blocks) for section in report.sections),
        footer=_joined(_paragraph, report.footer),
        data="\n".join(_data(key, packed(value)) for key, value in drawn),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
        tiles="\n".join(_tiles(report)),
    )


def write_page(path: str, report: Report) -> None:
    """Write `report` into an HTML file; `-` is standard output."""
    page = render(report)
    with open_output(path) as file:
        file.write(page.encode(errors="backslashreplace"))


def _resource(name: str) -> str:
    return resources.files("tfrctrace.reports.page").joinpath(name).read_text("utf-8")


def _drawn_by_script(report: Report) -> Iterator[tuple[str, object]]:
    """Yield the data of all plots, by the keys of their blocks."""
    for section in report.sections:
        if section.overview:
            yield f"data-{section.overview.key}", overview_data(section.overview)
        for figure in section.figures:
            if figure.graph or figure.curves:
                yield f"data-{figure.key}", _figure_data(figure)
    for place in range(0, len(report.details), _FLOWS_IN_BLOCK):
        together = report.details[place : place + _FLOWS_IN_BLOCK]
        yield _block_key(place), {details.key: _details(details) for details in together}


def _figure_data(figure: Figure) -> dict[str, object]:
    return graph_data(figure, figure.graph) if figure.graph else plot_data(figure)


def _block_key(place: int) -> str:
    """Return the key of the block that has the details at `place`."""
    return f"details-{place // _FLOWS_IN_BLOCK}"


def _details(details: FlowDetails) -> dict[str, object]:
    """Return details as the script `details.js` reads them."""
    return {
        "directions": [plain_text(way) for way in details.directions],
        "known": [
            (known.name, known.meaning, [plain_text(value) for value in known.values])
            for known in details.known
        ],
        "figures": [
            {"key": figure.key, "caption": plain_text(figure.caption), "data": _figure_data(figure)}
            for figure in details.figures
        ],
    }


def _tiles(report: Report) -> Iterator[str]:
    """Yield the tiles of all graphs, the highest levels first: they are drawn while the rest is loaded."""
    of_sections = (section.figures for section in report.sections)
    of_details = (details.figures for details in report.details)
    figures = chain.from_iterable((*of_sections, *of_details))
    graphs = {figure.graph.key: figure.graph for figure in figures if figure.graph is not None}
    for graph in graphs.values():
        for key, tile in reversed(list(keyed_tiles(graph))):
            yield _data(key, tile.tile, "application/x-deflate")


def _data(key: str, content: str, form: str = "application/gzip") -> str:
    """Return compressed data in base64 as a block that browsers neither run nor show."""
    return f'<script type="{form}" id="{_text(key)}">{content}</script>'


def _policy(styles: Iterable[str], scripts: Iterable[str]) -> str:
    """Return a policy that allows only these style sheets and scripts."""
    return (
        f"default-src 'none'; style-src {_hashes(styles)}; script-src {_hashes(scripts)}; "
        # a drawing becomes a PNG by way of an image that the page itself makes
        "img-src blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hashes(contents: Iterable[str]) -> str:
    return " ".join(f"'{_hash(content)}'" for content in contents)


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _text(text: str) -> str:
    """Return `text` escaped for HTML content and for quoted attributes."""
    return html.escape(plain_text(text), quote=True)


def _joined(write: Callable[[_Part], str], parts: Iterable[_Part]) -> str:
    return "".join(write(part) for part in parts)


def _to_index(report: Report) -> str:
    return f'<li><a href="{_address(report.index)}">All captures</a></li>' if report.index else ""


def _address(page: str) -> str:
    """Return the relative URL of a file in the same folder."""
    return _text(f"./{quote(page, errors='surrogateescape')}")


def _link(section: Section) -> str:
    return f'<li><a href="#{section.key}">{_text(section.title)}</a></li>'


def _section(section: Section, blocks: Mapping[str, str]) -> str:
    screen = "" if section.is_printed else ' class="screen"'
    return (
        f'<section id="{section.key}"{screen} aria-labelledby="{section.key}-heading">'
        f'<h2 id="{section.key}-heading">{_text(section.title)}</h2>'
        + _list("div", "headline", _joined(_paragraph, section.headline))
        + _list("dl", "facts", _joined(_fact, section.facts))
        + (_overview(section.overview) if section.overview else "")
        + _joined(_paragraph, section.paragraphs)
        + _list("ul", "findings", _joined(_finding, section.findings))
        + _list("ul", "notes", _joined(_note, section.notes))
        + _joined(_figure, section.figures)
        + _joined(_study_chart, section.charts)
        + "".join(_table(table, blocks) for table in section.tables)
        + _list("dl", "terms", _joined(_term, section.terms))
        + "</section>"
    )


def _list(tag: str, css: str, items: str) -> str:
    return f'<{tag} class="{css}">{items}</{tag}>' if items else ""


def _words(words: Words) -> str:
    return "".join(_name(word) if isinstance(word, Name) else _prose(word) for word in words)


def _prose(text: str) -> str:
    """Return text of the program as HTML; text in backticks is a command."""
    pieces = _NUMBER_AND_UNIT.sub("\\1\u00a0", _text(text)).split("`")
    return "".join(f"<code>{piece}</code>" if odd % 2 else piece for odd, piece in enumerate(pieces))


def _name(name: Name) -> str:
    # isolated, so that a name in a right-to-left script does not turn the sentence around it
    if name.anchor:
        return f'<a href="#{_text(name.anchor)}"><bdi>{_text(name.text)}</bdi></a>'
    return f'<bdi class="name">{_text(name.text)}</bdi>'


def _paragraph(words: Words) -> str:
    return f"<p>{_words(words)}</p>"


def _finding(words: Words) -> str:
    return f"<li>{_words(words)}</li>"


def _fact(fact: Fact) -> str:
    return (
        f'<div class="fact"><dt>{_text(fact.label)}</dt><dd class="value">{_text(fact.value)}</dd>'
        f'<dd class="detail">{_text(fact.detail)}</dd></div>'
    )


def _note(note: Note) -> str:
    detail = f'<p class="detail">{_prose(note.detail)}</p>' if note.detail else ""
    return (
        f'<li class="note {note.severity}"><p><span class="severity">{_SEVERITIES[note.severity]}</span>'
        f"{_words(note.words)}</p>{detail}</li>"
    )


def _term(term: Term) -> str:
    command = f"<code>{_text(term.command)}</code>" if term.command else ""
    return f"<dt>{_text(term.name)}</dt><dd>{_prose(term.words)}{command}</dd>"


def _figure(figure: Figure) -> str:
    spans_px = _SPANS_HEIGHT_PX + _SPAN_HEIGHT_PX * len(figure.spans)
    heights_px = _CURVES_HEIGHT_PX if figure.curves else dict.fromkeys(_CURVES_HEIGHT_PX, spans_px)
    drawn = "".join(figure_svgs(figure, _places(figure.key, heights_px)))
    entries = "".join(
        f"<li>{swatch_svg(part.style)}<bdi>{_text(part.label)}</bdi></li>"
        for part in figure.curves or figure.spans
    )
    is_plot = ' data-plot="graph"' if figure.graph else " data-plot" if figure.curves else ""
    return (
        f'<figure id="{_text(figure.key)}"{is_plot}><h3><bdi>{_text(figure.title)}</bdi></h3>'
        f"{_list('ul', 'legend', entries)}{drawn}{_plot(figure)}"
        f"<figcaption>{_prose(figure.caption)}</figcaption></figure>"
    )


def _overview(overview: Overview) -> str:
    """Return the picture of a link; the script shows values below the pointer."""
    key = _text(overview.key)
    drawn = "".join(
        overview_svg(overview, place) for place in _places(overview.key, {OVERVIEW_PX: 0, _NARROW_PX: 0})
    )
    return (
        f'<figure id="{key}" class="overview"><h3><bdi>{_text(overview.title)}</bdi></h3>'
        f'<div class="drawn" tabindex="0" role="group" aria-labelledby="{key}-wide-title" '
        f'aria-describedby="{key}-wide-desc">{drawn}</div>'
        f"<figcaption>{_prose(overview.caption)}</figcaption></figure>"
    )


def _plot(figure: Figure) -> str:
    """Return the element in which the script draws, with the name and description of the SVG."""
    if not figure.curves:
        return ""
    key = _text(figure.key)
    return (
        f'<div class="plot" tabindex="0" role="group" aria-labelledby="{key}-wide-title" '
        f'aria-describedby="{key}-wide-desc plot-keys"></div>'
    )


def _places(key: str, heights_px: Mapping[int, int]) -> Iterator[Place]:
    """Yield the wide and the narrow drawing of a figure; the style sheet shows the one that fits."""
    for (width_px, height_px), css in zip(heights_px.items(), ("wide", "narrow"), strict=True):
        yield Place(width_px=width_px, height_px=height_px, key=f"{key}-{css}", css=f"chart {css}")


def _study_chart(chart: Chart) -> str:
    draw = stacks_svg if chart.kind == "stacks" else chart_svg
    drawn = _joined(partial(draw, chart), _places(chart.key, _CURVES_HEIGHT_PX))
    return (
        f'<figure id="{_text(chart.key)}"><h3><bdi>{_text(chart.title)}</bdi></h3>'
        f"{drawn}<figcaption>{_prose(chart.caption)}</figcaption></figure>"
    )


def _table(table: TableView, blocks: Mapping[str, str]) -> str:
    """Return a table; `blocks` has the keys of the blocks of details by the keys of rows."""
    marks = " data-sortable" if table.sortable else ""
    if any(row.key in blocks for row in table.rows):
        marks += " data-details"
    key = _text(table.key)
    tall = " tall" if len(table.rows) > _TALL_ROWS and not table.is_whole else ""
    rows = "".join(_row(row, table.headings, blocks.get(row.key, "")) for row in table.rows)
    return (
        f'<div class="scroll{tall}" role="region" aria-labelledby="{key}-caption" tabindex="0">'
        f'<table id="table-{key}"{marks}>'
        f'<caption><span id="{key}-caption">{_prose(table.caption)}</span></caption>'
        f"<thead><tr>{_joined(_heading, table.headings)}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _heading(heading: Heading) -> str:
    css = ' class="number"' if heading.numeric else ""
    meaning = f' title="{_text(heading.meaning)}"' if heading.meaning else ""
    return f'<th scope="col"{css}{meaning}>{_text(heading.label)}</th>'


def _row(row: Row, headings: tuple[Heading, ...], details: str) -> str:
    first, *others = zip(row.cells, headings, strict=True)
    named = f'<th scope="row"{_attributes(*first)}>{_content(*first)}</th>'
    cells = "".join(f"<td{_attributes(*pair)}>{_content(*pair)}</td>" for pair in others)
    opens = f' data-details="{_text(details)}"' if details else ""
    return f'<tr id="{_text(row.key)}"{opens}>{named}{cells}</tr>\n'


def _attributes(cell: Cell, heading: Heading) -> str:
    kinds = {"number": heading.numeric, "prose": heading.is_prose, "ends": heading.are_ends}
    css = next((f' class="{kind}"' for kind, holds in kinds.items() if holds), "")
    return css if cell.sort is None else f'{css} data-sort="{cell.sort:.15g}"'


def _content(cell: Cell, heading: Heading) -> str:
    back = f'<span class="back">{_text(cell.back)}</span>' if cell.back else ""
    # text from a capture may be in a right-to-left script, numbers are ours
    text = _text(cell.text) if heading.numeric else f"<bdi>{_text(cell.text)}</bdi>"
    if cell.page:
        return f'<a href="{_address(cell.page)}">{text}</a>{back}'
    return f'<a href="#{_text(cell.anchor)}">{text}</a>{back}' if cell.anchor else f"{text}{back}"
