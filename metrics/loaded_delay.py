"""Delay under load: round-trip times of a group while its link is idle, and while it is loaded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.groups import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tfrctrace.metrics.groups import Groups

LOADED_SHARE: Final = 0.8
"""Share of the link's rate above which an interval is loaded."""

IDLE_SHARE: Final = 0.2
"""Share of it below which an interval is idle."""

_HELD_SHARE: Final = 0.5
"""Share of an interval in which the path holds back flows."""

LOADING_SUMS: Final = ("bottleneck_ns", "shared_bottleneck_ns", "policer_ns", "mark_ns")
"""Columns of groups: time of flows that took what the path had. Losses without a queue show no load."""

LEAST_SAMPLES: Final = 20

_RATE_SHARE: Final = 0.99

MEASURES: Final = ("rtt", "echo")
"""Durations of which an increase is sought: of data and its acknowledgements, and of `ping`."""


@dataclass(frozen=True, slots=True)
class LoadedDelay:
    """The delay of one direction of a group, idle and loaded. Null is unknown: too few samples."""

    group: str | None
    direction: str
    measure: str
    """`rtt` or `echo`."""
    idle_samples: int
    idle_p50_ms: float | None
    idle_p95_ms: float | None
    loaded_samples: int
    loaded_p50_ms: float | None
    loaded_p95_ms: float | None
    increase_ms: float | None
    """Of the median."""


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """When a link was idle and loaded."""

    rates_bps: dict[str, float]
    """The rate of each direction that is taken for the link's: its 99th percentile, or what was promised."""
    idle_s: float
    loaded_s: float
    between_s: float
    loads: pl.DataFrame
    """`start_ns` and `load` of each interval with packets: `idle`, `loaded`, or null between them."""


def link_load(link: Groups, capacity_bps: float | None = None) -> LinkLoad:
    """Return when a link was loaded: groups by link, over intervals.

    An interval is loaded if the rate of a direction is above a share of the link's, or the path holds back
    flows for half of it, where `link` has causes; idle if neither, and both rates are low.
    """
    import polars as pl

    every_ns = link.grouping.every_ns
    if every_ns is None:
        raise UsageError("delay under load is that of intervals", hint="give their width, such as 1s")
    rate = pl.col("wire_bytes").sum() * 8e9 / every_ns
    rows = link.rows.group_by("start_ns", "direction").agg(
        rate_bps=rate, held=pl.sum_horizontal(pl.col(LOADING_SUMS).sum()) / every_ns
    )
    if capacity_bps is None:
        top = pl.col("rate_bps").quantile(_RATE_SHARE, interpolation="higher").over("direction")
    else:
        top = pl.lit(capacity_bps)
    rows = rows.with_columns(share=pl.col("rate_bps") / top)
    busiest = rows.group_by("direction").agg(pl.col("rate_bps").sum())
    # acknowledgements alone load nothing
    main = busiest.filter(pl.col("rate_bps") >= pl.col("rate_bps").max() * 0.1)["direction"]
    loads = (
        rows.filter(pl.col("direction").is_in(main.implode()))
        .group_by("start_ns")
        .agg(pl.col("share", "held").max())
        .select(
            "start_ns",
            load=pl.when((pl.col("share") >= LOADED_SHARE) | (pl.col("held") >= _HELD_SHARE))
            .then(pl.lit("loaded"))
            .when(pl.col("share") <= IDLE_SHARE)
            .then(pl.lit("idle")),
        )
        .sort("start_ns")
    )
    rates = {
        way: capacity_bps or found
        for way, found in rows.group_by("direction", maintain_order=True)
        .agg(pl.col("rate_bps").quantile(_RATE_SHARE, interpolation="higher"))
        .sort("direction")
        .iter_rows()
    }
    count = Counter(loads["load"].to_list())
    idle_s, loaded_s, between_s = (count[load] * every_ns / 1e9 for load in ("idle", "loaded", None))
    return LinkLoad(rates, idle_s, loaded_s, between_s, loads)


def delays_under_load(groups: Groups, load: LinkLoad, least: int = LEAST_SAMPLES) -> list[LoadedDelay]:
    """Return the delay of each direction of each group with samples, idle and loaded, most samples first."""
    import polars as pl

    buckets = groups.buckets.filter(pl.col("measure").is_in(MEASURES)).join(
        load.loads.drop_nulls("load"), on="start_ns", how="inner"
    )
    return delays_by_load(buckets, least)


def delays_by_load(buckets: pl.DataFrame, least: int = LEAST_SAMPLES) -> list[LoadedDelay]:
    """Return the same of buckets with a column `load`, which is `idle` or `loaded`."""
    import polars as pl

    key = ["group", "direction", "measure"]
    by_load = [*key, "load"]
    found = percentile(buckets, by_load, 0.5).rename({"value": "p50"})
    found = found.join(
        percentile(buckets, by_load, 0.95).drop("n").rename({"value": "p95"}), on=by_load, nulls_equal=True
    )
    sides = found.partition_by("load", as_dict=True)
    empty = found.clear()
    idle, loaded = (sides.get((name,), empty).drop("load") for name in ("idle", "loaded"))
    both = idle.join(loaded, on=key, how="full", coalesce=True, nulls_equal=True, suffix="_loaded")
    both = both.with_columns(pl.col("n", "n_loaded").fill_null(0))
    ordered = both.sort(pl.col("n") + pl.col("n_loaded"), *key, descending=[True, False, False, False])
    return [_row(row, least) for row in ordered.iter_rows(named=True)]


def _row(row: Mapping[str, Any], least: int) -> LoadedDelay:
    def known(name: str, samples: str) -> float | None:
        return row[name] if row[samples] >= least else None

    idle, loaded = known("p50", "n"), known("p50_loaded", "n_loaded")
    return LoadedDelay(
        group=row["group"],
        direction=row["direction"],
        measure=row["measure"],
        idle_samples=row["n"],
        idle_p50_ms=idle,
        idle_p95_ms=known("p95", "n"),
        loaded_samples=row["n_loaded"],
        loaded_p50_ms=loaded,
        loaded_p95_ms=known("p95_loaded", "n_loaded"),
        increase_ms=None if idle is None or loaded is None else loaded - idle,
    )
