"""Which runs there are, and the parameters of each."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.parsers.sources import natural_key
from tfrctrace.study.file_pattern import compile_pattern, typed_values
from tfrctrace.study.run_table import runs_of_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfrctrace.base.errors import Problem
    from tfrctrace.study.definition import Study, Value

MAX_RUNS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Run:
    """One run: where it is, how the study calls it, and its parameters."""

    path: str
    name: str
    parameters: Mapping[str, Value]


def find_runs(study: Study) -> tuple[list[Run], list[Problem]]:
    """Return the runs in natural order of their names, and the problems of those that are left out.

    Raises `InputError` if none is left.
    """
    problems: list[Problem] = []
    rule = study.runs
    listed = _listed(study, rule.table) if rule.table is not None else None
    names = _fitting(study.folder, rule.files, problems) if rule.files else list(listed or ())
    if listed is not None:
        known = {name: listed[name] for name in names if name in listed}
        problems += [_left_out(name, f"is not in `{rule.table}`") for name in names if name not in listed]
    elif rule.pattern is not None:
        form = compile_pattern(rule.pattern)
        fits = {name: form.fullmatch(name.replace(os.sep, "/")) for name in names}
        known = {name: found.groupdict() for name, found in fits.items() if found}
        problems += [
            _left_out(name, f"does not fit the pattern `{rule.pattern}`")
            for name, found in fits.items()
            if not found
        ]
    else:
        known = {name: {} for name in names}
    if not known or len(known) > MAX_RUNS:
        what = "has no runs" if not known else f"has more than {MAX_RUNS} runs"
        raise InputError([*problems, input_problem(study.path, "no_runs", what)])
    columns = {name: typed_values([own[name] for own in known.values()]) for name in rule.parameters}
    return [
        Run(os.path.join(study.folder, name), name, {key: values[place] for key, values in columns.items()})
        for place, name in enumerate(known)
    ], problems


def _fitting(folder: str, patterns: Iterable[str], problems: list[Problem]) -> list[str]:
    """Return the paths that fit, each once."""
    names: dict[str, None] = {}
    for pattern in patterns:
        found = sorted(glob.glob(pattern, root_dir=folder or None, recursive=True), key=natural_key)
        if not found:
            problems.append(input_problem(pattern, "no_runs", "fits no run", severity="warning"))
        names.update(dict.fromkeys(found))
    return list(names)


def _left_out(name: str, why: str) -> Problem:
    return input_problem(name, "left_out", f"{why}, so it is left out", severity="warning")


def _listed(study: Study, called: str) -> dict[str, dict[str, str]]:
    try:
        return runs_of_table(study.folder, called)
    except UsageError as error:
        raise InputError([input_problem(study.path, "table_of_runs", str(error))]) from error
