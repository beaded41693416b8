"""Objectives judged in a trace."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tfrctrace.base.grouping import MAX_ROWS
from tfrctrace.gate.limits_file import read_objectives
from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.objectives import Extent, Objective, judge_objective

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfrctrace.metrics.objectives import ObjectiveResult
    from tfrctrace.trace.tables import Tables


def given_objectives(
    given: str | os.PathLike[str] | Iterable[Objective | Mapping[str, Any]],
) -> list[Objective]:
    """Return the objectives of a file, or those that are given as such or by the keys of a file."""
    if isinstance(given, str | os.PathLike):
        return read_objectives(os.fspath(given))
    return [one if isinstance(one, Objective) else parse_objective(dict(one)) for one in given]


def judge_objectives(
    trace: Tables, objectives: Sequence[Objective], labels: Sequence[str] = ()
) -> list[ObjectiveResult]:
    """Return the result of each objective, from one pass for all of one grouping."""
    from tfrctrace.trace.gather_groups import gather_groups

    results = []
    for one in objectives:
        grouping = one.grouping
        groups = gather_groups(trace, grouping, labels if grouping.by == "label" else ())
        rows = trace.read_groups(grouping).table("groups").frame()
        results.append(judge_objective(one, groups, _extent(trace), is_complete=len(rows) < MAX_ROWS))
    return results


def _extent(trace: Tables) -> Extent:
    """Return the first and the last packet of all inputs."""
    starts = [source["start_ns"] for source in trace.sources if source["start_ns"] is not None]
    ends = [source["end_ns"] for source in trace.sources if source["end_ns"] is not None]
    return Extent(min(starts, default=0), max(ends, default=0))
