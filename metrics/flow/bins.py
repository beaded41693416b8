"""Time bins of flows: joined to wider ones, and filled with the zeros between packets.

Works on the table of bins (columns as in `tfrctrace.parsers.schema.BINS`), which has no row where
nothing was sent. Counts and bytes stay integers; nothing is divided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

COUNTS: Final = (
    "packets",
    "wire_bytes",
    "payload_bytes",
    "unique_bytes",
    "retransmitted_packets",
    "rtt_samples",
)
"""Columns that add up when bins are joined; a bin without packets has 0 in each."""

NULLABLE_COUNTS: Final = ("ect1_packets", "ce_packets", "delay_samples", "lost_packets")
"""The same where the trace shows IP headers, or both ends of a flow; null in every row of other flows."""

MOST_ROWS: Final = 50_000_000
"""Rows of evenly spaced bins, 6 GB: a clock that jumps by years would fill any memory."""

_NICE_FACTORS: Final = (1, 2, 5)


def bin_width_for(span_ns: int, base_ns: int, most_bins: int) -> int:
    """Return the width in ns (1, 2, 5, 10, ... times `base_ns`) that cuts `span_ns` into few enough bins.

    It is the smallest such width with at most `most_bins` bins.
    """
    if base_ns <= 0 or most_bins <= 0:
        raise ValueError("`base_ns` and `most_bins` must be positive")
    decade = 1
    while True:
        for factor in _NICE_FACTORS:
            width_ns = base_ns * factor * decade
            if span_ns <= width_ns * most_bins:
                return width_ns
        decade *= 10


def time_span_ns(bins: pl.DataFrame) -> tuple[int, int]:
    """Return the start of the first and the end of the last bin in ns; `bins` must not be empty."""
    import polars as pl

    # a clock may show the last moment of 64 bits, and its bin ends later
    ends_ns = pl.col("time_ns").cast(pl.Int128) + pl.col("width_ns")
    start_ns, end_ns = bins.select(pl.col("time_ns").min(), ends_ns.max().alias("end_ns")).row(0)
    return int(start_ns), int(end_ns)


def coarser_bins(bins: pl.DataFrame, width_ns: int, *, origin_ns: int | None = None) -> pl.DataFrame:
    """Return `bins` joined into bins of `width_ns` (ns) that are counted from `origin_ns`.

    Counts are summed, the smallest and largest RTT and delay (ms) are kept, their means are weighted with
    the number of samples; they are null where no bin has a sample. Without `origin_ns` the first bin
    begins where the first of `bins` does. `width_ns` must be a multiple of every width in `bins`, else a
    bin would have to be cut.
    """
    import polars as pl

    if width_ns <= 0 or not (width_ns % bins["width_ns"] == 0).all():
        raise ValueError(f"a width of {width_ns} ns is not a multiple of the width of the bins")
    if bins.is_empty():
        return bins
    first = bins["time_ns"].min()
    if origin_ns is None and (bins["width_ns"] == width_ns).all() and _is_even(bins["time_ns"], width_ns):
        return bins.sort("flow", "direction", "time_ns")
    origin = pl.lit(first if origin_ns is None else origin_ns, dtype=pl.Int64)
    start = origin + (pl.col("time_ns") - origin).floordiv(width_ns) * width_ns
    return (
        bins.sort("flow", "direction", "time_ns")
        .group_by("flow", "direction", start.alias("time_ns"), maintain_order=True)
        .agg(
            pl.lit(width_ns, dtype=pl.Int64).alias("width_ns"),
            *(pl.col(name).sum() for name in COUNTS),
            *(_where_known(name, pl.col(name).sum()) for name in _nullable(bins)),
            *_joined_samples("rtt"),
            *_joined_samples("delay"),
        )
        .select(bins.columns)
    )


def _is_even(times_ns: pl.Series, width_ns: int) -> bool:
    """Return whether times are whole bins apart, so that no bin of `width_ns` holds two of them."""
    return bool(((times_ns - times_ns.min()) % width_ns == 0).all())


def _joined_samples(kind: str) -> tuple[pl.Expr, ...]:
    """Return smallest, mean and largest of all samples of bins that are joined."""
    import polars as pl

    samples, mean_ms = pl.col(f"{kind}_samples"), pl.col(f"{kind}_mean_ms")
    # the sum of all samples in ms; a bin without samples has a null mean and adds nothing
    joined_mean_ms = (mean_ms * samples).sum() / samples.sum()
    return (
        pl.col(f"{kind}_min_ms").min(),
        pl.when(samples.sum() > 0).then(joined_mean_ms).alias(f"{kind}_mean_ms"),
        pl.col(f"{kind}_max_ms").max(),
    )


def _nullable(bins: pl.DataFrame) -> list[str]:
    """Return the nullable counts of `bins`; results that an earlier version saved do not have all."""
    return [name for name in NULLABLE_COUNTS if name in bins.columns]


def _where_known(name: str, value: pl.Expr, *of: str) -> pl.Expr:
    """Return `value` under the name of a column, null if that is null in every row (of a group `of`)."""
    import polars as pl

    is_known = pl.col(name).is_not_null().any()
    return pl.when(is_known.over(of) if of else is_known).then(value).alias(name)


def evenly_spaced(bins: pl.DataFrame) -> pl.DataFrame:
    """Return `bins` with a row for every bin between the first and the last of each flow and direction.

    Added rows have 0 in every count (nothing was captured then: a measured zero) and null RTT. All bins of
    one flow and direction must have one width. The result has as many rows as the flows have bins of life,
    which for many long flows is far more than `bins`.
    """
    import polars as pl

    key = ["flow", "direction"]
    life = bins.group_by(*key, maintain_order=True).agg(
        pl.col("time_ns").min().alias("_first"),
        pl.col("time_ns").max().alias("_last"),
        pl.col("width_ns").first(),
        pl.col("width_ns").n_unique().alias("_widths"),
    )
    if (life["_widths"] > 1).any():
        raise ValueError("bins of one flow have different widths")
    rows = int(((life["_last"] - life["_first"]) // life["width_ns"] + 1).sum())
    if rows > MOST_ROWS:
        raise UsageError(
            f"the flows last {rows:,} bins, and a table has at most {MOST_ROWS:,}", hint="make the bins wider"
        )
    grid = (
        life.with_columns(
            pl.int_ranges("_first", pl.col("_last") + 1, pl.col("width_ns"), dtype=pl.Int64).alias("time_ns")
        )
        .drop("_first", "_last", "_widths")
        .explode("time_ns")
    )
    return (
        grid.join(bins.drop("width_ns"), on=[*key, "time_ns"], how="left", maintain_order="left")
        .with_columns(
            pl.col(*COUNTS).fill_null(0),
            *(_where_known(name, pl.col(name).fill_null(0), *key) for name in _nullable(bins)),
        )
        .select(bins.columns)
        .sort(*key, "time_ns")
    )


def summed_over_flows(bins: pl.DataFrame) -> pl.DataFrame:
    """Return one row per time with the counts of all flows and directions summed.

    Columns are `time_ns`, `width_ns` and the counts. All bins must have one width and one origin, as
    `coarser_bins` makes them.
    """
    import polars as pl

    return (
        bins.group_by("time_ns", maintain_order=True)
        .agg(pl.col("width_ns").first(), *(pl.col(name).sum() for name in COUNTS))
        .sort("time_ns")
    )
