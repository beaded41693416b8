"""What is said of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["uint32", "uint64", "int64", "float64", "string"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `null_when` is empty when the value is always known."""

    name: str
    type: ColumnType
    unit: str
    meaning: str
    null_when: str = ""
