"""A table of runs: a CSV file with a column `file` and one for each parameter."""

from __future__ import annotations

import csv
import io
import os
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.study.file.names import refuse_twice

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES: Final = 50_000_000

FILE_COLUMN: Final = "file"
"""The run's path."""


def table_parameters(folder: str, called: str) -> tuple[str, ...]:
    """Return the names of the columns of a table of runs, but that of the file."""
    heads, *_ = _lines(folder, called)
    return tuple(name for name in heads if name != FILE_COLUMN)


def runs_of_table(folder: str, called: str) -> dict[str, dict[str, str]]:
    """Return the parameters of each run, as they are written.

    Raises `UsageError` for what is no such table.
    """
    heads, *rows = _lines(folder, called)
    table: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, start=2):
        if len(row) != len(heads):
            raise _unreadable(called, f"row {number} has {len(row)} cells, expected {len(heads)}")
        own = dict(zip(heads, row, strict=True))
        name = own.pop(FILE_COLUMN)
        if name in table:
            raise _unreadable(called, f"row {number} names `{name}` again")
        table[name] = own
    return table


def _lines(folder: str, called: str) -> Sequence[Sequence[str]]:
    """Return the head and the rows; those that are empty are left out."""
    try:
        with open(os.path.join(folder, called), "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise _unreadable(called, f"it is larger than {MAX_BYTES} bytes")
        # spreadsheets begin with the mark of UTF-8
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(called, str(error)) from error
    lines = [[cell.strip() for cell in row] for row in rows if row]
    heads = lines[0] if lines else []
    if FILE_COLUMN not in heads:
        raise UsageError(f"the table of runs `{called}` has no column `{FILE_COLUMN}`")
    refuse_twice(heads, "column")
    return lines


def _unreadable(called: str, why: str) -> UsageError:
    return UsageError(f"the table of runs `{called}` cannot be read: {why}")
