"""A study performed: its runs measured, and what they say together."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfrctrace.base.errors import InputError, input_problem
from tfrctrace.runs.engine import measure_runs
from tfrctrace.runs.problems import merge_problems
from tfrctrace.study.competing_groups import compared_groups, competition_notes
from tfrctrace.study.definition import NOT_APPLICABLE
from tfrctrace.study.find_runs import find_runs
from tfrctrace.study.left_out import left_out_notes
from tfrctrace.study.place_of_run import without_wrong_places
from tfrctrace.study.results.cells import summarise
from tfrctrace.study.results.check_claims import check_claim
from tfrctrace.study.results.differences import differences_between
from tfrctrace.study.results.judge import judge
from tfrctrace.study.results.run_quantities import run_values
from tfrctrace.study.run_record import study_record, study_tasks
from tfrctrace.study.saved_runs import runs_of, values_of
from tfrctrace.trace.labels import UNUSED, parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.study import SavedStudy, StudyRecord
    from tfrctrace.runs.cache import Cache
    from tfrctrace.runs.engine import Progress
    from tfrctrace.runs.workers import Workers
    from tfrctrace.study.definition import Study
    from tfrctrace.study.find_runs import Run
    from tfrctrace.study.results.cells import Cell
    from tfrctrace.study.results.check_claims import ClaimVerdict
    from tfrctrace.study.results.differences import TestResult
    from tfrctrace.study.results.judge import Judgement
    from tfrctrace.study.results.run_quantities import RunValue


@dataclass(frozen=True, slots=True)
class StudyResults:
    """What a study found."""

    study: Study
    runs: list[Run]
    records: list[StudyRecord | None]
    cached: int
    """Runs that were not measured again."""
    run_values: list[tuple[Run, RunValue]]
    cells: list[Cell]
    tests: list[TestResult]
    verdicts: list[ClaimVerdict]
    judgements: list[Judgement]
    """Of each criterion and algorithm, if the study judges."""
    problems: list[Problem]
    pages: Mapping[str, str] = field(default_factory=dict)
    """The report of a run by its name, as a path from the study's page."""

    def read(self) -> Iterator[tuple[Run, StudyRecord]]:
        """Give the runs that could be read."""
        for run, record in zip(self.runs, self.records, strict=True):
            if record is not None:
                yield run, record

    def cells_by(self, axes: Iterable[str]) -> list[Cell]:
        """Return cells that differ in each of `axes`, which may be the repetition too."""
        runs = self.study.runs
        if runs.repetition is None or runs.repetition not in axes:
            return self.cells
        return summarise(self.run_values, runs.parameters, self.study.confidence)

    def values(self) -> pl.DataFrame:
        """Return a row for each run, quantity and group: its parameters, the value and where it is from."""
        rows = [
            {
                **run.parameters,
                "file": run.name,
                "quantity": one.quantity,
                "group": one.group,
                "flow": one.flow,
                "value": one.value,
                "unit": one.unit,
                "made_of": one.made_of,
                "reason": one.reason,
            }
            for run, one in self.run_values
        ]
        return _frame(rows, [*self.study.runs.parameters, *_VALUE_TYPES], _VALUE_TYPES)

    def summary(self) -> pl.DataFrame:
        """Return a row for each scenario, quantity and group: mean, spread and intervals, in its unit."""
        return _frame(
            [_summary_row(cell) for cell in self.cells],
            [*self.study.runs.scenario, *_SUMMARY_TYPES],
            _SUMMARY_TYPES,
        )


_VALUE_TYPES = {
    "file": "String",
    "quantity": "String",
    "group": "String",
    "flow": "UInt32",
    "value": "Float64",
    "unit": "String",
    "made_of": "Int64",
    "reason": "String",
}
_SUMMARY_TYPES = {
    "quantity": "String",
    "group": "String",
    "unit": "String",
    "runs": "Int64",
    "missing": "Int64",
    **dict.fromkeys(
        ("mean", "std", "low", "high", "bootstrap_low", "bootstrap_high", "min", "median", "max"), "Float64"
    ),
    "reason": "String",
}


