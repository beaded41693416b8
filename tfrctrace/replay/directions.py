"""Which stations of an 802.11 network upload and which download, from the directions of its frames.

A data frame to the distribution system (To-DS) names the network as its receiver, one from it (From-DS) as
its transmitter. Acknowledgements and feedback go against the data, so the direction with more bytes decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

_GROUP_ADDRESS: Final = "^.[13579bdf]:"
"""Of a broadcast or multicast frame, which is for no station of its own."""


def downloads_per_window(data: pl.DataFrame) -> pl.DataFrame:
    """Return `window` and `downloads`: stations that are sent more bytes than they send.

    `data` has a row for each data frame: `window`, `transmitter`, `receiver`, `bssid` and `bytes`.
    """
    import polars as pl

    is_down = pl.col("transmitter") == pl.col("bssid")
    is_up = pl.col("receiver") == pl.col("bssid")
    return (
        data.filter(is_down | is_up, ~pl.col("receiver").str.contains(_GROUP_ADDRESS))
        .with_columns(
            pl.when(is_down).then("receiver").otherwise("transmitter").alias("station"),
            is_down.alias("is_down"),
        )
        .group_by("window", "station")
        .agg(
            pl.col("bytes").filter(pl.col("is_down")).sum().alias("down"),
            pl.col("bytes").filter(~pl.col("is_down")).sum().alias("up"),
        )
        .group_by("window")
        .agg((pl.col("down") > pl.col("up")).sum().cast(pl.Int64).alias("downloads"))
    )
