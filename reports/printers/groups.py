"""The table of groups for a terminal: the columns that people look at first, with human units."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.base.timezones import UTC_ZONE
from tfrctrace.metrics.flow.causes import CAUSE_SUMS, CAUSES
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.records import record
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_bytes,
    format_count,
    format_ms,
    format_rate_bps,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone

_YEAR_NS: Final = 365 * 86_400 * 1_000_000_000
_MINUTE_NS: Final = 60 * 1_000_000_000
_S_NS: Final = 1_000_000_000


class _Group(NamedTuple):
    """What a line shows of a group in one direction and interval."""

    group: str | None
    direction: str
    start_ns: int
    wire_bytes: int
    goodput_bps: float | None
    retransmission_ratio: float | None
    rtt_p50_ms: float | None
    rtt_p95_ms: float | None
    connection_attempts: int
    connections_refused: int
    connections_unanswered: int


_HELD_BACK: Final = "held back by"
_HEADINGS: Final = ("group", "", "bytes", "goodput", "retr.", "RTT p50/p95", "failed")
_INTERVAL_HEADINGS: Final = ("group", "", "start", "goodput", "retr.", "RTT p50/p95", "failed")


def write_groups(
    file: TextIO,
    rows: Sequence[Mapping[str, Any]],
    *,
    total: int,
    order: str,
    every_ns: int | None,
    zone: TimeZone = UTC_ZONE,
    verdicts: Mapping[tuple[str | None, int], str] | None = None,
    has_causes: bool = False,
    width: int | None = None,
) -> None:
    """Write a table of `rows`, of `total` ones; `order` is how these were chosen.

    `verdicts` on a group and the start of an interval, or with `has_causes` what held flows back for most of
    their time, stand in place of failed connections. Where the table is wider than
    `width` (of a terminal, in columns), the name of a group has a line of its own.
    """
    groups = [record(row, _Group) for row in rows]
    if groups:
        headings = _HEADINGS if every_ns is None else _INTERVAL_HEADINGS
        times = list(interval_times([group.start_ns for group in groups], every_ns, zone))
        cells = [_cells(row, time) for row, time in zip(groups, times, strict=True)]
        if has_causes:
            headings = (*headings[:-1], _HELD_BACK)
            cells = [(*cell[:-1], _main_cause(row)) for cell, row in zip(cells, rows, strict=True)]
        if verdicts is not None:
            headings = (*headings[:-1], "verdict")
            keys = [(group.group, group.start_ns) for group in groups]
            cells = [(*cell[:-1], verdicts.get(key, "")) for cell, key in zip(cells, keys, strict=True)]
        lines = _fitting_table(headings, cells, width)
        file.write(f"{lines[0]}\n{'─' * max(map(len, lines))}\n")
        file.writelines(f"{line}\n" for line in lines[1:])
        file.write("\n")
    shows_dates = every_ns is not None and any(group.start_ns >= _YEAR_NS for group in groups)
    zoned = f"; times in {zone.name}" if shows_dates else ""
    file.write(f"{_counted(len(rows), total, order + zoned)}\n")


def _fitting_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
) -> Sequence[str]:
    """Return the lines of the table, with the names of groups above their rows if there is no room beside."""
    lines = aligned([headings, *rows], left={0, 1})
    if width is None or max(map(len, lines)) <= width:
        return lines
    heading, *numbers = aligned([(headings[0], *headings[2:]), *(("", *row[2:]) for row in rows)], left={0})
    names = (f"{name} {direction}" for name, direction, *_ in rows)
    return [heading, *chain.from_iterable(zip(names, numbers, strict=True))]


def _cells(row: _Group, time: str | None) -> tuple[str, ...]:
    failed = None
    if row.connection_attempts:
        failed = row.connections_refused + row.connections_unanswered
    return (
        printable(row.group or MISSING),
        row.direction,
        format_bytes(row.wire_bytes) if time is None else time,
        format_rate_bps(row.goodput_bps),
        format_share(row.retransmission_ratio),
        _pair_ms(row.rtt_p50_ms, row.rtt_p95_ms),
        MISSING if failed is None else f"{format_count(failed)} of {format_count(row.connection_attempts)}",
    )


def _main_cause(row: Mapping[str, Any]) -> str:
    """Return the cause with most of the time of the flows of a row, and its share."""
    times_ns = {cause: row[name] or 0 for cause, name in zip(CAUSES, CAUSE_SUMS, strict=True)}
    whole_ns = sum(times_ns.values())
    if not whole_ns:
        return MISSING
    main = max(CAUSES, key=times_ns.__getitem__)
    return f"{main.replace('_', ' ')} ({format_share(times_ns[main] / whole_ns)})"


def _pair_ms(first: float | None, second: float | None) -> str:
    if first is None or second is None:
        return MISSING
    return f"{format_ms(first).removesuffix(' ms')}/{format_ms(second)}"


def interval_times(starts_ns: Sequence[int], every_ns: int | None, zone: TimeZone) -> Iterator[str | None]:
    """Give the start of each interval: the time of day, with the date if there are several."""
    if every_ns is None:
        yield from [None] * len(starts_ns)
        return
    moments = [zone.moment(start_ns) for start_ns in starts_ns]
    form = "%m-%d %H:%M" if len({each.date() for each in moments}) > 1 else "%H:%M"
    form += "" if every_ns % _MINUTE_NS == 0 else ":%S"
    for start_ns, each in zip(starts_ns, moments, strict=True):
        if abs(start_ns) < _YEAR_NS:
            yield f"{start_ns / _S_NS:g} s"
        else:
            fraction = "" if every_ns % _S_NS == 0 else f".{start_ns % _S_NS // 1_000_000:03d}"
            yield f"{each:{form}}{fraction}"


def _counted(shown: int, total: int, order: str) -> str:
    if not total:
        return "no packet of TCP or UDP"
    if shown == total:
        return f"{counted(total, 'row')}, {order}"
    return (
        f"{format_count(shown)} of {counted(total, 'row')}, {order}; "
        "`--rows 0` shows all, `--format csv` writes every column of all"
    )
