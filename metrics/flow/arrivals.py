"""Received bytes in bins of time, of a trace that shows packets at their destination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

LAYERS: Final = ("agent", "routing", "ip", "queue", "mac", "phy", "link")
"""Layers of a simulator's nodes, the highest first: arrivals count at the highest that a flow shows."""

COLUMNS: Final = ("flow", "direction", "layer", "time_ns", "event", "point", "wire_bytes")
"""Columns of the table of packets that show arrivals."""


def arrival_bins(packets: Iterable[pl.DataFrame], width_ns: int, layer: str | None = None) -> pl.DataFrame:
    """Return bins of `width_ns`, counted from time 0, with the bytes that reached their destination.

    `packets` are frames with the columns `COLUMNS`; the result has `flow`,
    `direction`, `time_ns`, `width_ns` and `received_bytes`: whole packets as the layer sees them.
    `layer` chooses the one that counts.
    """
    import polars as pl

    parts = [_counted(frame, width_ns) for frame in packets]
    none = {"flow": pl.UInt32, "direction": pl.String, "layer": pl.String, "time_ns": pl.Int64}
    parts.append(pl.DataFrame(schema={**none, "received_bytes": pl.UInt64}))
    every = pl.concat(parts).group_by(*none).agg(pl.col("received_bytes").sum())
    rank = layer_rank()
    if layer is not None:
        every = every.filter(pl.col("layer") == layer)
    highest = rank == rank.min().over("flow", "direction")
    return (
        every.filter(highest)
        .with_columns(pl.lit(width_ns, dtype=pl.Int64).alias("width_ns"))
        .select("flow", "direction", "time_ns", "width_ns", "received_bytes")
        .sort("flow", "direction", "time_ns")
    )


def layer_rank() -> pl.Expr:
    """Return the place of the column `layer` among `LAYERS`, the highest first; of another, one more."""
    import polars as pl

    places = {name: place for place, name in enumerate(LAYERS)}
    # a table without a row has no type of its own
    named = pl.col("layer").cast(pl.String)
    return named.replace_strict(places, default=len(LAYERS), return_dtype=pl.Int64)


def _counted(packets: pl.DataFrame, width_ns: int) -> pl.DataFrame:
    import polars as pl

    start = pl.col("time_ns").floordiv(width_ns) * width_ns
    arrived = (pl.col("event") == "received") & (pl.col("point") == "destination")
    return (
        packets.filter(arrived & pl.col("flow").is_not_null())
        .group_by("flow", "direction", "layer", start.alias("time_ns"))
        .agg(pl.col("wire_bytes").cast(pl.UInt64).sum().alias("received_bytes"))
    )
