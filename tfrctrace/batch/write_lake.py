"""Tables of a batch by date and link, as Polars, DuckDB and Spark read them: `date=2026-01-05/link=NAME/`.

A link is a chain. Each row is in the folder of the day on which it begins (UTC). Written again, only chains
that changed are; what their files had before goes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from tfrctrace.batch.results_folder import ResultsFolder
from tfrctrace.reports.output import make_folder, open_output

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.runs.cache import Record

TABLES: Final = ("flows", "groups", "group_buckets", "warnings")

_NS_PER_DAY: Final = 86_400 * 10**9


def write_lake(results: str, output: str) -> tuple[int, int]:
    """Write the tables of the chains in `results`; return how many there are, and how many are new."""
    folder = ResultsFolder(results)
    new = chains = 0
    for record in folder.records():
        chains += 1
        if record["failed"] or (Path(output) / "done" / record["key"]).exists():
            continue
        new += 1
        _forget(Path(output), record)
        for name in TABLES:
            _write(_table(folder, record, name), Path(output) / name, record)
        # the last of its files: it is written again if this is missing
        make_folder(os.path.join(output, "done"))
        with open_output(os.path.join(output, "done", record["key"])) as file:
            file.write(f"{record['name']}\n".encode())
    return chains, new


def _table(folder: ResultsFolder, record: Record, name: str) -> pl.DataFrame:
    import polars as pl

    if name != "warnings":
        return pl.read_parquet(folder.table_path(record["key"], name))
    starts = [one["start_ns"] for one in record["sources"] if one["start_ns"] is not None]
    rows = [
        {
            "start_ns": min(starts, default=0),
            **{name: problem[name] for name in ("severity", "kind", "source", "message")},
        }
        for problem in record["problems"]
    ]
    text = dict.fromkeys(("severity", "kind", "source", "message"), pl.String)
    return pl.DataFrame(rows, schema={"start_ns": pl.Int64, **text})


def _write(table: pl.DataFrame, folder: Path, record: Record) -> None:
    """Write the rows of each day to a file of their own."""
    import polars as pl

    from tfrctrace.reports.files.table_files import parquet_bytes

    days = pl.from_epoch(pl.col("start_ns").fill_null(0) // _NS_PER_DAY, time_unit="d")
    for (day,), rows in table.with_columns(_day=days).partition_by("_day", as_dict=True).items():
        place = folder / f"date={day}" / f"link={_link(record)}"
        make_folder(str(place))
        with open_output(str(place / f"{record['key'][:16]}.parquet")) as file:
            file.write(parquet_bytes(rows.drop("_day")))


def _forget(lake: Path, record: Record) -> None:
    """Remove what a chain of this name had before."""
    for name in TABLES:
        for folder in lake.glob(f"{name}/date=*/link={_link(record)}"):
            for path in folder.glob("*.parquet"):
                path.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()
    for path in (lake / "done").glob("*"):
        if path.is_file() and path.read_text(errors="replace") == f"{record['name']}\n":
            path.unlink(missing_ok=True)


def _link(record: Record) -> str:
    """Return the name of a chain as that of a folder, without anything that a pattern would obey."""
    return quote(record["name"], safe="")
