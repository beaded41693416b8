"""How two sides differ, metric by metric: what `tfrctrace compare` prints."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.parsers.csv_text import csv_cell
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

ComparisonFormat = Literal["table", "json", "csv", "markdown", "html"]

COMPARISON_SCHEMA_VERSION: Final = 1

COLUMNS: Final = (
    "metric",
    "group",
    "unit",
    "runs_a",
    "runs_b",
    "mean_a",
    "mean_b",
    "difference",
    "low",
    "high",
    "effect",
    "p_value",
    "p_holm",
    "reason",
    "change",
    "verdict",
)
"""Of a row: `difference` is B less A with its interval, `effect` Hedges' g, `change` is difference over A."""

SIGNIFICANT: Final = 0.05
"""The p value below which a difference is taken for one of the sides, not of chance."""

DEFAULT_LIMIT: Final = 15

HEADS: Final = ("metric", "group", "A", "B", "change", "p", "B is")
_GROUP: Final = 1
_TEXTS: Final = {0, _GROUP, 6}
_SHARES: Final = frozenset({"pdr", "plr", "drop_ratio", "goodput_share", "timeout_share", "link_utilisation"})
_RANKS: Final = {"worse": 0, "better": 0, "different": 1, "no test": 2, "unclear": 3, "equal": 4, None: 5}
"""What people should read first has the lowest."""


def judged(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with `change` and `verdict`, the most important first."""
    found = [{**row, "change": _change(row), "verdict": _verdict(row)} for row in rows]
    return sorted(found, key=_importance)


def _change(row: Mapping[str, Any]) -> float | None:
    if row["difference"] is None or not row["mean_a"]:
        return None
    return float(row["difference"] / abs(row["mean_a"]))


def _p_value(row: Mapping[str, Any]) -> float | None:
    p_value: float | None = row["p_value"] if row["p_holm"] is None else row["p_holm"]
    return p_value


def _verdict(row: Mapping[str, Any]) -> str | None:
    """Return what B is, compared with A: better or worse only if a test says that it is not chance."""
    if row["difference"] is None:
        return None
    if not row["difference"]:
        return "equal"
    p_value = _p_value(row)
    if p_value is None:
        return "no test"
    if p_value >= SIGNIFICANT:
        return "unclear"
    from tfrctrace.metrics.statistics.preference import preference_of

    preferred = preference_of(row["metric"])
    if preferred is None:
        return "different"
    return "better" if (row["difference"] > 0) == (preferred == "higher") else "worse"


def _importance(row: Mapping[str, Any]) -> tuple[int, bool, float]:
    """Order by verdict, then metrics that people prefer one way, then the size of the difference."""
    from tfrctrace.metrics.statistics.preference import preference_of

    size = row["change"] if row["effect"] is None else row["effect"]
    return _RANKS[row["verdict"]], preference_of(row["metric"]) is None, -abs(size or 0.0)


def write_comparison(
    file: TextIO,
    form: ComparisonFormat,
    rows: Sequence[Mapping[str, Any]],
    head: Mapping[str, Any],
    *,
    raw: bool = False,
    most: int | None = None,
) -> None:
    """Write `rows`, which have `COLUMNS`, in a table for people the first `most`; `head` names both sides.

    Text in CSV is made safe for spreadsheets and terminals unless `raw`.
    """
    if form == "json":
        document = {"schema_version": COMPARISON_SCHEMA_VERSION, **head, "differences": list(rows)}
        json.dump(document, file, indent=1, allow_nan=False)
        file.write("\n")
    elif form == "csv":
        lines = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        lines.writeheader()
        lines.writerows({name: csv_cell(value, raw=raw) for name, value in row.items()} for row in rows)
    else:
        shown = rows[:most]
        cells = [HEADS, *map(comparison_cells, shown)]
        for line in _markdown(cells) if form == "markdown" else aligned(cells, left=_TEXTS):
            file.write(printable(line) + "\n")
        for line in closing_lines(rows, len(shown)):
            file.write(f"\n{line}\n")


def closing_lines(rows: Sequence[Mapping[str, Any]], shown: int) -> Iterable[str]:
    """Give what stands below a table: why nothing was tested, and how many rows are not shown."""
    reasons = {row["reason"] for row in rows if row["verdict"] == "no test" and row["reason"]}
    yield from sorted(reasons)
    if shown < len(rows):
        count = f"{format_count(shown)} of {counted(len(rows), 'row')}"
        yield f"{count}, most important first; `--limit 0` shows all"


def comparison_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row for people, as `HEADS` has them."""
    p_value = _p_value(row)
    return (
        row["metric"],
        row["group"] or "all",
        value_text(row, "mean_a"),
        value_text(row, "mean_b"),
        change_text(row),
        "" if p_value is None else f"{p_value:.2g}",
        (row["reason"] or MISSING) if row["verdict"] is None else row["verdict"],
    )


def value_text(row: Mapping[str, Any], name: str) -> str:
    """Return a value of a row with its unit."""
    value, unit = row[name], row["unit"]
    if value is None:
        return MISSING
    if unit == "bit/s":
        return format_rate_bps(value)
    if unit == "ms":
        return format_ms(value)
    if unit == "s":
        return format_duration_s(value)
    if row["metric"] in _SHARES:
        return format_share(value)
    return f"{value:.4g} {unit}".rstrip()


def change_text(row: Mapping[str, Any]) -> str:
    """Return the difference in percent of A, or as it is where A is 0."""
    if row["change"] is not None:
        percent = 100 * row["change"]
        return f"{percent:+.3g} %" if abs(percent) < 1e4 else f"×{1 + row['change']:.3g}"
    return MISSING if row["difference"] is None else f"{row['difference']:+.3g}"


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    ruled = ["---" if place in _TEXTS else "---:" for place in range(len(HEADS))]
    lines = [rows[0], ruled, *map(_with_harmless_group, rows[1:])]
    return [f"| {' | '.join(line)} |" for line in lines]


def _with_harmless_group(row: Sequence[str]) -> list[str]:
    """Return the cells of a row of Markdown; only the name of a group needs escaping."""
    return [markdown_text(cell) if place == _GROUP else cell for place, cell in enumerate(row)]
