"""Limits in a file of TOML: `[[limit]]` and `[[compare]]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast, get_args

from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import (
    listed,
    number,
    one_of,
    optional_text,
    read_toml,
    refuse_unknown,
    table_of,
    text,
)
from tfrctrace.gate.requirement import Level, parse_comparison, parse_requirement, parse_share
from tfrctrace.runs.quantity import Better

if TYPE_CHECKING:
    from tfrctrace.gate.requirement import BaselineComparison, Limit

_MOST_BYTES: Final = 1_000_000
_LEVELS: Final = get_args(Level)
_DIRECTIONS: Final = get_args(Better)


def read_limits(path: str) -> tuple[list[Limit], list[BaselineComparison]]:
    """Return the limits and the comparisons of the file at `path`. Raises `UsageError` with its name."""
    try:
        table = read_toml(path, _MOST_BYTES)
        refuse_unknown(table, {"limit", "compare"}, "the file")
        limits = [_limit(one) for one in listed(table.get("limit", []), "limit")]
        comparisons = [_comparison(one) for one in listed(table.get("compare", []), "compare")]
    except UsageError as error:
        raise UsageError(f"`{path}`: {error}", hint=error.hint) from error
    if not limits and not comparisons:
        raise UsageError(f"`{path}` has no `[[limit]]` and no `[[compare]]`")
    return limits, comparisons


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
