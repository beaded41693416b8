"""The values of all runs by scenario: mean, spread and intervals of each quantity and group."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from tfrctrace.study.definition import GROUP, NO_FLOW
from tfrctrace.study.file_pattern import typed_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tfrctrace.metrics.statistics.significance import Interval
    from tfrctrace.study.definition import RunRules, Value, Where
    from tfrctrace.study.find_runs import Run
    from tfrctrace.study.results.run_quantities import RunValue


@dataclass(frozen=True, slots=True)
class Cell:
    """One quantity and group over all runs of one scenario, in the unit of the quantity."""

    scenario: Mapping[str, Value]
    quantity: str
    group: str | None
    unit: str
    values: tuple[float, ...]
    """One of each run, or of each flow if the quantity keeps them apart."""
    runs: tuple[Run, ...]
    """The run of each value."""
    repetitions: int
    """How many of the values are independent: runs, or of several scenarios their repetitions."""
    missing: int
    """How many have no value."""
    reason: str | None
    """Why they have none."""
    student: Interval | None
    bootstrap: Interval | None
    bounds: tuple[float, float]
    """Between which values of the quantity lie."""

    @property
    def mean(self) -> float | None:
        """Mean of the values; None if there is none."""
        return self.student.mean if self.student else None

    @property
    def has_flows(self) -> bool:
        """Whether a run of the scenario has a flow of the group at all."""
        return bool(self.values) or self.reason != NO_FLOW

    def axis(self, name: str) -> Value | None:
        """Return the value of a parameter, or the group."""
        return self.group if name == GROUP else self.scenario.get(name)


def summarise(found: Iterable[tuple[Run, RunValue]], scenario: Sequence[str], level: float) -> list[Cell]:
    """Return a cell for each scenario, quantity and group, in the order of the runs."""
    parts: dict[tuple[object, ...], list[tuple[Run, RunValue]]] = {}
    for run, one in found:
        own = tuple(run.parameters[name] for name in scenario)
        parts.setdefault((own, one.quantity, one.group), []).append((run, one))
    cells = []
    for members in parts.values():
        run, first = members[0]
        known = [(run, one.value) for run, one in members if one.value is not None]
        cells.append(
            make_cell(
                {name: run.parameters[name] for name in scenario},
                first,
                known,
                missing=len(members) - len(known),
                reasons=[one.reason for _, one in members],
                level=level,
            )
        )
    return cells


def make_cell(
    scenario: Mapping[str, Value],
    first: RunValue | Cell,
    known: Sequence[tuple[Run, float]],
    *,
    missing: int,
    reasons: Iterable[str | None],
    level: float,
    cluster: Callable[[Run], str] = attrgetter("name"),
) -> Cell:
    """Return the cell of the values of runs that are `known`, of the quantity and group of `first`.

    Values of runs with the same `cluster` do not repeat each other, nor do flows of one run.
    """
    import polars as pl

    from tfrctrace.metrics.statistics.significance import bootstrap_interval, mean_interval

    values = [value for _, value in known]
    clusters = [cluster(run) for run, _ in known]
    series = pl.Series(values, dtype=pl.Float64)
    student = mean_interval(series, level=level, clusters=clusters)
    bootstrap = bootstrap_interval(series, level=level, clusters=clusters)
    return Cell(
        scenario=scenario,
        quantity=first.quantity,
        group=first.group,
        unit=first.unit,
        values=tuple(values),
        runs=tuple(run for run, _ in known),
        repetitions=len(set(clusters)),
        missing=missing,
        reason="; ".join(dict.fromkeys(filter(None, reasons))) or None,
        student=student.within(first.bounds) if student else None,
        bootstrap=bootstrap.within(first.bounds) if bootstrap else None,
        bounds=first.bounds,
    )


def cluster_of(run: Run, runs: RunRules) -> str:
    """Return what a run has in common with those that belong to it in other scenarios; else its name."""
    if runs.is_paired and runs.repetition is not None:
        return str(run.parameters[runs.repetition])
    return run.name


def is_same(value: Value | None, wanted: Value) -> bool:
    """Return whether a parameter has a value, which may be written as a text: `1` is 1.0."""
    if value is None or isinstance(value, str) == isinstance(wanted, str):
        return value == wanted
    number, text = (wanted, value) if isinstance(value, str) else (value, wanted)
    return str(number) == text or typed_values([str(text)]) == [number]


def matches(cell: Cell, where: Where) -> bool:
    """Return whether a cell has one of the values that are looked at."""
    return all(any(is_same(cell.axis(axis), one) for one in wanted) for axis, wanted in where.items())


def sorted_values(values: Iterable[Value | None]) -> list[Value]:
    """Return different values in order: numbers by size, texts as they came."""
    found = list(dict.fromkeys(value for value in values if value is not None))
    numbers = [value for value in found if not isinstance(value, str)]
    return [*sorted(numbers), *(value for value in found if isinstance(value, str))]
