"""The picture of a link: round-trip times, losses, failures and throughput over time, and who suffered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.link import ALL
from tfrctrace.reports.elements import OTHER, Curve, HeatMap, HeatRow, Lane, Overview
from tfrctrace.reports.link_facts import LinkHost, both_sides, hosts_with_most, path_sides
from tfrctrace.reports.records import records
from tfrctrace.reports.sections.objectives import bad_stretches_ns, verdict_maps
from tfrctrace.reports.time_axis import time_axis
from tfrctrace.reports.units import (
    counted,
    enumerated,
    format_count,
    format_duration_s,
    format_ms,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.link import LinkTables
    from tfrctrace.metrics.objectives import ObjectiveResult
    from tfrctrace.reports.elements import Unit

_NS: Final = 1e9

_VERDICTS: Final = (
    " Objectives: green was met, orange violated, dark red severely violated, empty without data; red "
    "stretches behind the curves violated one."
)

_FEWEST_INTERVALS: Final = 5
_MOST_INTERVALS: Final = 1_000

_MOST_ROWS: Final = 14
"""Hosts in all heat maps together."""

_FEWEST_ROWS: Final = 6
"""The same beside objectives."""

_FEWEST_SAMPLES: Final = 20
"""Samples of an interval whose 95th percentile decides how bad a host had it."""

_FEWEST_HOSTS: Final = 3
"""With two hosts the link is what both had."""


def link_overview(
    link: LinkTables | None,
    origin_ns: int | None,
    zone: TimeZone,
    objectives: Sequence[ObjectiveResult] = (),
) -> Overview | None:
    """Return the picture of a link, and whether it met its objectives; None of too few intervals."""
    import polars as pl

    if link is None or link.course.is_empty():
        return None
    course = link.course.filter(pl.col("side") == ALL).sort("start_ns")
    first_ns, end_ns = int(course["start_ns"][0]), int(course["end_ns"][-1])
    width_ns = int(course["end_ns"][0]) - first_ns
    if width_ns <= 0 or not _FEWEST_INTERVALS <= (end_ns - first_ns) // width_ns <= _MOST_INTERVALS:
        return None
    begin_ns = first_ns if origin_ns is None else origin_ns
    starts_ns = list(range(first_ns, end_ns, width_ns))
    lanes = tuple(_lanes(link, starts_ns, width_ns, begin_ns))
    judged = tuple(verdict_maps(objectives, starts_ns, width_ns))
    left = max(_MOST_ROWS - sum(len(one.rows) for one in judged), _FEWEST_ROWS)
    heat_maps = tuple(_heat_maps(link, starts_ns, left)) if link.hosts.height >= _FEWEST_HOSTS else ()
    width = format_duration_s(width_ns / _NS).removesuffix(" 00 s").removesuffix(" 00 min")
    who = f", and the worst of {counted(link.hosts.height, _noun(link))}" if heat_maps else ""
    return Overview(
        key="link-overview",
        title="The link over time",
        description=f"{enumerated([lane.label for lane in lanes])} over time{who}.",
        caption=(
            f"All flows in intervals of {width}.{_rtt_words(lanes)} Nothing is drawn without packets."
            f"{_heat_words(heat_maps)}{_VERDICTS if judged else ''}"
        ),
        starts_s=tuple((start_ns - begin_ns) / _NS for start_ns in starts_ns),
        width_s=width_ns / _NS,
        axis=time_axis(begin_ns, (end_ns - begin_ns) / _NS, zone),
        lanes=lanes,
        heat_maps=(*judged, *heat_maps),
        bad_s=tuple(
            ((from_ns - begin_ns) / _NS, (to_ns - begin_ns) / _NS)
            for from_ns, to_ns in bad_stretches_ns(objectives)
        ),
        # of several traces each has a time axis of its own
        linked="" if origin_ns is None else "time-1",
    )


def _noun(link: LinkTables) -> str:
    return "network" if any("/" in name for name in link.hosts["group"].drop_nulls()) else "host"


def _rtt_words(lanes: Sequence[Lane]) -> str:
    if not any(lane.unit == "ms" for lane in lanes):
        return ""
    return " RTT: the line is the median, the band reaches to the 95th percentile of all samples."


def _heat_words(heat_maps: Sequence[HeatMap]) -> str:
    if not heat_maps:
        return ""
    return (
        " Rows below are hosts, worst first, with their samples in all; the darker a cell, the worse the "
        "interval."
    )


def _lanes(link: LinkTables, starts_ns: Sequence[int], width_ns: int, begin_ns: int) -> Iterator[Lane]:
    import polars as pl

    x = tuple((start_ns + width_ns / 2 - begin_ns) / _NS for start_ns in starts_ns)
    whole = _by_interval(link.course.filter(pl.col("side") == ALL), starts_ns)
    sides = path_sides(link)
    rtts = []
    for style, side in enumerate(sides, start=1):
        rows = _by_interval(link.course.filter(pl.col("side") == side.side), starts_ns)
        medians = _column(rows, "rtt_p50_ms")
        label = f"RTT {side.where}".strip()
        if any(value is not None for value in medians):
            rtts.append(Curve(label, style, x, medians, medians, _column(rows, "rtt_p95_ms")))
    if rtts:
        yield Lane("RTT", "ms", tuple(rtts))
    shares = [
        Curve(label, style, x, values)
        for label, style, part, of in (
            ("lost", 2, "lost_segments", "sent_segments"),
            ("retransmitted", 4, "retransmitted_segments", "tcp_data_segments"),
        )
        if any(values := _shares(whole, part, of))
    ]
    if len(shares) == 2 and shares[0].values == shares[1].values:
        shares = shares[:1]
    if shares:
        yield Lane(f"{both_sides(link).noun}s", "", tuple(shares))
    failed = _shares(whole, "failed_connections", "connection_attempts")
    if any(failed):
        yield Lane("connections", "", (Curve("failed connections", 5, x, failed),))
    rates = tuple(
        None if value is None else value * 8 * _NS / width_ns for value in _column(whole, "wire_bytes")
    )
    yield Lane("throughput", "bit/s", (Curve("throughput", OTHER, x, rates),))


def _by_interval(rows: pl.DataFrame, starts_ns: Sequence[int]) -> pl.DataFrame:
    """Return a row for each interval; null where there is none."""
    import polars as pl

    grid = pl.DataFrame({"start_ns": starts_ns}, schema={"start_ns": pl.Int64})
    return grid.join(rows, on="start_ns", how="left", maintain_order="left")


def _column(rows: pl.DataFrame, name: str) -> tuple[float | None, ...]:
    return tuple(rows[name].to_list())


def _shares(rows: pl.DataFrame, part: str, whole: str) -> tuple[float | None, ...]:
    """Return the share of each interval; None where there is nothing to have a share of."""
    pairs = rows.select(part, whole).iter_rows()
    return tuple(None if count is None or not total else count / total for count, total in pairs)


def _heat_maps(link: LinkTables, starts_ns: Sequence[int], most_rows: int) -> Iterator[HeatMap]:
    """Yield who had the longest RTTs, most losses, and most failed connections, as far as there were any."""
    found = [
        (label, unit, rows, value)
        for label, unit, rows, value in (
            ("RTT, 95th percentile", "ms", _slowest(link), _rtt),
            ("lost segments", "", _most(link, "lost_segments", "sent_segments"), _lost),
            (
                "failed connections",
                "",
                _most(link, "failed_connections", "connection_attempts"),
                _failed,
            ),
        )
        if rows
    ]
    for label, unit, hosts, value in found:
        cells = [
            (host, _cells(link, host, label, starts_ns)) for host in hosts[: max(most_rows // len(found), 2)]
        ]
        rows = tuple(
            HeatRow(host.group or "unknown", value(host), values) for host, values in cells if any(values)
        )
        # one row alone is the link once more
        if len(rows) > 1:
            darkest = max(cell for row in rows for cell in row.values if cell is not None)
            yield HeatMap(label, _unit(unit), darkest, rows)


def _unit(unit: str) -> Unit:
    return "ms" if unit == "ms" else ""


def _rtt(host: LinkHost) -> str:
    return f"{format_ms(host.rtt_p95_ms)}, n {format_count(host.rtt_samples)}"


def _lost(host: LinkHost) -> str:
    return f"{format_share(host.share)}, n {format_count(host.sent_segments)}"


def _failed(host: LinkHost) -> str:
    return f"{format_share(host.share)}, n {format_count(host.connection_attempts)}"


def _cells(
    link: LinkTables, host: LinkHost, label: str, starts_ns: Sequence[int]
) -> tuple[float | None, ...]:
    import polars as pl

    own = link.host_course.filter(pl.col("group").eq_missing(pl.lit(host.group, dtype=pl.String)))
    rows = _by_interval(own, starts_ns)
    if label.startswith("RTT"):
        return _column(rows, "rtt_p95_ms")
    if label.startswith("lost"):
        return _shares(rows, "lost_segments", "sent_segments")
    return _shares(rows, "failed_connections", "connection_attempts")


def _slowest(link: LinkTables) -> list[LinkHost]:
    """Return the hosts whose worst interval was slowest; those of a side that is no path are left out."""
    import polars as pl

    sides = [side.side for side in path_sides(link)]
    if not sides:
        return []
    worst = link.host_course.group_by("group").agg(
        pl.col("rtt_p95_ms").filter(pl.col("rtt_samples") >= _FEWEST_SAMPLES).max().alias("worst_ms")
    )
    hosts = (
        link.hosts.filter(pl.col("side").is_in(sides) | pl.lit(ALL in sides), pl.col("rtt_samples") > 0)
        .join(worst, on="group", how="left", nulls_equal=True)
        .sort("worst_ms", "rtt_p95_ms", "group", descending=[True, True, False], nulls_last=True)
    )
    return records(hosts.head(_MOST_ROWS), LinkHost)


def _most(link: LinkTables, part: str, whole: str) -> list[LinkHost]:
    return records(hosts_with_most(link, part, whole).head(_MOST_ROWS), LinkHost)
