"""The folder of an audit: tables by date and link, which Polars and DuckDB scan, and what is done.

tables/TABLE/date=2026-01-05/link=NAME/KEY.parquet, days/KEY.json (written last)
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tfrctrace.base.digests import sha256_of
from tfrctrace.batch.hive_folders import date_and_link
from tfrctrace.reports.output import make_folder, open_output

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import polars as pl

    from tfrctrace.runs.cache import Record

TABLES: Final = ("intervals", "verdicts", "evidence", "hours", "hour_buckets")
"""Judged intervals, their verdicts by the hour, what places are found by, and distributions by the hour."""


class AuditFolder:
    """Tables of days, and their facts by keys."""

    is_filled_by_tasks: ClassVar[bool] = False

    def __init__(self, path: str) -> None:
        """Use the folder `path`, which may not be there yet."""
        self._path = Path(path)

    def get(self, key: str) -> Record | None:
        """Return the facts of a day that is done."""
        from tfrctrace.metrics.results.batch import DayFacts
        from tfrctrace.metrics.results.records import is_a

        try:
            facts: Record = json.loads(self._facts(key).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return facts if is_a(DayFacts, facts) and self._is_whole(facts, key) else None

    def _is_whole(self, facts: Record, key: str) -> bool:
        """Return whether the tables of a day are as they were written."""
        digests = facts["tables"]
        with contextlib.suppress(OSError, ValueError):  # a name may have a NUL character
            return all(sha256_of(self.table_path(name, facts, key)) == digests.get(name) for name in TABLES)
        return False

    def put(self, key: str, record: Record) -> None:
        """Write the facts of a day, the last of its files."""
        make_folder(str(self._path / "days"))
        with open_output(str(self._facts(key))) as file:
            file.write((json.dumps(record, indent=1, sort_keys=True) + "\n").encode())

    def trim(self) -> None:
        """Keep everything: `keep_only` knows what belongs to the audit."""

    def write_table(self, name: str, facts: Mapping[str, Any], key: str, frame: pl.DataFrame) -> str:
        """Write a table of a day, and return its digest."""
        from tfrctrace.reports.files.table_files import parquet_bytes

        path = self.table_path(name, facts, key)
        make_folder(str(path.parent))
        with open_output(str(path)) as file:
            file.write(parquet_bytes(frame))
        return sha256_of(path)

    def table_path(self, name: str, facts: Mapping[str, Any], key: str) -> Path:
        """Return where a table of a day is."""
        folder = date_and_link(facts["date"], facts["link"])
        return self._path / "tables" / name / folder / f"{key[:16]}.parquet"

    def keep_only(self, facts_by_key: Mapping[str, Mapping[str, Any]]) -> None:
        """Remove days that the audit does not have, such as what was known before a file came."""
        kept = {self.table_path(name, facts, key) for key, facts in facts_by_key.items() for name in TABLES}
        for path in self._path.glob("days/*.json"):
            if path.stem not in facts_by_key:
                path.unlink(missing_ok=True)
        for path in self._path.glob("tables/*/date=*/link=*/*.parquet"):
            if path not in kept:
                path.unlink(missing_ok=True)
                for folder in (path.parent, path.parent.parent):
                    with contextlib.suppress(OSError):
                        folder.rmdir()

    def scan(self, name: str, days: Collection[tuple[str, Mapping[str, Any]]]) -> pl.LazyFrame:
        """Return a table of days, which are keys and facts."""
        import polars as pl

        paths = [self.table_path(name, facts, key) for key, facts in days]
        return pl.scan_parquet(paths, hive_partitioning=False)

    def _facts(self, key: str) -> Path:
        return self._path / "days" / f"{key}.json"
