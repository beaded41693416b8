"""Limits in a file of TOML: `[[limit]]`, `[[compare]]` and `[[objective]]`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args

from tfrctrace.base.errors import UsageError
from tfrctrace.base.hours_of_use import parse_hours
from tfrctrace.base.toml import (
    header_lines,
    listed,
    number,
    one_of,
    optional_text,
    read_toml,
    refuse_unknown,
    table_of,
    text,
    texts,
)
from tfrctrace.gate.objective import parse_objective
from tfrctrace.gate.requirement import Level, parse_comparison, parse_requirement, parse_share
from tfrctrace.runs.quantity import Better

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfrctrace.base.toml import Table
    from tfrctrace.gate.requirement import BaselineComparison, Limit
    from tfrctrace.metrics.objectives import Objective

_Parsed = TypeVar("_Parsed", "Limit", "BaselineComparison", "Objective")

_MOST_BYTES: Final = 1_000_000
_LEVELS: Final = get_args(Level)
_DIRECTIONS: Final = get_args(Better)


@dataclass(frozen=True, slots=True)
class LimitsFile:
    """What a file asks of runs."""

    limits: list[Limit]
    comparisons: list[BaselineComparison]
    objectives: list[Objective]
    hours: tuple[str, ...] = ()
    """When the link is used, for `audit`."""


def read_limits(path: str) -> LimitsFile:
    """Return what the file at `path` asks. Raises `UsageError` with its name, and the line of a table."""
    try:
        table = read_toml(path, _MOST_BYTES)
        refuse_unknown(table, {"limit", "compare", "objective", "hours"}, "the file")
        hours = texts(table.get("hours", []), "hours")
        parse_hours(hours)
    except UsageError as error:
        raise UsageError(f"`{path}`: {error}", hint=error.hint) from error
    found = LimitsFile(
        _parsed(path, table, "limit", _limit),
        _parsed(path, table, "compare", _comparison),
        _parsed(path, table, "objective", parse_objective),
        hours,
    )
    if not (found.limits or found.comparisons or found.objectives):
        raise UsageError(f"`{path}` has no `[[limit]]`, no `[[compare]]` and no `[[objective]]`")
    return found


def read_objectives(path: str) -> list[Objective]:
    """Return the objectives of the file at `path`. Raises `UsageError` if it has none."""
    return read_audited(path).objectives


def read_audited(path: str) -> LimitsFile:
    """Return what the file at `path` asks of links. Raises `UsageError` if it has no objective."""
    found = read_limits(path)
    if not found.objectives:
        raise UsageError(f"`{path}` has no `[[objective]]`")
    return found


def _parsed(path: str, table: Table, name: str, parse: Callable[[object], _Parsed]) -> list[_Parsed]:
    """Return what `parse` makes of each table of this name, with its line where that is known."""
    found: list[_Parsed] = []
    lines: list[int] = header_lines(path, name, _MOST_BYTES) if name in table else []
    try:
        tables = listed(table.get(name, []), name)
        is_placed = len(lines) == len(tables)
        for number, one in enumerate(tables):
            found.append(replace(parse(one), line=lines[number] if is_placed else None))
    except UsageError as error:
        place = f" line {lines[len(found)]}" if len(lines) == len(table[name]) else ""
        raise UsageError(f"`{path}`{place}: {error}", hint=error.hint) from error
    return found


def _limit(value: object) -> Limit:
    table = table_of(value, "`[[limit]]`")
    refuse_unknown(table, {"require", "level", "name"}, "`[[limit]]`")
    return parse_requirement(
        text(table.get("require"), "require"), level=_level(table), name=optional_text(table, "name")
    )


def _comparison(value: object) -> BaselineComparison:
    table = table_of(value, "`[[compare]]`")
    refuse_unknown(table, {"quantity", "better", "tolerance", "level", "name"}, "`[[compare]]`")
    better = table.get("better")
    return parse_comparison(
        text(table.get("quantity"), "quantity"),
        better=None if better is None else cast("Better", one_of(better, _DIRECTIONS, "better")),
        tolerance=None if "tolerance" not in table else _tolerance(table["tolerance"]),
        level=_level(table),
        name=optional_text(table, "name"),
    )


def _level(table: dict[str, Any]) -> Level:
    return cast("Level", one_of(table.get("level", "fail"), _LEVELS, "level"))


def _tolerance(value: object) -> float:
    """Return the share that `0.05` or `"5%"` is."""
    return parse_share(value) if isinstance(value, str) else number(value, "tolerance")
