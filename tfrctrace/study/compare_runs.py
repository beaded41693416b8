"""Two sides, each of one run or several, and how their metrics differ."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.metrics.catalogue import CATALOGUE
from tfrctrace.metrics.evaluation import TIMESCALES_NS
from tfrctrace.metrics.results.comparison import Difference
from tfrctrace.parsers.sources import find_inputs, is_url
from tfrctrace.runs.copies import without_copies
from tfrctrace.runs.engine import measure_runs
from tfrctrace.runs.problems import merge_problems
from tfrctrace.runs.quantity import Quantity, Term
from tfrctrace.study.competing_groups import competition_notes
from tfrctrace.study.definition import GROUP
from tfrctrace.study.find_runs import Run
from tfrctrace.study.left_out import left_out_notes
from tfrctrace.study.matching_files import matching_files
from tfrctrace.study.results.cells import summarise
from tfrctrace.study.results.differences import compare_cells, holm_corrected
from tfrctrace.study.results.run_quantities import run_values
from tfrctrace.study.run_record import check_reading, study_record, study_tasks
from tfrctrace.trace.labels import parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.study import StudyRecord
    from tfrctrace.runs.cache import Cache
    from tfrctrace.runs.engine import Progress
    from tfrctrace.runs.workers import Workers
    from tfrctrace.study.definition import MeasuringPlan
    from tfrctrace.study.results.cells import Cell
    from tfrctrace.study.results.differences import TestResult

SIDE: Final = "side"
FIRST: Final = "A"
SECOND: Final = "B"

COV: Final = "cov"

LEVEL: Final = 0.95
"""Confidence of the intervals."""


def runs_of(side: str, called: str) -> tuple[list[Run], list[Problem]]:
    """Return the runs that an argument names, and the problems of those that are left out.

    They are a trace, those below a directory, or those that fit a pattern; copies count once. Raises
    `InputError` if there are none, and `UsageError` for a URL.
    """
    if is_url(side):
        raise UsageError(
            f"`{side}` is no file, and runs are read from files", hint="fetch it, and compare the file"
        )
    problems: list[Problem] = []
    if os.path.exists(side):
        inputs = find_inputs([side])
        names, problems = inputs.names, inputs.problems
    else:
        names = matching_files(side)
    if not names:
        raise InputError(
            problems or [input_problem(side, "no_runs", "is neither a trace nor a pattern that matches one")]
        )
    distinct, copies = without_copies([(name,) for name in names])
    return [Run(name, name, {SIDE: called}) for (name,) in distinct], [*problems, *copies]


def parse_groups(text: str) -> tuple[str, str]:
    """Return the two labels of `one:other`."""
    first, colon, second = (part.strip() for part in text.partition(":"))
    if not (first and colon and second):
        raise UsageError(f"`{text}` does not name two groups", hint="write such as `cubic:reno`")
    return first, second


def differences(
    first: str,
    second: str,
    measuring: MeasuringPlan,
    names: Sequence[str],
    *,
    groups: tuple[str, str] | None,
    level: float,
    holm: bool,
    workers: Workers,
    cache: Cache | None,
    progress: Progress | None,
) -> tuple[list[TestResult], list[Problem]]:
    """Return how each metric of the second side differs from the first one, and what was wrong with runs.

    With `groups` the flows of one label on the first side are compared with those of another on the second.
    Raises `InputError` if a side has no run that could be read, and `UsageError` if groups are to be compared
    by metrics that have none.
    """
    quantities = list(_quantities(names))
    if groups is not None and not any(quantity.is_about_groups for quantity in quantities):
        raise UsageError(f"{', '.join(names)} is a metric of all flows together, not of groups")
    check_reading(measuring)
    (of_first, problems), (of_second, more) = runs_of(first, FIRST), runs_of(second, SECOND)
    runs = [*of_first, *of_second]
    if groups is None:
        # with groups, both sides may be of the same runs
        problems += without_copies([(run.path,) for run in runs])[1]
    measured = measure_runs(study_tasks(runs, measuring, ()), workers=workers, store=cache, progress=progress)
    problems += [*more, *merge_problems(measured, needed_once=True)]
    records = list(map(study_record, measured.records))
    read = [(run, record) for run, record in zip(runs, records, strict=True) if record is not None]
    if {run.parameters[SIDE] for run, _ in read} != {FIRST, SECOND}:
        raise InputError(problems)
    problems += left_out_notes([run.name for run in runs], records, quantities)
    labels = list(dict.fromkeys(parse_rule(rule).label for rule in measuring.labels))
    values = [
        (run, run_value)
        for run, record in read
        for quantity in quantities
        for run_value in run_values(record, quantity, labels)
    ]
    cells = summarise(values, [SIDE], level)
    if groups is not None:
        problems += _missing_groups(read, groups, (first, second))
        problems += competition_notes([groups], [run.name for run in runs], records)
        cells = list(_paired_groups(cells, groups))
    made = list(_compared(cells, level))
    return holm_corrected(made) if holm else made, problems


def _quantities(names: Sequence[str]) -> Iterator[Quantity]:
    """Give those metrics, or all but `cov`, which is many numbers: one for each timescale."""
    for described in CATALOGUE:
        name = described.name
        if name == COV and name in names:
            for scale_s in (scale_ns / 1e9 for scale_ns in TIMESCALES_NS):
                yield Quantity(f"{name} {scale_s:g} s", Term(name, "mean", "metric", timescale_s=scale_s))
        elif name in names or (not names and name != COV):
            yield Quantity(name, Term(name, "mean", "metric"))


def _missing_groups(
    read: Sequence[tuple[Run, StudyRecord]], groups: tuple[str, str], sides: tuple[str, str]
) -> Iterator[Problem]:
    """Warn of a group that no flow of its side has."""
    for side, group, called in zip((FIRST, SECOND), groups, sides, strict=True):
        records = (record for run, record in read if run.parameters[SIDE] == side)
        if not any(flow.group == group for record in records for flow in record.flows):
            yield input_problem(called, "group", f"no flow of the group `{group}`", severity="warning")


def _paired_groups(cells: Sequence[Cell], groups: tuple[str, str]) -> Iterator[Cell]:
    """Give the cells of one group of each side, as if it were one group."""
    for cell in cells:
        if cell.group == groups[0 if cell.scenario[SIDE] == FIRST else 1]:
            yield replace(cell, group=f"{groups[0]}, {groups[1]}")


def _compared(cells: Sequence[Cell], level: float) -> Iterator[TestResult]:
    parts: dict[tuple[str, str | None], list[Cell]] = {}
    for cell in cells:
        parts.setdefault((cell.quantity, cell.group), []).append(cell)
    for (quantity, group), members in parts.items():
        common = () if group is None else ((GROUP, group),)
        # the second side first: the difference is B - A
        ordered = sorted(members, key=lambda cell: str(cell.scenario[SIDE]), reverse=True)
        yield compare_cells(ordered, quantity, SIDE, common, level)


def as_difference(found: TestResult) -> Difference:
    """Return what results have of a metric; the first level of its test is B."""
    by_level = dict(zip(found.levels, zip(found.runs, found.means, strict=True), strict=True))
    runs_a, mean_a = by_level.get("A", (0, None))
    runs_b, mean_b = by_level.get("B", (0, None))
    group = dict(found.scenario).get("group")
    return Difference(
        metric=found.quantity,
        group=None if group is None else str(group),
        unit=found.unit,
        runs_a=runs_a,
        runs_b=runs_b,
        mean_a=mean_a,
        mean_b=mean_b,
        difference=found.difference,
        low=found.low,
        high=found.high,
        effect=found.effect,
        p_value=found.p_value,
        p_holm=found.p_holm,
        reason=found.reason,
    )
