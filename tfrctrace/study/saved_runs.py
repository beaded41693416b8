"""The values of all runs of a study in one file, from which tables and figures are made without a trace."""

from __future__ import annotations

import lzma
from collections import Counter
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError, input_problem
from tfrctrace.base.version import VERSION
from tfrctrace.metrics.results.study import SAVED_VERSION, SavedRun, SavedStudy, SavedValue, StudyRecord
from tfrctrace.study.find_runs import MAX_RUNS, Run
from tfrctrace.study.results.run_quantities import RunValue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.study import Series
    from tfrctrace.study.definition import Study

MAX_BYTES: Final = 100_000_000
"""Of the JSON, in which 156 runs take 0.2 MB."""


def saved_runs(
    study: Study,
    records: Sequence[tuple[Run, StudyRecord | None]],
    values: Sequence[tuple[Run, RunValue]],
    shown: Mapping[str, Collection[str]],
    problems: Sequence[Problem],
) -> bytes:
    """Return the file of what was measured; `shown` has the runs of each series that a figure draws."""
    import msgspec

    by_run: dict[str, list[SavedValue]] = {run.name: [] for run, _ in records}
    for run, one in values:
        by_run[run.name].append(
            SavedValue(
                quantity=one.quantity,
                group=one.group,
                value=one.value,
                unit=one.unit,
                made_of=one.made_of,
                flow=one.flow,
                reason=one.reason,
            )
        )
    runs = [
        SavedRun(
            name=run.name,
            parameters=dict(run.parameters),
            failed=record is None,
            values=by_run[run.name],
            series={} if record is None else dict(_shown_series(run, record, shown)),
        )
        for run, record in records
    ]
    saved = SavedStudy(
        saved_version=SAVED_VERSION,
        made_with=f"tfrctrace {VERSION}",
        settings=dict(study.settings),
        runs=runs,
        problems=list(problems),
    )
    return lzma.compress(msgspec.json.encode(saved))


def _shown_series(
    run: Run, record: StudyRecord, shown: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, list[Series]]]:
    for name, series in record.series.items():
        if run.name in shown.get(name, ()):
            yield name, series


def read_saved(path: str) -> SavedStudy:
    """Return what `saved_runs` wrote to the file `path`. Raises `InputError` for anything else."""
    import msgspec

    try:
        with lzma.open(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError([input_problem(path, "saved", f"has more than {MAX_BYTES:,} bytes")])
        saved = msgspec.json.decode(content, type=SavedStudy)
    except (OSError, EOFError, lzma.LZMAError, ValueError, RecursionError) as error:
        hint = "`tfrctrace experiment --format runs` writes them"
        problem = input_problem(path, "saved", f"cannot be read as saved runs: {error}", hint=hint)
        raise InputError([problem]) from error
    if not 0 < len(saved.runs) <= MAX_RUNS:
        raise InputError([input_problem(path, "no_runs", f"has {len(saved.runs):,} runs")])
    names = [run.name for run in saved.runs]
    if len(set(names)) < len(names):
        twice = next(name for name, number in Counter(names).items() if number > 1)
        raise InputError([input_problem(path, "saved", f"has the run `{twice}` more than once")])
    return saved


def runs_of(saved: SavedStudy, study: Study, path: str) -> list[tuple[Run, StudyRecord | None]]:
    """Return the runs, and of each that could be read a record with the series that are drawn.

    Raises `InputError` if the file is of another study.
    """
    found = []
    for run in saved.runs:
        if set(run.parameters) != set(study.runs.parameters):
            message = f"is of another study: its run `{run.name}` has other parameters"
            raise InputError([input_problem(path, "saved", message)])
        record = StudyRecord(
            failed=False,
            problems=[],
            sets=0,
            set=None,
            least_packets=0,
            flows_left_out=0,
            metrics=[],
            flows=[],
            series=run.series,
        )
        found.append((Run("", run.name, run.parameters), None if run.failed else record))
    return found


def values_of(saved: SavedStudy, study: Study, runs: Sequence[Run], path: str) -> list[tuple[Run, RunValue]]:
    """Return the values of the runs. Raises `InputError` if quantities of the study are not there."""
    bounds = {quantity.name: quantity.bounds for quantity in study.quantities}
    known = {one.quantity for run in saved.runs for one in run.values}
    if missing := [name for name in bounds if name not in known]:
        message = f"has no values of {', '.join(f'`{name}`' for name in missing)}"
        raise InputError([input_problem(path, "saved", message, hint="measure the runs again")])
    return [
        (
            run,
            RunValue(
                quantity=one.quantity,
                group=one.group,
                value=one.value,
                unit=one.unit,
                made_of=one.made_of,
                flow=one.flow,
                reason=one.reason,
                bounds=bounds[one.quantity],
            ),
        )
        for run, of_run in zip(runs, saved.runs, strict=True)
        for one in of_run.values
        if one.quantity in bounds
    ]
