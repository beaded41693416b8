"""Parameters in the names of files: `{queue}-n{flows}-{run}.tr.xz`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.study.definition import Value

_PLACE: Final = re.compile(r"\{([^{}]*)\}")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_WHOLE: Final = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_DECIMAL: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:[eE][-+]?[0-9]{1,2})?", re.ASCII)


def parameter_names(pattern: str) -> tuple[str, ...]:
    """Return the names between braces. Raises `UsageError` for a pattern that is not clear."""
    names = tuple(dict.fromkeys(_PLACE.findall(pattern)))
    for name in names:
        if not _WORD.fullmatch(name):
            raise UsageError(f"`{{{name}}}` of the pattern is not a name", hint="write such as `{flows}`")
    if "}{" in pattern:
        raise UsageError(
            "two parameters of the pattern touch each other", hint="something must stand between them"
        )
    if not names:
        raise UsageError(
            f"the pattern `{pattern}` has no parameter", hint="write such as `n{flows}-{run}.tr`"
        )
    return names


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return an expression that fits the end of a path, from the start of a part of it on.

    A parameter goes as far as what follows it in the pattern, and holds no `/`. One that is there again must
    have the same text. `*` at the end stands for any ending.
    """
    first, *rest = _PLACE.split(pattern.removesuffix("*"))
    written = re.escape(first)
    last = len(rest) - 2
    known: set[str] = set()
    for place, (name, following) in enumerate(zip(rest[::2], rest[1::2], strict=True)):
        text = f"(?P={name})" if name in known else f"(?P<{name}>[^/]+?)"
        parameter = f"{text}{re.escape(following)}"
        known.add(name)
        # without a way back: a long name that nearly fits would be tried in all its partitions
        written += parameter if 2 * place == last else f"(?>{parameter})"
    ending = "[^/]*" if pattern.endswith("*") else ""
    return re.compile(f"(?:.*/)?{written}{ending}", re.DOTALL)


def typed_values(columns: Sequence[str]) -> list[Value]:
    """Return the values of one parameter in all runs as numbers, if each of them is one; else as texts."""
    if all(_WHOLE.fullmatch(value) for value in columns):
        return [int(value) for value in columns]
    if all(_DECIMAL.fullmatch(value) for value in columns):
        return [float(value) for value in columns]
    return list(columns)
