"""Cells by the values of some parameters, for tables and figures: what is not named is put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrctrace.study.definition import GROUP
from tfrctrace.study.results.cells import Cell, cluster_of, is_same, make_cell, matches, sorted_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.study.definition import Reference, RunRules, Value, Where

ALL: str = "all"
"""The group of what is about all flows."""


@dataclass(frozen=True, slots=True)
class PivotCell:
    """Cells with the same values of the axes, as one; `rest` is the group, where several would be mixed."""

    at: tuple[Value, ...]
    rest: str | None
    cell: Cell
    reference: Reference | None
    """The published value for this place."""


def pivot(
    cells: Sequence[Cell],
    quantity: str,
    axes: Sequence[str],
    *,
    where: Where,
    references: Sequence[Reference],
    level: float,
    runs: RunRules,
) -> list[PivotCell]:
    """Return a quantity by the values of `axes`, in order of these.

    Scenarios that differ only in what is not named have their runs put together. Groups never are: if they
    are no axis, each stands for itself. A group without a flow in a scenario has no place there: a study may
    label flows that only some of its runs have. If none has one, that is shown.
    """
    asked = [cell for cell in cells if cell.quantity == quantity and matches(cell, where)]
    own = [cell for cell in asked if cell.has_flows] or asked
    groups = {cell.group for cell in own}
    splits = GROUP not in axes and len(groups) > 1
    parts: dict[tuple[tuple[Value, ...], str | None], list[Cell]] = {}
    for cell in own:
        at = tuple(_value(cell, axis) for axis in axes)
        parts.setdefault((at, cell.group if splits else None), []).append(cell)
    orders = [sorted_values(at[place] for at, _ in parts) for place in range(len(axes))]
    every = [cell for cell in cells if cell.quantity == quantity and cell.has_flows]
    placed = [
        PivotCell(
            at,
            rest,
            merge_cells(members, level, runs),
            _reported_value(members, references, quantity, every),
        )
        for (at, rest), members in parts.items()
    ]
    return sorted(
        placed, key=lambda one: [order.index(value) for order, value in zip(orders, one.at, strict=True)]
    )


def _value(cell: Cell, axis: str) -> Value:
    value = cell.axis(axis)
    return ALL if value is None else value


def merge_cells(cells: Sequence[Cell], level: float, runs: RunRules) -> Cell:
    """Return one cell with the values of all: of a paired study the repetitions are what varies."""
    first = cells[0]
    if len(cells) == 1:
        return first
    common = {
        name: value
        for name, value in first.scenario.items()
        if all(cell.scenario[name] == value for cell in cells)
    }
    return make_cell(
        common,
        first,
        [pair for cell in cells for pair in zip(cell.runs, cell.values, strict=True)],
        missing=sum(cell.missing for cell in cells),
        reasons=[cell.reason for cell in cells],
        level=level,
        cluster=lambda run: cluster_of(run, runs),
    )


def _reported_value(
    members: Sequence[Cell], references: Sequence[Reference], quantity: str, every: Sequence[Cell]
) -> Reference | None:
    """Return what is reported for a place: about all of its scenarios, and about no other of `every`."""
    own = set(map(id, members))
    for reference in references:
        if reference.quantity == quantity and own == {
            id(cell) for cell in every if _is_about(reference, cell)
        }:
            return reference
    return None


def _is_about(reference: Reference, cell: Cell) -> bool:
    # a reference that names no group is about the only one
    return matches(cell, reference.where) and (
        reference.group is None or (cell.group is not None and is_same(cell.group, reference.group))
    )
