"""TOML files of users: read up to a size limit, with checked values.

Errors are `UsageError`s without the name of the file, which the caller adds.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.nearest import proposal_or_all

if TYPE_CHECKING:
    from collections.abc import Collection

Table = dict[str, Any]

_LONG_INTEGER: Final = "not TOML: an integer of more than 64 bits"

_MOST_NESTED: Final = 100
"""Tables and lists one in another: below what Python's recursion bears in what walks through them."""

_NESTED: Final = f"tables and lists are nested deeper than {_MOST_NESTED}"


def read_toml(path: str, most_bytes: int) -> Table:
    """Return the content of a file of at most `most_bytes` bytes."""
    try:
        with open(path, "rb") as file:
            text = file.read(most_bytes + 1)
    except OSError as error:
        raise UsageError((error.strerror or str(error)).lower()) from error
    if len(text) > most_bytes:
        raise UsageError(f"larger than {most_bytes} bytes")
    return _bounded(_parsed(text))


def header_lines(path: str, name: str, most_bytes: int) -> list[int]:
    """Return the numbers of the lines `[[name]]`, for errors; none if the file cannot be read again."""
    try:
        with open(path, "rb") as file:
            lines = file.read(most_bytes).decode(errors="replace").split("\n")
    except OSError:
        return []
    header = re.compile(rf"\s*\[\[\s*\"?{re.escape(name)}\"?\s*\]\]")
    return [number for number, line in enumerate(lines, 1) if header.match(line)]


def _parsed(text: bytes) -> Table:
    """Return the content of a file."""
    try:
        return tomllib.loads(text.decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"not TOML: invalid UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"not TOML: {error}") from error
    except RecursionError as error:
        raise UsageError(f"not TOML: {_NESTED}") from error
    except ValueError as error:
        # Python converts no more than 4300 digits
        raise UsageError(_LONG_INTEGER) from error


def _bounded(table: Table) -> Table:
    """Return the table unless it is nested too deep, or an integer in it has more than 64 bits."""
    pending: list[tuple[int, Any]] = [(0, table)]
    while pending:
        depth, value = pending.pop()
        if isinstance(value, dict | list):
            if depth > _MOST_NESTED:
                raise UsageError(_NESTED)
            parts = value.values() if isinstance(value, dict) else value
            pending += ((depth + 1, part) for part in parts)
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise UsageError(_LONG_INTEGER)
    return table


def number(value: object, place: str) -> float:
    """Return a number of at least 0; `place` names it in an error."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise UsageError(f"`{place}` must be a number of at least 0, not `{value}`")
    return float(value)


def whole(value: object, place: str) -> int:
    """Return a whole number of at least 0."""
    checked = number(value, place)
    if checked != int(checked):
        raise UsageError(f"`{place}` must be a whole number, not `{value}`")
    return int(checked)


def flag(value: object, place: str) -> bool:
    """Return `true` or `false`."""
    if not isinstance(value, bool):
        raise UsageError(f"`{place}` must be `true` or `false`, not `{value}`")
    return value


def listed(value: object, place: str) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise UsageError(f"`{place}` must be a list, not `{value}`")
    return value


def table_of(value: object, place: str) -> Table:
    """Return a table."""
    if not isinstance(value, dict):
        raise UsageError(f"{place} must be a table, not `{value}`")
    return value


def refuse_unknown(table: Table, known: set[str], place: str) -> None:
    """Raise for an unknown key, such as a misspelt one."""
    for name in table:
        if name not in known:
            hint = proposal_or_all(name, sorted(known), "known keys:")
            raise UsageError(f"unknown key `{name}` in {place}", hint=hint)


def text(value: object, place: str) -> str:
    """Return a string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"`{place}` must be a non-empty string, not `{value}`")
    return value


def optional_text(table: Table, key: str) -> str | None:
    """Return the string of `key`; None if the table does not have it."""
    return text(table[key], key) if key in table else None


def texts(value: object, place: str) -> tuple[str, ...]:
    """Return the strings of a list; a single string counts as a list of one."""
    return tuple(text(item, place) for item in ([value] if isinstance(value, str) else listed(value, place)))


def one_of(value: object, known: Collection[str], place: str) -> str:
    """Return a string that is one of `known`."""
    checked = text(value, place)
    if checked not in known:
        hint = proposal_or_all(checked, known, "choose one of")
        raise UsageError(f"`{place}` cannot be `{checked}`", hint=hint)
    return checked
