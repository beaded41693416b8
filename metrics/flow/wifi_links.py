"""802.11 links over time: frames, retries, rate and signal from one station to another, in bins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.flow.bins import bin_width_for
from tfrctrace.parsers.schema import polars_type

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.parsers.schema import ColumnType

_LINK: Final = ("transmitter", "receiver")

NARROWEST_NS: Final = 1_000_000
"""Narrowest bin: a radio sends a handful of frames in a millisecond."""

_FRAMES_IN_BIN: Final = 20
"""Mean frames in a bin of the largest link; with fewer, each frame would move the share of retries."""

_FEWEST_BINS: Final = 40

LINK_BINS: Final[dict[str, ColumnType]] = {
    "transmitter": "string",
    "receiver": "string",
    "time_ns": "int64",
    "width_ns": "int64",
    "frames": "uint32",
    "retry_frames": "uint32",
    "rate_mean_mbps": "float64",
    "signal_min_dbm": "int64",
    "signal_mean_dbm": "float64",
    "signal_max_dbm": "int64",
}
"""Columns of `link_bins`; those of rate and signal are null where the radio noted none."""


def link_bins(samples: pl.DataFrame, links: int, most_bins: int) -> pl.DataFrame:
    """Return frames, retries, rate and signal of the `links` with most frames, in at most `most_bins` bins.

    `samples` has the columns of `tfrctrace.parsers.schema.LINK_SAMPLES`. Links are pairs of one transmitter
    that is known and one receiver: nobody acknowledges, and so nobody repeats, what goes to a group.
    Rates are means of the frames that have one (Mbit/s), signals means in dBm. Bins without a frame
    have no row.
    """
    import polars as pl

    to_one = samples.filter(
        pl.col("transmitter").is_not_null() & ~pl.col("receiver").str.contains("^.[13579bdf]:")
    )
    chosen = (
        to_one.group_by(_LINK)
        .agg(pl.len().alias("number"))
        .sort("number", *_LINK, descending=[True, False, False])
        .head(links)
    )
    own = to_one.join(chosen.select(_LINK), on=_LINK, how="semi")
    if own.is_empty():
        return pl.DataFrame(schema={name: polars_type(kind) for name, kind in LINK_BINS.items()})
    first_ns, last_ns = own.select(pl.col("time_ns").min(), pl.col("time_ns").max().alias("last")).row(0)
    fitting = min(max(int(chosen["number"][0]) // _FRAMES_IN_BIN, _FEWEST_BINS), most_bins)
    width_ns = bin_width_for(last_ns - first_ns + 1, NARROWEST_NS, fitting)
    start = first_ns + (pl.col("time_ns") - first_ns).floordiv(width_ns) * width_ns
    return (
        own.group_by(*_LINK, start.alias("time_ns"))
        .agg(
            pl.lit(width_ns, dtype=pl.Int64).alias("width_ns"),
            pl.len().alias("frames"),
            pl.col("retry").sum().cast(pl.UInt32).alias("retry_frames"),
            pl.col("rate_mbps").mean().alias("rate_mean_mbps"),
            pl.col("signal_dbm").min().alias("signal_min_dbm"),
            pl.col("signal_dbm").mean().alias("signal_mean_dbm"),
            pl.col("signal_dbm").max().alias("signal_max_dbm"),
        )
        .join(chosen, on=_LINK)
        .sort("number", *_LINK, "time_ns", descending=[True, False, False, False])
        .select(pl.col(name).cast(polars_type(kind)) for name, kind in LINK_BINS.items())
    )
