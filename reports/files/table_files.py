"""Tables as files: JSON, CSV, Parquet and Arrow, written piece by piece so that memory stays flat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TextIO, cast

from tfrctrace.base.errors import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from io import IOBase

    import polars as pl
    import pyarrow as pa

    from tfrctrace.base.errors import Problem

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
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    *,
    raw: bool = False,
) -> None:
    """Write `batches` to `file` as columns of `schema`; a missing value is null, in CSV an empty field.

    Text in CSV is made safe for spreadsheets and terminals unless `raw`.
    """
    if form == "csv":
        _write_csv(file, batches, schema, raw=raw)
    else:
        _BINARY_WRITERS[form](file, batches, schema)


def parquet_bytes(frame: pl.DataFrame) -> bytes:
    """Return `frame` as a Parquet file, for Polars hides the error of a full disk in one of its own."""
    import io

    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def write_csv(file: BinaryIO, columns: Iterable[str], lines: Iterable[bytes]) -> None:
    """Write a table of which the core has made `lines`, many at a time: what `write_table` writes, sooner."""
    file.write((",".join(columns) + "\n").encode())
    file.writelines(lines)


def write_flows_json(
    file: TextIO,
    flows: Iterable[str],
    sources: Sequence[Mapping[str, Any]],
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
    sources: Sequence[Mapping[str, Any]],
    problems: Sequence[Problem],
    *,
    schema_version: int,
    version: str,
) -> None:
    """Write the document of `groups --format json`, a line for each row of `groups` and `buckets`."""
    parts = {
        "sources": map(_encode, sources),
        "groups": map(_encode, groups.iter_rows(named=True)),
        "buckets": map(_encode, buckets.iter_rows(named=True)),
        "warnings": map(_encode, map(_with_text, problems)),
    }
    _write_document(file, parts, schema_version=schema_version, version=version)


def _encode(value: Mapping[str, Any]) -> str:
    """Return a value as JSON. One that JSON cannot have would be a bug of ours: no NaN in place of null."""
    return _ENCODER.encode(value)


def _write_document(
    file: TextIO, parts: Mapping[str, Iterable[str]], *, schema_version: int, version: str
) -> None:
    """Write lists of rows that are JSON already, one or many at a time, behind the version."""
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


def _with_text(problem: Problem) -> dict[str, Any]:
    """Return the facts of a problem, and the sentence that the terminal shows."""
    return {**problem, "text": describe(problem).text}


def _write_csv(file: BinaryIO, batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, raw: bool) -> None:
    import polars as pl

    from tfrctrace.parsers.csv_text import frame_csv

    file.write(frame_csv(pl.DataFrame(schema.empty_table()), raw=True))
    for batch in batches:
        file.write(frame_csv(pl.DataFrame(batch), raw=raw, header=False))


def _write_parquet(file: BinaryIO, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema))


def _write_arrow(file: BinaryIO, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    from pyarrow import ipc

    with ipc.new_file(cast("IOBase", file), schema) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema))


_BINARY_WRITERS: Final[Mapping[str, Callable[[BinaryIO, Iterable[pa.RecordBatch], pa.Schema], None]]] = {
    "parquet": _write_parquet,
    "arrow": _write_arrow,
}
