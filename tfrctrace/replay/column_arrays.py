"""Columns of frames as contiguous arrays for the core, and frames of columns.

A replay looks at each direction of each flow by itself, with few rows. A query of Polars takes a tenth of a
millisecond however few they are, so what every direction needs is done with arrays and whole columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl


def floats(column: pl.Series, divisor: float = 1.0) -> npt.NDArray[np.float64]:
    """Return the values divided by `divisor`, null as NaN."""
    import numpy as np
    import polars as pl

    values = column.cast(pl.Float64).to_numpy()
    return np.ascontiguousarray(values if divisor == 1.0 else values / divisor)


def wholes(column: pl.Series) -> npt.NDArray[Any]:
    """Return whole numbers; nulls are not allowed."""
    import numpy as np

    return np.ascontiguousarray(column.to_numpy())


def sent_between(sends: pl.DataFrame, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the payload in bytes sent in each interval that ends at (and includes) one of `times`."""
    import numpy as np

    totals = np.concatenate([[0], np.cumsum(sends["payload_bytes"].to_numpy(), dtype=np.int64)])
    return np.diff(totals[np.searchsorted(sends["time_ns"].to_numpy(), times, "right")], prepend=0)


def constant(name: str, value: object, dtype: pl.DataType, length: int) -> pl.Series:
    """Return a column with one value."""
    import polars as pl

    return pl.Series(name, [value], dtype=dtype).new_from_index(0, length)


def with_series(frame: pl.DataFrame, *columns: pl.Series) -> pl.DataFrame:
    """Return `frame` with these columns, which replace those of the same names."""
    import polars as pl

    named = {column.name: column for column in (*frame.get_columns(), *columns)}
    return pl.DataFrame(list(named.values()))


def in_order_of_time(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in order of `time_ns`, those of one time in the order that they have."""
    return frame if frame["time_ns"].is_sorted() else frame.sort("time_ns", maintain_order=True)
