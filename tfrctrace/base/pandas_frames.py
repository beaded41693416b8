"""Frames of Polars as frames of pandas, without pyarrow, which Polars' own conversion needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def to_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """Return `frame` as a frame of pandas, with the types that Polars' own conversion gives.

    A missing number is NaN, which makes integers with gaps floats.
    """
    import pandas as pd

    columns = {name: _column(frame[name]) for name in frame.columns}
    return pd.DataFrame(columns, index=pd.RangeIndex(frame.height))


def _column(column: pl.Series) -> pd.Series[Any]:
    import pandas as pd
    import polars as pl

    kind = column.dtype
    if kind.is_integer() and column.null_count():
        return pd.Series(column.cast(pl.Float64).to_numpy())
    if kind.is_numeric() or kind == pl.Duration or (kind == pl.Boolean and not column.null_count()):
        return pd.Series(column.to_numpy())
    if isinstance(kind, pl.Datetime):
        times = pd.DatetimeIndex(column.to_numpy())
        zone = kind.time_zone
        return pd.Series(times if zone is None else times.tz_localize("UTC").tz_convert(zone))
    # pandas 3 has a type for text, pandas 2 has not
    text = pd.Series(["text"]).dtype if kind == pl.String else object
    return pd.Series(column.to_list(), dtype=text)
