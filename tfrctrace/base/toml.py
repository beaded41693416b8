"""Files that users write in TOML: read with a bound, and each value checked before it is used.

What is wrong is a `UsageError`; who reads a file adds its name.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection

Table = dict[str, Any]


def read_toml(path: str, most_bytes: int) -> Table:
    """Return the content of a file of at most `most_bytes` bytes."""
    try:
        with open(path, "rb") as file:
            text = file.read(most_bytes + 1)
        if len(text) > most_bytes:
            raise UsageError(f"larger than {most_bytes} bytes")
        return tomllib.loads(text.decode())
    except OSError as error:
        raise UsageError((error.strerror or str(error)).lower()) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"not TOML: no text in UTF-8 at byte {error.start}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"not TOML: {error}") from error


def number(value: object, place: str) -> float:
    """Return a number that is 0 or more; `place` says in an error what it is."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise UsageError(f"`{place}` is not a number from 0 on, but `{value}`")
    return float(value)


def whole(value: object, place: str) -> int:
    """Return a whole number that is 0 or more."""
    found = number(value, place)
    if found != int(found):
        raise UsageError(f"`{place}` is not a whole number, but `{value}`")
    return int(found)


def flag(value: object, place: str) -> bool:
    """Return `true` or `false`."""
    if not isinstance(value, bool):
        raise UsageError(f"`{place}` is not `true` or `false`, but `{value}`")
    return value


def listed(value: object, place: str) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise UsageError(f"`{place}` is not a list, but `{value}`")
    return value


def table_of(value: object, place: str) -> Table:
    """Return a table."""
    if not isinstance(value, dict):
        raise UsageError(f"{place} is not a table, but `{value}`")
    return value


def refuse_unknown(table: Table, known: set[str], place: str) -> None:
    """Raise for a key that is not known: a misspelt one would have no effect."""
    for name in table:
        if name not in known:
            raise UsageError(f"{place} has no `{name}`", hint=f"there are {', '.join(sorted(known))}")


def text(value: object, place: str) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"`{place}` is not a text, but `{value}`")
    return value


def texts(value: object, place: str) -> tuple[str, ...]:
    """Return the texts of a list; one text alone is a list of it."""
    return tuple(text(one, place) for one in ([value] if isinstance(value, str) else listed(value, place)))


def one_of(value: object, known: Collection[str], place: str) -> str:
    """Return a text that is one of `known`."""
    found = text(value, place)
    if found not in known:
        raise UsageError(f"`{place}` cannot be `{found}`", hint=f"it is one of {', '.join(known)}")
    return found
