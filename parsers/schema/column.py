"""What is said of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

ColumnType = Literal["uint32", "uint64", "int64", "float64", "string"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `null_when` is empty when the value is always known."""

    name: str
    type: ColumnType
    unit: str
    meaning: str
    null_when: str = ""


def polars_type(kind: ColumnType) -> pl.DataType:
    """Return the type of Polars that a column of this type has."""
    import polars as pl

    types: dict[ColumnType, pl.DataType] = {
        "uint32": pl.UInt32(),
        "uint64": pl.UInt64(),
        "int64": pl.Int64(),
        "float64": pl.Float64(),
        "string": pl.String(),
    }
    return types[kind]
