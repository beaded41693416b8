"""Two tables in parts of bounded size that have the same flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl


def parts_by_flows(
    frames: Iterable[pl.DataFrame], others: Iterable[pl.DataFrame]
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Give the rows of two tables, each in order of flows, in parts that have all rows of the same flows."""
    import polars as pl

    rest, others_rest = iter(frames), iter(others)
    # an empty table has a frame, too
    rows, other = next(rest), next(others_rest)
    for frame in rest:
        rows = pl.concat([rows, frame])
        last = _last_flow(rows)
        while _last_flow(other) < last and (more := next(others_rest, None)) is not None:
            other = pl.concat([other, more])
        # rows of the last flow may follow
        yield rows.filter(pl.col("flow") < last), other.filter(pl.col("flow") < last)
        rows, other = (one.filter(pl.col("flow") >= last) for one in (rows, other))
    yield rows, pl.concat([other, *others_rest])


def _last_flow(frame: pl.DataFrame) -> int:
    """Return the largest number of a flow; 0 without rows."""
    last: int = frame["flow"][-1] if frame.height else 0
    return last
