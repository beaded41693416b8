"""Tables of a batch by date and link, as Polars, DuckDB and Spark read them: `date=2026-01-05/link=NAME/`.

A link is a chain, or with `--chains days` the capture of all days. Each row is in the folder of the day on
which it begins (UTC). Written again, only chains that changed are; what their files had before goes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfrctrace.batch.hive_folders import date_and_link
from tfrctrace.batch.results_folder import ResultsFolder
from tfrctrace.reports.output import make_folder, open_output

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.runs.cache import Record

TABLES: Final = ("flows", "groups", "group_buckets", "warnings")

_NS_PER_DAY: Final = 86_400 * 10**9

_ROWS: Final = 32_768
"""Rows of a table in memory: those of a row group."""


def write_lake(results: str, output: str) -> tuple[int, int]:
    """Write the tables of the chains in `results`; return how many there are, and how many are new."""
    folder, lake = ResultsFolder(results), Path(output)
    new = chains = 0
    for record in folder.records():
        chains += 1
        done = lake / "done" / _file_name(record)
        if record["failed"] or _text(done) == record["key"]:
            continue
        new += 1
        _forget(lake, record)
        for name in TABLES:
            _write(_table(folder, record, name), lake / name, record)
        # the last of its files: it is written again if this is missing
        make_folder(str(done.parent))
        with open_output(str(done)) as file:
            file.write(record["key"].encode())
    return chains, new


def _table(folder: ResultsFolder, record: Record, name: str) -> pl.LazyFrame:
    import polars as pl

    if name != "warnings":
        return pl.scan_parquet(folder.table_path(record, name))
    rows = [
        {
            "start_ns": _start_ns(record),
            **{name: problem[name] for name in ("severity", "kind", "source", "message")},
        }
        for problem in record["problems"]
    ]
    text = dict.fromkeys(("severity", "kind", "source", "message"), pl.String)
    return pl.LazyFrame(rows, schema={"start_ns": pl.Int64, **text})


def _write(table: pl.LazyFrame, folder: Path, record: Record) -> None:
    """Write the rows of each day to a file of their own."""
    import polars as pl

    from tfrctrace.reports.files.table_files import write_table

    day_of = pl.from_epoch(pl.col("start_ns").fill_null(_start_ns(record)) // _NS_PER_DAY, time_unit="d")
    days = table.select(day_of.alias("day")).collect()["day"]
    for day in days.unique().sort():
        place = folder / date_and_link(str(day), record["link"])
        make_folder(str(place))
        # rows are in the order of their times, or nearly: most parts have none of a day
        starts = (start for start in range(0, len(days), _ROWS) if (days.slice(start, _ROWS) == day).any())
        parts = (table.slice(start, _ROWS).filter(day_of == day).collect() for start in starts)
        with open_output(str(place / f"{_file_name(record)}.parquet")) as file:
            write_table(file, "parquet", parts, table.clear().collect())


def _start_ns(record: Record) -> int:
    """Return the time of the first packet: warnings and directions without packets are in its day."""
    return min((one["start_ns"] for one in record["sources"] if one["start_ns"] is not None), default=0)


def _forget(lake: Path, record: Record) -> None:
    """Remove what a chain of this name had before."""
    for name in TABLES:
        for path in lake.glob(f"{name}/{date_and_link('*', record['link'])}/{_file_name(record)}.parquet"):
            path.unlink(missing_ok=True)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()


def _file_name(record: Record) -> str:
    """Return the name of the files of a chain, which it keeps when it gets another file."""
    return hashlib.sha256(record["name"].encode()).hexdigest()[:16]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
