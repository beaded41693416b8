"""What was wrong with runs that were measured alike, each fact once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.trace.labels import CLASH, UNUSED
from tfrctrace.trace.measuring import UNUSED_WEIGHT

if TYPE_CHECKING:
    from tfrctrace.base.errors import Problem
    from tfrctrace.runs.engine import MeasuredRuns

NO_SERIES: Final = "no_series"
"""Kind of the problem with a run that lacks the values of a figure."""

OF_OPTIONS: Final = frozenset({CLASH, UNUSED, UNUSED_WEIGHT, NO_SERIES})
"""Kinds of problems whose `source` is an option given for all runs alike: a rule, a weight, a series."""

NEEDED_ONCE: Final = OF_OPTIONS - {CLASH}
"""Kinds that are no problem if some runs do not have them."""


def merge_problems(measured: MeasuredRuns, *, needed_once: bool = False) -> list[Problem]:
    """Return the problems of all runs; one of an option is there once, with how many runs have it.

    With `needed_once` it is enough if an option fits one run.
    """
    read = sum(not record["failed"] for record in measured.records)
    of_options: dict[tuple[str, str], list[tuple[str, Problem]]] = {}
    of_read: list[Problem] = []
    of_failed: list[Problem] = []
    for name, record in zip(measured.names, measured.records, strict=True):
        for problem in record["problems"]:
            if problem["kind"] in OF_OPTIONS and not record["failed"]:
                of_options.setdefault((problem["kind"], problem["source"]), []).append((name, problem))
            else:
                (of_failed if record["failed"] else of_read).append(problem)
    merged = [
        _counted(found, read)
        for (kind, _), found in of_options.items()
        if not (needed_once and kind in NEEDED_ONCE and len(found) < read)
    ]
    return [*merged, *of_read, *of_failed]


def _counted(found: list[tuple[str, Problem]], read: int) -> Problem:
    name, problem = found[0]
    if read == 1:
        return problem
    first = f", first in `{name}`" if len(found) < read else ""
    return {**problem, "message": f"{problem['message']}, in {len(found)} of {read} runs{first}"}
