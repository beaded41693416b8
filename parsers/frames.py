"""Frames put together from parts of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.base.memory import trim_heap

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

_FRAMES_UNTIL_TRIM: Final = 8
"""Frames of which only a part is kept, after which freed memory is given back."""


def joined_frame(frames: Iterable[pl.DataFrame], empty: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `frames`, or `empty` if there are none.

    Parts stay where they are in memory. Joined in one piece, columns would be there twice for a while: the
    allocator of Polars gives the memory of small parts back only later. A column with one value throughout,
    or with none, takes no memory: of the many columns of a flood of small flows most do.
    """
    import polars as pl

    parts: dict[str, list[pl.Series]] = {name: [] for name in empty.columns}
    heights: list[int] = []
    for number, frame in enumerate(frames):
        if number % _FRAMES_UNTIL_TRIM == _FRAMES_UNTIL_TRIM - 1:
            trim_heap()
        if frame.height:
            heights.append(frame.height)
            for name, column in parts.items():
                own = frame[name]
                # one row stands for all if they are equal
                column.append(_copied(own[:1] if _is_constant(own) else own))
    trim_heap()
    if not heights:
        return empty
    columns: list[pl.Series | pl.Expr] = []
    for name, kind in empty.schema.items():
        column = parts.pop(name)
        if all(len(one) == 1 for one in column) and _is_constant(pl.concat(column)):
            columns.append(pl.lit(column[0][0], dtype=kind).alias(name))
        else:
            pairs = zip(column, heights, strict=True)
            whole = [one if len(one) == height else one.new_from_index(0, height) for one, height in pairs]
            columns.append(pl.concat(whole))
    # what is constant alone would be one row
    numbered = pl.DataFrame({"": pl.int_range(sum(heights), dtype=pl.UInt32, eager=True)})
    return numbered.with_columns(columns).drop("")


def _is_constant(column: pl.Series) -> bool:
    """Return whether all values are equal, or null."""
    if column.null_count():
        return column.null_count() == len(column)
    return bool((column == column[0]).all())


def _copied(column: pl.Series) -> pl.Series:
    """Return the same values in memory of their own: a column of the core keeps all others in memory."""
    import polars as pl

    if column.dtype == pl.String or len(column) == 1:
        return pl.Series(column.name, column.to_list(), dtype=column.dtype)
    return pl.concat([column[:1], column[1:]], rechunk=True)
