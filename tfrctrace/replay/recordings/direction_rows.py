"""The rows of one direction of a flow in a table of all flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


class DirectionRows:
    """A table in order of flow and direction, of which the rows of one direction are a slice.

    To filter the table for each of many flows would take the time of all their rows each time.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        """Take a table with the columns `flow` and `direction`; rows of a direction keep their order."""
        import polars as pl

        self._rows = rows.sort("flow", "direction", maintain_order=True)
        places = self._rows.select("flow", "direction").with_row_index("start").group_by("flow", "direction")
        bounds = places.agg(pl.col("start").min(), pl.col("start").len().alias("length"))
        self._bounds = {
            (flow, direction): (start, length) for flow, direction, start, length in bounds.iter_rows()
        }

    def of(self, facts: Mapping[str, object]) -> pl.DataFrame:
        """Return the rows of the direction that `facts` are of, maybe none."""
        start, length = self._bounds.get((facts["flow"], facts["direction"]), (0, 0))
        return self._rows[start : start + length]
