"""The rows of one direction of a flow in a table of all flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


class DirectionRows:
    """A table of all flows, of which the rows of one direction are found without a look at the others.

    To filter the table for each of many flows would take the time of all their rows each time.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        """Take a table with the columns `flow` and `direction`, which are left out of the rows."""
        import numpy as np
        import polars as pl

        is_reverse = (pl.col("direction") == "rev").cast(pl.UInt64)
        keys = rows.select(2 * pl.col("flow").cast(pl.UInt64) + is_reverse).to_series().to_numpy()
        order = np.argsort(keys, kind="stable").astype(np.uint32)
        # a part of the sorted rows is no copy
        self._rows = rows.drop("flow", "direction")[order]
        known, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
        self._bounds = dict(
            zip(known.tolist(), zip(starts.tolist(), counts.tolist(), strict=True), strict=True)
        )

    def of(self, facts: Mapping[str, object]) -> pl.DataFrame:
        """Return the rows of the direction that `facts` are of, in the order of the table; maybe none."""
        flow = facts["flow"]
        assert isinstance(flow, int)
        start, count = self._bounds.get(2 * flow + (facts["direction"] == "rev"), (0, 0))
        return self._rows.slice(start, count)
