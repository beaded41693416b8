"""How two sides differ, metric by metric: what `tfrctrace compare` prints."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.parsers.csv_text import csv_cell
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.safe_text import markdown_text
from tfrctrace.reports.units import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ComparisonFormat = Literal["table", "json", "csv", "markdown"]

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
)
"""Of a row: `difference` is B less A with its interval, `effect` Hedges' g."""

_HEADS: Final = ("metric", "group", "A", "B", "B - A", "interval", "effect", "p", "")
_GROUP: Final = 1
_TEXTS: Final = {0, _GROUP, 8}


def write_comparison(
    file: TextIO,
    form: ComparisonFormat,
    rows: Sequence[Mapping[str, Any]],
    head: Mapping[str, Any],
    *,
    raw: bool = False,
) -> None:
    """Write `rows`, which have `COLUMNS`; `head` has what was compared and how.

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
        cells = [_HEADS, *map(_cells, rows)]
        for line in _markdown(cells) if form == "markdown" else aligned(cells, left=_TEXTS):
            file.write(printable(line) + "\n")


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    p_value = row["p_value"] if row["p_holm"] is None else row["p_holm"]
    interval = "" if row["low"] is None else f"{_number(row['low'])} to {_number(row['high'])}"
    name = f"{row['metric']} ({row['unit']})" if row["unit"] else row["metric"]
    numbers = (_number(row[key]) for key in ("mean_a", "mean_b", "difference"))
    return (
        name,
        row["group"] or "all",
        *numbers,
        interval,
        "" if row["effect"] is None else _number(row["effect"]),
        "" if p_value is None else f"{p_value:.2g}",
        row["reason"] or "",
    )


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.4g}"


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    ruled = ["---" if place in _TEXTS else "---:" for place in range(len(_HEADS))]
    lines = [rows[0], ruled, *map(_with_harmless_group, rows[1:])]
    return [f"| {' | '.join(line)} |" for line in lines]


def _with_harmless_group(row: Sequence[str]) -> list[str]:
    """Return the cells of a row of Markdown; only the name of a group needs escaping."""
    return [markdown_text(cell) if place == _GROUP else cell for place, cell in enumerate(row)]
