"""Metrics of groups by interval: a table, JSON, CSV and Parquet."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.printers.groups import interval_times
from tfrctrace.reports.units import MISSING, counted, format_count, format_value

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.base.timezones import TimeZone


def write_group_metrics_text(
    file: TextIO, rows: pl.DataFrame, *, every_ns: int | None, zone: TimeZone, most: int
) -> None:
    """Write a line for each of the first `most` rows."""
    shown = rows.head(most)
    if len(shown):
        times = interval_times(shown["start_ns"].to_list(), every_ns, zone)
        columns = shown.select("metric", "group", "direction", "value", "unit", "n").iter_rows()
        cells = [
            (
                metric,
                printable(group or "all"),
                direction or "both",
                time or "",
                format_value(value, "%" if metric.endswith("_ratio") else unit),
                format_count(n),
            )
            for (metric, group, direction, value, unit, n), time in zip(columns, times, strict=True)
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
    """Write the rows as JSON, after `head`."""
    json.dump({**head, "metrics": rows.to_dicts()}, file, indent=1, allow_nan=False)
    file.write("\n")
