"""Tables of means with intervals: Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.parsers.csv_text import csv_cell
from tfrctrace.reports.elements import Cell, Heading, Row, TableView
from tfrctrace.reports.safe_text import markdown_text, plain_text
from tfrctrace.reports.units import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_PREFIXED: Final = frozenset({"bit/s", "bytes"})
_LARGEST: Final = 1e15
"""Of the values without an exponent."""

_LATEX_ROWS: Final = 40
"""Rows that fit a page of `article` in 10 pt beside a caption: 43 lines of 12 pt, and a caption of three."""
_LATEX_LINE: Final = 70
"""Characters in its line of 345 pt: those of Computer Modern, digits and letters, are 5 pt wide."""
_LATEX_GAP: Final = 2
"""Characters between two columns: twice 6 pt."""
_DIGITS: Final = 4
"""Significant digits of a value without an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean of `runs` values with its interval, and a reported value; None where unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None
    runs: int = 0
    reference: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A quantity (of one group): its heading and the unit of its values."""

    label: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table: each row has a text for each of `axes`, and an estimate for each column."""

    name: str
    title: str
    axes: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Estimate, ...]], ...]


def markdown(grid: Grid) -> str:
    """Return a table of GitHub's Markdown."""
    rows = [(*axes, *cells) for axes, cells in _texts(grid)]
    return text_markdown(grid.title, (*grid.axes, *_headings(grid)), rows, numbers_from=1)


def text_markdown(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int | None = None
) -> str:
    """Return rows of texts as a table of GitHub's Markdown; columns of numbers are aligned to the right."""
    ruled = ["---" if numbers_from is None or place < numbers_from else "---:" for place in range(len(heads))]
    lines = [heads, ruled, *rows]
    body = "\n".join(
        "| " + " | ".join(markdown_text(cell) if line is not ruled else cell for cell in line) + " |"
        for line in lines
    )
    return f"{markdown_text(title)}\n\n{body}\n"


def latex(grid: Grid) -> str:
    """Return a `tabular` in a `table`, or several of so many rows as a page holds."""
    rows = [(*axes, *cells) for axes, cells in _texts(grid)]
    return text_latex(grid.name, grid.title, (*grid.axes, *_headings(grid)), rows, len(grid.axes))


def text_latex(
    name: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int | None = None
) -> str:
    """Return rows of texts with rules of booktabs; columns after the first `texts` are numbers.

    A table that is wider than the text is made smaller (graphicx).
    """
    named = len(heads) if texts is None else texts
    columns = "l" * named + "r" * (len(heads) - named)
    widths = (max(map(len, column)) + _LATEX_GAP for column in zip(heads, *rows, strict=True))
    is_wide = sum(widths) > _LATEX_LINE
    written = [r"% needs \usepackage{booktabs}" + (r" and \usepackage{graphicx}" if is_wide else "")]
    for start in range(0, max(len(rows), 1), _LATEX_ROWS):
        more = " (continued)" if start else ""
        written += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escaped_latex(title + more)}}}",
            *([] if start else [rf"\label{{tab:{name}}}"]),
            *([r"\resizebox{\linewidth}{!}{%"] if is_wide else []),
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_line(heads),
            r"\midrule",
            *map(_latex_line, rows[start : start + _LATEX_ROWS]),
            r"\bottomrule",
            r"\end{tabular}" + ("}" if is_wide else ""),
            r"\end{table}",
        ]
    return "\n".join([*written, ""])


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(_escaped_latex, cells)) + r" \\"


