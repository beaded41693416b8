"""The first packets of each class of retransmissions and late packets, to be looked up in the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

FIRST_LOSSES: Final = {"flow": "uint32", "direction": "string", "class": "string", "frames": "string"}
"""Columns of `first_losses`: `frames` are numbers of packets in their source, as `12, 40`."""

MOST_FRAMES: Final = 20
"""Packets of a direction and class."""


def first_losses(losses: pl.DataFrame) -> pl.DataFrame:
    """Return the first packets of each class of each direction of the table of losses."""
    import polars as pl

    first = pl.col("packet").head(MOST_FRAMES).cast(pl.String)
    return (
        losses.group_by("flow", "direction", "class", maintain_order=True)
        .agg(first.str.join(", ").alias("frames"))
        .with_columns(pl.col("direction", "class").cast(pl.String))
        .sort("flow", "direction", "class")
    )
