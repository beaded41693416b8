"""Tables as files: JSON, CSV, Parquet and Arrow, written piece by piece so that memory stays flat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, TextIO

from tfrctrace.base.errors import describe
from tfrctrace.parsers._native import write_arrow, write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.why import FlowCauses, UntoldFlow
    from tfrctrace.parsers._native import ArrowStream

TableFormat = Literal["csv", "parquet", "arrow"]
"""Forms of a whole table; `arrow` is the IPC file format, which Polars and pandas call Feather."""

_ENCODER: Final = json.JSONEncoder(allow_nan=False)

FORMAT_OF_SUFFIX: Final[Mapping[str, TableFormat]] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}


def write_table(
    file: BinaryIO,
    form: TableFormat,
    tables: Iterable[ArrowStream],
    schema: ArrowStream,
    *,
    raw: bool = False,
) -> None:
    """Write the rows of `tables`, one below the other, as columns of the table `schema`.

    A missing value is null, in CSV an empty field. Text in CSV is made safe for spreadsheets and terminals
    unless `raw`.
    """
    if form == "csv":
        _write_csv(file, tables, schema, raw=raw)
    elif form == "parquet":
        write_parquet(file.write, schema, tables)
    else:
        write_arrow(file.write, schema, tables)


def parquet_bytes(frame: pl.DataFrame) -> bytes:
    """Return `frame` as a Parquet file."""
    pieces = list[bytes]()
    write_parquet(pieces.append, frame, [frame])
    return b"".join(pieces)


def write_csv(file: BinaryIO, columns: Iterable[str], lines: Iterable[bytes]) -> None:
    """Write a table of which the core has made `lines`, many at a time: what `write_table` writes, sooner."""
    file.write((",".join(columns) + "\n").encode())
    file.writelines(lines)


def write_flows_json(
    file: TextIO,
    flows: Iterable[str],
    sources: Sequence[object],
    problems: Sequence[Problem],
    hops: Iterable[str] = (),
    *,
    schema_version: int,
    version: str,
) -> None:
    """Write the document of `flows --format json`, a line for each flow and direction.

    `flows`, and `hops` of more than two captures, are rows that are JSON already, one or many at a time.
    `docs/flows.schema.json` describes the document. All but ASCII is escaped, so a terminal
    shows it unharmed.
    """
    parts = {
        "sources": map(_encode, sources),
        "flows": flows,
        "hops": hops,
        "warnings": map(_encode, map(_with_text, problems)),
    }
    _write_document(file, parts, schema_version=schema_version, version=version)


def write_groups_json(
    file: TextIO,
    groups: pl.DataFrame,
    buckets: pl.DataFrame,
    sources: Sequence[object],
    problems: Sequence[Problem],
    *,
    objectives: Sequence[object],
    schema_version: int,
    version: str,
) -> None:
    """Write the document of `groups --format json`, a line for each row of `groups` and `buckets`."""
    parts = {
        "sources": map(_encode, sources),
        "groups": map(_encode, groups.iter_rows(named=True)),
        "buckets": map(_encode, buckets.iter_rows(named=True)),
        **({"objectives": map(_encode, objectives)} if objectives else {}),
        "warnings": map(_encode, map(_with_text, problems)),
    }
    _write_document(file, parts, schema_version=schema_version, version=version)


def write_why_json(
    file: TextIO,
    flows: Iterable[FlowCauses],
    untold: Iterable[UntoldFlow],
    problems: Sequence[Problem],
    *,
    schema_version: int,
    version: str,
) -> None:
    """Write the document of `why --format json`, a line for each direction with data."""
    import msgspec

    from tfrctrace.reports.why_words import by_reason

    groups = ({"reason": reason, "flows": own} for reason, own in by_reason(untold).items())
    parts = {
        "flows": (_encode(msgspec.to_builtins(flow)) for flow in flows),
        "untold": (_encode(msgspec.to_builtins(group)) for group in groups),
        "warnings": map(_encode, map(_with_text, problems)),
    }
    _write_document(file, parts, schema_version=schema_version, version=version)


def _encode(value: object) -> str:
    """Return a value as JSON. One that JSON cannot have would be a bug of ours: no NaN in place of null."""
    return _ENCODER.encode(value)


def _write_document(
    file: TextIO, parts: Mapping[str, Iterable[str]], *, schema_version: int, version: str
) -> None:
    """Write lists of rows that are JSON already, one or many at a time, after the version."""
    head = {"schema_version": schema_version, "tool": {"name": "tfrctrace", "version": version}}
    file.write(_encode(head)[:-1])
    for name, items in parts.items():
        file.write(f',\n"{name}": [')
        separator = "\n"
        for item in items:
            file.write(separator)
            file.write(item)
            separator = ",\n"
        file.write("]")
    file.write("}\n")


def _with_text(problem: Problem) -> dict[str, object]:
    """Return the facts of a problem, and the sentence that the terminal shows."""
    return {**problem, "text": describe(problem).text}


def _write_csv(file: BinaryIO, tables: Iterable[ArrowStream], schema: ArrowStream, *, raw: bool) -> None:
    import polars as pl

    from tfrctrace.parsers.csv_text import frame_csv

    file.write(frame_csv(pl.DataFrame(schema).clear(), raw=True))
    for table in tables:
        file.write(frame_csv(pl.DataFrame(table), raw=raw, header=False))
