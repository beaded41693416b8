"""Objectives in a report: a verdict each, who missed them and when, and rows of verdicts over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.results.verdict import Outcome, Stretch
from tfrctrace.reports.elements import Cell, Heading, HeatMap, HeatRow, Name, Row, Section, TableView
from tfrctrace.reports.printers.objectives import objective_text, share_text, verdict_line
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_count,
    format_duration_s,
    format_stretch_ns,
    format_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.objectives import ObjectiveResult
    from tfrctrace.reports.elements import Words

_MOST_ROWS: Final = 200
"""Rows of a table."""

_MOST_GROUPS: Final = 4
"""Groups of an objective whose verdicts are drawn."""

_SEVERITY: Final = {"met": 0.0, "violated": 1.0, "severe": 2.0}
"""Values of cells; an interval without data has none."""

_GROUP_HEADINGS: Final = (
    Heading("Group", numeric=False),
    Heading("Met", meaning="share of the intervals with data that met the objective"),
    Heading("Violated", meaning="intervals that violated it, not severely"),
    Heading("Severely", meaning="intervals that violated it severely"),
    Heading("Without data", meaning="intervals with too few samples: they neither met it nor violated it"),
    Heading("Intervals", meaning="between the first and the last packet of the trace"),
)
_STRETCH_HEADINGS: Final = (
    Heading("When", numeric=False, meaning="consecutive violated intervals"),
    Heading("Group", numeric=False),
    Heading("Worst", meaning="worst value of an interval"),
    Heading("n", meaning="samples of the worst value"),
    Heading("Violated", meaning="violated intervals"),
    Heading("Severely", meaning="of them severely"),
)


def verdicts(results: Sequence[ObjectiveResult], zone: TimeZone) -> Iterator[Words]:
    """Yield the verdict on each objective, those that were missed first."""
    for result in sorted(results, key=lambda one: one.total.meets(one.objective.target) is not False):
        yield (
            Name(result.objective.name, "objectives"),
            f" {_word(result.total.meets(result.objective.target))}: {_line(result, result.total, zone)}.",
        )


def _word(is_met: bool | None) -> str:
    return "has no data" if is_met is None else "met" if is_met else "missed"


def _line(result: ObjectiveResult, outcome: Outcome, zone: TimeZone) -> str:
    line = verdict_line(outcome, result.objective.grouping.every_ns)
    if outcome.worst is None:
        return line
    worst = outcome.worst
    whose = f" for {worst.group}" if worst.group is not None and result.groups.height > 1 else ""
    value = f"{format_value(worst.value, result.objective.unit)}, n {format_count(worst.n)}"
    return f"{line}; worst {format_stretch_ns(worst.begin_ns, worst.end_ns, zone)}{whose} ({value})"


def objectives_section(
    results: Sequence[ObjectiveResult], zone: TimeZone, prefix: str = "objective"
) -> Section:
    """Return the groups and the stretches of each objective; empty without any.

    `prefix` begins the keys of tables and rows.
    """
    tables = [
        table
        for number, result in enumerate(results, 1)
        for table in _tables(f"{prefix}-{number}", result, zone)
    ]
    findings = tuple(
        (
            Name(result.objective.name),
            f" ({objective_text(result.objective)}, target {share_text(result.objective.target)}): "
            f"{_line(result, result.total, zone)}.",
        )
        for result in results
    )
    return Section("objectives", "Objectives", findings=findings, tables=tuple(tables))


def _tables(key: str, result: ObjectiveResult, zone: TimeZone) -> Iterator[TableView]:
    name = result.objective.name
    if result.groups.height > 1:
        outcomes = result.outcomes(result.groups.head(_MOST_ROWS))
        yield TableView(
            f"{key}-groups",
            f"{name}: groups, worst first{_rest(result.groups.height)}.",
            _GROUP_HEADINGS,
            tuple(_group_row(f"{key}-group-{place}", one) for place, one in enumerate(outcomes, 1)),
            sortable=True,
        )
    if result.stretches.height:
        stretches = [Stretch(**row) for row in result.stretches.head(_MOST_ROWS).to_dicts()]
        yield TableView(
            f"{key}-stretches",
            f"{name}: violated stretches, worst first{_rest(result.stretches.height)}.",
            _STRETCH_HEADINGS,
            tuple(
                _stretch_row(f"{key}-stretch-{place}", one, result.objective.unit, zone)
                for place, one in enumerate(stretches, 1)
            ),
            sortable=True,
        )


def _rest(rows: int) -> str:
    return f"; {counted(rows - _MOST_ROWS, 'row')} left out" if rows > _MOST_ROWS else ""


def _group_row(key: str, outcome: Outcome) -> Row:
    counts = (outcome.violated, outcome.severe, outcome.without_data, outcome.intervals)
    return Row(
        key,
        (
            Cell(MISSING if outcome.group is None else outcome.group),
            Cell(share_text(outcome.share_met), sort=outcome.share_met),
            *(Cell(format_count(count), sort=count) for count in counts),
        ),
    )


def _stretch_row(key: str, one: Stretch, unit: str, zone: TimeZone) -> Row:
    lasted = format_duration_s((one.end_ns - one.begin_ns) / 1e9)
    return Row(
        key,
        (
            Cell(format_stretch_ns(one.begin_ns, one.end_ns, zone), lasted),
            Cell(MISSING if one.group is None else one.group),
            Cell(format_value(one.value, unit), sort=one.value),
            *(Cell(format_count(count), sort=count) for count in (one.n, one.intervals, one.severe)),
        ),
    )


def verdict_maps(
    results: Sequence[ObjectiveResult], starts_ns: Sequence[int], width_ns: int
) -> Iterator[HeatMap]:
    """Yield the verdicts on each objective over time: the worst of all groups, then groups that missed it."""
    import polars as pl

    for result in results:
        # worst first
        groups = result.groups.filter(pl.col("share_met") < result.objective.target)["group"].to_list()
        total = result.total
        rows = [HeatRow("all", share_text(total.share_met), _cells(result, starts_ns, width_ns))]
        rows += [
            HeatRow(
                str(group),
                share_text(result.outcome(group).share_met),
                _cells(result, starts_ns, width_ns, group),
            )
            for group in groups[:_MOST_GROUPS]
            if result.groups.height > 1
        ]
        yield HeatMap(result.objective.name, "", 2.0, tuple(rows), is_verdict=True)


def _cells(
    result: ObjectiveResult, starts_ns: Sequence[int], width_ns: int, group: str | None = None
) -> tuple[float | None, ...]:
    """Return the worst verdict in each interval of the picture, of one group or of all."""
    import polars as pl

    judged = result.intervals.filter(pl.col("verdict").is_in(list(_SEVERITY)))
    if group is not None:
        judged = judged.filter(pl.col("group") == group)
    cells: list[float | None] = [None] * len(starts_ns)
    for start_ns, end_ns, verdict in judged.select("start_ns", "end_ns", "verdict").iter_rows():
        first = max((start_ns - starts_ns[0]) // width_ns, 0)
        last = min((end_ns - 1 - starts_ns[0]) // width_ns, len(cells) - 1)
        for place in range(first, last + 1):
            cells[place] = max(cells[place] or 0.0, _SEVERITY[verdict])
    return tuple(cells)


def bad_stretches_ns(results: Sequence[ObjectiveResult]) -> list[tuple[int, int]]:
    """Return when any objective was violated, overlapping stretches as one."""
    spans = sorted(
        span for result in results for span in result.stretches.select("begin_ns", "end_ns").iter_rows()
    )
    merged: list[tuple[int, int]] = []
    for begin_ns, end_ns in spans:
        if merged and begin_ns <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_ns))
        else:
            merged.append((begin_ns, end_ns))
    return merged
