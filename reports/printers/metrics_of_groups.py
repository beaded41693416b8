"""Metrics of groups by interval: a table, JSON, CSV and Parquet."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.printers.groups import interval_times
from tfrctrace.reports.printers.objectives import value_text
from tfrctrace.reports.units import MISSING, counted, format_count

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.base.timezones import TimeZone


def write_group_metrics_text(
    file: TextIO, rows: pl.DataFrame, *, every_ns: int | None, zone: TimeZone, most: int
) -> None:
    """Write a line for each of the first `most` rows."""
    shown = rows.head(most).to_dicts()
    if shown:
        times = interval_times([row["start_ns"] for row in shown], every_ns, zone)
        cells = [
            (
                row["metric"],
                printable(row["group"] or "all"),
                row["direction"] or "both",
                time or "",
                value_text(row["value"], "%" if row["metric"].endswith("_ratio") else row["unit"]),
                format_count(row["n"]),
            )
            for row, time in zip(shown, times, strict=True)
        ]
        lines = aligned([("metric", "group", "", "start", "value", "n"), *cells], left={0, 1, 2, 3})
        file.writelines(f"{line}\n" for line in lines)
        file.write("\n")
    elif not len(rows):
        file.write(f"{MISSING} no value\n")
    more = f" of {counted(len(rows), 'value')}; `--format csv` writes all" if len(shown) < len(rows) else ""
    zoned = "" if every_ns is None else f"; times in {zone.name}"
    file.write(f"{format_count(len(shown))}{more or ' values'}{zoned}\n")


def write_group_metrics_json(file: TextIO, rows: pl.DataFrame, head: dict[str, Any]) -> None:
    """Write the rows as JSON, behind `head`."""
    json.dump({**head, "metrics": rows.to_dicts()}, file, indent=1, allow_nan=False)
    file.write("\n")


def write_group_metrics_table(
    file: BinaryIO, form: Literal["csv", "parquet"], rows: pl.DataFrame, *, raw: bool
) -> None:
    """Write the rows as CSV or Parquet."""
    from tfrctrace.parsers.csv_text import frame_csv
    from tfrctrace.reports.files.table_files import parquet_bytes

    file.write(parquet_bytes(rows) if form == "parquet" else frame_csv(rows, raw=raw))
