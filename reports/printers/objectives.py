"""Objectives in words: how many intervals met them, and when they were violated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tfrctrace.base.durations import duration_text
from tfrctrace.base.errors import printable
from tfrctrace.metrics.results.verdict import Stretch
from tfrctrace.reports.units import MISSING, counted, format_count, format_value, is_simulated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult
    from tfrctrace.metrics.results.verdict import Outcome

_S_NS: Final = 10**9
_MINUTE_NS: Final = 60 * _S_NS
_STRETCHES: Final = 5
_GRAVITY: Final = {"no_data": 0, "met": 1, "violated": 2, "severe": 3}
_WORDS: Final = {"no_data": "", "met": "met", "violated": "violated", "severe": "severe"}
_NOUNS: Final = {_S_NS: "second", _MINUTE_NS: "minute", 60 * _MINUTE_NS: "hour", 24 * 60 * _MINUTE_NS: "day"}


def objective_text(objective: Objective) -> str:
    """Return what was asked: `p95(rtt_ms) < 80 ms every 1 min by host`."""
    grouping = objective.grouping
    every = "" if grouping.every_ns is None else f" every {duration_text(grouping.every_ns)}"
    return f"{objective.require}{every} by {grouping.text}"


def verdict_line(outcome: Outcome, every_ns: int | None, unit: str | None = None) -> str:
    """Return the verdict of a group, or of all: `99.2 % of 1,409 minutes with data met it, 9 violated`.

    With the `unit` of values, the worst stretch follows.
    """
    if not outcome.with_data:
        return f"none of {_intervals(outcome.intervals, every_ns)} has enough data"
    parts = [
        f"{share_text(outcome.share_met)} of {_intervals(outcome.with_data, every_ns)} with data met it",
        *(
            f"{format_count(number)} {word}"
            for number, word in (
                (outcome.violated, "violated"),
                (outcome.severe, "severely" if outcome.violated else "severely violated"),
                (outcome.without_data, "without data"),
            )
            if number
        ),
    ]
    line = ", ".join(parts)
    if unit is None or outcome.worst is None:
        return line
    return f"{line}; worst {stretch_text(outcome.worst, unit)}"


def result_lines(results: Sequence[ObjectiveResult], zone: TimeZone) -> Iterator[str]:
    """Give the verdict on each objective, with its worst stretches."""
    for result in results:
        objective = result.objective
        every_ns = objective.grouping.every_ns
        yield ""
        yield f"{objective_text(objective)}: {verdict_line(result.total, every_ns)}"
        stretches = [Stretch(**row) for row in result.stretches.head(_STRETCHES).iter_rows(named=True)]
        for one, line in zip(stretches, stretch_lines(stretches, objective.unit, zone), strict=True):
            yield printable(f"  {one.group or MISSING}: {line}")
        if len(result.stretches) > _STRETCHES:
            yield f"  and {format_count(len(result.stretches) - _STRETCHES)} more"


def worst_verdicts(results: Sequence[ObjectiveResult]) -> dict[tuple[str | None, int], str]:
    """Return the gravest verdict on each group and start of an interval."""
    found: dict[tuple[str | None, int], str] = {}
    for result in results:
        for group, start_ns, verdict in result.intervals.select("group", "start_ns", "verdict").iter_rows():
            before = found.get((group, start_ns), "no_data")
            found[group, start_ns] = max(before, verdict, key=_GRAVITY.__getitem__)
    return {key: _WORDS[verdict] for key, verdict in found.items()}


def stretch_text(stretch: Stretch, unit: str, zone: TimeZone | None = None) -> str:
    """Return when a stretch was, and its worst value: `2026-01-05 14:05 to 14:22 UTC (143 ms, n 210)`."""
    value = format_value(stretch.value, unit)
    return f"{span_text(stretch.begin_ns, stretch.end_ns, zone)} ({value}, n {format_count(stretch.n)})"


def stretch_lines(stretches: list[Stretch], unit: str, zone: TimeZone | None) -> Iterator[str]:
    """Give a line for each stretch, with its intervals."""
    for one in stretches:
        severe = f", {format_count(one.severe)} severely" if one.severe else ""
        yield f"{stretch_text(one, unit, zone)}, {counted(one.intervals, 'interval')} violated{severe}"


def share_text(share: float | None) -> str:
    """Return a share of intervals in percent, rounded down: only all of them are 100 %."""
    if share is None:
        return MISSING
    # 0.995 * 10000 is a little less than 9950
    return f"{math.floor(share * 10_000 + 1e-6) / 100:g} %"


def span_text(begin_ns: int, end_ns: int, zone: TimeZone | None = None) -> str:
    """Return a span of time of day, with seconds where it needs them; seconds of simulations."""
    if is_simulated(begin_ns):
        return f"{begin_ns / _S_NS:g} s to {end_ns / _S_NS:g} s"
    if zone is None:
        # help lists the commands without loading time zones
        from tfrctrace.base.timezones import UTC_ZONE

        zone = UTC_ZONE
    begin, end = zone.moment(begin_ns), zone.moment(end_ns)
    form = "%H:%M"
    if begin_ns % _MINUTE_NS or end_ns % _MINUTE_NS:
        form = "%H:%M:%S" if begin_ns % _S_NS == end_ns % _S_NS == 0 else "%H:%M:%S.%f"
    until = f"{end:{form}}" if begin.date() == end.date() else f"{end:%Y-%m-%d {form}}"
    return f"{begin:%Y-%m-%d {form}} to {until} {zone.name}"


def _intervals(number: int, every_ns: int | None) -> str:
    if every_ns is None or every_ns in _NOUNS:
        return counted(number, "trace" if every_ns is None else _NOUNS[every_ns])
    return f"{counted(number, 'interval')} of {duration_text(every_ns)}"
