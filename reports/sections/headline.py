"""The headline of a report: how the link was, when it was bad, and for whom, over all flows."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.exact_sums import nearest_rank
from tfrctrace.metrics.link import ALL, worst_stretch
from tfrctrace.metrics.statistics.shares import CHANCE, chance_of_share, usual_share
from tfrctrace.reports.elements import Fact, Name
from tfrctrace.reports.link_facts import LinkHost, LinkSide, both_sides, hosts_with_most, path_sides
from tfrctrace.reports.records import records
from tfrctrace.reports.units import counted, format_count, format_ms, format_share, format_stretch_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.link import LinkTables
    from tfrctrace.reports.elements import Words

LOST_SEGMENTS: Final = "Lost segments"

_FEWEST: Final = {"rtt_samples": 20, "sent_segments": 20, "connection_attempts": 5}
"""Samples, segments and attempts of an interval, and of a host, with which it counts."""

_TIMES_LONGER: Final = 1.5
_LEAST_LONGER_MS: Final = 5.0
"""By how much RTTs of a bad interval exceed those of a usual one."""

_TIMES_MORE: Final = 3.0
_LEAST_SHARES: Final = {"lost_segments": 0.005, "failed_connections": 0.1}
"""The same of shares: how many times the share of all, and what share at least."""

_LEAST_HOSTS: Final = 3

_MOST_OF_ALL: Final = 0.5
"""Share of what went wrong from which a host is named."""


def link_facts(link: LinkTables, *, with_losses: bool = True) -> Iterator[Fact]:
    """Yield the RTT of each side that is a path, over all samples, and the shares of all packets.

    Losses are left out if they are better known than from one place.
    """
    whole = both_sides(link)
    for side in path_sides(link):
        worst = _worst_host(link, side)
        yield Fact(
            f"RTT {side.where}".strip() + ", p50",
            format_ms(side.rtt_p50_ms),
            f"p95 {format_ms(side.rtt_p95_ms)}, p99 {format_ms(side.rtt_p99_ms)}; "
            f"n {format_count(side.rtt_samples)}{worst}",
        )
    for label, part, all_of, noun in (
        (
            LOST_SEGMENTS if whole.noun == "TCP segment" else "Lost packets",
            "lost_segments",
            "sent_segments",
            whole.noun,
        ),
        ("Failed connections", "failed_connections", "connection_attempts", "attempt"),
    ):
        some, every = getattr(whole, part), getattr(whole, all_of)
        if some is not None and every and (with_losses or part != "lost_segments"):
            worst_of = _worst_share(link, part, all_of)
            bounds = "; of those with numbers before the capture only" if noun == "packet" else ""
            words = f"{format_count(some)} of {counted(every, noun)}{bounds}{worst_of}"
            yield Fact(label, format_share(some / every), words)


def other_rtts(flows: pl.DataFrame, feedback: pl.DataFrame | None) -> Iterator[Fact]:
    """Yield RTTs that are not of acknowledged data: those of TFRC's senders, else of handshakes."""
    # reports of a receiver of RTP are no TFRC
    is_rtp = flows["transport"].is_in(["rtp", "rtcp"]).any()
    sender = "RTT of RTCP reports" if is_rtp else "RTT of TFRC senders (R)"
    handshakes = flows.select("flow", "handshake_rtt_ms").unique("flow")
    for label, values, noun in (
        (f"{sender}, p50", None if feedback is None else feedback["rtt_ms"], "report"),
        ("RTT of handshakes, p50", handshakes["handshake_rtt_ms"], "handshake"),
    ):
        known = None if values is None else values.drop_nulls()
        if known is None or known.is_empty():
            continue
        middle, high, highest = (nearest_rank(known, share) for share in (0.5, 0.95, 0.99))
        yield Fact(
            label,
            format_ms(middle),
            f"p95 {format_ms(high)}, p99 {format_ms(highest)}; {counted(len(known), noun)}",
        )
        return


def _worst_host(link: LinkTables, side: LinkSide) -> str:
    """Return the host of a side with the largest 95th percentile, if there are several."""
    import polars as pl

    own = link.hosts.filter(
        (pl.col("side") == side.side) | pl.lit(side.side == ALL),
        pl.col("rtt_samples") >= _FEWEST["rtt_samples"],
    )
    if own.height < _LEAST_HOSTS:
        return ""
    host, *_ = records(own.sort("rtt_p95_ms", "group", descending=[True, False]), LinkHost)
    return f"; worst {host.called}: p95 {format_ms(host.rtt_p95_ms)}"


def _worst_share(link: LinkTables, part: str, whole: str) -> str:
    worst = hosts_with_most(link, part, whole)
    if link.hosts.height < _LEAST_HOSTS or worst.is_empty() or worst["share"].n_unique() == 1:
        return ""
    host, *_ = records(worst, LinkHost)
    return f"; worst {host.called}: {format_share(host.share)}"


def when_it_was_bad(link: LinkTables, zone: TimeZone, *, has_more: bool = False) -> Iterator[Words]:
    """Yield a sentence on the worst stretch of each quantity that has one, or that none of them has.

    `has_more`: there are losses whose times are not known.
    """
    found = list(_bad_stretches(link, zone))
    if not found and not has_more and (path_sides(link) or link.sides["sent_segments"][0]):
        found.append(("No stretch of time stands out by round-trip times, losses or failed connections.",))
    yield from found


def _bad_stretches(link: LinkTables, zone: TimeZone) -> Iterator[Words]:
    for side in path_sides(link):
        yield from _slow_stretch(link, side, zone)
    for part, whole, words in (
        ("lost_segments", "sent_segments", f"of {both_sides(link).noun}s were lost"),
        ("failed_connections", "connection_attempts", "of connections failed"),
    ):
        yield from _lossy_stretch(link, part, whole, words, zone)


