"""Parameters of algorithms by name: `vegas.alpha=1` sets `alpha` of `vegas`.

Parameters of an algorithm in Python are the keyword arguments of its class that have a default: numbers, or
words if the default is a word.
"""

from __future__ import annotations

import math
from inspect import Parameter, isclass, signature
from typing import TYPE_CHECKING

from tfrctrace.base.errors import UsageError
from tfrctrace.replay.controller import Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tfrctrace.replay.controller import MakeController

_ANY_START = Start(segment_bytes=1460)


def parse_settings(texts: Iterable[str]) -> dict[str, float | str]:
    """Parse settings such as `vegas.alpha=1` and `tfrc-veno.gamma=mix`, keyed by `ALGORITHM.NAME`."""
    parsed: dict[str, float | str] = {}
    for text in texts:
        place, sign, value = text.partition("=")
        if not sign or not value or not all(place.rpartition(".")):
            raise UsageError(
                f"`{text}` is not a parameter setting",
                hint="write algorithm, parameter and value: `vegas.alpha=1`",
            )
        try:
            parsed[place] = float(value)
        except ValueError:
            parsed[place] = value
    return parsed


def by_algorithm(
    settings: Mapping[str, float | str], algorithms: Iterable[str]
) -> dict[str, dict[str, float | str]]:
    """Return the settings of each algorithm; raises `UsageError` if it is not among them."""
    found: dict[str, dict[str, float | str]] = {name: {} for name in algorithms}
    for place, value in settings.items():
        algorithm, _, name = place.rpartition(".")
        if algorithm not in found:
            raise UsageError(
                f"`{place}` belongs to `{algorithm}`, which is not replayed",
                hint=f"replayed: {', '.join(found)}",
            )
        found[algorithm][name] = value
    return found


def parameters_of(make: MakeController) -> dict[str, object]:
    """Return the parameters of a controller with their defaults, its own first."""
    if not isclass(make):
        return _defaults(make)[0]
    found: dict[str, object] = {}
    for base in make.__mro__:
        begin = vars(base).get("__init__")
        if begin is not None:
            own, passes_on = _defaults(begin)
            found = {**found, **{name: default for name, default in own.items() if name not in found}}
            if not passes_on:
                break
    return found


def _defaults(function: Callable[..., object]) -> tuple[dict[str, object], bool]:
    """Return the keyword arguments with a default, and whether others are passed on."""
    parameters = signature(function).parameters.values()
    named = {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is Parameter.KEYWORD_ONLY and parameter.default is not Parameter.empty
    }
    return named, any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)


def check_parameters(
    algorithm: str, make: MakeController, own: Mapping[str, float | str]
) -> dict[str, float | str]:
    """Return the settings of one controller; raises `UsageError` for unknown names and bad values."""
    if not own:
        return {}
    known = parameters_of(make)
    for name, value in own.items():
        if name not in known:
            there_are = f"known: {', '.join(known)}" if known else "it has none"
            raise UsageError(f"`{algorithm}` has no parameter `{name}`", hint=there_are)
        if isinstance(value, str) is not isinstance(known[name], str) or not _is_default(value):
            raise UsageError(
                f"`{name}` of `{algorithm}` cannot be `{value}`",
                hint="it must be a word"
                if isinstance(known[name], str)
                else "it must be a number of at least 0",
            )
    try:
        make(_ANY_START, **own)
    except ValueError as error:
        raise UsageError(f"a parameter of `{algorithm}` cannot be used: {error}") from error
    return dict(own)


def _is_default(value: float | str) -> bool:
    return isinstance(value, str) or 0 <= value < math.inf
