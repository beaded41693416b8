"""Tables in parts of bounded size that have the same flows."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl


def parts_by_flows(*tables: Iterable[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, ...]]:
    """Give the rows of tables, each in order of flows, in parts that have all rows of the same flows."""
    import polars as pl

    streams = [iter(frames) for frames in tables]
    # an empty table has a frame, too
    held = [next(stream) for stream in streams]
    for frame in streams[0]:
        held[0] = pl.concat([held[0], frame])
        last = _last_flow(held[0])
        for number, stream in enumerate(streams[1:], start=1):
            while _last_flow(held[number]) < last and (more := next(stream, None)) is not None:
                held[number] = pl.concat([held[number], more])
        # rows of the last flow may follow
        yield tuple(rows.filter(pl.col("flow") < last) for rows in held)
        held = [rows.filter(pl.col("flow") >= last) for rows in held]
    last = _last_flow(held[0])
    for number, stream in enumerate(streams[1:], start=1):
        while _last_flow(held[number]) <= last and (more := next(stream, None)) is not None:
            held[number] = pl.concat([held[number], more])
    yield tuple(rows.filter(pl.col("flow") <= last) for rows in held)
    # of a flood, most flows may have no row in the first table
    rest = [
        chain([rows.filter(pl.col("flow") > last)], stream)
        for rows, stream in zip(held[1:], streams[1:], strict=True)
    ]
    if rest:
        yield from ((held[0].clear(), *part) for part in parts_by_flows(*rest))


def _last_flow(frame: pl.DataFrame) -> int:
    """Return the largest number of a flow; 0 without rows."""
    last: int = frame["flow"][-1] if frame.height else 0
    return last
