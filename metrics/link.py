"""A link in total: round-trip times of its two sides, losses, and its hosts over time, all from groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tfrctrace.metrics.groups import Groups

ALL: Final = "all"
"""Name of both sides together."""

CLIENTS: Final = "clients"
SERVERS: Final = "servers"
PEERS: Final = "peers"

_SIDES: Final = {"side": "string", "hosts": "uint32"}
_RTTS: Final = {
    "rtt_samples": "uint64",
    "rtt_min_ms": "float64",
    "rtt_p50_ms": "float64",
    "rtt_p95_ms": "float64",
    "rtt_p99_ms": "float64",
    "rtt_max_ms": "float64",
}
_TIMES: Final = {"start_ns": "int64", "end_ns": "int64"}
_COUNTS: Final = {
    "packets": "uint64",
    "wire_bytes": "uint64",
    "tcp_data_segments": "uint64",
    "retransmitted_segments": "uint64",
    "sent_segments": "uint64",
    "lost_segments": "uint64",
    "connection_attempts": "uint64",
    "failed_connections": "uint64",
}
LINK_SIDES: Final = {**_SIDES, **_RTTS, **_COUNTS}
LINK_COURSE: Final = {"side": "string", **_TIMES, **_RTTS, **_COUNTS}
LINK_HOSTS: Final = {"group": "string", "side": "string", **_TIMES, **_RTTS, **_COUNTS}
HOST_COURSE: Final = {"group": "string", **_TIMES, **_RTTS, **_COUNTS}
"""Columns of the tables of a link."""

_OF_A_STAR: Final = 0.95
"""Share of all packets from which one host is an end of the link by itself."""

_NICE_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200)
_DAY_S: Final = 86_400
_NS: Final = 1_000_000_000
_MIN_INTERVAL_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class LinkTables:
    """A link in total and over time."""

    sides: pl.DataFrame
    """Both sides together, then each of them, with the columns `LINK_SIDES`. RTTs of a side are those between
    the capture and its hosts."""
    course: pl.DataFrame
    """The same in each interval with packets (`LINK_COURSE`)."""
    hosts: pl.DataFrame
    """Each host in total (`LINK_HOSTS`); packets it sent and received, RTTs between it and the capture."""
    host_course: pl.DataFrame
    """The same in each interval with packets (`HOST_COURSE`)."""


def interval_ns(span_ns: int, most: int) -> int:
    """Return the width, one that clocks show, that cuts a span into at most `most` intervals.

    A span of more than a century, which only a wrong clock makes, may be one interval.
    """
    return next((width_ns for width_ns in _widths_ns() if span_ns <= width_ns * most), span_ns)


def _widths_ns() -> Sequence[int]:
    below = [_MIN_INTERVAL_NS * factor * 10**power for power in range(3) for factor in (1, 2, 5)]
    days = [_DAY_S * factor * 10**power for power in range(5) for factor in (1, 2, 5)]
    return [*below, *(seconds * _NS for seconds in (*_NICE_S, *days))]


def link_tables(groups: Groups) -> LinkTables:
    """Return the tables of a link of which `groups` are the hosts, or networks, by interval."""
    import polars as pl

    whole = groups.whole()
    sides = sides_of_hosts(whole.rows)
    named = whole.rows.select("group", "direction").join(sides, on="group", how="left", nulls_equal=True)
    named = named.rename({"side": "name"})
    counted = _hosts(whole.rows, "group")
    total = groups.in_total()
    course = [_both_ways(total.rows).with_columns(side=pl.lit(ALL))]
    in_total = [_both_ways(total.whole().rows).with_columns(side=pl.lit(ALL), hosts=_number(sides))]
    if sides["side"].n_unique() > 1:
        by_side = groups.renamed(named)
        course.append(_received(by_side.rows).rename({"group": "side"}))
        sizes = sides.group_by("side").agg(pl.len().cast(pl.UInt32).alias("hosts"))
        in_total.append(
            _received(by_side.whole().rows).rename({"group": "side"}).join(sizes, on="side", how="left")
        )
    return LinkTables(
        sides=pl.concat([frame.select(*LINK_SIDES) for frame in in_total]),
        course=pl.concat([frame.select(*LINK_COURSE) for frame in course]),
        hosts=counted.join(sides, on="group", how="left", nulls_equal=True).select(*LINK_HOSTS),
        host_course=_hosts(groups.rows, "group", "start_ns").select(*HOST_COURSE),
    )


def _number(sides: pl.DataFrame) -> pl.Expr:
    import polars as pl

    return pl.lit(sides.height, dtype=pl.UInt32)


def sides_of_hosts(whole: pl.DataFrame) -> pl.DataFrame:
    """Return the side of each group: one host against all others, clients against servers, or all one side.

    A group that opened more connections than it accepted is a client.
    """
    import polars as pl

    of_group = whole.group_by("group", maintain_order=True).agg(
        pl.col("packets").sum(),
        opened=_of_direction("sent", "connection_attempts").sum(),
        accepted=_of_direction("received", "connection_attempts").sum(),
    )
    # a packet is of two groups
    star = of_group.filter(pl.col("packets") >= _OF_A_STAR * pl.col("packets").sum() / 2)
    if star.height:
        rtts = (
            whole.lazy()
            .filter(direction="received")
            .select("group", rtt_ms="rtt_p50_ms")
            .join(star.lazy(), on="group", how="semi", nulls_equal=True)
            .unique("group", keep="first", maintain_order=True)
            .collect()
        )
        star = star.join(rtts, on="group", how="left", nulls_equal=True).sort(
            "rtt_ms", "group", nulls_last=True
        )
        center = star["group"][0]
        is_center = pl.col("group").eq_missing(pl.lit(center, dtype=pl.String))
        peers = of_group.filter(~is_center)["group"]
        others = peers[0] if len(peers) == 1 else PEERS
        side = pl.when(is_center).then(pl.lit(center)).otherwise(pl.lit(others, dtype=pl.String))
    elif of_group["opened"].sum():
        side = pl.when(pl.col("opened") > pl.col("accepted")).then(pl.lit(CLIENTS)).otherwise(pl.lit(SERVERS))
    else:
        side = pl.lit(ALL)
    return of_group.select("group", side.alias("side"))


def _of_direction(direction: str, name: str) -> pl.Expr:
    """Return a column, null in rows of the other direction: a filter would make a list of each group."""
    import polars as pl

    return pl.when(pl.col("direction") == direction).then(name)


def _received(rows: pl.DataFrame) -> pl.DataFrame:
    """Return what was received: its RTTs are those between the capture and the group."""
    import polars as pl

    return _both_ways(rows.filter(pl.col("direction") == "received"))


def _both_ways(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of one direction with the counts of the tables of links."""
    import polars as pl

    return rows.with_columns(*_failures(), pl.col("rtt_samples").fill_null(0)).select(
        "group", *_TIMES, *_RTTS, *_COUNTS
    )


