"""Delay under load: a table, JSON, CSV and Parquet."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.metrics.loaded_delay import LoadedDelay
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.units import MISSING, counted, format_count, format_duration_s, format_rate_bps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.metrics.loaded_delay import LinkLoad

_HEADINGS: Final = ("group", "", "of", "idle p50/p95", "n", "loaded p50/p95", "n", "increase")


def write_loaded_delays_text(
    file: TextIO, load: LinkLoad, rows: Sequence[LoadedDelay], *, most: int | None
) -> None:
    """Write when the link was loaded, and a table of the first `most` rows."""
    shown = rows[:most]
    if shown:
        lines = aligned([_HEADINGS, *map(_cells, shown)], left={0, 1, 2})
        file.write(f"{lines[0]}\n{'─' * max(map(len, lines))}\n")
        file.writelines(f"{line}\n" for line in lines[1:])
        file.write("\n")
    rates = ", ".join(f"{format_rate_bps(rate)} {way}" for way, rate in load.rates_bps.items())
    file.write(
        f"loaded for {format_duration_s(load.loaded_s)}, idle for {format_duration_s(load.idle_s)}, "
        f"between for {format_duration_s(load.between_s)}; rate of the link: {rates or MISSING}\n"
    )
    if not rows:
        file.write("no round-trip time is known in idle or loaded intervals\n")
    elif len(shown) < len(rows):
        file.write(f"{format_count(len(shown))} of {counted(len(rows), 'row')}; `--rows 0` shows all\n")


def _cells(row: LoadedDelay) -> tuple[str, ...]:
    return (
        printable(row.group or MISSING),
        row.direction,
        row.measure,
        _pair(row.idle_p50_ms, row.idle_p95_ms),
        format_count(row.idle_samples),
        _pair(row.loaded_p50_ms, row.loaded_p95_ms),
        format_count(row.loaded_samples),
        MISSING if row.increase_ms is None else f"{row.increase_ms:+.3g} ms",
    )


def _pair(median: float | None, high: float | None) -> str:
    return MISSING if median is None or high is None else f"{median:.3g}/{high:.3g} ms"


def write_loaded_delays_json(
    file: TextIO, load: LinkLoad, rows: Sequence[LoadedDelay], head: dict[str, Any]
) -> None:
    """Write the same as JSON, after `head`."""
    document = {
        **head,
        "link": {
            "rates_bps": load.rates_bps,
            "idle_s": load.idle_s,
            "loaded_s": load.loaded_s,
            "between_s": load.between_s,
        },
        "delay_under_load": list(map(asdict, rows)),
    }
    json.dump(document, file, indent=1, allow_nan=False)
    file.write("\n")


def write_loaded_delays_table(
    file: BinaryIO, form: Literal["csv", "parquet"], rows: Sequence[LoadedDelay], *, raw: bool
) -> None:
    """Write the rows as CSV or Parquet."""
    import polars as pl

    from tfrctrace.reports.files.table_files import write_table

    kinds = {"str": pl.String, "int": pl.Int64, "float": pl.Float64}
    schema = {field.name: kinds[str(field.type).split(" ")[0]] for field in fields(LoadedDelay)}
    frame = pl.DataFrame(list(map(asdict, rows)), schema=schema)
    write_table(file, form, [frame], frame, raw=raw)
