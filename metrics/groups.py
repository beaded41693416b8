"""Tables of groups by interval: they add up exactly over flows, files and machines."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from tfrctrace.base.errors import UsageError
from tfrctrace.parsers.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from tfrctrace.base.grouping import Grouping

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")

COLUMNS: Final = tuple(column.name for column in TABLES["groups"])

_KEY: Final = ("group", "direction")

_TIMES: Final = ("start_ns", "end_ns")

PERCENTILES: Final = {
    "rtt_min_ms": ("rtt", 0.0),
    "rtt_p50_ms": ("rtt", 0.5),
    "rtt_p95_ms": ("rtt", 0.95),
    "rtt_p99_ms": ("rtt", 0.99),
    "rtt_max_ms": ("rtt", 1.0),
    "connect_p50_ms": ("connect", 0.5),
    "connect_p95_ms": ("connect", 0.95),
    "response_p50_ms": ("response", 0.5),
    "response_p95_ms": ("response", 0.95),
    "dns_p50_ms": ("dns", 0.5),
    "dns_p95_ms": ("dns", 0.95),
    "delay_p50_ms": ("delay", 0.5),
    "delay_p95_ms": ("delay", 0.95),
    "echo_p50_ms": ("echo", 0.5),
    "echo_p95_ms": ("echo", 0.95),
    "oneway_delay_p50_ms": ("oneway_delay", 0.5),
    "oneway_delay_p95_ms": ("oneway_delay", 0.95),
    "oneway_variation_p50_ms": ("oneway_variation", 0.5),
    "oneway_variation_p95_ms": ("oneway_variation", 0.95),
}
"""Columns that are read from buckets: the measure, and the share of samples at or below the value."""

RATIOS: Final = (
    "goodput_bps",
    "retransmission_ratio",
    "rtt_mean_ms",
    "promised_bps",
    "promised_share",
    "path_loss_ratio",
    "wifi_retry_ratio",
    "wifi_airtime_share",
    "wifi_signal_mean_dbm",
)
"""Columns that follow from others."""

SUMS: Final = tuple(name for name in COLUMNS if name not in {*_KEY, *_TIMES, *PERCENTILES, *RATIOS})
"""Columns that add up. Null stands for nothing known, and is left out of sums."""


@dataclass(frozen=True)
class Groups:
    """Groups by interval: integers that add up, and what follows from them."""

    grouping: Grouping
    rows: pl.DataFrame
    """A row for each direction of a group in each interval, with the columns of `groups`."""
    buckets: pl.DataFrame
    """The samples of durations, with the columns of `group_buckets`."""

    def __add__(self, other: Groups) -> Groups:
        """Return the groups of both traces; what they share is summed."""
        return sum_groups((self, other))

    def renamed(self, names: pl.DataFrame) -> Groups:
        """Return the groups under other names, those with the same name summed.

        `names` has the columns `group`, `direction` and `name`. Groups that it lacks have no name.
        """
        keys = list(_KEY)

        def under(frame: pl.DataFrame) -> pl.DataFrame:
            named = frame.join(names, on=keys, how="left", maintain_order="left")
            return named.with_columns(group="name").select(frame.columns)

        return _summed(self.grouping, under(self.rows), under(self.buckets))

    def promised(self, rates_bps: Mapping[str, float]) -> Groups:
        """Return the groups with the rates that were promised to them, by name."""
        import polars as pl

        if not rates_bps:
            return self
        rate = pl.col("group").replace_strict(rates_bps, default=None, return_dtype=pl.Float64)
        rows = self.rows.with_columns(promised_bps=rate)
        share = pl.col("goodput_bps") / pl.col("promised_bps")
        return replace(self, rows=rows.with_columns(promised_share=share))

    def whole(self) -> Groups:
        """Return the sum over all intervals, one row for each direction of a group."""
        return _summed(replace(self.grouping, every_ns=None), self.rows, self.buckets)

    def in_total(self) -> Groups:
        """Return the sum over all groups and both directions, by interval; each packet counts once.

        A packet between two hosts is sent by one and received by the other: only what is sent is summed.
        """
        import polars as pl

        def once(frame: pl.DataFrame) -> pl.DataFrame:
            is_received = pl.col("direction") == "received"
            return frame.filter(~is_received).with_columns(
                group=pl.lit("all", pl.String), direction=pl.lit("both", pl.String)
            )

        return _summed(self.grouping, once(self.rows), once(self.buckets))


def sum_groups(parts: Iterable[Groups]) -> Groups:
    """Return the sum of tables with the same grouping, in whatever order they come."""
    import polars as pl

    tables = list(parts)
    grouping = tables[0].grouping
    if any(table.grouping != grouping for table in tables):
        raise UsageError("groups add up only if they are grouped alike, over the same intervals")
    return _summed(
        grouping, pl.concat([table.rows for table in tables]), pl.concat([table.buckets for table in tables])
    )


def _summed(grouping: Grouping, rows: pl.DataFrame, buckets: pl.DataFrame) -> Groups:
    """Return groups of which each has one row per direction and interval."""
    import polars as pl

    key: list[str] = list(_KEY) if grouping.every_ns is None else [*_KEY, "start_ns"]
    times = (
        [pl.col("end_ns").max()] if "start_ns" in key else [pl.col("start_ns").min(), pl.col("end_ns").max()]
    )
    sums = [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()) for name in SUMS]
    rows = rows.group_by(key).agg(*times, *sums)
    of_bucket = [*key, "measure", "from_ns", "to_ns"]
    start = [] if "start_ns" in key else [pl.col("start_ns").min()]
    buckets = buckets.group_by(of_bucket).agg(*start, pl.col("samples").sum())
    rows = with_ratios(rows)
    for measure, shares in _shares_by_measure().items():
        of_measure = buckets.filter(measure=measure)
        if of_measure.is_empty():
            rows = rows.with_columns(pl.lit(None, pl.Float64).alias(name) for name in shares)
        else:
            found = percentiles(of_measure, key, shares).drop("n")
            rows = rows.join(found, on=key, how="left", nulls_equal=True)
    if "start_ns" not in key:
        # a bucket stands in the interval of its row, which may begin earlier than those that were summed
        starts = rows.select(*key, "start_ns")
        buckets = buckets.drop("start_ns").join(starts, on=key, how="left", nulls_equal=True)
    columns = [column.name for column in TABLES["group_buckets"]]
    return Groups(
        grouping,
        _in_order(rows, key).select(COLUMNS),
        _in_order(buckets, [*key, "measure", "from_ns"]).select(columns),
    )


def with_ratios(rows: Frame) -> Frame:
    """Return rows of sums with the columns `RATIOS`, which follow from them."""
    import polars as pl

    def over(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
        return pl.when(whole > 0).then(part / whole)

    duration_ns = pl.col("end_ns") - pl.col("start_ns")
    return rows.with_columns(
        goodput_bps=over(pl.col("goodput_bytes") * 8.0 * 1e9, duration_ns),
        retransmission_ratio=over(pl.col("retransmitted_segments"), pl.col("tcp_data_segments")),
        rtt_mean_ms=over(pl.col("rtt_sum_ns"), pl.col("rtt_samples")) / 1e6,
        # known of sites only
        promised_bps=pl.lit(None, pl.Float64),
        promised_share=pl.lit(None, pl.Float64),
        path_loss_ratio=over(pl.col("path_lost_packets"), pl.col("path_packets")),
        wifi_retry_ratio=over(pl.col("wifi_retry_frames"), pl.col("wifi_frames")),
        wifi_airtime_share=over(pl.col("wifi_airtime_ns"), duration_ns),
        wifi_signal_mean_dbm=over(pl.col("wifi_signal_sum_dbm"), pl.col("wifi_signal_samples")),
    )


def _shares_by_measure() -> dict[str, dict[str, float]]:
    """Return the columns of each measure that are read from buckets, with their shares."""
    found: dict[str, dict[str, float]] = {}
    for name, (measure, share) in PERCENTILES.items():
        found.setdefault(measure, {})[name] = share
    return found


def percentile(buckets: Frame, key: list[str], share: float) -> Frame:
    """Return one of `percentiles` as `value`."""
    return percentiles(buckets, key, {"value": share})


def percentiles(buckets: Frame, key: list[str], shares: Mapping[str, float]) -> Frame:
    """Return the samples of nearest rank in ms of each row that has samples, and their number `n`.

    A sample is taken for the middle of its bucket. `shares` has those at or below each value, by its name.
    """
    import polars as pl

    samples = pl.col("samples")
    middle_ns = pl.col("from_ns") + (pl.col("to_ns") - pl.col("from_ns") + 1) // 2

    def at(share: float) -> pl.Expr:
        rank = (share * samples.sum().cast(pl.Float64)).ceil().clip(1)
        return middle_ns.filter(samples.cum_sum() >= rank).first()

    return (
        # sorted are only the columns that are needed: tables have millions of rows
        buckets.select(*key, "from_ns", "to_ns", "samples")
        .sort("from_ns")
        .group_by(key, maintain_order=True)
        .agg(**{name: at(share) for name, share in shares.items()}, n=samples.sum().cast(pl.Int64))
        .with_columns(pl.col(*shares) / 1e6)
    )


def _in_order(frame: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Return rows in the order of the core: by group, interval and direction, then by the rest of `key`."""
    import polars as pl

    names = frame["group"].unique().to_list()
    order = {name: place for place, name in enumerate(sorted(names, key=_place_of))}
    return frame.sort(
        pl.col("group").replace_strict(order, return_dtype=pl.UInt32),
        *("start_ns" for name in key if name == "start_ns"),
        pl.col("direction").is_in(["received", "rev"]),
        *(name for name in key if name not in {*_KEY, "start_ns"}),
    )


def _place_of(name: str | None) -> tuple[int, int, str]:
    """Return the place of a group among others: addresses and numbers by value, then names."""
    if name is None:
        return (4, 0, "")
    if name.isascii() and name.isdigit():
        return (2, int(name), "")
    try:
        network = ipaddress.ip_network(name, strict=False)
    except ValueError:
        return (3, 0, name)
    return (int(network.version == 6), int(network.network_address), "")