def _hosts(rows: pl.DataFrame, *key: str) -> pl.DataFrame:
    """Return a row for each `key`: what was sent and received, and the RTTs of what was received."""
    import polars as pl

    is_received = pl.col("direction") == "received"
    counts = [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in _COUNTS]
    rtts = [pl.col(name).filter(is_received).first().alias(name) for name in _RTTS]
    times = (
        [pl.col("end_ns").max()] if "start_ns" in key else [pl.col("start_ns").min(), pl.col("end_ns").max()]
    )
    return (
        rows.with_columns(*_failures())
        .group_by(key, maintain_order=True)
        .agg(*times, *counts, *rtts)
        .with_columns(pl.col("rtt_samples").fill_null(0))
    )


def _failures() -> tuple[pl.Expr, ...]:
    """Return what was lost and what failed, and how many were sent whose losses on either side would show.

    Where they would show on both sides, they count once; what was lost before the capture was sent, too.
    """
    import polars as pl

    sent = _sum_of_known("tcp_data_segments", "numbered_packets", "lost_before_capture")
    return (
        pl.min_horizontal(sent, _sum_of_known("arrivals_shown", "losses_shown")).alias("sent_segments"),
        _sum_of_known("lost_before_capture", "lost_behind_capture").alias("lost_segments"),
        _sum_of_known("connections_refused", "connections_unanswered").alias("failed_connections"),
    )


def _sum_of_known(*names: str) -> pl.Expr:
    """Return the sum of columns; null where none of them is known."""
    import polars as pl

    return pl.when(pl.any_horizontal(pl.col(name).is_not_null() for name in names)).then(
        pl.sum_horizontal(names)
    )


def worst_stretch(values: Sequence[float | None], bad: float) -> tuple[int, int] | None:
    """Return the first and last place of the stretch above `bad` that exceeds it most in all.

    A single place that is better or unknown does not end a stretch.
    """
    stretches: list[tuple[float, int, int]] = []
    for place, value in enumerate(values):
        if value is None or value <= bad:
            continue
        if stretches and place - stretches[-1][2] <= 2:
            excess, first, _ = stretches[-1]
            stretches[-1] = (excess + value - bad, first, place)
        else:
            stretches.append((value - bad, place, place))
    if not stretches:
        return None
    _, first, last = max(stretches, key=lambda stretch: (stretch[0], -stretch[1]))
    return first, last