def comma_separated(grid: Grid, *, raw: bool = False) -> str:
    """Return a row for each row, with value, bounds, runs and reference of each column, unrounded."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    parts = ("", " low", " high", " runs", " reference")
    heads = (f"{_heading(column, '')}{part}" for column in grid.columns for part in parts)
    lines.writerow(csv_cell(text, raw=raw) for text in (*grid.axes, *heads))
    for axes, estimates in grid.rows:
        numbers = [
            number
            for estimate in estimates
            for number in (estimate.value, estimate.low, estimate.high, estimate.runs, estimate.reference)
        ]
        names = (csv_cell(name, raw=raw) for name in axes)
        lines.writerow([*names, *("" if number is None else f"{number:.17g}" for number in numbers)])
    return written.getvalue()


def view(grid: Grid) -> TableView:
    """Return the table of a page."""
    rows = []
    for number, ((axes, cells), (_, estimates)) in enumerate(zip(_texts(grid), grid.rows, strict=True)):
        shown = [Cell(axis) for axis in axes] or [Cell("all")]
        shown += [
            Cell(text, back=f"n = {one.runs}" if one.runs else "", sort=one.value)
            for text, one in zip(cells, _with_references(grid, estimates), strict=True)
        ]
        rows.append(Row(f"{grid.name}-{number}", tuple(shown)))
    heads = [Heading(axis, numeric=False) for axis in grid.axes] or [Heading("runs", numeric=False)]
    heads += [Heading(label) for label in _headings(grid)]
    return TableView(grid.name, grid.title, tuple(heads), tuple(rows), sortable=len(rows) > 1)


def estimate_text(one: Estimate, unit: str) -> str:
    """Return a single estimate in words, with its unit: `326 ± 74 kbit/s`."""
    scale, prefix = _fitting_scale([one.value], unit)
    shown = f"{prefix}{unit}"
    return f"{_estimate(one, scale)} {shown}" if shown and one.value is not None else _estimate(one, scale)


def _with_references(grid: Grid, estimates: Sequence[Estimate]) -> Iterator[Estimate]:
    """Give each estimate, and after it the reference if its column has one."""
    for place, one in enumerate(estimates):
        yield one
        if _has_reference(grid, place):
            yield Estimate(value=one.reference)


def _has_reference(grid: Grid, place: int) -> bool:
    return any(estimates[place].reference is not None for _, estimates in grid.rows)


def _headings(grid: Grid) -> list[str]:
    heads = []
    for place, column in enumerate(grid.columns):
        _, prefix = _scale(grid, place)
        heads.append(_heading(column, prefix))
        if _has_reference(grid, place):
            heads.append(f"{column.label}, reported")
    return heads


def _heading(column: Column, prefix: str) -> str:
    return f"{column.label} ({prefix}{column.unit})" if column.unit else column.label


def _texts(grid: Grid) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Give the cells of each row in words."""
    scales = [_scale(grid, place)[0] for place in range(len(grid.columns))]
    for axes, estimates in grid.rows:
        cells = []
        for place, (one, scale) in enumerate(zip(estimates, scales, strict=True)):
            cells.append(_estimate(one, scale))
            if _has_reference(grid, place):
                cells.append(_estimate(Estimate(value=one.reference), scale))
        yield axes, cells


def _scale(grid: Grid, place: int) -> tuple[float, str]:
    """Return what the values of a column are divided by, and the prefix of their unit."""
    return _fitting_scale([estimates[place].value for _, estimates in grid.rows], grid.columns[place].unit)


def _fitting_scale(values: Sequence[float | None], unit: str) -> tuple[float, str]:
    if unit not in _PREFIXED:
        return 1.0, ""
    largest = max((abs(value or 0.0) for value in values), default=0.0)
    return next((fit for fit in _PREFIXES if largest >= fit[0]), _PREFIXES[-1])


def _estimate(one: Estimate, scale: float) -> str:
    """Return `12.34 ± 0.56`: as many decimals as two digits of the interval need.

    An interval that was cut is written `0.89 (0.74 to 1.00)`.
    """
    if one.value is None:
        return MISSING
    value = one.value / scale
    if one.low is None or one.high is None:
        # thousands can be read without an exponent
        return f"{value:.0f}" if 10**_DIGITS <= abs(value) < _LARGEST else f"{value:.{_DIGITS}g}"
    half = (one.high - one.low) / (2 * scale)
    if not half:
        return f"{value:.{_DIGITS}g} ± 0"
    decimals = min(max(1 - math.floor(math.log10(half)), 0), 12)
    low, high = (bound / scale for bound in (one.low, one.high))
    if not math.isclose(high - value, value - low, abs_tol=0.5 * 10**-decimals):
        return f"{value:.{decimals}f} ({low:.{decimals}f} to {high:.{decimals}f})"
    return f"{value:.{decimals}f} ± {half:.{decimals}f}"


_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    # after a line break a bracket would begin an option of it
    "[": "{[}",
    "±": r"$\pm$",
    MISSING: "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def _escaped_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in plain_text(text))
