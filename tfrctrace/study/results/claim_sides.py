"""The values that a claim is about: those of each of its sides, in each scenario that it covers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from tfrctrace.study.definition import NOT_APPLICABLE
from tfrctrace.study.file.claims import Number, terms
from tfrctrace.study.results.cells import Cell, cluster_of, matches, sorted_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.study.definition import RunRules, Value
    from tfrctrace.study.file.claims import Claim, ScenarioMean

Scenario = tuple[tuple[str, "Value"], ...]


@dataclass(frozen=True, slots=True)
class Sides:
    """What is compared in one scenario: two sides, of which one may be a number, or the levels of a trend."""

    scenario: Scenario
    cells: tuple[Cell | float, ...]
    levels: tuple[str, ...] = ()
    """The values of the parameter of a trend."""


class AmbiguousTermError(Exception):
    """A term that several values fit."""


def sides_of(cells: Sequence[Cell], claim: Claim, scenario: Sequence[str]) -> Iterator[Sides]:
    """Give what is compared in each scenario that has all of it. Raises `AmbiguousTermError`."""
    bound = {name for term in terms(claim) for name, _ in term.where}
    free = [name for name in scenario if name not in bound and name != claim.parameter]
    if claim.parameter is not None:
        yield from _levels(cells, next(terms(claim)), claim.parameter, free)
        return
    first, *others = (
        {(): [side.value]} if isinstance(side, Number) else _by_scenario(cells, side, free)
        for side in claim.compared
    )
    for key, own in first.items():
        alike = (
            [one for other_key, found in other.items() if _is_alike(key, other_key) for one in found]
            for other in others
        )
        for chosen in product(own, *alike):
            yield Sides(_applicable(free, key), chosen)


def _levels(
    cells: Sequence[Cell], term: ScenarioMean, parameter: str, free: Sequence[str]
) -> Iterator[Sides]:
    by_value = {
        value: _by_scenario([cell for cell in cells if cell.axis(parameter) == value], term, free)
        for value in sorted_values(cell.axis(parameter) for cell in cells)
        if value != NOT_APPLICABLE
    }
    for key in dict.fromkeys(key for found in by_value.values() for key in found):
        steps = [(str(value), cell) for value, found in by_value.items() for cell in found.get(key, [])]
        if len(steps) > 1:
            levels, level_cells = zip(*steps, strict=True)
            yield Sides(_applicable(free, key), level_cells, levels)


def _is_alike(one: Sequence[Value], other: Sequence[Value]) -> bool:
    """Return whether two scenarios have the same values of all parameters that apply to both.

    A number has none.
    """
    return all(a == b or NOT_APPLICABLE in {a, b} for a, b in zip(one, other, strict=False))


def _applicable(free: Sequence[str], key: Sequence[Value]) -> Scenario:
    return tuple(pair for pair in zip(free, key, strict=True) if pair[1] != NOT_APPLICABLE)


def _by_scenario(
    cells: Sequence[Cell], side: ScenarioMean, free: Sequence[str]
) -> Mapping[tuple[Value, ...], list[Cell]]:
    """Return the cells that a side stands for, by the values of the parameters that it leaves open."""
    where = {name: (value,) for name, value in side.where}
    own = [cell for cell in cells if cell.quantity == side.quantity and matches(cell, where)]
    if side.group is None:
        # a label without a flow in these runs needs not be told apart
        own = [cell for cell in own if cell.has_flows] or own
        groups = {cell.group for cell in own}
        if len(groups) > 1:
            names = ", ".join(sorted(map(str, groups)))
            raise AmbiguousTermError(f"`{side.quantity}` has several groups, so one must be named: {names}")
    found: dict[tuple[Value, ...], list[Cell]] = {}
    for cell in own:
        if side.group in {None, cell.group} and cell.has_flows:
            found.setdefault(tuple(cell.scenario[name] for name in free), []).append(cell)
    return found


def rows_of_runs(sides: Sides, runs: RunRules) -> dict[str, tuple[float, ...]] | None:
    """Return a row of values by each run, or repetition, that all sides have; None if sides are not paired.

    Sides in the same runs are always paired. Those of different scenarios are by their repetition, if the
    study says so.
    """
    cells = [cell for cell in sides.cells if isinstance(cell, Cell)]
    is_same = all(cell.scenario == cells[0].scenario for cell in cells)
    if len(cells) < 2 or not (is_same or runs.is_paired):
        return None
    keys = [
        [
            run.name if is_same or runs.repetition is None else str(run.parameters[runs.repetition])
            for run in cell.runs
        ]
        for cell in cells
    ]
    if any(len(set(own)) < len(own) for own in keys):
        return None  # several values of a run, one for each flow
    values = [dict(zip(own, cell.values, strict=True)) for own, cell in zip(keys, cells, strict=True)]
    return {
        key: tuple(value[key] for value in values)
        for key in values[0]
        if all(key in value for value in values)
    }


def clustered_values(settings: Sequence[Sides], runs: RunRules) -> list[list[tuple[str | None, float]]]:
    """Return the values of each side in all `settings`, each after what it has in common with others.

    Where sides are paired only repetitions that all of them have count. A number has no cluster.
    """
    found: list[list[tuple[str | None, float]]] = [[] for _ in settings[0].cells]
    for sides in settings:
        names = {
            run.name: cluster_of(run, runs)
            for cell in sides.cells
            if isinstance(cell, Cell)
            for run in cell.runs
        }
        paired = rows_of_runs(sides, runs)
        for place, (own, cell) in enumerate(zip(found, sides.cells, strict=True)):
            if not isinstance(cell, Cell):
                own[:] = [(None, cell)]
            elif paired is None:
                own += [(names[name], value) for name, value in run_means(cell).items()]
            else:
                own += [(names.get(key, key), row[place]) for key, row in paired.items()]
    return found


def run_means(cell: Cell) -> dict[str, float]:
    """Return one value by the name of each run: flows of one run do not repeat it."""
    by_run: dict[str, list[float]] = {}
    for run, value in zip(cell.runs, cell.values, strict=True):
        by_run.setdefault(run.name, []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in by_run.items()}