def _summary_row(cell: Cell) -> dict[str, Any]:
    student, bootstrap = cell.student, cell.bootstrap
    return {
        **cell.scenario,
        "quantity": cell.quantity,
        "group": cell.group,
        "unit": cell.unit,
        "runs": len(cell.values),
        "missing": cell.missing,
        "mean": cell.mean,
        "std": student.std if student else None,
        "low": student.low if student else None,
        "high": student.high if student else None,
        "bootstrap_low": bootstrap.low if bootstrap else None,
        "bootstrap_high": bootstrap.high if bootstrap else None,
        "min": min(cell.values, default=None),
        "median": statistics.median(cell.values) if cell.values else None,
        "max": max(cell.values, default=None),
        "reason": cell.reason,
    }


def _frame(rows: Sequence[dict[str, Any]], names: Sequence[str], types: dict[str, str]) -> pl.DataFrame:
    """Return rows as a frame; parameters have the type of their values."""
    import polars as pl

    schema = {name: getattr(pl, types[name]) if name in types else None for name in names}
    known = [
        {name: None if value == NOT_APPLICABLE else value for name, value in row.items()} for row in rows
    ]
    return pl.DataFrame(known, schema=schema, infer_schema_length=None)


def perform(
    study: Study, *, workers: Workers, cache: Cache | None, force: bool, progress: Progress | None = None
) -> StudyResults:
    """Measure the runs of a study and summarise them.

    Runs that cannot be read are problems of the result. Raises `InputError` if none can be.
    """
    runs, problems = find_runs(study)
    drawn = {plan.y for plan in study.figures if plan.kind == "time series"}
    measured_series = {quantity.term.name for quantity in study.quantities if quantity.term.kind == "series"}
    series = sorted(drawn | measured_series)
    tasks = study_tasks(runs, study.measure, series)
    measured = measure_runs(tasks, workers=workers, store=cache, force=force, progress=progress)
    # the rows of a study that judges say which scenarios, and so which labels, have no run
    known = set() if study.judging is None else {UNUSED}
    of_runs = merge_problems(measured, needed_once=True)
    problems += [problem for problem in of_runs if problem["kind"] not in known]
    records = list(map(study_record, measured.records))
    if study.judging is not None:
        records, of_other_places = without_wrong_places(runs, records, study.judging)
        problems += of_other_places
    if not any(records):
        raise InputError(problems)
    plans = [rule.measure or study.measure for rule in study.runs.rules]
    labels = list(dict.fromkeys(parse_rule(rule).label for plan in plans for rule in plan.labels))
    values = [
        (run, run_value)
        for run, record in zip(runs, records, strict=True)
        if record is not None
        for quantity in study.quantities
        for run_value in run_values(record, quantity, labels)
    ]
    problems += _several_sets(runs, records)
    names = [run.name for run in runs]
    problems += competition_notes(compared_groups(study, records), names, records)
    problems += left_out_notes(names, records, study.quantities)
    return _results(study, list(zip(runs, records, strict=True)), values, problems, cached=measured.cached)


def results_of_saved(study: Study, saved: SavedStudy, path: str) -> StudyResults:
    """Return the results of runs that were measured before, and saved in the file `path`."""
    records = runs_of(saved, study, path)
    values = values_of(saved, study, [run for run, _ in records], path)
    return _results(study, records, values, saved.problems, cached=len(records))


def _results(
    study: Study,
    records: Sequence[tuple[Run, StudyRecord | None]],
    values: list[tuple[Run, RunValue]],
    problems: Iterable[Problem],
    *,
    cached: int,
) -> StudyResults:
    """Return what the values of runs say together."""
    scenario = study.runs.scenario
    cells = summarise(values, scenario, study.confidence)
    return StudyResults(
        study=study,
        runs=[run for run, _ in records],
        records=[record for _, record in records],
        cached=cached,
        run_values=values,
        cells=cells,
        tests=[
            test
            for plan in study.comparisons
            for test in differences_between(cells, plan, scenario, study.confidence)
        ],
        verdicts=[
            check_claim(cells, expectation, study.runs, study.confidence, study.cannot_tell)
            for expectation in study.expectations
        ],
        judgements=[] if study.judging is None else judge(cells, study.judging, study.confidence),
        problems=list(problems),
    )


def _several_sets(runs: Sequence[Run], records: Sequence[StudyRecord | None]) -> Iterator[Problem]:
    """Give a note for each run with several competing sets, of which one is measured."""
    for run, record in zip(runs, records, strict=True):
        if record is not None and record.sets > 1:
            message = f"has {record.sets} competing sets; results are of that with most flows times time"
            yield input_problem(run.name, "competing_sets", message, severity="note")
