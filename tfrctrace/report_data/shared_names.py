"""Names of inputs in results that are shared: without the folders of this machine that lead to them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import STANDARD_INPUT
from tfrctrace.parsers.sources import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.reports.results import Results


_COLUMNS: Final = frozenset({"source", "from", "to"})
"""Columns of tables with the name of an input."""


@dataclass(frozen=True, slots=True)
class SharedNames:
    """Names relative to the folder that holds all inputs."""

    folder: str
    """Empty if there is none: standard input, or drives that differ."""

    @classmethod
    def of(cls, names: Iterable[str]) -> SharedNames:
        """Return the shared names of the inputs `names`."""
        files = (name for name in names if name != STANDARD_INPUT and not is_url(name))
        folders = [os.path.dirname(os.path.abspath(name)) for name in files]
        try:
            return cls(os.path.commonpath(folders) if folders else "")
        except ValueError:
            return cls("")

    def name(self, path: str) -> str:
        """Return the shared name of a file or folder; any other text, such as an option or URL, as it is."""
        if os.sep not in path or is_url(path):
            return path
        full = os.path.abspath(path)
        below = os.path.join(self.folder, "")
        if self.folder and full.startswith(below):
            return full.removeprefix(below)
        return os.path.basename(full) if os.path.isabs(path) else path

    def problem(self, problem: Problem) -> Problem:
        """Return a problem of an input."""
        return {**problem, "source": self.name(problem["source"])}

    def facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return other facts about an input."""
        return {**facts, "source": self.name(facts["source"])}

    def frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a table; only columns of names change."""
        import polars as pl

        shared = []
        for column in _COLUMNS.intersection(frame.columns):
            names = frame.select(pl.col(column).unique())[column].drop_nulls().to_list()
            new = [self.name(name) for name in names]
            if new != names:
                shared.append(pl.col(column).replace_strict(names, new, default=None, return_dtype=pl.String))
        return frame.with_columns(shared)


def without_folders(results: Results) -> Results:
    """Return results with the shared names of their inputs in all tables and facts."""
    shared = SharedNames.of(source["source"] for source in results.sources)
    measured = results.measured
    if measured is not None:
        sets = (replace(found, source=shared.name(found.source)) for found in measured.competing_sets)
        measured = replace(measured, competing_sets=tuple(sets))
    return replace(
        results,
        flows=shared.frame(results.flows),
        bins=shared.frame(results.bins),
        sources=[shared.facts(source) for source in results.sources],
        problems=[shared.facts(problem) for problem in results.problems],
        tables={name: shared.frame(table) for name, table in results.tables.items()},
        measured=measured,
        loss_course=None if results.loss_course is None else shared.frame(results.loss_course),
    )
