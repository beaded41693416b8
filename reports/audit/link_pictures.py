"""A link over days to months: smoke bands of round-trip times, losses, load, and a calendar of verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.audit.regroup import SIDES
from tfrctrace.metrics.audit.usual_hours import LEAST_EARLIER, best_period, usual_hours
from tfrctrace.metrics.groups import percentile
from tfrctrace.reports.elements import OTHER, Curve, Figure, HeatMap, HeatRow, Lane, Overview
from tfrctrace.reports.printers.objectives import share_text
from tfrctrace.reports.time_axis import time_axis
from tfrctrace.reports.units import MISSING, counted, enumerated, format_duration_s

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.audit.usual_hours import UsualHour
    from tfrctrace.metrics.objectives import ObjectiveResult
    from tfrctrace.metrics.results.audit import AuditedLink

_NS: Final = 1e9
_HOUR_NS: Final = 3_600 * 10**9
_MOST_COLUMNS: Final = 744
"""An hour each of a month."""
_WIDTHS: Final = (1, 2, 3, 6, 12, 24, 48, 168, 336, 720, 2_160, 8_760)
_MOST_GROUPS: Final = 5
_SHARES: Final = {"p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
_SEVERITY: Final = {"met": 0.0, "violated": 1.0, "severe": 2.0}


def link_picture(link: AuditedLink, key: str, zone: TimeZone) -> Overview:
    """Return the picture of a link."""
    columns = link.last_ns // link.column_ns - link.first_ns // link.column_ns + 1
    width = next((one for one in _WIDTHS if columns <= one * _MOST_COLUMNS), -(-columns // _MOST_COLUMNS))
    width_ns = width * link.column_ns
    begin_ns = link.first_ns // width_ns * width_ns
    starts_ns = range(begin_ns, link.last_ns + 1, width_ns)
    lanes = tuple(_lanes(link, starts_ns))
    maps = tuple(_calendar(link, starts_ns))
    return Overview(
        key=key,
        title=f"{link.name} over time",
        description=f"{enumerated([lane.label for lane in lanes])}, and verdicts, in intervals of "
        f"{format_duration_s(width_ns / _NS)}.",
        caption=(
            f"Intervals of {format_duration_s(width_ns / _NS)}. RTT: the line is the median of all samples, "
            "the dark band has the middle half of them, the light one 90 %. Nothing is drawn without "
            "packets. Objectives: green was met in all of an interval, orange violated in part of it, dark "
            "red severely, empty is without data; red stretches behind the curves are incidents."
        ),
        starts_s=tuple((start_ns - begin_ns) / _NS for start_ns in starts_ns),
        width_s=width_ns / _NS,
        axis=time_axis(begin_ns, len(starts_ns) * width_ns / _NS, zone),
        lanes=lanes,
        heat_maps=maps,
        bad_s=tuple(
            ((incident.incident.begin_ns - begin_ns) / _NS, (incident.incident.end_ns - begin_ns) / _NS)
            for incident in link.incidents
        ),
    )


def _lanes(link: AuditedLink, starts_ns: range) -> Iterator[Lane]:
    import polars as pl

    x = tuple((start_ns - starts_ns.start + starts_ns.step / 2) / _NS for start_ns in starts_ns)
    rtt = link.buckets.filter(measure="rtt")
    for style, (direction, side) in enumerate(SIDES.items(), 1):
        own = rtt.filter(direction=direction)
        if not own.is_empty():
            name = side if link.near is not None else "capture to receivers"
            yield Lane(f"RTT, {name}", "ms", tuple(_smoke(own, starts_ns, x, f"RTT, {name}", style)))
    columns = _by_column(link.hours, starts_ns)
    near, far = (
        ("before the capture", "after it")
        if link.near is None
        else ("between clients and capture", "between capture and servers")
    )
    losses = tuple(
        Curve(label, style, x, _shares(columns, part, whole))
        for label, style, part, whole in (
            (f"lost {near}", 2, "near_lost", "near_shown"),
            (f"lost {far}", 4, "far_lost", "far_shown"),
            ("connections that failed", 5, "failed", "connection_attempts"),
            ("requests without an answer", 3, "requests_unanswered", "requests"),
        )
        if any(_shares(columns, part, whole))
    )
    if losses:
        yield Lane("failures", "", losses)
    rate = columns.select(rate=pl.col("wire_bytes") * 8e9 / starts_ns.step)["rate"]
    yield Lane("load", "bit/s", (Curve("load", OTHER, x, tuple(rate.to_list())),))


def _smoke(
    buckets: pl.DataFrame, starts_ns: range, x: tuple[float, ...], label: str, style: int
) -> Iterator[Curve]:
    """Give the bands of percentiles of merged buckets: 90 % of the samples, then the middle half."""
    values = {name: _percentiles(buckets, starts_ns, share) for name, share in _SHARES.items()}
    yield Curve(f"{label}: 90 % of the samples", style, x, values["p50"], values["p5"], values["p95"])
    yield Curve("the middle half", style, x, values["p50"], values["p25"], values["p75"])


def _percentiles(buckets: pl.DataFrame, starts_ns: range, share: float) -> tuple[float | None, ...]:
    import polars as pl

    merged = (
        buckets.with_columns(column=_column_of(starts_ns))
        .group_by("column", "from_ns", "to_ns")
        .agg(pl.col("samples").sum())
    )
    found = dict(percentile(merged, ["column"], share).select("column", "value").iter_rows())
    return tuple(found.get(column) for column in range(len(starts_ns)))


def _column_of(starts_ns: range) -> pl.Expr:
    """Return the number of the column of a row: the first one may begin before 64-bit times do."""
    import polars as pl

    return pl.col("start_ns") // starts_ns.step - starts_ns.start // starts_ns.step


def _by_column(hours: pl.DataFrame, starts_ns: range) -> pl.DataFrame:
    import polars as pl

    names = ("wire_bytes", "connection_attempts", "connections_refused", "connections_unanswered")
    counts = (*names, "requests", "requests_unanswered", "near_lost", "near_shown", "far_lost", "far_shown")
    # of what clients send, their side is before the capture; of what servers send, it is after it
    from_near = pl.when(pl.col("direction") == "fwd")
    before, after = ("lost_before_capture", "arrivals_shown"), ("lost_behind_capture", "losses_shown")
    by_side = {
        f"{side}_{name}": from_near.then(pl.col(one)).otherwise(pl.col(other))
        for side, ones, others in (("near", before, after), ("far", after, before))
        for name, one, other in zip(("lost", "shown"), ones, others, strict=True)
    }
    summed = (
        hours.with_columns(**by_side, column=_column_of(starts_ns))
        .group_by("column")
        .agg(pl.col(*counts).sum())
    )
    grid = pl.DataFrame({"column": range(len(starts_ns))}, schema={"column": pl.Int64})
    return grid.join(summed, on="column", how="left", maintain_order="left").with_columns(
        failed=pl.col("connections_refused") + pl.col("connections_unanswered")
    )


def _shares(columns: pl.DataFrame, part: str, whole: str) -> tuple[float | None, ...]:
    import polars as pl

    share = pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))
    return tuple(columns.select(share.alias("share"))["share"].to_list())


def _calendar(link: AuditedLink, starts_ns: range) -> Iterator[HeatMap]:
    """Give a row for each objective, and for the groups that missed it most."""
    for number, result in enumerate(link.results):
        own = link.verdicts.filter(objective=number)
        worst = result.failing["group"].to_list()[:_MOST_GROUPS] if result.groups.height > 1 else []
        rows = [HeatRow("all", share_text(result.total.share_met), _cells(own, starts_ns))]
        rows += [_group_row(own, result, group, starts_ns) for group in worst]
        yield HeatMap(result.objective.name, "", 2.0, tuple(rows), is_verdict=True)


def _group_row(
    verdicts: pl.DataFrame, result: ObjectiveResult, group: str | None, starts_ns: range
) -> HeatRow:
    import polars as pl

    own = pl.col("group").eq_missing(pl.lit(group, pl.String))
    share = result.groups.filter(own)["share_met"][0]
    return HeatRow(group or MISSING, share_text(share), _cells(verdicts.filter(own), starts_ns))


def _cells(verdicts: pl.DataFrame, starts_ns: range) -> tuple[float | None, ...]:
    """Return the worst verdict of each interval; None without data."""
    import polars as pl

    worst = pl.max_horizontal(
        pl.when(pl.col(name) > 0).then(pl.lit(value)) for name, value in _SEVERITY.items()
    )
    found = verdicts.group_by(_column_of(starts_ns)).agg(worst.max().alias("worst"))
    by_column = dict(found.iter_rows())
    return tuple(by_column.get(column) for column in range(len(starts_ns)))


def usual_figures(link: AuditedLink, key: str, zone: TimeZone) -> Iterator[Figure]:
    """Give the median RTT of the last week beside that of the same hours before, where there are enough."""
    import polars as pl

    for direction, side in SIDES.items():
        own = link.buckets.filter(pl.col("measure") == "rtt", pl.col("direction") == direction)
        values: dict[int, float] = dict(
            percentile(own, ["start_ns"], 0.5).select("start_ns", "value").iter_rows()
        )
        period = best_period(values)
        found = usual_hours(values, period)
        if not any(one.median is not None for one in found):
            continue
        by_hour = {one.start_ns // _HOUR_NS: one for one in found}
        hours = [by_hour.get(hour) for hour in range(min(by_hour), max(by_hour) + 1)]
        x = tuple((place + 0.5) * _HOUR_NS / _NS for place in range(len(hours)))
        outside = [one for one in found if one.high is not None and one.value > one.high]
        yield Figure(
            key=f"{key}-usual-{direction}",
            title=f"{link.name}: RTT, {side}, and the same hour of earlier {period}s",
            description=f"Median RTT of each hour of the last week; {counted(len(outside), 'hour')} above "
            "the limits of what is usual.",
            caption=(
                f"The band has the limits of 95 % of the median of the same hour of earlier {period}s "
                f"(Wilson's, on ranks), where there are {LEAST_EARLIER} or more."
            ),
            unit="ms",
            curves=(
                Curve(
                    "usual",
                    OTHER,
                    x,
                    _column(hours, "median"),
                    _column(hours, "low"),
                    _column(hours, "high"),
                ),
                Curve("this hour", 1 if direction == "rev" else 2, x, _column(hours, "value")),
            ),
            lasted_s=x[-1] + _HOUR_NS / 2 / _NS,
            axis=time_axis(min(by_hour) * _HOUR_NS, x[-1], zone),
        )


def _column(hours: Sequence[UsualHour | None], name: str) -> tuple[float | None, ...]:
    return tuple(None if hour is None else getattr(hour, name) for hour in hours)
