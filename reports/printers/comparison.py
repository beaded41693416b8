"""How two sides differ, metric by metric: what `tfrctrace compare` prints."""

from __future__ import annotations

import csv
import textwrap
from dataclasses import fields
from typing import TYPE_CHECKING, Final, Literal, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.metrics.results.comparison import Difference
from tfrctrace.metrics.sets.fairness import times_others
from tfrctrace.parsers.csv_text import csv_cell
from tfrctrace.reports.files.result_json import write_json
from tfrctrace.reports.metric_words import SHARES, is_between_groups, metric_name
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.safe_text import markdown_text
from tfrctrace.reports.units import MISSING, counted, format_count, format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfrctrace.metrics.results.comparison import Comparison

ComparisonFormat = Literal["table", "json", "csv", "markdown", "html"]

FORM_OF_SUFFIX: Final[Mapping[str, ComparisonFormat]] = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".html": "html",
    ".htm": "html",
}

COMPARISON_SCHEMA_VERSION: Final = 1

DEFAULT_ROWS: Final = 15

HEADS: Final = ("metric", "group", "A", "B", "change", "p", "B is")
_COLUMNS: Final = [field.name for field in fields(Difference)]
_GROUP: Final = 1
_WIDTH: Final = 80
"""Columns of the lines above the table."""
_TEXTS: Final = {0, _GROUP, 6}


def write_comparison(
    file: TextIO,
    form: ComparisonFormat,
    comparison: Comparison,
    *,
    raw: bool = False,
    most: int | None = None,
) -> None:
    """Write all differences, in a table for people the first `most`.

    Text in CSV is made safe for spreadsheets and terminals unless `raw`.
    """
    from tfrctrace.reports.compared import conclusion_words

    found = comparison.differences
    if form == "json":
        write_json(file, comparison)
    elif form == "csv":
        table = csv.writer(file, lineterminator="\n")
        table.writerow(_COLUMNS)
        table.writerows([csv_cell(getattr(one, name), raw=raw) for name in _COLUMNS] for one in found)
    else:
        shown = found[:most]
        words = conclusion_words(found)
        lines = [markdown_text(words)] if form == "markdown" else _wrapped(words)
        file.writelines(f"{printable(line)}\n" for line in (*lines, ""))
        cells = [HEADS, *map(comparison_cells, shown)]
        for line in _markdown(cells) if form == "markdown" else aligned(cells, left=_TEXTS):
            file.write(printable(line) + "\n")
        for line in closing_lines(found, len(shown)):
            file.write(f"\n{line}\n")


def _wrapped(words: str) -> list[str]:
    """Return lines in which no number is apart from its percent sign."""
    lines = textwrap.wrap(words.replace(" %", "\xa0%"), _WIDTH, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def closing_lines(differences: Sequence[Difference], shown: int) -> Iterable[str]:
    """Give what stands below a table: why nothing was tested, and how many rows are not shown."""
    reasons = {found.reason for found in differences if found.verdict == "no test" and found.reason}
    yield from sorted(reasons)
    if shown < len(differences):
        count = f"{format_count(shown)} of {counted(len(differences), 'row')}"
        yield f"{count}; `--rows 0` shows all, `--format csv` has the names of metrics"


def comparison_cells(found: Difference) -> tuple[str, ...]:
    """Return the cells of a row for people, as `HEADS` has them."""
    from tfrctrace.reports.compared import change_text

    p_value = found.tested_p
    return (
        metric_name(found.metric),
        found.group or "all",
        value_text(found, found.mean_a),
        value_text(found, found.mean_b),
        change_text(found),
        "" if p_value is None else f"{p_value:.2g}",
        (found.reason or MISSING) if found.verdict is None else found.verdict,
    )


def value_text(found: Difference, value: float | None) -> str:
    """Return a mean with its unit."""
    if is_between_groups(found.metric):
        times = times_others(value)
        return MISSING if times is None else f"{times:.3g} times"
    return format_value(value, "%" if found.metric in SHARES else found.unit)


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    ruled = ["---" if place in _TEXTS else "---:" for place in range(len(HEADS))]
    lines = [rows[0], ruled, *map(_with_harmless_group, rows[1:])]
    return [f"| {' | '.join(line)} |" for line in lines]


def _with_harmless_group(row: Sequence[str]) -> list[str]:
    """Return the cells of a row of Markdown; only the name of a group needs escaping."""
    return [markdown_text(cell) if place == _GROUP else cell for place, cell in enumerate(row)]
