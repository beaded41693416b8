"""Columns of frames as contiguous arrays for the core."""

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

    values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
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
