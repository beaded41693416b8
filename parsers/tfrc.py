"""Parameters of ns-2's TFRC agents, which its traces do not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_parameter(text: str) -> tuple[str, float]:
    """Return name and value of `NAME=VALUE`."""
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise UsageError(
            f"`{text}` is no parameter of TFRC", hint="write its name and a number, as in `df=0.9`"
        ) from None


def check_parameters(parameters: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return the parameters, or raise if ns-2's agents have none of that name or not with that value."""
    from tfrctrace.parsers._native import tfrc_parameters, tfrc_takes

    checked = tuple(parameters)
    for name, value in checked:
        if name not in tfrc_parameters():
            raise UsageError(
                f"ns-2's TFRC has no parameter `{name}`", hint=f"it has {', '.join(tfrc_parameters())}"
            )
        if not tfrc_takes(name, value):
            raise UsageError(f"the parameter `{name}` of ns-2's TFRC cannot be {value:g}")
    return checked
