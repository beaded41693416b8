"""How two sides differ, metric by metric: what `tfrctrace compare` prints."""

from __future__ import annotations

import csv
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, Literal, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.metrics.results.comparison import Difference
from tfrctrace.parsers.csv_text import csv_cell
from tfrctrace.reports.files.result_json import write_json
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.safe_text import markdown_text
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfrctrace.metrics.results.comparison import Comparison, Judgement

ComparisonFormat = Literal["table", "json", "csv", "markdown", "html"]

COMPARISON_SCHEMA_VERSION: Final = 1

SIGNIFICANT: Final = 0.05
"""The p value below which a difference is taken for one of the sides, not of chance."""

DEFAULT_ROWS: Final = 15

HEADS: Final = ("metric", "group", "A", "B", "change", "p", "B is")
_COLUMNS: Final = [field.name for field in fields(Difference)]
_GROUP: Final = 1
_TEXTS: Final = {0, _GROUP, 6}
_SHARES: Final = frozenset({"pdr", "plr", "drop_ratio", "goodput_share", "timeout_share", "link_utilisation"})
_RANKS: Final[Mapping[Judgement | None, int]] = {
    "worse": 0,
    "better": 0,
    "different": 1,
    "no test": 2,
    "unclear": 3,
    "equal": 4,
    None: 5,
}
"""What people should read first has the lowest."""


def judged(found: Iterable[Difference]) -> list[Difference]:
    """Return the differences with `change` and `verdict`, the most important first."""
    return sorted(
        (replace(one, change=_change(one), verdict=_verdict(one)) for one in found), key=_importance
    )


def _change(found: Difference) -> float | None:
    return found.difference / abs(found.mean_a) if found.difference is not None and found.mean_a else None


def _verdict(found: Difference) -> Judgement | None:
    """Return what B is, compared with A: better or worse only if a test says that it is not chance."""
    if found.difference is None:
        return None
    if not found.difference:
        return "equal"
    if found.tested_p is None:
        return "no test"
    if found.tested_p >= SIGNIFICANT:
        return "unclear"
    from tfrctrace.metrics.statistics.preference import preference_of

    preferred = preference_of(found.metric)
    if preferred is None:
        return "different"
    return "better" if (found.difference > 0) == (preferred == "higher") else "worse"


def _importance(found: Difference) -> tuple[int, bool, float]:
    """Order by verdict, then metrics that people prefer one way, then the size of the difference."""
    from tfrctrace.metrics.statistics.preference import preference_of

    size = found.change if found.effect is None else found.effect
    return _RANKS[found.verdict], preference_of(found.metric) is None, -abs(size or 0.0)


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
    found = comparison.differences
    if form == "json":
        write_json(file, comparison)
    elif form == "csv":
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(_COLUMNS)
        lines.writerows([csv_cell(getattr(one, name), raw=raw) for name in _COLUMNS] for one in found)
    else:
        shown = found[:most]
        cells = [HEADS, *map(comparison_cells, shown)]
        for line in _markdown(cells) if form == "markdown" else aligned(cells, left=_TEXTS):
            file.write(printable(line) + "\n")
        for line in closing_lines(found, len(shown)):
            file.write(f"\n{line}\n")


def closing_lines(differences: Sequence[Difference], shown: int) -> Iterable[str]:
    """Give what stands below a table: why nothing was tested, and how many rows are not shown."""
    reasons = {found.reason for found in differences if found.verdict == "no test" and found.reason}
    yield from sorted(reasons)
    if shown < len(differences):
        count = f"{format_count(shown)} of {counted(len(differences), 'row')}"
        yield f"{count}, most important first; `--rows 0` shows all"


def comparison_cells(found: Difference) -> tuple[str, ...]:
    """Return the cells of a row for people, as `HEADS` has them."""
    p_value = found.tested_p
    return (
        found.metric,
        found.group or "all",
        value_text(found, found.mean_a),
        value_text(found, found.mean_b),
        change_text(found),
        "" if p_value is None else f"{p_value:.2g}",
        (found.reason or MISSING) if found.verdict is None else found.verdict,
    )


def value_text(found: Difference, value: float | None) -> str:
    """Return a mean with its unit."""
    unit = found.unit
    if value is None:
        return MISSING
    if unit == "bit/s":
        return format_rate_bps(value)
    if unit == "ms":
        return format_ms(value)
    if unit == "s":
        return format_duration_s(value)
    if found.metric in _SHARES:
        return format_share(value)
    return f"{value:.4g} {unit}".rstrip()


def change_text(found: Difference) -> str:
    """Return the difference in percent of A, or as it is where A is 0."""
    if found.change is not None:
        percent = 100 * found.change
        return f"{percent:+.3g} %" if abs(percent) < 1e4 else f"×{1 + found.change:.3g}"
    return MISSING if found.difference is None else f"{found.difference:+.3g}"


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    ruled = ["---" if place in _TEXTS else "---:" for place in range(len(HEADS))]
    lines = [rows[0], ruled, *map(_with_harmless_group, rows[1:])]
    return [f"| {' | '.join(line)} |" for line in lines]


def _with_harmless_group(row: Sequence[str]) -> list[str]:
    """Return the cells of a row of Markdown; only the name of a group needs escaping."""
    return [markdown_text(cell) if place == _GROUP else cell for place, cell in enumerate(row)]
