"""Names in a study file: each once, fit for files, and known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import text

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)


def refuse_twice(names: Sequence[str], kind: str) -> None:
    """Raise `UsageError` if a name of this `kind` is there twice."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise UsageError(f"there is more than one {kind} `{name}`", hint="give each a `name` of its own")


def file_name(value: object, place: str) -> str:
    """Return a name that is also that of files."""
    name = text(value, place)
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"`{place}` cannot be `{name}`", hint="letters, digits, `_`, `-` and `.`, as files are called so"
        )
    return name


def unknown(place: str, name: str, known: Sequence[str]) -> UsageError:
    """Return the error for a name that is not among those that are `known`."""
    there = ", ".join(known)
    return UsageError(
        f"{place}: there is no `{name}`", hint=f"there are {there}" if there else "there are none"
    )