def _slow_stretch(link: LinkTables, side: LinkSide, zone: TimeZone) -> Iterator[Words]:
    import polars as pl

    course = link.course.filter(pl.col("side") == side.side)
    rows = course.filter(pl.col("rtt_samples") >= _FEWEST["rtt_samples"]).sort("start_ns")
    if rows.is_empty():
        return
    usual_ms = statistics.median(rows["rtt_p95_ms"].to_list())
    bad_ms = max(_TIMES_LONGER * usual_ms, usual_ms + _LEAST_LONGER_MS)
    found = _stretch(rows, rows["rtt_p95_ms"].to_list(), bad_ms)
    if found is None:
        return
    begin_ns, end_ns, worst_ms = found
    to = f" {side.where}".rstrip()
    own = link.hosts.filter((pl.col("side") == side.side) | pl.lit(side.side == ALL))
    yield (
        f"RTT{to} was bad {format_stretch_ns(begin_ns, end_ns, zone)}: p95 up to {format_ms(worst_ms)} "
        f"(usually {format_ms(usual_ms)})",
        *_suffering(link, own, (begin_ns, end_ns), bad_ms),
        ".",
    )


def _lossy_stretch(link: LinkTables, part: str, whole: str, words: str, zone: TimeZone) -> Iterator[Words]:
    import polars as pl

    some, every = link.sides.select(part, whole).row(0)
    if not some or not every:
        return
    rows = _pooled(link.course.filter(pl.col("side") == ALL).sort("start_ns"), part, whole)
    shares = (rows[part] / rows[whole]).to_list()
    found = _stretch(rows, shares, max(_TIMES_MORE * some / every, _LEAST_SHARES[part]))
    if found is None:
        return
    begin_ns, end_ns, worst = found
    failed, tried = rows.filter(_begins_in((begin_ns, end_ns))).select(pl.col(part, whole).sum()).row(0)
    usual = usual_share(some - failed, every - tried)
    if chance_of_share(failed, tried, usual) * rows.height >= CHANCE:
        return
    yield (
        f"Up to {format_share(worst)} {words}, {format_stretch_ns(begin_ns, end_ns, zone)}",
        *_common_host(link, (begin_ns, end_ns), part),
        ".",
    )


def _pooled(rows: pl.DataFrame, part: str, whole: str) -> pl.DataFrame:
    """Return intervals with enough of `whole`; those with fewer are one from the first to the last of them.

    So a link that is dead for some seconds is bad with the few connections that were tried.
    """
    import polars as pl

    found: list[tuple[int, int, int, int]] = []
    begin_ns, some, every = None, 0, 0
    for start_ns, end_ns, more, of in rows.select("start_ns", "end_ns", part, whole).iter_rows():
        if of:
            begin_ns = start_ns if begin_ns is None else begin_ns
            some, every = some + (more or 0), every + of
        if begin_ns is not None and every >= _FEWEST[whole]:
            found.append((begin_ns, end_ns, some, every))
            begin_ns, some, every = None, 0, 0
    schema = dict.fromkeys(("start_ns", "end_ns", part, whole), pl.Int64)
    return pl.DataFrame(found, schema=schema, orient="row")


def _stretch(rows: pl.DataFrame, values: Sequence[float | None], bad: float) -> tuple[int, int, float] | None:
    """Return begin, end and largest value of the worst stretch of intervals."""
    found = worst_stretch(values, bad)
    if found is None:
        return None
    first, last = found
    inside = [value for value in values[first : last + 1] if value is not None]
    return int(rows["start_ns"][first]), int(rows["end_ns"][last]), max(inside)


def _common_host(link: LinkTables, stretch_ns: tuple[int, int], part: str) -> Words:
    """Return the host that most of what went wrong in a stretch had as an end, or how many hosts had it."""
    import polars as pl

    if link.hosts.height < _LEAST_HOSTS:
        return ()
    inside = link.host_course.filter(_begins_in(stretch_ns))
    by_host = inside.group_by("group").agg(pl.col(part).sum()).sort(part, "group", descending=[True, False])
    bad = by_host.filter(pl.col(part) > 0)
    # each has two ends
    total = int(bad[part].sum()) / 2
    if bad.is_empty():
        return ()
    host, most = bad.select("group", part).row(0)
    if most >= _MOST_OF_ALL * total and bad.height > 2:
        words = ", all with " if most == total else f", {format_share(most / total)} with "
        return (words, Name(str(host)))
    return (f", for {format_count(bad.height)} of {counted(by_host.height, 'host')}",)


def _begins_in(stretch_ns: tuple[int, int]) -> pl.Expr:
    import polars as pl

    begin_ns, end_ns = stretch_ns
    return pl.col("start_ns").is_between(begin_ns, end_ns, closed="left")


def _suffering(link: LinkTables, hosts: pl.DataFrame, stretch_ns: tuple[int, int], bad_ms: float) -> Words:
    """Return for how many of the hosts seen in a stretch it was bad; one or two by their names."""
    import polars as pl

    if hosts.height < _LEAST_HOSTS:
        return ()
    inside = link.host_course.filter(_begins_in(stretch_ns), pl.col("group").is_in(hosts["group"].implode()))
    bad = set(inside.filter(pl.col("rtt_p95_ms") > bad_ms)["group"])
    seen = inside["group"].n_unique()
    if not bad:
        return ()
    if len(bad) <= 2:
        names = [Name(str(name)) for name in sorted(bad)]
        return (", for ", *names) if len(names) == 1 else (", for ", names[0], " and ", names[1])
    return (f", for {format_count(len(bad))} of {counted(seen, 'host')}",)
