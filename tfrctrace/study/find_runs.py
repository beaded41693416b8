"""Which runs there are, and the parameters of each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.study.definition import NOT_APPLICABLE
from tfrctrace.study.file_pattern import compile_pattern, typed_values
from tfrctrace.study.matching_files import matching_files
from tfrctrace.study.run_table import runs_of_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfrctrace.base.errors import Problem
    from tfrctrace.study.definition import MeasuringPlan, RunRule, Study, Value

MAX_RUNS: Final = 100_000

FAILED: Final = ".failed"
"""Ending of the file beside a run that could not be made; it holds the reason."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: where it is, how the study calls it, and its parameters."""

    path: str
    name: str
    parameters: Mapping[str, Value]
    measure: MeasuringPlan | None = None
    """How it is measured, if not as all others."""


def find_runs(study: Study) -> tuple[list[Run], list[Problem]]:
    """Return the runs in natural order of their names, and the problems of those that are left out.

    Raises `InputError` if none is left.
    """
    problems: list[Problem] = []
    found: dict[str, tuple[RunRule, Mapping[str, str]]] = {}
    for rule in study.runs.rules:
        own, left_out = _found(study, rule)
        problems += left_out
        for name, texts in own.items():
            if name in found:
                problems.append(_left_out(name, "fits several `[[runs]]`", "of these the first is used"))
            found.setdefault(name, (rule, texts))
    if not found or len(found) > MAX_RUNS:
        what = "has no runs" if not found else f"has more than {MAX_RUNS} runs"
        hint = how_to_make(study) if not found else None
        raise InputError([*problems, input_problem(study.path, "no_runs", what, hint=hint)])
    columns = {name: _column(name, found.values()) for name in study.runs.parameters}
    return [
        Run(
            os.path.join(study.folder, name),
            name,
            {key: values[place] for key, values in columns.items()},
            rule.measure,
        )
        for place, (name, (rule, _)) in enumerate(found.items())
    ], problems


def how_to_make(study: Study) -> str | None:
    """Return what to do about runs that are not there."""
    return f"`{study.runs.made_by}` makes them" if study.runs.made_by else None


def _column(name: str, found: Iterable[tuple[RunRule, Mapping[str, str]]]) -> list[Value]:
    """Return the values of one parameter in all runs: numbers if each is one, empty where there is none."""
    texts = [texts.get(name, NOT_APPLICABLE) for _, texts in found]
    typed = iter(typed_values([text for text in texts if text]))
    return [next(typed) if text else NOT_APPLICABLE for text in texts]


def _found(study: Study, rule: RunRule) -> tuple[dict[str, dict[str, str]], list[Problem]]:
    """Return the parameters of the runs of one rule, as they are written, and what is left out."""
    problems: list[Problem] = []
    listed = _listed(study, rule.table) if rule.table is not None else None
    names = _fitting(study, rule.files, problems) if rule.files else list(listed or ())
    known: dict[str, dict[str, str]]
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
    constants = {name: str(value) for name, value in rule.constants.items()}
    return {name: {**own, **constants} for name, own in known.items()}, problems


def _fitting(study: Study, patterns: Iterable[str], problems: list[Problem]) -> list[str]:
    """Return the paths that fit, each once; beside a run that could not be made is a file with the reason."""
    names: dict[str, None] = {}
    for pattern in patterns:
        found = matching_files(pattern, study.folder)
        # a pattern that ends in `*` fits the reasons, too
        failed = [*matching_files(pattern + FAILED, study.folder), *filter(_is_reason, found)]
        if not found and not failed:
            hint = how_to_make(study)
            problems.append(input_problem(pattern, "no_runs", "fits no run", severity="warning", hint=hint))
        names.update(dict.fromkeys(name for name in found if not _is_reason(name)))
        # a run that was made after all counts
        names.update(dict.fromkeys(name.removesuffix(FAILED) for name in failed))
    return list(names)


def _is_reason(name: str) -> bool:
    return name.endswith(FAILED)


def _left_out(name: str, why: str, so: str = "so it is left out") -> Problem:
    return input_problem(name, "left_out", f"{why}, {so}", severity="warning")


def _listed(study: Study, called: str) -> dict[str, dict[str, str]]:
    try:
        return runs_of_table(study.folder, called)
    except UsageError as error:
        raise InputError([input_problem(study.path, "table_of_runs", str(error))]) from error
