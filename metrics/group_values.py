"""What an objective is about: one quantity of each group in each interval, of the table of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.groups import COLUMNS, PERCENTILES, RATIOS, SUMS, percentile, with_ratios
from tfrctrace.parsers.schema import TABLES

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.metrics.groups import Groups

UNITS: Final = {column.name: column.unit for column in TABLES["groups"]}

MEASURES: Final = {f"{measure}_ms": measure for measure in dict(PERCENTILES.values())}
"""Durations of which groups have buckets, by the name that stands for all samples."""

SINGLE_VALUES: Final = (*SUMS, *PERCENTILES, *RATIOS)
"""Columns of which a row has one value."""

_DURATIONS: Final = frozenset({*MEASURES, *PERCENTILES, *(name for name in RATIOS if name.endswith("_ms"))})
_SHARES: Final = {"min": 0.0, "median": 0.5, "max": 1.0}
_KEY: Final = ("group", "start_ns", "direction")
_MADE_OF: Final = {
    "retransmission_ratio": "tcp_data_segments",
    "rtt_mean_ms": "rtt_samples",
    "path_loss_ratio": "path_packets",
    "wifi_retry_ratio": "wifi_frames",
    "wifi_airtime_share": "wifi_timed_frames",
    "wifi_signal_mean_dbm": "wifi_signal_samples",
}
"""What a ratio is divided by."""


@dataclass(frozen=True, slots=True)
class GroupTerm:
    """A name, and how samples or directions become one number; empty for a column of one value."""

    name: str
    aggregation: str = ""


@dataclass(frozen=True, slots=True)
class GroupQuantity:
    """A term, or the ratio of two, of both directions of all groups unless one is chosen.

    Amounts and ratios are those of both directions together. Durations are those of each, because RTT samples
    of a direction belong to one side of the capture: mixed, the side with more packets would hide the other.
    """

    term: GroupTerm
    over: GroupTerm | None = None
    direction: str | None = None
    group: str | None = None

    @property
    def is_by_direction(self) -> bool:
        """Whether each direction has a value."""
        return any(term is not None and term.name in _DURATIONS for term in (self.term, self.over))

    @property
    def grows_with_time(self) -> bool:
        """Whether it is less in an interval of which the trace shows a part only: amounts and rates."""
        return self.over is None and (self.term.name in SUMS or UNITS.get(self.term.name) == "bit/s")


def values_by_interval(groups: Groups, quantity: GroupQuantity) -> pl.LazyFrame:
    """Return a query for the value of each interval in which a group has packets, and `n`.

    The columns are `group`, `start_ns`, `end_ns`, `direction` (null if both are together), `value` and `n`.

    `n` is what the value is made of: samples of a duration, what a ratio is divided by (packets, if that is
    not counted in packets, samples or connections), else packets. A ratio of sums leaves out directions in
    which one of both is not known.
    """
    import polars as pl

    # one query: many small ones would take longer to plan than to run
    rows, buckets = (_chosen(frame.lazy(), quantity) for frame in (groups.rows, groups.buckets))
    if not quantity.is_by_direction:
        rows, buckets = (one.with_columns(direction=pl.lit(None, pl.String)) for one in (rows, buckets))
    if groups.grouping.every_ns is None:
        # the directions of a group begin with different packets
        rows = rows.with_columns(pl.col("start_ns").min().over("group"))
        starts = rows.select("group", "start_ns").unique()
        buckets = buckets.drop("start_ns").join(starts, on="group", how="left", nulls_equal=True)
    found = rows.group_by(_KEY).agg(pl.col("end_ns").max())
    own = _term(rows, buckets, quantity.term, quantity.over)
    if quantity.over is not None:
        other = _term(rows, buckets, quantity.over, quantity.term)
        own = own.join(other, on=_KEY, how="full", coalesce=True, nulls_equal=True, suffix="_over")
        divisor = pl.col("value_over")
        own = own.select(
            *_KEY, value=pl.when(divisor != 0).then(pl.col("value") / divisor), n=pl.col("n_over")
        )
    found = found.join(own, on=_KEY, how="left", nulls_equal=True)
    columns = ("group", "start_ns", "end_ns", "direction", "value", "n")
    return found.with_columns(pl.col("n").fill_null(0)).select(columns)


def _chosen(frame: pl.LazyFrame, quantity: GroupQuantity) -> pl.LazyFrame:
    if quantity.direction is not None:
        frame = frame.filter(direction=quantity.direction)
    return frame if quantity.group is None else frame.filter(group=quantity.group)


def _term(
    rows: pl.LazyFrame, buckets: pl.LazyFrame, term: GroupTerm, beside: GroupTerm | None
) -> pl.LazyFrame:
    """Return value and n of a term; `beside` is the other one of a ratio."""
    if term.name in PERCENTILES:
        return _of_samples(buckets, *PERCENTILES[term.name])
    if term.name in MEASURES and term.aggregation != "mean":
        return _of_samples(buckets, MEASURES[term.name], _share(term.aggregation))
    if term.name in MEASURES:
        return _of_ratio(rows, f"{MEASURES[term.name]}_mean_ms")
    if term.name in RATIOS:
        return _of_ratio(rows, term.name)
    return _of_sum(rows, term.name, None if beside is None else beside.name)


def _share(aggregation: str) -> float:
    return _SHARES[aggregation] if aggregation in _SHARES else int(aggregation[1:]) / 100


def _of_samples(buckets: pl.LazyFrame, measure: str, share: float) -> pl.LazyFrame:
    return percentile(buckets.filter(measure=measure), list(_KEY), share)


def _of_ratio(rows: pl.LazyFrame, name: str) -> pl.LazyFrame:
    import polars as pl

    sums = rows.group_by(_KEY).agg(pl.col("end_ns").max(), *map(_sum, SUMS))
    n = pl.col(_MADE_OF.get(name, "packets")).fill_null(0).cast(pl.Int64)
    return with_ratios(sums).select(*_KEY, value=pl.col(name).cast(pl.Float64), n=n)


def _of_sum(rows: pl.LazyFrame, name: str, beside: str | None) -> pl.LazyFrame:
    import polars as pl

    if beside is not None and beside in COLUMNS:
        rows = rows.filter(pl.col(name).is_not_null() & pl.col(beside).is_not_null())
    amounts_of = "wifi_frames" if name.startswith("wifi_") else "packets"
    counted = amounts_of if beside is None or UNITS[name] else name
    sums = rows.group_by(_KEY).agg(_sum(name), _sum(counted).alias("n"))
    return sums.select(*_KEY, value=pl.col(name).cast(pl.Float64), n=pl.col("n").fill_null(0).cast(pl.Int64))


def _sum(name: str) -> pl.Expr:
    """Return the sum of what is known; null if nothing is."""
    import polars as pl

    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())
