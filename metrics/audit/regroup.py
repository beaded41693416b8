"""Hosts as links, networks or sites, and over wider intervals: sums and buckets, of which values are made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.groups import SUMS, Groups, sum_groups
from tfrctrace.metrics.link import CLIENTS, SERVERS, sides_of_hosts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

SIDES: Final = {"rev": "client side", "fwd": "server side"}
"""Directions of a link, and the half of the path to which their round-trip times belong."""

_KEY: Final = ("group", "direction", "start_ns")
_FIRST_NS: Final = -(2**63)


def joined_pieces(pieces: Iterable[Groups]) -> Groups:
    """Return the groups of all pieces of a capture; intervals that two pieces share are summed."""
    import polars as pl

    parts = list(pieces)
    if len(parts) == 1:
        return parts[0]
    rows, buckets = (pl.concat([getattr(part, name) for part in parts]) for name in ("rows", "buckets"))
    twice = rows.filter(pl.struct(_KEY).is_duplicated()).select(_KEY).unique()
    if twice.is_empty():
        return replace(parts[0], rows=rows, buckets=buckets)

    (shared, own), (shared_buckets, own_buckets) = (
        (
            frame.join(twice, on=_KEY, how="semi", nulls_equal=True),
            frame.join(twice, on=_KEY, how="anti", nulls_equal=True),
        )
        for frame in (rows, buckets)
    )
    summed = sum_groups([replace(parts[0], rows=shared, buckets=shared_buckets)])
    return replace(
        parts[0],
        rows=pl.concat([own, summed.rows.cast(own.schema)]),
        buckets=pl.concat([own_buckets, summed.buckets.cast(own_buckets.schema)]),
    )


def near_side(rows: pl.DataFrame) -> list[str] | None:
    """Return the hosts of the side that opens connections; None where no side is known.

    Where one host has nearly all packets, it is a side by itself.
    """
    sides = sides_of_hosts(rows)
    names = set(sides["side"].drop_nulls())
    if names == {CLIENTS, SERVERS}:
        return sides.filter(side=CLIENTS)["group"].drop_nulls().sort().to_list()
    if len(names) < 2:
        return None
    # of a star: the side of the one host
    counts = sides.group_by("side").agg(hosts="group").sort("side")
    smallest = min(counts.iter_rows(), key=lambda row: len(row[1]))
    return sorted(name for name in smallest[1] if name is not None)


def as_link(groups: Groups, name: str, near: Iterable[str] | None) -> Groups:
    """Return all hosts as one link: `fwd` is what the near side sent, `rev` what the other one did.

    Each packet counts once, in the row of its sender.
    """
    import polars as pl

    way = pl.lit("fwd")
    if near is not None:
        way = pl.when(pl.col("group").is_in(list(near))).then(way).otherwise(pl.lit("rev"))

    def under(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col("direction") == "sent").with_columns(
            direction=way, group=pl.lit(name, pl.String)
        )

    return summed(replace(groups, rows=under(groups.rows), buckets=under(groups.buckets)))


def renamed(groups: Groups, names: pl.DataFrame) -> Groups:
    """Return hosts under the names of `names` (`group`, `name`), those of one name summed."""

    def under(frame: pl.DataFrame) -> pl.DataFrame:
        return (
            frame.join(names, on="group", how="left", nulls_equal=True)
            .drop("group")
            .rename({"name": "group"})
        )

    return summed(replace(groups, rows=under(groups.rows), buckets=under(groups.buckets)))


def widened(groups: Groups, every_ns: int) -> Groups:
    """Return groups over intervals of a multiple of the width."""
    if groups.grouping.every_ns == every_ns:
        return groups
    start = interval_start(every_ns)
    return summed(
        Groups(
            replace(groups.grouping, every_ns=every_ns),
            groups.rows.with_columns(start_ns=start, end_ns=start + every_ns),
            groups.buckets.with_columns(start_ns=start),
        )
    )


def interval_start(every_ns: int) -> pl.Expr:
    """Return when the wider interval of a row begins; the first one begins where 64-bit times do."""
    import polars as pl

    start = pl.col("start_ns")
    begin = start // every_ns * every_ns
    # what passes the least time begins after its rows
    return pl.when(begin <= start).then(begin).otherwise(_FIRST_NS)


def summed(groups: Groups) -> Groups:
    """Return one row for each direction of a group in each interval, without percentiles and ratios."""
    import polars as pl

    # of the many columns of a flood of small flows most are empty
    same = {name: column[0] for name in SUMS if _is_empty(column := groups.rows[name])}
    kinds = groups.rows.schema
    sums = [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()) for name in SUMS if name not in same]
    rows = (
        groups.rows.group_by(_KEY)
        .agg(pl.col("end_ns").first(), *sums)
        .with_columns(pl.lit(value, kinds[name]).alias(name) for name, value in same.items())
        .select(*_KEY, "end_ns", *SUMS)
    )
    buckets = groups.buckets.group_by(*_KEY, "measure", "from_ns", "to_ns").agg(pl.col("samples").sum())
    return replace(groups, rows=rows, buckets=buckets)


def _is_empty(column: pl.Series) -> bool:
    """Return whether all values are null, or all are 0: so are their sums."""
    unknown = column.null_count()
    return bool(len(column)) and (unknown == len(column) or (not unknown and bool((column == 0).all())))
